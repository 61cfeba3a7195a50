#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One seed, one hash: runs the same seeds with several builds of the simulator and compares. All
but the first fill memory that nobody may read before it is written, each with another byte.

usage: determinism.py SEEDS STEPS PROGRAM PROGRAM...

A PROGRAM may have words before it, as in "qemu-s390x build/s390x/faberio-sim".
"""
import concurrent.futures
import json
import os
import subprocess
import sys


def run(program, poison, seed, steps):
    """The last line of the run as an object. A run that fails is itself a result to compare."""
    command = [*program.split(), "run", "--seed", str(seed), "--events", str(steps)]
    if poison:
        command += ["--poison", str(poison)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    try:
        last = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}, no result\n"
                         f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return last


def main(arguments):
    if len(arguments) < 4:
        raise SystemExit(__doc__)
    seeds, steps, programs = int(arguments[0]), int(arguments[1]), arguments[2:]
    differing = failing = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = {seed: [pool.submit(run, program, 75 * i % 255, seed, steps)
                       for i, program in enumerate(programs)]
                for seed in range(1, seeds + 1)}
        for seed, futures in rows.items():
            results = [future.result() for future in futures]
            seen = {(result["hash"], result["result"], result["events"]) for result in results}
            if len(seen) > 1:
                differing += 1
                for program, result in zip(programs, results):
                    print(f"seed {seed}: {program}: {result['result']} after {result['events']} "
                          f"steps, hash {result['hash']}")
                print(f"where they part: ./dev sim diff '{programs[0]}' '{programs[1]}' --seed {seed} "
                      f"--events {steps}")
            if any(result["result"] != "pass" for result in results):
                failing += 1
                print(f"seed {seed}: {results[0]['result']}, check {results[0].get('check')}")
    print(f"{seeds} seeds of {steps} steps, {len(programs)} builds: "
          f"{differing} differ, {failing} do not pass")
    return 1 if differing or failing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
