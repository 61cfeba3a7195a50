# SPDX-License-Identifier: Apache-2.0
"""`faberio store migrate`: the records of a node into MongoDB and back, interrupted and not."""
import json
import signal
import subprocess
import uuid

from mongod import collection, documents
from node import BIN, HANGS_S, eventually
from test_mongodb import mongod, state  # noqa: F401


def local_node(net, count):
    """With plain and long values, counters and sets, deleted records, and two collections."""
    a = net.node("a")
    a.init()
    a.start()
    a.json("space", "create", "lab")
    lines = "".join(json.dumps({"fields": {"n": n, "text": "t" * (n % 7 * 100)}}) + "\n"
                    for n in range(count))
    a.call("record", "import", "lab", "notes", "-", stdin=lines)
    for n in range(3):
        a.json("record", "put", "lab", "tasks", "new", f"count+={n}", 'tags:+="red"')
    for row in a.rows("record", "list", "lab", "notes")[::10]:
        a.call("record", "delete", "lab", "notes", row["id"])
    a.json("record", "put", "lab", "notes", "new", f'wide="{"w" * 40_000}"')
    return a


def all_of(node):
    return [node.rows("record", "list", "lab", name) for name in ("notes", "tasks")]


def test_records_go_into_documents_and_come_back_as_they_were(net, mongod):
    a = local_node(net, 600)
    before, uri = all_of(a), mongod.uri("records")
    code, said = a.refused("store", "migrate", "--from", "local", "--to", uri)
    assert code == 75 and "store" in said, "it runs"
    a.stop()
    done = a.json("store", "migrate", "--from", "local", "--to", uri)
    assert done["records"] == sum(map(len, before)) and done["verified"] and done["stayed"] == 0
    assert sorted(documents(mongod.client, "records", "notes")) == [row["id"] for row in before[0]]
    # Nothing is left to be moved, and the node does not run without its documents.
    assert a.json("store", "migrate", "--from", "local", "--to", uri)["records"] == 0
    code, said = a.refused("run", "--listen", "none")
    assert code == 1 and "store migrate" in said
    a.start("--store", uri)
    assert all_of(a) == before
    a.json("record", "put", "lab", "tasks", before[1][0]["id"], "count+=5")
    a.call("record", "delete", "lab", "notes", before[0][0]["id"])
    now = all_of(a)
    a.stop()
    back = a.json("store", "migrate", "--from", uri, "--to", "local")
    assert back["records"] == sum(map(len, now))
    a.start()
    assert all_of(a) == now
    assert a.call("verify", "lab")
    a.json("record", "put", "lab", "tasks", now[1][0]["id"], "count+=1")
    a.stop()
    # And once more: what is there from the first time is older.
    again = a.json("store", "migrate", "--from", "local", "--to", uri)
    assert again["records"] == sum(map(len, now))
    a.start("--store", uri)
    assert [len(rows) for rows in all_of(a)] == [len(rows) for rows in now]
    assert before[0][0]["id"] not in [row["id"] for row in a.rows("record", "list", "lab", "notes")]


def interrupted(node, there, *arguments):
    """Killed when so much is there."""
    process = subprocess.Popen([BIN, "store", "migrate", *arguments, "--home", str(node.home)],
                               env=node.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: there() or process.poll() is not None, lambda begun: begun)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=HANGS_S)


def test_one_that_was_interrupted_goes_on(net, mongod):
    a = local_node(net, 1500)
    before, uri = all_of(a), mongod.uri("records")
    a.stop()
    interrupted(a, lambda: documents(mongod.client, "records", "notes"),
                "--from", "local", "--to", uri)
    # The node may run in between.
    a.start("--store", uri)
    assert all_of(a) == before
    a.stop()
    a.json("store", "migrate", "--from", "local", "--to", uri)
    assert len(documents(mongod.client, "records", "notes")) == len(before[0])
    interrupted(a, lambda: True, "--from", uri, "--to", "local")
    a.json("store", "migrate", "--from", uri, "--to", "local")
    a.start()
    assert all_of(a) == before
    assert a.call("verify", "lab")


def test_what_it_refuses(net, mongod):
    a = local_node(net, 5)
    uri = mongod.uri("records")
    a.stop()
    for wrong in (["--from", "local", "--to", "local"], ["--from", uri, "--to", uri], ["--to", uri],
                  ["--from", "local", "--to", "postgres://h/d"], ["--from", "local", "--to", "mongodb://h"]):
        assert a.refused("store", "migrate", *wrong)[0] == 2, wrong
    a.json("store", "migrate", "--from", "local", "--to", uri)
    notes = collection(mongod.client, "records", "notes")
    notes.update_one({"_id": next(iter(documents(mongod.client, "records", "notes").values()))["_id"]},
                     {"$set": {"n": 100}})
    code, said = a.refused("store", "migrate", "--from", uri, "--to", "local")
    assert code == 5 and "other programs changed" in said
    a.start("--store", uri)
    eventually(lambda: state(a), lambda s: s["imported"] == 1 and s["under_way"] == 0)
    a.stop()
    a.json("store", "migrate", "--from", uri, "--to", "local")
    a.start()
    assert 100 in [row["fields"].get("n") for row in a.rows("record", "list", "lab", "notes")]


def test_nothing_ends_at_documents_that_are_no_records(net, mongod):
    """More of them in a row than a list or a part asks for."""
    a = local_node(net, 300)
    before, uri = all_of(a), mongod.uri("records")
    a.stop()
    a.json("store", "migrate", "--from", "local", "--to", uri)
    notes = collection(mongod.client, "records", "notes")
    middle = uuid.UUID(before[0][100]["id"]).bytes
    notes.insert_many([{"_id": uuid.UUID(bytes=middle[:6] + bytes([0, 0, 0x80]) + n.to_bytes(7, "big"))}
                       for n in range(600)])
    a.start("--store", uri)
    assert all_of(a) == before
    a.stop()
    back = a.json("store", "migrate", "--from", uri, "--to", "local")
    assert back["records"] == sum(map(len, before))
    a.start()
    assert all_of(a) == before
