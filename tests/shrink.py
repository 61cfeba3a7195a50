#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a failing run of each planted bug, shrinks it, and says how small and how fast.

    tests/shrink.py                     all bugs, the table on standard output
    tests/shrink.py --smoke             a few bugs: for ctest
    tests/shrink.py --bug NAME          one bug only
    tests/shrink.py --out DIR           keep the minimal schedules there, without their hashes
    tests/shrink.py --corpus            nothing is shrunk: the schedules of tests/scenarios/planted as they are

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
        done = subprocess.run([program, "replay", str(path)], capture_output=True, text=True, check=False)
        # Half of a line that goes on in the next one is none.
        said = done.stdout.strip().splitlines()
        if said and json.loads(said[-1])["check"] == check:
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


SERIES = re.compile(r"  (\S+) (\S+) (\w+) r(\d+)(.*?)(?: #(\d+))? times (\d+) every (\S+)(?: over (\d+))?")


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(ms|s)", text).groups()
    return round(float(number) * {"ms": 1, "s": 1000}[unit])


def written_out(line):
    """The operations of a series, a line each."""
    found = SERIES.fullmatch(line)
    if found is None:
        return [line]
    at, node, verb, record, rest, number, times, every, over = found.groups()
    lines = []
    for k in range(int(times)):
        key = "" if number is None else f" #{int(number) + k}"
        of = int(record) + (k % int(over) if over else 0)
        lines.append(f"  {milliseconds(at) + k * milliseconds(every)}ms {node} {verb} r{of}{rest}{key}")
    return lines


def series_is_found_again(program, folder):
    """Of a schedule whose series stand there one operation a line the shrinker makes one as short."""
    text = (ROOT / "tests" / "scenarios" / "planted" / "shared-nibbles-hashed.sched").read_text()
    lines = [one for line in text.splitlines() for one in written_out(line)]
    out, small = folder / "out.sched", folder / "small.sched"
    out.write_text("\n".join(lines) + "\n")
    verdict, _ = run(program, "shrink", str(out), "-o", str(small))
    again, before = said(small.read_text()), said(text)
    print(f"\n{len(lines)} lines of series written out: {len(again)} are left, {len(before)} stand in the corpus")
    good = len(lines) > 40 and len(again) <= len(before) + 1
    return good and verdict["check"] == "tree-recomputed" and any(" times " in line for line in again)


def said(text):
    """Lines that say something: no comment, nothing empty."""
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def corpus(program):
    """Lines of each planted schedule, and whether each of its lines of rounds is needed."""
    sizes, minimal, silent = [], 0, 0
    print("| schedule | lines | 1-minimal |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((ROOT / "tests" / "scenarios" / "planted").glob("*.sched")):
            lines = said(path.read_text())
            expected = re.search(r"^expect violates (\S+)", "\n".join(lines), re.MULTILINE)
            if expected is None:
                continue
            check = expected.group(1)
            played = subprocess.run([program, "replay", str(path)], capture_output=True, text=True, check=False)
            if f'"check":"{check}"' not in played.stdout:
                silent += 1
                print(f"| `{path.stem}` | {len(lines)} | does not fail |")
                continue
            needed = is_minimal(program, "\n".join(lines) + "\n", check, pathlib.Path(folder))
            sizes.append(len(lines))
            minimal += needed
            print(f"| `{path.stem}` | {len(lines)} | {'yes' if needed else 'no'} |", flush=True)
    print(f"\n{len(sizes)} schedules: median {statistics.median(sizes):.0f} lines, at most {max(sizes)}; "
          f"{minimal} are 1-minimal.")
    return 1 if silent else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=5, help="seeds tried until one fails")
    parser.add_argument("--events", default="1m")
    parser.add_argument("--limit", default="600s")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--corpus", action="store_true")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.build) / "faberio-sim")
    if arguments.corpus:
        return corpus(program)
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
    if arguments.smoke:
        with tempfile.TemporaryDirectory() as folder:
            good = series_is_found_again(program, pathlib.Path(folder)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
