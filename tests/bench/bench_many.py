#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many records on real nodes: a chain A to B to C that is written to at one end, a node that gets its first
copy, and how soon a node answers that has them all. Rates are compared with A's own rate in the same run,
and the copy with LMDB's bulk load of the same records in the same order.

usage: bench_many.py [RECORDS]      FABERIO_BIN and FABERIO_BUILD say where the programs are."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from node import BIN, Net, eventually  # noqa: E402  (the path is set above)

BUILD = os.environ.get("FABERIO_BUILD", "build/release")
BATCH = 64
CALLERS = 8


def batches(node, count):
    """So many records, 64 in a write set, from several callers at once. How many it were, and the last one
    of each caller."""
    last = []
    body = json.dumps({"changes": [{"id": "new", "fields": {"text": "x" * 100}}] * BATCH}).encode()
    request = (b"POST /v1/spaces/bench/collections/c/records:batch HTTP/1.1\r\nHost: x\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def caller(times):
        with node.connect() as connection:
            for _ in range(times):
                answer = b""
                while not answer:
                    connection.sendall(request)
                    answer = whole(connection)
            last.append(json.loads(answer)["changes"][-1]["id"])

    each = count // BATCH // CALLERS
    threads = [threading.Thread(target=caller, args=(each,)) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return each * BATCH * CALLERS, last


def whole(connection):
    """The answer, or nothing when the node says to try again."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65536)
    head, _, rest = answer.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(rest) < length:
        rest += connection.recv(65536)
    assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503")), answer
    return rest if head.startswith(b"HTTP/1.1 200") else b""


def has(node):
    counters = node.json("status")["counters"]
    return counters["changes_applied"] + counters["changes_written"]


def memory_mib(node):
    for line in Path(f"/proc/{node.process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no RssAnon")


def join(a, node):
    node.json("space", "join", a.json("space", "invite", "bench")["invite"])
    a.json("space", "approve", "bench", node.id)
    eventually(lambda: node.rows("space", "list")[0]["status"], lambda status: status == "approved")


def wait_for(node, count, last, bound_s=3000):
    """Counted, and what was written last can be read: it is on disk."""
    end = time.monotonic() + bound_s
    while has(node) < count or not all(is_there(node, record) for record in last):
        assert time.monotonic() < end, (has(node), count)


def is_there(node, record):
    answer = node.http(f"GET /v1/spaces/bench/collections/c/records/{record} HTTP/1.1\r\nHost: x\r\n"
                       "Connection: close\r\n\r\n")
    return answer.startswith("HTTP/1.1 200")


def chain(net, count):
    """A and C listen nowhere, so what A writes passes through B."""
    a, b, c = [net.node(name) for name in "abc"]
    a.port = c.port = "none"
    for node in (a, b, c):
        node.init()
        node.start()
    b.json("space", "create", "bench")
    join(b, a)
    join(b, c)
    before = [memory_mib(node) for node in (a, b, c)]
    base = has(c)
    begun = time.monotonic()
    wrote, last = batches(a, count)
    at_a = time.monotonic() - begun
    wait_for(c, base + wrote, last)
    at_c = time.monotonic() - begun
    after = [memory_mib(node) for node in (a, b, c)]
    print(f"{wrote} records written on A in batches of {BATCH}, and on to C")
    print(f"  A {wrote / at_a:8.0f} a second   C has them at {wrote / at_c:8.0f} a second")
    print("  memory " + ", ".join(f"{x:.1f} -> {y:.1f} MiB" for x, y in zip(before, after)))
    print(f"ratio: replication keeps {at_a / at_c:.2f} of A's rate (at least 0.50 is wanted)")
    return b, wrote, last


def first_copy(net, a, count, last):
    d = net.node("d")
    d.init()
    d.start()
    join(a, d)
    begun = time.monotonic()
    wait_for(d, count, last)
    took = time.monotonic() - begun
    print(f"first copy of {count} records: {count / took:.0f} a second, "
          f"{memory_mib(d):.1f} MiB there, {memory_mib(a):.1f} MiB at who gives them")
    d.stop()
    bulk = subprocess.run([f"{BUILD}/bench/lmdb_bulk", str(d.home / "store"), "1000"], check=True,
                          stdout=subprocess.PIPE, text=True)
    rate = count / took
    for what, line in zip(("the records", "all that is kept of them"), bulk.stdout.splitlines()):
        entries, size, ns = [int(word) for word in line.split()]
        assert entries >= count, (entries, count)
        alone = count / ns * 1e9
        print(f"LMDB alone loads {what}: {entries} entries of {size / entries:.0f} bytes, 1,000 in a "
              f"transaction: {alone:.0f} records a second")
        print(f"ratio: the copy has {rate / alone:.2f} of that rate (at least 0.30 is wanted)")


def start_up(node, count):
    node.stop()
    times = []
    for _ in range(5):
        begun = time.monotonic()
        node.process = subprocess.Popen([BIN, "run", "--home", str(node.home), "--listen", "none"],
                                        stdout=subprocess.DEVNULL, env=node.env)
        while True:
            try:
                answer = node.http("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            except OSError:
                continue
            if answer.startswith("HTTP/1.1 200"):
                times.append((time.monotonic() - begun) * 1000)
                break
        node.process.terminate()
        node.process.wait()
        node.process = None
    print(f"start with {count} records, to the first 200 of /readyz: {min(times):.0f} ms at best")
    print(f"ratio: {min(times) / 50:.2f} of 50 ms (at most 1.00 is wanted)")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50000
    with tempfile.TemporaryDirectory() as directory, Net(directory) as net:
        b, wrote, last = chain(net, count)
        first_copy(net, b, wrote, last)
        start_up(b, wrote)


if __name__ == "__main__":
    main()
