#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a failing run of each planted bug, shrinks it, and says how small and how fast.

    tests/shrink.py                     all bugs, the table on standard output
    tests/shrink.py --smoke             a few bugs: for ctest
    tests/shrink.py --bug NAME          one bug only
    tests/shrink.py --out DIR           keep the minimal schedules there, without their hashes

A schedule is 1-minimal when without any one of its lines of rounds it does not fail by that check.
Exit: 0 all found, shrunk, equal when played again; 1 some not; 2 usage.
"""

import argparse
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMOKE = ["acked-when-executed", "delete-leaves-tree"]


def run(program, *words):
    """Exit code is in the verdict: the last line of what was printed."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout.strip().splitlines()[-1]), done


def bugs():
    text = (ROOT / "sim" / "mutants.def").read_text()
    return re.findall(r'^X\(\w+,\s*"([^"]*)"', text, re.MULTILINE)


def without(text, number):
    """The schedule without one line and without what its run had come to."""
    lines = text.splitlines()
    return "\n".join(line for i, line in enumerate(lines)
                     if i != number and not line.startswith("hash ")) + "\n"


def is_minimal(program, text, check, folder):
    """Every line of a round is needed."""
    for number, line in enumerate(text.splitlines()):
        if not line.startswith("  "):
            continue
        path = folder / "smaller.sched"
        path.write_text(without(text, number))
        verdict, _ = run(program, "replay", str(path))
        if verdict["check"] == check:
            return False
    return True


def used():
    """Processor time of all children so far: fair on a busy machine."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Shrunk:
    def __init__(self, program, bug, arguments, folder):
        self.bug = bug
        self.check = self.lines = self.seconds = None
        self.minimal = self.same = False
        self.text = ""
        full, small = folder / f"{bug}.full.sched", folder / f"{bug}.sched"
        for seed in range(1, arguments.seeds + 1):
            verdict, _ = run(program, "run", "--seed", str(seed), "--events", arguments.events,
                             "--mutant", bug, "--schedule", str(full), "--force")
            if verdict["result"] in ("safety", "liveness"):
                break
        else:
            return
        self.check = verdict["check"]
        began = used()
        verdict, _ = run(program, "shrink", str(full), "-o", str(small), "--for", arguments.limit)
        self.seconds = used() - began
        if verdict["check"] != self.check:
            return
        self.text = small.read_text()
        self.lines = len(self.text.splitlines())
        again, _ = run(program, "replay", str(small))
        self.same = again["hash"] == verdict["hash"] and again["check"] == self.check
        self.minimal = is_minimal(program, self.text, self.check, folder)

    def row(self):
        if self.lines is None:
            return f"| `{self.bug}` | not found | | | |"
        return (f"| `{self.bug}` | {self.check} | {self.lines} | {self.seconds:.1f} s | "
                f"{'yes' if self.minimal else 'no'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=5, help="seeds tried until one fails")
    parser.add_argument("--events", default="1m")
    parser.add_argument("--limit", default="600s")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.build) / "faberio-sim")
    if arguments.smoke:
        arguments.bug, arguments.events = SMOKE, "200k"
    unknown = set(arguments.bug) - set(bugs())
    if unknown:
        print(f"shrink: no such bug: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    rows = []
    print("| bug | check | lines | processor time | 1-minimal |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for bug in arguments.bug or bugs():
            shrunk = Shrunk(program, bug, arguments, pathlib.Path(folder))
            rows.append(shrunk)
            print(shrunk.row(), flush=True)
            if arguments.out and shrunk.text:
                out = pathlib.Path(arguments.out)
                out.mkdir(parents=True, exist_ok=True)
                (out / f"{bug}.sched").write_text(without(shrunk.text, None))
    found = [row for row in rows if row.lines is not None]
    if found:
        print(f"\n{len(found)} of {len(rows)} bugs; median "
              f"{statistics.median(row.lines for row in found):.0f} lines, "
              f"{statistics.median(row.seconds for row in found):.1f} s; "
              f"{sum(row.minimal for row in found)} are 1-minimal.")
    good = len(found) == len(rows) and all(row.same for row in found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
