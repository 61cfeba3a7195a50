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
    # A name means one space; the one that it has already is its own.
    a.json("space", "create", "other")
    code, err = a.refused("space", "rename", "other", "crew")
    assert code == 5 and "called so here" in err
    assert a.json("space", "rename", "crew", "crew")["name"] == "crew"


def test_a_writer_becomes_a_reader_and_again_a_writer(net):
    a, b = joined(net, "writer")
    first = b.json("record", "put", "team", "notes", "new", "n=1")["id"]
    with a.watch("team", "--since", "0") as watch:
        watch.until([first])
    said = a.json("space", "role", "team", b.id, "reader")
    assert said["role"] == "reader" and said["lost_batches"] == 0 and said["cut_areas"] >= 1
    eventually(lambda: role_of(b, b.id), lambda r: r == "reader")
    assert b.refused("record", "put", "team", "notes", "new", "n=2")[0] == 4
    a.json("space", "role", "team", b.id, "writer")
    eventually(lambda: role_of(b, b.id), lambda r: r == "writer")
    second = b.json("record", "put", "team", "notes", "new", "n=3")["id"]
    with a.watch("team", "--since", "0") as watch:
        watch.until([first, second])


def status_of(node, of):
    return {m["node_id"]: m["status"] for m in node.json("space", "members", "team")["members"]}[of]


def test_a_revoked_member_is_put_out_and_let_in_again(net):
    a, b = joined(net, "writer")
    first = b.json("record", "put", "team", "notes", "new", "n=1")["id"]
    with a.watch("team", "--since", "0") as watch:
        watch.until([first])
    said = a.json("space", "revoke", "team", b.id)
    assert said["status"] == "revoked" and said["lost_batches"] == 0
    assert status_of(a, b.id) == "revoked"
    eventually(lambda: [p for p in a.json("peers")["peers"] if p["state"] == "open"],
               lambda open_links: open_links == [])
    # What it signed before stays.
    assert a.json("record", "get", "team", "notes", first)["fields"] == {"n": 1}
    # And after a restart of either side it is out all the same.
    for node in (a, b):
        node.stop()
        node.start()
    assert status_of(a, b.id) == "revoked"
    assert a.json("space", "revoke", "team", b.id)["status"] == "revoked"


def test_the_last_admin_stays(net):
    a, b = joined(net, "writer")
    for args in (["revoke", "team", a.id], ["role", "team", a.id, "reader"], ["leave", "team"]):
        code, err = a.refused("space", *args)
        assert code == 5 and "last admin" in err, err
    code, err = b.refused("space", "revoke", "team", a.id)
    assert code == 4, err


def test_a_member_leaves(net):
    a, b = joined(net, "writer")
    first = b.json("record", "put", "team", "notes", "new", "n=1")["id"]
    assert b.json("space", "leave", "team")["status"] == "left"
    eventually(lambda: status_of(a, b.id), lambda s: s == "revoked")
    assert b.refused("record", "put", "team", "notes", "new", "n=2")[0] == 4
    assert a.json("record", "get", "team", "notes", first)["fields"] == {"n": 1}


def test_a_member_that_was_put_out_is_let_in_again(net):
    a, b = joined(net, "writer")
    a.json("space", "revoke", "team", b.id)
    eventually(lambda: [p for p in a.json("peers")["peers"] if p["state"] == "open"],
               lambda open_links: open_links == [])
    assert a.json("space", "approve", "team", b.id)["status"] == "approved"
    # b dials again, or is dialled; it learns of both.
    for node in (a, b):
        node.stop()
        node.start()
    eventually(lambda: status_of(b, b.id), lambda s: s == "approved")
    made = b.json("record", "put", "team", "notes", "new", "n=1")
    with a.watch("team", "--since", "0") as watch:
        watch.until([made["id"]])
