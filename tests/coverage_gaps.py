#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files with the most branches that nothing reached, from gcovr's summary."""

import json
import pathlib
import sys

SHOWN = 15


def main(path):
    files = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["files"]
    rows = sorted(((file["branch_total"] - file["branch_covered"], file) for file in files),
                  key=lambda row: (-row[0], row[1]["filename"]))
    print(f"{'branches':>8} {'of':>6} {'lines':>6}")
    for missing, file in rows[:SHOWN]:
        lines = file["line_total"] - file["line_covered"]
        print(f"{missing:>8} {file['branch_total']:>6} {lines:>6}  {file['filename']}")


if __name__ == "__main__":
    main(sys.argv[1])
