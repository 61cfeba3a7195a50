# SPDX-License-Identifier: Apache-2.0
"""A relay between a node and a MongoDB server that understands as much of the protocol as is needed to
cut, hold or spoil what is said at a chosen point, and to look at what is asked."""
import socket
import struct
import threading

import bson

from node import HANGS_S

OP_MSG = 2013


def _message(source):
    """One whole message, or None at the end."""
    head = b""
    while len(head) < 16:
        part = source.recv(16 - len(head))
        if not part:
            return None
        head += part
    length = struct.unpack_from("<i", head)[0]
    body = bytearray(head)
    while len(body) < length:
        part = source.recv(length - len(body))
        if not part:
            return None
        body += part
    return bytes(body)


def _command(message):
    """The command's name and document; of another form of message an empty name."""
    if struct.unpack_from("<i", message, 12)[0] != OP_MSG or message[20] != 0:
        return "", {}
    size = struct.unpack_from("<i", message, 21)[0]
    document = bson.decode(message[21:21 + size])
    at, sections = 21 + size, {}
    while at + 5 < len(message) and message[at] == 1:
        length = struct.unpack_from("<i", message, at + 1)[0]
        end = message.index(b"\0", at + 5)
        name = message[at + 5:end].decode()
        sections[name] = bson.decode_all(message[end + 1:at + 1 + length])
        at += 1 + length
    return next(iter(document)), {**document, **sections}


def _nonsense(answer):
    document = bson.encode({"ok": "yes", "n": [], "cursor": 5, "value": "none", "writeErrors": {"a": 1}})
    body = struct.pack("<IB", 0, 0) + document
    return struct.pack("<i", 16 + len(body)) + answer[4:16] + body


class MongoRelay:
    """What is planned for a command happens the next time that it is asked, and once:

    cut      neither the question nor an answer passes, the connection breaks
    lose     the server does what is asked; its answer does not come back, the connection breaks
    hold     the connection breaks, and the server gets the question when `release` says so
    later    the question is asked when `release` says so
    wait     the answer is given when `release` says so
    twice    the server is asked twice, as by a network that repeats; the first answer is lost
    again    the answer is given twice, as by a network that repeats
    nonsense the answer is a document that says nothing of what it should
    short    half of the answer is given, and the connection breaks"""

    def __init__(self, port):
        self.port = port
        self.seen = []  # (command, document), as it was asked
        self.done = []  # plans that were carried out
        self._plans = []
        self._released = threading.Event()
        self._held = []
        self._lock = threading.Lock()
        self._open = set()
        self.opened = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def uri(self, database):
        return f"mongodb://127.0.0.1:{self.address}/{database}?directConnection=true"

    def plan(self, command, action):
        with self._lock:
            self._plans.append((command, action))

    def release(self):
        self._released.set()
        for thread in self._held:
            thread.join(timeout=HANGS_S)

    @property
    def open(self):
        with self._lock:
            return len(self._open)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _planned(self, name):
        with self._lock:
            for plan in self._plans:
                if plan[0] == name:
                    self._plans.remove(plan)
                    self.done.append(plan)
                    return plan[1]
        return None

    def _later(self, far, message):
        self._released.wait(timeout=HANGS_S)
        try:
            far.sendall(message)
            _message(far)
        except OSError:
            pass
        far.close()

    def _serve(self, near):
        far = None
        with self._lock:
            self._open.add(near)
            self.opened += 1
        try:
            far = socket.create_connection(("127.0.0.1", self.port), timeout=HANGS_S)
            far.settimeout(None)
            while (message := _message(near)) is not None:
                name, document = _command(message)
                if name:
                    self.seen.append((name, document))
                action = self._planned(name)
                if action == "cut":
                    return
                if action == "hold":
                    held = threading.Thread(target=self._later, args=(far, message), daemon=True)
                    self._held.append(held)
                    held.start()
                    far = None
                    return
                if action == "later":
                    self._released.wait(timeout=HANGS_S)
                if action == "twice":
                    far.sendall(message)
                    if _message(far) is None:
                        return
                far.sendall(message)
                while True:
                    answer = _message(far)
                    if answer is None or action == "lose":
                        return
                    if action == "wait":
                        self._released.wait(timeout=HANGS_S)
                    if action == "nonsense":
                        answer = _nonsense(answer)
                    near.sendall(answer[:len(answer) // 2] if action == "short" else answer)
                    if action == "again":
                        near.sendall(answer)
                    if action == "short":
                        return
                    if struct.unpack_from("<I", answer, 16)[0] & 2 == 0 or action == "nonsense":
                        break
        except OSError:
            pass
        finally:
            near.close()
            if far is not None:
                far.close()
            with self._lock:
                self._open.discard(near)

    def close(self):
        self._released.set()
        self._listener.close()
        with self._lock:
            ends = list(self._open)
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
