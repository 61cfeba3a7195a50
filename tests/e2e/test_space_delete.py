# SPDX-License-Identifier: Apache-2.0
"""space delete: what a node has of a space goes from its store, and nothing else does."""
from node import eventually, pair


def put(node, space, collection, *fields):
    return node.json("record", "put", space, collection, "new", *fields)["id"]


def listed(node, space, collection):
    return {row["id"] for row in node.rows("record", "list", space, collection)}


def test_one_that_was_left(net):
    a, b = pair(net)
    long = '"' + 300 * "x" + '"'
    ids = {put(b, "team", "notes", f"n={n}", f"t={long}") for n in range(20)}
    eventually(lambda: listed(a, "team", "notes"), lambda seen: seen == ids)
    b.json("space", "create", "own")
    mine = put(b, "own", "notes", "n=1")
    b.json("app", "create", "editor")
    b.call("app", "allow", "editor", "team")
    b.call("app", "allow", "editor", "own")
    team = a.rows("space", "list")[0]["space_id"]
    code, said = b.refused("space", "delete", "team")
    assert code == 2 and "--yes" in said
    code, said = b.refused("space", "delete", "team", "--yes")
    assert code == 75  # it runs
    assert b.stop() == 0
    code, said = b.refused("space", "delete", "team", "--yes")
    assert code == 5 and "space leave" in said
    code, said = b.refused("space", "delete", "else", "--yes")
    assert code == 1 and "no space else" in said
    b.start()
    b.call("space", "leave", "team")
    assert b.stop() == 0
    before = b.json("verify", "own")
    done = b.json("space", "delete", "team", "--yes")
    assert done["space_id"] == team and done["entries"] > 60
    # Nothing of it is left to be gone.
    code, _ = b.refused("space", "delete", "team", "--yes")
    assert code == 1
    assert b.json("verify", "own") == before
    code, said = b.refused("verify", "team")
    assert code == 1
    b.start()
    assert [row["name"] for row in b.rows("space", "list")] == ["own"]
    assert listed(b, "own", "notes") == {mine}
    # The others have theirs, and the node may come back.
    assert listed(a, "team", "notes") == ids
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    a.json("space", "approve", "team", b.id)
    eventually(lambda: listed(b, "team", "notes"), lambda seen: seen == ids)
    more = put(b, "team", "notes", "n=21")
    eventually(lambda: listed(a, "team", "notes"), lambda seen: seen == ids | {more})
    assert b.json("verify", "team")["damaged"] == 0
    assert b.stop() == 0


def test_one_of_its_own(net):
    node = net.node("a")
    node.init()
    node.start()
    space = node.json("space", "create", "mine")["space_id"]
    put(node, "mine", "notes", "n=1")
    node.json("space", "invite", "mine")
    assert node.stop() == 0
    node.json("space", "delete", space, "--yes")
    node.start()
    assert node.rows("space", "list") == []
    node.json("space", "create", "mine")
    assert listed(node, "mine", "notes") == set()
    assert node.stop() == 0
    # What is kept of the first one, its number, is no space.
    nothing = "00000000-0000-0000-0000-000000000000"
    code, said = node.refused("space", "delete", nothing, "--yes")
    assert code == 1 and "no space" in said


def test_one_that_it_asked_to_join(net):
    """Nobody waits for who only asked; let in afterwards, it asks again and has all of it."""
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    record = put(a, "team", "notes", "n=1")
    assert b.json("space", "join", a.json("space", "invite", "team")["invite"])["status"] == "pending"
    assert b.stop() == 0
    b.json("space", "delete", "team", "--yes")
    b.start()
    assert b.rows("space", "list") == []
    a.json("space", "approve", "team", b.id)
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    eventually(lambda: listed(b, "team", "notes"), lambda seen: seen == {record})


def test_one_that_put_it_out(net):
    a, b = pair(net)
    record = put(a, "team", "notes", "n=1")
    eventually(lambda: listed(b, "team", "notes"), lambda seen: seen == {record})
    assert b.stop() == 0
    a.call("space", "revoke", "team", b.id)
    b.start()
    b.call("space", "leave", "team")
    assert b.stop() == 0
    b.json("space", "delete", "team", "--yes")
    b.start()
    # Nobody speaks to it until it is let in.
    a.json("space", "approve", "team", b.id)
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    eventually(lambda: listed(b, "team", "notes"), lambda seen: seen == {record})
    assert b.json("verify", "team")["damaged"] == 0
