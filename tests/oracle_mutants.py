#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who judges is judged too: a mistake planted in a check must show.

    tests/oracle_mutants.py                 all of sim/checkers/oracle_mutants.def
    tests/oracle_mutants.py --only NAME     one of them
    tests/oracle_mutants.py --smoke         a few: for ctest

Each mistake hides a planted bug: with it the run no longer fails by that bug's check where it failed
before. Or it accuses a sound core: then a run fails that passed. Exit: 0 all caught, 1 some not.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMOKE = ["delivery-unseen", "reply-one-set-early", "same-dot-allowed", "order-reversed",
         "stranger-unknown", "sets-ascend"]


def rows(name, columns):
    text = (ROOT / "sim" / name).read_text()
    string = r',\s*"([^"]*)"'
    return re.findall(r"^X\(\w+" + string * columns + r"\)", text, re.MULTILINE)


def run(program, seed, events, bug):
    command = [program, "run", "--seed", str(seed), "--events", str(events), "--mutant", bug]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    verdict = json.loads(done.stdout.strip().splitlines()[-1])
    return verdict["check"], verdict["events"]


def caught(program, oracle, bug, check, arguments):
    """A sentence how it shows, or None."""
    for seed in range(1, arguments.seeds + 1):
        if bug == "none":
            blamed, steps = run(program, seed, arguments.events, f"none+{oracle}")
            if blamed is not None:
                return f"seed {seed}: accuses a sound core by {blamed} at {steps}"
            continue
        found, steps = run(program, seed, arguments.events, bug)
        if found != check:
            continue
        hidden, later = run(program, seed, arguments.events, f"{bug}+{oracle}")
        if hidden != check or later > steps:
            return (f"seed {seed}: {bug} is found by {check} at {steps}, with it "
                    f"{'not' if hidden is None else f'by {hidden} at {later}'}")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--seeds", type=int, default=10, help="seeds 1 to N are tried")
    parser.add_argument("--events", default="400k")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.build) / "faberio-sim-mutants")
    checks = {name: check for name, _, _, check in rows("mutants.def", 4)}
    oracles = rows("checkers/oracle_mutants.def", 4)
    wanted = set(SMOKE if arguments.smoke else arguments.only)
    if not oracles or wanted - {row[0] for row in oracles}:
        print("oracle_mutants: no such mistake", file=sys.stderr)
        return 2
    missed = 0
    for name, _, _, bug in oracles:
        if wanted and name not in wanted:
            continue
        how = caught(program, name, bug, checks.get(bug), arguments)
        missed += how is None
        print(f"{name:22} {'NOT CAUGHT' if how is None else how}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
