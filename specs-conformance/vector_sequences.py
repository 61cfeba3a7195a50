# SPDX-License-Identifier: Apache-2.0
"""Sequences: what one receiver makes of several messages, with steps of its clock, changes of membership
and other links in between."""
import dataclasses

import envelope_model as model
from vector_make import (A, C, D, MINUTE, NOW, TOPIC, context, id_of, message, protobuf, json_text,
                         unicast)

PAST, FUTURE = 15 * MINUTE, 5 * MINUTE


class Sequence:
    """Steps are written down as they are made; the expected verdict stands with each delivery."""

    def __init__(self, name, **changes):
        self.name = name
        self.context = context(**changes)
        self.steps = []

    def step(self, do, **members):
        self.steps.append({"do": do} | members)
        return self

    def data(self, encoding, data, reason=None, reset=False):
        self.steps.append({"do": "deliver", "encoding": encoding, "data": data, "reason": reason,
                           "floor_reset": reset})
        return self

    def deliver(self, e, reason=None, reset=False):
        return self.data("protobuf", protobuf(e), reason, reset)

    def deliver_json(self, e, reason=None):
        return self.data("json", json_text(e), reason)

    def clock(self, offset, mono_ms=None):
        made = {"now_ms": NOW + offset}
        return self.step("clock", **(made if mono_ms is None else made | {"mono_ms": mono_ms}))

    def mono(self, mono_ms):
        return self.step("clock", mono_ms=mono_ms)

    def member(self, node, status):
        return self.step("member", public_key=node.public_key.hex(), status=status)

    def link(self, node=A, offset_ms=None):
        made = {"peer": node.node_id.hex()}
        return self.step("link", **(made if offset_ms is None else made | {"offset_ms": offset_ms}))


def at(number, offset=0, sender=A, **changes):
    return message(sender, **({"id": id_of(number), "timestamp": NOW + offset} | changes))


def repetitions():
    e = at(1)
    yield (Sequence("repeated/at-once").deliver(e).deliver(e, "duplicate").deliver(e, "duplicate"))
    yield Sequence("repeated/in-the-other-encoding").deliver_json(e).deliver(e, "duplicate")
    yield (Sequence("repeated/after-others").deliver(e).deliver(at(2)).deliver(at(3))
           .deliver(e, "duplicate").deliver(at(2), "duplicate").deliver(at(4)))
    yield (Sequence("repeated/over-another-link").deliver(e).link().deliver(e, "duplicate"))
    yield (Sequence("repeated/to-the-end-of-its-window").deliver(e).clock(PAST)
           .deliver(e, "duplicate").clock(PAST + 1).deliver(e, "stale"))
    yield (Sequence("repeated/with-another-time").deliver(e).deliver(at(1, 1), "duplicate")
           .deliver(at(1, -1), "duplicate"))
    yield (Sequence("repeated/one-id-of-two-senders", peer=None).deliver(e)
           .deliver(at(1, 0, C)).deliver(at(1, 0, C), "duplicate").deliver(e, "duplicate"))
    seen = [{"source": A.node_id.hex(), "id": model.uuid_text(id_of(n)), "timestamp": NOW - n}
            for n in (1, 2)]
    yield (Sequence("repeated/known-before-it-began", seen=seen).deliver(at(1, -1), "duplicate")
           .deliver(at(2, -2), "duplicate").deliver(at(3, -3)))


def refused_leaves_nothing():
    """What failed a step is not in the record: the id is taken afterwards."""
    e = at(1)
    forged = dataclasses.replace(e, signature=bytes(64))
    yield Sequence("burnt/by-a-bad-signature").deliver(forged, "bad_signature").deliver(e)
    yield (Sequence("burnt/by-its-time").deliver(at(1, -PAST - 1), "stale")
           .deliver(at(1, FUTURE + 1), "from_future").deliver(e).deliver(e, "duplicate"))
    yield (Sequence("burnt/by-its-target").deliver(unicast(id=id_of(1), target=C.node_id), "wrong_target")
           .deliver(at(1, target=(TOPIC + "file").encode()), "not_subscribed").deliver(e))
    yield (Sequence("burnt/by-its-space").deliver(at(1, information_space_id=model.uuid_of(
        "0195a3f0-8000-7890-abcd-000000000002")), "wrong_space").deliver(e))
    yield Sequence("burnt/by-another-peer").link(C).deliver(e, "not_origin").link(A).deliver(e)
    yield (Sequence("burnt/by-its-form").data("protobuf", protobuf(e) + b"\0", "malformed")
           .deliver(at(1, payload=b"{}"), "bad_payload").deliver(e))
    yield (Sequence("burnt/by-its-size").data("protobuf", protobuf(e) + bytes(50000), "too_large")
           .deliver(e))
    yield (Sequence("held-up/by-a-bad-one").deliver(at(1)).deliver(forged, "bad_signature")
           .deliver(at(2)).data("json", b"{", "malformed").deliver(at(3)).deliver(at(1), "duplicate")
           .deliver(at(4)))
    yield (Sequence("floor/not-raised-by-what-is-refused").deliver(
        dataclasses.replace(at(1, FUTURE), signature=bytes(64)), "bad_signature")
        .clock(2 * FUTURE + PAST).deliver(at(2, 2 * FUTURE)))


def clocks():
    yield (Sequence("clock/forward").deliver(at(1)).clock(10 * MINUTE).deliver(at(2, 10 * MINUTE))
           .deliver(at(3, -5 * MINUTE)).deliver(at(4, -5 * MINUTE - 1), "stale"))
    # Forward by hours and back again: what was accepted then covers what was before.
    hours = 240 * MINUTE
    yield (Sequence("clock/forward-and-back").deliver(at(1)).clock(hours).deliver(at(2, hours))
           .clock(0).deliver(at(1), "stale").deliver(at(3), "stale"))
    yield (Sequence("clock/forward-and-back-with-nothing-between").deliver(at(1)).clock(hours)
           .clock(0).deliver(at(1), "duplicate").deliver(at(2)))
    yield (Sequence("clock/back-a-little").deliver(at(1)).clock(-MINUTE).deliver(at(1), "duplicate")
           .deliver(at(2, -MINUTE)).deliver(at(3, 4 * MINUTE)).deliver(at(4, 4 * MINUTE + 1),
                                                                    "from_future"))
    yield (Sequence("clock/back-far-makes-the-future").deliver(at(1)).clock(-hours)
           .deliver(at(1), "from_future").deliver(at(2, -hours), "stale").clock(0)
           .deliver(at(1), "duplicate").deliver(at(3)))
    yield (Sequence("clock/before-1970").clock(-NOW - hours).deliver(at(1), "from_future")
           .clock(0).deliver(at(1)))
    far = hours + PAST + FUTURE
    yield (Sequence("floor/exactly-safe").clock(PAST + FUTURE).deliver(at(1, PAST + FUTURE))
           .clock(0).deliver(at(2), "stale").deliver(at(3, 1)))
    yield (Sequence("floor/at-the-oldest-of-a-narrow-window", future_ms=0).deliver(at(1, -PAST))
           .deliver(at(1, -PAST), "stale").deliver(at(2, -PAST), "stale").deliver(at(3, 1 - PAST)))
    yield (Sequence("floor/only-rises").clock(far).deliver(at(1, far)).clock(hours - 10 * MINUTE)
           .deliver(at(2, hours - 10 * MINUTE), "stale").clock(hours - 4 * MINUTE)
           .deliver(at(3, hours + 1)).deliver(at(4, hours), "stale").deliver(at(5, hours + 1)))
    yield (Sequence("floor/of-one-sender-only", peer=None).clock(far).deliver(at(1, far)).clock(0)
           .deliver(at(2), "stale").deliver(at(2, 0, C)))
    yield (Sequence("floor/forgotten-id-under-a-later-time").deliver(at(1)).clock(far)
           .deliver(at(2, far)).deliver(at(1, far - 1)).deliver(at(1, far - 1), "duplicate"))


def capacity():
    yield (Sequence("capacity/three-ids", seen_ids=3).deliver(at(1, 1)).deliver(at(2, 2))
           .deliver(at(3, 3)).deliver(at(1, 1), "duplicate").deliver(at(4, 4))
           .deliver(at(1, 1), "stale").deliver(at(2, 2), "duplicate").deliver(at(5, 1), "stale")
           .deliver(at(6, 5)).deliver(at(2, 2), "stale").deliver(at(3, 3), "duplicate"))
    yield (Sequence("capacity/of-one-time", seen_ids=2).deliver(at(1)).deliver(at(2)).deliver(at(3))
           .deliver(at(1), "stale").deliver(at(3), "stale").deliver(at(5), "stale")
           .deliver(at(4, 1)).deliver(at(4, 1), "duplicate"))
    yield (Sequence("capacity/an-old-one-is-the-oldest", seen_ids=2).deliver(at(1, 10))
           .deliver(at(2, 20)).deliver(at(3, 5)).deliver(at(3, 5), "stale")
           .deliver(at(1, 10), "duplicate").deliver(at(2, 20), "duplicate"))
    yield (Sequence("capacity/of-each-sender", seen_ids=2, peer=None).deliver(at(1)).deliver(at(2, 1))
           .deliver(at(1, 0, C)).deliver(at(2, 1, C)).deliver(at(1), "duplicate")
           .deliver(at(1, 0, C), "duplicate"))


def membership():
    yield (Sequence("membership/approved-in-the-middle").link(D).deliver(at(1, 0, D), "unknown_sender")
           .member(D, "approved").deliver(at(1, 0, D)).deliver(at(1, 0, D), "duplicate"))
    yield (Sequence("membership/revoked-in-the-middle").deliver(at(1)).member(A, "revoked")
           .deliver(at(2), "revoked").deliver(at(1), "revoked"))
    yield (Sequence("membership/revoked-and-approved-again").deliver(at(1)).member(A, "revoked")
           .deliver(at(1), "revoked").member(A, "approved").deliver(at(1), "duplicate")
           .deliver(at(2)))
    yield (Sequence("membership/pending-again").deliver(at(1)).member(A, "pending")
           .deliver(at(2), "unknown_sender").member(A, "approved").deliver(at(2)))
    yield (Sequence("membership/of-a-new-node", members=[
        {"public_key": A.public_key.hex(), "status": "approved"}]).link(C)
        .deliver(at(1, 0, C), "unknown_sender").member(C, "pending")
        .deliver(at(1, 0, C), "unknown_sender").member(C, "approved").deliver(at(1, 0, C)))
    yield (Sequence("membership/one-goes-and-another-stays", peer=None).deliver(at(1))
           .deliver(at(1, 0, C)).member(A, "revoked").deliver(at(2), "revoked")
           .deliver(at(2, 0, C)))


def subscriptions():
    file = (TOPIC + "file").encode()
    yield (Sequence("subscription/begins").deliver(at(1, target=file), "not_subscribed")
           .step("subscribe", topic=TOPIC + "file").deliver(at(1, target=file))
           .deliver(at(1, target=file), "duplicate"))
    yield (Sequence("subscription/ends").deliver(at(1)).step("unsubscribe", topic=TOPIC + "database")
           .deliver(at(2), "not_subscribed").deliver(at(1), "not_subscribed")
           .deliver(unicast(id=id_of(3))).step("subscribe", topic=TOPIC + "database")
           .deliver(at(1), "duplicate").deliver(at(2)))


def rates():
    limited = {"rate_per_s": 2, "rate_burst": 3}
    yield (Sequence("rate/burst", **limited).deliver(at(1)).deliver(at(2)).deliver(at(3))
           .deliver(at(4), "rate_limited").deliver(at(1), "rate_limited"))
    yield (Sequence("rate/fills-again", **limited).deliver(at(1)).deliver(at(2)).deliver(at(3))
           .mono(499).deliver(at(4), "rate_limited").mono(500).deliver(at(4))
           .deliver(at(5), "rate_limited").mono(1500).deliver(at(5)).deliver(at(6))
           .deliver(at(7), "rate_limited"))
    yield (Sequence("rate/full-is-full", **limited).mono(1000000).deliver(at(1)).deliver(at(2))
           .deliver(at(3)).deliver(at(4), "rate_limited"))
    forged = dataclasses.replace(at(9), signature=bytes(64))
    yield (Sequence("rate/before-the-signature", **limited).deliver(forged, "bad_signature")
           .deliver(forged, "bad_signature").deliver(forged, "bad_signature")
           .deliver(forged, "rate_limited").deliver(at(1), "rate_limited"))
    yield (Sequence("rate/behind-membership", **limited).link(D).deliver(at(1, 0, D), "unknown_sender")
           .deliver(at(1, 0, D), "unknown_sender").deliver(at(1, 0, D), "unknown_sender")
           .deliver(at(1, 0, D), "unknown_sender").member(D, "approved").deliver(at(1, 0, D)))
    yield (Sequence("rate/not-of-what-has-no-form", **limited).data("json", b"{}", "malformed")
           .data("json", b"{}", "malformed").data("json", b"{}", "malformed")
           .data("json", b"{}", "malformed").deliver(at(1)))
    yield (Sequence("rate/another-link-fills-nothing", **limited).deliver(at(1)).deliver(at(2))
           .deliver(at(3)).link().deliver(at(4), "rate_limited"))
    yield (Sequence("rate/of-each-sender", peer=None, **limited).deliver(at(1)).deliver(at(2))
           .deliver(at(3)).deliver(at(4), "rate_limited").deliver(at(4, 0, C)))
    yield (Sequence("rate/says-nothing-about-the-message", **limited).deliver(at(1)).deliver(at(2))
           .deliver(at(3)).deliver(at(4), "rate_limited").mono(500).deliver(at(4)))
    yield (Sequence("rate/wall-clock-fills-nothing", **limited).deliver(at(1)).deliver(at(2))
           .deliver(at(3)).clock(MINUTE).deliver(at(4), "rate_limited"))


def floor_resets():
    hours = 240 * MINUTE
    ahead = hours + PAST + FUTURE

    def raised(name):
        """The own clock was ahead, and is right again."""
        return Sequence(name).clock(ahead).deliver(at(1, ahead)).clock(0)

    yield (raised("reset/clocks-agree").deliver(at(2), "stale").link(offset_ms=0)
           .deliver(at(2), reset=True).deliver(at(2), "duplicate").deliver(at(3)))
    yield (raised("reset/once-a-link").link(offset_ms=0).deliver(at(2), reset=True).clock(ahead)
           .deliver(at(3, ahead)).clock(0).deliver(at(4), "stale").link(offset_ms=0)
           .deliver(at(4), reset=True))
    yield raised("reset/no-offset-known").link().deliver(at(2), "stale")
    for name, offset, good in (("behind-exactly", -PAST, True), ("behind-too-far", -PAST - 1, False),
                               ("ahead-exactly", FUTURE, True), ("ahead-too-far", FUTURE + 1, False)):
        made = raised(f"reset/offset-{name}").link(offset_ms=offset)
        yield made.deliver(at(2), None, True) if good else made.deliver(at(2), "stale")
    yield (raised("reset/only-where-the-floor-alone-refuses").link(offset_ms=0)
           .deliver(at(2, -PAST - 1), "stale").deliver(at(3, FUTURE + 1), "from_future")
           .deliver(at(4), reset=True))
    yield (raised("reset/then-the-address").link(offset_ms=0)
           .deliver(unicast(id=id_of(2), target=C.node_id, timestamp=NOW), "wrong_target", True)
           .deliver(at(3)))
    yield (raised("reset/to-the-edge-of-the-window").link(offset_ms=0).deliver(at(2, -PAST), reset=True)
           .deliver(at(3, -PAST)))
    yield (Sequence("reset/of-a-full-record", seen_ids=2).link(offset_ms=0).deliver(at(1, 1))
           .deliver(at(2, 2)).deliver(at(3, 3)).deliver(at(1, 1), reset=True)
           .deliver(at(1, 1), "stale"))
    yield (raised("reset/not-by-a-forged-one").link(offset_ms=0)
           .deliver(dataclasses.replace(at(2), signature=bytes(64)), "bad_signature")
           .deliver(at(3), reset=True))


def sequences():
    for part in (repetitions, refused_leaves_nothing, clocks, capacity, membership, subscriptions,
                 rates, floor_resets):
        yield from part()
