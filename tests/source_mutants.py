#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes the sources of protocol/ one place at a time and says what notices.

    tests/source_mutants.py                 200 mutants drawn by seed 1
    tests/source_mutants.py --write         the same into docs/SOURCE-MUTANTS.md
    tests/source_mutants.py --only FILE     of one file or folder only
    tests/source_mutants.py --minutes 60    what is done by then; the next run goes on
    tests/source_mutants.py --smoke         three mutants

What was found stands in build/source-mutants/ledger.jsonl. A killed mutant stays killed while its
file is the same; a survivor is tried again when anything else changed. Exit: 0 enough killed, 1 not.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "SOURCE-MUTANTS.md"
WORK = ROOT / "build" / "source-mutants"
LEDGER = WORK / "ledger.jsonl"
BUILD = WORK / "reference"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
ENOUGH = 0.95
SLOW = 20.0  # seconds of processor time: a unit test that takes longer is left out
# Names of unit tests that belong to a plane and do not begin with its name.
PLANE_TESTS = {
    "base": ("test_base", "test_uuid", "test_hash"),
    "core": ("test_node", "test_sizes"),
    "link": ("test_link", "test_noise", "test_dial", "test_carrier"),
}
KEYWORDS = {"return", "break", "continue", "goto", "if", "for", "while", "switch", "do", "else",
            "case", "default", "static", "const", "struct", "_Static_assert", "static_assert"}


# What can be changed where

def blanked(text):
    """The text with comments, strings, characters and directives as spaces: same places."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\''
                         r'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def closing(text, start):
    """The place of the bracket that closes the one at start."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text) - 1


def without_asserts(text):
    out = text
    for found in re.finditer(r"\b(FB_ASSERT|_Static_assert|static_assert)\s*\(", text):
        end = closing(text, found.end() - 1) + 1
        hole = re.sub(r"[^\n]", " ", text[found.start():end])
        out = out[:found.start()] + hole + out[end:]
    return out


def bodies(text):
    """(start, end) of each function's body."""
    place = 0
    while (place := text.find("{", place)) >= 0:
        end = closing(text, place)
        if text[:place].rstrip().endswith(")"):
            yield place + 1, end
        place = end + 1


SWAPS = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="],
         "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "+=": ["-="], "-=": ["+="],
         "++": ["--"], "--": ["++"], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"],
         "&&": ["||"], "||": ["&&"], "|=": ["&="], "&=": ["|="]}
OPERATOR = re.compile(r"->|\+\+|--|<<=|>>=|&&|\|\||[<>=!+\-*/%&|^]=|<<|>>|[<>+\-*/%&|]")
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-fA-F]+|\d+)([uUlL]*)(?![\w.])")


def operators(code):
    for found in OPERATOR.finditer(code):
        old = found.group()
        before = code[:found.start()].rstrip()[-1:]
        alone = old in ("+", "-", "*", "&") and not (before.isalnum() or before in "_)]")
        for new in SWAPS.get(old, []):
            if not alone:
                yield found.start(), found.end(), new


def constants(code, limits):
    for found in NUMBER.finditer(code):
        value = int(found.group(1), 0)
        yield found.start(), found.end(), f"{value + 1}{found.group(2)}"
        if value > 0:
            yield found.start(), found.end(), f"{value - 1}{found.group(2)}"
    for found in re.finditer(r"\bFB_[A-Z0-9_]+\b", code):
        if found.group() in limits:
            yield found.start(), found.end(), f"({found.group()} + 1)"
            yield found.start(), found.end(), f"({found.group()} - 1)"


def conditions(code):
    for found in re.finditer(r"\b(?:if|while)\s*\(", code):
        start, end = found.end() - 1, closing(code, found.end() - 1) + 1
        yield start, end, None  # the text itself, negated


def statements(code):
    for found in re.finditer(r"(?<=[;{})])\s*([A-Za-z_*(][^;{}]*);", code):
        text = found.group(1)
        first = re.match(r"\w*", text).group()
        declares = re.match(r"[A-Za-z_]\w*[\s*]+[A-Za-z_]\w*\s*[=;\[,]", text + ";")
        before = code[:found.start(1)]
        # A part of a for's head is no statement.
        balanced = (text.count("(") == text.count(")") and before.count("(") == before.count(")"))
        if first not in KEYWORDS and not declares and balanced and not text.startswith("(void)"):
            yield found.start(1), found.end(1), ""


def leaves(code, errors):
    for found in re.finditer(r"\b(?:break|continue)\b(?=\s*;)", code):
        yield found.start(), found.end(), ""
    for found in re.finditer(r"\breturn\s+(FB_OK|FB_ERR_[A-Z_]+)\s*;", code):
        for new in errors:
            if new != found.group(1):
                yield found.start(1), found.end(1), new


class Mutant:
    """One change of one file."""

    def __init__(self, path, text, kind, start, end, new):
        old, self.text = text[start:end], text
        self.path, self.kind, self.start, self.end = path, kind, start, end
        if new is None:
            new = f"(!{old})"
        # Lines stay where they are.
        self.new = new + "\n" * (old.count("\n") - new.count("\n"))
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", end)
        self.number = text.count("\n", 0, start) + 1
        line = " ".join(text[begin:stop].split())
        changed = " ".join((text[begin:start] + new + text[end:stop]).split())
        self.change = f"`{line}` → `{changed}`".replace("|", "\\|")
        self.same = 0  # how many such changes of this file come before

    def identity(self):
        return f"{self.path}|{self.kind}|{self.change}|{self.same}"

    def rank(self, seed):
        return hashlib.sha256(f"{seed}|{self.identity()}".encode()).digest()


def mutants_of(path, limits, errors):
    text = (ROOT / path).read_text()
    code = without_asserts(blanked(text))
    found, seen = [], {}
    for start, end in bodies(code):
        body = code[start:end]
        for kind, places in (("operator", operators(body)), ("constant", constants(body, limits)),
                             ("condition", conditions(body)), ("deleted", statements(body)),
                             ("leaves", leaves(body, errors))):
            for first, last, new in places:
                found.append(Mutant(path, text, kind, start + first, start + last, new))
    for mutant in found:
        mutant.same = seen.get(mutant.identity(), 0)
        seen[f"{mutant.path}|{mutant.kind}|{mutant.change}|0"] = mutant.same + 1
    return found


def one_of_each_place(mutants, seed):
    """A return has as many mutants as there are errors, a constant two: one of each place is kept,
    and how many a place had gives it no better chance in the draw."""
    kept = {}
    for mutant in mutants:
        place = (mutant.path, mutant.start, mutant.kind)
        if place not in kept or mutant.rank(seed) < kept[place].rank(seed):
            kept[place] = mutant
    return sorted(kept.values(), key=lambda mutant: hashlib.sha256(mutant.rank(seed)).digest())


# What a mutant is tried with

class Program:
    """A program of the reference build: how it is linked, what it defines and how long it takes."""

    def __init__(self, name, target, words):
        self.name, self.words = name, words
        command = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target],
                                 capture_output=True, text=True, check=True).stdout
        command = command.strip().splitlines()[-1]
        self.link = shlex.split(command.replace(": && ", "", 1).replace(" && :", ""))
        self.output = self.link.index("-o") + 1
        self.file = BUILD / self.link[self.output]
        self.symbols = symbols(self.file)
        self.seconds = 0.0

    def build(self, folder, object_file):
        """Linked with an object before the library that has the original of it."""
        words = list(self.link)
        words[self.output] = str(folder / self.name)
        words.insert(self.output + 1, str(object_file))
        done = subprocess.run(words, cwd=BUILD, check=False, capture_output=True)
        return folder / self.name if done.returncode == 0 else None

    def failed(self, file, folder):
        """None, or how it ended: failed, crash, hang. The limit is of processor time, so that a busy
        machine kills nothing; a program that only waits is given ten times as long."""
        limit = int(10 + 5 * self.seconds)
        command = ["prlimit", f"--cpu={limit}", "--core=0", "--as=8000000000", str(file),
                   *self.words]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False,
                                  timeout=10 * limit)
        except subprocess.TimeoutExpired:
            return "hang"
        if done.returncode in (-24, -9):
            return "hang"
        if done.returncode < 0 or done.returncode == 12:
            return "crash"
        return "failed" if done.returncode != 0 else None


def symbols(file):
    text = subprocess.run(["nm", "--defined-only", "-g", file], capture_output=True, text=True,
                          check=True).stdout
    return {line.split()[-1] for line in text.splitlines() if line}


def build_reference():
    names = sorted(path.stem for path in (ROOT / "tests" / "unit").glob("test_*.c"))
    WORK.mkdir(parents=True, exist_ok=True)
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O2"]
    if shutil.which("ccache"):
        configure.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(BUILD), "faberio-sim", "faberio-sim-mutants", *names],
                   check=True, stdout=subprocess.DEVNULL)
    return names


class Bench:
    """Everything a mutant meets, in order."""

    def __init__(self, arguments):
        names = build_reference()
        self.units = [Program(name, name, []) for name in names]
        events = ["--events", arguments.events]
        self.corpus = Program("faberio-sim-mutants", "faberio-sim-mutants",
                              ["test", str(ROOT / "tests" / "scenarios")])
        self.seeds = [Program("faberio-sim", "faberio-sim", ["run", "--seed", str(seed), *events])
                      for seed in range(1, arguments.seeds + 1)]
        self.measure(arguments)
        commands = json.loads((BUILD / "compile_commands.json").read_text())
        self.compile = {}
        for entry in commands:
            for key in ("faberio_core.dir", "faberio_core_mutants.dir"):
                if f"/{key}/" in entry["command"]:
                    path = str(pathlib.Path(entry["file"]).relative_to(ROOT))
                    self.compile[path, key] = shlex.split(entry["command"])

    def measure(self, arguments):
        """How long each takes without a mutant; what fails then proves nothing."""
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(self.measure_one, [*self.units, self.corpus, *self.seeds]))
        self.units = [program for program in self.units if program.seconds <= SLOW]

    def measure_one(self, program):
        folder = WORK / "measured" / program.name
        folder.mkdir(parents=True, exist_ok=True)
        program.seconds = 2 * SLOW
        out = folder / "time"
        done = subprocess.run(["/bin/bash", "-c", 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>&1',
                               "time", str(program.file), *program.words], cwd=folder,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"source_mutants: {program.name} {' '.join(program.words)} fails without one")
        program.seconds = sum(float(word) for word in done.stderr.split()[-2:])
        out.unlink(missing_ok=True)

    def object(self, path, key, folder, text, name):
        """Compiled from a copy that stands in one place, so that equal code is equal bytes."""
        words = list(self.compile[path, key])
        source = folder / path
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        target = folder / name
        words[words.index("-o") + 1] = str(target)
        words[words.index("-c") + 1] = str(source)
        words += ["-w", "-Wno-error"]
        done = subprocess.run(words, cwd=BUILD, capture_output=True, check=False)
        return target if done.returncode == 0 else None

    def ordered(self, path, defined):
        """The unit tests that link this file: those of its plane first, then the quick ones."""
        plane = path.split("/")[1]
        own = PLANE_TESTS.get(plane, (f"test_{plane}",))
        linking = [program for program in self.units if program.symbols & defined]
        return sorted(linking, key=lambda program: (not program.name.startswith(own),
                                                    program.seconds))

    def outcome(self, mutant, folder):
        """(outcome, killer): `no` and `same` are no mutants; killed, survived."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        text = mutant.text
        changed = text[:mutant.start] + mutant.new + text[mutant.end:]
        plain = "faberio_core.dir"
        sound = self.object(mutant.path, plain, folder, text, "sound.o").read_bytes()
        built = self.object(mutant.path, plain, folder, changed, "mutant.o")
        if built is None:
            return "no", ""
        if built.read_bytes() == sound:
            return "same", ""
        for program in self.ordered(mutant.path, symbols(built)):
            file = program.build(folder, built)
            # A test with a stand-in for this file has nothing to say about it.
            if file is None and program.build(folder, folder / "sound.o") is None:
                continue
            how = program.failed(file, folder) if file else "unlinked"
            (folder / program.name).unlink(missing_ok=True)
            if how:
                return "killed", f"unit {program.name} {how}"
        bugs = self.object(mutant.path, "faberio_core_mutants.dir", folder, changed, "bugs.o")
        how = self.corpus.failed(self.corpus.build(folder, bugs), folder)
        if how:
            return "killed", f"corpus {how}"
        simulator = self.seeds[0].build(folder, built)
        for program in self.seeds:
            how = program.failed(simulator, folder)
            if how:
                return "killed", f"simulator seed {program.words[2]} {how}"
        return "survived", ""


# What was found before

def digest_of(*paths):
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def tree_digest():
    return digest_of(*sorted(path for folder in ("protocol", "io/documents", "sim", "tests/unit",
                                            "tests/scenarios")
                             for path in (ROOT / folder).rglob("*") if path.is_file()))


class Ledger:
    def __init__(self):
        self.tree, self.files, self.lock = tree_digest(), {}, threading.Lock()
        self.rows = {}
        if LEDGER.exists():
            for line in LEDGER.read_text().splitlines():
                row = json.loads(line)
                self.rows[row["mutant"]] = row

    def file(self, mutant):
        if mutant.path not in self.files:
            self.files[mutant.path] = digest_of(ROOT / mutant.path)
        return self.files[mutant.path]

    def known(self, mutant):
        row = self.rows.get(mutant.identity())
        if row is None or row["file"] != self.file(mutant):
            return None
        if row["outcome"] == "survived" and row["tree"] != self.tree:
            return None
        return row

    def add(self, mutant, outcome, killer, seconds):
        row = {"mutant": mutant.identity(), "file": self.file(mutant), "tree": self.tree,
               "outcome": outcome, "killer": killer, "seconds": round(seconds, 1)}
        with self.lock:
            self.rows[mutant.identity()] = row
            with LEDGER.open("a") as out:
                out.write(json.dumps(row) + "\n")
        return row


# The run

class Trial:
    def __init__(self, bench, ledger, deadline):
        self.bench, self.ledger, self.deadline = bench, ledger, deadline

    def __call__(self, mutant):
        row = self.ledger.known(mutant)
        if row is not None:
            return mutant, row
        if time.monotonic() > self.deadline:
            return mutant, None
        folder = WORK / "scratch" / str(threading.get_ident())
        begin = time.monotonic()
        outcome, killer = self.bench.outcome(mutant, folder)
        row = self.ledger.add(mutant, outcome, killer, time.monotonic() - begin)
        if outcome in ("killed", "survived"):
            print(f"{mutant.path}:{mutant.number} {mutant.change}: {outcome} {killer}", flush=True)
        return mutant, row


def draw(order, count, trial, jobs):
    """Tries as many as are missing, until there are enough that are mutants."""
    done, place = [], 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while place < len(order):
            real = sum(row is None or row["outcome"] in ("killed", "survived") for _, row in done)
            if real >= count:
                break
            batch = order[place:place + count - real]
            place += len(batch)
            done += pool.map(trial, batch)
    return done


def explanations():
    """Of the survivors in the document: (file, change) to the sentence that a person wrote."""
    found = {}
    for line in DOCUMENT.read_text().splitlines():
        row = re.match(r"\| `([^:`]+):\d+` \| (.*?) \| ([^|]*) \|$", line)
        if row:
            found[row.group(1), row.group(2)] = row.group(3).strip()
    return found


def report(done, arguments):
    outcomes = [row["outcome"] for _, row in done if row is not None]
    killed = [row["killer"] for _, row in done if row is not None and row["outcome"] == "killed"]
    survivors = [mutant for mutant, row in done if row and row["outcome"] == "survived"]
    total = len(killed) + len(survivors)
    known = explanations() if DOCUMENT.exists() else {}
    lines = ["| killer | mutants | of which by time or memory limit |", "|---|---|---|"]
    for name in ("unit", "corpus", "simulator"):
        own = [killer for killer in killed if killer.split()[0] == name]
        lines.append(f"| {name} | {len(own)} | {sum(k.endswith('hang') for k in own)} |")
    share = 100 * len(killed) / total if total else 0
    lines += ["", f"{total} of {arguments.count} mutants (seed {arguments.seed}, "
              f"{arguments.seeds} seeds of {arguments.events} steps each): {len(killed)} killed, "
              f"{share:.1f} %. Drawn again: {outcomes.count('no')} that do not compile, "
              f"{outcomes.count('same')} whose object is the same.", "",
              "| survivor | change | why |", "|---|---|---|"]
    for mutant in sorted(survivors, key=lambda mutant: (mutant.path, mutant.number)):
        why = known.get((mutant.path, mutant.change), "")
        lines.append(f"| `{mutant.path}:{mutant.number}` | {mutant.change} | {why} |")
    return lines, total > 0 and len(killed) >= ENOUGH * total


def write(lines):
    head, rest = DOCUMENT.read_text().split(BEGIN)
    tail = rest.split(END)[1]
    DOCUMENT.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + tail)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="which mutants are drawn")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", default="protocol/", help="a file, or how its path begins")
    parser.add_argument("--seeds", type=int, default=5, help="of the simulator, 1 to N")
    parser.add_argument("--events", default="100k", help="steps of each")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.count = 3
    limits = set(re.findall(r"#define (FB_\w+) +[0-9(]",
                            (ROOT / "protocol" / "base" / "limits.h").read_text()))
    table = (ROOT / "protocol" / "base" / "error.h").read_text()
    errors = [f"FB_ERR_{name}" for name in re.findall(r"X\(\d+, ([A-Z_]+),", table) if name != "OK"]
    paths = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "protocol").rglob("*.c"))]
    sites = [mutant for path in paths if path.startswith(arguments.only)
             for mutant in mutants_of(path, limits, errors)]
    if not sites:
        print("source_mutants: nothing to change there", file=sys.stderr)
        return 2
    deadline = time.monotonic() + 60 * arguments.minutes
    order = one_of_each_place(sites, arguments.seed)
    trial = Trial(Bench(arguments), Ledger(), deadline)
    lines, enough = report(draw(order, arguments.count, trial, arguments.jobs), arguments)
    shutil.rmtree(WORK / "scratch", ignore_errors=True)
    print("\n".join(lines))
    if arguments.write:
        write(lines)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
