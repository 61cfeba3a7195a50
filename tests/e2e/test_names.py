# SPDX-License-Identifier: Apache-2.0
"""Names: one space each, none like an id, UTF-8 on every way in."""
import json
import subprocess
import threading

import pytest

from node import BIN, HANGS_S, talk

BAD = [b"\xff", b"caf\xe9", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"a\x80b"]


def started(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    return node


def post(node, path, body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = talk(node.connect(), b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                  b"Content-Length: %d\r\n\r\n" % len(body) + body)
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_two_spaces_do_not_share_a_name(net):
    node = started(net)
    code, err = node.refused("space", "create", "team")
    assert code == 5 and "called so" in err
    assert post(node, b"/v1/spaces", {"name": "team"})[0] == 409
    node.stop()
    node.start()
    assert node.refused("space", "create", "team")[0] == 5
    rows = node.rows("space", "list")
    assert len(rows) == 1
    assert rows[0]["in_doubt"] == 0 and "waits_for" not in rows[0]


def test_several_at_once_make_one(net):
    node = started(net)
    answers = []
    several = [threading.Thread(target=lambda: answers.append(
        post(node, b"/v1/spaces", {"name": "one"})[0])) for _ in range(8)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join(timeout=HANGS_S)
    assert sorted(answers) == [201] + [409] * 7
    assert [s["name"] for s in node.rows("space", "list")].count("one") == 1


def test_a_space_is_not_named_like_an_id(net):
    node = started(net)
    space = node.rows("space", "list")[0]["space_id"]
    for name in (space, "01900000-0000-7000-8000-000000000000",
                 "00000000-0000-0000-0000-000000000000"):
        code, err = node.refused("space", "create", name)
        assert code == 5 and "id of a space" in err
    assert len(node.rows("space", "list")) == 1


@pytest.mark.parametrize("bad", BAD)
def test_names_are_utf8(net, bad):
    node = started(net)
    for args in (["space", "create", bad], ["app", "create", bad], ["app", "allow", bad, "team"],
                 ["record", "put", "team", bad, "new", "a=1"], ["space", "members", bad],
                 ["record", "put", "team", "notes", "new", bad + b"=1"],
                 ["record", "put", "team", "notes", "new", b'a="' + bad + b'"'],
                 ["space", "invite", "team", "--address", bad]):
        done = subprocess.run([BIN, *args, "--home", str(node.home)], capture_output=True,
                              timeout=HANGS_S, env=net.env, check=False)
        assert done.returncode == 2 and b"UTF-8" in done.stderr, (args, done)
    escaped = b"".join(b"%%%02X" % byte for byte in bad)
    for path in (b"/v1/spaces/" + escaped + b"/members",
                 b"/v1/spaces/team/collections/" + escaped + b"/records"):
        for form in (path, path.replace(escaped, bad)):
            answer = talk(node.connect(), b"GET " + form + b" HTTP/1.1\r\nHost: x\r\n"
                          b"Connection: close\r\n\r\n")
            assert " 400 " in answer.split("\r\n")[0], answer
    for path in (b"/v1/spaces", b"/v1/apps"):
        status, problem = post(node, path, b'{"name":"' + bad + b'"}')
        assert status == 400 and problem["code"] == "request_malformed"
    assert len(node.rows("space", "list")) == 1


def test_names_of_other_alphabets_are_as_good(net):
    node = started(net)
    for name in ("Пространство", "空间", "café", "👩‍🚀"):
        node.json("space", "create", name)
        made = node.json("record", "put", name, name, "new", f'{name}="{name}"')
        assert made["fields"] == {name: name}
        assert node.json("record", "get", name, name, made["id"])["fields"] == {name: name}
