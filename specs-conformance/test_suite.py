# SPDX-License-Identifier: Apache-2.0
"""The suite, one test for each check: see conftest.py."""
import pytest

import suite
from suite_adapter import AdapterFailed

CHECKS = list(suite.checks())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_conforms(check, adapter, pytestconfig):
    if check.op is not None and check.op not in adapter.ops:
        lacks = f"the adapter has no `{check.op}`"
        if pytestconfig.getoption("--whole"):
            pytest.fail(lacks, pytrace=False)
        pytest.skip(lacks)
    try:
        wrong = suite.run(check, adapter)
    except AdapterFailed as failed:
        wrong = f"{check.name} ({', '.join(check.requirements)}): {failed}"
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)
