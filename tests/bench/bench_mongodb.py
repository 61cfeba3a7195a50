# SPDX-License-Identifier: Apache-2.0
"""Records in MongoDB: the document store against mongo-c-driver alone, with the same documents in the same
batches in one run; and how long what another program changes takes to be a change of the node."""
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
os.environ.setdefault("FABERIO_BIN", "build/release/faberio")

from mongod import Mongod, collection  # noqa: E402
from node import BIN, Net, eventually  # noqa: E402

LEAST = 70  # percent of the bare program


def puts(server):
    program = Path(BIN).parent / "mongodb_puts"
    out = subprocess.run([program, server.uri("bench")], check=True, capture_output=True, text=True)
    values = dict(line.split() for line in out.stdout.splitlines())
    for name, what in (("made", "documents made"), ("replaced", "documents replaced"), ("read", "reads by id")):
        print(f"mongodb {what}: {int(values[name + '_ours_per_s']):,}/s, bare {int(values[name + '_bare_per_s']):,}/s, "
              f"{values[name + '_ratio_percent']} % (must be {LEAST} %); CPU a document "
              f"{int(values[name + '_ours_cpu_ns']) / 1000:.1f} us, bare {int(values[name + '_bare_cpu_ns']) / 1000:.1f} us")
    return all(int(values[name + "_ratio_percent"]) >= LEAST for name in ("made", "replaced", "read"))


def window(server, directory):
    with Net(directory) as net:
        a = net.node("a")
        a.init()
        a.start("--store", server.uri("window"))
        a.json("space", "create", "lab")
        record = a.json("record", "put", "lab", "notes", "new", "n=0")["id"]
        documents = lambda: a.json("status")["store"]["documents"]  # noqa: E731
        eventually(documents, lambda s: s["watch"] == "stream")
        notes, took = collection(server.client, "window", "notes"), []
        for n in range(1, 31):
            began = time.monotonic()
            notes.update_one({"_id": uuid.UUID(record)}, {"$set": {"n": n}})
            eventually(lambda: notes.find_one({"_id": uuid.UUID(record)})["_faberio"]["n"],
                       lambda number, before=n: number > before)
            took.append((time.monotonic() - began) * 1000)
        print(f"mongodb change of another program until it is the node's: median {statistics.median(took):.1f} ms, "
              f"longest {max(took):.1f} ms")


def main():
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as directory:
        server = Mongod(Path(directory) / "mongod").start()
        try:
            good = puts(server)
            window(server, directory)
        finally:
            server.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
