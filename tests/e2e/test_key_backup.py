# SPDX-License-Identifier: Apache-2.0
"""Backups of a node's keys, and that no key is used twice without somebody saying so."""
import array
import fcntl
import json
import os
import shutil
import subprocess
import termios
import threading

import pytest

from node import BIN, HANGS_S, eventually, pair

PASSPHRASE = "correct horse battery staple"


def key(*words, stdin=None, env=None):
    done = subprocess.run([BIN, "key", *map(str, words)], input=stdin, text=True,
                          capture_output=True, timeout=HANGS_S, env=env, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def made(net):
    node = net.node("a")
    node.recovery = node.init()["recovery_key"]
    return node


@pytest.mark.parametrize("how", ["recovery", "passphrase"])
def test_backup_and_restore(net, made, tmp_path, how):
    out = tmp_path / "backup"
    secret = tmp_path / "secret"
    secret.write_text((made.recovery if how == "recovery" else PASSPHRASE) + "\n")
    seal = ("--passphrase-file", secret) if how == "passphrase" else ()
    code, said, err = key("backup", out, "--home", made.home, *seal)
    assert (code, json.loads(said)["node_id"]) == (0, made.id) and how in err
    assert out.stat().st_mode & 0o777 == 0o600
    content = out.read_bytes()
    for name in ("node.key", "link.key", "record.key"):
        assert bytes.fromhex((made.home / name).read_text().split()[2]) not in content
    # Never written over.
    code, _, err = key("backup", out, "--home", made.home, *seal)
    assert code == 1 and "File exists" in err

    other = net.node("restored")
    opens = (f"--{how}-file", secret)
    code, _, err = key("restore", out, "--home", other.home, *opens)
    assert code == 5 and "--original-is-gone" in err and not other.home.exists()
    code, said, err = key("restore", out, "--home", other.home, *opens, "--original-is-gone")
    assert (code, err) == (0, "") and json.loads(said)["node_id"] == made.id
    for name in ("node.key", "link.key", "record.key", "recovery.pub", "record.pub"):
        assert (other.home / name).read_text() == (made.home / name).read_text()
        assert (other.home / name).stat().st_mode & 0o777 == 0o600
    code, _, err = key("restore", out, "--home", other.home, *opens, "--original-is-gone")
    assert code == 5 and "there is a node already" in err


def test_wrong_secrets_and_damage(made, tmp_path):
    out, bad, wrong = tmp_path / "backup", tmp_path / "bad", tmp_path / "wrong"
    assert key("backup", out, "--home", made.home, "--passphrase-file", "-", stdin=PASSPHRASE)[0] == 0

    def restore(file, *words, stdin=PASSPHRASE):
        return key("restore", file, "--home", tmp_path / "x", "--original-is-gone", *words,
                   stdin=stdin)

    assert restore(out, "--passphrase-file", "-", stdin=PASSPHRASE + "r")[0] == 4
    wrong.write_text(made.recovery)
    code, _, err = restore(out, "--recovery-file", wrong)
    assert code == 2 and "--passphrase-file" in err
    wrong.write_text("beef")
    assert restore(out, "--recovery-file", wrong)[0] == 1
    content = out.read_bytes()
    for cut in (0, 10, 17, 40, len(content) - 1):
        bad.write_bytes(content[:cut])
        code, _, err = restore(bad, "--passphrase-file", "-")
        assert code == 1 and "not a backup" in err and str(bad) in err
    changed = bytearray(content)
    changed[-1] ^= 1
    bad.write_bytes(changed)
    assert restore(bad, "--passphrase-file", "-")[0] == 4
    greedy = bytearray(content)
    greedy[25:33] = (1 << 40).to_bytes(8, "big")  # memory that nobody has
    bad.write_bytes(greedy)
    assert restore(bad, "--passphrase-file", "-")[0] == 1
    assert not (tmp_path / "x").exists()
    for stdin in ("short", ""):
        assert key("backup", tmp_path / "y", "--home", made.home, "--passphrase-file", "-",
                   stdin=stdin)[0] == 2
    assert key("backup", tmp_path / "y", "--home", tmp_path / "nobody")[0] == 1
    assert not (tmp_path / "y").exists()


def test_a_restore_goes_on_and_changes_nothing_of_others(made, tmp_path):
    out, home = tmp_path / "backup", tmp_path / "x"
    assert key("backup", out, "--home", made.home, "--passphrase-file", "-", stdin=PASSPHRASE)[0] == 0

    def restore():
        return key("restore", out, "--home", home, "--passphrase-file", "-", "--original-is-gone",
                   stdin=PASSPHRASE)

    home.mkdir(mode=0o700)
    for leaf, other in (("link.key", "faberio-key-1 x25519 " + "5" * 64),
                        ("record.key", "faberio-key-1 x25519 " + "5" * 64),
                        ("recovery.pub", "5" * 64)):
        (home / leaf).write_text(other + "\n")
        (home / leaf).chmod(0o600)
        code, _, err = restore()
        assert code == 5 and leaf in err
        assert [p.name for p in home.iterdir()] == [leaf]
        assert (home / leaf).read_text() == other + "\n"
        (home / leaf).unlink()
    # One that was cut off before its end is begun again.
    for leaf in ("recovery.pub", "link.key"):
        shutil.copy(made.home / leaf, home / leaf)
    assert restore()[0] == 0
    assert (home / "node.key").read_text() == (made.home / "node.key").read_text()


def test_a_backup_comes_through_a_pipe(made, tmp_path):
    out, pipe = tmp_path / "backup", tmp_path / "pipe"
    assert key("backup", out, "--home", made.home, "--passphrase-file", "-", stdin=PASSPHRASE)[0] == 0
    content = out.read_bytes()
    os.mkfifo(pipe)

    def feed():
        with open(pipe, "wb", buffering=0) as f:
            f.write(content[:20])
            while array.array("i", fcntl.ioctl(f, termios.FIONREAD, b"\0" * 4))[0] != 0:
                os.sched_yield()  # until that much of it was read alone
            f.write(content[20:])

    feeder = threading.Thread(target=feed)
    feeder.start()
    code, _, err = key("restore", pipe, "--home", tmp_path / "x", "--passphrase-file", "-",
                       "--original-is-gone", stdin=PASSPHRASE)
    feeder.join(timeout=HANGS_S)
    assert (code, err) == (0, "")


def test_one_key_is_not_run_twice_on_a_machine(net, made):
    made.start()
    copy = net.node("copy")
    shutil.copytree(made.home, copy.home, ignore=shutil.ignore_patterns("api.sock", "store*"))
    for _ in range(70):  # more often than a queue of connections is long
        done = subprocess.run([BIN, "run", "--home", copy.home, "--listen", "none"], text=True,
                              capture_output=True, timeout=HANGS_S, env=net.env, check=False)
        assert done.returncode == 1
        assert made.id in done.stderr and str(made.process.pid) in done.stderr
    # When the first one is gone, however it ended, the copy is the node.
    made.kill()
    copy.start()
    assert copy.json("status")["node_id"] == made.id


def test_a_restored_node_gets_its_records_back(net, tmp_path):
    """Keys alone: what peers have of the node comes back, and nothing is forked."""
    a, b = pair(net)
    wrote = [b.json("record", "put", "team", "notes", "new", f"n={n}")["id"] for n in range(3)]
    with a.watch("team", "--since", "0") as watch:
        watch.until(wrote)
    out = tmp_path / "backup"
    assert key("backup", out, "--home", b.home, "--passphrase-file", "-", stdin=PASSPHRASE)[0] == 0
    b.stop()
    again = net.node("again")
    assert key("restore", out, "--home", again.home, "--passphrase-file", "-", "--original-is-gone",
               stdin=PASSPHRASE)[0] == 0
    again.start()
    again.json("space", "join", a.json("space", "invite", "team")["invite"])
    eventually(lambda: again.rows("space", "list")[0]["status"], lambda s: s == "approved")
    with again.watch("team", "--since", "0") as watch:
        watch.until(wrote)
    row = again.json("record", "put", "team", "notes", "new", "n=99")["id"]
    with a.watch("team", "--since", "0") as watch:
        watch.until([row])
