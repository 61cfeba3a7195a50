# SPDX-License-Identifier: Apache-2.0
"""A database file that is cut, overwritten, emptied or gone: found, said, moved aside, never used."""
import json
import os
import random
import shutil
import subprocess

import pytest

from node import BIN, HANGS_S

PAGE = 4096


def filled(net, records=40):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    for i in range(records):
        node.json("record", "put", "team", "notes", "new", f'text="{i:03}{"x" * 900}"')
    return node


def data(node):
    return node.home / "store" / "data.mdb"


def starts_with_nothing(node, wrecked):
    node.start()
    assert any("event=store_moved_aside" in line and "store.damaged-1" in line and "detail=" in line
               for line in node.lines.seen), node.lines.seen
    store = node.json("status")["store"]
    assert store["found"] == "damaged" and store["damage"]
    assert store["moved_to"] == str(node.home / "store.damaged-1")
    assert store["aside"] == ["store.damaged-1"]
    assert (node.home / "store.damaged-1" / "data.mdb").read_bytes() == wrecked
    node.json("space", "create", "after")
    assert [s["name"] for s in node.rows("space", "list")] == ["after"]


def cut(keep):
    return lambda content: content[:keep]


def overwrite(first, last, byte):
    def wreck(content):
        pages = len(content) // PAGE
        last_page = pages if last is None else last
        return (content[:first * PAGE] + byte * ((last_page - first) * PAGE)
                + content[last_page * PAGE:])
    return wreck


@pytest.mark.parametrize("wreck", [
    cut(1), cut(100), cut(PAGE), cut(2 * PAGE), cut(2 * PAGE + 1), cut(5 * PAGE), cut(-20 * PAGE),
    overwrite(0, 2, b"\0"), overwrite(0, 1, b"\0"), overwrite(2, None, b"\0"),
    overwrite(2, None, b"\xff"), overwrite(2, None, b"\x5a"),
    lambda content: b"no database " * PAGE,
], ids=["1", "100", "meta", "metas", "metas+1", "5 pages", "tail", "no metas", "no first meta",
        "zeros", "ones", "Z", "text"])
def test_a_wrecked_file_is_moved_aside(net, wreck):
    node = filled(net)
    before = node.json("status")
    assert before["store"]["found"] == "nothing" and before["store"]["aside"] == []
    assert node.stop() == 0
    wrecked = wreck(data(node).read_bytes())
    data(node).write_bytes(wrecked)
    starts_with_nothing(node, wrecked)
    assert node.json("status")["incarnation"] != before["incarnation"]
    assert node.stop() == 0
    # The next start is an ordinary one, and what lies aside is not forgotten.
    node.start()
    store = node.json("status")["store"]
    assert store["found"] == "sound" and store["aside"] == ["store.damaged-1"]
    assert [s["name"] for s in node.rows("space", "list")] == ["after"]


@pytest.mark.parametrize("seed", range(12))
def test_pages_of_noise_never_kill_the_start(net, seed):
    """Whatever is overwritten: the node answers, or says in one line why it does not start."""
    node = filled(net, records=12)
    assert node.stop() == 0
    draw = random.Random(seed)
    content = bytearray(data(node).read_bytes())
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(content))
        length = draw.choice([1, 2, 8, 64, PAGE])
        content[at:at + length] = draw.randbytes(len(content[at:at + length]))
    data(node).write_bytes(content)
    node.start()
    _, _, body = node.http("GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                           ).partition("\r\n\r\n")
    store = json.loads(body)["store"]
    if store["found"] == "damaged":
        assert (node.home / "store.damaged-1" / "data.mdb").read_bytes() == bytes(content)
    assert node.process.poll() is None
    assert node.stop() == 0


def test_several_damaged_stores_lie_side_by_side(net):
    node = filled(net, records=1)
    for number in (1, 2, 3):
        assert node.stop() == 0
        data(node).write_bytes(b"%d" % number * PAGE)
        node.start()
    assert node.json("status")["store"]["aside"] == [f"store.damaged-{n}" for n in (1, 2, 3)]
    for number in (1, 2, 3):
        wrecked = (node.home / f"store.damaged-{number}" / "data.mdb").read_bytes()
        assert wrecked == b"%d" % number * PAGE


def test_damage_that_cannot_be_moved_aside_is_refused(net):
    node = filled(net, records=1)
    assert node.stop() == 0
    data(node).write_bytes(b"x" * PAGE)
    if os.geteuid() == 0:
        # Root may write anywhere; a home that is a mount point's only child may not.
        for number in range(1, 10000):
            (node.home / f"store.damaged-{number}").mkdir()
    else:
        node.home.chmod(0o500)
    code, err = node.refused("run", "--listen", "none")
    node.home.chmod(0o700)
    assert code == 1 and str(data(node)) in err and "cannot be moved aside" in err
    assert data(node).read_bytes() == b"x" * PAGE


def test_a_file_that_is_cut_under_a_running_node(net):
    node = filled(net)
    with open(data(node), "r+b") as file:
        file.truncate(2 * PAGE)
    code, _ = node.refused("record", "list", "team", "notes")
    assert code in (1, 3, 75)
    assert node.process.wait(timeout=60) == 1
    node.lines.until(lambda line: str(data(node)) in line and "next start" in line)
    node.stop()
    starts_with_nothing(node, data(node).read_bytes())


@pytest.mark.parametrize("lose", [
    lambda node: shutil.rmtree(node.home / "store"),
    lambda node: data(node).unlink(),
    lambda node: data(node).write_bytes(b""),
], ids=["directory", "file", "emptied"])
def test_a_store_that_is_gone_is_said(net, lose):
    node = filled(net, records=1)
    seen = {node.json("status")["incarnation"]}
    assert node.stop() == 0
    lose(node)
    node.start()
    assert any("event=store_lost" in line for line in node.lines.seen)
    status = node.json("status")
    assert status["store"]["found"] == "lost" and status["spaces"] == []
    assert status["incarnation"] not in seen
    assert node.stop() == 0
    node.start()
    assert not any("event=store_lost" in line for line in node.lines.seen)
    assert node.json("status")["store"]["found"] == "sound"


def test_another_nodes_store_is_refused(net):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
        assert node.stop() == 0
    shutil.move(a.home / "store", a.home / "own")
    shutil.copytree(b.home / "store", a.home / "store")
    before = data(a).read_bytes()
    code, err = a.refused("run", "--listen", "none")
    assert code == 1 and a.id in err and b.id in err and str(a.home / "store") in err
    assert data(a).read_bytes() == before
    shutil.rmtree(a.home / "store")
    shutil.move(a.home / "own", a.home / "store")
    a.start()


def test_a_first_start_is_no_loss(net):
    node = net.node("a")
    node.init()
    node.start()
    assert node.json("status")["store"]["found"] == "nothing"
    assert not any("store_lost" in line for line in node.lines.seen)
    node.kill()
    node.start()
    assert node.json("status")["store"]["found"] == "sound"


def test_nothing_is_promised_into_a_file_that_was_removed(net):
    node = filled(net, records=1)
    shutil.move(node.home / "store", node.home / "elsewhere")
    code, err = node.refused("record", "put", "team", "notes", "new", "n=1")
    assert code == 75, err
    line = node.lines.until(lambda line: "event=store_failed" in line)
    assert "removed or replaced" in line
    assert node.refused("status")[0] == 6
    shutil.move(node.home / "elsewhere", node.home / "store")
    node.lines.until(lambda line: "event=running" in line)
    assert node.json("record", "put", "team", "notes", "new", "n=1")["fields"] == {"n": 1}
    assert node.stop() == 0
    node.start()
    assert len(node.rows("record", "list", "team", "notes")) == 2


def test_scrub_looks_at_every_value(net):
    """Also at those that nobody reads, and in a store of more than one part."""
    node = filled(net, records=1)
    lines = "".join('{"fields":{"n":%d,"text":"ABCDEFGHIJKLMNOP"}}\n' % i for i in range(2000))
    lines += '{"fields":{"text":"once-in-the-store"}}\n'
    node.json("record", "import", "team", "notes", "-", stdin=lines)
    sound = node.json("scrub")
    assert sound["damaged"] == 0
    assert sound["entries"] == node.json("status")["store"]["entries"] > 4096
    assert node.stop() == 0
    # Pages that are free hold older copies: all of them are changed.
    content = data(node).read_bytes()
    assert b"once-in-the-store" in content
    data(node).write_bytes(content.replace(b"once-in-the-store", b"twice-n-the-store"))
    node.start()
    code, err = node.refused("scrub")
    assert code == 1 and "do not match" in err
    damage = next(c for c in node.json("doctor")["checks"] if c["check"] == "store_damage")
    assert damage["status"] == "warning"


def test_scrub_refuses_what_is_no_key(net):
    node = filled(net, records=1)
    for body in ('{"after":"x"}', '{"after":"0"}', '{"after":"%s"}' % ("00" * 512), '{"after":1}',
                 '{"before":""}'):
        answer = node.http("POST /v1/scrub HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}")
        assert answer.startswith("HTTP/1.1 400"), (body, answer)


def test_what_reads_a_damaged_store_ends_with_a_word(net):
    """export and verify read the file themselves: whatever page is damaged, or where it is cut."""
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    for number in range(30):
        node.json("record", "put", "team", "notes", "new", f'text="{str(number) * 400}"')
    node.stop()
    data, out = node.home / "store" / "data.mdb", node.home.parent / "out"
    good = data.read_bytes()

    def harmed():
        for at in range(2, len(good) // PAGE):
            for text in (b"\xff" * PAGE, b"\0" * PAGE, good[PAGE * (at // 2):PAGE * (at // 2 + 1)]):
                yield good[:at * PAGE] + text + good[(at + 1) * PAGE:]
        for at in (2, 5, len(good) // PAGE // 2, len(good) // PAGE - 1):
            yield good[:at * PAGE + 100]

    ended = set()
    for content in harmed():
        data.write_bytes(content)
        for words in (("verify", "team"), ("export", "team", str(out))):
            done = subprocess.run([BIN, *words, "--home", node.home], capture_output=True,
                                  text=True, timeout=HANGS_S, check=False)
            assert done.returncode in (0, 1, 6) and (done.returncode == 0 or done.stderr)
            assert out.exists() == (words[0] == "export" and done.returncode == 0)
            out.unlink(missing_ok=True)
            ended.add((words[0], done.returncode))
    assert ended >= {("verify", 1), ("verify", 6), ("export", 1)}
