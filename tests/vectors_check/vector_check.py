#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds vectors against the model of vector_model.py.

usage: vector_check.py FILE...

Prints each line that the specification does not allow, and the counts. Exit: 0 all vectors hold, 1 some
do not, 2 a file is no file of vectors.
"""

import collections
import json
import sys

from vector_model import Node, Wrong

FORMAT = "faberio-messaging-vectors 1"


def read(lines):
    """The vectors of a file: lists of objects, the header first."""
    vectors = []
    for text in lines:
        line = json.loads(text)
        if "vector" in line:
            if line["format"] != FORMAT:
                raise ValueError(f"format {line['format']!r}, expected {FORMAT!r}")
            vectors.append([])
        vectors[-1].append(line)
    return vectors


def check(vector):
    """None, or (place of the line, why)."""
    node = Node(vector[0])
    for place, line in enumerate(vector[1:], 1):
        try:
            node.line(line)
        except Wrong as wrong:
            return place, str(wrong)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            return place, f"{type(error).__name__}: {error}"
    try:
        node.end()
    except Wrong as wrong:
        return len(vector) - 1, str(wrong)
    return None


def count(vectors):
    """How often each verdict and each kind of line occurs."""
    total = collections.Counter()
    for vector in vectors:
        for line in vector[1:]:
            if line.get("do") == "deliver":
                total[line.get("reason", line["verdict"])] += 1
            total[f"do {line['do']}" if "do" in line else f"out {line['out']}"] += 1
    return total


def main(paths):
    if not paths:
        raise SystemExit(__doc__)
    wrong = 0
    vectors = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                these = read(file)
        except (ValueError, KeyError, IndexError) as error:
            print(f"{path}: no vectors: {error}")
            return 2
        for vector in these:
            found = check(vector)
            if found is None:
                continue
            wrong += 1
            place, why = found
            line = {k: v if len(str(v)) < 200 else str(v)[:60] + "…"
                    for k, v in vector[place].items()}
            print(f"{path}: {vector[0]['vector']}: line {place}: {why}\n    {json.dumps(line)}")
        vectors += these
    total = count(vectors)
    print(", ".join(f"{name} {n}" for name, n in sorted(total.items())))
    print(f"{len(vectors)} vectors, {total['do deliver']} deliveries: {wrong} do not hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
