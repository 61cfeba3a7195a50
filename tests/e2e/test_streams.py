# SPDX-License-Identifier: Apache-2.0
"""Requests that wait: change feeds and joins, their clients going away, the node being stopped."""
import json
import re
import shutil
import socket
import subprocess

import pytest

from node import BIN, HANGS_S, Lines, eventually


def gauge(node, name):
    metrics = node.http("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    return int(re.search(rf"^faberio_{name} (\d+)$", metrics, re.MULTILINE).group(1))


def alone(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    return node


def put(node, number):
    return node.json("record", "put", "team", "notes", "new", f"n={number}")["id"]


def test_a_watcher_that_goes_is_forgotten(net):
    node = alone(net)
    watches = [node.watch("team") for _ in range(5)]
    assert gauge(node, "requests") == 5
    record = put(node, 1)
    for watch in watches:
        assert watch.next()["id"] == record
        watch.close()
    eventually(lambda: gauge(node, "requests"), lambda open_: open_ == 0)
    put(node, 2)


def test_streams_end_with_the_node(net):
    node = alone(net)
    watches = [node.watch("team") for _ in range(3)]
    assert node.stop() == 0
    for watch in watches:
        assert watch.process.wait(timeout=HANGS_S) == 75
        watch.close()


def test_a_slow_reader_holds_nobody_up(net):
    node = alone(net)
    ids = [put(node, i) for i in range(3)]
    with node.connect() as slow:
        # The smallest buffer there is: what the reader does not take stays in the node.
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        slow.sendall(b"GET /v1/spaces/team/changes?since=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        with node.watch("team", "--since", "0") as quick:
            ids += [put(node, i) for i in range(100)]
            quick.until(ids)
        text = b""
        while text.count(b"event: change") < len(ids) or not text.endswith(b"\n\n\r\n"):
            part = slow.recv(65536)
            assert part
            text += part
    body = b"".join(re.split(rb"\r\n[0-9a-f]+\r\n", text))
    assert [n.decode() for n in re.findall(rb'"id":"([0-9a-f-]{36})","record"', body)] == ids


def feed(node, query, header=""):
    """(cursor, change) of each event."""
    with node.connect() as s:
        s.sendall(f"GET /v1/spaces/team/changes{query} HTTP/1.1\r\nHost: x\r\n"
                  f"{header}\r\n".encode())
        file = s.makefile("r")
        for line in file:
            if line.startswith("id: "):
                cursor = line[4:].strip()
            elif line.startswith("data: "):
                yield cursor, json.loads(line[6:])


def test_feed_resumes_by_last_event_id(net):
    node = alone(net)
    ids = [put(node, i) for i in range(4)]
    events = feed(node, "?since=0")
    cursors = [next(events)[0] for _ in ids]
    events = feed(node, "", f"Last-Event-ID: {cursors[1]}\r\n")
    assert [next(events)[1]["id"] for _ in ids[2:]] == ids[2:]


def test_a_change_comes_with_its_record(net):
    node = alone(net)
    with node.watch("team") as watch:
        made = node.json("record", "put", "team", "notes", "new", "n=1", 'text="a"')
        told = watch.next()
        assert told["change"] == "changed" and told["collection"] == "notes"
        assert told["record"] == made and told["id"] == made["id"]
        changed = node.json("record", "put", "team", "notes", made["id"], "n=2")
        assert watch.next()["record"] == changed
        node.json("record", "delete", "team", "notes", made["id"])
        told = watch.next()
        assert told["change"] == "deleted" and told["record"] is None and told["id"] == made["id"]
    # What is told later is the record as it is then.
    kept = put(node, 7)
    cursors = []
    with node.watch("team", "--since", "0") as watch:
        for _ in range(4):
            told = watch.next()
            cursors.append(int(told["cursor"].split("-")[0]))
            if told["id"] == made["id"]:
                assert told["record"] is None
            else:
                assert told["id"] == kept and told["record"]["fields"]
    assert cursors == sorted(cursors)


def test_large_records_pass_a_feed_one_after_the_other(net):
    node = alone(net)
    value = "x" * 40000
    ids = [node.json("record", "put", "team", "notes", "new", f'text="{value}"')["id"]
           for _ in range(30)]
    with node.connect() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        slow.sendall(b"GET /v1/spaces/team/changes?since=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        with node.watch("team", "--since", "0") as quick:
            for wanted in ids:
                told = quick.next()
                assert told["id"] == wanted and told["record"]["fields"]["text"] == value
        text = b""
        while text.count(b"event: change") < len(ids):
            part = slow.recv(65536)
            assert part
            text += part


def test_feed_refuses_what_is_no_cursor(net):
    node = alone(net)
    with node.connect() as s:
        s.sendall(b"GET /v1/spaces/team/changes?since=x HTTP/1.1\r\nHost: x\r\n"
                  b"Connection: close\r\n\r\n")
        answer = s.makefile().read()
    assert answer.startswith("HTTP/1.1 400") and "since" in answer


def test_a_cursor_names_its_space(net):
    """One life writes to both: numbers and life are the same in both."""
    node = alone(net)
    node.json("space", "create", "other")
    for number in range(3):
        put(node, number)
        node.json("record", "put", "other", "notes", "new", "n=1")
    cursor = begins_at(node)
    answer = node.http(f"GET /v1/spaces/other/changes?since={cursor} HTTP/1.1\r\nHost: x\r\n"
                       "Connection: close\r\n\r\n")
    assert answer.startswith("HTTP/1.1 410") and "cursor_unknown" in answer


def test_a_feed_ends_for_who_may_not_use_the_space_any_more(net):
    node = alone(net)
    token = node.json("app", "create", "editor")["token"]
    node.call("app", "allow", "editor", "team")
    record = put(node, 1)
    with node.connect() as s:
        s.sendall(f"GET /v1/spaces/team/changes HTTP/1.1\r\nHost: x\r\n"
                  f"Authorization: Bearer {token}\r\n\r\n".encode())
        lines = s.makefile("r")
        while not next(lines).startswith("id: "):
            pass
        node.call("app", "revoke", "editor")
        node.json("record", "delete", "team", "notes", record)
        rest = lines.read()
    assert record not in rest and "not_authorised" in rest


@pytest.mark.parametrize("cursor", ["18446744073709551615", "18446744073709551616",
                                    "99999999999999999999999", "-1", "+1", "1.0", "0x1", "", "1",
                                    "1-", "0-0000000000000000", "1-000000000000000",
                                    "1-00000000000000000", "1-000000000000000G",
                                    "1-0000000000000000", "1-0000000000000000-0000000",
                                    "1-0000000000000000-000000000", "1-0000000000000000000000000",
                                    "0-0000000000000000-00000000"])
def test_cursors_that_cannot_be(net, cursor):
    node = alone(net)
    request = f"GET /v1/spaces/team/changes?since={cursor} HTTP/1.1\r\nHost: x\r\n" \
              "Connection: close\r\n\r\n"
    assert node.http(request).startswith("HTTP/1.1 400")


def begins_at(node):
    """The cursor that a feed of what is new begins with."""
    with node.connect() as s:
        s.sendall(b"GET /v1/spaces/team/changes HTTP/1.1\r\nHost: x\r\n\r\n")
        for line in s.makefile("r"):
            if line.startswith("id: "):
                return line[4:].strip()


def test_a_cursor_outlives_a_restart_and_what_is_written_meanwhile(net):
    node = alone(net)
    put(node, 1)
    cursor = begins_at(node)
    first = put(node, 2)
    node.kill()
    node.start()
    second = put(node, 3)
    with node.watch("team", "--since", cursor) as watch:
        told = [watch.next(), watch.next()]
    assert [t["id"] for t in told] == [first, second]
    with node.watch("team", "--since", told[0]["cursor"]) as watch:
        assert watch.next() == told[1]


def test_a_store_that_was_set_back_refuses_what_it_gave_since(net, tmp_path):
    node = alone(net)
    put(node, 1)
    before = begins_at(node)
    node.stop()
    shutil.copytree(node.home / "store", tmp_path / "store")
    node.start()
    for number in range(3):
        put(node, number)
    lost = begins_at(node)
    node.stop()
    shutil.rmtree(node.home / "store")
    shutil.copytree(tmp_path / "store", node.home / "store")
    node.start()
    ids = [put(node, number) for number in range(4)]
    with node.watch("team", "--since", before) as watch:
        assert [watch.next()["id"] for _ in ids] == ids
    answer = node.http(f"GET /v1/spaces/team/changes?since={lost} HTTP/1.1\r\nHost: x\r\n"
                       "Connection: close\r\n\r\n")
    assert answer.startswith("HTTP/1.1 410") and "cursor_unknown" in answer
    code, said = node.refused("record", "watch", "team", "--since", lost)
    assert code == 1 and "set back" in said and "list the records" in said


def test_a_join_waits_for_the_inviter(net):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    invite = a.json("space", "invite", "team")["invite"]
    a.kill()
    join = subprocess.Popen([BIN, "space", "join", invite, "--json", "--home", str(b.home)],
                            stdout=subprocess.PIPE, text=True, env=net.env)
    b.lines.until(lambda line: "event=dial_failed" in line)
    assert join.poll() is None
    a.start()
    out, _ = join.communicate(timeout=HANGS_S)
    assert join.returncode == 0 and json.loads(out)["status"] == "pending"


def test_a_join_that_is_given_up_does_not_hold_the_node(net):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    invite = a.json("space", "invite", "team")["invite"]
    a.kill()
    argv = [BIN, "space", "join", invite, "--home", str(b.home)]
    join = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=net.env)
    eventually(lambda: gauge(b, "requests"), lambda open_: open_ == 1)
    join.kill()
    join.wait(timeout=HANGS_S)
    join.stderr.close()
    eventually(lambda: gauge(b, "requests"), lambda open_: open_ == 0)
    join = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=net.env)
    said = Lines(join.stderr)
    eventually(lambda: gauge(b, "requests"), lambda open_: open_ == 1)
    assert b.stop() == 0
    assert join.wait(timeout=HANGS_S) == 75
    assert "try again" in said.next()
    said.close()
