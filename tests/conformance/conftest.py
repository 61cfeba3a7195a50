# SPDX-License-Identifier: Apache-2.0
"""The conformance suite's own tools can be imported here, and the other model of the vectors."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "specs-conformance"), str(ROOT / "tests/vectors_check")]
