# SPDX-License-Identifier: Apache-2.0
"""Wrong adapters: the rules of fields, what is signed, and receiving."""
import json
import re
import unittest.mock

import envelope_model as model
import receiver_model
from envelope_model import Refused
from wrong_base import wrong

# ---- Fields ----


@wrong("envelope/field/id/version-4")
def uuids_of_any_version(patch):
    def check(raw, field):
        if raw is None or len(raw) != 16 or raw[8] >> 6 != 2:
            raise Refused("bad_uuid", field)
    patch(model, "check_uuid", check)


@wrong("envelope/field/id/variant-11")
def uuids_of_any_variant(patch):
    def check(raw, field):
        if raw is None or len(raw) != 16 or raw[6] >> 4 != 7:
            raise Refused("bad_uuid", field)
    patch(model, "check_uuid", check)


@wrong("envelope/field/target/topic/129-bytes")
def topics_of_any_length(patch):
    patch(model, "TOPIC_MAX", 1 << 20)


@wrong("envelope/field/target/topic/line-feed-behind")
def topics_with_a_line_feed_behind(patch):
    patch(model, "_TOPIC", re.compile(model._TOPIC.pattern + rb"\n?"))


@wrong("envelope/field/message_type")
def types_are_open(patch):
    class Any(tuple):
        def __contains__(self, name):
            return isinstance(name, str) and name.startswith("platform.replication.")
    patch(model, "TYPES", Any(model.TYPES))


@wrong("envelope/order")
def names_the_last_broken_rule(patch):
    plain = model.check

    def check(fields):
        try:
            return plain(fields)
        except Refused as first:
            if first.field == "id" and first.reason == "bad_uuid":
                plain(fields | {"id": bytes.fromhex("0195a3f0920078998def000000000012")})
            raise
    patch(model, "check", check)


@wrong("envelope/payload/depth")
def one_level_deeper(patch):
    patch(model, "DEPTH_MAX", 17)


@wrong("envelope/payload/members/256")
def one_member_less(patch):
    patch(model, "MEMBERS_MAX", 255)


@wrong("envelope/json/size/payload-one-more-three-bytes")
def payloads_are_counted_in_characters(patch):
    plain = model.payload_is_good

    def good(payload, message_type):
        characters = len(payload.decode("utf-8", "replace"))
        with unittest.mock.patch.object(model, "PAYLOAD_MAX", len(payload)):
            return characters <= 49152 and plain(payload, message_type)
    patch(model, "payload_is_good", good)


def payload_rule(patch, wanted, verdict):
    plain = model.payload_is_good

    def good(payload, message_type):
        try:
            value = json.loads(payload)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and wanted(value, message_type):
            return verdict
        return plain(payload, message_type)
    patch(model, "payload_is_good", good)


@wrong("envelope/payload/scope/both")
def sync_may_name_both(patch):
    payload_rule(patch, lambda value, kind: kind.endswith("sync") and {"object_id", "scope"} <= set(value),
                 True)


@wrong("envelope/payload/scope/")
def scope_is_looked_at_everywhere(patch):
    payload_rule(patch, lambda value, kind: value.get("scope", "all") not in ("database", "file", "all"),
                 False)


@wrong("envelope/payload/object_id/missing-in-conflict")
def conflict_needs_no_object(patch):
    payload_rule(patch, lambda value, kind: kind.endswith("conflict") and "object_id" not in value, True)


@wrong("envelope/payload/unknown")
def unknown_members_of_a_payload_are_refused(patch):
    payload_rule(patch, lambda value, kind: "later" in value, False)


# ---- What is signed ----


def preimages(patch, change):
    plain = model.Envelope.preimage
    patch(model.Envelope, "preimage", lambda self: change(self, plain(self)))


@wrong("envelope/protobuf/whole/default")
def signs_without_a_label(patch):
    preimages(patch, lambda e, data: data[20:])


@wrong("envelope/json/whole/with-correlation")
def signs_no_correlation(patch):
    preimages(patch, lambda e, data: data if e.correlation_id is None else data[:-17] + b"\0")


@wrong("envelope/protobuf/whole/default")
def times_are_little_endian(patch):
    def change(e, data):
        at = data.rindex(e.timestamp.to_bytes(8, "big"))
        return data[:at] + e.timestamp.to_bytes(8, "little") + data[at + 8:]
    preimages(patch, change)


@wrong("envelope/receive/signature/s-plus-the-order")
def signatures_by_a_lax_rule(patch):
    plain = model.verifies
    order = (1 << 252) + 27742317777372353535851937790883648493

    def verifies(key, data, signature):
        s = int.from_bytes(signature[32:], "little")
        return plain(key, data, signature) or (
            order <= s < 2 * order
            and plain(key, data, signature[:32] + (s - order).to_bytes(32, "little")))
    patch(model, "verifies", verifies)


@wrong("envelope/receive/signature")
def signatures_are_not_verified(patch):
    patch(model, "verifies", lambda *_: True)


@wrong("key/right")
def node_ids_are_hashed_without_a_label(patch):
    import hashlib
    patch(model, "node_id_of", lambda key: hashlib.sha256(key).digest()[:16])


@wrong("sign/topic/json-signed-already")
def keeps_the_signature_that_was_there(patch):
    plain = model.Envelope.signed
    patch(model.Envelope, "signed",
          lambda self, seed: self if self.signature is not None else plain(self, seed))


@wrong("envelope/payload/form/blank-within")
def writes_the_payload_anew(patch):
    plain = model.encode_json

    def encode(e):
        payload = json.dumps(json.loads(e.payload), separators=(",", ":")).encode()
        return plain(model.dataclasses.replace(e, payload=payload))
    patch(model, "encode_json", encode)


# ---- Receiving ----


@wrong("envelope/receive/space")
def spaces_are_not_compared(patch):
    plain = receiver_model.Receiver.deliver

    def deliver(self, encoding, data):
        e = model.DECODE[encoding](data)
        with unittest.mock.patch.object(self, "space", e.information_space_id):
            return plain(self, encoding, data)
    patch(receiver_model.Receiver, "deliver", deliver)


@wrong("envelope/receive/origin")
def messages_may_be_passed_on(patch):
    plain = receiver_model.Receiver.deliver

    def deliver(self, encoding, data):
        with unittest.mock.patch.object(self, "peer", None):
            return plain(self, encoding, data)
    patch(receiver_model.Receiver, "deliver", deliver)


@wrong("envelope/receive/sender/revoked")
def revoked_is_unknown(patch):
    plain = receiver_model.Receiver.member
    patch(receiver_model.Receiver, "member", lambda self, public_key, status: plain(
        self, public_key, "pending" if status == "revoked" else status))


@wrong("envelope/receive/sender/pending")
def pending_is_approved(patch):
    plain = receiver_model.Receiver.member
    patch(receiver_model.Receiver, "member", lambda self, public_key, status: plain(
        self, public_key, "approved" if status == "pending" else status))


def times(patch, change):
    plain = receiver_model.Receiver.judge_time

    def judge_time(self, sender, timestamp):
        change(self, sender, timestamp)
        plain(self, sender, timestamp)
    patch(receiver_model.Receiver, "judge_time", judge_time)


@wrong("envelope/receive/time")
def the_window_excludes_its_limits(patch):
    def change(self, sender, timestamp):
        if timestamp == self.now_ms - self.past_ms:
            raise Refused("stale", "timestamp")
        if timestamp == self.now_ms + self.future_ms:
            raise Refused("from_future", "timestamp")
    times(patch, change)


@wrong("envelope/receive/time/floor-at")
def the_floor_lets_its_own_time_pass(patch):
    plain = receiver_model.Receiver.judge_time

    def judge_time(self, sender, timestamp):
        with unittest.mock.patch.object(sender, "floor", sender.floor - 1):
            plain(self, sender, timestamp)
    patch(receiver_model.Receiver, "judge_time", judge_time)


@wrong("envelope/receive/order/signature-before-time")
def looks_at_the_time_before_the_signature(patch):
    plain = receiver_model.Receiver.take

    def take(self, sender):
        plain(self, sender)
        if self.current.timestamp < self.now_ms - self.past_ms:
            raise Refused("stale", "timestamp")

    deliver = receiver_model.Receiver.deliver

    def remember(self, encoding, data):
        self.current = model.DECODE[encoding](data)
        return deliver(self, encoding, data)
    patch(receiver_model.Receiver, "take", take)
    patch(receiver_model.Receiver, "deliver", remember)


@wrong("sequence/clock")
def the_floor_never_rises(patch):
    plain = receiver_model.Receiver.record

    def record(self, sender, e):
        floor = sender.floor
        plain(self, sender, e)
        sender.floor = floor
    patch(receiver_model.Receiver, "record", record)


@wrong("sequence/burnt")
def remembers_what_it_refuses(patch):
    plain = receiver_model.Receiver.judge_address

    def judge_address(self, e):
        try:
            plain(self, e)
        except Refused:
            self.sender(e.source_node_id).seen[e.id] = e.timestamp
            raise
    patch(receiver_model.Receiver, "judge_address", judge_address)


@wrong("sequence/repeated/one-id-of-two-senders")
def ids_are_of_nobody(patch):
    plain = receiver_model.Receiver.sender

    def sender(self, node_id):
        made = plain(self, node_id)
        made.seen = self.__dict__.setdefault("of_all", {})
        return made
    patch(receiver_model.Receiver, "sender", sender)


@wrong("sequence/repeated/over-another-link")
def a_link_forgets_ids(patch):
    plain = receiver_model.Receiver.link

    def link(self, *arguments, **more):
        plain(self, *arguments, **more)
        self.senders = {}
    patch(receiver_model.Receiver, "link", link)


@wrong("sequence/capacity")
def forgets_ids_and_keeps_the_floor(patch):
    plain = receiver_model.Receiver.record

    def record(self, sender, e):
        with unittest.mock.patch.object(self, "seen_ids", None):
            plain(self, sender, e)
        while self.seen_ids is not None and len(sender.seen) > self.seen_ids:
            del sender.seen[min(sender.seen, key=sender.seen.get)]
    patch(receiver_model.Receiver, "record", record)


@wrong("sequence/rate/another-link")
def a_link_fills_the_bucket(patch):
    plain = receiver_model.Receiver.link

    def link(self, *arguments, **more):
        plain(self, *arguments, **more)
        for sender in self.senders.values():
            sender.tokens_ms = 0
    patch(receiver_model.Receiver, "link", link)


@wrong("sequence/reset/once-a-link")
def the_floor_goes_back_again_and_again(patch):
    def change(self, sender, timestamp):
        sender.reset_used = False
    times(patch, change)


@wrong("sequence/reset/offset-behind-too-far")
def the_floor_goes_back_for_any_clock(patch):
    def change(self, sender, timestamp):
        if self.offset_ms is not None:
            self.offset_ms = 0
    times(patch, change)


@wrong("messaging/")
def the_wall_clock_is_read_once(patch):
    plain = receiver_model.Receiver.clock
    patch(receiver_model.Receiver, "clock", lambda self, now_ms=None, mono_ms=None: plain(
        self, mono_ms=mono_ms))
