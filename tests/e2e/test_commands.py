# SPDX-License-Identifier: Apache-2.0
"""One node and its commands: what they print, how they refuse."""
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess

import pytest

from node import BIN, HANGS_S, Lines, eventually


def test_init_makes_keys_once(net):
    node = net.node("a")
    first = node.init()
    assert re.fullmatch("[0-9a-f]{32}", first["node_id"])
    assert re.fullmatch("[0-9a-f]{64}", first["recovery_key"])
    assert len(first["fingerprint"].split("-")) == 10
    assert first["home"] == str(node.home)
    assert stat.S_IMODE(node.home.stat().st_mode) == 0o700
    for name in ("node.key", "link.key", "recovery.pub"):
        assert stat.S_IMODE((node.home / name).stat().st_mode) == 0o600
    before = {p.name: p.read_bytes() for p in node.home.iterdir()}
    again = node.init()
    assert "recovery_key" not in again
    assert again["node_id"] == first["node_id"]
    assert {p.name: p.read_bytes() for p in node.home.iterdir()} == before
    for content in before.values():
        assert first["recovery_key"].encode() not in content


def test_init_while_the_node_runs_and_several_at_once(net):
    node = net.node("a")
    argv = [BIN, "init", "--json", "--home", str(node.home)]
    several = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=net.env)
               for _ in range(4)]
    answers = [json.loads(p.communicate(timeout=HANGS_S)[0]) for p in several]
    assert len({a["node_id"] for a in answers}) == 1
    assert sum("recovery_key" in a for a in answers) == 1
    node.start()
    assert node.init()["node_id"] == answers[0]["node_id"]


def test_keys_that_others_can_read_are_refused(net):
    node = net.node("a")
    node.init()
    (node.home / "node.key").chmod(0o644)
    code, err = node.refused("run")
    assert code == 1 and str(node.home / "node.key") in err
    (node.home / "node.key").chmod(0o600)
    (node.home / "node.key").write_text("faberio-key-1 ed25519 zz\n")
    code, err = node.refused("run")
    assert code == 1 and str(node.home / "node.key") in err


def test_without_a_node(net):
    node = net.node("a")
    code, err = node.refused("run")
    assert code == 1 and "faberio init" in err
    code, err = node.refused("status")
    assert code == 3 and "no node runs" in err
    node.init()
    assert node.refused("status")[0] == 3
    assert not (node.home / "store").exists()


def test_run_and_status(net):
    node = net.node("a")
    made = node.init()
    banner = node.start("--api", "127.0.0.1:0")
    assert banner[0].startswith("faberio ")
    assert made["node_id"] in banner[1] and made["fingerprint"] in banner[1]
    assert banner[2] == "spaces  none"
    status = node.json("status")
    assert status["node_id"] == made["node_id"]
    assert status["version"] == banner[0].split()[1]
    assert status["uptime_ms"] >= 0 and status["started"].endswith("Z")
    assert status["state"] == "running"
    assert status["spaces"] == [] and status["peers"] == []
    assert status["store"]["kind"] == "local" and status["store"]["failures"] == 0
    assert status["listen"] == node.listen
    assert node.json("peers") == {"peers": []}
    assert stat.S_IMODE((node.home / "api.sock").stat().st_mode) == 0o600
    assert made["node_id"] in node.call("status")
    assert node.stop() == 0
    assert not (node.home / "api.sock").exists()
    assert any("event=stopped" in line for line in node.lines.seen)
    assert node.refused("status")[0] == 3


def test_a_second_process_is_kept_out(net):
    node = net.node("a")
    node.init()
    node.start()
    code, err = node.refused("run", "--listen", "127.0.0.1:0")
    assert code == 1 and "another process" in err
    assert node.json("status")["state"] == "running"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(net, how):
    node = net.node("a")
    node.init()
    node.start()
    assert node.stop(how) == 0
    node.start()
    node.kill()
    node.start()
    assert node.json("status")["state"] == "running"


def test_every_start_is_a_fresh_incarnation(net):
    node = net.node("a")
    node.init()
    seen = set()
    for _ in range(3):
        node.start()
        seen.add(node.json("status")["incarnation"])
        node.kill()
    assert len(seen) == 3


def test_json_log(net):
    node = net.node("a")
    node.init()
    node.start("--log-format", "json")
    node.stop()
    events = [json.loads(line) for line in node.lines.seen if line.startswith("{")]
    assert [e["event"] for e in events] == ["start", "running", "stopping", "stopped"]
    assert all(e["time_ms"] > 0 and e["level"] == "info" for e in events)


def test_reload(net):
    node = net.node("a")
    node.init()
    config = net.directory / "faberio.conf"
    config.write_text("log-format = text\n")
    node.start("--config", str(config))
    config.write_text("log-format = json\nadvertise = node.example:7700\n")
    node.process.send_signal(signal.SIGHUP)
    assert json.loads(node.lines.until(lambda line: "reload" in line))["event"] == "reload"
    node.json("space", "create", "team")
    assert node.call("space", "invite", "team")
    config.write_text("log-format = json\nnonsense = 1\n")
    node.process.send_signal(signal.SIGHUP)
    failed = json.loads(node.lines.until(lambda line: "reload_failed" in line))
    assert f"{config}:2" in failed["detail"] and failed["level"] == "error"
    assert node.json("status")["state"] == "running"
    config.write_text("log-format = json\nrecord-max = 8m\n")
    node.process.send_signal(signal.SIGHUP)
    waits = json.loads(node.lines.until(lambda line: "reload_waits" in line))
    assert waits["setting"] == "record-max" and waits["level"] == "warning"


def test_config_of_a_running_node(net):
    node = net.node("a")
    node.init()
    config = net.directory / "faberio.conf"
    config.write_text("log-format = json\n")
    node.start("--config", str(config))
    shown = node.json("config", "show", "--origin")
    assert shown["log-format"] == {"value": "json", "origin": f"{config}:1"}
    assert shown["listen"]["origin"] == "flag --listen"
    assert node.json("config", "show", "--log-format", "text")["log-format"] == "text"
    assert "flag --listen" in node.call("config", "show", "--origin")
    node.stop()
    assert node.json("config", "show", "--origin")["listen"]["origin"] == "default"


def test_watch_of_one_collection(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "s")
    node.json("record", "put", "s", "other", "new", "a=1")
    record = node.json("record", "put", "s", "c", "new", "a=1")
    node.json("record", "put", "s", "other", "new", "a=1")
    with node.watch("s", "c", "--since", "0") as watch:
        change = watch.next()
        assert change["id"] == record["id"] and change["collection"] == "c"
        area = change["area_id"]
    # A feed that wants none of the changes goes on behind them all the same.
    with node.watch("s", area, "--since", change["cursor"]) as watch:
        node.json("record", "put", "s", "other", "new", "a=2")
        last = node.json("record", "put", "s", "c", "new", "a=2")
        assert watch.next()["id"] == last["id"]


def test_long_home(net):
    node = net.node("d" * 100 + "/" + "e" * 100)
    node.init()
    node.start()
    assert node.json("status")["home"] == str(node.home)


def test_homes_that_cannot_be(net):
    node = net.node("file")
    node.home.write_text("not a directory")
    code, err = node.refused("init")
    assert code == 1 and str(node.home) in err
    node = net.node("file/below")
    code, err = node.refused("init")
    assert code == 1 and str(node.home.parent) in err
    assert net.node("x" * 5000).refused("init")[0] == 2


def test_files_that_are_not_what_they_should_be(net):
    node = net.node("a")
    node.init()
    token = node.home / "api.token"
    token.write_text("short\n")
    code, err = node.refused("run", "--listen", "127.0.0.1:0")
    assert code == 1 and str(token) in err
    token.write_text("0" * 64)
    token.chmod(0o644)
    code, err = node.refused("run", "--listen", "127.0.0.1:0")
    assert code == 1 and str(token) in err
    token.unlink()
    (node.home / "store" / "owner.lock").unlink()
    (node.home / "store" / "owner.lock").mkdir()
    code, err = node.refused("run", "--listen", "127.0.0.1:0")
    assert code == 1 and str(node.home / "store" / "owner.lock") in err
    assert not (node.home / "api.sock").exists()


def test_two_nodes_do_not_share_a_port(net):
    a, b = net.node("a"), net.node("b")
    a.init()
    b.init()
    a.start()
    code, err = b.refused("run", "--listen", a.listen)
    assert code == 1 and a.listen in err


@pytest.mark.parametrize("args, named", [
    (["run", "--listen", "nonsense"], "nonsense"),
    (["run", "--listen", "h:99999"], "h:99999"),
    (["run", "--advertise", "a b:1", "--listen", "none"], "a b:1"),
    (["run", "--advertise", ":7700", "--listen", "none"], "HOST:PORT"),
    (["run", "--api", "x", "--listen", "none"], "HOST:PORT"),
])
def test_run_refuses_bad_addresses(net, args, named):
    node = net.node("a")
    node.init()
    code, err = node.refused(*args)
    assert code == 2 and named in err and not (node.home / "store").exists()


def test_the_api_is_for_this_machine(net):
    node = net.node("a")
    node.init()
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        code, err = node.refused("run", "--api", address, "--listen", "none")
        assert code == 1 and "loopback" in err


def test_a_token_that_is_none_is_not_sent(net):
    node = net.node("a")
    node.init()
    node.start()
    for token in ("x\r\nX-Other: y", "é", " "):
        code, err = node.refused("status", env={**node.env, "FABERIO_TOKEN": token})
        assert code == 4 and "FABERIO_TOKEN" in err


def test_few_descriptors(net):
    """The node takes the descriptors that it may have; with few of them it still answers."""
    node = net.node("a")
    node.init()
    argv = [BIN, "run", "--home", str(node.home), "--listen", "none", "--api", "127.0.0.1:0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=net.env,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                (64, 4096))) as process:
        lines = Lines(process.stdout)
        lines.until(lambda line: line.startswith("api "))
        limit = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        assert limit[0] == 4096
        assert node.json("status")["state"] == "running"
        process.terminate()
        assert process.wait(timeout=HANGS_S) == 0
        lines.close()


@pytest.mark.parametrize("args, named", [
    ([], "usage"),
    (["nonsense"], "nonsense"),
    (["space"], "faberio space members SPACE"),
    (["space", "nonsense"], "no command space nonsense"),
    (["record", "put", "s", "c", "new", "a=1", "--if-match", "x"], "etag"),
    (["space", "create"], "missing"),
    (["space", "create", "a", "b"], "b is one argument too many"),
    (["status", "--nonsense"], "--nonsense"),
    (["status", "-x"], "-x"),
    (["status", "--json=1"], "takes no value"),
    (["space", "invite", "s", "--uses"], "--uses needs a value"),
    (["space", "invite", "s", "--uses", "0"], "--uses"),
    (["space", "invite", "s", "--for", "soon"], "soon"),
    (["record", "put", "s", "c", "new", "title"], "title"),
    (["record", "put", "s", "c", "new", "=1"], "=1"),
    (["record", "put", "s", "c", "new", "a=1", "title=hello"], "field title"),
    (["record", "put", "s", "c", "new", "a={\"b\":1,\"b\":2}"], "duplicate"),
    (["record", "list", "s", "c", "--limit", "-1"], "-1"),
    (["record", "watch", "s", "--since", "x"], "x"),
    (["record", "put", "s", "c", "new", "a=1", "b=1", "a=2"], "field a is named twice"),
    (["record", "put", "s", "c", "new", "a+=1", "a=2"], "field a is named twice"),
    (["record", "put", "s", "", "new", "a=1"], "argument 2 is empty"),
    (["space", "members", ""], "argument 1 is empty"),
    (["status", "--command-timeout", "soon"], "command-timeout (flag --command-timeout): a time"),
    (["run", "--listen", "x"], "listen (flag --listen): HOST:PORT is expected, not x"),
    (["run", "--store", "mongodb://h"], "mongodb://h"),
    (["run", "--log-format", "xml"], "xml"),
])
def test_usage(net, args, named):
    done = subprocess.run([BIN, *args], text=True, capture_output=True, timeout=HANGS_S,
                          env={**net.env, "FABERIO_HOME": str(net.directory / "none")}, check=False)
    assert done.returncode == 2, done
    assert named in done.stderr and done.stdout == ""
    assert not (net.directory / "none").exists()


def test_counters_and_sets(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "s")
    put = lambda *fields: node.json("record", "put", "s", "notes", *fields)  # noqa: E731
    made = put("new", "n=40")
    record = made["id"]
    assert put(record, "n+=2", 'tags:+="a"')["fields"] == {"n": 42, "tags": ["a"]}
    shown = put(record, 'tags:+={"deep": [1]}', "n+=-9223372036854775808")["fields"]
    assert shown["n"] == 42 - 2**63 and len(shown["tags"]) == 2
    assert put(record, 'tags:-="a"')["fields"]["tags"] == [{"deep": [1]}]
    before = node.json("record", "get", "s", "notes", record)
    for fields, code, why in [(["tags+=1"], 5, "another kind"), (["n:+=1"], 5, "another kind"),
                              (["n+=1.5"], 2, "integer of 64 bits"), (['n+="1"'], 2, "integer"),
                              (["n+=9223372036854775808"], 2, "too big integer"),
                              (["n+=-9223372036854775808", "m+=1"], 1, "limit"),
                              (['n={"$square":2}'], 1, "no operation")]:
        got, err = node.refused("record", "put", "s", "notes", record, *fields)
        assert got == code and why in err, (fields, got, err)
    assert node.json("record", "get", "s", "notes", record) == before
    assert put(record, "n=1", "tags=[]")["fields"] == {"n": 1, "tags": []}
    assert put(record, "n+=1")["fields"]["n"] == 2


def test_a_wrong_value_is_named_with_its_place(net):
    config = net.directory / "faberio.conf"
    node = net.node("a")
    node.init()
    for line, variable, value in (("listen = nonsense", "LISTEN", "x"), ("api = :1", "API", "y"),
                                  ("advertise = :1", "ADVERTISE", "z"),
                                  ("store = other", "STORE", "w"),
                                  ("log-format = xml", "LOG_FORMAT", "v"),
                                  ("command-timeout = soon", "COMMAND_TIMEOUT", "u")):
        name = line.split()[0]
        config.write_text("# one\n\n" + line + "\n")
        code, err = node.refused("run", "--config", str(config))
        assert code == 2 and f"{name} ({config}:3): " in err, err
        code, err = node.refused("run", env={**node.env, f"FABERIO_{variable}": value})
        assert code == 2 and f"{name} (FABERIO_{variable}): " in err and value in err


def test_what_is_there_or_not_is_named(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    node.json("app", "create", "editor")
    for args, code, named in ((["app", "create", "editor"], 5, "an application is called editor"),
                              (["app", "allow", "other", "team"], 1, "is called other"),
                              (["app", "allow", "editor", "nowhere"], 1, "called nowhere"),
                              (["space", "members", 'a"b\\c'], 1, r'called a"b\\c here'),
                              (["app", "revoke", "other"], 1, "no application is called other"),
                              (["space", "create", "team"], 5, "a space is called so here")):
        got, err = node.refused(*args)
        assert got == code and named in err, err


@pytest.mark.parametrize("args", [
    ["file", "put", "s", "a", "b"], ["file", "list"],
    ["policy", "show"], ["policy", "set"],
    ["policy", "explain"],
    ["key", "rotate"],
    ["help", "file"],
])
def test_what_is_not_built_is_said(net, args):
    done = subprocess.run([BIN, *args], text=True, capture_output=True, timeout=HANGS_S,
                          env={**net.env, "FABERIO_HOME": str(net.directory / "none")}, check=False)
    assert done.returncode == 1 and "not built in this version" in done.stderr, done
    assert done.stdout == ""


@pytest.mark.parametrize("flags", [["--events", "0"], ["--duration", "0"], ["--duration", "0s"],
                                   ["--events", ""], ["--events", "-1"]])
def test_a_simulation_of_nothing_is_a_mistake(net, flags):
    done = subprocess.run([BIN, "sim", "run", "--seed", "1", *flags], text=True,
                          capture_output=True, timeout=HANGS_S, env=net.env, check=False)
    assert done.returncode == 2 and done.stdout == "" and done.stderr


@pytest.mark.parametrize("args", [
    ["no\x1b[31m"], ["help", "no\x1b[31m"], ["status", "no\x1b[31m"], ["status", "--no\x1b[31m"],
    ["run", "--log-format", "no\x1b[31m"], ["status", "--config", "no\x1b[31m"],
    ["sim", "no\x1b[31m"], ["sim", "run", "--mutant", "no\x1b[31m"],
    ["key", "show", "no\x1b[31m"], ["envelope", "verify", "no\x1b[31m"],
    ["envelope", "no\x1b[31m"], ["envelope", "verify", "--context", "no\x1b[31m", "-"],
])
def test_a_terminal_does_not_obey_what_was_typed(net, args):
    done = subprocess.run([BIN, *args], capture_output=True, timeout=HANGS_S,
                          stdin=subprocess.DEVNULL,
                          env={**net.env, "FABERIO_HOME": str(net.directory / "none")}, check=False)
    assert done.returncode in (1, 2), done
    assert b"no\\x1b[31m" in done.stderr and b"\x1b" not in done.stderr + done.stdout


def test_a_field_is_shown_whatever_its_name(net):
    """A time of the program has a twin in milliseconds, which people need not see."""
    node = net.node("a")
    node.init()
    node.start()
    node.call("space", "create", "s")
    made = node.json("record", "put", "s", "notes", "new", "lap=1", "lap_ms=2", 'n={"t":3,"t_ms":4}')
    text = node.call("record", "get", "s", "notes", made["id"])
    assert {"lap": "1", "lap_ms": "2", "t": "3", "t_ms": "4"}.items() <= dict(
        line.split() for line in text.splitlines() if len(line.split()) == 2).items()
    assert "started_ms" not in node.call("status")


def test_a_terminal_does_not_obey_names_of_fields(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    put = ("record", "put", "team", "notes", "new")
    out = node.call(*put, "a\x1b[31m\nb\u202e\u009b=1")
    assert "a\\u001b[31m\\nb\\u202e\\u009b" in out
    node.call(*put, 'v="\u202e\u009b"')
    listed = node.call("record", "list", "team", "notes")
    assert 'fields={"v":"\\u202e\\u009b"}' in listed
    assert not set("\x1b\u202e\u009b") & set(listed)


@pytest.mark.parametrize("args", [
    ["--version"], ["--help"], ["help", "status"], ["sim", "mutants"], ["config", "show"],
    ["sim", "run", "--seed", "1", "--events", "100"],
])
@pytest.mark.parametrize("target", [">/dev/full", ">&-"])
def test_a_result_that_cannot_be_written_is_no_success(net, args, target):
    done = subprocess.run(["sh", "-c", f'"$@" {target}', "sh", BIN, *args], text=True,
                          capture_output=True, timeout=HANGS_S, env=net.env, check=False)
    assert done.returncode == 1 and "standard output" in done.stderr


def test_a_settings_file_that_is_a_directory(net):
    code, err = net.node("a").refused("config", "show", "--config", str(net.directory))
    assert code == 2 and str(net.directory) in err


@pytest.mark.parametrize("content", [None, b"x" * (1 << 20), b"listen = a\0b\n",
                                     b"listen = \x1b[31m\n", b"home = a\x07b\n"])
def test_settings_files_that_are_none(net, content):
    config = net.directory / "faberio.conf"
    if content is None:
        config.symlink_to("/dev/zero")
    else:
        config.write_bytes(content)
    done = subprocess.run([BIN, "config", "show", "--config", str(config)], capture_output=True,
                          timeout=HANGS_S, env=net.env, check=False)
    assert done.returncode == 2 and str(config).encode() in done.stderr
    assert done.stdout == b"" and not set(b"\x1b\x07\0") & set(done.stderr)


def test_no_setting_reaches_a_terminal_as_codes(net):
    for name, value in (("FABERIO_LISTEN", "\x1b[31m"), ("FABERIO_HOME", "/tmp/\x1b[31m"),
                        ("FABERIO_ADVERTISE", "a\nb")):
        done = subprocess.run([BIN, "config", "show"], text=True, capture_output=True,
                              timeout=HANGS_S, env={**net.env, name: value}, check=False)
        assert done.returncode == 2 and name in done.stderr and "\x1b" not in done.stderr
    done = subprocess.run([BIN, "config", "show"], text=True, capture_output=True, timeout=HANGS_S,
                          env={**net.env, "FABERIO_ADVERTISE": "\u202e\u009b"}, check=False)
    assert done.returncode == 0 and not set("\u202e\u009b") & set(done.stdout)


def test_homes_that_others_may_write_in(net):
    node = net.node("a")
    node.init()
    for mode in (0o777, 0o770, 0o702):
        node.home.chmod(mode)
        for args in (["init"], ["run", "--listen", "none"]):
            code, err = node.refused(*args)
            assert code == 1 and str(node.home) in err and "chmod 700" in err
    node.home.chmod(0o755)
    node.start()


def test_a_file_in_the_place_of_the_socket_is_not_removed(net):
    node = net.node("a")
    node.init()
    path = node.home / "api.sock"
    path.write_text("mine")
    code, err = node.refused("run", "--listen", "none")
    assert code == 1 and str(path) in err and path.read_text() == "mine"
    path.unlink()
    path.symlink_to(node.home / "node.key")
    assert node.refused("run", "--listen", "none")[0] == 1
    assert path.is_symlink()
    path.unlink()
    node.start()
    node.kill()
    node.start()  # the socket of a run that was killed is


def test_init_that_is_killed_while_it_writes(net):
    """Killed at the first byte of a file, for each file in turn: the next init goes on from there."""
    node = net.node("a")
    node.home.parent.mkdir(exist_ok=True)
    for size in (0, 1, 40, 86):
        done = subprocess.run([BIN, "init", "--home", str(node.home)], capture_output=True,
                              timeout=HANGS_S, env=net.env, check=False,
                              preexec_fn=lambda limit=size: resource.setrlimit(
                                  resource.RLIMIT_FSIZE, (limit, limit)))
        assert done.returncode != 0
        assert not (node.home / "node.key").exists()
    node.init()
    assert sorted(p.name for p in node.home.iterdir()) == [
        "link.key", "node.key", "record.key", "record.pub", "recovery.pub"]
    node.start()


def test_several_nodes_in_one_home(net):
    node = net.node("a")
    node.init()
    argv = [BIN, "run", "--home", str(node.home), "--listen", "none"]
    several = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=net.env) for _ in range(5)]
    said = [Lines(p.stdout) for p in several]
    winners = [i for i, lines in enumerate(said)
               if not lines.until(lambda line: "in use by another" in line
                                  or line.startswith("api ")).startswith("faberio: ")]
    assert len(winners) == 1
    assert node.json("status")["pid"] == several[winners[0]].pid
    for i, process in enumerate(several):
        process.terminate()
        assert process.wait(timeout=HANGS_S) == (0 if i in winners else 1)
        said[i].close()


def test_a_recovery_key_that_is_none(net):
    node = net.node("a")
    node.init()
    path = node.home / "recovery.pub"
    right = path.read_bytes()
    for wrong in (b"", b"garbage\n", b"0" * 63 + b"\n", b"0" * 64 + b"\n", right + b"x",
                  right.upper() if right.upper() != right else b"z" * 64, b"f" * 64 + b"\n"):
        path.write_bytes(wrong)
        for args in (["init"], ["run", "--listen", "none"]):
            code, err = node.refused(*args)
            assert code == 1 and str(path) in err, (wrong, err)
        assert path.read_bytes() == wrong
    path.unlink()
    code, err = node.refused("run", "--listen", "none")
    assert code == 1 and str(path) in err and "faberio init" in err
    path.symlink_to("/dev/zero")
    assert node.refused("init")[0] == 1
    path.unlink()
    path.write_bytes(right)
    node.start()


def test_keys_that_are_no_small_files(net):
    large = net.directory / "large"
    with open(large, "wb") as file:
        file.truncate(1 << 34)
    large.chmod(0o600)
    for target in ("/dev/zero", "/dev/full", "/dev/tty", str(large), str(net.directory)):
        link = net.directory / "link"
        link.symlink_to(target)
        done = subprocess.run([BIN, "key", "show", str(link)], text=True, capture_output=True,
                              timeout=HANGS_S, env=net.env, check=False)
        assert done.returncode == 1 and str(link) in done.stderr, target
        link.unlink()


def test_a_key_that_nobody_was_told_of_is_not_left(net):
    path = net.directory / "k"
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BIN, "key", "new", "--out", str(path)], stdout=full,
                              stderr=subprocess.PIPE, timeout=HANGS_S, env=net.env, check=False)
    assert done.returncode == 1 and not path.exists()


def test_an_address_that_nobody_knows_is_not_forgotten(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    node.json("space", "create", "other")
    code, err = node.refused("peers", "forget", "127.0.0.1:9")
    assert code == 1 and "address" in err
    assert node.json("peers", "add", "127.0.0.1:9", "--space", "team")["spaces"] == 1
    assert node.refused("peers", "forget", "127.0.0.1:9", "--space", "other")[0] == 1
    assert node.json("peers", "forget", "127.0.0.1:9")["spaces"] == 1
    assert node.refused("peers", "forget", "127.0.0.1:9")[0] == 1


def test_a_dead_address_is_one_line(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    node.json("peers", "add", "127.0.0.1:9")
    node.lines.until(lambda line: "event=dial_failed" in line)
    # It is dialled again within seconds, which the counters tell and the log does not.
    dials = lambda: [p for p in node.json("peers")["peers"] if p["last_error"] is not None]
    eventually(dials, lambda rows: rows)
    assert dials()[0]["last_error"] == "unreachable"
    before = node.json("status")["counters"]["steps"]
    eventually(lambda: node.json("status")["counters"]["steps"], lambda s: s > before + 20)
    node.stop()
    assert sum("event=dial_failed" in line for line in node.lines.seen) == 1


def test_no_error_is_said_as_none(net):
    node = net.node("a")
    node.init()
    node.start()
    assert node.json("status")["last_error"] is None
    assert re.search(r"^last_error +none$", node.call("status"), re.MULTILINE)


@pytest.mark.parametrize("args", [
    ["record", "get", "team", "notes", "nonsense"],
    ["record", "put", "team", "notes", "nonsense", "a=1"],
    ["record", "list", "team", "notes", "--after", "x"],
    ["space", "approve", "team", "nonsense"], ["space", "approve", "team", "0" * 32, "--role", "x"],
    ["space", "invite", "team", "--address", "nonsense"], ["peers", "add", "nonsense"],
    ["space", "join", "nonsense"], ["space", "create", "x" * 201], ["app", "create", "x" * 201],
])
def test_arguments_that_the_node_judges(net, args):
    node = net.node("a")
    node.init()
    node.start("--advertise", "127.0.0.1:1")
    node.json("space", "create", "team")
    code, err = node.refused(*args)
    assert code == 2 and err.startswith("faberio: ")
    said = err.strip().split(": ")
    assert len(said) == len(set(said)), err


def test_help_of_every_command(net):
    listing = subprocess.run([BIN, "help"], text=True, capture_output=True, check=True).stdout
    names = re.findall(r"^  (\S+(?: \S+)?)  ", listing, re.MULTILINE)
    assert len(names) > 20
    for name in names:
        done = subprocess.run([BIN, "help", *name.split()], text=True, capture_output=True,
                              check=True)
        assert "usage" in done.stdout + done.stderr, name


@pytest.mark.parametrize("word, named", [("peers", "faberio peers forget HOST:PORT"),
                                         ("space", "faberio space members SPACE")])
def test_help_of_a_group_names_all_of_it(word, named):
    for args in (["help", word], [word, "--help"]):
        done = subprocess.run([BIN, *args], text=True, capture_output=True, check=True)
        assert named in done.stdout


def test_what_cannot_be_written_is_no_success(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "s")
    node.json("record", "put", "s", "c", "new", "a=1")
    for args in (["help"], ["version"], ["config", "show"], ["sim", "limits"], ["status"],
                 ["space", "list"], ["record", "list", "s", "c"],
                 ["record", "watch", "s", "--since", "0"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BIN, *args], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env={**net.env, "FABERIO_HOME": str(node.home)},
                                  timeout=HANGS_S, check=False)
        assert done.returncode == 1 and "cannot be written" in done.stderr, (args, done)


def test_a_change_is_one_line_for_people_too(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "s")
    record = node.json("record", "put", "s", "c", "new", "a=1")
    with subprocess.Popen([BIN, "record", "watch", "s", "--since", "0", "--home", str(node.home)],
                          stdout=subprocess.PIPE, text=True, env=net.env) as watcher:
        line = watcher.stdout.readline()
        watcher.kill()
    assert "change=changed" in line and f"id={record['id']}" in line
    assert '"fields":{"a":1}' in line


def test_settings_and_their_origin(net):
    config = net.directory / "faberio.conf"
    config.write_text("listen = 127.0.0.1:1234\nlog-format = json\n")
    node = net.node("a")
    shown = node.json("config", "show", "--origin", "--config", str(config),
                      env={**net.env, "FABERIO_LOG_FORMAT": "text"})
    assert shown["home"] == {"value": str(node.home), "origin": "flag --home"}
    assert shown["listen"] == {"value": "127.0.0.1:1234", "origin": f"{config}:1"}
    assert shown["log-format"] == {"value": "text", "origin": "FABERIO_LOG_FORMAT"}
    assert shown["store"]["origin"] == "default"
    config.write_text("listen = 127.0.0.1:1234\n\ntypo = 1\n")
    code, err = node.refused("config", "show", "--config", str(config))
    assert code == 2 and f"{config}:3" in err and "typo" in err
    config.unlink()
    code, err = node.refused("config", "show", "--config", str(config))
    assert code == 2 and str(config) in err


def head_and_body(answer):
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), head, body


def get(path, *headers):
    lines = "".join(f"{h}\r\n" for h in headers)
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n"


def test_health_and_metrics(net):
    node = net.node("a")
    node.init()
    node.start()
    status, _, body = head_and_body(node.http(get("/livez")))
    assert status == 200 and json.loads(body) == {"status": "ok"}
    status, _, body = head_and_body(node.http(get("/readyz")))
    assert status == 200 and json.loads(body) == {"status": "ok", "failed": []}
    status, head, body = head_and_body(node.http(get("/metrics")))
    assert status == 200 and "text/plain" in head
    assert "\nfaberio_ready 1\n" in body  # test_service.py reads all of it


def test_errors_are_problems(net):
    node = net.node("a")
    node.init()
    node.start()
    cases = [
        (get("/nothing"), 404, "not_found"),
        ("DELETE /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405, "method"),
        (get("/v1/spaces/x/policies"), 501, "unsupported"),
        (get("/v1/spaces/%zz/members"), 400, "request_malformed"),
        (get("/v1/spaces/%00/members"), 400, "request_malformed"),
        (get("/v1/status", "Origin: http://evil.example"), 403, "not_authorised"),
        (get("/v1/status", "Authorization: Bearer nonsense"), 401, "unauthorised"),
        (get("/v1/status", "Authorization: Basic x"), 401, "unauthorised"),
    ]
    for request, status, code in cases:
        got, head, body = head_and_body(node.http(request))
        assert got == status, (request, body)
        assert "application/problem+json" in head
        problem = json.loads(body)
        assert problem["status"] == status and problem["code"] == code
        assert problem["type"] == f"urn:faberio:error:{code}" and problem["title"]
    body = "x" * (1 << 20) + "y"
    got, _, _ = head_and_body(node.http(
        f"POST /v1/spaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"))
    assert got == 413
    assert node.json("status")["state"] == "running"


def test_bytes_that_are_no_http(net):
    node = net.node("a")
    node.init()
    node.start()
    for garbage in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", os.urandom(4096),
                    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n"):
        with node.connect() as s:
            try:
                s.sendall(garbage)
            except (BrokenPipeError, ConnectionResetError):
                pass
    assert node.json("status")["state"] == "running"


def test_the_port_asks_for_a_token_and_a_local_host(net):
    node = net.node("a")
    node.init()
    node.start("--api", "127.0.0.1:0")
    token = (node.home / "api.token").read_text().strip()
    assert stat.S_IMODE((node.home / "api.token").stat().st_mode) == 0o600
    bearer = f"Authorization: Bearer {token}"
    wrong = f"Authorization: Bearer {'0' * 64}"

    def port(path, *headers, host=node.api):
        lines = "".join(f"{h}\r\n" for h in headers)
        return head_and_body(node.http_port(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{lines}\r\n"))[0]

    assert port("/livez") == 200
    assert port("/v1/status") == 401
    assert port("/v1/status", wrong) in (401, 501)
    assert port("/v1/status", bearer) == 200
    assert port("/v1/status", bearer, host="evil.example") == 403
    assert port("/livez", host="evil.example") == 403
    assert port("/v1/status", bearer, "Origin: http://evil.example") == 403
    assert port("/v1/status", bearer, f"Origin: http://{node.api}") == 200


def test_strangers_on_the_peers_port(net):
    node = net.node("a")
    node.init()
    node.start()
    host, port = node.listen.rsplit(":", 1)
    for garbage in (b"", b"GET / HTTP/1.1\r\n\r\n", b"FBLK", os.urandom(5000)):
        with socket.create_connection((host, int(port)), timeout=HANGS_S) as s:
            s.sendall(garbage)
            s.shutdown(socket.SHUT_WR)
            try:
                while s.recv(65536):
                    pass
            except ConnectionResetError:
                pass
    assert node.json("status")["state"] == "running"


def test_envelope_and_key_are_in_the_same_program(net):
    key = net.directory / "k"
    subprocess.run([BIN, "key", "new", "--out", str(key)], check=True, capture_output=True)
    shown = json.loads(subprocess.run([BIN, "key", "show", str(key)], check=True, text=True,
                                      capture_output=True).stdout)
    assert re.fullmatch("[0-9a-f]{32}", shown["node_id"])
    done = subprocess.run([BIN, "envelope", "verify", "-"], input="{}", text=True,
                          capture_output=True, check=False)
    assert done.returncode == 1 and json.loads(done.stdout)["verdict"] == "refuse"
