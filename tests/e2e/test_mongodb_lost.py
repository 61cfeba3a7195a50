# SPDX-License-Identifier: Apache-2.0
"""A node whose directory is lost, with its documents still there: what peers have comes back once, and what
stands in documents of before is not mixed into it."""
import shutil

from mongod import documents, shown
from node import Refused, eventually
from test_mongodb import mongod, state  # noqa: F401
from test_mongodb_outer import put


def rows(node):
    return {row["id"]: row["fields"] for row in node.rows("record", "list", "lab", "notes")}


def join(b, a):
    a.json("space", "join", b.json("space", "invite", "lab")["invite"])
    try:
        b.json("space", "approve", "lab", a.id)
    except Refused:
        pass  # it is a member still


def same(node):
    """It holds what its peers hold."""
    try:
        return node.json("verify", "lab", "--peers")["status"]
    except Refused as refused:
        return refused.code


def test_what_peers_have_comes_back_once(net, mongod):  # noqa: F811
    b, a = net.node("b"), net.node("a")
    b.init()
    b.start()
    b.json("space", "create", "lab")
    a.init()
    a.start("--store", mongod.uri("records"))
    join(b, a)
    eventually(lambda: a.json("status")["spaces"][0]["status"], lambda status: status == "approved")
    fields = ("count+=3", 'tags:+="x"', f'long="{"y" * 4000}"')
    records = [put(a, f"n={n}", *fields) for n in range(6)]
    eventually(lambda: rows(b), lambda now: set(now) == set(records))
    b.stop()
    # What nobody but this node has: a change, and a record.
    put(a, "n=100", "count+=4", record=records[0])
    alone = put(a, "n=5", "count+=3")
    put(a, "m=1", record=records[3])
    a.kill()
    shutil.rmtree(a.home / "store")
    b.start()
    b.call("record", "delete", "lab", "notes", records[1])
    put(b, "n=200", "count+=1", record=records[2])
    left = rows(b)
    a.start("--store", mongod.uri("records"))
    join(b, a)
    eventually(lambda: rows(a), lambda now: now == left)
    assert rows(b) == left
    eventually(lambda: same(b), lambda status: status == "same")
    there = eventually(lambda: shown(mongod.client, "records", "notes"),
                       lambda now: {k: v for k, v in now.items() if k != alone} == left)
    # Where it stands nobody touches it: other programs read it.
    assert there[alone] == {"n": 5, "count": 3}
    assert a.refused("record", "get", "lab", "notes", alone)[0] == 1
    assert state(a)["imported"] == 0
    # It goes on as ever, also behind a start.
    put(a, "count+=1", record=records[2])
    a.stop()
    a.start("--store", mongod.uri("records"))
    left[records[2]]["count"] += 1
    eventually(lambda: rows(b), lambda now: now == left)
    assert rows(a) == left
    assert set(documents(mongod.client, "records", "notes")) == set(left) | {alone}
