# SPDX-License-Identifier: Apache-2.0
"""verify --peers: do the members that are linked hold the same?"""
import ctypes
import json
import re
import struct
import subprocess

from node import BIN, eventually, pair

TREE_VERSION, BUCKET = 3, 1


def ask(node):
    """What is said, and the exit code that goes with it."""
    done = subprocess.run([BIN, "verify", "team", "--peers", "--json", "--home", str(node.home)],
                          text=True, capture_output=True, env=node.env, check=False)
    codes = {"same": 0, "behind": 75, "unsure": 75, "differs": 6, "incomplete": 3,
             "unreachable": 3}
    said = json.loads(done.stdout)
    assert done.returncode == codes[said["status"]], done
    return said


def settled(node, status):
    return eventually(lambda: ask(node), lambda said: said["status"] == status)


def three(net):
    nodes = [net.node(name) for name in "abc"]
    for node in nodes:
        node.init()
        node.start()
    nodes[0].json("space", "create", "team")
    for node in nodes[1:]:
        node.json("space", "join", nodes[0].json("space", "invite", "team")["invite"])
        nodes[0].json("space", "approve", "team", node.id)
    for node in nodes[1:]:
        eventually(lambda node=node: node.rows("space", "list")[0]["status"],
                   lambda s: s == "approved")
    return nodes


def put(node, collection, *fields):
    return node.json("record", "put", "team", collection, "new", *fields)


def damage(node, etag):
    """Another fingerprint in the tree of this node for the record with this etag, with a checksum
    that says nothing is wrong; all copies of it that the file has."""
    xxh = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    xxh.restype, xxh.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    data = node.home / "store" / "data.mdb"
    raw, changed = bytearray(data.read_bytes()), 0
    head = struct.pack(">BB", TREE_VERSION, BUCKET)
    for place in re.finditer(re.escape(head) + rb"\x00{7}[\x01-\x08]\x00", bytes(raw)):
        start, items = place.start(), raw[place.end() - 2]
        value = bytes(raw[start:start + 11 + 32 * items])
        if etag not in value:
            continue
        for area in range(1, 16):
            key = b"T" + struct.pack(">I", area) + b"\0"
            seed = xxh(key, len(key), 0)
            if xxh(value, len(value), seed) == struct.unpack(">Q", raw[start - 8:start])[0]:
                break
        else:
            continue
        at = value.index(etag)
        value = value[:at] + bytes([value[at] ^ 1]) + value[at + 1:]
        raw[start - 8:start] = struct.pack(">Q", xxh(value, len(value), seed))
        raw[start:start + len(value)] = value
        changed += 1
    assert changed > 0
    data.write_bytes(raw)


def test_equal_differing_and_gone(net):
    a, b, c = three(net)
    records = [put(a, "notes", f"n={i}") for i in range(3)]
    gone = put(b, "tags", "t=1")["id"]
    eventually(lambda: a.rows("record", "list", "team", "tags"), lambda rows: len(rows) == 1)
    a.json("record", "delete", "team", "tags", gone)
    said = settled(a, "same")
    assert said["damaged"] == 0 and said["records"] == 3
    assert {p["node_id"] for p in said["peers"]} == {b.id, c.id}
    for peer in said["peers"]:
        assert peer["status"] == "same"
        assert sorted(r["collection"] for r in peer["collections"]) == ["notes", "tags"]
        for row in peer["collections"]:
            assert row["status"] == "same" and row["fingerprint"] == row["fingerprint_there"]
    # Nothing is left of what was deleted: the fingerprint is that of nothing.
    tags = [r for r in said["peers"][0]["collections"] if r["collection"] == "tags"]
    assert tags[0]["fingerprint"] == "0" * 32
    # One of them is damaged, in a way that no checksum tells.
    assert b.stop() == 0
    damage(b, bytes.fromhex(records[1]["etag"]))
    b.start()
    said = settled(a, "differs")
    peers = {p["node_id"]: p for p in said["peers"]}
    assert peers[c.id]["status"] == "same" and peers[b.id]["status"] == "differs"
    rows = {r["collection"]: r for r in peers[b.id]["collections"]}
    assert rows["tags"]["status"] == "same"
    assert rows["notes"]["status"] == "differs" and rows["notes"]["all_found"]
    assert rows["notes"]["records_differ"] == 1
    assert rows["notes"]["records"] == [records[1]["id"]]
    code, text = b.refused("verify", "team")
    assert code == 6 and "its fingerprint is not that of its records" in text
    assert a.json("verify", "team")["damaged"] == 0
    # One of them is not there: what was not asked is not the same.
    assert b.stop() == 0
    said = settled(a, "incomplete")
    assert {p["node_id"]: p["status"] for p in said["peers"]} == {c.id: "same",
                                                                  b.id: "unreachable"}
    # Nobody is there any more.
    assert c.stop() == 0
    said = settled(a, "unreachable")
    assert {p["status"] for p in said["peers"]} == {"unreachable"}
    assert a.stop() == 0
    code, _ = a.refused("verify", "team", "--peers")
    assert code == 3


def test_alone_and_without_collections(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    assert ask(node)["peers"] == []
    put(node, "notes", "n=1")
    said = ask(node)
    assert said["status"] == "same" and said["peers"] == []


PLACES = 256  # collections that a node has room for, in all spaces


def fill(node, prefix, count):
    """One record in each of so many collections."""
    body = '{"changes":[{"id":"new","fields":{"n":1}}]}'
    for n in range(count):
        answer = node.http(f"POST /v1/spaces/team/collections/{prefix}{n}/records:batch HTTP/1.1\r\n"
                           "Host: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}")
        assert " 20" in answer.split("\r\n")[0], answer


def missing(said, where):
    return {row["collection"] for row in said["peers"][0]["collections"]
            if row.get("missing") == where}


def test_a_collection_that_has_no_place_here(net):
    """What only the other one has is named, by either of them."""
    a, b = pair(net)
    count = PLACES // 2 + 10
    assert b.stop() == 0
    fill(a, "a", count)
    assert a.stop() == 0
    b.start()
    fill(b, "b", count)
    a.start()
    over = 2 * count - (PLACES - 4)  # both have areas of their own for the space and its reports
    said = eventually(lambda: ask(a), lambda s: 0 < len(missing(s, "here")) <= over + 4)
    assert said["status"] == "behind" and said["peers"][0]["status"] == "behind"
    here = missing(said, "here")
    assert here and all(name.startswith("b") for name in here)
    both = eventually(lambda: (missing(ask(b), "here"), missing(ask(a), "there")),
                      lambda two: two[0] and two[0] == two[1])
    assert all(name.startswith("a") for name in both[0])
    assert a.stop() == 0 and b.stop() == 0
