# SPDX-License-Identifier: Apache-2.0
"""Real processes, each with a network of its own where this machine allows that."""
import pytest

from wire import Namespaces, Relays, namespaces_work

FABRIC = Namespaces if namespaces_work() else Relays


def pytest_report_header():
    if FABRIC is Namespaces:
        return "wire: network namespaces, frames lost, doubled, late and cut"
    return "wire: RELAYS (no namespaces here, they need root): cuts alone, no loss and no doubles"


@pytest.fixture
def net(tmp_path):
    with FABRIC(tmp_path) as made:
        yield made
