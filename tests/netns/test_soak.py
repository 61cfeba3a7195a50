# SPDX-License-Identifier: Apache-2.0
"""Days in short: three recorded nodes that are written to, read, split, killed and watched without end.
What a node holds does not grow with what it did: memory, descriptors, the recording's files; the store
grows with what was written and with nothing else. FABERIO_SOAK_S makes it last so many seconds
(./dev nightly: an hour); without it a fixed number of rounds is made."""
import json
import os
import random
import time
from pathlib import Path

from node import Refused
from test_namespaces import Space

ROUNDS = 12
SOAK_S = float(os.environ.get("FABERIO_SOAK_S", "0"))
RECORDS = 24  # they are written over again and again
MIB = 1 << 20


class Use:
    """What a process has now."""

    def __init__(self, node):
        proc = Path(f"/proc/{node.process.pid}")
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        self.memory = int(status["RssAnon"].split()[0]) * 1024
        self.descriptors = len(list((proc / "fd").iterdir()))
        self.disk = node.json("status")["store"]["used_bytes"]
        self.recording = sum(f.stat().st_size for f in node.home.parent.glob(f"{node.home.name}.rec.*"))

    def __repr__(self):
        return (f"{self.memory / MIB:.1f} MiB of memory, {self.descriptors} descriptors, "
                f"{self.disk / MIB:.1f} MiB of store, {self.recording / MIB:.1f} MiB of recording")


class Days(Space):
    lists = 0  # that were answered

    def start(self, node):
        record = ("--record", node.home.parent / f"{node.home.name}.rec", "--record-max", "16m")
        node.start(*self.net.options(node), *record)

    def read(self, node):
        """A file of the recording that is full ends an incarnation: who asks just then tries again."""
        try:
            node.call("record", "list", "team", "notes", "--limit", "5", "--json")
            self.lists += 1
        except Refused as refused:
            assert refused.code == 75 and "starting" in refused.err, refused

    def listing(self, node):
        """The same: an answer that is like no other, so that it is asked again."""
        try:
            return super().listing(node)
        except Refused as refused:
            assert refused.code == 75 and "starting" in refused.err, refused
            return ""

    def live(self, turn, draw):
        """A round of what a small group does."""
        split = turn % 3 == 1
        if split:
            apart = draw.choice(self.nodes)
            self.net.split([apart], [node for node in self.nodes if node is not apart])
        for n in range(RECORDS // 2):
            node = draw.choice(self.nodes)
            record = self.ids[draw.randrange(RECORDS)]
            assert self.put(node, record, text="x" * draw.randrange(400), turn=turn, n=n) or True
            self.read(node)
        if turn % 4 == 2:
            # c is the one that is killed; a and b are measured.
            self.nodes[2].kill()
            self.start(self.nodes[2])
        self.net.heal()
        self.converged()


def test_nothing_grows_but_what_was_written(net):
    space = Days(net, "abc")
    a, b, _ = space.nodes
    draw = random.Random(3)
    space.ids = []
    for _ in range(RECORDS):
        row = a.json("record", "put", "team", "notes", "new", "text=\"\"")
        space.ids.append(row["id"])
    space.acknowledged = {record: {"text"} for record in space.ids}
    until = time.monotonic() + SOAK_S
    turn, warm = 0, None
    while turn < ROUNDS or time.monotonic() < until:
        space.live(turn, draw)
        turn += 1
        # Tables and pools have their size by then.
        if turn == max(ROUNDS // 3, 4) or (SOAK_S > 0 and turn == 40):
            warm = [Use(node) for node in (a, b)], turn, writes(a)
    (before, then, wrote_then), after = warm, [Use(node) for node in (a, b)]
    said = "\n".join(f"{x} -> {y}" for x, y in zip(before, after))
    print(f"\n{turn} rounds, measured from round {then}\n{said}")
    wrote = writes(a) - wrote_then
    for x, y in zip(before, after):
        assert y.memory <= x.memory * 1.15 + 2 * MIB, said
        assert y.descriptors <= x.descriptors + 2, said
        assert y.recording <= 18 * MIB, said
        # A change of some hundred bytes is kept once as a batch, in its record and in the tree.
        assert y.disk - x.disk <= 2 * MIB + wrote * 8192, said
    assert space.lists > turn * RECORDS // 4
    assert space.judged() > 1000


def writes(node):
    """Changes that this node has: its own and the others'."""
    counters = node.json("status")["counters"]
    return counters["changes_written"] + counters["changes_applied"]
