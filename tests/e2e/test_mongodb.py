# SPDX-License-Identifier: Apache-2.0
"""Records in MongoDB: a real server, killed, frozen, refusing; nothing acknowledged is lost."""
import contextlib
import json
import os
import threading
import time
import uuid

import pytest

from mongod import Mongod, collection, documents
from node import HANGS_S, Refused, eventually


@pytest.fixture
def mongod(tmp_path):
    server = Mongod(tmp_path / "mongod").start()
    yield server
    server.close()


def new_id():
    raw = bytearray(int(time.time() * 1000).to_bytes(6, "big") + uuid.uuid4().bytes[:10])
    raw[6] = 0x70 | raw[6] & 15
    raw[8] = 0x80 | raw[8] & 63
    return str(uuid.UUID(bytes=bytes(raw)))


def begin(net, mongod, database="records", name="a"):
    node = net.node(name)
    node.init()
    node.start("--store", mongod.uri(database))
    node.json("space", "create", "lab")
    return node


def state(node):
    return node.json("status")["store"]["documents"]


def test_a_record_is_a_document_that_others_read(net, mongod):
    a = begin(net, mongod)
    put = a.json("record", "put", "lab", "notes", "new", 'title="hello"', "n=5", "big=9007199254740993",
                 "half=0.5", "nothing=null", 'nested={"a.b":[1,{"$c":true}]}', "count+=3",
                 'tags:+="red"', f'long="{"x" * 5000}"')
    found = documents(mongod.client, "records", "notes")
    document = found[put["id"]]
    assert {k: v for k, v in document.items() if k not in ("_id", "_faberio")} == {
        "title": "hello", "n": 5, "big": 9007199254740993, "half": 0.5, "nothing": None,
        "nested": {"a%2Eb": [1, {"%24c": True}]}, "count": 3, "tags": ["red"], "long": "x" * 5000}
    assert a.json("record", "get", "lab", "notes", put["id"]) == put
    collection = next(name for name in mongod.client.records.list_collection_names()
                      if name.endswith(".notes"))
    total = list(mongod.client.records[collection].aggregate(
        [{"$match": {"tags": "red"}}, {"$group": {"_id": None, "sum": {"$sum": "$n"}}}]))
    assert total == [{"_id": None, "sum": 5}]
    # Fields whose names a document has for itself, or a server would not take.
    odd = a.json("record", "put", "lab", "notes", "new", "_id=1", "_faberio=2", "$set=3", "a.b=4",
                 "100%=5")
    document = documents(mongod.client, "records", "notes")[odd["id"]]
    shown = {k: v for k, v in document.items() if k not in ("_id", "_faberio")}
    assert shown == {"%5Fid": 1, "%5Ffaberio": 2, "%24set": 3, "a%2Eb": 4, "100%25": 5}
    assert a.json("record", "get", "lab", "notes", odd["id"])["fields"] == {
        "_id": 1, "_faberio": 2, "$set": 3, "a.b": 4, "100%": 5}


def test_what_reads_the_store_alone_leaves_no_document_out(net, mongod):
    a = begin(net, mongod)
    a.json("record", "put", "lab", "notes", "new", "n=1")
    file = a.home.parent / "lab.export"
    for words in (("export", "lab", str(file)), ("verify", "lab")):
        code, said = a.refused(*words)
        assert code == 1 and "document store" in said
    assert not file.exists()


def test_deleted_records_are_no_documents_and_lists_go_on(net, mongod):
    a = begin(net, mongod)
    ids = sorted(a.json("record", "put", "lab", "notes", "new", f"n={n}")["id"] for n in range(30))
    for gone in ids[::3]:
        a.call("record", "delete", "lab", "notes", gone)
    left = [i for i in ids if i not in ids[::3]]
    assert sorted(documents(mongod.client, "records", "notes")) == left
    assert [row["id"] for row in a.rows("record", "list", "lab", "notes")] == left
    assert [row["id"] for row in a.rows("record", "list", "lab", "notes", "--limit", "7", "--after",
                                        left[4])] == left[5:12]
    assert a.refused("record", "get", "lab", "notes", ids[0])[0] == 1
    # A deleted record may live again, and is a document then.
    a.call("record", "put", "lab", "notes", ids[0], "n=1")
    assert ids[0] in documents(mongod.client, "records", "notes")


def write_until(node, stop, kept):
    """Puts one after another; what was acknowledged is in `kept`."""
    n = 0
    while not stop.is_set():
        n += 1
        record = new_id()
        try:
            node.json("record", "put", "lab", "notes", record, f"n={n}", f'text="{"t" * 200}"')
            kept[record] = n
        except Refused as refused:
            # Its outcome is unknown, or it was refused: try again.
            assert refused.code in (3, 75, 1), refused


@contextlib.contextmanager
def writing(node, kept, writers=1):
    """So many write all the time, and end with this, however it ends."""
    stop = threading.Event()
    threads = [threading.Thread(target=write_until, args=(node, stop, kept)) for _ in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=HANGS_S)


def test_a_node_killed_in_the_middle_loses_nothing_it_acknowledged(net, mongod):
    a = begin(net, mongod)
    kept = {}
    for _ in range(4):
        with writing(a, kept):
            eventually(lambda: len(kept), lambda count, least=len(kept) + 10: count >= least)
            a.kill()
        a.start("--store", mongod.uri("records"))
        listed = {row["id"]: row["fields"]["n"] for row in a.rows("record", "list", "lab", "notes")}
        assert {k: listed.get(k) for k in kept} == kept
    eventually(lambda: state(a)["waiting"], lambda waiting: waiting == 0)
    found = documents(mongod.client, "records", "notes")
    assert {k: found[k]["n"] for k in kept} == kept
    assert len(found) == len(listed)


# The nightly run kills it more often.
RESTARTS = int(os.environ.get("FABERIO_MONGOD_RESTARTS", "5"))


def test_a_server_killed_under_load_costs_no_acknowledged_write_and_no_restart(net, mongod):
    a = begin(net, mongod)
    starts = a.json("status")["starts"]
    kept = {}
    with writing(a, kept, writers=3):
        for _ in range(RESTARTS):
            eventually(lambda: len(kept), lambda count, least=len(kept) + 10: count >= least)
            mongod.kill()
            mongod.start()
    eventually(lambda: state(a)["waiting"], lambda waiting: waiting == 0)
    found = documents(mongod.client, "records", "notes")
    assert {k: found[k]["n"] for k in kept} == kept
    assert a.json("status")["starts"] == starts


def test_a_server_that_is_not_there_is_back_pressure_that_is_told(net, mongod):
    a = begin(net, mongod)
    put = a.json("record", "put", "lab", "notes", "new", "n=1")
    mongod.kill()
    outcomes = []
    writer = threading.Thread(target=lambda: outcomes.append(
        a.json("record", "put", "lab", "notes", "new", "n=2")))
    writer.start()
    eventually(lambda: state(a), lambda s: s["state"] == "unreachable" and s["waiting"] == 1)
    code, said = a.refused("record", "put", "lab", "notes", "new", "n=3")
    assert code == 75 and "document store" in said
    ready = a.http("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert ready.startswith("HTTP/1.1 503") and '"document_store"' in ready
    mongod.start()
    writer.join(timeout=HANGS_S)
    assert [o["fields"] for o in outcomes] == [{"n": 2}]
    found = documents(mongod.client, "records", "notes")
    assert sorted(d["n"] for d in found.values()) == [1, 2]
    assert a.json("record", "get", "lab", "notes", put["id"]) == put


def test_a_node_starts_without_its_server_and_goes_on_when_it_comes(net, mongod):
    a = begin(net, mongod)
    a.stop()
    mongod.kill()
    a.start("--store", mongod.uri("records"))
    assert [s["name"] for s in a.rows("space", "list")] == ["lab"]
    mongod.start()
    eventually(lambda: state(a), lambda s: s["state"] == "ok")
    put = a.json("record", "put", "lab", "notes", "new", "n=1")
    assert put["id"] in documents(mongod.client, "records", "notes")


@pytest.mark.parametrize("trouble", [
    {"errorCode": 10107, "failCommands": ["update", "delete"]},     # not the primary
    {"closeConnection": True, "failCommands": ["update", "delete"]},
    {"writeConcernError": {"code": 64, "errmsg": "waiting timed out"},
     "failCommands": ["update", "delete"]},
    {"errorCode": 13, "failCommands": ["update", "find"]},          # not authorised, for a while
])
def test_what_a_server_refuses_for_a_while_is_tried_again_and_written_once(net, mongod, trouble):
    a = begin(net, mongod)
    a.json("record", "put", "lab", "notes", "new", "n=0")
    mongod.fail({"times": 3}, **trouble)
    ids = [a.json("record", "put", "lab", "notes", "new", f"n={n}")["id"] for n in range(1, 4)]
    mongod.fail("off")
    found = documents(mongod.client, "records", "notes")
    assert sorted(d["n"] for d in found.values()) == [0, 1, 2, 3]
    assert [a.json("record", "get", "lab", "notes", i)["fields"]["n"] for i in ids] == [1, 2, 3]
    assert state(a)["retries"] > 0


def test_a_rule_of_the_collection_keeps_a_record_out_and_nothing_else(net, mongod):
    a = begin(net, mongod)
    a.json("record", "put", "lab", "notes", "new", "n=1")
    name = next(n for n in mongod.client.records.list_collection_names() if n.endswith(".notes"))
    mongod.client.records.command("collMod", name, validator={"n": {"$lt": 10}})
    refused = a.json("record", "put", "lab", "notes", "new", "n=10")
    taken = a.json("record", "put", "lab", "notes", "new", "n=2")
    assert state(a)["refused"] == 1
    assert sorted(d["n"] for d in documents(mongod.client, "records", "notes").values()) == [1, 2]
    # It is there for all who ask the node, also after a restart.
    a.kill()
    a.start("--store", mongod.uri("records"))
    assert a.json("record", "get", "lab", "notes", refused["id"]) == refused
    assert a.json("record", "get", "lab", "notes", taken["id"]) == taken
    assert len(a.rows("record", "list", "lab", "notes")) == 3


def test_a_second_process_of_the_node_takes_over_and_the_first_one_says_so(net, mongod, tmp_path):
    a = begin(net, mongod)
    first = a.json("record", "put", "lab", "notes", "new", "n=1")
    # The fence as a later start would have left it, and a document of that start.
    name = next(n for n in mongod.client.records.list_collection_names() if n.endswith(".notes"))
    mongod.client.records[name].update_one({"_id": uuid.UUID(first["id"])},
                                           {"$inc": {"_faberio.s": 1}})
    with pytest.raises(Refused):
        a.json("record", "put", "lab", "notes", first["id"], "n=2", env=dict(
            a.env, FABERIO_COMMAND_TIMEOUT="5s"))
    eventually(lambda: state(a)["state"], lambda s: s == "taken_over")
    assert a.refused("record", "put", "lab", "notes", "new", "n=3")[0] == 75
    assert documents(mongod.client, "records", "notes")[first["id"]]["n"] == 1


def test_two_nodes_with_a_server_each_converge(net, mongod, tmp_path):
    other = Mongod(tmp_path / "other", replica_set=None).start()
    try:
        a, b = begin(net, mongod), net.node("b")
        b.init()
        b.start("--store", other.uri("elsewhere"))
        invite = a.json("space", "invite", "lab")["invite"]
        b.json("space", "join", invite)
        a.json("space", "approve", "lab", b.id)
        ids = [a.json("record", "put", "lab", "notes", "new", f"n={n}", f'long="{"y" * 400}"')["id"]
               for n in range(20)]
        eventually(lambda: sorted(documents(other.client, "elsewhere", "notes")),
                   lambda found: found == sorted(ids))
        b.json("record", "put", "lab", "notes", ids[0], 'by="b"')
        eventually(lambda: documents(mongod.client, "records", "notes")[ids[0]].get("by"),
                   lambda by: by == "b")
        left = documents(mongod.client, "records", "notes")
        right = documents(other.client, "elsewhere", "notes")
        for document in (*left.values(), *right.values()):
            for key in ("s", "n", "t"):
                del document["_faberio"][key]
            document["_faberio"]["a"].sort(key=lambda value: value["d"])
        assert left == right
    finally:
        other.close()


def test_an_address_that_cannot_be_meant_is_refused_and_a_password_is_not_shown(net):
    a = net.node("a")
    a.init()
    for address in ("mongodb://", "mongodb://127.0.0.1:1", "mongodb://127.0.0.1/?w=1",
                    "postgres://h/d"):
        code, said = a.refused("run", "--store", address)
        assert code == 2 and "mongodb://HOST/DATABASE" in said, address
    code, said = a.refused("run", "--store", "mongodb://127.0.0.1:x/records")
    assert code == 1 and "not an address of MongoDB" in said
    shown = a.call("config", "show", "--origin", "--store",
                   "mongodb://somebody:secret@127.0.0.1/records")
    assert "secret" not in shown and "mongodb://...@127.0.0.1/records" in shown
    assert "secret" not in json.dumps(a.json("config", "show", "--store",
                                             "mongodb://somebody:secret@127.0.0.1/records"))


def test_an_index_of_the_collections_owner_keeps_a_record_out_and_nothing_else(net, mongod):
    a = begin(net, mongod)
    first = a.json("record", "put", "lab", "notes", "new", 'title="one"')
    removed = a.json("record", "put", "lab", "notes", "new", 'title="two"')["id"]
    notes = collection(mongod.client, "records", "notes")
    notes.create_index("title", unique=True)
    # A duplicate key is not always that of the _id: this record is not there.
    refused = a.json("record", "put", "lab", "notes", "new", 'title="one"')
    assert a.json("record", "get", "lab", "notes", refused["id"]) == refused
    assert state(a)["refused"] == 1
    # What comes behind a command that was not carried out was not even sent.
    ids = [new_id() for _ in range(2)]
    mongod.fail({"times": 1}, failCommands=["delete"], closeConnection=True)
    body = json.dumps({"changes": [{"id": first["id"], "fields": {"m": 1}},
                                   {"id": refused["id"], "fields": {"m": 1}},
                                   {"id": removed, "delete": True},
                                   *({"id": i, "fields": {"title": i}} for i in ids)]})
    answer = a.http("POST /v1/spaces/lab/collections/notes/records:batch HTTP/1.1\r\nHost: x\r\n"
                    f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    assert answer.split()[1] == "200", answer
    eventually(lambda: state(a), lambda s: s["waiting"] == 0)
    assert set(ids) <= set(documents(mongod.client, "records", "notes"))
    rows = {row["id"]: row["fields"] for row in a.rows("record", "list", "lab", "notes")}
    assert rows == {first["id"]: {"title": "one", "m": 1}, refused["id"]: {"title": "one", "m": 1},
                    **{i: {"title": i} for i in ids}}
    a.kill()
    a.start("--store", mongod.uri("records"))
    assert {row["id"]: row["fields"] for row in a.rows("record", "list", "lab", "notes")} == rows


def again_without_redo(node, address):
    """What waited for documents that are kept goes with an orderly end at the latest."""
    assert node.stop() == 0
    node.start("--store", address)


def test_a_write_is_not_lost_where_another_program_put_what_is_ours_in_another_order(net, mongod):
    a = begin(net, mongod)
    record = a.json("record", "put", "lab", "notes", "new", "n=1")["id"]
    notes = collection(mongod.client, "records", "notes")
    whole = notes.find_one({"_id": uuid.UUID(record)})
    whole["_faberio"] = dict(reversed(whole["_faberio"].items()))
    notes.replace_one({"_id": uuid.UUID(record)}, whole)
    a.json("record", "put", "lab", "notes", record, "n=2")
    again_without_redo(a, mongod.uri("records"))
    for again in range(2):
        assert a.json("record", "get", "lab", "notes", record)["fields"] == {"n": 2}
        a.kill()
        a.start("--store", mongod.uri("records"))


def test_a_server_that_is_locked_takes_no_writes_and_answers_reads(net, mongod):
    a = begin(net, mongod)
    record = a.json("record", "put", "lab", "notes", "new", "n=1")["id"]
    mongod.client.admin.command("fsync", lock=True)
    kept = []
    writer = threading.Thread(target=lambda: kept.append(
        a.json("record", "put", "lab", "notes", record, "n=2")))
    writer.start()
    eventually(lambda: state(a)["waiting"], lambda waiting: waiting > 0)
    assert a.json("record", "get", "lab", "notes", record)["fields"]["n"] in (1, 2)
    assert documents(mongod.client, "records", "notes")[record]["n"] == 1
    assert kept == []
    mongod.client.admin.command("fsyncUnlock")
    writer.join(timeout=HANGS_S)
    assert len(kept) == 1 and documents(mongod.client, "records", "notes")[record]["n"] == 2
    eventually(lambda: state(a), lambda s: s["state"] == "ok" and s["waiting"] == 0)
    assert a.json("status")["starts"] == 1


def test_a_server_that_is_no_primary_for_a_while_costs_no_acknowledged_write(net, mongod):
    a = begin(net, mongod)
    kept = {}
    with writing(a, kept, writers=2):
        for _ in range(2):
            eventually(lambda: len(kept), lambda count, least=len(kept) + 5: count >= least)
            mongod.client.admin.command("replSetStepDown", 600, force=True)
            assert not mongod.client.admin.command("hello")["isWritablePrimary"]
            eventually(lambda: state(a), lambda s: s["state"] == "unreachable" and s["error"] != "")
            # From here on it may become the primary again, and the node finds that out.
            mongod.client.admin.command("replSetFreeze", 0)
            eventually(lambda: len(kept), lambda count, least=len(kept) + 5: count >= least)
    eventually(lambda: state(a), lambda s: s["state"] == "ok" and s["waiting"] == 0)
    found = documents(mongod.client, "records", "notes")
    assert {k: found[k]["n"] for k in kept} == kept
    assert {row["id"] for row in a.rows("record", "list", "lab", "notes")} == set(found)
    assert a.json("status")["starts"] == 1


def test_it_reads_from_the_primary_whatever_the_address_says(net, mongod):
    a = net.node("a")
    a.init()
    address = mongod.uri("records") + "&readPreference=secondary"
    a.start("--store", address)
    a.json("space", "create", "lab")
    record = a.json("record", "put", "lab", "notes", "new", "n=1")["id"]
    again_without_redo(a, address)
    assert a.json("record", "get", "lab", "notes", record)["fields"] == {"n": 1}


def test_a_password_that_is_not_encoded_is_not_repeated(net):
    a = net.node("a")
    a.init()
    code, said = a.refused("run", "--store", "mongodb://somebody:se:cret@127.0.0.1/records")
    assert code == 1 and "percent-encoded" in said and "cret" not in said
