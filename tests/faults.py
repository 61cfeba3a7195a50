#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The catalogue of faults: its table in docs/SIMULATOR.md, and that each fault of it happens.

    tests/faults.py --table                   the table is that of sim/faults.def and the toys
    tests/faults.py --write                   writes it
    tests/faults.py --fire --build DIR        each fault that the swarm draws fires in a small fixed
                                              set of seeds
    tests/faults.py --nothing --build DIR     a fault that is never on changes no hash

Exit: 0 as it should be, 1 not, 2 usage.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "SIMULATOR.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
ROW = re.compile(r'X\((\w+),\s*"([^"]*)",\s*(\w+),\s*"([^"]*)",\s*"([^"]*)",\s*(\d+)\)')
TOY = re.compile(r'X\((\w+),\s*"([^"]*)",\s*FAULTS\(([^)]*)\)')
# Between them they have every fault, some of them many times.
SEEDS, EVENTS = range(1, 17), 60000


def catalogue():
    """Rows of sim/faults.def: (id, name, family, parameters, text, share), but the empty one."""
    text = (ROOT / "sim" / "faults.def").read_text()
    rows = [list(match.groups()) for match in ROW.finditer(text)]
    if text.count("\nX(") != len(rows):
        raise SystemExit("sim/faults.def: a row that this script does not understand")
    return [row for row in rows if row[0] != "NEVER"]


def toys():
    """Of each fault the defects of the toy node that only it shows."""
    found = {}
    path = ROOT / "sim" / "toys" / "toys.def"
    for match in TOY.finditer(path.read_text() if path.exists() else ""):
        first = match.group(3).split(",")[0].strip()
        found.setdefault(first, []).append(match.group(2))
    return found


def table():
    of = toys()
    lines = ["| fault | family | parameters | in 16 rounds | what happens | toy |", "|---|---|---|---|---|---|"]
    families = list(dict.fromkeys(row[2] for row in catalogue()))
    for row in sorted(catalogue(), key=lambda row: families.index(row[2])):
        ident, name, family, parameters, text, share = row
        toy = ", ".join(f"`{one}`" for one in of.get(ident, [])) or "—"
        lines.append(f"| `{name}` | {family.lower()} | {parameters} | {share} | {text} | {toy} |")
    return "\n".join(lines)


def table_main(write):
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if write:
        DOCUMENT.write_text(wanted)
    elif wanted != text:
        print("docs/SIMULATOR.md does not show sim/faults.def as it is: tests/faults.py --write")
        return 1
    return 0


def run(program, seed, events, *flags):
    done = subprocess.run([program, "run", "--seed", str(seed), "--events", str(events), *flags],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.strip().splitlines()[-1])


def fired(program, seed):
    done = subprocess.run([program, "faults", "--seeds", f"{seed}..{seed}", "--events", str(EVENTS)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"seed {seed}: exit {done.returncode}\n{done.stdout[-500:]}{done.stderr[-500:]}")
    counts = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) > 2 and words[0].isdigit():
            counts[words[1]] = int(words[0])
    return counts


def fire_main(build):
    program = str(build / "faberio-sim")
    total = {row[1]: 0 for row in catalogue() if row[5] != "0"}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for counts in pool.map(lambda seed: fired(program, seed), SEEDS):
            for name in total:
                total[name] += counts.get(name, 0)
    never = [name for name, count in total.items() if count == 0]
    print(f"{len(total)} faults, {len(never)} of them never in {len(SEEDS)} seeds"
          + "".join(f"\n  {name}" for name in never))
    return 1 if never else 0


def nothing_main(build):
    """The program with planted bugs has one fault more, which is never on."""
    differing = 0
    for seed in (1, 2, 3):
        hashes = {run(str(build / name), seed, 20000)["hash"]
                  for name in ("faberio-sim", "faberio-sim-mutants")}
        differing += len(hashes) != 1
    print(f"3 seeds, {differing} differ by a fault that never happens")
    return 1 if differing else 0


def main():
    parser = argparse.ArgumentParser()
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("table", "write", "fire", "nothing"):
        what.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    flags = parser.parse_args()
    if flags.table or flags.write:
        return table_main(flags.write)
    return fire_main(flags.build) if flags.fire else nothing_main(flags.build)


if __name__ == "__main__":
    sys.exit(main())
