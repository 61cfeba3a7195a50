# SPDX-License-Identifier: Apache-2.0
"""Documents that are gone: a dropped collection or database, one that was set back, documents that were
removed without a trace. What the node has of them makes them again, and no read says that they never were."""
import uuid

import pytest

from mongod import Mongod, collection, documents, shown
from node import Refused, eventually
from test_mongodb import begin, mongod, state  # noqa: F401
from test_mongodb_outer import put, standalone, watching  # noqa: F401


def fill(node):
    """Plain and long values, a set, a counter, one that was changed, one that was deleted."""
    records = [put(node, f"n={n}", f'long="{"x" * 3000}{n}"', 'tags:+="red"', "count+=3") for n in range(8)]
    put(node, "n=100", 'tags:+="blue"', "count+=4", record=records[0])
    put(node, f'long="{"y" * 5000}"', record=records[1])
    node.call("record", "delete", "lab", "notes", records.pop())
    other = node.json("record", "put", "lab", "other", "new", "n=1")["id"]
    node.call("record", "put", "lab", "other", other, "n=2")
    return records


def rows(node):
    return {name: node.rows("record", "list", "lab", name) for name in ("notes", "other")}


def documents_of(client, database="records"):
    """What stands there of records, without the numbers of starts."""
    return {name: {key: ({k: v for k, v in one.items() if k != "_faberio"}, one["_faberio"]["r"],
                         one["_faberio"]["a"])
                   for key, one in documents(client, database, name).items()}
            for name in ("notes", "other")}


@pytest.mark.parametrize("what", ["collection", "database"])
def test_what_is_dropped_under_a_running_node_is_made_again(net, mongod, what):  # noqa: F811
    a = begin(net, mongod)
    fill(a)
    watching(a)
    before, there = rows(a), documents_of(mongod.client)
    if what == "database":
        mongod.client.drop_database("records")
    else:
        collection(mongod.client, "records", "notes").drop()
    eventually(lambda: documents_of(mongod.client), lambda now: now == there)
    assert rows(a) == before
    a.lines.until(lambda line: "documents_dropped" in line)
    said = state(a)
    assert said["made_again"] >= len(there["notes"]) and said["not_proven"] == 0 and said["lost"] == 0
    # It goes on as ever: written, watched, and with images of what others change.
    record = put(a, "n=5")
    notes = collection(mongod.client, "records", "notes")
    notes.delete_one({"_id": uuid.UUID(record)})
    eventually(lambda: rows(a), lambda now: now == before)
    assert state(a)["lost"] == 0
    # Also where the node is asked for it before it has heard that somebody removed it.
    for n in range(5):
        record = put(a, f"n={n}")
        notes.delete_one({"_id": uuid.UUID(record)})
        a.rows("record", "list", "lab", "notes")
        try:
            a.call("record", "get", "lab", "notes", record)
        except Refused as refused:
            assert refused.code == 1
    eventually(lambda: rows(a), lambda now: now == before)
    assert a.json("status")["starts"] == 1


@pytest.mark.parametrize("kind", ["rs0", None])
def test_a_database_that_is_dropped_or_set_back_while_the_node_is_away(net, tmp_path, kind):
    server = Mongod(tmp_path / "server", kind).start()
    a = begin(net, server)
    records = fill(a)
    notes = collection(server.client, "records", "notes")
    old = {name: list(server.client.records[name].find())
           for name in server.client.records.list_collection_names()}
    for n in range(3):
        a.stop()
        a.start("--store", server.uri("records"))
        put(a, f"m={n}", record=records[n])
    before, there = rows(a), documents_of(server.client)
    a.stop()
    server.client.drop_database("records")
    a.start("--store", server.uri("records"))
    # Whoever asks before they are there waits for it.
    assert rows(a)["notes"] == before["notes"] or eventually(lambda: rows(a), lambda now: now == before)
    eventually(lambda: documents_of(server.client), lambda now: now == there)
    assert state(a)["not_proven"] == 0
    a.stop()
    # An older state of the database, as from a dump.
    server.client.drop_database("records")
    for name, found in old.items():
        server.client.records[name].insert_many(found)
    a.start("--store", server.uri("records"))
    eventually(lambda: documents_of(server.client), lambda now: now == there)
    eventually(lambda: rows(a), lambda now: now == before)
    assert state(a)["imported"] == 0
    assert notes.count_documents({}) == len(before["notes"])
    server.close()


def test_documents_that_vanish_without_a_trace_come_back_when_they_are_read(net, standalone):  # noqa: F811
    a = begin(net, standalone)
    records = fill(a)
    watching(a)
    before, there = rows(a), shown(standalone.client, "records", "notes")
    collection(standalone.client, "records", "notes").delete_many({})
    for record in records:
        assert a.json("record", "get", "lab", "notes", record) == next(
            row for row in before["notes"] if row["id"] == record)
    # A read is answered as soon as it is known, which may be before its document is there again.
    eventually(lambda: shown(standalone.client, "records", "notes"), lambda now: now == there)
    assert rows(a) == before
    # A write to one that is gone keeps what it had.
    collection(standalone.client, "records", "notes").delete_many({})
    put(a, "more=1", record=records[1])
    assert a.json("record", "get", "lab", "notes", records[1])["fields"] == {
        **there[records[1]], "more": 1}


def test_a_fence_that_was_dropped_is_raised_above_every_start_there_was(net, mongod):  # noqa: F811
    a = begin(net, mongod)
    record = put(a, "n=1")
    fence = mongod.client.records["faberio.fence"]
    # Another process of the node came, and the database is dropped before this one notices.
    fence.update_one({}, {"$inc": {"start": 1}, "$unset": {"by": ""}})
    rival = fence.find_one()["start"]
    mongod.client.drop_database("records")
    eventually(lambda: put(a, "n=2", record=record) and fence.find_one(), lambda now: now is not None)
    assert fence.find_one()["start"] > rival
    eventually(lambda: documents(mongod.client, "records", "notes"), lambda now: now[record]["n"] == 2)
    # Now the other one finds it gone, and raises it as well.
    fence.update_one({}, {"$inc": {"start": 1}, "$unset": {"by": ""}})
    for _ in range(2):
        with pytest.raises(Refused):
            while True:
                put(a, "n=3", record=record)
    eventually(lambda: state(a)["state"], lambda now: now == "taken_over")
