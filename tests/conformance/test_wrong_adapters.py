# SPDX-License-Identifier: Apache-2.0
"""Adapters that are wrong in one way each: the suite finds every one of them, where it should."""
import os
import pathlib
import subprocess
import sys

import pytest

import suite
import wrong_adapters
from suite_adapter import AdapterFailed, InProcess

SUITE = pathlib.Path(suite.__file__).resolve().parent
CHECKS = list(suite.checks())


def first_failure(runtime, prefix):
    """Of the checks whose names begin so, or None."""
    there = [check for check in CHECKS if check.name.startswith(prefix)]
    assert there, f"no check begins with {prefix}"
    for check in there:
        try:
            wrong = suite.run(check, InProcess(runtime))
        except AdapterFailed as failed:
            wrong = f"{check.name}: {failed}"
        if wrong is not None:
            return wrong
    return None


def test_there_are_enough():
    assert len(wrong_adapters.ALL) >= 60
    parts = {one.shown_by.partition("/")[0] for one in wrong_adapters.ALL.values()}
    assert parts == {"envelope", "sequence", "messaging", "key", "sign", "node"}


@pytest.mark.parametrize("name", wrong_adapters.ALL)
def test_a_wrong_adapter_is_caught(name):
    with wrong_adapters.adapter(name) as runtime:
        wrong = first_failure(runtime, wrong_adapters.ALL[name].shown_by)
    assert wrong is not None, f"nobody notices that it {name.replace('-', ' ')}"
    # It is its defect that is seen, not a runtime that fell over.
    assert "Error:" not in wrong, wrong


def run_suite(adapter, *options):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SUITE),
               "--adapter", adapter, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTEST_ADDOPTS": ""})


def test_the_suite_as_people_run_it(tmp_path):
    report = tmp_path / "report.html"
    program = f"{sys.executable} {SUITE / 'wrong_adapters.py'} one-level-deeper"
    done = run_suite(program, "-k", "payload/depth", "--report", str(report))
    assert done.returncode == 1, done.stdout + done.stderr
    caught = next(check for check in CHECKS if check.name == "envelope/payload/depth/arrays-17/json")
    assert f"{caught.name} ({', '.join(caught.requirements)}): accept, expected" in done.stdout
    text = report.read_text(encoding="utf-8")
    for requirement in caught.requirements:
        assert f'<tr class="failed"><td>{requirement}<' in text


@pytest.mark.parametrize("program", ["false", "/nonexistent/adapter", "yes", f"{sys.executable} -c 1"])
def test_what_is_no_adapter_is_an_error(program):
    done = run_suite(program, "-k", "hello")
    assert done.returncode == 2, done.stdout + done.stderr
