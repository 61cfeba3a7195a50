#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The catalogue of faults: its table in docs/SIMULATOR.md, and that each fault of it happens.

    tests/faults.py --table                   the table is that of sim/faults.def, the toys and the corpus
    tests/faults.py --write                   writes it
    tests/faults.py --shown --build DIR       the schedule that the table names for a fault shows that it
                                              matters: with its lines it fails, without them it passes
    tests/faults.py --matter --build DIR      writes how often each fault mattered in a few runs
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
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "SIMULATOR.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
MATTER_BEGIN, MATTER_END = "<!-- matter: begin -->", "<!-- matter: end -->"
CORPUS = ROOT / "tests" / "scenarios"
TOYS = ROOT / "sim" / "toys"
ROW = re.compile(r'X\((\w+),\s*"([^"]*)",\s*(\w+),\s*"([^"]*)",\s*"([^"]*)",\s*(\d+)\)')
TOY = re.compile(r'X\((\w+),\s*"([^"]*)",\s*FAULTS\(([^)]*)\)')
# Between them they have every fault, some of them many times.
SEEDS, EVENTS = range(1, 41), 60000
MATTER_SEEDS, MATTER_EVENTS = "1..12", 20000


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


def lines_of(text, fault):
    """Indices of the lines that are windows of a fault."""
    window = re.compile(r"\s+\S+\.\.\S+ " + re.escape(fault) + r"( |$)")
    return [i for i, line in enumerate(text.splitlines()) if window.match(line)]


def schedules():
    """Of each fault the schedule with a planted bug that is to show it."""
    found = {}
    texts = {path: path.read_text() for path in sorted([*CORPUS.rglob("*.sched"), *TOYS.glob("*.sched")])}
    texts = {path: text for path, text in texts.items()
             if "\nbug " in text and "\nexpect violates " in text}
    for row in catalogue():
        name = row[1]
        own = CORPUS / "faults" / f"{name}.sched"
        of_toy = TOYS / f"{name}.sched"
        mine = SHOWN_ELSEWHERE.get(name)
        path = own if own.exists() else CORPUS / mine if mine else of_toy
        if path in texts and lines_of(texts[path], name):
            found[name] = path
    return found


# Schedules that stand elsewhere and show a fault as well.
SHOWN_ELSEWHERE = {
    "corrupt": "sessions/B35-twice-after-a-reconnect.sched",
    "half-open": "sessions/B38-takeover-of-a-half-open-link.sched",
    "reorder": "planted/ahead-of-its-turn.sched",
    "isolate": "records/B49-offline-during-the-delete.sched",
    "split": "planted/siblings-left-out.sched",
    "nontransitive": "planted/shared-address-forgotten.sched",
    "crash": "sessions/B38-takeover-of-a-half-open-link.sched",
    "pause": "sessions/B34-resume-at-the-wrong-message.sched",
    "forget": "planted/shared-address-forgotten.sched",
    "rollback": "records/B47-counter-restarts-with-the-store.sched",
    "write-fail": "sessions/B30-restart-forgets-ids.sched",
    "offset": "records/B56-answer-before-its-question.sched",
    "offset-far": "clocks/B71-one-clock-far-ahead.sched",
    "clock-step": "clocks/B66-clock-steps-back-eleven-seconds.sched",
    "suspend": "sessions/B31-age-of-an-id.sched",
    "before-1970": "records/B53-difference-not-followed.sched",
    "epoch-edge": "planted/future-is-shown.sched",
    "forge": "membership/B58-a-flipped-bit-spreads.sched",
    "stale": "sessions/B40-evicted-and-registered-again.sched",
    "foreign": "planted/space-not-compared.sched",
    "misaddress": "planted/origin-not-compared.sched",
    "flood": "clocks/B65-many-ids-in-one-millisecond.sched",
    "garbage": "membership/B59-out-for-ever.sched",
    "member-race": "records/two-lives-without-a-chain.sched",
    "roles": "membership/demoted-in-the-middle.sched",
    "revoke": "planted/put-out-stays-linked.sched",
    "leave": "planted/leaving-cuts.sched",
    "recover": "planted/recovery-unproven.sched",
    "rename": "membership/two-names-at-once.sched",
    "clone": "records/B54-one-identity-twice.sched",
}


def table():
    of, played = toys(), schedules()
    lines = ["| fault | family | parameters | in 16 rounds | what happens | shown by |",
             "|---|---|---|---|---|---|"]
    families = list(dict.fromkeys(row[2] for row in catalogue()))
    for row in sorted(catalogue(), key=lambda row: families.index(row[2])):
        ident, name, family, parameters, text, share = row
        shown = [f"toy `{one}`" for one in of.get(ident, [])]
        if name in played and played[name].parent == TOYS:
            bug = re.search(r"^bug (\S+)", played[name].read_text(), re.MULTILINE).group(1)
            shown.append(f"toy `{bug}`, `sim/toys/{name}.sched`")
        elif name in played:
            shown.append(f"`{played[name].relative_to(CORPUS).with_suffix('').as_posix()}`")
        if not shown:
            raise SystemExit(f"{name}: no toy and no schedule shows that it matters")
        lines.append(f"| `{name}` | {family.lower()} | {parameters} | {share} | {text} | {', '.join(shown)} |")
    return "\n".join(lines)


def shown_main(build):
    """Each schedule fails by its check, passes without the fault, and passes without the bug."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, path in schedules().items():
            text = path.read_text()
            program = str(build / ("faberio-sim-toys" if path.parent == TOYS else "faberio-sim-mutants"))
            lines, gone = text.splitlines(), set(lines_of(text, name))
            without = pathlib.Path(folder) / f"{name}.sched"
            without.write_text("\n".join(line for i, line in enumerate(lines) if i not in gone) + "\n")
            check = re.search(r"^expect violates (\S+)", text, re.MULTILINE).group(1)
            with_it, sound, less = (
                verdict([program, "replay", *words])
                for words in ([str(path)], ["--sound", str(path)], [str(without)]))
            good = (with_it["check"] == check and sound["result"] == "pass"
                    and less["result"] == "pass")
            if not good:
                print(f"{name}: {path.relative_to(ROOT)}: with it {with_it['check']}, without it "
                      f"{less['check']}, without the bug {sound['check']}")
            wrong += not good
    print(f"{len(schedules())} faults shown by schedules, {wrong} not")
    return 1 if wrong else 0


def verdict(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.strip().splitlines()[-1])


def matter_main(build):
    done = subprocess.run([str(build / "faberio-sim"), "faults", "--seeds", MATTER_SEEDS, "--events",
                           str(MATTER_EVENTS), "--matter"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    return matter_write(done.stdout)


def matter_write(text):
    rows = [line.split() for line in text.splitlines()]
    rows = [row for row in rows if len(row) > 3 and row[0].isdigit() and row[1].isdigit()]
    lines = ["| fault | fired | mattered in runs |", "|---|---|---|"]
    lines += [f"| `{row[2]}` | {row[0]} | {row[1]} |" for row in rows]
    document = DOCUMENT.read_text()
    before, rest = document.split(MATTER_BEGIN)
    after = rest.split(MATTER_END)[1]
    body = "\n".join(lines)
    DOCUMENT.write_text(f"{before}{MATTER_BEGIN}\n{body}\n{MATTER_END}{after}")
    return 0 if rows else 1


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
    for name in ("table", "write", "fire", "nothing", "shown", "matter"):
        what.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    flags = parser.parse_args()
    if flags.shown:
        return shown_main(flags.build)
    if flags.matter:
        return matter_main(flags.build)
    if flags.table or flags.write:
        return table_main(flags.write)
    return fire_main(flags.build) if flags.fire else nothing_main(flags.build)


if __name__ == "__main__":
    sys.exit(main())
