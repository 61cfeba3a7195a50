# SPDX-License-Identifier: Apache-2.0
"""A node under a service manager: notifications, watchdog, journal, the unit; and its metrics."""
import configparser
import os
import re
import resource
import signal
import socket
import subprocess

import pytest

from node import BIN, HANGS_S, eventually

BUILD = os.environ.get("FABERIO_BUILD", "build/debug")


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(HANGS_S)
        self.socket.bind("\0" + name[1:] if name[0] == "@" else name)

    def until(self, line):
        seen = []
        while not seen or line not in seen[-1]:
            seen.append(self.socket.recv(4096).decode().split("\n"))
        return seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request, net):
    name = f"@faberio-{os.getpid()}" if request.param == "abstract" else "/tmp/fb-%d" % os.getpid()
    with Manager(name) as made:
        yield made
    if name[0] == "/":
        os.unlink(name)


def test_the_manager_is_told(net, manager):
    node = net.node("a")
    node.init()
    node.env = {**node.env, "NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "100000"}
    node.start()
    assert manager.until("READY=1") == [["READY=1", "STATUS=running"]]
    for _ in range(3):
        manager.until("WATCHDOG=1")
    node.process.send_signal(signal.SIGHUP)
    reloading = manager.until("RELOADING=1")[-1]
    assert re.fullmatch(r"MONOTONIC_USEC=\d+", reloading[1])
    manager.until("READY=1")
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    assert node.refused("space", "create", "team")[0] == 75
    manager.until("STATUS=the store takes no writes; reads go on")
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    manager.until("STATUS=running")
    assert node.stop() == 0
    manager.until("STOPPING=1")


@pytest.mark.parametrize("variables", [
    {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},  # meant for another process
    {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": ""}, {},
])
def test_no_watchdog_without_being_asked(net, manager, variables):
    node = net.node("a")
    node.init()
    node.env = {**node.env, "NOTIFY_SOCKET": manager.name, **variables}
    node.start()
    assert node.json("status")["state"] == "running"
    assert node.stop() == 0
    said = [line for lines in manager.until("STOPPING=1") for line in lines]
    assert "READY=1" in said and "WATCHDOG=1" not in said


@pytest.mark.parametrize("name", ["relative", "/tmp/nobody-listens-here", "/" + "x" * 200, ""])
def test_a_manager_that_is_not_there(net, name):
    node = net.node("a")
    node.init()
    node.env = {**node.env, "NOTIFY_SOCKET": name}
    node.start()
    assert node.stop() == 0


def test_only_the_journal_gets_its_form(net):
    """A terminal inside of a session has the variable of the session's journal."""
    node = net.node("a")
    node.init()
    node.env = {**node.env, "JOURNAL_STREAM": "1:2"}
    node.start("--log-format", "json")
    assert node.lines.seen[0].startswith('{"time"')
    assert node.stop() == 0
    with open(net.directory / "journal", "w+", encoding="utf-8") as journal:
        st = os.fstat(journal.fileno())
        env = {**net.env, "JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"}
        with subprocess.Popen([BIN, "run", "--home", str(node.home), "--listen", "none"],
                              stdout=journal, env=env) as process:
            eventually(lambda: subprocess.run([BIN, "status", "--home", str(node.home)],
                                              env=net.env, capture_output=True,
                                              check=False).returncode, lambda code: code == 0)
            process.terminate()
            assert process.wait(timeout=HANGS_S) == 0
        journal.seek(0)
        events = [line for line in journal if "event=" in line]
    assert events and all(re.match(r"<[346]>level=\w+ event=", line) for line in events)


def test_the_unit_names_the_program_and_what_it_needs(net):
    prefix = net.directory / "prefix"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", str(prefix), "--component", "service"],
                   check=True, capture_output=True)
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(prefix / "lib/systemd/system/faberio.service")
    service = unit["Service"]
    program, *args = service["ExecStart"].split()
    assert program.endswith("/bin/faberio") and args == ["run"]
    assert service["Type"] == "notify" and int(service["WatchdogSec"]) > 0
    assert service["User"] in (prefix / "lib/sysusers.d/faberio.conf").read_text()
    assert int(service["LimitCORE"]) == 0  # keys are in it
    for name in ("NoNewPrivileges", "ProtectHome", "PrivateDevices", "MemoryDenyWriteExecute"):
        assert service[name] == "yes"
    # As the unit runs it, the defaults are the places that it has.
    shown = subprocess.run([BIN, "config", "show", "--json"], env={"PATH": os.environ["PATH"]},
                           capture_output=True, text=True, check=True).stdout
    assert '"home":"/var/lib/faberio"' in shown
    assert unit["Unit"]["ConditionPathExists"] == "/var/lib/faberio/node.key"
    assert service["StateDirectory"] == "faberio"


def metrics(node):
    answer = node.http("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition("\r\n\r\n")
    assert " 200 " in head.splitlines()[0]
    values, typed = {}, None
    for line in body.splitlines():
        if match := re.fullmatch(r"# HELP (\w+) \S.*", line):
            typed = match[1]
        elif match := re.fullmatch(r"# TYPE (\w+) (counter|gauge)", line):
            assert match[1] == typed  # help and type stand before the samples
            assert (match[2] == "counter") == (typed.endswith("_total"))
        else:
            name, labels, value = re.fullmatch(
                r'(\w+)(\{\w+="[\w-]+"(?:,\w+="[\w-]+")*\})? (\d+(?:\.\d+)?)', line).groups()
            assert name == typed and name + (labels or "") not in values
            values[name + (labels or "")] = float(value)
    return values


def test_metrics_count_what_happened(net):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    before = eventually(lambda: metrics(a), lambda m: m["faberio_links"] == 1)
    assert before["faberio_links_accepted_total"] >= 1
    assert before["faberio_links_received_bytes_total"] > 0
    assert before["faberio_links_sent_bytes_total"] > 0
    assert metrics(b)["faberio_dials_total"] >= 1
    with a.watch("team"):
        assert metrics(a)["faberio_api_feeds"] == 1
    a.refused("record", "get", "nowhere", "c", "01890000-0000-7000-8000-00000000000a")
    a.json("record", "put", "team", "c", "new", "n=1")
    after = metrics(a)
    assert after['faberio_api_responses_total{class="4xx"}'] >= 1
    assert after["faberio_changes_written_total"] == before["faberio_changes_written_total"] + 1
    assert after["faberio_store_commits_total"] > before["faberio_store_commits_total"]
    assert after["faberio_ready"] == after["faberio_store_writable"] == 1
    # The connection of the question itself may be gone by now.
    assert 0 <= after["process_open_fds"] - len(os.listdir(f"/proc/{a.process.pid}/fd")) <= 2
    assert after["process_resident_memory_bytes"] > 1 << 20
    assert after["process_max_fds"] >= 1024


@pytest.mark.parametrize("where", ["socket", "peers"])
def test_without_descriptors_whoever_comes_is_told(net, where):
    """At the limit a connection is closed rather than left waiting, the node does not spin, and
    afterwards it goes on."""
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    pid = node.process.pid
    before = metrics(node)
    eventually(lambda: metrics(node)["faberio_api_connections"], lambda n: n <= 1)
    with node.connect() as held:  # one that is open all the time
        held.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert held.recv(65536)
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        few = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1
        taken = set(os.listdir(f"/proc/{pid}/fd"))
        free = [n for n in range(few) if str(n) not in taken]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, limit[1]))
        sockets = []
        try:
            for _ in range(len(free) + 2):
                if where == "socket":
                    s = node.connect()
                else:
                    host, port = node.listen.rsplit(":", 1)
                    s = socket.create_connection((host, int(port)), timeout=HANGS_S)
                sockets.append(s)
            try:
                assert sockets[-1].recv(1) == b""
            except ConnectionResetError:
                pass
            held.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")  # it is still served
            assert b" 200 " in held.recv(65536)
        finally:
            for s in sockets:
                s.close()
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
    assert node.json("record", "put", "team", "c", "new", "n=1")["fields"] == {"n": 1}
    after = metrics(node)
    name = "faberio_api_pauses_total" if where == "socket" else "faberio_links_pauses_total"
    assert after[name] > before[name]


def test_peer_text_is_escaped_and_payloads_are_not_logged(net):
    """What a hostile name or address could do to whoever reads the log."""
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    node.json("record", "put", "team", "c", "new", 'secret="0123456789abcdef-payload"')
    assert node.refused("peers", "add", "127.0.0.1:1\x1b[31m")[0] == 2
    node.json("peers", "add", "127.0.0.1:1")
    node.lines.until(lambda line: "event=dial_failed" in line)
    node.process.send_signal(signal.SIGHUP)
    node.lines.until(lambda line: "event=reload" in line)
    assert node.stop() == 0
    log = "\n".join(node.lines.seen)
    keys = [(node.home / name).read_text().split() for name in ("node.key", "link.key", "api.token")]
    assert "payload" not in log and "\x1b" not in log
    assert all(word not in log for words in keys for word in words if len(word) >= 32)


def test_a_log_that_nobody_reads_any_more_does_not_end_the_node(net):
    node = net.node("a")
    node.init()
    reading, writing = os.pipe()
    with subprocess.Popen([BIN, "run", "--home", str(node.home), "--listen", "none"],
                          stdout=writing, env=net.env) as process:
        os.close(writing)
        said = b""
        while b"\napi " not in said:
            said += os.read(reading, 65536)
        os.close(reading)
        process.send_signal(signal.SIGHUP)
        assert node.json("status")["state"] == "running"
        process.terminate()
        assert process.wait(timeout=HANGS_S) == 0
