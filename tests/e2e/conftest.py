# SPDX-License-Identifier: Apache-2.0
"""Real processes on loopback. Nothing here waits for a time: it waits for lines and answers."""
import pytest

from node import Net


@pytest.fixture
def net(tmp_path):
    with Net(tmp_path) as made:
        yield made
