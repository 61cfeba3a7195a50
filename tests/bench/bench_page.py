#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a browser takes to open the page of a run that fails early, beside an empty page.

usage: bench_page.py     FABERIO_BUILD says where the programs are, CHROMIUM which browser."""
import os
import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

BUILD = os.environ.get("FABERIO_BUILD", "build/release")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ROUNDS = 7
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def opened_ms(browser, path):
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_load_state("load")
    page.wait_for_function(f"{LOADED} > 0")
    took = page.evaluate(LOADED)
    page.close()
    return took


def main():
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        empty, run = Path(directory) / "empty.html", Path(directory) / "run.html"
        empty.write_text("<!doctype html><title>empty</title>")
        # Exit 10: it fails, as it should.
        subprocess.run([f"{BUILD}/faberio-sim", "view", "--seed", "1", "--mutant",
                        "answered-when-executed", "--html", str(run)], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        times = {path: sorted(opened_ms(browser, path) for _ in range(ROUNDS)) for path in (empty, run)}
        browser.close()
        print(f"the page of a run, {run.stat().st_size} bytes (at most 512,000 are wanted), opened {ROUNDS} times")
        for name, path in (("an empty page", empty), ("the run", run)):
            print(f"  {name:15} {times[path][ROUNDS // 2]:7.0f} ms, at most {times[path][-1]:.0f} ms")
        print(f"ratio: {times[run][ROUNDS // 2] / times[empty][ROUNDS // 2]:.1f} times an empty page "
              "(a second is the goal)")


if __name__ == "__main__":
    main()
