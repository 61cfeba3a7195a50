# SPDX-License-Identifier: Apache-2.0
"""Vectors of the order of checks (profile 5, steps 2 to 8), each with the state it needs and no other."""
import dataclasses

import envelope_model as model
from vector_make import (A, B, C, D, E, F, MINUTE, NOW, OTHER_SPACE, SYNC, TOPIC, Case, context,
                         id_of, json_text, message, protobuf, unicast)

# Not every node may be a member of one context with one peer; so each sender has a context.
CONTEXTS = {
    "b": context(),
    "b-at-one": context(now_ms=1),
    "b-at-the-end": context(now_ms=(1 << 53) - 1),
    "b-before-1970": context(now_ms=-MINUTE),
    "b-at-the-least": context(now_ms=-(1 << 63)),
    "b-at-the-greatest": context(now_ms=(1 << 63) - 1),
    "b-any-peer": context(peer=None),
    "b-from-c": context(peer=C.node_id.hex()),
    "b-from-d": context(peer=D.node_id.hex()),
    "b-from-e": context(peer=E.node_id.hex()),
    "b-from-f": context(peer=F.node_id.hex()),
    "b-from-b": context(peer=B.node_id.hex()),
    "b-in-another-space": context(space=model.uuid_text(OTHER_SPACE)),
    "b-without-members": context(members=[]),
    "b-without-subscriptions": context(subscriptions=[]),
    "b-with-file": context(subscriptions=[TOPIC + "file"]),
    "b-with-narrow-window": context(past_ms=0, future_ms=0),
    "b-with-wide-window": context(past_ms=NOW * 2, future_ms=NOW * 2),
    "b-has-seen": context(seen=[{"source": A.node_id.hex(), "id": model.uuid_text(id_of(0x12))}]),
    "b-has-seen-of-c": context(seen=[{"source": C.node_id.hex(),
                                      "id": model.uuid_text(id_of(0x12))}]),
    "b-with-floor-below": context(floors=[{"source": A.node_id.hex(), "timestamp": NOW - 1}]),
    "b-with-floor-at": context(floors=[{"source": A.node_id.hex(), "timestamp": NOW}]),
    "b-with-floor-above": context(floors=[{"source": A.node_id.hex(), "timestamp": NOW + 1}]),
    "b-with-floor-of-c": context(floors=[{"source": C.node_id.hex(), "timestamp": NOW + 1}]),
    "b-with-floor-and-seen": context(
        floors=[{"source": A.node_id.hex(), "timestamp": NOW}],
        seen=[{"source": A.node_id.hex(), "id": model.uuid_text(id_of(0x12))}]),
}


def both(name, e, reason=None, where=None, ctx="b"):
    yield Case(f"receive/{name}/json", "json", json_text(e), reason, where, ctx)
    yield Case(f"receive/{name}/protobuf", "protobuf", protobuf(e), reason, where, ctx)


def space_and_sender():
    space, source = "information_space_id", "source_node_id"
    yield from both("accept/any-peer", message(), ctx="b-any-peer")
    yield from both("accept/from-c", message(C), ctx="b-from-c")
    yield from both("accept/unicast", unicast())
    yield from both("accept/sync-to-the-node", unicast(message_type=SYNC, payload=b'{"scope":"all"}'))
    yield from both("accept/sync-to-a-topic", message(message_type=SYNC, payload=b'{"scope":"all"}'))
    yield from both("space/other", message(information_space_id=OTHER_SPACE), "wrong_space", space)
    yield from both("space/of-the-context-is-other", message(), "wrong_space", space,
                    "b-in-another-space")
    yield from both("space/last-bit", message(
        information_space_id=model.uuid_of("0195a3f0-8000-7890-abcd-000000000000")), "wrong_space",
        space)
    yield from both("origin/passed-on", message(C), "not_origin", source)
    yield from both("origin/own-id-from-a-peer", message(B), "not_origin", source)
    yield from both("origin/own-id-from-oneself", message(B), "not_origin", source, "b-from-b")
    yield from both("origin/own-id-from-anybody", message(B), "not_origin", source, "b-any-peer")
    yield from both("origin/stranger-named-by-a-member", message(F), "not_origin", source)
    yield from both("sender/stranger", message(F), "unknown_sender", source, "b-from-f")
    yield from both("sender/stranger-from-anybody", message(F), "unknown_sender", source,
                    "b-any-peer")
    yield from both("sender/pending", message(D), "unknown_sender", source, "b-from-d")
    yield from both("sender/revoked", message(E), "revoked", source, "b-from-e")
    yield from both("sender/of-an-empty-list", message(), "unknown_sender", source,
                    "b-without-members")


def signatures():
    e = message()
    signed = bytes(e.signature)

    def wrong(name, signature):
        yield from both(f"signature/{name}", dataclasses.replace(e, signature=signature),
                        "bad_signature", "signature")

    yield from wrong("zeros", bytes(64))
    yield from wrong("ones", b"\xff" * 64)
    yield from wrong("first-bit", bytes([signed[0] ^ 1]) + signed[1:])
    yield from wrong("last-bit", signed[:-1] + bytes([signed[-1] ^ 0x80]))
    yield from wrong("halves-swapped", signed[32:] + signed[:32])
    order = (1 << 252) + 27742317777372353535851937790883648493
    s = int.from_bytes(signed[32:], "little") + order
    yield from wrong("s-plus-the-order", signed[:32] + s.to_bytes(32, "little"))
    yield from wrong("r-of-small-order", b"\1" + bytes(31) + signed[32:])
    yield from wrong("r-not-canonical", b"\xee" + b"\xff" * 30 + b"\x7f" + signed[32:])
    yield from wrong("of-another-message", message(timestamp=NOW + 1).signature)
    yield from wrong("of-another-key", e.signed(C.seed).signature)
    fields = {"id": id_of(0x13), "target": (TOPIC + "state").encode(), "timestamp": NOW + 1,
              "message_type": "platform.replication.conflict", "payload": e.payload + b" ",
              "correlation_id": e.id}  # where there was none
    for name, value in fields.items():
        yield from both(f"signature/changed-{name}", dataclasses.replace(e, **{name: value}),
                        "bad_signature", "signature")
    with_correlation = message(correlation_id=e.id)
    yield from both("signature/removed-correlation_id", dataclasses.replace(
        with_correlation, correlation_id=None), "bad_signature", "signature")
    yield from both("signature/another-correlation_id", dataclasses.replace(
        with_correlation, correlation_id=id_of(9)), "bad_signature", "signature")
    yield from both("signature/changed-target-of-unicast", dataclasses.replace(
        unicast(target=C.node_id), target=B.node_id), "bad_signature", "signature")
    # The same bytes but for the mode: a topic that is 16 bytes long is no topic.
    for name, preimage in (
            ("label-missing", e.preimage()[20:]),
            ("label-without-zero", e.preimage()[:19] + e.preimage()[20:]),
            ("label-of-version-2", e.preimage().replace(b"-v1\0", b"-v2\0", 1)),
            ("little-endian-time", e.preimage()[:-9] + NOW.to_bytes(8, "little") + b"\0"),
            ("no-correlation-byte", e.preimage()[:-1]), ("json-text", json_text(e, without=("signature",))),
            ("protobuf", protobuf(e, without=("signature",))), ("nothing", b"")):
        signature = model.nacl.signing.SigningKey(A.seed).sign(preimage).signature
        yield from wrong(f"over-{name}", signature)


def times():
    past, future = 15 * MINUTE, 5 * MINUTE

    def at(name, offset, reason=None, ctx="b"):
        yield from both(f"time/{name}", message(timestamp=NOW + offset), reason,
                        "timestamp" if reason else None, ctx)

    yield from at("oldest", -past)
    yield from at("older", -past - 1, "stale")
    yield from at("latest", future)
    yield from at("later", future + 1, "from_future")
    yield from at("of-1970", 1 - NOW, "stale")
    yield from at("narrow-now", 0, None, "b-with-narrow-window")
    yield from at("narrow-before", -1, "stale", "b-with-narrow-window")
    yield from at("narrow-behind", 1, "from_future", "b-with-narrow-window")
    yield from at("wide-of-1970", 1 - NOW, None, "b-with-wide-window")
    yield from at("clock-before-1970", 0, "from_future", "b-before-1970")
    yield from at("clock-at-the-least", 0, "from_future", "b-at-the-least")
    yield from at("clock-at-the-greatest", 0, "stale", "b-at-the-greatest")
    yield from at("floor-below", 0, None, "b-with-floor-below")
    yield from at("floor-at", 0, "stale", "b-with-floor-at")
    yield from at("floor-above", 0, "stale", "b-with-floor-above")
    yield from at("floor-above-and-later", 2, None, "b-with-floor-above")
    yield from at("floor-of-another", 0, None, "b-with-floor-of-c")
    yield from both("time/far-from-the-id", message(
        id=bytes.fromhex("000000000001" + "7899" + "8def" + "000000000012")))
    yield from both("time/id-of-the-year-10889", message(
        id=bytes.fromhex("ffffffffffff" + "7899" + "8def" + "000000000012")))


def addresses():
    yield from both("address/other-node", unicast(target=C.node_id), "wrong_target", "target")
    yield from both("address/sender-itself", unicast(target=A.node_id), "wrong_target", "target")
    yield from both("address/zeros", unicast(target=bytes(16)), "wrong_target", "target")
    yield from both("address/topic-not-subscribed", message(target=(TOPIC + "file").encode()),
                    "not_subscribed", "target")
    yield from both("address/topic-subscribed", message(target=(TOPIC + "file").encode()),
                    ctx="b-with-file")
    yield from both("address/topic-not-any-more", message(), "not_subscribed", "target",
                    "b-with-file")
    yield from both("address/no-subscriptions", message(), "not_subscribed", "target",
                    "b-without-subscriptions")
    yield from both("address/unicast-without-subscriptions", unicast(),
                    ctx="b-without-subscriptions")
    yield from both("address/topic-begins-like-one",
                    message(target=(TOPIC + "databas").encode()), "not_subscribed", "target")


def repetitions():
    yield from both("seen/same", message(), "duplicate", "id", "b-has-seen")
    yield from both("seen/another-id", message(id=id_of(0x13)), None, None, "b-has-seen")
    yield from both("seen/of-another-sender", message(), None, None, "b-has-seen-of-c")
    yield from both("seen/another-message-with-its-id", message(timestamp=NOW + 1), "duplicate", "id",
                    "b-has-seen")


def in_order():
    """Each step with every later one broken as well."""
    space, source = "information_space_id", "source_node_id"
    # Broken throughout: space, sender, signature, time, target, and seen.
    late = {"timestamp": 1, "delivery_mode": 1, "target": C.node_id}

    def forged(e):
        return dataclasses.replace(e, signature=bytes(64))

    yield Case("receive/order/form-first/json", "json", json_text(
        forged(message(F, information_space_id=OTHER_SPACE, **late)), {"delivery_mode": '"x"'}),
        "bad_mode", "delivery_mode")
    yield from both("order/space-before-sender",
                    forged(message(F, information_space_id=OTHER_SPACE, **late)), "wrong_space", space)
    yield from both("order/origin-before-membership", forged(message(F, **late)), "not_origin", source)
    yield from both("order/own-id-before-membership", forged(message(B, **late)), "not_origin", source,
                    "b-without-members")
    yield from both("order/membership-before-signature", forged(message(D, **late)), "unknown_sender",
                    source, "b-from-d")
    yield from both("order/revoked-before-signature", forged(message(E, **late)), "revoked", source,
                    "b-from-e")
    yield from both("order/signature-before-time", forged(message(**late)), "bad_signature",
                    "signature")
    yield from both("order/past-before-address", message(**late), "stale", "timestamp")
    yield from both("order/future-before-address", message(**late | {"timestamp": NOW + 10 * MINUTE}),
                    "from_future", "timestamp")
    yield from both("order/future-before-floor", message(timestamp=NOW + 10 * MINUTE), "from_future",
                    "timestamp", "b-with-floor-above")
    yield from both("order/floor-before-address",
                    message(target=(TOPIC + "file").encode()), "stale", "timestamp", "b-with-floor-at")
    yield from both("order/floor-before-seen", message(), "stale", "timestamp",
                    "b-with-floor-and-seen")
    yield from both("order/address-before-seen", unicast(target=C.node_id), "wrong_target", "target",
                    "b-has-seen")
    yield from both("order/topic-before-seen", message(target=(TOPIC + "file").encode()),
                    "not_subscribed", "target", "b-has-seen")


def cases():
    for part in (space_and_sender, signatures, times, addresses, repetitions, in_order):
        yield from part()
