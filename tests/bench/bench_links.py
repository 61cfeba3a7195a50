#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What idle links cost: nodes on loopback that all share the same spaces, so that each pair has one link in
each of them (profile 7), until the first node has as many links as wanted. Its anonymous memory is read before
and after, and its wake-ups while nothing is written.

usage: bench_links.py [LINKS]      FABERIO_BIN says where the program is."""
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from node import Net, eventually  # noqa: E402  (the path is set above)

SPACES = 16
QUIET_S = 20


def memory_kib(node):
    for line in Path(f"/proc/{node.process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise AssertionError("no RssAnon")


def switches(node):
    """Wake-ups of all threads so far."""
    count = 0
    for thread in Path(f"/proc/{node.process.pid}/task").iterdir():
        for line in (thread / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                count += int(line.split()[1])
    return count


def bound(node):
    return sum(space["links"] for space in node.rows("space", "list"))


def settled(node):
    """The links of this node, once it is a member everywhere."""
    eventually(lambda: {s["status"] for s in node.rows("space", "list")}, lambda s: s == {"approved"})


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    peers = -(-wanted // SPACES)
    names = [f"s{i}" for i in range(SPACES)]
    with tempfile.TemporaryDirectory() as directory, Net(directory) as net:
        hub = net.node("hub")
        hub.init()
        hub.start()
        for name in names:
            hub.json("space", "create", name)
        before = memory_kib(hub)
        for i in range(peers):
            peer = net.node(f"n{i}")
            peer.init()
            peer.start()
            for name in names:
                peer.json("space", "join", hub.json("space", "invite", name)["invite"])
                hub.json("space", "approve", name, peer.id)
            settled(peer)
        links = eventually(lambda: bound(hub), lambda n: n >= peers * SPACES)
        after = memory_kib(hub)
        woken, at = switches(hub), time.monotonic()
        threading.Event().wait(QUIET_S)
        woken = (switches(hub) - woken) / (time.monotonic() - at)
        idle = memory_kib(hub)
        each = max(after, idle) - before
        print(f"{links} idle links: {before} KiB before, {idle} KiB with them, "
              f"{woken:.1f} wake-ups a second in all threads")
        print(f"ratio: {each / links / 64:.2f} of 64 KiB a link (at most 1.00 is wanted)")


if __name__ == "__main__":
    main()
