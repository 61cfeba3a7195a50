# SPDX-License-Identifier: Apache-2.0
"""The requirement catalogue: reads it, counts keywords of a specification's text, and finds where
the project cites which requirement. Nothing here decides; check_catalogue.py and report.py do."""
import hashlib
import pathlib
import re
import tomllib
import typing

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

KEYWORDS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "BINDS")
STATUSES = ("implemented", "refused", "later", "elsewhere")
ID = re.compile(r"\b(?:FM|FI|MP)-\d+(?:\.\d+)*-\d+\b")

# A capital NOT by itself binds as well.
_KEYWORD = re.compile(r"\b(MUST NOT|SHOULD NOT|SHALL NOT|MUST|SHOULD|SHALL|REQUIRED|RECOMMENDED"
                      r"|OPTIONAL|MAY|NOT)\b")
_PART_HEADING = re.compile(r"^(\d+)\. \S")
_HEADING = re.compile(r"^(\d+)\.(\d+) \S")


class Document(typing.NamedTuple):
    prefix: str
    name: str
    file: str
    sha256: str
    keywords: dict  # section -> its keywords in reading order
    requirements: list


def load(folder=HERE / "requirements"):
    """All documents of the catalogue. KeyError, ValueError: not a catalogue."""
    documents = []
    for path in sorted(pathlib.Path(folder).glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        head = data["document"]
        documents.append(Document(head["prefix"], head["name"], head["file"], head["sha256"],
                                  head["keywords"], data.get("requirement", [])))
    if not documents:
        raise ValueError(f"no catalogue in {folder}")
    return sorted(documents, key=lambda document: ("FM", "MP", "FI").index(document.prefix))


def requirements(documents):
    return [one for document in documents for one in document.requirements]


def section_of(name):
    """FM-8.2-1 -> 8.2"""
    return name.split("-", 1)[1].rsplit("-", 1)[0]


def is_must(requirement):
    return requirement["keyword"] in ("MUST", "MUST NOT")


# ---- A specification's text ----


def sections_of(text):
    """(section, line) of each line. A part's heading is the next number and nothing else is: so a
    numbered list within a part is no heading."""
    part, section = 0, "0"
    for line in text.splitlines():
        top = _PART_HEADING.match(line)
        below = _HEADING.match(line)
        if top and int(top.group(1)) == part + 1:
            part += 1
            section = str(part)
        elif below and int(below.group(1)) == part:
            section = f"{part}.{below.group(2)}"
        yield section, line


def count_keywords(text):
    """section -> keywords in reading order, for sections that have any."""
    found = {}
    for section, line in sections_of(text):
        for keyword in _KEYWORD.findall(line):
            found.setdefault(section, []).append(keyword)
    return found


def sha256_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


COPIED_WORDS = 8


def copied(text, source):
    """So many words in a row that stand in the source as well, or None: the catalogue is in our own
    words."""
    words, original = (re.findall(r"[\w.]+", one.lower()) for one in (text, source))
    runs = {tuple(original[i:i + COPIED_WORDS]) for i in range(len(original) - COPIED_WORDS + 1)}
    for i in range(len(words) - COPIED_WORDS + 1):
        if tuple(words[i:i + COPIED_WORDS]) in runs:
            return " ".join(words[i:i + COPIED_WORDS])
    return None


# ---- Where the project cites ----


class Place(typing.NamedTuple):
    path: str
    line: int


def _files(root, folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and "build" not in path.relative_to(root).parts:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def _places(text):
    for number, line in enumerate(text.splitlines(), 1):
        for match in ID.finditer(line):
            yield match.group(0), number


def code_citations(root=ROOT):
    """id -> places in what ships."""
    found = {}
    for path, text in _files(root, ("protocol", "io", "runtime"), (".c", ".h")):
        for name, number in _places(text):
            found.setdefault(name, []).append(Place(path, number))
    return found


_CHECK = re.compile(r'\.id = "([^"]+)",\s*\.musts =((?:\s*"[^"]*")+)')


def check_citations(root=ROOT):
    """check -> (ids that its registry entry declares, place)."""
    found = {}
    for path, text in _files(root, ("sim/checkers",), (".c",)):
        for match in _CHECK.finditer(text):
            place = Place(path, text.count("\n", 0, match.start()) + 1)
            found[match.group(1)] = (ID.findall(match.group(2)), place)
    return found


class Test(typing.NamedTuple):
    place: Place
    registered: bool
    ids: set


_C_TEST = re.compile(r"^static void (\w+)\(void \*\*state\)$")
_PY_TEST = re.compile(r"^def (\w+)\(")


def _tests_of_c(path, text):
    """A test's comment stands above it, after the end of what is before."""
    ids, name, place = set(), None, 0
    for number, line in enumerate(text.splitlines(), 1):
        ids |= set(ID.findall(line))
        match = _C_TEST.match(line)
        if match:
            name, place = match.group(1), number
        elif line == "}":
            if name is not None:
                yield name, Test(Place(path, place), len(re.findall(rf"\b{name}\b", text)) > 1, ids)
            ids, name = set(), None


def _tests_of_python(path, text):
    """Ids stand within the function."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if _PY_TEST.match(line)]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        name = _PY_TEST.match(lines[start]).group(1)
        body = "\n".join(lines[start:end])
        registered = name.startswith("test_") or len(re.findall(rf"\b{name}\b", text)) > 1
        yield name, Test(Place(path, start + 1), registered, set(ID.findall(body)))


def test_citations(root=ROOT):
    """"file.function" -> Test, and every id in a file of tests that stands in no test."""
    tests, stray = {}, []
    for path, text in _files(root, ("tests",), (".c", ".py")):
        find = _tests_of_c if path.endswith(".c") else _tests_of_python
        stem = pathlib.PurePosixPath(path).stem
        own = set()
        for name, test in find(path, text):
            tests[f"{stem}.{name}"] = test
            own |= test.ids
        stray += [(name, Place(path, number)) for name, number in _places(text) if name not in own]
    return tests, stray


def document_citations(root=ROOT):
    """Ids that documents and other files of this folder name."""
    return [(name, Place(path, number))
            for path, text in _files(root, ("docs",), (".md",)) if path != "docs/REQUIREMENTS.md"
            for name, number in _places(text)]


def later_parts(root=ROOT):
    """What docs/ARCHITECTURE.md says will come."""
    path = root / "docs/ARCHITECTURE.md"
    return re.findall(r"^### (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
