# SPDX-License-Identifier: Apache-2.0
"""Signatures of vectors. "ed25519" is the profile's. "sim-1" is what the simulator's nodes use when
nobody asks for more: a keyed hash with the same shape and no security at all."""

import nacl.exceptions
import nacl.signing

WORD = (1 << 64) - 1


def ed25519(public_key, message, signature):
    try:
        nacl.signing.VerifyKey(public_key).verify(message, signature)
    except nacl.exceptions.BadSignatureError:
        return False
    return True


def take(mix, x, y):
    """One round of the mixer: two words go in."""
    product = (mix[0] ^ x) * (mix[1] ^ y)
    b = (mix[1] + (product >> 64)) & WORD
    return (product & WORD) ^ b, b


def words(data):
    return [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]


def mix128(data, key):
    """The whole blocks of 16 bytes go into two mixers by turns, except that the last one of an odd
    number goes into the first; the rest, padded with zeros, into the second."""
    even = (key ^ 0x243F6A8885A308D3, 0x13198A2E03707344)
    odd = (key ^ 0xA4093822299F31D0, 0x082EFA98EC4E6C89)
    whole = len(data) // 16
    for i in range(whole):
        pair = words(data[16 * i:16 * i + 16])
        if i % 2 == 0:
            even = take(even, *pair)
        else:
            odd = take(odd, *pair)
    odd = take(odd, *words(data[16 * whole:].ljust(16, b"\0")))
    even = take(even, odd[0] ^ len(data), odd[1])
    return take(even, 0x452821E638D01377, 0xBE5466CF34E90C6C)


def sim_1(public_key, message, signature):
    """The key's four words are mixed into the seed of the hash over the message; its 128 bits are
    stretched to 64 bytes."""
    key = words(public_key)
    mixed = take(take((0x5A31D7C08E64F92B, 0), *key[:2]), *key[2:])
    a, b = mix128(message, mixed[0] ^ mixed[1])
    out = b""
    for i in range(8):
        a = ((a ^ b >> 29) * 0x9FB21C651E98DF25 + i) & WORD
        b = ((b ^ a >> 31) * 0xD6E8FEB86659FD93 + 1) & WORD
        out += (a ^ b).to_bytes(8, "little")
    return out == signature


SCHEMES = {"ed25519": ed25519, "sim-1": sim_1}
