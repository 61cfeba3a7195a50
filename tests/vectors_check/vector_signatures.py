# SPDX-License-Identifier: Apache-2.0
"""Signatures of vectors. "ed25519" is the profile's. "sim-1" is what the simulator's nodes use when
nobody asks for more: a keyed hash with the same shape and no security at all."""

import nacl.exceptions
import nacl.signing
import xxhash

WORD = (1 << 64) - 1


def ed25519(public_key, message, signature):
    try:
        nacl.signing.VerifyKey(public_key).verify(message, signature)
    except nacl.exceptions.BadSignatureError:
        return False
    return True


def sim_1(public_key, message, signature):
    """XXH3-64 of the key is the seed of XXH3-128 over the message (over the hash and length of one
    longer than 240 bytes); the 128 bits are stretched to 64 bytes."""
    seed = xxhash.xxh3_64_intdigest(public_key, seed=0x5A31D7C08E64F92B)
    if len(message) > 240:
        plain = xxhash.xxh3_128_intdigest(message, seed=0)
        message = ((plain & WORD).to_bytes(8, "little") + (plain >> 64).to_bytes(8, "little")
                   + len(message).to_bytes(8, "little"))
    whole = xxhash.xxh3_128_intdigest(message, seed=seed)
    a, b, out = whole & WORD, whole >> 64, b""
    for i in range(8):
        a = ((a ^ b >> 29) * 0x9FB21C651E98DF25 + i) & WORD
        b = ((b ^ a >> 31) * 0xD6E8FEB86659FD93 + 1) & WORD
        out += (a ^ b).to_bytes(8, "little")
    return out == signature


SCHEMES = {"ed25519": ed25519, "sim-1": sim_1}
