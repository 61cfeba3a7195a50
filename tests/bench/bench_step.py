# SPDX-License-Identifier: Apache-2.0
"""How long a step back takes at the end of a long run (bound: 200 ms in 10 million steps), and how
fast a million steps are exported. STEPS=N for another length."""
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time

PROGRAM = pathlib.Path(os.environ["FABERIO_BUILD"]) / "faberio-sim"
STEPS = os.environ.get("STEPS", "2m")


def back():
    session = subprocess.Popen([PROGRAM, "step", "--seed", "7", "--events", STEPS, "--json"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(command):
        begin = time.monotonic()
        session.stdin.write(command + "\n")
        session.stdin.flush()
        return json.loads(session.stdout.readline()), time.monotonic() - begin

    end, took = do("continue")
    print(f"{end['step']} steps forward: {took:.1f} s")
    times = sorted(do("back")[1] for _ in range(50))
    print(f"one step back: median {times[25] * 1000:.0f} ms, at most {times[-1] * 1000:.0f} ms")
    session.communicate()


def used():
    """Processor time of all children so far: fair on a busy machine."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def export():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        arguments = ["--seed", "7", "--events", "1m"]
        times = []
        for flags in (["--last", "1"], []):
            begin = used()
            subprocess.run([PROGRAM, "view", *arguments, *flags, "--perfetto", path], check=True,
                           stdout=subprocess.DEVNULL)
            times.append(used() - begin)
        print(f"a million steps: run {times[0]:.1f} s of processor time, exported in {times[1] - times[0]:.1f} s, "
              f"{path.stat().st_size >> 20} MiB")


back()
export()
