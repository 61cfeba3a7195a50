# SPDX-License-Identifier: Apache-2.0
"""The same on a replica set of one, a replica set of three, a single server, and on whatever deployment
FABERIO_MONGODB names (mongodb://HOST/...)."""
import os
import uuid

import pytest

from mongod import Deployment, Mongod, ReplicaSet, collection, documents, shown
from node import eventually
from test_mongodb import new_id, state, writing
from test_mongodb_outer import changed, put, watching

KINDS = ["one", "three", "standalone"] + (["given"] if os.environ.get("FABERIO_MONGODB") else [])


@pytest.fixture(scope="module", params=KINDS)
def deployment(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "given":
        made = Deployment(os.environ["FABERIO_MONGODB"])
    elif request.param == "three":
        made = ReplicaSet(directory).start()
    else:
        made = Mongod(directory / "mongod", "rs0" if request.param == "one" else None).start()
    made.kind = request.param
    yield made
    made.close()


@pytest.fixture
def place(net, deployment):
    """A node with a database of its own there, and that database's name."""
    name = f"d{uuid.uuid4().hex[:8]}"
    if isinstance(deployment, Deployment):
        name = deployment.database(name)
    a = net.node("a")
    a.init()
    a.start("--store", deployment.uri(name))
    a.json("space", "create", "lab")
    return a, name


def test_records_are_written_read_listed_deleted_and_there_after_a_kill(deployment, place):
    a, name = place
    wanted = {put(a, f"n={n}", f'long="{"x" * 300}"', f"count+={n}"): {"n": n, "long": "x" * 300, "count": n}
              for n in range(10)}
    gone = put(a, "n=10")
    a.call("record", "delete", "lab", "notes", gone)
    assert shown(deployment.client, name, "notes") == wanted
    for _ in range(2):
        rows = {row["id"]: row["fields"] for row in a.rows("record", "list", "lab", "notes")}
        assert rows == wanted
        a.kill()
        a.start("--store", deployment.uri(name))
    assert a.refused("record", "get", "lab", "notes", gone)[0] == 1
    notes = collection(deployment.client, name, "notes")
    assert list(notes.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$n"}}}])) == [{"_id": None, "sum": 45}]


def test_what_other_programs_do_is_taken_up(deployment, place):
    a, name = place
    record = put(a, "n=1", "m=1")
    watching(a)
    if deployment.kind in ("one", "three"):
        eventually(lambda: state(a)["watch"], lambda watch: watch == "stream")
    if deployment.kind == "standalone":
        assert state(a)["watch"] == "scan"
    notes = collection(deployment.client, name, "notes")
    notes.update_one({"_id": uuid.UUID(record)}, {"$set": {"n": 2}})
    changed(a, record, {"n": 2, "m": 1})
    made = new_id()
    notes.insert_one({"_id": uuid.UUID(made), "n": 3})
    changed(a, made, {"n": 3})
    put(a, "m=5", record=made)
    assert shown(deployment.client, name, "notes") == {record: {"n": 2, "m": 1}, made: {"n": 3, "m": 5}}


def test_names_and_values_that_other_layers_trip_over(deployment, place):
    a, name = place
    deep = "[" * 30 + "1" + "]" * 30
    record = put(a, "$set=1", "a.b=2", 'x={"$gt":1,"b.c":{"$oid":"x"}}', f"deep={deep}",
                 "_id=3", "e=1e300", 'text="é\\ud83d\\ude00"')
    other = a.json("record", "put", "lab", "a.*", "new", "n=1")["id"]
    assert a.json("record", "get", "lab", "a.*", other)["fields"] == {"n": 1}
    fields = a.json("record", "get", "lab", "notes", record)["fields"]
    assert fields["x"] == {"$gt": 1, "b.c": {"$oid": "x"}}
    document = shown(deployment.client, name, "notes")[record]
    assert document["%24set"] == 1 and document["a%2Eb"] == 2
    assert document["text"] == "é\U0001f600" and document["%5Fid"] == 3
    watching(a)
    a.json("record", "put", "lab", "notes", record, "n=1")
    assert a.json("record", "get", "lab", "notes", record)["fields"] == {**fields, "n": 1}
    assert state(a)["imported"] == 0, "what the node wrote itself is no other program's change"


@pytest.mark.parametrize("deployment", ["three"], indirect=True)
def test_a_primary_that_dies_under_load_costs_no_acknowledged_write(deployment, place):
    a, name = place
    kept = {}
    with writing(a, kept, writers=2):
        for _ in range(2):
            eventually(lambda: len(kept), lambda count, least=len(kept) + 10: count >= least)
            member = deployment.primary()
            member.kill()
            eventually(lambda: len(kept), lambda count, least=len(kept) + 10: count >= least)
            member.start()
    eventually(lambda: state(a)["waiting"], lambda waiting: waiting == 0)
    found = documents(deployment.client, name, "notes")
    assert {k: found[k]["n"] for k in kept} == kept
    rows = {row["id"]: row["fields"]["n"] for row in a.rows("record", "list", "lab", "notes")}
    assert {k: rows.get(k) for k in kept} == kept and len(rows) == len(found)
    assert a.json("status")["starts"] == 1
    # The stream goes on behind the election.
    watching(a)
    record = next(iter(kept))
    collection(deployment.client, name, "notes").update_one({"_id": uuid.UUID(record)}, {"$set": {"by": 1}})
    eventually(lambda: a.json("record", "get", "lab", "notes", record)["fields"].get("by"),
               lambda by: by == 1)
