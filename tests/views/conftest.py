# SPDX-License-Identifier: Apache-2.0
"""Runs of the simulator, drawn."""
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("FABERIO_BUILD", "build/debug"))


class Simulator:
    """`faberio sim` of the build under test."""

    program = BUILD / "faberio-sim"

    def run(self, *arguments, code=0, text=None):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True,
                              input=text, timeout=240)
        assert done.returncode == code, done.stderr + done.stdout[-2000:]
        return done.stdout

    def verdict(self, *arguments, code=0):
        return json.loads(self.run(*arguments, code=code).splitlines()[-1])


@pytest.fixture(scope="session")
def sim():
    return Simulator()
