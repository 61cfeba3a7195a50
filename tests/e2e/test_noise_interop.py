# SPDX-License-Identifier: Apache-2.0
"""The link's Noise sessions against the PyPI package noiseprotocol, over sockets, in both roles."""

import os
import socket
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from noise.connection import Keypair, NoiseConnection

PEER = Path(os.environ["FABERIO_BUILD"]) / "interop" / "noise_peer"
PROLOGUE = b"faberio-link-v1\0" + bytes(range(45))
SECRET = bytes(range(1, 33))
REKEY_EVERY = 1 << 16


def public_of(secret: bytes) -> str:
    key = X25519PrivateKey.from_private_bytes(secret).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def receive(sock: socket.socket) -> bytes:
    return read_exactly(sock, int.from_bytes(read_exactly(sock, 2), "big"))


def send(sock: socket.socket, message: bytes) -> None:
    sock.sendall(len(message).to_bytes(2, "big") + message)


class Session:
    """One end on noiseprotocol, with the profile's rule for REKEY."""

    def __init__(self, sock: socket.socket, initiator: bool, prologue: bytes = PROLOGUE):
        self.sock = sock
        self.noise = NoiseConnection.from_name(b"Noise_XX_25519_ChaChaPoly_BLAKE2b")
        if initiator:
            self.noise.set_as_initiator()
        else:
            self.noise.set_as_responder()
        self.noise.set_prologue(prologue)
        self.noise.set_keypair_from_private_bytes(Keypair.STATIC, SECRET)
        self.noise.start_handshake()
        writes = initiator
        while not self.noise.handshake_finished:
            if writes:
                send(sock, bytes(self.noise.write_message()))
            else:
                assert bytes(self.noise.read_message(receive(sock))) == b""
            writes = not writes
        self.hash = self.noise.get_handshake_hash().hex()

    def set_nonces(self, nonce: int) -> None:
        protocol = self.noise.noise_protocol
        protocol.cipher_state_encrypt.n = nonce
        protocol.cipher_state_decrypt.n = nonce

    def send(self, plain: bytes) -> None:
        n = self.noise.noise_protocol.cipher_state_encrypt.n
        if n > 0 and n % REKEY_EVERY == 0:
            self.noise.rekey_outbound_cipher()
        send(self.sock, bytes(self.noise.encrypt(plain)))

    def receive(self) -> bytes:
        n = self.noise.noise_protocol.cipher_state_decrypt.n
        if n > 0 and n % REKEY_EVERY == 0:
            self.noise.rekey_inbound_cipher()
        return bytes(self.noise.decrypt(receive(self.sock)))


def run_peer(mode: str, prologue: bytes, nonce: int, messages: int) -> subprocess.Popen:
    return subprocess.Popen(
        [PEER, mode, prologue.hex(), str(nonce), str(messages)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(peer: subprocess.Popen, session: Session) -> None:
    out, err = peer.communicate(timeout=60)
    assert peer.returncode == 0, err
    assert out.split()[-2:] == [session.hash, public_of(SECRET)]


# From nonce 0 as in a fresh link, and across the first and the second REKEY.
@pytest.mark.parametrize("nonce", [0, REKEY_EVERY - 3, 2 * REKEY_EVERY - 2])
def test_initiator(nonce: int) -> None:
    # FM-11-3, MP-7-6
    peer = run_peer("listen", PROLOGUE, nonce, 7)
    port = int(peer.stdout.readline())
    with socket.create_connection(("127.0.0.1", port)) as sock:
        session = Session(sock, initiator=True)
        session.set_nonces(nonce)
        for i in range(7):
            plain = bytes((i + b) % 256 for b in range(1 + i * 2700))
            session.send(plain)
            assert session.receive() == plain[::-1]
        finish(peer, session)


@pytest.mark.parametrize("nonce", [0, REKEY_EVERY - 3, 2 * REKEY_EVERY - 2])
def test_responder(nonce: int) -> None:
    # FI-0-1
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = run_peer(f"connect:{server.getsockname()[1]}", PROLOGUE, nonce, 7)
        sock, _ = server.accept()
        with sock:
            session = Session(sock, initiator=False)
            session.set_nonces(nonce)
            for _ in range(7):
                session.send(session.receive()[::-1])
            finish(peer, session)


def test_another_prologue_fails() -> None:
    peer = run_peer("listen", PROLOGUE, 0, 0)
    port = int(peer.stdout.readline())
    with socket.create_connection(("127.0.0.1", port)) as sock:
        with pytest.raises(Exception):
            Session(sock, initiator=True, prologue=PROLOGUE + b"x")
    _, err = peer.communicate(timeout=60)
    assert peer.returncode == 1
    assert "ended" in err
