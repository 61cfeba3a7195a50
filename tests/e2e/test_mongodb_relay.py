# SPDX-License-Identifier: Apache-2.0
"""What happens to a question or an answer on the way between a node and its MongoDB, at each point of the
protocol: nothing acknowledged is lost, nothing is there twice, and the node goes on by itself."""
import threading
import uuid

import pytest

from mongo_relay import MongoRelay
from mongod import collection, documents, shown
from node import HANGS_S, eventually
from test_mongodb import mongod, state  # noqa: F401
from test_mongodb_outer import changed, put, watching


@pytest.fixture
def relay(mongod):  # noqa: F811
    made = MongoRelay(mongod.port)
    yield made
    made.close()


def begin(net, relay):
    a = net.node("a")
    a.init()
    a.start("--store", relay.uri("records"))
    a.json("space", "create", "lab")
    return a


BREAKS = ("cut", "lose", "nonsense", "short", "twice")
COMMANDS = ("update", "delete", "find", "findAndModify", "getMore", "aggregate", "hello")


def test_whatever_becomes_of_a_question_or_its_answer(net, mongod, relay):  # noqa: F811
    a = begin(net, relay)
    wanted = {}
    gone = put(a, "n=0")
    watching(a)
    for command in COMMANDS:
        for n, action in enumerate(BREAKS):
            relay.plan(command, action)
            record = put(a, f"n={n}")
            wanted[record] = {"n": n}
            assert a.json("record", "get", "lab", "notes", record)["fields"] == {"n": n}
            a.call("record", "delete", "lab", "notes", gone)
            gone = put(a, "n=100")
            if command in ("getMore", "aggregate"):
                # The stream: what breaks there is taken up again.
                collection(mongod.client, "records", "notes").update_one(
                    {"_id": uuid.UUID(record)}, {"$set": {"by": n}})
                wanted[record]["by"] = n
                changed(a, record, wanted[record])
        if command in ("update", "delete", "find"):
            done = [plan for plan in relay.done if plan[0] == command]
            assert done == [(command, action) for action in BREAKS]
    wanted[gone] = {"n": 100}
    eventually(lambda: shown(mongod.client, "records", "notes"), lambda found: found == wanted)
    rows = {row["id"]: row["fields"] for row in a.rows("record", "list", "lab", "notes")}
    assert rows == wanted
    eventually(lambda: state(a), lambda s: s["state"] == "ok" and s["waiting"] == 0)
    # A connection that broke is not kept, and no more are opened than there is use for.
    eventually(lambda: relay.open, lambda count: count <= 8)
    assert a.json("status")["starts"] == 1


def test_a_bulk_that_comes_late_does_not_bring_back_what_was_removed_since(net, mongod, relay):  # noqa: F811
    a = begin(net, relay)
    put(a, "n=0")
    relay.plan("update", "hold")
    record = put(a, "n=1")
    assert relay.done == [("update", "hold")]
    a.call("record", "delete", "lab", "notes", record)
    assert record not in documents(mongod.client, "records", "notes")
    relay.release()
    assert record not in documents(mongod.client, "records", "notes")
    assert a.refused("record", "get", "lab", "notes", record)[0] == 1
    # Nor does one of a process that is dead by then.
    relay2 = MongoRelay(mongod.port)
    a.stop()
    a.start("--store", relay2.uri("records"))
    relay2.plan("update", "hold")
    other = put(a, "n=2")
    put(a, "n=3", record=other)
    a.kill()
    a.start("--store", relay.uri("records"))
    a.call("record", "delete", "lab", "notes", other)
    relay2.release()
    assert sorted(documents(mongod.client, "records", "notes")) == [
        row["id"] for row in a.rows("record", "list", "lab", "notes")]
    relay2.close()


def test_an_insert_whose_answer_was_lost_is_no_failure(net, mongod, relay):  # noqa: F811
    """D.5 69 and 70: the key is there already when the same document is put once more, or when another
    program was first; neither is a failure, and neither is a second document."""
    a = begin(net, relay)
    put(a, "n=0")
    for action in ("lose", "twice", "lose"):
        relay.plan("update", action)
        record = put(a, f'n="{action}"')
        assert shown(mongod.client, "records", "notes")[record] == {"n": action}
    assert state(a)["refused"] == 0
    assert len(documents(mongod.client, "records", "notes")) == 4
    assert a.json("status")["starts"] == 1


def test_a_server_that_takes_no_writes_holds_them_up_and_nothing_else(net, mongod, relay):  # noqa: F811
    """Full or read-only: told, waited for, and written once when it takes them again."""
    a = begin(net, relay)
    record = put(a, "n=0")
    for code in (14031, 10107, 11600, 189):  # no room, no primary, shutting down, stepped down
        mongod.fail("alwaysOn", failCommands=["update", "delete", "findAndModify"], errorCode=code)
        refused = []
        writer = threading.Thread(target=lambda: refused.append(put(a, f"n={code}", record=record)))
        writer.start()
        eventually(lambda: state(a), lambda s: s["state"] == "unreachable" and s["error"] != "")
        assert a.json("record", "get", "lab", "notes", record)["fields"]
        assert shown(mongod.client, "records", "notes")[record] != {"n": code}
        mongod.fail("off")
        writer.join(timeout=HANGS_S)
        assert refused == [record]
        assert shown(mongod.client, "records", "notes")[record] == {"n": code}
        eventually(lambda: state(a), lambda s: s["state"] == "ok" and s["waiting"] == 0)
    assert a.json("status")["starts"] == 1


def test_records_of_every_size_are_documents_or_stay_where_they_are(net, mongod, relay):  # noqa: F811
    """D.5 71 and 73: no entry of the local store is in a document, a bulk of large ones is divided, and
    what no document can hold is told and is nobody else's trouble."""
    a = begin(net, relay)
    put(a, "n=0")
    del relay.seen[:]
    big = "x" * 40_000
    lines = "".join(f'{{"fields":{{"n":{n},"big":"{big}"}}}}\n' for n in range(64))
    a.call("record", "import", "lab", "notes", "-", stdin=lines)
    updates = [document for name, document in relay.seen if name == "update"]
    assert sum(len(update["updates"]) for update in updates) == 64
    found = documents(mongod.client, "records", "notes")
    assert sum(one.get("big") == big for one in found.values()) == 64
    assert all(set(one["_faberio"]) == set("vsnthra") for one in found.values())
    assert state(a)["too_large"] == 0


def test_an_answer_that_comes_twice_is_not_that_of_the_next_question(net, mongod, relay):  # noqa: F811
    """The driver takes it for that; what it says does not fit, and the connection is given up."""
    a = begin(net, relay)
    wanted = {put(a, "n=0"): {"n": 0}}
    watching(a)
    for command in ("update", "find", "findAndModify", "getMore"):
        relay.plan(command, "again")
        for n in range(2):
            record = put(a, f"n={n}")
            wanted[record] = {"n": n}
            assert a.json("record", "get", "lab", "notes", record)["fields"] == {"n": n}
    assert {command for command, _ in relay.done} >= {"update", "find", "getMore"}
    eventually(lambda: shown(mongod.client, "records", "notes"), lambda found: found == wanted)
    assert {row["id"]: row["fields"] for row in a.rows("record", "list", "lab", "notes")} == wanted
    assert a.json("status")["starts"] == 1


def test_a_list_under_way_while_the_database_is_dropped_is_whole(net, mongod, relay):  # noqa: F811
    a = begin(net, relay)
    wanted = {put(a, f"n={n}"): {"n": n} for n in range(5)}
    watching(a)
    relay.plan("find", "later")
    listed = []
    reader = threading.Thread(target=lambda: listed.extend(a.rows("record", "list", "lab", "notes")))
    reader.start()
    eventually(lambda: list(relay.done), lambda done: done == [("find", "later")])
    # What is made again does not come into documents before the question does.
    mongod.fail("alwaysOn", failCommands=["update"], errorCode=14031)
    mongod.client.drop_database("records")
    a.lines.until(lambda line: "documents_dropped" in line)
    relay.release()
    reader.join(timeout=HANGS_S)
    assert {row["id"]: row["fields"] for row in listed} == wanted
    mongod.fail("off")
    eventually(lambda: shown(mongod.client, "records", "notes"), lambda found: found == wanted)


def test_a_slow_answer_is_waited_for(net, mongod, relay):  # noqa: F811
    a = begin(net, relay)
    put(a, "n=0")
    mongod.fail({"times": 4}, blockConnection=True, blockTimeMS=400, failCommands=["update", "find"])
    records = [put(a, f"n={n}") for n in range(3)]
    assert set(records) <= set(documents(mongod.client, "records", "notes"))
    assert state(a)["retries"] == 0


def test_what_a_node_asks_of_its_server(net, mongod, relay):  # noqa: F811
    """One bulk for each collection of a write set, majority and journal; reads of what a majority has; no
    filter holds anything but ids and our own numbers, whatever names and values look like."""
    a = begin(net, relay)
    put(a, "n=0")
    watching(a)
    del relay.seen[:]
    lines = "".join(f'{{"fields":{{"n":{n},"$where":"1","a.*":{{"$regex":"(a+)+","x":1}}}}}}\n' for n in range(64))
    a.call("record", "import", "lab", "notes", "-", stdin=lines)
    updates = [document for name, document in relay.seen if name == "update"]
    assert len(updates) == 1 and len(updates[0]["updates"]) == 64
    a.json("record", "put", "lab", "notes.*", "new", 'x={"$gt":"","y":1}')
    record = a.json("record", "put", "lab", "$notes", "new", "x=1")["id"]
    a.call("record", "delete", "lab", "$notes", record)
    a.rows("record", "list", "lab", "notes.*")
    for name, document in relay.seen:
        if name in ("update", "delete"):
            assert document["writeConcern"]["w"] == "majority" and document["writeConcern"]["j"] is True
        if name in ("find", "aggregate"):
            assert document["readConcern"]["level"] == "majority"
        filters = [document.get("filter", {})]
        filters += [one["q"] for one in document.get("updates", []) + document.get("deletes", [])]
        for one in filters:
            text = repr(one)
            assert "$regex" not in text and "$where" not in text and set(one) <= {"_id", "_faberio", "_faberio.s"}
    assert len(documents(mongod.client, "records", "notes")) == 65
