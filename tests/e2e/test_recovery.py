# SPDX-License-Identifier: Apache-2.0
"""The recovery key of a space, and a node in the place of one that is lost."""
import json

from node import Refused, eventually


def team(net, *names):
    """The first one makes the space, the others join as writers; what `init` said of the recovery key."""
    nodes = [net.node(name) for name in names]
    keys = [node.init()["recovery_key"] for node in nodes]
    for node in nodes:
        node.start()
    first = nodes[0]
    first.json("space", "create", "team")
    for node in nodes[1:]:
        node.json("space", "join", first.json("space", "invite", "team")["invite"])
        first.json("space", "approve", "team", node.id)
        eventually(lambda node=node: node.rows("space", "list")[0]["status"], lambda s: s == "approved")
    for node in nodes:
        eventually(lambda node=node: len(members(node)), lambda n: n == len(nodes))
    return nodes, keys


def members(node):
    return {m["node_id"]: m for m in node.json("space", "members", "team")["members"]}


def key_file(net, digits):
    path = net.directory / "recovery.key"
    path.write_text(digits + "\n")
    return str(path)


def asked(node, method, path, body=""):
    """The status and the object of one request."""
    answer = node.http(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    head, _, rest = answer.partition("\r\n\r\n")
    return int(head.split()[1]), json.loads(rest)


def revoked(node, member):
    """True when it was put out: a new admin is told to try again until it has said what it holds."""
    try:
        node.json("space", "revoke", "team", member)
    except Refused as refused:
        assert refused.code == 75, refused
        return False
    return True


def test_the_last_admin_is_lost(net):
    (a, b, c), keys = team(net, "a", "b", "c")
    a.kill()
    assert b.refused("space", "approve", "team", c.id)[0] == 4
    said = b.json("space", "recover", "team", b.id, "--recovery-file", key_file(net, keys[0]))
    assert said["role"] == "admin" and said["node_id"] == b.id
    eventually(lambda: members(c)[b.id]["role"], lambda r: r == "admin")
    # It can do what an admin can: put out the one that made the space, and let others in.
    eventually(lambda: revoked(b, a.id), lambda done: done)
    eventually(lambda: members(c)[a.id]["status"], lambda s: s == "revoked")
    assert b.json("space", "role", "team", c.id, "admin")["role"] == "admin"
    eventually(lambda: members(c)[c.id]["role"], lambda r: r == "admin")
    b.stop()
    b.start()
    assert members(b)[b.id]["role"] == "admin"


def test_only_the_recovery_key_of_the_space(net):
    (a, b), keys = team(net, "a", "b")
    code, err = b.refused("space", "recover", "team", b.id, "--recovery-file", key_file(net, keys[1]))
    assert code == 4 and "recovery key" in err, err
    code, err = b.refused("space", "recover", "team", b.id)
    assert code == 2 and "usage: faberio space recover SPACE NODE --recovery-file FILE|-" in err
    # The key itself in the place of a file's name is not said again.
    code, err = b.refused("space", "recover", "team", b.id, "--recovery-file", keys[0])
    assert code == 2 and keys[0] not in err, err
    code, err = b.refused("space", "recover", "team", b.id, "--recovery-file", str(net.directory))
    assert code == 1 and "Is a directory" in err, err
    for wrong in ("", "00", "g" * 64, "0" * 63):
        code, err = b.refused("space", "recover", "team", b.id, "--recovery-file", key_file(net, wrong))
        assert code == 1 and "not a recovery key" in err, err
    mine = key_file(net, keys[0])
    code, err = b.refused("space", "recover", "team", "0" * 32, "--recovery-file", mine)
    assert code == 1 and "no member of this space" in err, err
    assert b.refused("space", "recover", "team", "x", "--recovery-file", mine)[0] == 2
    assert b.refused("space", "recover", "nowhere", b.id, "--recovery-file", mine)[0] == 1
    assert members(b)[b.id]["role"] == "writer"


def test_a_recovery_that_nobody_signed(net):
    (a, b), keys = team(net, "a", "b")
    path = f"/v1/spaces/team/recovery/{b.id}"
    status, told = asked(b, "GET", path)
    assert status == 200 and told["turn"] == 1 and told["number"] == 3
    for body, expected in (({"number": 3, "turn": 1, "signature": "00" * 64}, 403),
                           ({"number": 2, "turn": 1, "signature": "00" * 64}, 400),
                           ({"number": 3, "turn": 0, "signature": "00" * 64}, 400),
                           ({"number": 3, "turn": 1, "signature": "00"}, 400),
                           ({"number": 999, "turn": 1, "signature": "00" * 64}, 400),
                           ({"turn": 1, "signature": "00" * 64}, 400),
                           ({}, 400)):
        status, answer = asked(b, "POST", path, json.dumps(body))
        assert status == expected, (body, status, answer)
    assert members(b)[b.id]["role"] == "writer"


def test_a_new_node_in_the_place_of_a_lost_one(net):
    (a, b), keys = team(net, "a", "b")
    first = b.json("record", "put", "team", "notes", "new", "n=1")["id"]
    with a.watch("team", "--since", "0") as watch:
        watch.until([first])
    b.kill()
    c = net.node("c")
    c.init()
    c.start()
    assert a.refused("space", "replace", "team", b.id, c.id)[0] == 5  # it has not asked
    assert members(a)[b.id]["status"] == "approved"
    c.json("space", "join", a.json("space", "invite", "team")["invite"])
    said = a.json("space", "replace", "team", b.id, c.id)
    assert said["node_id"] == c.id and said["replaces"] == b.id and said["role"] == "writer"
    assert said["lost_batches"] == 0
    now = members(a)
    assert now[b.id]["status"] == "revoked" and now[c.id]["role"] == "writer"
    with c.watch("team", "--since", "0") as watch:
        watch.until([first])  # what the lost one wrote stays
    assert a.refused("space", "replace", "team", b.id, c.id)[0] == 2  # it has no role any more
    assert a.json("space", "replace", "team", b.id, c.id, "--role", "writer")["role"] == "writer"
    # Nobody loses a role by taking another one's place.
    code, err = a.refused("space", "replace", "team", c.id, a.id)
    assert code == 2 and "is a member already, as admin" in err, err
    assert members(a)[a.id]["role"] == "admin"
    assert a.refused("space", "replace", "team", c.id, c.id)[0] == 2
    assert a.refused("space", "replace", "team", "0" * 32, c.id)[0] == 1
