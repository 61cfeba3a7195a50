#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules that no compiler checks, one line for each finding.

usage: tidy.py [--build DIR] [--list]
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import doc_rules  # noqa: E402
import object_rules  # noqa: E402
import source_rules  # noqa: E402
from tree import Tree  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", help="build directory whose objects are read as well")
    parser.add_argument("--list", action="store_true", help="name the rules")
    options = parser.parse_args()
    text_rules = source_rules.RULES + doc_rules.RULES
    if options.list:
        for rule in (*text_rules, *object_rules.RULES):
            print(f"{rule.__name__:18} {' '.join(rule.__doc__.split())}")
        return 0
    tree = Tree(ROOT)
    found = [(rule, finding) for rule in text_rules for finding in rule(tree)]
    if options.build:
        found += object_rules.check(options.build)
    for rule, (path, line, text) in found:
        print(f"{path}:{line}: {rule.__name__}: {text}" if line else
              f"{path}: {rule.__name__}: {text}")
    count = len(text_rules) + (len(object_rules.RULES) if options.build else 0)
    print(f"tidy: {count} rules, {len(tree.paths)} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
