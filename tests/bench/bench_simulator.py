# SPDX-License-Identifier: Apache-2.0
"""What working with schedules costs: a thousand of them on one core (bound: 10 s of processor time), and the
page of a minimal run (bound: 500 KiB). Of stepping and of traces: bench_step.py; of shrinking:
tests/shrink.py."""
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(os.environ["FABERIO_BUILD"]) / "faberio-sim"
SCHEDULES = sorted((ROOT / "tests" / "scenarios").rglob("*.sched"))
COUNT = 1000


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def corpus(folder):
    """The corpus again and again, until it is a thousand."""
    for i in range(COUNT):
        shutil.copy(SCHEDULES[i % len(SCHEDULES)], folder / f"{i:04}.sched")
    before = used()
    subprocess.run([PROGRAM, "test", folder], stdout=subprocess.DEVNULL, check=False)
    print(f"{COUNT} schedules, {len(SCHEDULES)} of them different: {used() - before:.1f} s of processor time")


def pages(folder):
    sizes = {}
    for schedule in sorted((ROOT / "tests" / "scenarios" / "planted").glob("*.sched")):
        page = folder / "page.html"
        subprocess.run([PROGRAM, "view", schedule, "--html", page], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        if page.exists():
            sizes[schedule.stem] = page.stat().st_size
            page.unlink()
    order = sorted(sizes, key=sizes.get)
    print(f"the page of each of {len(sizes)} minimal runs: median {sizes[order[len(order) // 2]] / 1024:.0f} KiB, "
          f"at most {sizes[order[-1]] / 1024:.0f} KiB ({order[-1]}); "
          f"{sum(size > 500 * 1024 for size in sizes.values())} above 500 KiB")


with tempfile.TemporaryDirectory() as name:
    pages(pathlib.Path(name))
with tempfile.TemporaryDirectory() as name:
    corpus(pathlib.Path(name))
