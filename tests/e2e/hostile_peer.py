# SPDX-License-Identifier: Apache-2.0
"""A member that says what it likes: the link of docs/WIRE-FORMATS.md on noiseprotocol, under the keys of a
node that was approved and is stopped. Nothing here is shared with the runtime."""
import hashlib
import os
import socket
import sys
import time
from pathlib import Path

import nacl.signing
from noise.connection import Keypair, NoiseConnection

from node import HANGS_S

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "specs-conformance"))
import envelope_model  # noqa: E402  (the path is set above)

CONTROL, MESSAGING, CALLS = 0, 1, 2
FIRST, LAST = 1, 2
WHOLE = FIRST | LAST


def be(value, size):
    return value.to_bytes(size, "big")


def key_of(path):
    return bytes.fromhex(path.read_text().split()[2])


class Keys:
    """What a node's directory holds."""

    def __init__(self, home):
        self.node, self.link = key_of(home / "node.key"), key_of(home / "link.key")
        self.signing = nacl.signing.SigningKey(self.node)
        self.public = bytes(self.signing.verify_key)
        self.id = envelope_model.node_id_of(self.public)


def space_tag(space):
    return hashlib.blake2b(b"faberio-space-tag-v1\0" + space, digest_size=16).digest()


class Peer:
    """One link to a node, dialled."""

    def __init__(self, address, keys, space, incarnation=None):
        self.keys, self.space = keys, space
        self.incarnation = incarnation or int.from_bytes(os.urandom(7), "big") + 1
        host, port = address.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), timeout=HANGS_S)
        self.number = 0

    # Bytes.

    def raw(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            pass  # it was ended already: that is looked at by ended()

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def framed(self, data):
        self.raw(be(len(data), 2) + data)

    def ended(self):
        """Reads until the node ends the link; fails when it does not."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionError:
            pass
        self.sock.close()
        return True

    # The handshake.

    def preamble(self, low=1, high=1, magic=b"FBLK", tag=None):
        self.said = magic + bytes((low, high)) + (space_tag(self.space) if tag is None else tag)
        self.raw(self.said)
        return self

    def answer(self):
        self.heard = self.read(7)
        return self.heard[6]

    def noise(self):
        n = NoiseConnection.from_name(b"Noise_XX_25519_ChaChaPoly_BLAKE2b")
        n.set_as_initiator()
        n.set_prologue(b"faberio-link-v1\0" + self.said + self.heard + self.space)
        n.set_keypair_from_private_bytes(Keypair.STATIC, self.keys.link)
        n.start_handshake()
        self.framed(bytes(n.write_message()))
        n.read_message(self.read(int.from_bytes(self.read(2), "big")))
        self.framed(bytes(n.write_message()))
        self.session = n
        return self

    def binding(self, role=1, key=None, incarnation=None, sign_with=None, spoil=0):
        n = self.session
        static = n.noise_protocol.keypairs["s"].public_bytes
        incarnation = self.incarnation if incarnation is None else incarnation
        text = (b"faberio-binding-v1\0" + bytes((role,)) + n.get_handshake_hash() + static +
                be(incarnation, 8))
        signature = bytearray((sign_with or self.keys.signing).sign(text).signature)
        signature[0] ^= spoil
        self.sealed((key or self.keys.public) + be(incarnation, 8) + bytes(signature))
        return self

    def sealed(self, plain):
        self.framed(bytes(self.session.encrypt(plain)))

    def open(self):
        """A link as an honest member has it, to the first record of the node."""
        self.preamble()
        assert self.answer() == 0
        self.noise()
        self.binding()
        bound = self.receive()
        assert len(bound) == 32 + 8 + 64, bound.hex()
        self.heartbeat()
        self.record(CONTROL, WHOLE, b"\x06\x0e" + be(0, 2))
        return self

    # Records.

    def receive(self):
        return bytes(self.session.decrypt(self.read(int.from_bytes(self.read(2), "big"))))

    def record(self, channel, flags, body):
        self.sealed(bytes((channel, flags)) + body)
        return self

    def heartbeat(self, flags=1):
        now = time.time_ns() // 1000
        self.record(CONTROL, WHOLE, b"\x01" + bytes((flags,)) + be(now, 8) + be(time.monotonic_ns(), 8) +
                    bytes(8 + 8 + 16))

    def goes_on(self):
        """The node still answers on this link: it names a heartbeat of ours that was said now."""
        said = time.monotonic_ns()
        self.heartbeat()
        while True:
            plain = self.receive()
            if plain[:3] == b"\x00\x03\x01" and int.from_bytes(plain[20:28], "big") >= said:
                return True

    def settled(self):
        """The outcome of all messages so far is final: the node acknowledged the last one."""
        while True:
            plain = self.receive()
            if (plain[0] == MESSAGING and plain[2] == 2 and
                    int.from_bytes(plain[3:11], "big") >= self.number):
                return True

    def close(self):
        self.sock.close()

    # Messages.

    def envelope(self, **changed):
        fields = {
            "id": uuid7(), "information_space_id": self.space, "source_node_id": self.keys.id,
            "delivery_mode": 2, "target": b"platform.replication.database",
            "message_type": "platform.replication.changed",
            "payload": b'{"object_id":"0190a3b4-0000-7000-8000-000000000001"}',
            "timestamp": time.time_ns() // 1000000,
        }
        fields.update(changed)
        return envelope_model.Envelope(**fields)

    def message(self, content, number=None):
        self.number = self.number + 1 if number is None else number
        return self.record(MESSAGING, WHOLE, b"\x01" + be(self.number, 8) + content)

    def signed(self, seed=None, **changed):
        e = self.envelope(**changed).signed(seed or self.keys.node)
        return self.message(envelope_model.encode_protobuf(e))

    # Calls.

    def call(self, number, method, arguments=b"", left_ms=5000, credit=65536):
        return self.record(CALLS, WHOLE, b"\x01" + be(number, 8) + be(method, 2) + be(left_ms, 4) +
                           be(credit, 8) + arguments)


def uuid7():
    raw = bytearray(be(time.time_ns() // 1000000, 6) + os.urandom(10))
    raw[6] = 0x70 | raw[6] & 15
    raw[8] = 0x80 | raw[8] & 63
    return bytes(raw)
