#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must not change a run does not: builds the simulator from a copy of the sources with a check,
a counter, a log line and a fault more, and compares it with the one that is built.

usage: unchanged.py [--every N] PROGRAM

The fault has no chance to be drawn; the check sees every fact and every event. Exit: 0 the runs of the
golden file have the same hashes, 1 they have not.
"""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build/unchanged"

CHECK = """/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)world;
    *(uint64_t *)own += node + fx->a;
}

static void event(fb_sim_world *world, void *own, uint32_t node, const fb_event *event)
{
    (void)world;
    *(uint64_t *)own += node + event->kind;
}

const fb_sim_check fb_sim_check_nothing = {
    .id = "nothing",
    .musts = "none",
    .cost = "O(1) a fact",
    .text = "demands nothing",
    .state_bytes = sizeof(uint64_t),
    .facts = UINT64_MAX,
    .fact = fact,
    .events = UINT64_MAX,
    .event = event,
};
"""

# (file, the text that an addition follows, the addition)
ADDITIONS = [
    ("sim/checkers/list.h", "extern const fb_sim_check fb_sim_check_tree_recomputed;\n",
     "extern const fb_sim_check fb_sim_check_nothing;\n"),
    ("sim/checkers/list.c", "const fb_sim_check *const fb_sim_check_list[] = {\n",
     "    &fb_sim_check_nothing,\n"),
    ("sim/faults.def", None, 'X(NOTHING, "nothing", PROCESS, "none", "a fault that no round draws", 0)\n'),
    ("protocol/core/observe.h", 'X(LIVES_REFUSED, "lives_refused")',
     ' \\\n    X(NOTHING, "nothing")'),
    ("protocol/link/session.c", "    link->bound_serial = ++node->links->bound_serial;\n",
     '    fb_log(node, FB_LOG_INFO, "bound", fb_span_of(link->info.peer.b, 16));\n'
     "    fb_count(node, FB_COUNTER_NOTHING, 1);\n"),
    ("protocol/messaging/receive.c", "    counts->delivered++;\n",
     '    fb_log(node, FB_LOG_INFO, "delivered", fb_span_of(e->id.b, 16));\n'),
]


def make_sources():
    target = WORK / "source"
    shutil.rmtree(target, ignore_errors=True)
    for folder in ("protocol", "io/documents", "sim", "cmake"):
        shutil.copytree(ROOT / folder, target / folder)
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy2(ROOT / name, target / name)
    (target / "sim/checkers/nothing.c").write_text(CHECK)
    for name, after, more in ADDITIONS:
        path = target / name
        text = path.read_text()
        if after is None:
            text += more
        elif text.count(after) == 1:
            text = text.replace(after, after + more)
        else:
            raise SystemExit(f"unchanged: {name} has no longer one line {after.strip()!r}")
        path.write_text(text)
    return target


def main(arguments):
    every = []
    if arguments[:1] == ["--every"]:
        every, arguments = arguments[:2], arguments[2:]
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    source, build = make_sources(), WORK / "build"
    configure = ["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                 "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DFB_DAEMON=OFF", "-DFB_TESTS=OFF"]
    for command in (configure, ["ninja", "-C", build, "--quiet", "faberio-sim"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"unchanged: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    other = build / "faberio-sim"
    names = subprocess.run([other, "checks"], capture_output=True, text=True, check=True).stdout
    if "nothing" not in names:
        raise SystemExit("unchanged: the copy has no check more")
    compare = [sys.executable, ROOT / "tests/determinism.py", "rows", *every, arguments[0], str(other)]
    return subprocess.run(compare, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
