# SPDX-License-Identifier: Apache-2.0
"""`sim diff`: it names the first step in which two runs part, and the byte."""
import json
import subprocess

import pytest

PARTED = 13


def diff(sim, *words, code=PARTED, program=None):
    done = subprocess.run([program or sim.program, "diff", *map(str, words)], capture_output=True,
                          text=True, timeout=240)
    assert done.returncode == code, done.stderr + done.stdout
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]), lines


def test_equal_runs(sim):
    verdict, lines = diff(sim, "5", "5", "--events", 70000, code=0)
    assert verdict["result"] == "pass" and verdict["equal_to"] >= 70000
    assert lines[0].startswith("equal: ")


def test_two_seeds_part_at_once(sim):
    verdict, _ = diff(sim, "5", "6", "--events", 1000)
    assert verdict["step"] == 1 and verdict["event"] == "start"


def test_the_step_that_is_named_is_the_first_that_differs(sim):
    good = "--seed 9 --events 3000"
    bad = good + " --mutant answered-when-executed"
    step = diff(sim, good, bad)[0]["step"]
    assert step > 50
    runs = [sim.run("view", *flags.split(), "--to", step, "--last", 40, "--text", "--steps")
            for flags in (good, bad)]
    told = [[line.split(None, 2) for line in run.splitlines() if line[:8].strip().isdigit()]
            for run in runs]
    # The views agree up to the step before, too.
    before = [[line for line in run if int(line[0]) < step] for run in told]
    assert before[0] and before[0] == before[1]


def test_what_is_equal_is_not_looked_at_twice(sim):
    """The first run is healed early after 66,500 steps, with a checkpoint before; the second goes on."""
    verdict, lines = diff(sim, "--events 76000", "--events 100000", "--seed", 7)
    assert lines[0].startswith("equal up to step 65536; ")
    assert verdict["equal_to"] > 66000


def test_flags_may_differ(sim):
    verdict, _ = diff(sim, "--seed 7 --nodes 5", "--seed 7 --nodes 6", "--events", 2000)
    assert verdict["result"] == "nondeterminism"


def test_two_programs(sim, tmp_path):
    copy = tmp_path / "other-build"
    copy.write_bytes(sim.program.read_bytes())
    copy.chmod(0o755)
    verdict, _ = diff(sim, sim.program, copy, "--seed", 3, "--events", 20000, code=0)
    assert verdict["result"] == "pass"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_builds_agree_at_every_checkpoint(sim, seed):
    """Two flavours of the build, with and without planted bugs, each with its own fill of memory."""
    sides = [f"{sim.program.with_name(name)} --poison {byte}"
             for name, byte in (("faberio-sim", 90), ("faberio-sim-mutants", 165))]
    verdict, _ = diff(sim, *sides, "--seed", seed, "--events", 140000, code=0)
    assert verdict["result"] == "pass" and verdict["equal_to"] >= 140000


def test_two_schedules(sim, tmp_path):
    path = tmp_path / "a.sched"
    sim.run("run", "--seed", 1, "--mutant", "answered-when-executed", "--schedule", path, code=10)
    verdict, _ = diff(sim, path, path, code=0)
    assert verdict["events"] > 1000
    verdict, _ = diff(sim, path, f"{path} --sound")
    assert verdict["result"] == "nondeterminism"


@pytest.mark.parametrize("seed", [1, 7])
def test_nothing_reads_what_nobody_wrote(sim, seed):
    """Memory that may not be read before it is written is filled with two different bytes."""
    verdict, _ = diff(sim, "--poison 90", "--poison 165", "--seed", seed, "--events", 20000, code=0)
    assert verdict["result"] == "pass"


def test_a_byte_that_nobody_wrote_is_found(sim):
    """The toy has such a defect; without it the same comparison is silent."""
    toys = sim.program.with_name("faberio-sim-toys")
    words = ("--poison 90", "--poison 165", "--events", 3000)
    diff(sim, *words, code=0, program=toys)
    verdict, _ = diff(sim, *words, "--mutant", "reads-unwritten", program=toys)
    assert "(send), byte" in verdict["what"] and verdict["a"] != verdict["b"]
    # Without poison nothing shows it.
    diff(sim, "3", "3", "--mutant", "reads-unwritten", "--events", 3000, code=0, program=toys)


def test_what_cannot_run_is_a_usage_error(sim):
    assert subprocess.run([sim.program, "diff", "5"], capture_output=True).returncode == 2
    assert subprocess.run([sim.program, "diff", "--nonsense", "5"],
                          capture_output=True).returncode == 2
