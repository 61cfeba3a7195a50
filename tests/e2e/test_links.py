# SPDX-License-Identifier: Apache-2.0
"""Links to peers that stand still, that say half of something, that never stop saying it."""
import os
import signal
import socket
import subprocess

import pytest

from node import BIN, HANGS_S, eventually, pair

COLLECTION = "notes"


def metric(node, name):
    answer = node.http("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    return int(next(line for line in answer.splitlines() if line.startswith(name + " ")).split()[1])


def load(node, records, size):
    lines = "".join('{"fields":{"text":"%s"}}\n' % ("x" * size) for _ in range(records))
    assert node.json("record", "import", "team", COLLECTION, "-", stdin=lines)["imported"] == records


def count(node):
    return len(node.rows("record", "list", "team", COLLECTION))


def test_a_peer_that_stands_still_costs_no_memory(net):
    """It takes nothing, so nothing is read for it or kept for it; afterwards it gets all."""
    a, b = pair(net)
    load(a, 64, 8000)
    eventually(lambda: count(b), lambda n: n == 64)
    before = metric(a, "process_resident_memory_bytes")
    b.process.send_signal(signal.SIGSTOP)
    load(a, 1000, 8000)
    grown = metric(a, "process_resident_memory_bytes") - before
    # The store's file is mapped, so what was written may be resident once; a copy would be twice.
    assert grown < 2 * 1000 * 8000, grown
    b.process.send_signal(signal.SIGCONT)
    eventually(lambda: count(b), lambda n: n == 1064)
    assert a.stop() == b.stop() == 0


@pytest.mark.parametrize("said", [b"", b"\x00", b"\xff" * (1 << 20)])
def test_strangers_that_stay_keep_nobody_out(net, said):
    """Many that connect and say nothing, a byte, or noise without end."""
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    host, port = a.listen.rsplit(":", 1)
    strangers = []
    for _ in range(40):
        s = socket.create_connection((host, int(port)), timeout=HANGS_S)
        s.setblocking(False)
        try:
            s.send(said)
        except (BlockingIOError, ConnectionResetError, BrokenPipeError):
            pass
        strangers.append(s)
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    a.json("space", "approve", "team", b.id)
    load(a, 10, 10)
    eventually(lambda: b.rows("space", "list")[0]["status"], lambda s: s == "approved")
    eventually(lambda: count(b), lambda n: n == 10)
    for s in strangers:
        s.close()


def test_a_peer_that_resets_in_the_middle(net):
    """A reset where an end was due: no signal ends the node, and what came before counts."""
    node = net.node("a")
    node.init()
    node.start()
    host, port = node.listen.rsplit(":", 1)
    for _ in range(20):
        s = socket.create_connection((host, int(port)), timeout=HANGS_S)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        s.send(os.urandom(64))
        s.close()
    eventually(lambda: metric(node, "faberio_links"), lambda n: n == 0)
    assert node.json("status")["state"] == "running"
    assert node.stop() == 0


def test_a_feed_whose_reader_goes_is_no_end_of_the_node(net):
    """The other kind of a broken pipe."""
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    with node.connect() as feed:
        feed.sendall(b"GET /v1/spaces/team/changes HTTP/1.1\r\nHost: x\r\n\r\n")
        seen = b""
        while b"watching" not in seen:
            seen += feed.recv(65536)
    load(node, 10, 10)
    eventually(lambda: metric(node, "faberio_api_feeds"), lambda n: n == 0)
    assert node.stop() == 0


def test_a_name_with_a_dead_address_first(net):
    """localhost is ::1 and 127.0.0.1 on most machines; on all of them one of the two is enough."""
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    port = a.listen.rsplit(":", 1)[1]
    invite = a.json("space", "invite", "team", "--address", f"localhost:{port}")["invite"]
    assert b.json("space", "join", invite)["status"] == "pending"


def test_a_listener_serves_both_families(net):
    node = net.node("a")
    node.init()
    node.port = ":0"
    node.start()
    port = int(node.listen.rsplit(":", 1)[1])
    families = {"127.0.0.1"}
    if socket.has_ipv6 and "[::]" in node.listen:
        families.add("::1")
    for host in families:
        with socket.create_connection((host, port), timeout=HANGS_S):
            node.lines.until(lambda line, host=host: "event=link_opened" in line and host in line)
    done = subprocess.run([BIN, "run", "--home", str(node.home), "--listen", f"127.0.0.1:{port}"],
                          capture_output=True, text=True, env=node.env, check=False)
    assert done.returncode == 1
