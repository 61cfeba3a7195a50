# SPDX-License-Identifier: Apache-2.0
"""Spaces of three and five real nodes through weather: nothing acknowledged is lost, everybody ends with
the same, and what each node lived through is replayed."""
import json
import os
import random
import subprocess
import threading
from pathlib import Path

import pytest

from node import BIN, HANGS_S, eventually
from wire import continue_process, stop_process

# A program of the commit before, where somebody built one (./dev nightly).
PREVIOUS = os.environ.get("FABERIO_PREVIOUS", BIN)
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


class Space:
    """Nodes that share a space; every one is recorded."""

    def __init__(self, net, names, programs=None):
        self.net = net
        self.nodes = [net.node(name) for name in names]
        self.acknowledged = {}
        self.replayed = 0
        for node, program in zip(self.nodes, programs or [BIN] * len(names)):
            node.init()
            node.program = program
            self.start(node)
        first = self.nodes[0]
        first.json("space", "create", "team")
        invite = first.json("space", "invite", "team", "--uses", str(len(names) - 1))["invite"]
        for node in self.nodes[1:]:
            node.json("space", "join", invite)
            first.json("space", "approve", "team", node.id)
            eventually(lambda node=node: [s["status"] for s in node.rows("space", "list")],
                       lambda status: status == ["approved"])
        for node in self.nodes:
            eventually(lambda node=node: len(node.json("space", "members", "team")["members"]),
                       lambda count: count == len(names))

    def start(self, node):
        record = () if node.program != BIN else ("--record", node.home.parent / f"{node.home.name}.rec")
        node.start(*self.net.options(node), *record)

    def put(self, node, record="new", **fields):
        """True when it was acknowledged: then it is never lost."""
        words = [f"{name}={json.dumps(value)}" for name, value in fields.items()]
        done = subprocess.run([BIN, "record", "put", "team", "notes", record, *words, "--json",
                               "--home", str(node.home)], capture_output=True, text=True,
                              timeout=HANGS_S, env=node.env, check=False)
        # Not running, or the outcome is unknown: nothing is promised.
        assert done.returncode in (0, 3, 75), done.stderr
        if done.returncode == 0:
            row = json.loads(done.stdout)
            self.acknowledged.setdefault(row["id"], set()).update(fields)
        return done.returncode == 0

    def write_all(self, count, tag):
        wrote = 0
        for n in range(count):
            for node in self.nodes:
                if node.process is not None:
                    wrote += self.put(node, who=node.home.name, tag=tag, n=n)
        return wrote

    def listing(self, node):
        return node.call("record", "list", "team", "notes", "--limit", "1000", "--json")

    def converged(self):
        """Everybody has everything that was acknowledged, and the same of all else."""
        def everybody():
            return [self.listing(node) for node in self.nodes]

        def same(lists):
            rows = {json.loads(line)["id"]: json.loads(line) for line in lists[0].splitlines()}
            return len(set(lists)) == 1 and all(
                record in rows and fields <= set(rows[record]["fields"])
                for record, fields in self.acknowledged.items())

        return eventually(everybody, same)[0]

    def judged(self):
        """Every recorded step of every life comes to the same effects and state again, and the
        simulator's checks find nothing in what all of them lived through together."""
        records, keys = [], []
        for node in self.nodes:
            if node.process is not None:
                node.stop()
            record = node.home.parent / f"{node.home.name}.rec"
            if list(record.parent.glob(record.name + ".*")):
                records.append(str(record))
                keys += ["--key", str(node.home / "record.key")]
        for judge in ([], ["--judge"]):
            done = subprocess.run([BIN, "sim", "record", *records, *keys, *judge],
                                  capture_output=True, text=True, timeout=10 * HANGS_S, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        self.replayed = json.loads(done.stdout.splitlines()[-1])["events"]
        return self.replayed


def test_three_through_loss_splits_and_kills(net):
    space = Space(net, "abc")
    a, b, c = space.nodes
    net.weather(loss=0.05, twice=0.05, delay_s=(0.0, 0.01))
    space.write_all(2, "weather")
    net.split([a], [b, c])
    space.write_all(3, "split")
    net.heal()
    net.one_way(b, a)
    space.write_all(2, "one way")
    for turn in range(3):
        writers = [threading.Thread(target=space.put, args=(node,),
                                    kwargs={"tag": "killed", "turn": turn}) for node in (a, c)]
        for writer in writers:
            writer.start()
        c.kill()
        for writer in writers:
            writer.join()
        space.start(c)
    net.heal()
    net.weather(loss=0.02, twice=0.1, delay_s=(0.0, 0.02))
    space.write_all(1, "after")
    rows = space.converged()
    assert len(rows.splitlines()) >= 3 * 8
    assert not net.whole or (net.wire.dropped > 0 and net.wire.doubled > 0)
    assert space.judged() > 1000


def test_five_through_moving_splits(net):
    space = Space(net, "abcde")
    draw = random.Random(5)
    for turn in range(4):
        nodes = draw.sample(space.nodes, 5)
        cut = draw.randint(1, 4)
        net.split(nodes[:cut], nodes[cut:])
        assert space.write_all(1, f"turn {turn}") == 5
        killed = draw.choice(space.nodes)
        killed.kill()
        space.start(killed)
        net.heal()
    net.weather(loss=0.05, delay_s=(0.0, 0.005))
    space.converged()
    assert space.judged() > 1000


def test_a_stopped_process_is_noticed_and_comes_back(net):
    space = Space(net, "ab")
    a, b = space.nodes

    def linked():
        return [peer["state"] for peer in a.json("peers")["peers"]]

    eventually(linked, lambda states: "open" in states)
    stop_process(b)
    # It says nothing for longer than the bound of silence: its link is closed.
    a.lines.until(lambda line: "event=link_closed" in line)
    assert space.put(a, tag="while b slept")
    continue_process(b)
    space.put(b, tag="after it slept")
    space.converged()
    assert space.judged() > 100


def test_clocks_apart(net, tmp_path):
    """Minutes apart within the window, a jump beyond it, and back: nothing is lost, and what was stamped
    in the far future shows when its time is in bound or was written over."""
    assert FAKETIME, "libfaketime is missing: ./dev setup installs it"
    space = Space(net, "abc")
    _, b, c = space.nodes
    for node in space.nodes[1:]:
        node.stop()
        node.clock = tmp_path / f"{node.home.name}.clock"
        node.clock.write_text("+0s")
        node.env = {**node.env, "LD_PRELOAD": str(FAKETIME[0]), "DONT_FAKE_MONOTONIC": "1",
                    "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1",
                    "FAKETIME_TIMESTAMP_FILE": str(node.clock)}
        space.start(node)
    space.write_all(1, "together")
    b.clock.write_text("+120s")
    c.clock.write_text("-150s")
    space.write_all(2, "apart")
    space.converged()
    c.clock.write_text("-3600s")
    space.write_all(1, "an hour behind")
    c.clock.write_text("+0s")
    space.write_all(1, "back")
    space.converged()
    assert space.judged() > 500


def test_a_small_disk_that_fills_up(net, tmp_path):
    if os.geteuid() != 0:
        pytest.fail("mounting a small tmpfs takes root; run this test as root, or leave it out with -k")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)], check=True)
    try:
        a, b = net.node("a"), net.node("disk/b")
        del a, b
        fill_up(net, disk)
    finally:
        for node in net.nodes:
            if node.process is not None:
                node.kill()
        subprocess.run(["umount", str(disk)], check=True)


def asked(node, *words):
    """Exit code and what was said: a node that is starting says to try again."""
    done = subprocess.run([BIN, *words, "--home", str(node.home)], capture_output=True, text=True,
                          timeout=HANGS_S, env=node.env, check=False)
    assert done.returncode in (0, 75), done.stderr
    return done.returncode, done.stdout


def fill_up(net, disk):
    a, b = net.nodes
    for node in (a, b):
        node.init()
        node.start(*net.options(node))
    a.json("space", "create", "team")
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    a.json("space", "approve", "team", b.id)
    eventually(lambda: b.rows("space", "list")[0]["status"], lambda status: status == "approved")
    kept = b.json("record", "put", "team", "notes", "new", "text=\"kept\"")["id"]
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) > 0:
                pass
        except OSError:
            pass
    value = json.dumps("x" * 30000)
    while asked(b, "record", "put", "team", "notes", "new", f"text={value}")[0] == 0:
        pass
    b.lines.until(lambda line: "event=store_read_only" in line)
    eventually(lambda: asked(b, "record", "get", "team", "notes", kept, "--json"),
               lambda answer: answer[0] == 0 and json.loads(answer[1])["fields"] == {"text": "kept"})
    ballast.unlink()
    # It goes on by itself.
    eventually(lambda: asked(b, "record", "put", "team", "notes", "new", "text=\"again\""),
               lambda answer: answer[0] == 0)
    count = len(b.rows("record", "list", "team", "notes", "--limit", "1000"))
    eventually(lambda: len(a.rows("record", "list", "team", "notes", "--limit", "1000")),
               lambda rows: rows == count)


def test_beside_a_node_of_the_commit_before(net):
    """FABERIO_PREVIOUS is its program; without one this is a space of equals."""
    space = Space(net, "ab", [PREVIOUS, BIN])
    a, b = space.nodes
    space.write_all(3, "together")
    a.kill()
    space.write_all(1, "alone")
    space.start(a)
    b.stop()
    space.write_all(1, "the other one")
    space.start(b)
    space.converged()
    assert space.judged() > 100
