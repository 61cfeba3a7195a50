#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads of one record over the API's socket, keep-alive, compared with libmicrohttpd alone that answers
a constant of the same size to the same requests. What is compared is the processor time of the server
for each request: rates would measure whoever asks.

usage: bench_http.py [REQUESTS]     FABERIO_BIN and FABERIO_BUILD say where the programs are."""
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from node import Net, connect_unix  # noqa: E402  (the path is set above)

BUILD = os.environ.get("FABERIO_BUILD", "build/release")
ROUNDS = 5


def processor_ns(pid):
    """Of all its threads, in nanoseconds."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in Path(f"/proc/{pid}/task").iterdir())


def answer_length(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    head, _, rest = head.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert head.startswith(b"HTTP/1.1 200"), head
    while len(rest) < length:
        rest += connection.recv(65536)
    return len(head) + 4 + length, length


def cost(pid, connection, request, requests):
    """Nanoseconds of processor time for each."""
    connection.sendall(request)
    whole, _ = answer_length(connection)
    before = processor_ns(pid)
    for _ in range(requests):
        connection.sendall(request)
        connection.recv(whole, socket.MSG_WAITALL)
    return (processor_ns(pid) - before) / requests


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as directory, Net(directory) as net:
        node = net.node("a")
        node.init()
        node.start()
        space = node.json("space", "create", "bench")["space_id"]
        record = node.json("record", "put", "bench", "c", "new", f'text="{"x" * 200}"')["id"]
        request = (f"GET /v1/spaces/{space}/collections/c/records/{record} HTTP/1.1\r\n"
                   "Host: localhost\r\n\r\n").encode()
        asking = node.connect()
        asking.sendall(request)
        _, length = answer_length(asking)
        path = str(Path(directory) / "bare.sock")
        with subprocess.Popen([f"{BUILD}/interop/bare_http", path, str(length)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bare:
            bare.stdout.readline()
            other = connect_unix(path)
            own, alone = [], []
            for _ in range(ROUNDS):
                own.append(cost(node.process.pid, asking, request, requests))
                alone.append(cost(bare.pid, other, request, requests))
            bare.stdin.close()
        ratio = min(alone) / min(own)
        print(f"{ROUNDS} times {requests} reads of one record of {length} bytes, keep-alive")
        print(f"  the node              {min(own) / 1000:6.1f} us of processor time each")
        print(f"  libmicrohttpd alone   {min(alone) / 1000:6.1f} us")
        print(f"ratio: the node answers {ratio:.2f} of what libmicrohttpd alone does in the same "
              "time (at least 0.70 is wanted)")


if __name__ == "__main__":
    main()
