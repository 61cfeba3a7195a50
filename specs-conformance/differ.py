#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An adapter against the model, on inputs that nobody wrote: vectors with bytes changed, and random lives
of a receiver. Prints each difference; the seed brings it back.

    differ.py --adapter CMD [--seed N] [--envelopes N] [--sessions N]"""
import argparse
import random
import sys

import envelope_model as model
import suite
import vector_bytes
from receiver_model import Receiver
from suite_adapter import Process
from vector_make import (A, C, D, MINUTE, NOW, OTHER_SPACE, TOPIC, context, id_of, message, protobuf,
                         unicast)

SCRAPS = [b'"', b"\\", b"\\u0000", b"\\ud800", b"\\udc00", b"{", b"}", b"[", b"]", b",", b":", b" ",
          b"\xef\xbb\xbf", b"null", b"true", b"1e5", b"-", b"0", b"\x00", b"\x80", b"\xff", b"\\\"",
          b"\xe2\x82\xac", b"\\\\", b"\\\\u0061", b'"scope":"all"', b'"object_id":null', b"\n", b".",
          b"e", b"\x0a\x10", b"\x4a\x10"]
SHORT = 3000


def verdict_of_model(judge, *arguments):
    try:
        judge(*arguments)
    except model.Refused as refused:
        return refused.reason, refused.field
    return None, None


def differs(expected, answer):
    """The field counts where the model names one."""
    reason, field = expected
    return answer.get("reason") != reason or (field is not None and answer.get("field") != field)


# ---- Envelopes ----


def changed(rng, data, others):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(6)
        if kind == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            data[at:at] = rng.choice(SCRAPS)
        elif kind == 2:
            del data[at:at + rng.choice((1, 1, 2, 5))]
        elif kind == 3:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start:start + rng.randrange(60)]
        elif kind == 4 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        else:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            data[at:at + rng.randrange(20)] = other[start:start + rng.randrange(40)]
    return bytes(data)


def envelopes(adapter, rng, count):
    seeds = {"json": [], "protobuf": []}
    for row in suite.load().envelopes:
        data = vector_bytes.expand(row["input"])
        if len(data) < SHORT:
            seeds[row["encoding"]].append(data)
    for _ in range(count):
        encoding = rng.choice(("json", "protobuf"))
        data = changed(rng, rng.choice(seeds[encoding]), seeds[encoding])
        expected = verdict_of_model(model.DECODE[encoding], data)
        answer = adapter.ask({"op": "verify", "encoding": encoding, "input": data.hex()})
        if differs(expected, answer):
            yield f"{encoding} {data.hex()}: the model says {expected}, the adapter {answer}"


# ---- Sessions ----


def random_message(rng, now):
    sender = rng.choice((A, A, A, C, D))
    make = rng.choice((message, message, unicast))
    near = (0, 0, 1, -1, 1000, -15 * MINUTE, -15 * MINUTE - 1, 5 * MINUTE, 5 * MINUTE + 1,
            -20 * MINUTE)
    changes = {"id": id_of(rng.randrange(12)), "timestamp": max(now + rng.choice(near), 1)}
    if rng.randrange(12) == 0:
        changes["information_space_id"] = OTHER_SPACE
    if rng.randrange(8) == 0:
        changes["target"] = C.node_id if make is unicast else (TOPIC + "file").encode()
    e = make(sender, **changes)
    if rng.randrange(12) == 0:
        e = model.dataclasses.replace(e, signature=bytes(64))
    return protobuf(e)


def random_step(rng, now, mono):
    """A step as sequences have it, and the clocks behind it."""
    kind = rng.randrange(12)
    if kind == 0:
        now += rng.choice((1, 1000, MINUTE, 30 * MINUTE, -MINUTE, -30 * MINUTE, 600 * MINUTE,
                           -600 * MINUTE))
        now = max(now, -NOW)
        return {"do": "clock", "now_ms": now}, now, mono
    if kind == 1:
        mono += rng.choice((1, 250, 500, 1000, 10000))
        return {"do": "clock", "mono_ms": mono}, now, mono
    if kind == 2:
        step = {"do": "link", "peer": rng.choice((A, A, C)).node_id.hex()}
        if rng.randrange(2):
            step["offset_ms"] = rng.choice((0, 5 * MINUTE, 5 * MINUTE + 1, -15 * MINUTE, -99 * MINUTE))
        return step, now, mono
    if kind == 3:
        status = rng.choice(("approved", "approved", "pending", "revoked"))
        return {"do": "member", "public_key": rng.choice((A, C, D)).public_key.hex(),
                "status": status}, now, mono
    if kind == 4:
        return {"do": rng.choice(("subscribe", "unsubscribe")),
                "topic": TOPIC + rng.choice(("file", "database"))}, now, mono
    return None, now, mono


def one_session(adapter, rng):
    limits = {"rate_per_s": rng.choice((0, 2, 4)), "rate_burst": rng.choice((3, 5)),
              "seen_ids": rng.choice((2, 3, 8))}
    began = context(**limits, peer=rng.choice((None, A.node_id.hex())))
    receiver = Receiver(began)
    adapter.ask({"op": "session", "do": "open", "context": began})
    now, mono, told = NOW, 0, []
    for _ in range(40):
        step, now, mono = random_step(rng, now, mono)
        if step is not None:
            getattr(receiver, step["do"])(**{name: one for name, one in step.items() if name != "do"})
            adapter.ask({"op": "session"} | step)
            told.append(step)
            continue
        data = random_message(rng, now)
        expected = verdict_of_model(receiver.deliver, "protobuf", data)
        answer = adapter.ask({"op": "session", "do": "deliver", "encoding": "protobuf",
                              "input": data.hex()})
        told.append({"do": "deliver", "input": data.hex(), "expected": expected})
        if differs(expected, answer) or answer.get("floor_reset", False) != receiver.floor_reset:
            return (f"the model says {expected}, floor reset {receiver.floor_reset}, the adapter "
                    f"{answer}, after {began} and {told}")
    return None


def sessions(adapter, rng, count):
    for _ in range(count):
        wrong = one_session(adapter, rng)
        if wrong is not None:
            yield wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--adapter", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--envelopes", type=int, default=100000)
    parser.add_argument("--sessions", type=int, default=2000)
    arguments = parser.parse_args()
    adapter = Process(arguments.adapter)
    found = 0
    for part, count in ((envelopes, arguments.envelopes), (sessions, arguments.sessions)):
        for wrong in part(adapter, random.Random(arguments.seed), count):
            print(wrong)
            found += 1
    adapter.close()
    print(f"seed {arguments.seed}: {arguments.envelopes} envelopes, {arguments.sessions} sessions, "
          f"{found} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
