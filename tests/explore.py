#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways to explore, held against plain random on planted bugs: steps until the first failure.

    tests/explore.py                                  the hardest bugs, three trials of each way
    tests/explore.py --bug NAME --trials 5 --ways swarm,pool,priority
    tests/explore.py --states                         abstract states after equal steps, no bug

The first way named is the one that the others are measured by: plain random draws every fault in every
round. Each trial is a hunt of its own in an empty folder with numbers that no other trial has, one job,
no shrinking. A failure that the program without the bug has as well does not count, and the hunt goes
on. One that finds nothing within --runs counts with all its steps, and is said to be more.
Exit: 0, 2 usage.
"""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Those which plain runs take longest to find, by docs/PLANTED-BUGS.md.
HARDEST = [
    "queue-forgotten", "requests-overtake", "cap-tripled", "closed-twice", "never-forgiven",
    "backoff-without-cap", "floor-reset-again", "batch-tail-lost", "dialling-gives-up",
    "seen-behind-a-hole",
]


def last_line(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        sys.exit(f"explore: {' '.join(command)}: {done.stderr.strip() or done.returncode}")


def hunt(arguments, way, trial, bug):
    """What a hunt comes to that ends at the first failure which the program without the bug has not."""
    first = 1000000 * (trial + 1)
    last, steps = first + arguments.runs - 1, 0
    with tempfile.TemporaryDirectory() as folder:
        while True:
            command = [arguments.program, "hunt", "--jobs", "1", "--out", folder, "--explore", way,
                       "--seeds", f"{first}..{last}", "--shrink-for", "0s", "--events", arguments.events]
            if bug is not None:
                command += ["--first", "--mutant", bug]
            result = last_line(command)
            steps += result["events"]
            result["events"] = steps
            if bug is None or result["result"] == "pass":
                return result
            if result["schedule"] is None:
                return result  # a crash of which nothing was written down
            sound = last_line([arguments.program, "replay", "--sound", result["schedule"]])
            if sound["result"] == "pass":
                return result
            pathlib.Path(result["schedule"]).unlink()
            first = int(result["seed"]) + 1
            if first > last:
                return result | {"result": "pass", "check": None}


def text(steps, open_end):
    shown = f"{steps / 1000000:.2f} M" if steps >= 1000000 else f"{steps / 1000:.0f} k"
    return ("> " if open_end else "") + shown


def mean_of(results):
    return statistics.mean(result["events"] for result in results)


def compare(arguments, pool):
    ways = arguments.ways
    jobs = {(bug, way, trial): pool.submit(hunt, arguments, way, trial, bug)
            for bug in arguments.bug for way in ways for trial in range(arguments.trials)}
    print("| bug | " + " | ".join(ways) + " | checks |")
    print("|---|" + "---|" * (len(ways) + 1))
    means = {way: [] for way in ways}
    for bug in arguments.bug:
        cells, checks = [], set()
        for way in ways:
            results = [jobs[bug, way, trial].result() for trial in range(arguments.trials)]
            checks |= {result["check"] for result in results if result["check"]}
            means[way].append(mean_of(results))
            cells.append(text(means[way][-1], any(r["result"] == "pass" for r in results)))
        print(f"| `{bug}` | " + " | ".join(cells) + f" | {', '.join(sorted(checks))} |", flush=True)
    base = statistics.mean(means[ways[0]])
    for way in ways:
        print(f"{way}: mean {text(statistics.mean(means[way]), False)}, "
              f"{statistics.mean(means[way]) / base:.2f} of {ways[0]}")


def states(arguments, pool):
    jobs = {(way, trial): pool.submit(hunt, arguments, way, trial, None)
            for way in arguments.ways for trial in range(arguments.trials)}
    for way in arguments.ways:
        results = [jobs[way, trial].result() for trial in range(arguments.trials)]
        print(f"{way}: {statistics.mean(r['states'] for r in results):.0f} abstract states in "
              f"{text(mean_of(results), False)} steps, failures {[r['failures'] for r in results]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--ways", type=lambda value: value.split(","), default=["random", "swarm", "pool"])
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--runs", type=int, default=60, help="runs of a hunt at most")
    parser.add_argument("--events", default="40k", help="steps of a run before it is healed")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--states", action="store_true")
    arguments = parser.parse_args()
    arguments.bug = arguments.bug or HARDEST
    arguments.program = str(pathlib.Path(arguments.build) / "faberio-sim-mutants")
    if not pathlib.Path(arguments.program).exists():
        arguments.program = str(pathlib.Path(arguments.build) / "faberio-sim")
    with concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool:
        (states if arguments.states else compare)(arguments, pool)
    return 0


if __name__ == "__main__":
    sys.exit(main())
