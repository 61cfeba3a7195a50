#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the simulator with each planted bug and says which check found it, and after how many steps.

    tests/mutants.py                        10 seeds each, the table on standard output
    tests/mutants.py --write                the same into docs/PLANTED-BUGS.md
    tests/mutants.py --smoke                a few bugs, one seed each: for ctest
    tests/mutants.py --bug NAME --seeds 3   one bug only
    tests/mutants.py --only dial --only floor   those whose names have one of these words in them
    tests/mutants.py --scheduled            each has a schedule in tests/scenarios that it makes fail: for ctest
    tests/mutants.py --log FILE --minutes 10    in pieces: every run that is over stands in FILE, and none
                                            of them is made again while the program is the same


A bug is found on a seed when the run fails and the program without it, on the same seed, gets
further and does not fail by that check. Exit: 0 all found, 1 some not, 2 usage, 3 the time is up before
everything was run.
"""

import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "PLANTED-BUGS.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

# Found within few steps, and between them every plane once: 60 seconds are enough for them.
SMOKE = [
    "acked-when-executed", "answered-one-set-early", "stranger-is-served", "sequence-not-kept",
    "future-accepted", "clock-back-unseen", "sealing-spins", "read-must-be-newer",
]


# A run with documents and without a bug.
DOCUMENTS = "(documents)"


class Run:
    """One run of the simulator: what it came to."""

    def __init__(self, result, check, steps):
        self.result, self.check, self.steps = result, check, steps

    def failed(self):
        return self.result in ("safety", "liveness", "crash")


class TimeIsUp(Exception):
    pass


class Runner:
    """Makes runs, and remembers those that a log of the same program and length has."""

    def __init__(self, arguments):
        self.program = str(pathlib.Path(arguments.build) / "faberio-sim")
        self.events = arguments.events
        self.until = time.monotonic() + 60 * arguments.minutes if arguments.minutes else None
        self.log, self.lock, self.known = arguments.log, threading.Lock(), {}
        if self.log is None:
            return
        total = hashlib.sha256()
        for name in ("faberio-sim", "faberio-sim-mutants"):
            total.update((pathlib.Path(arguments.build) / name).read_bytes())
        self.build = total.hexdigest()[:16]
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # the machine stopped in the middle of it
            if entry["build"] == self.build and entry["events"] == self.events:
                self.known[entry["bug"], entry["seed"]] = Run(entry["result"], entry["check"], entry["steps"])

    def run(self, seed, bug=None):
        """bug: None for none, DOCUMENTS for none in a run with documents."""
        if (bug, seed) in self.known:
            return self.known[bug, seed]
        if self.until is not None and time.monotonic() > self.until:
            raise TimeIsUp
        command = [self.program, "run", "--seed", str(seed), "--events", str(self.events)]
        # Only one run of four has documents when nobody asks for them.
        if bug == DOCUMENTS or str(bug).startswith("doc-"):
            command += ["--documents", "A"]
        if bug not in (None, DOCUMENTS):
            command += ["--mutant", bug]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        verdict = json.loads(done.stdout.strip().splitlines()[-1])
        run = Run(verdict["result"], verdict["check"], verdict["events"])
        if run.result == "crash" and run.steps == 0:
            run.steps = crash_steps(done.stderr)
        if self.log is not None:
            entry = {"build": self.build, "events": self.events, "bug": bug, "seed": seed,
                     "result": run.result, "check": run.check, "steps": run.steps}
            with self.lock, self.log.open("a") as out:
                out.write(json.dumps(entry) + "\n")
        return run


def crash_steps(text):
    found = re.search(r"event (\d+)", text)
    return int(found.group(1)) if found else 0


def catalogue():
    """Rows of sim/mutants.def: (name, place, text, check)."""
    text = (ROOT / "sim" / "mutants.def").read_text()
    rows = re.findall(r'^X\(\w+,\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)', text,
                      re.MULTILINE)
    if not rows:
        sys.exit("mutants: no rows in sim/mutants.def")
    return rows


def checks(program):
    """Ids of all checks, in the order of the catalogue."""
    done = subprocess.run([program, "checks"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line and line[0].isalpha()]


# No schedule shows these, and why. Whoever finds one takes the row away.
UNSCHEDULED = {
    "queue-forgotten": "takes a full write set and, in the queue for the next, an operation that reads nothing",
    "fork-never-whole": "takes a life that forks where the caller has a later fork and not what both follow",
}


def scheduled(rows):
    """Bugs without a schedule, and schedules that say of a bug that nothing fails. That each comes to what it
    expects, with its bug and without, is what `faberio-sim test` asks: the test `scenarios`."""
    shown, silent = set(), []
    for path in sorted((ROOT / "tests" / "scenarios").rglob("*.sched")):
        text = path.read_text()
        bug = re.search(r"^bug (\S+)", text, re.MULTILINE)
        if bug is None:
            continue
        if re.search(r"^expect violates \S+", text, re.MULTILINE):
            shown.add(bug.group(1))
        else:
            silent.append(f"{path.relative_to(ROOT)}: {bug.group(1)} is on, and no check is to fail")
    names = {row[0] for row in rows}
    without = [f"{name}: no schedule shows it" for name in sorted(names - shown - UNSCHEDULED.keys())]
    excused = [f"{name}: is excused, and has a schedule or is gone"
               for name in UNSCHEDULED if name in shown or name not in names]
    return without + excused + silent


def steps_text(steps):
    if steps == math.inf:
        return "-"
    return f"{steps / 1000000:.1f} M" if steps >= 1000000 else f"{steps / 1000:.1f} k"


class Bug:
    def __init__(self, row):
        self.name, self.place, self.text, self.check = row
        self.runs = []
        self.found = []

    def run(self, pool, runner, healthy):
        if self.name.startswith("doc-"):
            healthy = {seed: runner.run(seed, DOCUMENTS) for seed in healthy}
        runs = [pool.submit(runner.run, seed, self.name) for seed in healthy]
        for sound, job in zip(healthy.values(), runs):
            run = job.result()
            self.runs.append(run)
            further = sound.result == "pass" or sound.steps > run.steps
            if run.failed() and further and sound.check != run.check:
                self.found.append(run)

    def median(self):
        """Of all seeds; one that did not find it counts as infinitely many steps."""
        steps = [run.steps if run in self.found else math.inf for run in self.runs]
        return statistics.median(steps)

    def by_check(self):
        names = [run.check for run in self.found]
        order = sorted(set(names), key=lambda name: (name != self.check, name))
        return ", ".join(f"{name} {names.count(name)}" for name in order)

    def line(self):
        steps = [run.steps for run in self.found]
        least, most = (steps_text(min(steps)), steps_text(max(steps))) if steps else ("-", "-")
        return (f"| `{self.name}` | {self.text} | {len(self.found)}/{len(self.runs)} "
                f"| {steps_text(self.median())} | {least} | {most} | {self.by_check()} |")


def report(bugs, healthy, program_checks, arguments):
    seeds = len(healthy)
    lines = ["| bug | what is wrong | seeds | median | least | most | checks |",
             "|---|---|---|---|---|---|---|"]
    lines += [bug.line() for bug in bugs]
    medians = [bug.median() for bug in bugs]
    fired = {run.check for bug in bugs for run in bug.found}
    silent = [check for check in program_checks if check not in fired]
    overall = statistics.median(medians)
    lines.append("")
    lines.append(f"{len(bugs)} bugs, seeds 1 to {seeds}, at most {arguments.events} steps; median "
                 f"over bugs of their median seed: "
                 f"{steps_text(overall)} steps. Found on every seed: "
                 f"{sum(len(bug.found) == len(bug.runs) for bug in bugs)}.")
    lines.append("")
    lines.append("Without a bug: " +
                 "; ".join(f"seed {seed} {run.check or run.result} at {steps_text(run.steps)}"
                           for seed, run in healthy.items()) + ".")
    lines.append("")
    lines.append("Checks that none of these made fail: " +
                 (", ".join(f"`{check}`" for check in silent) or "none") + ".")
    return lines


def write(lines):
    text = DOCUMENT.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    DOCUMENT.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + tail)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--seeds", type=int, default=10, help="seeds 1 to N")
    parser.add_argument("--events", default="1m")
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--only", action="append", default=[], help="a word in the names of bugs")
    parser.add_argument("--log", type=pathlib.Path, help="where runs that are over are kept")
    parser.add_argument("--minutes", type=float, default=0, help="no run begins after so many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--scheduled", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.seeds, arguments.bug, arguments.events = 1, SMOKE, "100k"
    rows = catalogue()
    if arguments.scheduled:
        wrong = scheduled(rows)
        print("\n".join([*wrong, f"{len(rows)} planted bugs, {len(wrong)} findings"]))
        return 1 if wrong else 0
    runner = Runner(arguments)
    unknown = set(arguments.bug) - {row[0] for row in rows}
    unknown |= {word for word in arguments.only if not any(word in row[0] for row in rows)}
    if unknown:
        print(f"mutants: no such bug: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = set(arguments.bug) | {row[0] for row in rows for word in arguments.only if word in row[0]}
    if arguments.write and chosen:
        print("mutants: the table has all bugs: --write without --bug and --only", file=sys.stderr)
        return 2
    bugs = [Bug(row) for row in rows if not chosen or row[0] in chosen]
    seeds = range(1, arguments.seeds + 1)
    try:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            sound = {seed: pool.submit(runner.run, seed) for seed in seeds}
            healthy = {seed: job.result() for seed, job in sound.items()}
            for bug in bugs:
                bug.run(pool, runner, healthy)
                print(bug.line(), flush=True)
    except TimeIsUp:
        print("mutants: the time is up: the same command again goes on", file=sys.stderr)
        return 3
    lines = report(bugs, healthy, checks(runner.program), arguments)
    print("\n".join(lines[len(bugs) + 3:]))
    if arguments.write:
        write(lines)
    return 0 if all(len(bug.found) == len(bug.runs) for bug in bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
