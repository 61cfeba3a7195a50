# SPDX-License-Identifier: Apache-2.0
"""A disk that takes no more, a store that was tampered with, a directory that was rolled back."""
import json
import os
import resource
import shutil
import subprocess
import threading

import pytest

from node import BIN, Refused, eventually, pair

COLLECTION = "notes"


def put(node, number):
    return node.json("record", "put", "team", COLLECTION, "new", f"n={number}")["id"]


def ids(node):
    return [r["id"] for r in node.rows("record", "list", "team", COLLECTION)]


def disk(node, limit):
    """Files of the process may grow to `limit` bytes, as on a disk that is full there."""
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def ready(node):
    answer = node.http("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def read_only(node):
    """Waits until it says so; then writes are refused at once and nothing else is."""
    node.lines.until(lambda line: "event=store_read_only" in line)
    assert eventually(lambda: ready(node), lambda r: r[1]["failed"] == ["store_writes"])[0] == 503
    done = subprocess.run([BIN, "status", "--json", "--home", str(node.home)], text=True,
                          capture_output=True, env=node.env, check=False)
    assert done.returncode == 6 and json.loads(done.stdout)["state"] == "read_only"
    code, err = node.refused("record", "put", "team", COLLECTION, "new", "n=9")
    assert code == 75 and "takes no writes" in err


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
    read_only(a)
    assert ids(a) == sorted(written)  # what was acknowledged is read meanwhile
    assert a.json("record", "get", "team", COLLECTION, written[0])["fields"] == {"n": 0}
    written.append(put(b, 5))  # the others go on
    disk(a, resource.RLIM_INFINITY)
    a.lines.until(lambda line: "event=store_writable" in line)
    written.append(put(a, 6))
    for node in (a, b):
        with node.watch("team", "--since", "0") as watch:
            watch.until(written)
    assert ids(a) == ids(b) == sorted(written)
    status = a.json("status")
    assert status["state"] == "running" and status["starts"] > 1
    assert status["store"]["failures"] > 0


def test_a_node_that_cannot_write_at_its_start_is_read(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    written = [put(node, i) for i in range(3)]
    disk(node, 4096)
    assert node.refused("record", "put", "team", COLLECTION, "new", "n=4")[0] == 75
    read_only(node)
    assert ids(node) == sorted(written)
    assert node.stop() == 0  # it does not wait for the disk
    node.start()
    assert ids(node) == sorted(written)


class SmallDisk:
    """A file system of a few megabytes as a node's home; without root, a limit that does the same."""

    def __init__(self, node):
        self.node = node
        self.mounted = os.geteuid() == 0
        self.ballast = node.home / "ballast"

    def __enter__(self):
        self.node.home.mkdir(mode=0o700)
        if self.mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "none",
                            str(self.node.home)], check=True)
        return self

    def __exit__(self, *_):
        if self.node.process is not None:
            self.node.kill()
        if self.mounted:
            subprocess.run(["umount", str(self.node.home)], check=True)

    def fill(self):
        if not self.mounted:
            disk(self.node, 4096)
            return
        with self.ballast.open("wb", buffering=0) as file:
            with pytest.raises(OSError, match="No space left"):
                while True:
                    file.write(b"x" * 4096)

    def make_room(self):
        if not self.mounted:
            disk(self.node, resource.RLIM_INFINITY)
        else:
            self.ballast.unlink()


def test_a_small_disk_that_fills_up(net):
    node = net.node("a")
    with SmallDisk(node) as small:
        node.init()
        node.start()
        node.json("space", "create", "team")
        written = [put(node, 0)]
        small.fill()
        refusal = None
        while refusal is None:  # pages that the database had free take a few more
            try:
                written.append(node.json("record", "put", "team", COLLECTION, "new",
                                         'n=1', f'text="{"t" * 8000}"')["id"])
            except Refused as refused:
                refusal = refused
        assert refusal.code == 75
        read_only(node)
        assert ids(node) == sorted(written)
        code, err = node.refused("record", "delete", "team", COLLECTION, written[0])
        assert code == 75 and "takes no writes" in err
        small.make_room()
        node.lines.until(lambda line: "event=store_writable" in line)
        written.append(put(node, 2))
        assert ids(node) == sorted(written)
        assert ready(node)[0] == 200
        assert node.stop() == 0


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


def test_a_stop_in_the_middle_of_writes(net):
    """SIGTERM while many write: who was answered finds the write, and who was not is told so."""
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    written, refusals, lock = [], [], threading.Lock()

    def write(first):
        for i in range(first, first + 1000):
            try:
                record = put(node, i)
            except Refused as refused:
                with lock:
                    refusals.append(refused.code)
                return
            with lock:
                written.append(record)

    writers = [threading.Thread(target=write, args=(i * 1000,)) for i in range(4)]
    for writer in writers:
        writer.start()
    eventually(lambda: len(written), lambda n: n >= 8)
    assert node.stop() == 0
    for writer in writers:
        writer.join()
    assert len(refusals) == 4 and set(refusals) <= {3, 75}
    node.start()
    assert set(ids(node)) >= set(written)
