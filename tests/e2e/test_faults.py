# SPDX-License-Identifier: Apache-2.0
"""A disk that takes no more, a store that was tampered with, a directory that was rolled back."""
import resource
import shutil

from node import eventually

COLLECTION = "notes"


def put(node, number):
    return node.json("record", "put", "team", COLLECTION, "new", f"n={number}")["id"]


def ids(node):
    return [r["id"] for r in node.rows("record", "list", "team", COLLECTION)]


def pair(net):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    a.json("space", "approve", "team", b.id)
    eventually(lambda: b.rows("space", "list")[0]["status"], lambda s: s == "approved")
    return a, b


def disk(node, limit):
    """Files of the process may grow to `limit` bytes, as on a disk that is full there."""
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def test_a_full_disk_loses_nothing_acknowledged(net):
    a, b = pair(net)
    written = [put(a, i) for i in range(3)]
    with b.watch("team", "--since", "0") as watch:
        watch.until(written)
    disk(a, 4096)
    code, err = a.refused("record", "put", "team", COLLECTION, "new", "n=4")
    assert code == 75 and "try again" in err
    a.lines.until(lambda line: "event=store_failed" in line)
    a.lines.until(lambda line: "event=incarnation_ended" in line)
    assert a.refused("status")[0] == 6
    written.append(put(b, 5))  # the others go on
    disk(a, resource.RLIM_INFINITY)
    a.lines.until(lambda line: "event=running" in line)
    written.append(put(a, 6))
    for node in (a, b):
        with node.watch("team", "--since", "0") as watch:
            watch.until(written)
    assert ids(a) == ids(b) == sorted(written)
    status = a.json("status")
    assert status["state"] == "running" and status["starts"] > 1
    assert status["store"]["failures"] > 0


def test_a_node_that_cannot_write_at_its_start_waits(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    written = [put(node, i) for i in range(3)]
    disk(node, 4096)
    assert node.refused("record", "put", "team", COLLECTION, "new", "n=4")[0] == 75
    for _ in range(3):  # it tries again by itself, each time under a fresh incarnation
        node.lines.until(lambda line: "event=incarnation_ended" in line)
    assert node.refused("record", "list", "team", COLLECTION)[0] == 75
    assert node.stop() == 0
    node.start()
    assert ids(node) == sorted(written)


def test_a_store_that_was_moved_aside_comes_back_from_the_peers(net):
    a, b = pair(net)
    written = [put(node, i) for i in range(4) for node in (a, b)]
    for node in (a, b):
        with node.watch("team", "--since", "0") as watch:
            watch.until(written)
    assert b.stop() == 0
    shutil.move(b.home / "store", b.home / "store.aside")
    b.start()
    assert b.rows("space", "list") == []
    joined = b.json("space", "join", a.json("space", "invite", "team")["invite"])
    assert joined["status"] in ("approved", "pending")
    with b.watch("team", "--since", "0") as watch:
        watch.until(written)
    assert ids(b) == sorted(written)
    written.append(put(b, 9))
    with a.watch("team", "--since", "0") as watch:
        watch.until(written)
    assert ids(a) == ids(b) == sorted(written)


def test_a_store_that_was_rolled_back_reuses_no_number(net):
    a, b = pair(net)
    written = [put(a, 1)]
    assert a.stop() == 0
    shutil.copytree(a.home / "store", a.home / "store.old")
    a.start()
    written += [put(a, 2), put(b, 3)]
    for node in (a, b):
        with node.watch("team", "--since", "0") as watch:
            watch.until(written)
    assert a.stop() == 0
    shutil.rmtree(a.home / "store")
    shutil.move(a.home / "store.old", a.home / "store")
    a.start()
    written.append(put(a, 4))
    # What a wrote before and no longer knew comes back from b; what it wrote since reaches b.
    for node in (a, b):
        with node.watch("team", "--since", "0") as watch:
            watch.until(written)
    assert ids(a) == ids(b) == sorted(written)


def test_a_flipped_bit_is_found_and_never_shown(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    bad, good = (node.json("record", "put", "team", COLLECTION, "new", f'text="{text}"')["id"]
                 for text in ("ABCDEFGHIJKLMNOP", "unharmed"))
    assert node.stop() == 0
    path = node.home / "store" / "data.mdb"
    content = bytearray(path.read_bytes())
    at = content.find(b"ABCDEFGHIJKLMNOP")
    assert at >= 0
    while at >= 0:
        content[at] ^= 1
        at = content.find(b"ABCDEFGHIJKLMNOP", at)
    path.write_bytes(content)
    node.start()
    code, err = node.refused("record", "get", "team", COLLECTION, bad)
    assert code == 1 and "store" in err
    assert node.json("record", "get", "team", COLLECTION, good)["fields"] == {"text": "unharmed"}
    line = node.lines.until(lambda line: "event=store_failed" in line)
    assert "store_damaged" in line and "checksum" in line
    assert node.json("status")["store"]["damaged"] > 0
