# SPDX-License-Identifier: Apache-2.0
"""Clients of the API that say nothing, say it twice, or say it so that two readers differ."""
import json
import os
import random
import socket
import threading

import pytest

from node import HANGS_S, eventually, talk

PLACES = 128  # connections a listener holds
HEADERS_S = 10


def started(net, *options):
    node = net.node("a")
    node.init()
    node.start("--api", "127.0.0.1:0", *options)
    return node


def port(node):
    host, number = node.api.rsplit(":", 1)
    return socket.create_connection((host, int(number)), timeout=HANGS_S)


def bearer(node):
    return "Authorization: Bearer " + (node.home / "api.token").read_text().strip() + "\r\n"


def status_of(answer):
    return int(answer.split()[1])


def send_and_go(node, request):
    with node.connect() as s:
        try:
            s.setblocking(False)
            s.send(request)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass


def get(path, headers=""):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"


@pytest.mark.parametrize("said", [b"", b"GET /livez HTTP/1.1\r\nHost: loc", b"G",
                                  b"POST /v1/spaces HTTP/1.1\r\nHost: localhost\r\n"
                                  b"Content-Length: 1000\r\n\r\n{",
                                  b"POST /v1/spaces HTTP/1.1\r\nHost: localhost\r\n"
                                  b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 40000],
                         ids=["nothing", "half headers", "a letter", "half a body", "half a chunk"])
def test_many_that_say_half_a_request_keep_nobody_out(net, said):
    node = started(net)
    idle = []
    try:
        for _ in range(2 * PLACES):
            s = port(node)
            idle.append(s)
            s.sendall(said)
        # Both ways in are open at once, not after some deadline.
        for _ in range(5):
            assert status_of(talk(port(node), get("/livez"))) == 200
            assert status_of(talk(port(node), get("/v1/status", bearer(node)))) == 200
            assert node.json("status")["state"] == "running"
    finally:
        for s in idle:
            s.close()


def test_idle_ones_are_ended_at_their_deadline(net):
    node = started(net)
    with port(node) as silent, port(node) as slow, node.connect() as inside:
        slow.sendall(b"GET /livez HTTP/1.1\r\n")
        stop = threading.Event()

        def drip():
            while not stop.wait(0.5):
                try:
                    slow.sendall(b"X")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            for s in (silent, slow, inside):
                s.settimeout(3 * HEADERS_S)
                try:
                    assert s.recv(1000) == b""
                except ConnectionResetError:
                    pass
        finally:
            stop.set()
            dripping.join(timeout=HANGS_S)


def test_one_that_waits_for_changes_is_not_ended(net):
    node = started(net)
    node.json("space", "create", "team")
    with node.watch("team") as watch:
        for _ in range(2 * PLACES):
            assert status_of(node.http(get("/livez"))) == 200
        made = node.json("record", "put", "team", "notes", "new", "n=1")
        assert watch.next()["id"] == made["id"]


def test_bodies_that_never_end_take_bounded_memory(net):
    node = started(net)
    head = b"POST /v1/spaces HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" \
           b"Content-Length: 1000000\r\n\r\n"
    half = []
    for _ in range(30):
        s = port(node)
        half.append(s)
        s.sendall(head + b"x" * 999000)
    large = head + b'{"name":"' + b"x" * (1000000 - 11) + b'"}'
    answer = talk(node.connect(), large)
    assert status_of(answer) == 503, answer
    node.json("space", "create", "small")
    with open(f"/proc/{node.process.pid}/status", encoding="utf-8") as file:
        resident = int(next(line for line in file if line.startswith("RssAnon")).split()[1])
    assert resident < 64 * 1024
    for s in half:
        s.close()
    eventually(lambda: status_of(talk(node.connect(), large)), lambda status: status == 400)


def test_feeds_of_an_application_leave_room_for_others(net):
    node = started(net)
    node.json("space", "create", "team")
    token = node.json("app", "create", "editor")["token"]
    node.call("app", "allow", "editor", "team")
    feeds, statuses = [], []
    for _ in range(2 * PLACES):
        s = node.connect()
        feeds.append(s)
        s.sendall(get("/v1/spaces/team/changes", f"Authorization: Bearer {token}\r\n").encode())
        statuses.append(status_of(s.recv(4096).decode()))
    assert statuses.count(200) == 32 and statuses.count(503) == 2 * PLACES - 32
    assert node.json("status")["state"] == "running"
    node.json("record", "put", "team", "notes", "new", "n=1")
    while feeds:
        feeds.pop().close()
    with node.watch("team", "--since", "0") as watch:
        assert watch.next()["record"]["fields"] == {"n": 1}


def test_answers_that_nobody_takes_keep_nobody_out(net):
    node = started(net)
    node.json("space", "create", "team")
    for _ in range(20):
        node.json("record", "put", "team", "notes", "new", f'text="{"x" * 3000}"')
    unread = []
    for _ in range(2 * PLACES):
        s = port(node)
        unread.append(s)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        s.sendall(get("/v1/spaces/team/collections/notes/records", bearer(node)).encode())
    assert status_of(talk(port(node), get("/v1/status", bearer(node)))) == 200
    for s in unread:
        s.close()


@pytest.mark.parametrize("headers", [
    "Host: localhost\r\nHost: evil.example\r\n", "Host: localhost\r\nHost: localhost\r\n",
    "", "Host: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
    "Host: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    "Host: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Host: localhost\r\nTransfer-Encoding: xchunked\r\n",
    "Host: localhost\r\nContent-Length: +2\r\n", "Host: localhost\r\nContent-Length: 0x2\r\n",
    "Host: localhost\r\nContent-Length: -1\r\n", "Host: localhost\r\nContent-Length: \r\n",
    "Host: localhost\r\nContent-Length: 99999999999999999999\r\n",
    "Host: localhost\r\nIf-Match: \"a\"\r\nIf-Match: \"b\"\r\n",
    "Host: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n",
])
def test_requests_that_two_readers_read_differently(net, headers):
    """Refused, and what follows on the connection is not taken for another request."""
    node = started(net)
    node.json("space", "create", "team")
    smuggled = "POST /v1/spaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 19\r\n\r\n" \
               '{"name":"smuggled"}'
    answer = b""
    with node.connect() as s:
        try:
            s.sendall(f"POST /v1/spaces HTTP/1.1\r\n{headers}\r\n{smuggled}".encode())
            s.shutdown(socket.SHUT_WR)
            while part := s.recv(65536):
                answer += part
        except (BrokenPipeError, ConnectionResetError):
            pass
    statuses = [int(part.split()[0]) for part in answer.decode().split("HTTP/1.1 ")[1:]]
    # libmicrohttpd writes the head of some of its own refusals twice.
    assert set(statuses) <= {400, 413} and len(statuses) <= 2, answer
    assert [s["name"] for s in node.rows("space", "list")] == ["team"]


@pytest.mark.parametrize("request_line", [
    "GET /livez HTTP/1.1 ", "GET  /livez HTTP/1.1", "GET /livez HTTP/0.9", "GET http://x/ HTTP/1.1",
    "get /livez HTTP/1.1", "GET /livez#x HTTP/1.1", "GET //livez HTTP/1.1", "GET /livez/ HTTP/1.1",
    "GET /v1/../livez HTTP/1.1", "GET /%6civez HTTP/1.1", "OPTIONS * HTTP/1.1",
    "CONNECT evil.example:1 HTTP/1.1", "TRACE /livez HTTP/1.1",
])
def test_other_ways_to_say_a_path(net, request_line):
    node = started(net)
    answer = b""
    with node.connect() as s:
        s.settimeout(3 * HEADERS_S)
        s.sendall(f"{request_line}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        try:
            while part := s.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
    assert b" 500 " not in answer.split(b"\r\n")[0]
    assert node.json("status")["state"] == "running"


def test_arguments_of_a_query_are_known_and_once(net):
    node = started(net)
    node.json("space", "create", "team")
    records = "/v1/spaces/team/collections/notes/records"
    node.json("record", "put", "team", "notes", "new", "n=1")
    for path, named in ((f"{records}?limit=1&limit=2", "limit"), (f"{records}?limti=1", "limti"),
                        ("/v1/status?x", "x"), ("/v1/status?x=", "x"), (f"{records}?=1", ""),
                        ("/v1/spaces/team/changes?since=0&since=0", "since"),
                        (f"{records}?limit=%zz", "limit"), (f"{records}?limit=%ff", "limit"),
                        (f"{records}?Limit=1", "Limit")):
        answer = node.http(get(path))
        assert status_of(answer) == 400, (path, answer)
        assert named in json.loads(answer.partition("\r\n\r\n")[2])["detail"]
    for path in (records, f"{records}?limit=1", f"{records}?limit=%31", f"{records}?", "/livez?"):
        assert status_of(node.http(get(path))) == 200, path


def test_members_of_a_body_are_known(net):
    node = started(net)
    node.json("space", "create", "team")

    def post(path, body):
        text = json.dumps(body)
        answer = node.http(f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                           f"Content-Length: {len(text)}\r\n\r\n{text}")
        return status_of(answer), json.loads(answer.partition("\r\n\r\n")[2])

    for path, body in (("/v1/spaces", {"name": "x", "nmae": "y"}),
                       ("/v1/spaces/team/invites", {"address": "h:1", "use": 3}),
                       ("/v1/spaces/team/invites", {"address": 3}),
                       ("/v1/spaces/team/approvals", {"node_id": "0" * 32, "role": 1}),
                       ("/v1/peers", {"address": "h:1", "spaces": "team"}),
                       ("/v1/apps", {"name": "x", "token": "y"})):
        status, problem = post(path, body)
        assert status == 400, (path, body, problem)
    assert [s["name"] for s in node.rows("space", "list")] == ["team"]


def test_chunks_of_every_size(net):
    node = started(net)
    body = b'{"name":"chunked"}'
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, body[i:i + 1]) for i in range(len(body)))
    head = b"POST /v1/spaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" \
           b"Transfer-Encoding: chunked\r\n\r\n"
    assert status_of(talk(node.connect(), head + chunks + b"0\r\n\r\n")) == 201
    for wrong in (b"zz\r\n", b"-1\r\n", b"ffffffffffffffff\r\n", b"fffffffffffffffff\r\n",
                  b"5\r\nab", b"1;" + b"x" * 100000 + b"\r\n"):
        send_and_go(node, head + wrong)
    endless = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with node.connect() as s:
        answer = b""
        try:
            for _ in range(8):
                s.sendall(endless)
            s.sendall(b"0\r\n\r\n")
            while part := s.recv(65536):
                answer += part
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert answer == b"" or status_of(answer.decode()) in (400, 413)
    assert [s["name"] for s in node.rows("space", "list")] == ["chunked"]


def test_many_random_requests(net):
    node = started(net)
    draw = random.Random(7)
    parts = [b"GET ", b"POST ", b"/v1/spaces", b"/livez", b"?a=b", b" HTTP/1.1\r\n", b"Host: x\r\n",
             b"\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"{}", b"\0",
             b"Authorization: Bearer ", b"\xff", b"%", b"0\r\n", b"5\r\n", os.urandom(8)]
    for _ in range(300):
        request = b"".join(draw.choice(parts) for _ in range(draw.randint(1, 14)))
        send_and_go(node, request)
        assert status_of(node.http(get("/livez"))) == 200
    assert node.json("status")["state"] == "running"
