#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the simulator with each planted bug and says which check found it, and after how many steps.

    tests/mutants.py                        10 seeds each, the table on standard output
    tests/mutants.py --write                the same into docs/PLANTED-BUGS.md
    tests/mutants.py --missing --write      only the bugs that have no row there; the other rows stay
    tests/mutants.py --changed --write      only those whose file is another one since their row was made, or whose
                                            row is of fewer seeds
    tests/mutants.py --late --events 1m,4m --write   only those that not every seed found
    tests/mutants.py --smoke                a few bugs, one seed each: for ctest
    tests/mutants.py --bug NAME --seeds 3   one bug only
    tests/mutants.py --only dial --only floor   those whose names have one of these words in them
    tests/mutants.py --scheduled            each has a schedule in tests/scenarios that it makes fail: for ctest
    tests/mutants.py --tabled               each has a row in the table: for ctest
    tests/mutants.py --log FILE --minutes 10    in pieces: every run that is over stands in FILE, and none
                                            of them is made again while the program is the same

A bug is found on a seed when the run fails and the program without it, on the same seed, gets
further and does not fail by that check. --events 200k,1m,4m: a seed on which it is not found in a run of so
many steps is tried with more. Exit: 0 all found, 1 some not, 2 usage, 3 the time is up before
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
            if entry["build"] == self.build:
                self.known[entry["bug"], entry["seed"], entry["events"]] = \
                    Run(entry["result"], entry["check"], entry["steps"])

    def run(self, seed, events, bug=None):
        """bug: None for none, DOCUMENTS for none in a run with documents."""
        if (bug, seed, events) in self.known:
            return self.known[bug, seed, events]
        if self.until is not None and time.monotonic() > self.until:
            raise TimeIsUp
        command = [self.program, "run", "--seed", str(seed), "--events", events]
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
        self.known[bug, seed, events] = run
        if self.log is not None:
            entry = {"build": self.build, "events": events, "bug": bug, "seed": seed,
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


def steps_of(text):
    """What steps_text made a text of."""
    if text == "-":
        return math.inf
    number, unit = text.split()
    return float(number) * {"k": 1000, "M": 1000000}[unit]


def code_of(place):
    """Names the state of the file that a bug is planted in."""
    return hashlib.sha256((ROOT / place).read_bytes()).hexdigest()[:8]


class Bug:
    def __init__(self, row):
        self.name, self.place, self.text, self.check = row
        self.found, self.seeds, self.most = [], 0, None

    def seed(self, runner, seed, rungs):
        """The run that found it, or None, and how many steps were allowed for that."""
        sound = DOCUMENTS if self.name.startswith("doc-") else None
        for events in rungs:
            run = runner.run(seed, events, self.name)
            if not run.failed():
                continue
            healthy = runner.run(seed, events, sound)
            if healthy.check != run.check and (healthy.result == "pass" or healthy.steps > run.steps):
                return run, events
        return None, rungs[-1]

    def run(self, pool, runner, seeds, rungs):
        jobs = [pool.submit(self.seed, runner, seed, rungs) for seed in seeds]
        results = [job.result() for job in jobs]
        self.seeds = len(results)
        self.found = [run for run, _ in results if run is not None]
        self.most = max((events for _, events in results), key=rungs.index)

    def median(self):
        """Of all seeds; one that did not find it counts as infinitely many steps."""
        steps = [run.steps for run in self.found]
        return statistics.median(steps + [math.inf] * (self.seeds - len(steps)))

    def by_check(self):
        names = [run.check for run in self.found]
        order = sorted(set(names), key=lambda name: (name != self.check, name))
        return ", ".join(f"{name} {names.count(name)}" for name in order)

    def line(self):
        steps = [run.steps for run in self.found]
        least, most = (steps_text(min(steps)), steps_text(max(steps))) if steps else ("-", "-")
        return (f"| `{self.name}` | {self.text} | {len(self.found)}/{self.seeds} "
                f"| {steps_text(self.median())} | {least} | {most} | {self.most} | {self.by_check()} "
                f"| {code_of(self.place)} |")


HEAD = ["| bug | what is wrong | seeds | median | least | most | of | checks | code |",
        "|---|---|---|---|---|---|---|---|---|"]


class Row:
    """A line of the table."""

    def __init__(self, line):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        self.line, self.name, self.code = line, cells[0].strip("`"), cells[8]
        self.found, self.seeds = (int(number) for number in cells[2].split("/"))
        self.median = steps_of(cells[3])
        self.checks = {part.rsplit(" ", 1)[0] for part in cells[7].split(", ") if part}


def table():
    """Rows of the document, by the names of their bugs."""
    text = DOCUMENT.read_text().split(BEGIN)[1].split(END)[0]
    rows = [Row(line) for line in text.splitlines() if line.startswith("| `")]
    return {row.name: row for row in rows}


def report(rows, program_checks):
    """The table of these rows, and what they come to."""
    medians = [row.median for row in rows]
    fired = set().union(*(row.checks for row in rows))
    silent = [check for check in program_checks if check not in fired]
    late = [f"`{row.name}`" for row in rows if row.median > 1000000 or row.found < row.seeds]
    return [*HEAD, *(row.line for row in rows), "",
            f"{len(rows)} bugs; median over bugs of their median seed: "
            f"{steps_text(statistics.median(medians))} steps. Found on every seed: "
            f"{sum(row.found == row.seeds for row in rows)}.", "",
            "Not on every seed, or with a median of more than a million steps: "
            + (", ".join(late) or "none") + ".", "",
            "Checks that none of these made fail: "
            + (", ".join(f"`{check}`" for check in silent) or "none") + "."]


def write(lines):
    text = DOCUMENT.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    DOCUMENT.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + tail)


def tabled(rows):
    """Bugs without a row in the table, and rows without a bug."""
    names, there = [row[0] for row in rows], table()
    return ([f"{name}: no row in docs/PLANTED-BUGS.md: tests/mutants.py --bug {name} --write"
             for name in names if name not in there]
            + [f"{name}: has a row, and is no planted bug" for name in there if name not in names])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--seeds", type=int, default=10, help="seeds 1 to N")
    parser.add_argument("--events", default="1m", help="of a run; several: more where less was not enough")
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--only", action="append", default=[], help="a word in the names of bugs")
    parser.add_argument("--missing", action="store_true", help="those without a row")
    parser.add_argument("--changed", action="store_true", help="those whose file has changed since their row")
    parser.add_argument("--late", action="store_true", help="those that not every seed of their row found")
    parser.add_argument("--log", type=pathlib.Path, help="where runs that are over are kept")
    parser.add_argument("--minutes", type=float, default=0, help="no run begins after so many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--scheduled", action="store_true")
    parser.add_argument("--tabled", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.seeds, arguments.bug, arguments.events = 1, SMOKE, "100k"
    rows = catalogue()
    if arguments.scheduled or arguments.tabled:
        wrong = (scheduled(rows) if arguments.scheduled else []) + (tabled(rows) if arguments.tabled else [])
        print("\n".join([*wrong, f"{len(rows)} planted bugs, {len(wrong)} findings"]))
        return 1 if wrong else 0
    unknown = set(arguments.bug) - {row[0] for row in rows}
    unknown |= {word for word in arguments.only if not any(word in row[0] for row in rows)}
    if unknown:
        print(f"mutants: no such bug: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    runner = Runner(arguments)
    there = table()
    chosen = set(arguments.bug) | {row[0] for row in rows for word in arguments.only if word in row[0]}
    if arguments.missing:
        chosen |= {row[0] for row in rows if row[0] not in there}
    if arguments.changed:
        chosen |= {row[0] for row in rows if row[0] in there
                   and (there[row[0]].code != code_of(row[1]) or there[row[0]].seeds < arguments.seeds)}
    if arguments.late:
        chosen |= {name for name, row in there.items() if row.found < row.seeds}
    every = not (arguments.bug or arguments.only or arguments.missing or arguments.changed or arguments.late)
    bugs = [Bug(row) for row in rows if every or row[0] in chosen]
    seeds, rungs, over = range(1, arguments.seeds + 1), arguments.events.split(","), True
    done = []
    try:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for bug in bugs:
                bug.run(pool, runner, seeds, rungs)
                done.append(bug)
                print(bug.line(), flush=True)
    except TimeIsUp:
        print("mutants: the time is up: the same command again goes on", file=sys.stderr)
        over = False
    if done:
        # What was not run keeps its row.
        there |= {bug.name: Row(bug.line()) for bug in done}
        kept = there if arguments.write else {bug.name: there[bug.name] for bug in done}
        lines = report([kept[row[0]] for row in rows if row[0] in kept], checks(runner.program))
        print("\n".join(line for line in lines if not line.startswith("|")))
        if arguments.write:
            write(lines)
    if not over:
        return 3
    return 0 if all(len(bug.found) == bug.seeds for bug in bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
