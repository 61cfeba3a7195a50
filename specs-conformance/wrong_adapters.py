#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runtime in Python, wrong in exactly one way: what the suite must not let pass.

    wrong_adapters.py NAME    is such an adapter
    wrong_adapters.py         names them all"""
import contextlib
import sys
import unittest.mock

import runtime_python
import wrong_encodings
import wrong_envelopes
import wrong_nodes
from wrong_base import ALL

PARTS = (wrong_encodings, wrong_envelopes, wrong_nodes)  # each adds its own to ALL


@contextlib.contextmanager
def adapter(name):
    """A runtime with that defect, for as long as the context lasts."""
    with contextlib.ExitStack() as stack:
        def patch(owner, attribute, value):
            stack.enter_context(unittest.mock.patch.object(owner, attribute, value))
        ALL[name].change(patch)
        yield runtime_python.Runtime()


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ALL:
        print("\n".join(ALL))
        return 2 if len(sys.argv) > 1 else 0
    with adapter(sys.argv[1]) as runtime:
        runtime_python.serve(runtime, sys.stdin, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
