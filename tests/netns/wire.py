# SPDX-License-Identifier: Apache-2.0
"""Nodes in network namespaces of their own, and the wire between them.

The wire is in this process: every namespace has one end of a veth pair, and what leaves it comes here as
an Ethernet frame, to be lost, doubled, kept back or cut, one way or both, before it goes on. So neither
netem nor a packet filter is needed. Choices are drawn from a seed and the frame's number on its path.

Namespaces need root. Without it every node is reached through a relay of its own, which can cut, silence
and keep back, and neither loses nor doubles: a line of the report's head says so."""
import heapq
import itertools
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from node import Net, Node  # noqa: E402  (the path is set above)

ETH_ALL = 3
SIOCETHTOOL = 0x8946
OUTGOING = 4
# Checksums and segments are made by the sender: a frame that is looked at has to be whole.
OFFLOADS = (0x17, 0x1f, 0x24, 0x19)

SERIAL = itertools.count()

SET_UP = """
import array, fcntl, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for command in {offloads}:
    value = array.array("B", struct.pack("II", command, 0))
    request = struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]) + bytes(16)
    try:
        fcntl.ioctl(s, {ioctl}, request)
    except OSError:
        pass
""".format(offloads=OFFLOADS, ioctl=SIOCETHTOOL)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def namespaces_work():
    """Whether this machine lets us make them."""
    name = f"fb{os.getpid()}probe"
    try:
        ip("netns", "add", name)
        ip("netns", "del", name)
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class Way:
    """One direction between two nodes."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.clear()
        self.frames = 0

    def clear(self):
        self.cut = False
        self.loss = self.twice = 0.0
        self.delay_s = (0.0, 0.0)


class Wire:
    """The paths between all nodes, and the thread that carries frames along them."""

    def __init__(self, seed=1):
        self.seed = seed
        self.ends = []
        self.paths = {}
        self.dropped = self.carried = self.doubled = 0
        self._lock = threading.Lock()
        self._late = []
        self._count = 0
        self._over = False
        self._wake_r, self._wake_w = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def attach(self, interface):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_ALL))
        end.bind((interface, 0))
        end.setblocking(False)
        with self._lock:
            me = len(self.ends)
            for other in range(me):
                for pair in ((me, other), (other, me)):
                    self.paths[pair] = Way(f"{self.seed}/{pair}")
            self.ends.append(end)
        os.write(self._wake_w, b"x")
        return me

    def close(self):
        self._over = True
        os.write(self._wake_w, b"x")
        self._thread.join(timeout=10)
        for end in self.ends:
            end.close()
        os.close(self._wake_r)
        os.close(self._wake_w)

    def _run(self):
        while not self._over:
            with self._lock:
                ends = list(self.ends)
            wait = None
            if self._late:
                wait = max(0.0, self._late[0][0] - time.monotonic())
            ready, _, _ = select.select([self._wake_r, *ends], [], [], wait)
            for end in ready:
                if end == self._wake_r:
                    os.read(self._wake_r, 64)
                    continue
                self._take(ends.index(end), end)
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, to, frame = heapq.heappop(self._late)
                self._give(to, frame)

    def _take(self, me, end):
        for _ in range(64):
            try:
                frame, address = end.recvfrom(65536)
            except OSError:
                return
            if address[2] == OUTGOING:
                continue
            for to in range(len(self.ends)):
                if to != me and self._for(frame, to):
                    self._pass(me, to, frame)

    @staticmethod
    def _for(frame, to):
        """Broadcasts go to everybody, the rest by the address that we gave out."""
        return frame[0] & 1 or frame[:6] == mac(to)

    def _pass(self, me, to, frame):
        path = self.paths[me, to]
        with self._lock:
            path.frames += 1
            # Drawn in every case, so that one setting does not move another's draws.
            lost, twice, late = (path.draw.random() for _ in range(3))
            if path.cut or lost < path.loss:
                self.dropped += 1
                return
            low, high = path.delay_s
            copies = 2 if twice < path.twice else 1
            self.doubled += copies - 1
        for copy in range(copies):
            due = low + (high - low) * late * (1 + copy)
            if due <= 0:
                self._give(to, frame)
            else:
                self._count += 1
                heapq.heappush(self._late, (time.monotonic() + due, self._count, to, frame))

    def _give(self, to, frame):
        try:
            self.ends[to].send(frame)
            self.carried += 1
        except OSError:
            self.dropped += 1


def mac(number):
    return bytes((0x02, 0xfb, 0, 0, number >> 8, number & 0xff))


class SpacedNode(Node):
    """A node whose process has a network of its own."""

    def __init__(self, home, env, fabric, number):
        super().__init__(home, env)
        self.fabric, self.number = fabric, number
        self.namespace = f"fb{os.getpid()}n{next(SERIAL)}"
        ip("netns", "add", self.namespace)
        # Those of an earlier test may still be on their way out.
        serial = f"{os.getpid() % 10000}x{next(SERIAL)}"
        inner, outer = f"fbi{serial}", f"fbo{serial}"
        ip("link", "add", outer, "type", "veth", "peer", "name", inner)
        ip("link", "set", inner, "address", mac(number).hex(":"), "netns", self.namespace)
        ip("link", "set", outer, "up")
        within = ("netns", "exec", self.namespace, "ip")
        ip(*within, "addr", "add", f"10.77.0.{number + 1}/24", "dev", inner)
        ip(*within, "link", "set", inner, "up")
        ip(*within, "link", "set", "lo", "up")
        ip("netns", "exec", self.namespace, sys.executable, "-c", SET_UP, inner)
        self.prefix = ["ip", "netns", "exec", self.namespace]
        self.port = f"10.77.0.{number + 1}:7700"
        assert fabric.wire.attach(outer) == number

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.namespace], check=False, capture_output=True)


class Namespaces(Net):
    """Nodes on a wire."""

    whole = True

    def __init__(self, directory, seed=1):
        super().__init__(directory)
        self.wire = Wire(seed)

    def node(self, name):
        node = SpacedNode(self.directory / name, self.env, self, len(self.nodes))
        self.nodes.append(node)
        return node

    def __exit__(self, *words):
        super().__exit__(*words)
        self.wire.close()
        for node in self.nodes:
            node.remove()

    def options(self, node):
        return ()

    def weather(self, loss=0.0, twice=0.0, delay_s=(0.0, 0.0)):
        for path in self.wire.paths.values():
            path.loss, path.twice, path.delay_s = loss, twice, delay_s

    def one_way(self, sender, receiver):
        """Nothing of the sender reaches the receiver any more."""
        self.wire.paths[sender.number, receiver.number].cut = True

    def split(self, *groups):
        for one in groups:
            for other in groups:
                for a in one:
                    for b in other:
                        if one is not other:
                            self.one_way(a, b)

    def heal(self):
        for path in self.wire.paths.values():
            path.clear()


class Relays(Net):
    """The same with less, for machines where nobody may make a namespace."""

    whole = False

    def node(self, name):
        node = super().node(name)
        node.number = len(self.nodes) - 1
        self.relay(node)
        return node

    def options(self, node):
        return ("--advertise", self.relays[node.number].address)

    def weather(self, loss=0.0, twice=0.0, delay_s=(0.0, 0.0)):
        pass

    def one_way(self, sender, receiver):
        self.relays[receiver.number].cut()
        self.relays[sender.number].cut()

    def split(self, *groups):
        for group in sorted(groups, key=len)[:-1]:
            for node in group:
                self.relays[node.number].cut()

    def heal(self):
        for relay in self.relays:
            relay.heal()


def stop_process(node):
    node.process.send_signal(signal.SIGSTOP)


def continue_process(node):
    node.process.send_signal(signal.SIGCONT)
