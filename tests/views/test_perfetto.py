# SPDX-License-Identifier: Apache-2.0
"""`sim view --perfetto` against the rules of the Trace Event Format: what each phase has to carry,
that slices of a thread nest, that flows begin before they end inside of slices, and that
asynchronous slices end as often as they begin."""
import collections
import json

import pytest

COMMON = {"ph", "name", "pid", "tid"}
# Members by phase, beyond the common ones.
NEEDS = {
    "X": {"ts", "dur", "cat"},
    "s": {"ts", "id", "cat"},
    "f": {"ts", "id", "cat", "bp"},
    "b": {"ts", "id", "cat"},
    "e": {"ts", "id", "cat"},
    "i": {"ts", "s", "cat"},
    "M": {"args"},
}
METADATA = {"process_name", "thread_name"}


def check(document):
    """Every rule; returns the number of events by phase."""
    assert document["displayTimeUnit"] in ("ms", "ns")
    phases = collections.Counter()
    named = set()
    slices = collections.defaultdict(list)
    starts, ends = {}, {}
    opened = collections.Counter()
    for event in document["traceEvents"]:
        phase = event["ph"]
        phases[phase] += 1
        assert COMMON | NEEDS[phase] <= event.keys(), event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        thread = (event["pid"], event["tid"])
        if phase == "M":
            assert event["name"] in METADATA and isinstance(event["args"]["name"], str)
            named.add(thread if event["name"] == "thread_name" else event["pid"])
            continue
        assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0
        assert event["pid"] in named
        if phase == "X":
            assert event["dur"] > 0
            slices[thread].append((round(event["ts"] * 1000), round(event["dur"] * 1000)))
        elif phase == "s":
            assert event["id"] not in starts
            starts[event["id"]] = event
        elif phase == "f":
            assert event["id"] not in ends and event["bp"] == "e"
            ends[event["id"]] = event
        elif phase == "b":
            opened[(event["cat"], event["id"], event["name"])] += 1
        elif phase == "e":
            opened[(event["cat"], event["id"], event["name"])] -= 1
            assert opened[(event["cat"], event["id"], event["name"])] >= 0
        elif phase == "i":
            assert event["s"] in ("g", "p", "t")
    assert not any(opened.values())
    for thread, of_thread in slices.items():
        assert thread in named
        last = -1
        for at, length in of_thread:
            assert at >= last, "slices of a thread follow one another"
            last = at + length
    assert starts.keys() == ends.keys()
    begins = {thread: {at for at, _ in of_thread} for thread, of_thread in slices.items()}
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"]
        assert (start["cat"], start["name"]) == (end["cat"], end["name"])
        for one in (start, end):
            assert round(one["ts"] * 1000) in begins[(one["pid"], one["tid"])], one
    return phases


@pytest.mark.parametrize("seed, flags", [
    (7, ()), (3, ("--profile", "dense")), (5, ("--nodes", "9")), (2, ("--from", "2000"))])
def test_follows_the_format(sim, tmp_path, seed, flags):
    path = tmp_path / "trace.json"
    verdict = sim.verdict("view", "--seed", seed, "--events", 16000, *flags, "--perfetto", path)
    phases = check(json.loads(path.read_text()))
    assert phases["X"] >= verdict["events"] - 2000
    assert phases["s"] > 1000 and phases["i"] > 3
    if seed == 7:
        assert phases["b"] > 0


def test_a_picture_changes_nothing_of_the_run(sim, tmp_path):
    run = sim.verdict("run", "--seed", 11, "--events", 20000)
    view = sim.verdict("view", "--seed", 11, "--events", 20000, "--perfetto", tmp_path / "t.json")
    assert (run["hash"], run["events"]) == (view["hash"], view["events"])
