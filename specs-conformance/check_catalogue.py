#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The catalogue against itself and, where they are there, the texts that it restates: every keyword
is accounted for, the texts are those that were read, no sentence is copied.

    check_catalogue.py [--text FOLDER]

FOLDER holds the specifications' texts. A clone has none; then the counts of keywords that the
catalogue itself keeps are compared with its entries."""
import argparse
import pathlib
import re
import sys

import catalogue

MEMBERS = {"id", "keyword", "covers", "place", "text", "status", "part", "why", "untestable",
           "offline", "nowhere", "checks", "tests"}


def entry_findings(document, parts):
    """What is wrong with single entries."""
    seen = set()
    for one in document.requirements:
        name = one.get("id", "?")
        missing = {"id", "keyword", "place", "text", "status"} - one.keys()
        if missing:
            yield f"{name}: no {', '.join(sorted(missing))}"
            continue
        if one.keys() - MEMBERS:
            yield f"{name}: unknown {', '.join(sorted(one.keys() - MEMBERS))}"
        if not re.fullmatch(re.escape(document.prefix) + r"-\d+(\.\d+)*-\d+", name):
            yield f"{name}: not an id of {document.name}"
        if name in seen:
            yield f"{name}: twice"
        seen.add(name)
        if one["keyword"] not in catalogue.KEYWORDS:
            yield f"{name}: no keyword: {one['keyword']}"
        if one["status"] not in catalogue.STATUSES:
            yield f"{name}: no status: {one['status']}"
        if not one["text"].strip() or not one["place"].strip():
            yield f"{name}: says nothing"
        if one["status"] == "later":
            part = one.get("part", "")
            if part not in parts and not re.match(r"unplanned: \S", part):
                yield f"{name}: docs/ARCHITECTURE.md knows no part {part!r}"
        if one["status"] in ("refused", "elsewhere") and not one.get("why", "").strip():
            yield f"{name}: {one['status']}, and no why"
        if one["status"] != "implemented" and (one.get("checks") or one.get("tests")):
            yield f"{name}: {one['status']}, and still has checks or tests"


def numbering_findings(document):
    """Numbers within a section rise from 1 without gaps, sections do not come back."""
    last = {}
    for one in document.requirements:
        section, number = catalogue.section_of(one["id"]), int(one["id"].rsplit("-", 1)[1])
        if number != last.get(section, 0) + 1:
            yield f"{one['id']}: number after {last.get(section, 0)}"
        last[section] = number


def keyword_findings(document):
    """Every keyword that the catalogue counted is some entry's, and the other way round."""
    covered = set()
    for one in document.requirements:
        section, place = catalogue.section_of(one["id"]), one.get("covers")
        if place is None:
            if one["keyword"] != "BINDS":
                yield f"{one['id']}: {one['keyword']}, and covers no keyword of the text"
            continue
        counted = document.keywords.get(section, [])
        if not 1 <= place <= len(counted):
            yield f"{one['id']}: section {section} has no keyword {place}"
            continue
        covered.add((section, place))
        expected = "BINDS" if counted[place - 1] == "NOT" else counted[place - 1]
        if one["keyword"] != expected:
            yield f"{one['id']}: {one['keyword']}, the text has {counted[place - 1]}"
    for section, counted in document.keywords.items():
        for place, keyword in enumerate(counted, 1):
            if (section, place) not in covered:
                yield f"{document.prefix}-{section}: no entry for its keyword {place}, {keyword}"


def text_findings(document, path):
    """The text as it lies there against what was read when the catalogue was written."""
    if catalogue.sha256_of(path) != document.sha256:
        yield f"{path.name}: another text than the one that was read"
    text = path.read_text(encoding="utf-8")
    counted = catalogue.count_keywords(text)
    if document.prefix == "MP":
        counted = {}  # a profile in plain words; a capital there is emphasis or a name
    for section in sorted(counted.keys() | document.keywords.keys()):
        there, here = counted.get(section, []), document.keywords.get(section, [])
        if there != here:
            yield f"{path.name}: section {section} has {there}, the catalogue {here}"
    for one in document.requirements:
        run = catalogue.copied(one["text"], text)
        if run:
            yield f"{one['id']}: copied from the text: {run!r}"


def findings(documents, parts, folder):
    for document in documents:
        wrong = list(entry_findings(document, parts))
        yield from wrong
        if wrong:
            continue
        yield from numbering_findings(document)
        yield from keyword_findings(document)
        path = pathlib.Path(folder) / document.file if folder else None
        if path is not None and path.exists():
            yield from text_findings(document, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--text", metavar="FOLDER", help="where the specifications' texts are")
    arguments = parser.parse_args()
    documents = catalogue.load()
    found = list(findings(documents, catalogue.later_parts(), arguments.text))
    for finding in found:
        print(finding)
    for document in documents:
        path = pathlib.Path(arguments.text or ".") / document.file
        compared = "compared with its text" if arguments.text and path.exists() else "no text here"
        keywords = sum(map(len, document.keywords.values()))
        print(f"{document.prefix}: {len(document.requirements)} requirements, {keywords} keywords, "
              f"{compared}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
