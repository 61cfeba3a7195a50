# SPDX-License-Identifier: Apache-2.0
"""The files that the rules look at, and C source with comments and literals blanked out."""
import pathlib
import re
import subprocess
import typing


class Finding(typing.NamedTuple):
    path: str
    line: int
    text: str


class Tree:
    """Tracked and not ignored files below root, as paths from root with '/' between parts."""

    def __init__(self, root, paths=None):
        self.root = pathlib.Path(root)
        if paths is None:
            listed = subprocess.run(
                ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=self.root,
                check=True, capture_output=True, text=True).stdout
            paths = [path for path in listed.split("\0") if path and (self.root / path).is_file()]
        self.paths = sorted(paths)
        self._text = {}

    def bytes(self, path):
        return (self.root / path).read_bytes()

    def text(self, path):
        if path not in self._text:
            self._text[path] = self.bytes(path).decode("utf-8", "replace")
        return self._text[path]

    def lines(self, path):
        return self.text(path).splitlines()

    def is_text(self, path):
        return not path.startswith("fuzz/corpus/") and b"\0" not in self.bytes(path)

    def under(self, *folders, suffixes=(".c", ".h")):
        return [path for path in self.paths
                if path.startswith(tuple(folder + "/" for folder in folders))
                and path.endswith(suffixes)]

    def exists(self, path):
        return (self.root / path).exists()


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def _blank(match):
    text = match.group(0)
    if text[0] in "\"'":
        return text[0] + " " * (len(text) - 2) + text[-1]
    return re.sub(r"[^\n]", " ", text)


def code_of(text):
    """Same lengths and lines, but only what the compiler sees as code."""
    return _TOKEN.sub(_blank, text)


def code_lines(tree, path):
    return enumerate(code_of(tree.text(path)).splitlines(), 1)
