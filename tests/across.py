#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schedules across changes: the corpus as it was some commits ago, played by the program of today.

    tests/across.py                     that of 50 commits ago, tests/scenarios
    tests/across.py --since COMMIT      that of a commit
    tests/across.py --every 10          that of 10, 20, 30, 40 and 50 commits ago

A schedule reaches its target when it comes to what it expects, and each line of it that is addressed
happens; the others are stale, or fail, and are named. Nothing of the working tree is touched. Exit: 0 at
least --share of a hundred of every corpus reach theirs, 1 fewer, 2 usage.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = "tests/scenarios"


def git(*words, text=True):
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=text, check=False)
    if done.returncode != 0:
        sys.exit(f"across: git {' '.join(words)}: {done.stderr}")
    return done.stdout


def played(program, commit, folder):
    archive = folder / "corpus.tar"
    archive.write_bytes(git("archive", commit, CORPUS, text=False))
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    done = subprocess.run([str(program), "test", str(folder / CORPUS)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    closing = json.loads(done.stdout.strip().splitlines()[-1])
    wrong = [line.replace(f"{folder}/", "") for line in lines
             if ".sched" in line and not line.startswith(("{", "replay:"))]
    # One that the parser refuses is none of the three.
    total = len(list((folder / CORPUS).rglob("*.sched")))
    return total, closing["passed"], wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--since", default=None)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--share", type=int, default=95)
    flags = parser.parse_args()
    commits = [flags.since] if flags.since else [f"HEAD~{back}" for back in range(flags.every, 51, flags.every)]
    program = flags.build / "faberio-sim-mutants"
    good = True
    for commit in commits:
        with tempfile.TemporaryDirectory() as folder:
            total, passed, wrong = played(program, commit, pathlib.Path(folder))
        name = git("log", "-1", "--format=%h %s", commit).strip()
        share = 100 * passed / total if total else 100
        print(f"{commit} ({name}): {passed} of {total} schedules reach their target, {share:.1f} %")
        for line in wrong:
            print(f"  {line}")
        good = good and share >= flags.share
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
