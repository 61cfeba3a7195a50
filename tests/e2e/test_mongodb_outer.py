# SPDX-License-Identifier: Apache-2.0
"""Documents that other programs change: noticed by change stream, when they are read, or by looking at
all of them; and made a change of the node, or left alone."""
import threading
import json
import uuid
from datetime import datetime

import pytest
from bson.int64 import Int64

from mongod import Mongod, collection, documents, shown
from node import HANGS_S, eventually
from test_mongodb import begin, mongod, new_id, state  # noqa: F401


@pytest.fixture
def standalone(tmp_path):
    server = Mongod(tmp_path / "standalone", replica_set=None).start()
    yield server
    server.close()


def get(node, record):
    return node.json("record", "get", "lab", "notes", record)["fields"]


def changed(node, record, fields):
    """Until the node has a record so, and its document as well."""
    eventually(lambda: [row["fields"] for row in node.rows("record", "list", "lab", "notes")
                        if row["id"] == record], lambda found: found == [fields])
    eventually(lambda: state(node), lambda s: s["under_way"] == 0 and s["waiting"] == 0)


def watching(node):
    eventually(lambda: state(node), lambda s: s["watch"] != "none" and s["under_way"] == 0)


def put(node, *fields, record="new"):
    return node.json("record", "put", "lab", "notes", record, *fields)["id"]


def test_fields_that_others_change_become_a_change_of_the_node(net, mongod):
    a = begin(net, mongod)
    b = net.node("b")
    b.init()
    b.start()
    b.json("space", "join", a.json("space", "invite", "lab")["invite"])
    a.json("space", "approve", "lab", b.id)
    record = put(a, 'title="old"', "n=1", "count+=3", 'tags:+="red"', "gone=1", f'long="{"x" * 400}"')
    notes = collection(mongod.client, "records", "notes")
    notes.update_one({"_id": uuid.UUID(record)}, {
        "$set": {"title": "new", "count": 10, "tags": ["blue", "green"], "a%2Eb": {"c%2Ed": [1, 2.5, None]},
                 "small": 7, "wide": Int64(1 << 60), "yes": True},
        "$unset": {"gone": 1}})
    wanted = {"title": "new", "n": 1, "count": 10, "tags": ["blue", "green"], "a.b": {"c.d": [1, 2.5, None]},
              "small": 7, "wide": 1 << 60, "yes": True, "long": "x" * 400}
    changed(a, record, wanted)
    # It is a signed change as any other: another member, whose records are in its own directory, has it.
    eventually(lambda: b.rows("record", "list", "lab", "notes"),
               lambda rows: rows and rows[0]["fields"] == wanted)
    # A counter is one still, and a set.
    put(a, "count+=1", 'tags:-="blue"', record=record)
    assert get(a, record) == wanted | {"count": 11, "tags": ["green"]}
    assert shown(mongod.client, "records", "notes")[record] == {
        **{k: v for k, v in wanted.items() if k != "a.b"}, "count": 11, "tags": ["green"],
        "a%2Eb": {"c%2Ed": [1, 2.5, None]}}
    assert state(a)["left_alone"] == 0


def test_what_others_read_and_write_again_is_no_change(net, mongod):
    a = begin(net, mongod)
    record = put(a, "n=5", "big=9007199254740993", "half=1.50", 'x={"a":1,"b":[2]}', "tags:+=1.50",
                 "by=0")
    put(a, "tags:+=2", record=record)
    watching(a)
    before = a.json("record", "get", "lab", "notes", record)
    notes = collection(mongod.client, "records", "notes")
    notes.update_one({"_id": uuid.UUID(record)}, {"$set": {
        "n": 5.0, "big": float(9007199254740993), "x": {"b": [2.0], "a": 1}, "tags": [1.5, 2.0], "by": 1}})
    changed(a, record, {**before["fields"], "by": 1})
    assert json.dumps({**get(a, record), "by": 0}) == json.dumps(before["fields"]), "no 5.0 for 5"
    notes.update_one({"_id": uuid.UUID(record)}, {"$set": {"tags": [2.0, 3]}})
    eventually(lambda: sorted(get(a, record)["tags"]), lambda tags: tags == [2, 3])
    assert get(a, record) == {**before["fields"], "by": 1, "tags": get(a, record)["tags"]}


def test_documents_that_others_make_replace_and_remove(net, mongod):
    a = begin(net, mongod)
    first, second = put(a, "n=1", "m=1"), put(a, "n=2")
    notes = collection(mongod.client, "records", "notes")
    made = new_id()
    notes.insert_one({"_id": uuid.UUID(made), "text": "by another"})
    changed(a, made, {"text": "by another"})
    assert documents(mongod.client, "records", "notes")[made]["_faberio"]["v"] == 1
    # What a program writes that read the document, and what one writes that did not keep _faberio.
    whole = notes.find_one({"_id": uuid.UUID(first)})
    notes.replace_one({"_id": uuid.UUID(first)}, {**whole, "n": 5})
    changed(a, first, {"n": 5, "m": 1})
    notes.replace_one({"_id": uuid.UUID(first)}, {"other": "all of it"})
    changed(a, first, {"other": "all of it"})
    notes.delete_one({"_id": uuid.UUID(second)})
    eventually(lambda: [row["id"] for row in a.rows("record", "list", "lab", "notes")],
               lambda ids: ids == sorted([first, made]))
    # It is put back for the moment in which the node deletes it.
    eventually(lambda: state(a), lambda s: s["under_way"] == 0 and s["imported"] >= 4)
    assert a.refused("record", "get", "lab", "notes", second)[0] == 1
    eventually(lambda: sorted(documents(mongod.client, "records", "notes")),
               lambda ids: ids == sorted([first, made]))
    # A record that was removed so may live again.
    put(a, "n=3", record=second)
    assert shown(mongod.client, "records", "notes")[second] == {"n": 3}
    watching(a)
    assert state(a)["lost"] == 0


def test_what_no_record_can_be_is_told_and_left_alone(net, mongod):
    a = begin(net, mongod)
    record = put(a, "n=1", "m=1")
    notes = collection(mongod.client, "records", "notes")
    alien = [{"_id": 5, "n": 1}, {"n": 2}, {"_id": uuid.uuid4(), "n": 3}]
    notes.insert_many(alien)
    breaking = [{"at": datetime(2026, 1, 1)}, {"big": "x" * 100_000}, {"not": float("nan")},
                {"f" * 300: 1}, {"old": "a\0b"}]
    made = [new_id() for _ in breaking]
    notes.insert_many([{"_id": uuid.UUID(i), **fields} for i, fields in zip(made, breaking)])
    notes.update_one({"_id": uuid.UUID(record)}, {"$set": {"n": datetime(2026, 1, 1)}})
    eventually(lambda: state(a)["left_alone"], lambda count: count >= 6)
    a.lines.until(lambda line: "document_left_alone" in line and made[0] in line)
    # They stand there as they were left, and the node goes on.
    assert notes.count_documents({"_faberio": {"$exists": False}}) == len(alien) + len(breaking)
    assert [row["id"] for row in a.rows("record", "list", "lab", "notes")] == [record]
    assert get(a, record) == {"n": 1, "m": 1}
    good = new_id()
    notes.insert_one({"_id": uuid.UUID(good), "n": 9})
    changed(a, good, {"n": 9})


def test_what_was_changed_while_the_node_was_away_is_taken_up_by_its_token(net, mongod):
    a = begin(net, mongod)
    ids = [put(a, f"n={n}") for n in range(3)]
    watching(a)
    a.stop()
    notes = collection(mongod.client, "records", "notes")
    notes.update_one({"_id": uuid.UUID(ids[0])}, {"$set": {"n": 10}})
    notes.delete_one({"_id": uuid.UUID(ids[1])})
    a.start("--store", mongod.uri("records"))
    eventually(lambda: {row["id"]: row["fields"]["n"] for row in a.rows("record", "list", "lab", "notes")},
               lambda found: found == {ids[0]: 10, ids[2]: 2})
    assert state(a)["scans"] == 0
    # Killed before it could store where it was: what it did already is not done twice.
    notes.update_one({"_id": uuid.UUID(ids[2])}, {"$set": {"n": 20}})
    changed(a, ids[2], {"n": 20})
    etag = a.json("record", "get", "lab", "notes", ids[2])["etag"]
    a.kill()
    a.start("--store", mongod.uri("records"))
    watching(a)
    assert a.json("record", "get", "lab", "notes", ids[2])["etag"] == etag


def test_a_token_that_the_server_forgot_costs_a_look_at_all_documents(net, mongod):
    a = begin(net, mongod)
    record = put(a, "n=1")
    watching(a)
    a.stop()
    collection(mongod.client, "records", "notes").update_one({"_id": uuid.UUID(record)},
                                                             {"$set": {"n": 2}})
    mongod.fail({"times": 1}, errorCode=286, failCommands=["aggregate"])
    a.start("--store", mongod.uri("records"))
    changed(a, record, {"n": 2})
    eventually(lambda: state(a), lambda s: s["scans"] == 1 and s["watch"] == "stream")
    put(a, "n=3", record=record)
    collection(mongod.client, "records", "notes").update_one({"_id": uuid.UUID(record)},
                                                             {"$set": {"n": 4}})
    changed(a, record, {"n": 4})


def test_an_event_larger_than_a_message_does_not_hold_up_the_stream(net, mongod):
    a = begin(net, mongod)
    record = put(a, "n=1")
    watching(a)
    notes = collection(mongod.client, "records", "notes")
    large = uuid.UUID(new_id())
    notes.insert_one({"_id": large, "text": "x" * (9 << 20)})
    notes.replace_one({"_id": large}, {"text": "y" * (9 << 20)})
    notes.update_one({"_id": uuid.UUID(record)}, {"$set": {"n": 2}})
    changed(a, record, {"n": 2})
    assert state(a)["watch"] == "stream"
    # With images again: a removal is known for what it was.
    notes.delete_one({"_id": uuid.UUID(record)})
    eventually(lambda: a.rows("record", "list", "lab", "notes"), lambda rows: rows == [])


def test_the_place_in_the_stream_is_stored_though_nothing_of_ours_changes(net, mongod):
    """Else the server forgets it, and all documents have to be looked at."""
    a = begin(net, mongod)
    put(a, "n=1")
    watching(a)
    before = a.json("status")["store"]["commits"]
    eventually(lambda: a.json("status")["store"]["commits"], lambda commits: commits > before)


def test_without_a_stream_it_is_noticed_when_it_is_read_and_by_looking(net, standalone):
    a = begin(net, standalone)
    record, other, third = put(a, "n=1"), put(a, "n=2"), put(a, "n=3")
    watching(a)
    assert state(a)["watch"] == "scan"
    notes = collection(standalone.client, "records", "notes")
    notes.update_one({"_id": uuid.UUID(record)}, {"$set": {"n": 10}})
    eventually(lambda: get(a, record), lambda fields: fields == {"n": 10})
    # A write of the node reads the record first: the other program's field is not lost.
    notes.update_one({"_id": uuid.UUID(other)}, {"$set": {"by": "another"}})
    put(a, "m=1", record=other)
    changed(a, other, {"n": 2, "m": 1, "by": "another"})
    # What nobody reads is found by the next start's look at all documents.
    a.stop()
    notes.update_one({"_id": uuid.UUID(third)}, {"$set": {"n": 30}})
    a.start("--store", standalone.uri("records"))
    eventually(lambda: shown(standalone.client, "records", "notes")[third], lambda f: f == {"n": 30})
    eventually(lambda: state(a)["imported"], lambda count: count == 1)
    assert get(a, third) == {"n": 30}


def test_a_field_that_the_node_wrote_later_stays_and_the_others_are_taken(net, mongod):
    """The other program changes fields while the node writes: each field has the value of one of them,
    and what only one of them wrote is never lost."""
    a = begin(net, mongod)
    record = put(a, "mine=0", "theirs=0")
    watching(a)
    notes = collection(mongod.client, "records", "notes")
    for n in range(1, 21):
        notes.update_one({"_id": uuid.UUID(record)}, {"$set": {"theirs": n}})
        put(a, f"mine={n}", record=record)
        changed(a, record, {"mine": n, "theirs": n})


def test_a_late_bulk_of_a_dead_process_does_not_bring_a_removed_record_back(net, mongod, standalone):
    for server in (mongod, standalone):
        a = begin(net, server, name=f"node{server.port}")
        record = put(a, "n=1")
        notes = collection(server.client, "records", "notes")
        late = notes.find_one({"_id": uuid.UUID(record)})
        a.call("record", "delete", "lab", "notes", record)
        a.stop()
        a.start("--store", server.uri("records"))
        watching(a)
        # An upsert that the first process had on its way: its guard finds no document.
        notes.insert_one(late)
        assert a.rows("record", "list", "lab", "notes") == []
        eventually(lambda: documents(server.client, "records", "notes"), lambda found: found == {})
        assert state(a)["late"] >= 1
        a.stop()


def test_a_removal_that_cannot_be_undone_for_the_node_is_told_and_holds_up_no_read(net, mongod):
    a = begin(net, mongod)
    record, other = put(a, "n=1"), put(a, "n=2")
    watching(a)
    notes = collection(mongod.client, "records", "notes")
    mongod.client.records.command("collMod", notes.name, validator={"n": {"$gt": 10}})
    notes.delete_one({"_id": uuid.UUID(record)})
    eventually(lambda: state(a), lambda s: s["lost"] == 1 and s["under_way"] == 0)
    assert get(a, other) == {"n": 2}


def test_a_database_that_is_never_still_neither_holds_up_a_stop_nor_the_place(net, mongod):
    busy = mongod.client.records.busy
    busy.insert_many([{"_id": n} for n in range(4000)])
    a = begin(net, mongod)
    put(a, "n=1")
    watching(a)
    begun, over = threading.Event(), threading.Event()

    def remove():
        for n in range(4000):
            busy.delete_one({"_id": n})
            if n == 100:
                begun.set()
            if over.wait(0.02):  # longer in all than a stop is waited for
                return

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        assert begun.wait(HANGS_S)
        a.stop()
    finally:
        over.set()
        remover.join()
