# SPDX-License-Identifier: Apache-2.0
"""Rules that keep the documents true: what they name exists."""
import glob
import posixpath
import re

from tree import Finding

_FENCE = re.compile(r"^\s*(```|~~~)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_SPAN = re.compile(r"`([^`]+)`")
_PATH = re.compile(r"^(?:\./)?(?:protocol|sim|io|runtime|fuzz|tests|docs|cmake|specs-conformance|\.ci)/[\w./*{},-]*$")
# Between these two comments a document speaks of what a later plane will bring.
_LATER = re.compile(r"<!--\s*paths:\s*(later|now)\s*-->")


def _documents(tree):
    return [path for path in tree.paths if path.endswith(".md")]


def _prose(tree, path):
    """(number, line, later) outside of fenced blocks."""
    fenced = later = False
    for number, line in enumerate(tree.lines(path), 1):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        mark = _LATER.search(line)
        if mark:
            later = mark.group(1) == "later"
        if not fenced:
            yield number, line, later


def _anchors(tree, path):
    anchors = set()
    for _, line, _ in _prose(tree, path):
        match = re.match(r"^#+\s+(.*)$", line)
        if match:
            title = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).strip().lower()
            anchors.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return anchors


def document_link(tree):
    """Relative links in documents lead to a file, and to a heading where they name one."""
    for path in _documents(tree):
        for number, line, _ in _prose(tree, path):
            for match in _LINK.finditer(_SPAN.sub("", line)):
                target, _, anchor = match.group(1).partition("#")
                if re.match(r"^[a-z]+:", target):
                    continue
                to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) \
                    if target else path
                if not tree.exists(to):
                    yield Finding(path, number, f"link to {target}, which does not exist")
                elif anchor and to.endswith(".md") and anchor not in _anchors(tree, to):
                    yield Finding(path, number, f"{to} has no heading #{anchor}")


def document_path(tree):
    """A path in a code span of a document exists (patterns match something)."""
    for path in _documents(tree):
        for number, line, later in _prose(tree, path):
            if later:
                continue
            for match in _SPAN.finditer(line):
                name = match.group(1).split()[0] if match.group(1).strip() else ""
                if not _PATH.match(name) or "NAME" in name:
                    continue
                for one in _expand(name):
                    if not glob.glob(str(tree.root / one)):
                        yield Finding(path, number, f"{one} does not exist")


def _expand(name):
    """a.{c,h} as a shell would read it."""
    match = re.search(r"\{([^{}]*)\}", name)
    if not match:
        return [name]
    return [whole for choice in match.group(1).split(",")
            for whole in _expand(name[:match.start()] + choice + name[match.end():])]


def document_command(tree):
    """`./dev WORD` in a document is a command that dev has."""
    if not tree.exists("dev"):
        return
    commands = set()
    for line in tree.lines("dev"):
        match = re.match(r"^  ([a-z]+)\b", line)
        if match:
            commands.add(match.group(1))
    for path in _documents(tree):
        for number, line in enumerate(tree.lines(path), 1):
            for match in re.finditer(r"\./dev ([a-z]+)\b", line):
                if match.group(1) not in commands | {"help"}:
                    yield Finding(path, number, f"dev has no command {match.group(1)}")


def document_counter(tree):
    """docs/OPERATIONS.md, under Counters, explains each one of protocol/core/observe.h, no other."""
    header, page = "protocol/core/observe.h", "docs/OPERATIONS.md"
    if not (tree.exists(header) and tree.exists(page)):
        return
    counted = {match.group(1): number for number, line in enumerate(tree.lines(header), 1)
               for match in [re.match(r'\s*X\(\w+, "(\w+)"\)', line)] if match}
    explained, among = {}, False
    for number, line in enumerate(tree.lines(page), 1):
        if line.startswith("#"):
            among = line.lstrip("# ") == "Counters"
        match = re.match(r"\| `(\w+)` \|", line)
        if match and among:
            explained[match.group(1)] = number
    for name in counted.keys() - explained.keys():
        yield Finding(header, counted[name], f"{page} does not explain {name}")
    for name in explained.keys() - counted.keys():
        yield Finding(page, explained[name], f"{name} is not counted")


_TEST = re.compile(r"^((?:tests|specs-conformance)/[\w./-]+\.(?:c|py)):(\w+)$")


def document_test(tree):
    """A test that a document names as `FILE:NAME` is in that file, and runs."""
    for path in _documents(tree):
        for number, line, later in _prose(tree, path):
            for span in () if later else _SPAN.findall(line):
                match = _TEST.match(span)
                if not match:
                    continue
                file, name = match.groups()
                text = "\n".join(tree.lines(file)) if tree.exists(file) else ""
                if file.endswith(".py"):
                    found = re.search(rf"^def {name}\(", text, re.M)
                else:
                    found = re.search(rf"^static void {name}\(", text, re.M) and re.search(
                        rf"\b(?:TEST|cmocka_unit_test\w*)\({name}\b", text)
                if not found:
                    yield Finding(path, number, f"there is no test {name} in {file}")


RULES = (document_link, document_path, document_command, document_counter, document_test)
