# SPDX-License-Identifier: Apache-2.0
"""What members may do, and what a space is called."""
from node import eventually


def joined(net, role):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    a.json("space", "approve", "team", b.id, "--role", role)
    eventually(lambda: b.rows("space", "list")[0]["status"], lambda s: s == "approved")
    return a, b


def role_of(node, of):
    return {m["node_id"]: m["role"] for m in node.json("space", "members", "team")["members"]}[of]


def test_a_reader_may_not_write_until_it_is_a_writer(net):
    a, b = joined(net, "reader")
    code, err = b.refused("record", "put", "team", "notes", "new", "n=1")
    assert code == 4, err
    code, err = b.refused("space", "role", "team", b.id, "writer")
    assert code == 4, err
    said = a.json("space", "role", "team", b.id, "writer")
    assert said["role"] == "writer" and said["node_id"] == b.id
    eventually(lambda: role_of(b, b.id), lambda r: r == "writer")
    made = b.json("record", "put", "team", "notes", "new", "n=1")
    with a.watch("team", "--since", "0") as watch:
        watch.until([made["id"]])


def test_roles_of_nobody_and_roles_that_are_none(net):
    a, b = joined(net, "writer")
    assert a.refused("space", "role", "team", "0" * 32, "admin")[0] == 1
    for wrong in ("owner", "", "Admin"):
        code, err = a.refused("space", "role", "team", b.id, wrong)
        assert code == 2 and "role" in err, err
    assert a.refused("space", "role", "team", b.id[:-1], "admin")[0] == 2
    assert a.refused("space", "role", "team", b.id)[0] == 2
    assert a.refused("space", "role", "nowhere", b.id, "admin")[0] == 1


def test_a_space_is_renamed_at_every_member(net):
    a, b = joined(net, "writer")
    before = a.rows("space", "list")[0]["space_id"]
    code, err = b.refused("space", "rename", "team", "mine")
    assert code == 4, err
    assert a.json("space", "rename", "team", "crew") == {"space_id": before, "name": "crew"}
    eventually(lambda: b.rows("space", "list")[0]["name"], lambda n: n == "crew")
    assert b.rows("space", "list")[0]["space_id"] == before
    b.json("record", "put", "crew", "notes", "new", "n=1")
    assert a.refused("space", "members", "team")[0] == 1
    for node in (a, b):
        node.stop()
        node.start()
        assert node.rows("space", "list")[0]["name"] == "crew"
    for wrong in ("", "a\nb", "x" * 201, before):
        assert a.refused("space", "rename", "crew", wrong)[0] in (2, 5)
