# SPDX-License-Identifier: Apache-2.0
"""The core against the model on inputs that nobody wrote; and the proof that a difference would be found."""
import os
import pathlib
import random

import pytest

import differ
from suite_adapter import Process

REFERENCE = f"{os.environ['FABERIO_BIN']} conformance adapter"
BUGS = pathlib.Path(os.environ["FABERIO_BUILD"]) / "tests/adapter_mutants"


def test_the_core_and_the_model_agree():
    adapter = Process(REFERENCE)
    assert list(differ.envelopes(adapter, random.Random(7), 4000)) == []
    assert list(differ.sessions(adapter, random.Random(7), 100)) == []
    adapter.close()


@pytest.mark.parametrize("bug", ["space-not-compared", "origin-not-compared", "future-accepted",
                                 "floor-not-compared"])
def test_a_difference_is_found(bug):
    adapter = Process(f"{BUGS} {bug}")
    wrong = next(differ.sessions(adapter, random.Random(1), 200), None)
    adapter.close()
    assert wrong is not None and wrong.startswith("the model says")
