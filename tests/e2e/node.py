# SPDX-License-Identifier: Apache-2.0
"""A node as a process, what is said to it, and a relay that cuts links."""
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

BIN = os.environ.get("FABERIO_BIN", "build/debug/faberio")

# How long anything may take before the test says that it hangs. No test waits that long in vain.
HANGS_S = 60


class Refused(Exception):
    """A command that ended with another exit code than 0."""

    def __init__(self, args, code, out, err):
        super().__init__(f"{' '.join(args)}: exit {code}\n{out}{err}")
        self.code, self.out, self.err = code, out, err


class Lines:
    """The lines of a stream as they come, kept for the report of a failure."""

    def __init__(self, stream):
        self.seen = []
        self._stream = stream
        self._queue = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream):
        for line in stream:
            line = line.rstrip("\n")
            self.seen.append(line)
            self._queue.put(line)
        self._queue.put(None)

    def close(self):
        """After the writer ended: the last lines are read first."""
        self._thread.join(timeout=HANGS_S)
        self._stream.close()

    def next(self):
        try:
            line = self._queue.get(timeout=HANGS_S)
        except queue.Empty:
            raise AssertionError("no line came; so far:\n" + "\n".join(self.seen)) from None
        if line is None:
            self._queue.put(None)
            raise AssertionError("the stream ended; it said:\n" + "\n".join(self.seen))
        return line

    def until(self, condition):
        while True:
            line = self.next()
            if condition(line):
                return line


class Node:
    """One home directory and, between start and stop, one process."""

    def __init__(self, home, env):
        self.home = Path(home)
        self.env = env
        self.process = None
        self.lines = None
        self.listen = None
        self.port = "127.0.0.1:0"
        self.api = None
        self.prefix = []  # words before the program
        self.program = BIN

    def call(self, *args, stdin=None, env=None):
        done = subprocess.run([BIN, *args, "--home", str(self.home)], input=stdin, text=True,
                              capture_output=True, timeout=HANGS_S, env=env or self.env,
                              check=False)
        if done.returncode != 0:
            raise Refused(args, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def json(self, *args, **more):
        return json.loads(self.call(*args, "--json", **more))

    def rows(self, *args):
        return [json.loads(line) for line in self.call(*args, "--json").splitlines()]

    def refused(self, *args, **more):
        """The exit code and what was said on standard error."""
        try:
            out = self.call(*args, **more)
        except Refused as refused:
            return refused.code, refused.err
        raise AssertionError(f"{args} was not refused: {out}")

    def init(self):
        made = self.json("init")
        self.id = made["node_id"]
        return made

    def start(self, *options):
        assert self.process is None
        self.process = subprocess.Popen(
            [*self.prefix, self.program, "run", "--home", str(self.home), "--listen", self.port,
             *map(str, options)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env)
        self.lines = Lines(self.process.stdout)
        banner = []
        while len(banner) < 5:
            line = self.lines.next()
            if "event=" not in line and '"event":' not in line:
                banner.append(line)
        assert banner[3].startswith("listen "), banner
        self.listen = banner[3].split()[1]
        # The next start takes the same port, as others were told about it.
        if self.listen != "none":
            self.port = self.listen
        self.api = banner[4].split("http://")[1] if "http://" in banner[4] else None
        return banner

    def stop(self, with_signal=signal.SIGTERM):
        process, self.process = self.process, None
        process.send_signal(with_signal)
        code = process.wait(timeout=HANGS_S)
        self.lines.close()
        return code

    def kill(self):
        self.stop(signal.SIGKILL)

    def watch(self, space, *options):
        return Watch(self, space, options)

    def connect(self):
        return connect_unix(str(self.home / "api.sock"))

    def http(self, request):
        """One raw HTTP request over the socket; the whole answer."""
        return talk(self.connect(), request)

    def http_port(self, request):
        host, port = self.api.rsplit(":", 1)
        return talk(socket.create_connection((host, int(port)), timeout=HANGS_S), request)


def connect_unix(path):
    """A test's directory may have a longer name than a socket address can hold."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(HANGS_S)
    directory = os.open(os.path.dirname(path), os.O_PATH)
    try:
        s.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    except OSError:
        s.close()
        raise
    finally:
        os.close(directory)
    return s


def talk(s, request):
    with s:
        s.sendall(request.encode() if isinstance(request, str) else request)
        answer = b""
        while part := s.recv(65536):
            answer += part
    return answer.decode()


class Watch:
    """`faberio record watch`, ready when this is made."""

    def __init__(self, node, space, options):
        self.process = subprocess.Popen(
            [BIN, "record", "watch", space, *options, "--json", "--home", str(node.home)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=node.env)
        self.errors = Lines(self.process.stderr)
        self.errors.until(lambda line: line == "watching")
        self.lines = Lines(self.process.stdout)

    def next(self):
        return json.loads(self.lines.next())

    def until(self, ids):
        """Reads until every one of these records was named."""
        missing = set(ids)
        while missing:
            missing.discard(self.next()["id"])

    def close(self):
        self.process.kill()
        self.process.wait(timeout=HANGS_S)
        self.lines.close()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Relay:
    """Passes TCP connections on to a target, until it is cut."""

    def __init__(self, target):
        self.target = target
        self.cut_off = False
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                refuse = self.cut_off
            if refuse:
                near.close()
                continue
            host, port = self.target().rsplit(":", 1)
            try:
                far = socket.create_connection((host, int(port)), timeout=HANGS_S)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._open |= {near, far}
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, source, sink):
        try:
            while part := source.recv(65536):
                sink.sendall(part)
        except OSError:
            pass
        for s in (source, sink):
            self._end(s)

    def _end(self, s):
        with self._lock:
            self._open.discard(s)
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        s.close()

    def cut(self):
        with self._lock:
            self.cut_off = True
            ends = list(self._open)
        for s in ends:
            self._end(s)

    def heal(self):
        with self._lock:
            self.cut_off = False

    def close(self):
        self.cut()
        self._listener.close()


class Net:
    """Nodes under one directory; all of them end with it."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.nodes = []
        self.relays = []
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith("FABERIO_") and name != "JOURNAL_STREAM"}
        self.env["XDG_CONFIG_HOME"] = str(self.directory / "config")

    def node(self, name):
        node = Node(self.directory / name, self.env)
        self.nodes.append(node)
        return node

    def relay(self, node):
        relay = Relay(lambda: node.listen)
        self.relays.append(relay)
        return relay

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for relay in self.relays:
            relay.close()
        for node in self.nodes:
            if node.process is not None:
                node.kill()


def eventually(ask, wanted):
    """Asks again and again until the answer is as wanted; each question waits for its answer."""
    deadline = time.monotonic() + HANGS_S
    while True:
        answer = ask()
        if wanted(answer):
            return answer
        assert time.monotonic() < deadline, f"still: {answer}"


def pair(net):
    """Two nodes that share the space "team", which the first one made."""
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    a.json("space", "approve", "team", b.id)
    eventually(lambda: b.rows("space", "list")[0]["status"], lambda s: s == "approved")
    return a, b
