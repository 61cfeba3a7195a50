# SPDX-License-Identifier: Apache-2.0
"""The core's own planted bugs that a peer can see in messages: the suite finds them in the reference as well,
or it is said why it cannot."""
import os
import pathlib
import re

import pytest

import suite
from suite_adapter import AdapterFailed, Process

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(os.environ["FABERIO_BUILD"]) / "tests/adapter_mutants"
PLACES = ("protocol/messaging/", "protocol/envelope/", "protocol/base/uuid.c")
ROW = re.compile(r'^X\(\w+, "([a-z-]+)", "([^"]+)"', re.MULTILINE)

BUGS = [name for name, place in ROW.findall((ROOT / "sim/mutants.def").read_text(encoding="utf-8"))
        if place.startswith(PLACES)]
# What no adapter shows, and why.
UNSEEN = {"repeated-as-new": "what goes out is the same, only the node's own account of it differs"}
CHECKS = [check for check in suite.checks()
          if check.name.startswith(("node/", "envelope/receive/", "sequence/"))]


def first_failure(name):
    adapter = Process(f"{PROGRAM} {name}")
    try:
        for check in CHECKS:
            try:
                wrong = suite.run(check, adapter)
            except AdapterFailed as failed:
                wrong = f"{check.name}: {failed}"
            if wrong is not None:
                return wrong
    finally:
        adapter.close()
    return None


def test_without_a_bug_all_is_well():
    assert first_failure("none") is None
    assert len(BUGS) >= 20 and set(UNSEEN) <= set(BUGS)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name):
    wrong = first_failure(name)
    if name in UNSEEN:
        assert wrong is None, f"it is seen after all: {wrong}"
    else:
        assert wrong is not None, "nobody notices"
