#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often each fuzz target has run: the runs of this build directory, and what was kept of those before.

    ledger.py add TARGET LOG [finding]   a run's final statistics, one JSON object a line
    ledger.py show                       sums; executions that are wanted, and which are missing
    ledger.py keep                       adds this build directory's runs to fuzz/ledger.json, a file of
                                         the project, and begins anew
"""

import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ROOT / "build" / "fuzz" / "ledger.jsonl"
KEPT = ROOT / "fuzz" / "ledger.json"

# Each execution of these computes signatures or whole nodes; 10^7 of them are wanted, 10^8 of others.
WITH_CRYPTOGRAPHY = {"adapter", "compare", "context", "frames", "link_bytes", "noise", "reports", "rpc",
                     "step"}


def wanted(target):
    return 10**7 if target in WITH_CRYPTOGRAPHY else 10**8


def read(log):
    """Executions, seconds and features of a run; those that the end of the log names."""
    found = {}
    for name, key in (("number_of_executed_units", "executions"), ("average_exec_per_sec", "rate")):
        match = re.search(rf"stat::{name}:\s+(\d+)", log)
        found[key] = int(match.group(1)) if match else 0
    done = re.search(r"Done \d+ runs in (\d+) second", log)
    found["seconds"] = int(done.group(1)) if done else 0
    reached = re.findall(r"cov: (\d+) ft: (\d+)", log)
    found["edges"], found["features"] = map(int, reached[-1]) if reached else (0, 0)
    return found


def add(target, path, finding):
    row = {"target": target, "when": int(time.time()), "finding": finding}
    row["commit"] = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=False,
                                   capture_output=True, text=True).stdout.strip()
    row.update(read(pathlib.Path(path).read_text(errors="replace")))
    LEDGER.parent.mkdir(parents=True, exist_ok=True)
    with LEDGER.open("a") as ledger:
        ledger.write(json.dumps(row) + "\n")
    print(f"{target}: {row['executions']} executions, {row['rate']} a second, "
          f"{row['edges']} edges; {total(target)['executions']} in all")


def rows():
    return [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []


def kept():
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def total(target):
    """Of all runs; the edges of the run that reached most."""
    mine = [row | {"findings": int(row["finding"])} for row in rows() if row["target"] == target]
    mine += [kept()[target]] if target in kept() else []
    return {"executions": sum(row["executions"] for row in mine),
            "seconds": sum(row["seconds"] for row in mine),
            "findings": sum(row["findings"] for row in mine),
            "edges": max((row["edges"] for row in mine), default=0)}


def targets_of():
    return sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "fuzz").glob("fuzz_*.c"))


def keep():
    sums = {target: total(target) for target in targets_of()}
    lines = [f"{json.dumps(target)}: {json.dumps(sums[target])}" for target in sums]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    if LEDGER.exists():
        with LEDGER.with_name("ledger-kept.jsonl").open("a") as old:
            old.write(LEDGER.read_text())
        LEDGER.unlink()
    show()


def show():
    targets = targets_of()
    print(f"{'target':20}{'executions':>14}{'wanted':>12}{'seconds':>10}{'edges':>8}{'findings':>10}")
    for target in targets:
        sums = total(target)
        enough = "" if sums["executions"] >= wanted(target) else "  not yet"
        print(f"{target:20}{sums['executions']:>14}{wanted(target):>12}{sums['seconds']:>10}"
              f"{sums['edges']:>8}{sums['findings']:>10}{enough}")


def main(arguments):
    match arguments:
        case ["add", target, log]:
            add(target, log, False)
        case ["add", target, log, "finding"]:
            add(target, log, True)
        case ["show"]:
            show()
        case ["keep"]:
            keep()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
