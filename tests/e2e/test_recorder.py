# SPDX-License-Identifier: Apache-2.0
"""The flight recorder: what real nodes lived through is replayed, step by step and bit by bit."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from node import BIN, HANGS_S, Net, eventually, pair


def replay(*words, binary=BIN, env=None):
    """Exit code, closing object, the lines before it, and standard error."""
    done = subprocess.run([binary, "sim", "record", *map(str, words)], capture_output=True,
                          text=True, timeout=10 * HANGS_S, check=False, env=env)
    lines = done.stdout.splitlines()
    last = json.loads(lines[-1]) if lines else None
    return done.returncode, last, lines[:-1], done.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three nodes that share a space; one is killed three times, another asked to stop."""
    directory = tmp_path_factory.mktemp("recorded")
    with Net(directory) as net:
        a, b, c = nodes = [net.node(name) for name in "abc"]
        for node in nodes:
            node.init()
            node.record = directory / f"{node.home.name}.rec"
            node.start("--record", node.record)
        a.json("space", "create", "team")
        invite = a.json("space", "invite", "team", "--uses", "2")["invite"]
        for node in (b, c):
            node.json("space", "join", invite)
            a.json("space", "approve", "team", node.id)
            eventually(lambda node=node: node.rows("space", "list")[0]["status"],
                       lambda status: status == "approved")
        wrote = []
        for turn in range(3):
            for node in nodes:
                for n in range(4):
                    row = node.json("record", "put", "team", "notes", "new",
                                    f"turn={turn}", f"secret=\"correct horse {n}\"")
                    wrote.append(row["id"])
            c.kill()
            wrote.append(a.json("record", "put", "team", "notes", wrote[0], f"again={turn}")["id"])
            c.start("--record", c.record)
        for node in nodes:
            with node.watch("team", "--since", "0") as watch:
                watch.until(wrote)
        lists = {node.call("record", "list", "team", "notes", "--json") for node in nodes}
        assert len(lists) == 1
        b.stop()
        a.kill()
    return nodes


def files(node):
    return sorted(node.record.parent.glob(node.record.name + ".*"))


def test_replays_twenty_times_with_one_hash(recorded):
    for node in recorded:
        code, last, lines, err = replay(node.record, "--home", node.home, "--times", 20)
        assert (code, last["result"], err) == (0, "pass", "")
        assert len(lines) == len(files(node))
        assert last["events"] > 100
        again = replay(node.record, "--home", node.home)
        assert again[1]["hash"] == last["hash"]
    ends = {node.home.name: replay(files(node)[0], "--home", node.home)[2][0] for node in recorded}
    assert "ends in order" in ends["b"]
    assert "not ended by the node" in ends["c"]


def test_holds_no_key_and_nothing_that_was_said(recorded):
    """Sealed: neither values nor private keys stand there; opened: no private key."""
    for node in recorded:
        secrets = [bytes.fromhex((node.home / name).read_text().split()[2])
                   for name in ("node.key", "link.key", "record.key")]
        for file in files(node):
            content = file.read_bytes()
            assert file.stat().st_mode & 0o777 == 0o600
            assert b"correct horse" not in content
            assert not any(secret in content for secret in secrets)


def test_recordings_of_several_nodes_are_one_run(recorded, tmp_path):
    """One order, in which nothing is heard before it was said; in words, as a page, for Perfetto."""
    files_of_all = [node.record for node in recorded]
    keys = [word for node in recorded for word in ("--key", node.home / "record.key")]
    code, last, lines, err = replay(*files_of_all, *keys, "--text")
    assert (code, last["result"], err) == (0, "pass", "")
    assert last["events"] == sum(replay(node.record, "--home", node.home)[1]["events"]
                                 for node in recorded)
    said = set()
    heard = 0
    for line in lines:
        words = line.split()
        tail = words[-1] if words and words[-1].startswith("..") else None
        if tail is not None and "signals to" in line:
            said.add(tail)
        if tail is not None and "hears from" in line:
            heard += 1
            assert tail in said, line
    assert heard >= 6
    assert sum("the process ends" in line for line in lines) >= 4
    assert any("applies r" in line and "o--" in line for line in lines)
    # The same order each time, and as `view`.
    assert replay(*files_of_all, *keys, "--text")[1]["hash"] == last["hash"]
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    done = subprocess.run([BIN, "sim", "view", *map(str, files_of_all), *map(str, keys), "--html",
                           str(page)], capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0 and "</html>" in page.read_text()
    assert replay(*files_of_all, *keys, "--perfetto", trace)[0] == 0
    assert json.loads(trace.read_text())


def test_an_incident_becomes_a_schedule(recorded, tmp_path):
    """What was asked and who was down when, for the simulator to play."""
    files_of_all = [node.record for node in recorded]
    keys = [word for node in recorded for word in ("--key", node.home / "record.key")]
    out = tmp_path / "incident.sched"
    code, last, _, err = replay(*files_of_all, *keys, "--schedule", out)
    assert (code, last["result"], err) == (0, "pass", "")
    text = out.read_text()
    assert "nodes 3\n" in text
    lines = [line.split() for line in text.splitlines() if line.startswith("  ")]
    changes = [line for line in lines if line[2] == "change"]
    assert len(changes) == 39
    # The first record of all is written to again after each of three kills.
    by_a = [line[3] for line in changes if line[1] in ("A", "A/2")]
    assert by_a.count(by_a[0]) == 4
    assert sum(line[1:3] == ["crash-at", "C"] for line in lines) == 3
    done = subprocess.run([BIN, "sim", "replay", out], capture_output=True, text=True,
                          timeout=10 * HANGS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "did not happen" not in done.stderr, done.stderr
    code, _, _, err = replay(*files_of_all, *keys, "--schedule", tmp_path / "no" / "such")
    assert code == 2 and "No such file or directory" in err
    # What is there, as a recording that was meant to be read, is not written over.
    code, _, _, err = replay(*files_of_all, *keys, "--schedule", out)
    assert code == 2 and "there is a file already" in err
    out.write_text("")
    assert replay(*files_of_all, *keys, "--schedule", out, "--force")[0] == 0
    assert out.read_text() == text
    done = subprocess.run([BIN, "sim", "record", *files_of_all, *keys, "--schedule", "-"],
                          capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0 and done.stdout == text


def test_another_key_opens_nothing(recorded):
    a, b, _ = recorded
    code, last, _, err = replay(a.record, "--home", b.home)
    assert (code, last) == (2, None)
    assert "made for another key" in err and str(files(a)[0]) in err
    code, _, _, err = replay(a.record, "--key", a.home / "no.key")
    assert code == 2 and "no.key" in err


def test_key_can_be_kept_elsewhere(net, tmp_path):
    """init leaves a node alone that has the public half only; a key can be given."""
    node, keeper = net.node("a"), net.node("keeper")
    node.init()
    keeper.init()
    (node.home / "record.key").rename(tmp_path / "kept.key")
    node.init()
    assert not (node.home / "record.key").exists()
    node.start("--record", tmp_path / "own")
    node.stop()
    given = (keeper.home / "record.pub").read_text().strip()
    node.start("--record", tmp_path / "given", "--record-key", given)
    node.stop()
    assert replay(tmp_path / "own", "--key", tmp_path / "kept.key")[0] == 0
    assert replay(tmp_path / "given", "--home", keeper.home)[0] == 0


def test_damage_is_named_with_its_place(recorded, tmp_path):
    a = recorded[0]
    whole = files(a)[0].read_bytes()
    bad = tmp_path / "bad"

    def said(content):
        bad.write_bytes(content)
        code, last, _, err = replay(bad, "--home", a.home)
        assert str(bad) in err + str(last)
        return code, err

    assert said(b"")[0] == 2
    assert "not a recording" in said(b"faberio-key-1 x25519 00")[1]
    assert "ends within its first" in said(whole[:40])[1]
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    code, err = said(bytes(flipped))
    assert code == 2 and "damaged at byte" in err
    assert "no such recording" in replay(tmp_path / "absent", "--home", a.home)[3]
    # Wherever a crash cuts it, what is there is replayed.
    for cut in (len(whole) - 1, len(whole) // 2, len(whole) // 3):
        bad.write_bytes(whole[:cut])
        code, last, lines, _ = replay(bad, "--home", a.home)
        assert (code, last["result"]) == (0, "pass")
        assert "not ended by the node" in lines[0]


def test_redacted_says_nothing_and_tells_the_same(recorded, tmp_path):
    a = recorded[0]
    out = tmp_path / "redacted"
    code, last, _, err = replay(files(a)[0], "--home", a.home, "--redact", out)
    assert (code, err) == (0, "")
    content = out.read_bytes()
    assert b"correct horse" not in content and b"secret" not in content
    told = replay(out)
    assert (told[0], told[1]["events"]) == (0, last["events"])
    assert "redacted" in told[2][0]
    assert replay(out, "--times", 3)[1]["hash"] == told[1]["hash"]
    simulator = Path(BIN).with_name("faberio-sim")
    if simulator.exists():
        done = subprocess.run([simulator, "record", out], capture_output=True, text=True,
                              timeout=HANGS_S, check=False)
        assert json.loads(done.stdout.splitlines()[-1])["hash"] == told[1]["hash"]
    # It is never written over.
    code, _, _, err = replay(files(a)[0], "--home", a.home, "--redact", out)
    assert code == 2 and "File exists" in err
    cut = tmp_path / "cut"
    # Wherever it ends, also between a step and its facts.
    for at in range(len(content) // 2 - 2000, len(content) // 2, 50):
        cut.write_bytes(content[:at])
        code, _, _, err = replay(cut)
        assert (code, err) == (0, ""), at
    for at in (20, len(content) // 2):
        bad = bytearray(content)
        bad[at] = 0xff
        cut.write_bytes(bytes(bad[:at + 1]) + content[at + 5:])
        code, _, _, err = replay(cut)
        assert code == 2 and "byte" in err


def test_stays_within_its_bound(net, tmp_path):
    """A full file is followed by another one, in a new incarnation that nobody notices."""
    a, b = pair(net)
    b.stop()
    record = tmp_path / "b.rec"
    b.start("--record", record, "--record-max", "8m")
    value = json.dumps("x" * 30000)
    while len(list(tmp_path.glob("b.rec.*"))) < 3:
        for _ in range(20):
            eventually(lambda: put_or_none(b, value), lambda done: done)
    rows = len(b.rows("record", "list", "team", "notes", "--limit", "1000"))
    eventually(lambda: len(a.rows("record", "list", "team", "notes", "--limit", "1000")),
               lambda count: count == rows)
    b.kill()
    assert sum(file.stat().st_size for file in tmp_path.glob("b.rec.*")) <= 9 << 20
    code, last, lines, err = replay(record, "--home", b.home)
    assert (code, last["result"], err) == (0, "pass", "")
    assert len(lines) >= 3 and "ends in order" in lines[0]


def put_or_none(node, value):
    done = subprocess.run([BIN, "record", "put", "team", "notes", "new", f"text={value}",
                           "--home", str(node.home)], capture_output=True, env=node.env,
                          timeout=HANGS_S, check=False)
    assert done.returncode in (0, 75), (done.returncode, done.stdout, done.stderr, node.lines.seen[-12:], node.call("space", "members", "team"), node.call("space", "list"))
    return done.returncode == 0


def test_refused_at_the_start(net, tmp_path):
    node = net.node("a")
    node.init()
    nowhere = tmp_path / "absent" / "rec"
    for options, word in ((("--record", nowhere), "absent"),
                          (("--record", tmp_path / "r", "--record-max", "1m"), "record-max"),
                          (("--record", tmp_path / "r", "--record-key", "beef"), "record-key")):
        done = subprocess.run([BIN, "run", "--home", node.home, "--listen", "none",
                               *map(str, options)], capture_output=True, text=True,
                              timeout=HANGS_S, env=node.env, check=False)
        assert done.returncode in (1, 2) and word in done.stderr
    os.remove(node.home / "record.pub")
    done = subprocess.run([BIN, "run", "--home", node.home, "--listen", "none", "--record",
                           str(tmp_path / "r")], capture_output=True, text=True, timeout=HANGS_S,
                          env=node.env, check=False)
    assert done.returncode == 1 and "faberio init" in done.stderr


def test_a_start_that_is_refused_leaves_the_recordings_of_who_runs(net):
    node = net.node("a")
    node.init()
    node.record = node.home.parent / "a.rec"
    node.start("--record", node.record)
    before = files(node)
    done = subprocess.run([BIN, "run", "--home", node.home, "--listen", "none", "--record",
                           node.record], capture_output=True, text=True, timeout=HANGS_S,
                          check=False)
    assert done.returncode == 1 and "in use" in done.stderr
    assert files(node) == before


def test_a_place_without_a_recording_is_named(net):
    node = net.node("a")
    node.init()
    done = subprocess.run([BIN, "run", "--home", node.home, "--listen", "none", "--record",
                           node.home / "none" / "a.rec"], capture_output=True, text=True,
                          timeout=HANGS_S, check=False)
    assert done.returncode == 1 and "none/a.rec" in done.stderr and "No such file" in done.stderr
