# SPDX-License-Identifier: Apache-2.0
"""pytest specs-conformance --adapter "CMD" [--whole] [--report OUT.html|OUT.json]...

Runs the suite against any runtime that speaks the adapter protocol (docs/ADAPTER.md). Without --adapter
it is `faberio conformance adapter`, of FABERIO_BIN or of the path."""
import os
import pathlib

import pytest

import suite_report
from suite_adapter import AdapterFailed, Process


def pytest_addoption(parser):
    group = parser.getgroup("conformance")
    group.addoption("--adapter", metavar="CMD", help="the adapter's command line")
    group.addoption("--whole", action="store_true",
                    help="what the adapter lacks is a failure: for a runtime that is to have all of it")
    group.addoption("--report", metavar="FILE", action="append", default=[],
                    help="each requirement with what became of it, as .html or .json; may repeat")


def command_of(config):
    default = f"{os.environ.get('FABERIO_BIN', 'faberio')} conformance adapter"
    return config.getoption("--adapter") or default


def pytest_configure(config):
    config.suite_results = {}
    config.suite_runtime = None


@pytest.fixture(scope="session")
def adapter(pytestconfig):
    process = Process(command_of(pytestconfig))
    try:
        answer = process.ask({"op": "hello"})
    except AdapterFailed as failed:
        pytest.exit(f"{failed}", returncode=2)
    pytestconfig.suite_runtime = answer.get("runtime")
    process.ops = answer.get("ops", [])
    yield process
    process.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    check = getattr(item, "callspec", None) and item.callspec.params.get("check")
    if check is not None and call.when == "call":
        report = outcome.get_result()
        item.config.suite_results[check.name] = {
            "requirements": list(check.requirements),
            "outcome": "not exercised" if report.skipped else report.outcome,
            "why": str(call.excinfo.value) if call.excinfo else ""}


def pytest_sessionfinish(session):
    config = session.config
    for path in config.getoption("--report"):
        suite_report.write(pathlib.Path(path), config.suite_runtime, command_of(config),
                           config.suite_results)


def pytest_report_header(config):
    return f"adapter: {command_of(config)}"
