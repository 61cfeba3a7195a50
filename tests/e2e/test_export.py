# SPDX-License-Identifier: Apache-2.0
"""export and import: one moment of a space in a file, read again into a new space or a new node."""
import hashlib
import json
import os
import re
import subprocess
import threading

import pytest

from node import BIN, HANGS_S, Refused


def started(net, name="a", space="team"):
    node = net.node(name)
    node.init()
    node.start()
    if space:
        node.json("space", "create", space)
    return node


def put(node, collection, *fields, record="new", space="team"):
    return node.json("record", "put", space, collection, record, *fields)


def shown(node, space, collection):
    rows = node.rows("record", "list", space, collection)
    return [(r["id"], {n: sorted(v, key=str) if isinstance(v, list) else v
                       for n, v in r["fields"].items()}) for r in rows]


def filled(node):
    put(node, "notes", 'text="ü\\n"', 'deep={"a":[1.50,null]}', "n+=5")
    tags = put(node, "tags", 't:+="x"', "plain=[1]")["id"]
    for element in ('"y"', "3", '{"z":1}'):
        put(node, "tags", f"t:+={element}", record=tags)
    put(node, "notes", f'long="{"x" * 30000}"')
    gone = put(node, "notes", "a=1")["id"]
    node.json("record", "delete", "team", "notes", gone)
    return tags


def test_a_new_node_has_all_of_it_and_goes_on(net):
    node, other = started(net), started(net, "b", None)
    tags = filled(node)
    file = str(node.home.parent / "team.export")
    done = node.json("export", "team", file)
    assert done["records"] == 3 and done["conflicts"] == 0
    said = other.json("import", file)
    assert (said["records"], said["skipped"]) == (3, 0)
    space = said["space"]
    assert other.rows("space", "list")[0]["name"] == "team"
    assert space != done["space_id"]
    for collection in ("notes", "tags"):
        assert shown(other, space, collection) == shown(node, "team", collection)
    # What was a set or a counter is one again.
    put(other, "tags", 't:+="new"', record=tags, space=space)
    counted = [r["id"] for r in other.rows("record", "list", space, "notes") if "n" in r["fields"]]
    put(other, "notes", "n+=1", record=counted[0], space=space)
    assert other.json("record", "get", space, "notes", counted[0])["fields"]["n"] == 6


def test_once_more_changes_nothing_that_is_there(net):
    node = started(net)
    tags = filled(node)
    file = str(node.home.parent / "team.export")
    node.json("export", "team", file)
    put(node, "tags", "plain=2", record=tags)
    before = shown(node, "team", "notes"), shown(node, "team", "tags")
    said = node.json("import", file, "--space", "team")
    assert (said["records"], said["skipped"]) == (3, 3)
    assert (shown(node, "team", "notes"), shown(node, "team", "tags")) == before
    code, text = node.refused("import", file)
    assert code == 5 and "--space" in text


def test_also_without_the_node_and_never_over_a_file(net):
    node = started(net)
    filled(node)
    node.stop()
    file = node.home.parent / "team.export"
    node.json("export", "team", str(file))
    whole = file.read_bytes()
    code, text = node.refused("export", "team", str(file))
    assert code == 1 and "exists" in text
    assert file.read_bytes() == whole
    assert [p.name for p in file.parent.iterdir() if p.name.endswith(".part")] == []
    code, text = node.refused("export", "other", str(file) + "2")
    assert code == 1 and "no space other" in text


def test_one_moment_while_it_is_written(net):
    """Each batch moves one from a record to the other: the sum is the same at every moment."""
    node = started(net)
    ids = [put(node, "notes", "n=1000")["id"] for _ in range(2)]
    stop = threading.Event()

    def write():
        at = 0
        while not stop.is_set():
            at += 1
            body = json.dumps({"changes": [{"id": ids[0], "fields": {"n": 1000 - at}},
                                           {"id": ids[1], "fields": {"n": 1000 + at}}]})
            answer = node.http("POST /v1/spaces/team/collections/notes/records:batch HTTP/1.1\r\n"
                               f"Host: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
                               f"Content-Type: application/json\r\n\r\n{body}")
            assert answer.startswith("HTTP/1.1 200"), answer

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for i in range(10):
            file = node.home.parent / f"{i}.export"
            node.json("export", "team", str(file))
            rows = [json.loads(line[33:]) for line in file.read_text().splitlines()]
            assert sum(r["fields"]["n"] for r in rows if "fields" in r) == 2000
    finally:
        stop.set()
        writer.join(timeout=HANGS_S)


def changed(line, whole):
    lines = whole.splitlines(keepends=True)
    if line == "lost":
        del lines[1]
    elif line == "moved":
        lines[1], lines[2] = lines[2], lines[1]
    elif line == "doubled":
        lines.insert(1, lines[1])
    elif line == "cut":
        lines.pop()
    elif line == "torn":
        lines[-1] = lines[-1][:-5]
    elif line == "bit":
        lines[2] = lines[2][:60] + bytes([lines[2][60] ^ 1]) + lines[2][61:]
    elif line == "more":
        lines.append(lines[-1])
    elif line == "empty":
        lines = []
    return b"".join(lines)


@pytest.mark.parametrize("damage, line", [("lost", 2), ("moved", 2), ("doubled", 3), ("cut", 5),
                                          ("torn", 5), ("bit", 3), ("more", 6), ("empty", 1)])
def test_damage_is_named_and_nothing_written(net, damage, line):
    node, other = started(net), started(net, "b", None)
    filled(node)
    file = node.home.parent / "team.export"
    node.json("export", "team", str(file))
    bad = node.home.parent / "bad.export"
    bad.write_bytes(changed(damage, file.read_bytes()))
    code, text = other.refused("import", str(bad))
    assert code == 1 and f"bad.export:{line}: " in text
    assert other.rows("space", "list") == []


def test_what_is_no_export(net):
    node = started(net)
    for name, text in (("f1", "hello\n"), ("f2", "\0" * 5000), ("f3", "{}\n" * 3)):
        path = node.home.parent / name
        path.write_text(text)
        code, said = node.refused("import", str(path))
        assert code == 1 and f"{path}:1: not an export" in said
    code, said = node.refused("import", str(node.home.parent / "none"))
    assert code == 1 and "No such file" in said


def test_a_file_through_a_pipe(net):
    node, other = started(net), started(net, "b", None)
    filled(node)
    file, pipe = node.home.parent / "team.export", node.home.parent / "pipe"
    node.json("export", "team", str(file))
    os.mkfifo(pipe)
    feeder = threading.Thread(target=lambda: pipe.write_bytes(file.read_bytes()))
    feeder.start()
    assert other.json("import", str(pipe))["records"] == 3
    feeder.join(timeout=HANGS_S)
    code, said = other.refused("import", "-", stdin=file.read_text()[:-20])
    assert code == 1 and "standard input:5: damaged" in said
    code, said = other.refused("import", str(node.home))
    assert code == 1 and "Is a directory" in said


def test_a_damaged_value_is_not_exported(net):
    node = started(net)
    put(node, "notes", 'text="find-me-in-the-file"')
    node.stop()
    data = node.home / "store" / "data.mdb"
    raw = data.read_bytes()
    assert b"find-me-in-the-file" in raw
    data.write_bytes(raw.replace(b"find-me-in-the-file", b"find-me-in-the-filf"))
    done = subprocess.run([BIN, "export", "team", str(node.home.parent / "x"), "--home",
                           str(node.home)], capture_output=True, text=True, env=node.env,
                          timeout=HANGS_S, check=False)
    assert done.returncode == 1 and "does not follow its format" in done.stderr
    assert not (node.home.parent / "x").exists()


def export_of(*objects):
    """A file as docs/WIRE-FORMATS.md says it is made."""
    total = hashlib.blake2b(bytes(16) + b"faberio-export-v1\0", digest_size=16).digest()
    text = ""
    for o in objects:
        line = json.dumps(o)
        total = hashlib.blake2b(total + line.encode(), digest_size=16).digest()
        text += f"{total.hex()} {line}\n"
    return text


HEAD = {"faberio_export": 1, "space_id": "01890000-0000-7000-8000-000000000001", "name": "old"}
RECORD = {"collection": "notes", "id": "01890000-0000-7000-8000-00000000000a"}


def test_a_file_made_elsewhere(net):
    node = started(net)
    path = node.home.parent / "file"
    record = RECORD | {"fields": {"a": 1}, "conflicts": {"a": [2, "x"]}}
    path.write_text(export_of(HEAD, record, {"end": True, "records": 1}))
    code, said = node.refused("import", str(path))
    assert code == 1 and f"{path}:2: a field has several values" in said
    done = node.json("import", str(path), "--displayed")
    assert done["conflicts_dropped"] == 1
    assert shown(node, "old", "notes") == [(RECORD["id"], {"a": 1})]


def test_a_record_that_is_refused_holds_up_no_other(net):
    """What several writers made too large is in an export, and no write may make it."""
    node = started(net, space=None)
    path = node.home.parent / "file"
    ids = [f"01890000-0000-7000-8000-0000000000{n:02x}" for n in range(20)]
    records = [{"collection": "notes", "id": i, "fields": {"n": n}} for n, i in enumerate(ids)]
    records[3]["fields"] = {"x" * 300: 1}
    records[11]["fields"] = {"n": "x" * 60000}
    records[12] = {"collection": "notes", "id": ids[12], "sets": {"t": list(range(500))}}
    path.write_text(export_of(HEAD, *records, {"end": True, "records": 20}))
    code, text = node.refused("import", str(path))
    assert code == 1
    assert re.findall(rf"^faberio: {re.escape(str(path))}:(\d+): ", text, re.M) == ["5", "13", "14"]
    there = dict(shown(node, "old", "notes"))
    assert set(there) == set(ids) - {ids[3], ids[11]}
    assert 200 < len(there[ids[12]]["t"]) < 500
    assert there[ids[19]] == {"n": 19}
    with pytest.raises(Refused) as again:
        node.json("import", str(path), "--space", "old")
    said = json.loads(again.value.out)
    assert (said["left_out"], said["skipped"]) == (3, 17)


@pytest.mark.parametrize("objects, line, said", [
    ([HEAD | {"faberio_export": 2}], 1, "newer program"),
    ([HEAD, RECORD | {"id": "x"}], 2, "id of a record"),
    ([HEAD, RECORD | {"more": 1}], 2, "does not know"),
    ([HEAD, RECORD | {"fields": {"a": {"$add": 1}}}], 2, "cannot write"),
    ([HEAD, RECORD | {"counters": {"a": "1"}}], 2, "an integer"),
    ([HEAD, RECORD | {"sets": {"a": []}}], 2, "arrays"),
    ([HEAD, RECORD | {"sets": 1}], 2, "objects"),
    ([HEAD, RECORD, {"end": True, "records": 2}], 3, "other records"),
    ([HEAD, {"end": True, "records": 0}, RECORD], 3, "behind the end"),
    ([HEAD, RECORD], 3, "too early"),
])
def test_what_a_file_may_not_say(net, objects, line, said):
    node = started(net, space=None)
    path = node.home.parent / "file"
    path.write_text(export_of(*objects))
    code, text = node.refused("import", str(path))
    assert code == 1 and f"{path}:{line}: " in text and said in text
    assert node.rows("space", "list") == []


def test_verify_finds_what_is_not_whole(net):
    node = started(net)
    filled(node)
    whole = node.json("verify", "team")
    assert (whole["collections"], whole["records"], whole["damaged"]) == (2, 3, 0)
    put(node, "notes", 'text="find-me-in-the-file"')
    node.stop()
    data = node.home / "store" / "data.mdb"
    raw = data.read_bytes()
    data.write_bytes(raw.replace(b"find-me-in-the-file", b"find-me-in-the-filf"))
    code, said = node.refused("verify", "team", "--json")
    assert code == 6 and re.search(r"^notes/[0-9a-f-]{36}: the record is damaged$", said, re.M)
    data.write_bytes(raw)
    assert node.json("verify", "team")["damaged"] == 0
