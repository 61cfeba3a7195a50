# SPDX-License-Identifier: Apache-2.0
"""The model itself, on lines written by hand: what runs of the simulator do not show."""

import copy

import nacl.signing
import pytest

import vector_check
from vector_envelope import Envelope, Refused, decode, node_id, write_fields

SELF = nacl.signing.SigningKey(b"\1" * 32)
PEER = nacl.signing.SigningKey(b"\2" * 32)
SPACE = "01900000-0000-7000-8000-000000000001"
STATE = "01900000-0000-7000-8000-00000000000a"
OBJECT = "01900000-0000-7000-8000-00000000000b"
T0 = 1_790_000_000_000
DATABASE = b"platform.replication.database"


def uuid7(n):
    return bytes.fromhex("0190000000007000") + (0x8000000000000000 + n).to_bytes(8, "big")


def who(key):
    public = bytes(key.verify_key)
    return {"node_id": node_id(public).hex(), "public_key": public.hex()}


HEADER = {
    "vector": "by hand", "format": vector_check.FORMAT, "source": "", "signatures": "ed25519",
    "self": who(SELF), "peer": who(PEER), "information_space_id": SPACE, "state_object_id": STATE,
    "subscriptions": [DATABASE.decode()], "seen": [], "floor_ms": 0,
    "limits": {"past_ms": 900000, "future_ms": 300000, "seen_ids": 2, "rate_per_s": 1,
               "rate_burst": 5, "redeliver_ms": 60000, "resend_min_ms": 400, "resend_max_ms": 5000,
               "window_messages": 2, "window_bytes": 262144},
}
BEGIN = [{"do": "start", "mono_ns": "0", "wall_ms": T0, "incarnation": "0" * 15 + "1", "lost": []},
         {"do": "link_up", "mono_ns": "0", "wall_ms": T0, "link": 1, "carrier": "stream"}]


def fields(key, n, payload, kind="changed", to=None, timestamp=T0, correlation=None):
    """An envelope's fields without the signature; `to` None: the topic of records."""
    made = {1: uuid7(n), 2: bytes.fromhex(SPACE.replace("-", "")),
            3: bytes.fromhex(who(key)["node_id"]), 4: 2 if to is None else 1,
            5: DATABASE if to is None else bytes.fromhex(who(to)["node_id"]),
            6: f"platform.replication.{kind}".encode(), 7: payload.encode(), 8: timestamp}
    if correlation is not None:
        made[9] = correlation
    return made


def signed(key, raw):
    raw = dict(raw)
    raw[10] = key.sign(Envelope(raw, raw[4], "", {}).preimage()).signature
    return write_fields(raw).hex()


def changed(key, n, **more):
    return signed(key, fields(key, n, f'{{"object_id":"{OBJECT}"}}', **more))


def deliver(number, envelope, verdict, reason=None, at_ms=0):
    line = {"do": "deliver", "mono_ns": str(at_ms * 1000000), "wall_ms": T0 + at_ms, "link": 1,
            "number": number, "envelope": envelope, "verdict": verdict}
    return line if reason is None else line | {"reason": reason}


def do(what, at_ms, **members):
    return {"do": what, "mono_ns": str(at_ms * 1000000), "wall_ms": T0 + at_ms, **members}


def send(number, envelope):
    return {"out": "send", "link": 1, "number": number, "envelope": envelope}


def why(*lines):
    found = vector_check.check([copy.deepcopy(HEADER), *BEGIN, *lines])
    return None if found is None else found[1]


SYNC = signed(PEER, fields(PEER, 1, f'{{"object_id":"{OBJECT}"}}', kind="sync", to=SELF))
ANSWER = changed(SELF, 7, to=PEER, correlation=uuid7(1))


def test_a_sync_is_answered_once_and_when_it_is_durable():
    asked = deliver(1, SYNC, "accept")
    durable = do("durable", 1, accepted=1)
    acked = {"out": "ack", "link": 1, "number": 1}
    assert why(asked, durable, acked, send(1, ANSWER), do("tick", 20000)) is None
    assert "before it is durable" in why(asked, send(1, ANSWER))
    assert "answers a `sync`" in why(asked, durable, send(1, ANSWER), send(2, changed(
        SELF, 8, to=PEER, correlation=uuid7(1))))
    assert "without its answer" in why(asked, durable, acked, do("tick", 20000))
    other = signed(SELF, fields(SELF, 7, f'{{"object_id":"{STATE}"}}', to=PEER,
                                correlation=uuid7(1)))
    assert "another object" in why(asked, durable, send(1, other))
    assert "answers a `sync`" in why(send(1, ANSWER))


def test_the_scope_of_a_sync_is_answered_for_the_space():
    asked = signed(PEER, fields(PEER, 1, '{"scope":"all"}', kind="sync", to=SELF))
    answer = signed(SELF, fields(SELF, 7, f'{{"object_id":"{STATE}"}}', to=PEER,
                                 correlation=uuid7(1)))
    lines = [deliver(1, asked, "accept"), do("durable", 1, accepted=1)]
    assert why(*lines, send(1, answer)) is None
    assert "another object" in why(*lines, send(1, ANSWER))


def test_an_accepted_message_must_be_acknowledged():
    lines = [deliver(1, changed(PEER, 1), "accept"), do("durable", 1, accepted=1)]
    assert "never acknowledged" in why(*lines, do("tick", 20000))
    assert why(*lines, {"out": "ack", "link": 1, "number": 1}, do("tick", 20000)) is None


def test_a_publish_must_be_announced():
    assert "never announced" in why(do("publish", 0, object_id=OBJECT), do("tick", 20000))
    assert why(do("publish", 0, object_id=OBJECT), send(1, changed(SELF, 3)),
               do("tick", 20000)) is None


def test_the_window_is_a_bound():
    three = [send(n, changed(SELF, n)) for n in (1, 2, 3)]
    assert why(*three[:2]) is None
    assert "window" in why(*three)
    assert why(*three[:2], do("ack", 1, link=1, number=1), three[2]) is None


def test_the_rate_is_a_bucket():
    lines = [deliver(n, changed(PEER, n, timestamp=T0 + n), "accept") for n in range(1, 6)]
    sixth = changed(PEER, 6, timestamp=T0 + 6)
    assert why(*lines, deliver(6, sixth, "refuse", "rate_limited")) is None
    assert "rate_limited" in why(*lines, deliver(6, sixth, "accept"))
    assert why(*lines, deliver(6, sixth, "accept", at_ms=1000)) is None


def test_a_full_record_raises_the_floor():
    lines = [deliver(n, changed(PEER, n, timestamp=T0 + n), "accept") for n in (1, 2, 3)]
    again = changed(PEER, 1, timestamp=T0 + 1)
    assert why(*lines, deliver(4, again, "refuse", "stale")) is None
    assert why(*lines[:2], deliver(3, again, "refuse", "duplicate")) is None


@pytest.mark.parametrize("ms, reason", [
    (-900000, None), (-900001, "stale"), (300000, None), (300001, "from_future")])
def test_the_window_of_time_is_inclusive(ms, reason):
    line = deliver(1, changed(PEER, 1, timestamp=T0 + ms), "refuse" if reason else "accept", reason)
    assert why(line) is None


def without(field):
    return lambda raw: {k: v for k, v in raw.items() if k != field}


def having(field, value):
    return lambda raw: raw | {field: value}


def deep(n):
    return f'{{"object_id":"{OBJECT}","x":' + "[" * n + "]" * n + "}"


@pytest.mark.parametrize("reason, change", [
    ("bad_uuid", having(1, b"\0" * 16)), ("bad_uuid", having(2, b"x" * 15)),
    ("bad_uuid", having(9, b"x" * 16)), ("bad_node_id", having(3, b"x" * 17)),
    ("bad_mode", having(4, 3)), ("bad_target", having(5, b"platform.replication.9")),
    ("bad_target", having(5, b"platform.replication." + b"a" * 108)),
    ("bad_type", having(6, b"platform.replication.fetch")), ("bad_type", having(6, b"\xff")),
    ("bad_timestamp", having(8, 1 << 53)), ("malformed", without(7)), ("malformed", without(10)),
    ("malformed", having(10, b"x" * 63)), ("malformed", having(5, b"")),
    ("bad_payload", having(7, b"\xef\xbb\xbf{}")), ("bad_payload", having(7, b"[]")),
    ("bad_payload", having(7, b"{}")), ("bad_payload", having(7, b"\xff")),
    ("bad_payload", having(7, f'{{"object_id":"{OBJECT.upper()}"}}'.encode())),
    ("bad_payload", having(7, f'{{"object_id":"{OBJECT}","a":1,"\\u0061":2}}'.encode())),
    ("bad_payload", having(7, f'{{"object_id":"{OBJECT}","a":"\\u0000"}}'.encode())),
    ("bad_payload", having(7, f'{{"object_id":"{OBJECT}","a":"\\ud800"}}'.encode())),
    ("bad_payload", having(7, f'{{"object_id":"{OBJECT}","a":01}}'.encode())),
    ("bad_payload", having(7, f'{{"object_id":"{OBJECT}","a":NaN}}'.encode())),
    ("bad_payload", having(7, b'{"object_id":1}')), ("bad_payload", having(7, deep(16).encode())),
    ("bad_payload", having(7, b'{"a":"' + b"a" * 49152 + b'"}')),
    ("too_large", having(7, b"a" * 50176)),
    ("wrong_space", having(2, uuid7(9))), ("not_origin", having(3, b"x" * 16)),
    ("bad_signature", having(8, T0 + 1)), ("bad_signature", having(7, deep(15).encode())),
])
def test_each_reason_has_its_defect(reason, change):
    raw = fields(PEER, 1, f'{{"object_id":"{OBJECT}"}}')
    raw[10] = bytes.fromhex(signed(PEER, raw))[-64:]
    made = write_fields(change(raw)).hex()
    assert why(deliver(1, made, "refuse", reason)) is None
    assert reason in why(deliver(1, made, "accept"))


@pytest.mark.parametrize("change", [
    lambda data: data + b"\x58\1", lambda data: data[18:] + data[:18], lambda data: data[:-1],
    lambda data: data.replace(b"\x20\x02", b"\x20\x82\0"), lambda data: data[:18] + data])
def test_one_encoding_only(change):
    data = bytes.fromhex(changed(PEER, 1))
    assert decode(data)
    with pytest.raises(Refused, match="malformed"):
        decode(change(data))
