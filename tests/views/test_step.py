# SPDX-License-Identifier: Apache-2.0
"""`sim step`: sessions as a tool has them (--json), and one as a person has it."""
import re
import json
import subprocess

import pytest

FAILING = ("--seed", "1", "--mutant", "answered-when-executed")


class Session:
    def __init__(self, program, *arguments):
        self.process = subprocess.Popen([program, "step", *map(str, arguments), "--json"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["command"] == command.split()[0]
        return answer

    def close(self):
        """The closing line of the command contract."""
        self.process.stdin.close()
        last = self.process.stdout.read().splitlines()[-1]
        self.process.stdout.close()
        assert self.process.wait(timeout=60) == 0
        return json.loads(last)


@pytest.fixture
def walk(sim):
    opened = []

    def go(*arguments):
        opened.append(Session(sim.program, *arguments))
        return opened[-1]

    yield go
    for one in opened:
        if not one.process.stdin.closed:
            one.close()


def fields(answer):
    return {one["name"]: one["value"] for one in answer["fields"]}


def test_forwards_and_back_is_the_same_run(walk):
    session = walk("--seed", 5, "--events", 12000)
    hashes = {}
    for step in (10, 700, 701, 5000, 9000):
        here = session(f"to {step}")
        hashes[here["step"]] = here["hash"]
    end = session("continue")
    assert end["over"] and end["result"] == "pass"
    for step in sorted(hashes, reverse=True):
        here = session(f"to {step}")
        assert (here["step"], here["hash"]) == (step, hashes[step])
    again = session("continue")
    assert (again["step"], again["hash"]) == (end["step"], end["hash"])
    verdict = session.close()
    assert verdict["hash"] == end["hash"] and verdict["events"] == end["step"]


def test_every_step_back_goes_back(walk):
    session = walk("--seed", 5, "--events", 3000)
    session("to 2000")
    before = 2001
    for _ in range(40):
        here = session("back")
        assert here["step"] < before
        before = here["step"]
    assert session("forward 3")["step"] >= before + 3
    assert session("back 100000")["step"] == 0
    assert session("forward")["step"] >= 1


def test_the_hash_is_that_of_run(sim, walk):
    run = sim.verdict("run", "--seed", 9, "--events", 5000)
    session = walk("--seed", 9, "--events", 5000)
    assert session("bad")["hash"] == run["hash"]


def test_stops_at_the_violation_and_says_why(walk):
    session = walk(*FAILING)
    bad = session("bad")
    assert bad["over"] and bad["result"] == "safety" and bad["check"] == "durable-before-reply"
    chain = session("cause")["chain"]
    assert chain[0]["step"] == bad["step"] and chain[0]["node"] == "A"
    # What was asked of A came to the disk, and the answer was given there.
    assert [one["event"] for one in chain[:2]] == ["read-done", "request"]
    assert any(note["kind"] == "written" for note in chain[0]["notes"])
    for one, other in zip(chain, chain[1:]):
        assert one["cause"] == other["step"] and other["step"] < one["step"]
    assert not session("back")["over"]


def test_state_of_a_node(walk):
    session = walk("--seed", 2, "--events", 6000)
    session("continue")
    all_fields = fields(session("state A"))
    groups = {name.split("[")[0].split(".")[0] for name in all_fields}
    assert {"machine", "clock", "disk", "connection", "node", "counter", "timer", "store", "link",
            "space", "channel", "floor", "area", "record"} <= groups
    assert all_fields["node.phase"] == "runs"
    assert fields(session("state A link[0]")).keys() < all_fields.keys()
    roots = set()
    for node in "ABCDE":
        here = fields(session(f"state {node} area["))
        roots.add(next(value for name, value in here.items() if name.endswith("].root")))
    assert len(roots) == 1, "they have converged"
    assert "error" in session("state Z")
    assert "error" in session("state A nonsense")


def test_why_names_the_step_that_changed_it(walk):
    session = walk("--seed", 2, "--events", 6000)
    session("to 2500")
    for field in ("store.w_durable", "machine.incarnation", "area[0].own_seq"):
        value = fields(session(f"state A {field}"))[field]
        why = session(f"why A {field}")
        assert why["value"] == value and why["chain"][0]["node"] == "A"
        assert session("where")["step"] == 2500
        # One turn may hold several steps.
        if session(f"to {why['changed']}")["step"] < why["changed"]:
            session("forward")
        assert fields(session(f"state A {field}"))[field] == value
        before = session(f"to {why['changed'] - 1}")
        if before["step"] > 0:
            assert fields(session(f"state A {field}")).get(field) != value
        session("to 2500")


def test_until(walk):
    session = walk("--seed", 2, "--events", 6000)
    here = session("until delivered B")
    assert here["found"]
    moment = session("moment")
    assert moment["node"] == "B"
    assert any(note["kind"] == "delivered" for note in moment["notes"])
    here = session("until C store.w_durable > 20")
    assert here["found"]
    assert int(fields(session("state C store.w_durable"))["store.w_durable"]) > 20
    session("back")
    assert int(fields(session("state C store.w_durable"))["store.w_durable"]) <= 20
    here = session("time 3s")
    assert int(here["time_ns"]) >= 3 * 10**9
    assert not session("until A machine.incarnation = 7")["found"]
    assert "error" in session("until")
    assert "error" in session("until B")


def test_what_would_happen_next_happens(walk):
    session = walk("--seed", 4, "--events", 4000)
    session("to 1500")
    for _ in range(20):
        ahead = session("next 3")["next"]
        assert [int(one["time_ns"]) for one in ahead] == sorted(int(o["time_ns"]) for o in ahead)
        here = session("forward")
        moment = session(f"moment {here['step']}")
        assert int(moment["time_ns"]) >= int(ahead[0]["time_ns"])
        if moment["node"] == ahead[0]["node"]:
            assert moment["time_ns"] == ahead[0]["time_ns"]


def test_branches(walk):
    session = walk("--seed", 2, "--events", 6000)
    session("until sent A")
    here = session("where")
    original = session("forward 200")
    session(f"to {here['step']}")
    on_the_way = session("queue")["on_the_way"]
    assert on_the_way
    assert session("branch drop")["changes"] == 1
    other = session("forward 200")
    assert other["hash"] != original["hash"]
    # It stays changed, also when played again from before.
    assert session("back 100")["changes"] == 1
    session("to 5")
    assert session(f"to {other['step']}")["hash"] == other["hash"]
    assert session("undo")["changes"] == 0
    assert session(f"to {original['step']}")["hash"] == original["hash"]


def test_crash_pause_and_delay_by_hand(walk):
    session = walk("--seed", 2, "--events", 6000)
    session("to 1200")
    session("branch crash B 2s")
    assert fields(session("state B machine.up")) == {"machine.up": "yes"}
    session("forward")
    assert fields(session("state B machine.up")) == {"machine.up": "boots soon"}
    assert session("until started B")["found"]
    assert session("continue")["result"] == "pass"
    session("to 1200")
    session("branch pause C 3s")
    session("forward")
    assert int(fields(session("state C machine.paused_until_ns"))["machine.paused_until_ns"]) > 0
    session("to 1100")
    at = session("until sent B")
    first = session("next 1")["next"][0]
    moved = session("branch delay 5s")
    assert moved["step"] == at["step"]
    assert session("continue")["result"] == "pass"
    assert "error" in session("branch crash Z")
    assert "error" in session("branch nonsense")
    assert "error" in session("branch drop")
    assert first["text"]


def test_a_schedule_is_walked_through_with_its_bug(sim, walk, tmp_path):
    path = tmp_path / "failing.sched"
    sim.run("run", *FAILING, "--schedule", path, code=10)
    bad = walk(path)("bad")
    assert bad["check"] == "durable-before-reply"
    assert walk(path, "--sound")("bad")["result"] == "pass"


def test_bad_lines_are_answered(walk):
    session = walk("--seed", 2, "--events", 3000)
    assert "error" in session("nonsense")
    assert "error" in session("forward x")
    assert "error" in session("to")
    assert "error" in session("time soon")
    assert "error" in session("why A")
    assert "error" in session("why A nothing.like.it")
    assert "error" in session("undo")
    assert session("forward 1 2 3 4 5 6 7 8 9 10 11")["step"] >= 1


def test_on_a_terminal(sim):
    text = sim.run("step", *FAILING, text="bad\nback 1\nshow 3\nwhy A store.w_sealed\nnext\nhelp\n")
    lines = text.splitlines()
    assert any(line.startswith("## safety: durable-before-reply") for line in lines)
    assert any(re.search(r"store\.w_sealed = \d+, since", line) for line in lines)
    assert any("writes r01" in line for line in lines)
    assert json.loads(lines[-1])["seed"] == "1"
    assert all(len(line) <= 130 for line in lines[:-1])
