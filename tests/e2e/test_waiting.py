# SPDX-License-Identifier: Apache-2.0
"""A node that is there and says nothing: commands end with a word, and feeds show that they live."""
import os
import signal
import socket
import subprocess

import pytest

from node import BIN, HANGS_S, Lines

FIRST = "01890000-0000-7000-8000-00000000000a"


@pytest.fixture
def stopped(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    node.process.send_signal(signal.SIGSTOP)
    yield node
    node.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("args", [
    ["status"], ["peers"], ["peers", "add", "127.0.0.1:1"], ["space", "list"],
    ["space", "create", "other"], ["record", "put", "team", "c", "new", "a=1"],
    ["record", "get", "team", "c", FIRST], ["record", "list", "team", "c"],
    ["record", "watch", "team"], ["record", "import", "team", "c", "-"], ["app", "create", "x"],
])
def test_a_stopped_node_is_said(stopped, args):
    if args[1:2] == ["watch"]:
        args = args + ["--command-timeout", "1"]
        env = None
    else:
        env = {**stopped.env, "FABERIO_COMMAND_TIMEOUT": "1s"}
    code, err = stopped.refused(*args, stdin='{"fields":{}}\n', env=env)
    assert code == 3 and "said nothing for" in err and "stopped or very busy" in err
    assert "Traceback" not in err and str(stopped.home) in err


def test_an_import_that_nobody_answers(stopped):
    """What was sent may be stored once the node goes on."""
    code, err = stopped.refused("record", "import", "team", "c", "-", "--command-timeout", "1",
                                stdin='\n{"fields":{}}\n{"fields":{}}\n')
    assert code == 3 and "0 records are stored" in err and "--from 2" in err
    assert "lines 2 to 3 may be stored as well" in err


def test_a_full_backlog_is_the_same(stopped):
    """Who waits in front of the socket gets no further than connecting."""
    waiting = []
    directory = os.open(stopped.home, os.O_PATH)
    try:
        while True:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            waiting.append(s)
            s.connect(f"/proc/self/fd/{directory}/api.sock")
    except BlockingIOError:
        pass
    finally:
        os.close(directory)
    code, err = stopped.refused("status", "--command-timeout", "1")
    assert code == 3 and "said nothing for 1 s" in err
    for s in waiting:
        s.close()


def test_a_node_that_stops_in_a_feed_is_noticed(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    with subprocess.Popen([BIN, "record", "watch", "team", "--command-timeout", "1",
                           "--home", str(node.home)], stderr=subprocess.PIPE, text=True,
                          env=node.env) as watch:
        errors = Lines(watch.stderr)
        errors.until(lambda line: line == "watching")
        node.process.send_signal(signal.SIGSTOP)
        errors.until(lambda line: "said nothing" in line)
        assert watch.wait(timeout=HANGS_S) == 3
        node.process.send_signal(signal.SIGCONT)
        errors.close()


def test_a_feed_without_news_shows_that_it_lives(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    with node.connect() as feed:
        feed.sendall(b"GET /v1/spaces/team/changes HTTP/1.1\r\nHost: x\r\n\r\n")
        seen = b""
        while b"\n:\n\n" not in seen.replace(b"\r\n", b"\n"):
            part = feed.recv(65536)
            assert part, seen
            seen += part
    assert b": watching" in seen


@pytest.mark.parametrize("value", ["0", "soon", "-1", "", "1x"])
def test_timeouts_that_are_none(net, value):
    node = net.node("a")
    code, err = node.refused("status", "--command-timeout", value)
    assert code == 2 and "command-timeout" in err


def test_a_token_file_that_is_none(net):
    """Nothing in the token's place makes the start wait, or is taken for a secret."""
    node = net.node("a")
    node.init()
    token = node.home / "api.token"
    os.mkfifo(token, 0o600)
    code, err = node.refused("run", "--listen", "none")
    assert code == 1 and str(token) in err
    token.unlink()
    token.write_text("0" * 64 + "\n")
    token.chmod(0o640)
    code, err = node.refused("run", "--listen", "none")
    assert code == 1 and "readable by others" in err
    token.unlink()
    token.symlink_to("/dev/zero")
    code, err = node.refused("run", "--listen", "none")
    assert code == 1 and str(token) in err
