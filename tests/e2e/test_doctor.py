# SPDX-License-Identifier: Apache-2.0
"""doctor: what is wrong here, what helps, and per peer why an item is not there."""
import json
import resource
import subprocess

import pytest

from node import BIN, eventually

COLLECTION = "notes"


def ask(node, *item):
    """The answer, with the exit code that goes with it."""
    done = subprocess.run([BIN, "doctor", *item, "--json", "--home", str(node.home)], text=True,
                          capture_output=True, env=node.env, check=False)
    answer = json.loads(done.stdout)
    assert done.returncode == (6 if answer["status"] == "failed" else 0), done
    for finding in answer["checks"] + answer.get("item", {}).get("peers", []):
        assert finding["status"] in ("ok", "warning", "failed") and finding["detail"]
        assert finding["status"] == "ok" or finding["remedy"]
    return answer


def check(answer, name):
    return [c for c in answer["checks"] if c["check"] == name]


def pair(net):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    return a, b


def test_a_healthy_node(net):
    node = net.node("a")
    node.init()
    node.start()
    answer = ask(node)
    assert answer["status"] == "ok" and "item" not in answer
    assert {c["check"] for c in answer["checks"]} >= {"store", "disk", "descriptors", "listener",
                                                      "clocks"}
    said = node.call("doctor")
    assert "ok       store: reads and writes\n" in said


def test_a_member_in_each_of_its_states(net):
    a, b = pair(net)
    peer = ask(a, "team")["item"]["peers"][0]
    assert peer["node_id"] == b.id and peer["membership"] == "pending"
    assert peer["status"] == "warning" and "approve" in peer["remedy"]
    assert "waits" in check(ask(b), "space")[0]["detail"]
    a.json("space", "approve", "team", b.id)
    # Linked, and it has said under which address it is found.
    linked = eventually(lambda: ask(a, "team")["item"]["peers"][0],
                        lambda p: p.get("linked") and p["address"] == b.listen)
    assert linked["status"] == "ok" and linked["heard_ms_ago"] >= 0
    a.json("peers", "add", b.listen)  # in case that b has not told it yet
    assert b.stop() == 0
    gone = eventually(lambda: ask(a, "team")["item"]["peers"][0], lambda p: not p.get("linked"))
    assert gone["status"] == "failed" and "dialled" in gone["remedy"] and b.listen in gone["detail"]
    assert check(ask(a), "space")[0]["status"] == "warning"
    assert f"failed   {b.id}: no link" in a.call("doctor", "team")
    for peer in a.json("peers")["peers"]:
        a.json("peers", "forget", peer["address"])
    gone = eventually(lambda: ask(a, "team")["item"]["peers"][0], lambda p: "address" not in p)
    assert gone["detail"] == "no link, and no address to dial it at"
    assert "peers add" in gone["remedy"]


def test_a_record_and_where_it_is(net):
    a, b = pair(net)
    a.json("space", "approve", "team", b.id)
    eventually(lambda: b.rows("space", "list")[0]["status"], lambda s: s == "approved")
    record = a.json("record", "put", "team", COLLECTION, "new", "n=1")
    item = f"team/{COLLECTION}/{record['id']}"
    here = ask(a, item)["item"]
    assert here["record"]["here"] and here["record"]["etag"] == record["etag"]
    assert here["record"]["written_by"]["n"][0]["node_id"] == a.id
    there = eventually(lambda: ask(b, item)["item"], lambda i: i["record"]["here"])
    # Nodes that have the same show the same root and the same batches of each writer.
    assert there["root"] == here["root"] and there["has"] == here["has"]
    assert there["area_id"] == here["area_id"] == ask(a, f"team/{here['area_id']}")["item"]["area_id"]
    a.json("record", "delete", "team", COLLECTION, record["id"])
    assert not ask(a, item)["item"]["record"]["here"]
    assert "nothing of this collection" in ask(a, "team/other")["item"]["detail"]


def test_a_full_disk_is_said(net):
    node = net.node("a")
    node.init()
    node.start()
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    assert node.refused("space", "create", "team")[0] == 75
    node.lines.until(lambda line: "event=store_read_only" in line)
    answer = eventually(lambda: ask(node), lambda a: "takes no writes" in
                        check(a, "store")[0]["detail"])
    assert answer["status"] == "failed" and "make room" in check(answer, "store")[0]["remedy"]


def test_an_address_that_nobody_knows(net):
    node = net.node("a")
    node.init()
    node.port = ":0"
    node.start()
    found = check(ask(node), "listener")[0]
    assert found["status"] == "warning" and "advertise" in found["remedy"]


@pytest.mark.parametrize("item, code, named", [
    ("nowhere", 1, "nowhere"), ("", 2, "argument 1 is empty"), ("/", 2, "expected"), ("team/", 2, "expected"),
    ("team//x", 2, "expected"), ("team/notes/x", 2, "UUID"), ("team/notes/x/y", 2, "UUID"),
    ("team/" + "c" * 201, 1, "at most 200"),
])
def test_items_that_are_none(net, item, code, named):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    got, err = node.refused("doctor", item)
    assert got == code and named in err


def http_json(node, method, path, body=""):
    answer = node.http(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                       f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    head, _, text = answer.partition("\r\n\r\n")
    assert " 20" in head.split("\r\n")[0], answer
    return json.loads(text)


def test_more_collections_than_one_answer_holds(net):
    """Their names alone are longer than a reply of the core, and none is left out."""
    a = net.node("a")
    a.init()
    a.start()
    a.json("space", "create", "team")
    record = a.json("record", "put", "team", "first", "new", "n=1")["id"]
    names = [f"{i:03d}" + "x" * 194 for i in range(240)]
    for name in names:
        http_json(a, "PUT", f"/v1/spaces/team/collections/{name}/records/{record}", '{"n":1}')
    seen, at = [], ""
    while at is not None:
        following = http_json(a, "GET", f"/v1/spaces/team/conflicts{at}")["next"]
        at = None if following is None else "?collection=" + following["collection"]
        seen.append(following["collection"] if following else None)
    assert seen == names[1:] + ["first", None]
    areas = {ask(a, f"team/{name}/{record}")["item"]["area_id"] for name in names[::12]}
    assert len(areas) == len(names[::12])
