#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One seed, one hash: runs the same seeds with several builds of the simulator and compares. All
but the first fill memory that nobody may read before it is written, each with another byte.

usage: determinism.py SEEDS STEPS PROGRAM PROGRAM...       seeds 1 to SEEDS, builds against each other
       determinism.py rows [--every N] PROGRAM PROGRAM...  the runs of the golden file, builds
                                                           against each other
       determinism.py golden [--every N] PROGRAM...        the same, and against the file
       determinism.py write PROGRAM                        writes the file anew

A PROGRAM may have words before it, as in "qemu-s390x build/s390x/faberio-sim". --every N takes each
N-th run. The golden file is tests/vectors/golden-hashes.txt; docs/SIMULATOR.md says when its hashes
may change. Exit: 0 equal; 1 differing or failing runs; 3 the builds agree, the file is of other
sources than these.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests/vectors/golden-hashes.txt"
ROWS = 208
FORMAT = "faberio-golden-hashes 1"


def planned():
    """The runs of a file that is written anew, as words of the command line: small ones, of every
    size and profile."""
    for seed in range(1, ROWS + 1):
        words = ["--seed", str(seed), "--nodes", str(2 + seed % 6)]
        words += ["--events", str(1000 + 700 * (seed % 11))]
        words += ["--profile", "calm" if seed % 16 == 0 else "dense" if seed % 4 == 0 else "default"]
        yield words + (["--fast"] if seed % 8 == 7 else [])


def sources():
    """A hash of everything that hashes of runs depend on."""
    total = hashlib.sha256()
    for folder in ("protocol", "io/documents", "sim"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".def"):
                total.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
                total.update(path.read_bytes() + b"\0")
    return total.hexdigest()


def read_file():
    lines = FILE.read_text().splitlines()
    if lines[0] != f"# {FORMAT}":
        raise SystemExit(f"{FILE}: not of the format {FORMAT}")
    written_of = next(line.split()[2] for line in lines if line.startswith("# sources "))
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return written_of, [(row[:-1], row[-1]) for row in rows]


def run(program, poison, words):
    """The last line of the run as an object. A run that fails is itself a result to compare."""
    command = [*program.split(), "run", *words]
    # A tool that knows what was never written must not be told that it was.
    if poison and "valgrind" not in program:
        command += ["--poison", str(poison)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    try:
        last = json.loads(lines[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}, no result\n"
                         f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return last


def parted(programs, other, words):
    """Where the first program and another one part, by their hashes after every 65,536 steps."""
    fill = f" --poison {75 * other % 255}"
    if " " in programs[0] + programs[other]:
        return "one of them runs in another program: nothing looks for the place"
    sides = [programs[0], programs[other] + fill]
    done = subprocess.run([programs[0], "diff", *sides, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    return (f"where they part: ./dev sim diff '{sides[0]}' '{sides[1]}' {' '.join(words)}\n"
            + "".join(f"    {line}\n" for line in done.stdout.splitlines()[:-1]))


def compare(runs, programs):
    """Runs all with all. Prints what differs; the results of the first program, and the counts."""
    differing = failing = 0
    firsts = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = [(words, [pool.submit(run, program, 75 * i % 255, words)
                         for i, program in enumerate(programs)]) for words in runs]
        for words, futures in rows:
            results = [future.result() for future in futures]
            firsts.append(results[0])
            if len({(r["hash"], r["result"], r["events"]) for r in results}) > 1:
                differing += 1
                for program, result in zip(programs, results):
                    print(f"{' '.join(words)}: {program}: {result['result']} after "
                          f"{result['events']} steps, hash {result['hash']}")
                other = next((i for i, result in enumerate(results)
                              if result["hash"] != results[0]["hash"]
                              or result["events"] != results[0]["events"]), 1)
                print(parted(programs, other, words))
            if any(result["result"] != "pass" for result in results):
                failing += 1
                print(f"{' '.join(words)}: {results[0]['result']}, check {results[0].get('check')}")
    print(f"{len(firsts)} runs, {len(programs)} builds: {differing} differ, {failing} do not pass",
          flush=True)
    return firsts, differing + failing


def against_file(rows, results, written_of):
    changed = [(words, known, result["hash"]) for (words, known), result in zip(rows, results)
               if known != result["hash"]]
    for words, known, found in changed[:5]:
        print(f"{' '.join(words)}: hash {found}, in the file {known}")
    print(f"{len(rows)} rows of {FILE.relative_to(ROOT)}: {len(changed)} are others now")
    if not changed:
        return 0
    if written_of == sources():
        print("the sources are those of the file: this build or this machine computes differently")
        return 1
    print("protocol/ or sim/ have changed since the file was written. If runs were meant to change:"
          "\n  ./dev golden --write")
    return 3


def write(program):
    runs = list(planned())
    results, bad = compare(runs, [program])
    if bad:
        return 1
    lines = [f"# {FORMAT}",
             "# SPDX-License-Identifier: Apache-2.0",
             "# The words of `faberio sim run`, and the hash of that run on every machine, compiler and",
             "# build type. Written by `./dev golden --write`; docs/SIMULATOR.md, \"Hashes\".",
             f"# sources {sources()}"]
    lines += [" ".join([*words, result["hash"]]) for words, result in zip(runs, results)]
    FILE.write_text("\n".join(lines) + "\n")
    print(f"written: {FILE.relative_to(ROOT)}")
    return 0


def main(arguments):
    verb, programs, every = (arguments or [""])[0], arguments[1:], 1
    if verb.isdigit() and len(programs) >= 3:
        runs = [["--seed", str(seed), "--events", programs[0]] for seed in range(1, int(verb) + 1)]
        return 1 if compare(runs, programs[1:])[1] else 0
    if programs[:1] == ["--every"]:
        every, programs = int(programs[1]), programs[2:]
    least = {"rows": 2, "golden": 1, "write": 1}.get(verb)
    if least is None or len(programs) < least:
        raise SystemExit(__doc__)
    if verb == "write":
        return write(programs[0])
    written_of, rows = read_file()
    rows = rows[::every]
    results, bad = compare([words for words, _ in rows], programs)
    if bad:
        return 1
    return against_file(rows, results, written_of) if verb == "golden" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
