# SPDX-License-Identifier: Apache-2.0
"""A member with a valid handshake that says every wrong thing: the link ends or the message is refused
and counted, the node and its other links go on, and nothing of it stays."""
import os
import time
import uuid

import nacl.signing
import pytest

from hostile_peer import CALLS, CONTROL, FIRST, LAST, MESSAGING, WHOLE, Keys, Peer, be
from node import Net, eventually


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """a and b, and the keys of approved nodes that do not run any more."""
    with Net(tmp_path_factory.mktemp("hostile")) as net:
        a, b, m, *others = [net.node(name) for name in "abmnop"]
        for node in (a, b, m, *others):
            node.init()
            node.start()
        a.space = uuid.UUID(a.json("space", "create", "team")["space_id"]).bytes
        invite = a.json("space", "invite", "team", "--uses", "5")["invite"]
        for node in (b, m, *others):
            node.json("space", "join", invite)
            a.json("space", "approve", "team", node.id)
            eventually(lambda node=node: node.rows("space", "list")[0]["status"],
                       lambda status: status == "approved")
        for node in (m, *others):
            node.stop()
        a.keys = Keys(m.home)
        assert a.keys.id.hex() == m.id
        a.more_keys = [Keys(node.home) for node in others]
        a.other = b
        yield a
        # Whatever was said: both nodes run, agree, and take writes.
        wrote = b.json("record", "put", "team", "notes", "new", "after=\"all of it\"")["id"]
        with a.watch("team", "--since", "0") as watch:
            watch.until([wrote])
        assert a.json("status")["state"] == "running"
        assert a.stop() == 0 and b.stop() == 0


def dial(node, **more):
    return Peer(node.listen, node.keys, node.space, **more)


def refused(node, reason):
    """How many messages of m the node refused for this."""
    return sum(row["refused"].get(reason, 0) for row in node.json("peers").get("messages", [])
               if row["node_id"] == node.keys.id.hex())


# Before anybody is known.

@pytest.mark.parametrize("words,status", [
    ({"magic": b"HTTP"}, None), ({"low": 2, "high": 9}, 1), ({"low": 3, "high": 1}, None),
    ({"tag": bytes(16)}, 2), ({"low": 0, "high": 0}, None),
])
def test_preambles(team, words, status):
    peer = dial(team).preamble(**words)
    if status is not None:
        assert peer.answer() == status
    assert peer.ended()


@pytest.mark.parametrize("first", [
    b"", bytes(31), bytes(33), bytes(65535), bytes(32), b"\x01" + bytes(31),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
])
def test_first_messages_that_are_none(team, first):
    """Wrong lengths, and points whose secret is zero for everybody."""
    peer = dial(team).preamble()
    assert peer.answer() == 0
    peer.framed(first)
    if len(first) == 32:
        peer.framed(os.urandom(64))
    assert peer.ended()


@pytest.mark.parametrize("words", [
    {"spoil": 1}, {"role": 2}, {"incarnation": 0}, {"key": bytes(32)}, {"key": b"\1" + bytes(31)},
    {"sign_with": nacl.signing.SigningKey(bytes(32))},
])
def test_bindings(team, words):
    peer = dial(team).preamble()
    assert peer.answer() == 0
    assert peer.noise().binding(**words).ended()


def test_a_binding_of_another_session(team):
    """What was signed for one handshake means nothing in the next one."""
    one, two = dial(team).preamble(), dial(team).preamble()
    for peer in (one, two):
        assert peer.answer() == 0
        peer.noise()
    static = one.session.noise_protocol.keypairs["s"].public_bytes
    text = (b"faberio-binding-v1\0\1" + one.session.get_handshake_hash() + static +
            be(one.incarnation, 8))
    two.sealed(one.keys.public + be(one.incarnation, 8) +
               bytes(one.keys.signing.sign(text).signature))
    assert two.ended()
    one.close()


# Records and frames.

ENDS = {
    "no such channel": lambda p: p.record(9, WHOLE, b"x"),
    "flags that are none": lambda p: p.record(CONTROL, 0x80 | WHOLE, b"\x01"),
    "a record of nothing": lambda p: p.sealed(b""),
    "a channel alone": lambda p: p.sealed(b"\0"),
    "longer than a record": lambda p: p.record(MESSAGING, FIRST, bytes(16384)),
    "not sealed": lambda p: p.framed(os.urandom(80)),
    "shorter than a seal": lambda p: p.framed(b"x" * 15),
    "a length of zero": lambda p: p.framed(b""),
    "a continued control frame": lambda p: p.record(CONTROL, FIRST, b"\x01"),
    "a second first": lambda p: p.record(CALLS, FIRST, b"\x01").record(CALLS, FIRST, b"\x01"),
    "a last without a first": lambda p: p.record(CALLS, LAST, b"x"),
    "longer than a frame": lambda p: [p.record(CALLS, FIRST if n == 0 else 0, bytes(16000))
                                      for n in range(5)],
    "the same record twice": lambda p: twice(p),
    "a number out of turn": lambda p: p.message(b"", number=7),
    "number zero": lambda p: p.message(b"", number=0),
    "an acknowledgement of what was not sent": lambda p: p.record(MESSAGING, WHOLE,
                                                                   b"\x02" + be(1 << 40, 8)),
    "a message frame of no kind": lambda p: p.record(MESSAGING, WHOLE, b"\x09" + bytes(20)),
    "an empty message frame": lambda p: p.record(MESSAGING, WHOLE, b""),
    "a call frame of no kind": lambda p: p.record(CALLS, WHOLE, b"\x07" + bytes(20)),
    "half a request": lambda p: p.record(CALLS, WHOLE, b"\x01" + be(1, 8)),
    "a call again": lambda p: p.call(3, 1, b"").call(3, 1, b""),
    "close": lambda p: p.record(CONTROL, WHOLE, b"\x02" + be(0xffff, 2)),
    "half a heartbeat": lambda p: p.record(CONTROL, WHOLE, b"\x01\x01"),
}


def twice(peer):
    sealed = bytes(peer.session.encrypt(bytes((CONTROL, WHOLE)) + b"\xee"))
    peer.framed(sealed)
    peer.framed(sealed)


@pytest.mark.parametrize("what", ENDS)
def test_what_ends_the_link(team, what):
    peer = dial(team).open()
    ENDS[what](peer)
    assert peer.ended()


# Messages: refused, counted, and the link goes on.

NOW = time.time_ns() // 1000000

REFUSED = {
    "bad_signature": lambda p: p.signed(seed=bytes(32)),
    "wrong_space": lambda p: p.signed(information_space_id=bytes.fromhex(
        "0190a3b4000070008000000000000009")),
    "not_origin": lambda p: p.signed(source_node_id=bytes(16)),
    "stale": lambda p: p.signed(timestamp=NOW - 24 * 3600 * 1000),
    "from_future": lambda p: p.signed(timestamp=NOW + 24 * 3600 * 1000),
    "wrong_target": lambda p: p.signed(delivery_mode=1, target=bytes(16)),
    "malformed": lambda p: p.message(os.urandom(200)),
    "bad_payload": lambda p: p.signed(payload=b'{"a":1,"a":2}'),
    "bad_type": lambda p: p.signed(message_type="platform.replication.drop"),
    "not_subscribed": lambda p: p.signed(target=b"platform.replication.nobody_asked"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_refused_and_counted(team, reason):
    peer = dial(team).open()
    before = refused(team, reason)
    REFUSED[reason](peer)
    assert peer.settled()
    assert refused(team, reason) == before + 1
    # The next one is taken: nothing behind a refused message waits for it.
    peer.signed()
    assert peer.settled()
    peer.close()


def test_a_message_twice_is_one(team):
    peer = dial(team).open()
    again = {"id": b"\x01\x90\xa3\xb4" + os.urandom(2) + b"\x70\x01\x80" + os.urandom(7)}
    before = refused(team, "duplicate")
    peer.signed(**again)
    peer.signed(**again)
    assert peer.settled()
    assert refused(team, "duplicate") == before + 1
    peer.close()


def test_a_flood_costs_its_sender_alone(team):
    peer = Peer(team.listen, team.more_keys[0], team.space).open()
    for _ in range(6000):
        peer.signed()
    record = team.other.json("record", "put", "team", "notes", "new", "while=\"a flood\"")["id"]
    with team.watch("team", "--since", "0") as watch:
        watch.until([record])
    peer.close()


@pytest.mark.parametrize("nth,wrong", [
    (1, lambda p: p.record(CONTROL, WHOLE, b"\xee")),
    (2, lambda p: p.message(os.urandom(100))),
])
def test_who_used_up_its_budget_is_shut_out(team, nth, wrong):
    """Small faults add up to the end of the link, and to a pause before the next one."""
    peer = Peer(team.listen, team.more_keys[nth], team.space).open()
    for _ in range(300):
        wrong(peer)
    assert peer.ended()
    again = Peer(team.listen, team.more_keys[nth], team.space).preamble()
    assert again.answer() == 0
    # close: link_misbehaved, in the place of a binding.
    assert again.noise().binding().receive() == bytes((CONTROL, WHOLE)) + b"\x02" + be(80, 2)
    assert again.ended()


# Calls: each is answered or the link ends; what is answered is a refusal.

@pytest.mark.parametrize("method,arguments", [
    (99, b""), (0, bytes(64)), (1, b""), (1, os.urandom(300)), (1, bytes(4096)), (2, b"x"), (3, b""),
])
def test_calls_that_mean_nothing(team, method, arguments):
    peer = dial(team).open()
    peer.call(1, method, arguments)
    while True:
        try:
            plain = peer.receive()
        except (EOFError, ConnectionError):
            break
        if plain[0] == CALLS and plain[2] == 3 and plain[3:11] == be(1, 8):
            assert int.from_bytes(plain[15:17], "big") != 0
            break
    peer.close()


def test_answers_to_nobody(team):
    """Pieces and ends of calls that were never made."""
    peer = dial(team).open()
    for number in (1, 2, 1 << 40):
        peer.record(CALLS, WHOLE, b"\x02" + be(number, 8) + be(0, 4) + b"data")
        peer.record(CALLS, WHOLE, b"\x03" + be(number, 8) + be(0, 4) + be(0, 2))
        peer.record(CALLS, WHOLE, b"\x05" + be(number, 8))
    peer.close()
    assert dial(team).open().goes_on()


def test_vectors_of_areas_that_nobody_has(team):
    """Control frames with counts and lengths that are not there."""
    for kind in (3, 4, 5, 6, 8):
        for body in (b"", b"\xff" * 40, be(0xffff, 2) * 60, os.urandom(900)):
            peer = dial(team).open()
            peer.record(CONTROL, WHOLE, bytes((kind,)) + body)
            peer.heartbeat()
            peer.close()
    assert dial(team).open().goes_on()
