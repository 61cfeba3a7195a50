# SPDX-License-Identifier: Apache-2.0
"""record import: JSON lines, many records a write set, and nothing half-done that is not said."""
import json
import re
import resource

import pytest

from node import eventually

COLLECTION = "notes"
FIRST = "01890000-0000-7000-8000-00000000000a"


def started(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    return node


def load(node, text, *options):
    path = node.home.parent / "records.jsonl"
    path.write_text(text)
    return node.json("record", "import", "team", COLLECTION, str(path), *options)


def lines(*objects):
    return "".join(json.dumps(o) + "\n" for o in objects)


def fields(node):
    return [r["fields"] for r in node.rows("record", "list", "team", COLLECTION)]


def test_many_records_are_few_write_sets(net):
    node = started(net)
    before = node.json("status")["counters"]["changes_written"]
    done = load(node, lines(*({"fields": {"n": i}} for i in range(200))))
    assert done == {"imported": 200, "write_sets": 4}
    assert node.json("status")["counters"]["changes_written"] == before + 200
    assert sorted(f["n"] for f in fields(node)) == list(range(200))


def test_what_list_prints_is_read_again(net):
    node, other = started(net), net.node("b")
    load(node, lines({"id": FIRST, "fields": {"a": 1.50, "b": {"c": [None, "ü"]}}},
                     {"id": "new", "fields": {}}))
    other.init()
    other.start()
    other.json("space", "create", "team")
    listed = node.call("record", "list", "team", COLLECTION, "--json")
    out = other.json("record", "import", "team", COLLECTION, "-", stdin="\n" + listed + "\n \n")
    assert out["imported"] == 2
    mine, theirs = (n.rows("record", "list", "team", COLLECTION) for n in (node, other))
    assert [(r["id"], r["fields"]) for r in mine] == [(r["id"], r["fields"]) for r in theirs]


def test_one_record_several_times(net):
    """In the order of the lines: two changes of one record are never in one write set."""
    node = started(net)
    done = load(node, lines({"id": FIRST, "fields": {"n": 1}}, {"id": FIRST, "fields": {"n": 2}},
                            {"id": FIRST, "delete": True}, {"id": FIRST, "fields": {"n": 3}}))
    assert done == {"imported": 4, "write_sets": 4}
    assert node.json("record", "get", "team", COLLECTION, FIRST)["fields"] == {"n": 3}


def test_large_records_go_in_smaller_sets(net):
    node = started(net)
    done = load(node, lines(*({"fields": {"text": "x" * size}} for size in [20000] * 5 + [49000])))
    assert done["imported"] == 6 and done["write_sets"] > 1
    assert sorted(len(f["text"]) for f in fields(node)) == [20000] * 5 + [49000]


@pytest.mark.parametrize("line, named", [
    ("{", "2: line 1"),
    ("[]", "2: "),
    ("null", "2: "),
    ('{"fields":{"a":1,"a":2}}', "2: line 1, column"),
    ('{"id":"x","fields":{}}', "2: id: a UUID"),
    ('{"id":7,"fields":{}}', "2: id: a UUID"),
    ('{"fields":[]}', "2: either fields"),
    ("{}", "2: either fields"),
    ('{"delete":true}', "2: id: which"),
    ('{"id":"%s","delete":true,"fields":{}}' % FIRST, "2: either fields"),
    ('{"id":"%s","delete":false}' % FIRST, "2: either fields"),
    ('{"fields":{},"extra":1}', "2: extra: no such member"),
    ('{"fields":{"a":1},"conflicts":{"a":[1,2]}}', "2: conflicts"),
    ('{"fields":{"a":"%s"}}' % ("x" * (1 << 20)), "2: longer"),
    ('{"fields":{"a":"\ud800"}}', "2: "),
])
def test_a_file_with_a_mistake_writes_nothing(net, line, named):
    node = started(net)
    path = net.directory / "records.jsonl"
    path.write_bytes(b'{"fields":{"n":1}}\n' + line.encode("utf-8", "surrogatepass") + b"\n")
    code, err = node.refused("record", "import", "team", COLLECTION, str(path))
    assert code == 2 and f"{path}:{named}" in err
    assert fields(node) == []


def test_what_the_node_refuses_is_named_by_its_line(net):
    """What only the node can judge: what was stored before it is said, and where to go on."""
    node = started(net)
    many = [{"fields": {"n": i}} for i in range(70)]
    many[66] = {"fields": {"$": 1, "x" * 300: 2}}
    path = net.directory / "records.jsonl"
    path.write_text(lines(*many))
    code, err = node.refused("record", "import", "team", COLLECTION, str(path))
    assert code == 1 and f"{path}:67: field" in err and "300" not in err
    assert "64 records are stored" in err and "--from 65" in err
    assert len(fields(node)) == 64
    many[66] = {"fields": {"n": 66}}
    assert load(node, lines(*many), "--from", "65")["imported"] == 6
    assert sorted(f["n"] for f in fields(node)) == list(range(70))


def test_a_full_disk_in_the_middle_is_said(net):
    node = started(net)
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    path = net.directory / "records.jsonl"
    path.write_text(lines(*({"fields": {"n": i}} for i in range(100))))
    code, err = node.refused("record", "import", "team", COLLECTION, str(path))
    assert code == 75 and re.search(r"records.jsonl:1 to 64: .*try again", err)
    assert "0 records are stored" in err and "--from 1" in err
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    eventually(lambda: node.http("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
               lambda answer: " 200 " in answer)
    assert node.json("record", "import", "team", COLLECTION, str(path))["imported"] == 100


@pytest.mark.parametrize("args, code, named", [
    (["team", COLLECTION, "/nonexistent/file"], 1, "/nonexistent/file: No such file"),
    (["team", COLLECTION, "/"], 1, "directory"),
    (["team", COLLECTION], 2, "missing"),
    (["team", COLLECTION, "-", "--from", "0"], 2, "--from"),
    (["team", COLLECTION, "-", "--from", "x"], 2, "--from"),
    (["nowhere", COLLECTION, "-"], 1, "nowhere"),
    (["team", "c" * 201, "-"], 1, "collection"),
])
def test_arguments(net, args, code, named):
    node = started(net)
    got, err = node.refused("record", "import", *args, stdin='{"fields":{}}\n')
    assert got == code and named in err


def test_an_empty_file_is_nothing(net):
    node = started(net)
    assert load(node, "") == {"imported": 0, "write_sets": 0}
    assert load(node, "\n  \n") == {"imported": 0, "write_sets": 0}
