# SPDX-License-Identifier: Apache-2.0
"""Rules that read source text. Each is a generator of findings; its docstring is the rule."""
import re
import shutil
import subprocess

from tree import Finding, code_lines, code_of

PARTS = ("protocol", "sim", "io", "runtime", "fuzz", "tests")

# DESIGN 4. What a file of a folder may include of ours.
MAY_INCLUDE = {
    "protocol": ("protocol",),
    "sim": ("protocol", "sim"),
    "io": ("protocol", "io"),
    "runtime": ("protocol", "sim", "io", "runtime"),
    "fuzz": PARTS,
    "tests": PARTS,
}
PURE_HEADERS = {"stdbool.h", "stddef.h", "stdint.h", "string.h", "stdalign.h", "limits.h"}
VECTOR_HEADERS = {"emmintrin.h"}
HASH_HEADERS = {"xxhash.h", "blake3.h"}
DRIVER_HEADERS = {"sodium.h", "uv.h", "lmdb.h", "microhttpd.h", "ini.h", "jansson.h"}
FLOAT_HEADERS = {"math.h", "tgmath.h", "complex.h", "float.h", "fenv.h"}
# What both drivers are made of: it includes the core and itself, and sim/ may include it.
SHARED = "io/documents/"
# The one place where the core names the simulator; compiled only into the second binary.
EXCEPTIONS = {("protocol/base/mutant.h", "sim/mutant_ids.h")}

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def include_direction(tree):
    """protocol/ includes itself and a short list of headers; sim/ and io/ include protocol/;
    nothing but tests and fuzz targets includes runtime/; paths are from the root."""
    for path in tree.under(*PARTS):
        part = path.split("/")[0]
        code = dict(code_lines(tree, path))
        for number, line in enumerate(tree.lines(path), 1):
            match = _INCLUDE.match(line)
            if not match or not code.get(number, "").strip().startswith("#"):
                continue
            quote, name = match.groups()
            if (path, name) in EXCEPTIONS:
                continue
            if quote == '"':
                target = name.split("/")[0]
                if name.endswith(".pb-c.h") and part in ("fuzz", "tests"):
                    continue
                if name == "blake3.h" and path.startswith("protocol/base/hash."):
                    continue
                if not tree.exists(name):
                    yield Finding(path, number, f'"{name}" is no path from the root')
                elif name.startswith(SHARED) and part == "sim":
                    continue
                elif path.startswith(SHARED) and not name.startswith((SHARED, "protocol/")):
                    yield Finding(path, number, f"{SHARED} may not include {name}")
                elif target not in MAY_INCLUDE[part]:
                    yield Finding(path, number, f"{part}/ may not include {target}/")
                elif path.startswith("protocol/base/") and not name.startswith("protocol/base/"):
                    yield Finding(path, number, "protocol/base/ includes nothing but itself")
            elif part == "protocol":
                if name in VECTOR_HEADERS and path == "protocol/base/block.h":
                    continue
                if name in HASH_HEADERS and path.startswith("protocol/base/hash."):
                    continue
                if name not in PURE_HEADERS:
                    yield Finding(path, number, f"protocol/ may not include <{name}>")
            elif part == "sim" and name in DRIVER_HEADERS | FLOAT_HEADERS:
                yield Finding(path, number, f"sim/ may not include <{name}>")
            elif path.startswith(SHARED) and name not in PURE_HEADERS | {"errno.h", "stdlib.h"}:
                yield Finding(path, number, f"{SHARED} may not include <{name}>")


_FLOAT = re.compile(
    r"\b(?:float|double|long\s+double|_Float\w+|_Complex|__m\d+d?|__float\d+)\b"
    r"|(?<![\w.])(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?"
    r"|(?<![\w.])\d+[eE][+-]?\d+[fFlL]?\b"
    r"|(?<![\w.])0[xX][0-9a-fA-F.]+[pP][+-]?\d+")


def floating_point(tree):
    """No floating point in protocol/ and sim/: probabilities are ratios, times are integers."""
    for path in tree.under("protocol", "sim"):
        for number, line in code_lines(tree, path):
            match = _FLOAT.search(line)
            if match:
                yield Finding(path, number, f"floating point: {match.group(0).strip()}")


# A call of one of these in protocol/, and what is there instead.
BANNED = {
    "clock": ("time clock clock_gettime gettimeofday timespec_get localtime gmtime mktime nanosleep "
              "usleep sleep", "time is in the event"),
    "memory": ("malloc calloc realloc aligned_alloc free strdup alloca",
               "tables come from fb_arena, during layout"),
    "output": ("printf fprintf sprintf snprintf vsnprintf vfprintf puts putchar fputs fwrite perror",
               "text leaves as an effect, built with protocol/base/cursor.h"),
    "chance": ("rand srand random rand_r drand48 arc4random getrandom getentropy",
               "draws are keyed: protocol/base/draw.h; secrets are the provider's"),
    "process": ("abort exit _exit atexit getenv setlocale signal raise assert",
                "an error of protocol/base/error.h, or FB_ASSERT"),
    "order": ("qsort bsearch qsort_r", "libc leaves the order of equals open"),
    "text": ("strtol strtoul strtoll strtoull atoi sscanf strcpy strcat strncpy strtok toupper "
             "tolower isalpha isdigit", "locale and NUL-terminated text stay outside"),
}
_CALLS = {name: (kind, instead) for kind, (names, instead) in BANNED.items()
          for name in names.split()}
_CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(")


def impure_call(tree):
    """No clock, allocation, output, randomness, process or locale in protocol/."""
    for path in tree.under("protocol"):
        for number, line in code_lines(tree, path):
            for match in _CALL.finditer(line):
                if match.group(1) in _CALLS:
                    kind, instead = _CALLS[match.group(1)]
                    yield Finding(path, number, f"{match.group(1)}() ({kind}): {instead}")


def simulator_chance(tree):
    """sim/ draws by key only and sorts by written orders; it reads a clock in one file at most,
    to print a rate."""
    readers = {}
    for path in tree.under("sim"):
        for number, line in code_lines(tree, path):
            for match in _CALL.finditer(line):
                name = match.group(1)
                if _CALLS.get(name, ("",))[0] in ("chance", "order"):
                    yield Finding(path, number, f"{name}(): {_CALLS[name][1]}")
                elif name in ("time", "clock", "clock_gettime", "gettimeofday", "timespec_get"):
                    readers.setdefault(path, number)
    for path in sorted(readers)[1:]:
        yield Finding(path, readers[path], f"a second reader of a clock; the first is "
                                           f"{sorted(readers)[0]}")


_STATIC = re.compile(r"^\s*(?:static|_Thread_local|extern)\b(?!\s+inline)([^;(){}]*?)(=|;|\[)")


def mutable_static(tree):
    """No mutable object of static storage in protocol/: all state is in the instance."""
    for path in tree.under("protocol"):
        if path == "protocol/base/mutant.h":
            continue
        for number, line in code_lines(tree, path):
            match = _STATIC.match(line)
            if match and not re.search(r"\bconst\b|\b_Static_assert\b", match.group(1)):
                yield Finding(path, number, "static storage that is not const")


_PLANTED = re.compile(r'^X\((\w+), "[^"]*", "([^"]*)"')


def planted_place(tree):
    """Each planted bug of sim/mutants.def stands in the file that its row names, and no other bug
    is planted in protocol/ and io/documents/."""
    rows = {}
    for path in tree.under("sim", suffixes=("/mutants.def",)):
        for number, line in enumerate(tree.lines(path), 1):
            match = _PLANTED.match(line)
            if match:
                rows[match.group(1)] = (path, number, match.group(2))
    planted = {}
    for path in (*tree.under("protocol"), *(p for p in tree.under("io") if p.startswith(SHARED))):
        for number, line in code_lines(tree, path):
            for bug in re.findall(r"(?<!define )\bMUTANT\(\s*([A-Z]\w*)", line):
                planted.setdefault(bug, set()).add(path)
                if bug not in rows:
                    yield Finding(path, number, f"{bug} is not in sim/mutants.def")
    for bug, (path, number, place) in rows.items():
        if place not in planted.get(bug, ()):
            yield Finding(path, number, f"{bug} is not planted in {place}")


FOLDERS = PARTS + ("docs", "cmake", ".ci", "specs-conformance")
AT_ROOT = {".clang-format", ".clang-tidy", ".editorconfig", ".gitignore", "CHANGELOG.md",
           "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md", "dev"}


def stray_file(tree):
    """Every file has its place: a known folder or a known name at the root; what is not text is a
    fuzz input."""
    for path in tree.paths:
        folder, _, rest = path.partition("/")
        if not (rest and folder in FOLDERS or path in AT_ROOT):
            yield Finding(path, 1, "has no place in the tree")
        elif not path.startswith("fuzz/corpus/") and b"\0" in tree.bytes(path):
            yield Finding(path, 1, "not text")


LINES_MAX = 1000
CODE_SUFFIXES = (".c", ".h", ".py", ".sh", ".cmake")


def file_length(tree):
    """No file of code has more than 1,000 lines."""
    for path in tree.paths:
        if path.endswith(CODE_SUFFIXES) or path == "dev":
            count = len(tree.lines(path))
            if count > LINES_MAX:
                yield Finding(path, count, f"{count} lines, more than {LINES_MAX}")


LICENSED = (".c", ".h", ".py", ".sh", ".cmake", ".proto", ".def", ".in", ".service")


def licence_line(tree):
    # FI-0-2
    """Every source file names its licence in the first line, or the second after a shebang."""
    for path in tree.paths:
        name = path.rsplit("/", 1)[-1]
        if not (path.endswith(LICENSED) or name in ("CMakeLists.txt", "dev", "run")):
            continue
        lines = tree.lines(path)
        first = 1 if lines and lines[0].startswith("#!") else 0
        if "SPDX-License-Identifier: Apache-2.0" not in "".join(lines[first:first + 1]):
            yield Finding(path, first + 1, "no SPDX-License-Identifier: Apache-2.0")


# Put together here so that this file itself holds none of them.
_HOMES = re.compile(r"(?<![\w.~$}])/(?:" + "|".join(("wo" "rk", "ro" "ot", "ho" "me", "fa" "rm",
                                                    "Us" "ers")) + r")/")
_OPEN = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")


def machine_path(tree):
    """No path of somebody's machine in a tracked file."""
    for path in tree.paths:
        if tree.is_text(path):
            for number, line in enumerate(tree.lines(path), 1):
                match = _HOMES.search(line)
                if match:
                    yield Finding(path, number, f"a machine's path: {line.strip()[:60]}")


def open_end(tree):
    """No note of unfinished work in a tracked file: do it, refuse it, or document the limit."""
    for path in tree.paths:
        if tree.is_text(path) and path != "LICENSE":
            for number, line in enumerate(tree.lines(path), 1):
                match = _OPEN.search(line)
                if match:
                    yield Finding(path, number, f"open end: {match.group(0)}")


def white_space(tree):
    """No tab, no blank at a line's end, no carriage return, one line feed at the end of a file."""
    for path in tree.paths:
        if not tree.is_text(path) or path.startswith("tests/vectors/"):
            continue
        text = tree.text(path)
        if text and not text.endswith("\n"):
            yield Finding(path, text.count("\n") + 1, "no line feed at the end")
        for number, line in enumerate(text.split("\n"), 1):
            if "\t" in line:
                yield Finding(path, number, "tab")
            elif line.endswith((" ", "\r")):
                yield Finding(path, number, "blank or carriage return at the end of a line")


def clang_format(tree):
    """C sources are as clang-format 14 leaves them (./dev lint --fix)."""
    sources = [path for path in tree.paths if path.endswith((".c", ".h"))]
    if not sources:
        return
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if program is None:
        yield Finding(".clang-format", 1, "clang-format is not installed: ./dev setup")
        return
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if " version 14." not in version:
        yield Finding(".clang-format", 1, f"needs version 14, found: {version.strip()}")
        return
    done = subprocess.run([program, "--dry-run", *sources], cwd=tree.root, capture_output=True,
                          text=True)
    seen = set()
    for match in re.finditer(r"^(\S+?):(\d+):\d+: warning: code should be", done.stderr,
                             re.MULTILINE):
        if match.group(1) not in seen:  # one a file is enough to act on
            seen.add(match.group(1))
            yield Finding(match.group(1), int(match.group(2)), "not formatted: ./dev lint --fix")


_DISHONEST = re.compile(r"\bpytest\.skip\b|\bmark\.skip|\bimportorskip\b|\bxfail\b|\bskipTest\b"
                        r"|\bunittest\.skip|\bmark\.flaky\b")
_SLEEP = re.compile(r"\b(?:time\.sleep|asyncio\.sleep|usleep|nanosleep)\s*\(")


def honest_test(tree):
    """Tests neither skip, nor expect failure, nor wait for a time instead of an event."""
    for path in tree.under("tests", "fuzz", suffixes=(".c", ".py")):
        if path.startswith("tests/tidy/"):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if _DISHONEST.search(line):
                yield Finding(path, number, "a test that is skipped or expected to fail")
            elif _SLEEP.search(line):
                yield Finding(path, number, "a timed sleep")


_DEFINES = re.compile(r"^[A-Za-z_].*?\b(\w+)\(", re.MULTILINE)


def assertion_alone(tree):
    """fb_assert_failed is defined alone in its file, so that a program links exactly one."""
    for path in tree.under("protocol", "sim", "io", "runtime", "tests/unit", suffixes=(".c",)):
        code = code_of(tree.text(path))
        if not re.search(r"\bfb_assert_failed\([^;{]*\)\s*\{", code):
            continue
        names = {match.group(1) for match in _DEFINES.finditer(code)} - {"fb_assert_failed"}
        if names:
            yield Finding(path, 1, f"also defines {', '.join(sorted(names))}")


RULES = (include_direction, floating_point, impure_call, simulator_chance, mutable_static,
         planted_place,
         stray_file, file_length, licence_line, machine_path, open_end, white_space, clang_format, honest_test,
         assertion_alone)
