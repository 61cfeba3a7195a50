#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runtime in Python, wrong in exactly one way: what the suite must not let pass.

    wrong_adapters.py NAME    is such an adapter
    wrong_adapters.py         names them all"""
import contextlib
import json
import re
import sys
import typing
import unittest.mock

import envelope_model as model
import receiver_model
import runtime_node
import runtime_python
import strict_json
from envelope_model import Refused
from strict_json import NotJson, Number


class Wrong(typing.NamedTuple):
    name: str
    shown_by: str  # the beginning of the names of checks that must see it
    change: typing.Callable


ALL = {}


def wrong(shown_by):
    def add(function):
        name = function.__name__.replace("_", "-")
        ALL[name] = Wrong(name, shown_by, function)
        return function
    return add


@contextlib.contextmanager
def adapter(name):
    """A runtime with that defect, for as long as the context lasts."""
    with contextlib.ExitStack() as stack:
        def patch(owner, attribute, value):
            stack.enter_context(unittest.mock.patch.object(owner, attribute, value))
        ALL[name].change(patch)
        yield runtime_python.Runtime()


# ---- JSON ----


@wrong("envelope/json/utf-8")
def reads_invalid_utf_8(patch):
    class Forgiving(bytes):
        def decode(self, *_):
            return bytes.decode(self, "utf-8", "replace")
    plain = strict_json.parse
    patch(strict_json, "parse", lambda data, *rest, **more: plain(Forgiving(data), *rest, **more))


@wrong("envelope/json/bom")
def passes_over_a_byte_order_mark(patch):
    plain = strict_json.parse
    patch(strict_json, "parse", lambda data, *rest, **more: plain(
        data.removeprefix(b"\xef\xbb\xbf"), *rest, **more))


@wrong("envelope/json/whole")
def ignores_what_follows_the_object(patch):
    plain = model.decode_json

    def decode(text, draft=False):
        return plain(text[:text.rindex(b"}") + 1] if b"}" in text else text, draft)
    patch(model, "decode_json", decode)
    patch(model, "DECODE", model.DECODE | {"json": decode})


@wrong("envelope/json/unknown")
def ignores_unknown_members(patch):
    plain = strict_json.parse

    def parse(data, depth_max=None, members_max=None):
        value = plain(data, depth_max, members_max)
        if depth_max == 1 and isinstance(value, dict):
            return {name: one for name, one in value.items() if name in model.FIELDS}
        return value
    patch(strict_json, "parse", parse)


@wrong("envelope/json/null")
def takes_null_for_absent(patch):
    plain = strict_json.parse

    def parse(data, depth_max=None, members_max=None):
        value = plain(data, depth_max, members_max)
        if depth_max == 1 and isinstance(value, dict) and value.get("correlation_id", 0) is None:
            del value["correlation_id"]
        return value
    patch(strict_json, "parse", parse)


def objects(patch, twice):
    """Objects whose repeated members are judged by twice(names so far, name, how it was spelled)."""
    def parse_object(self):
        made, spelled = {}, set()
        self.space()
        if self.here() == "}":
            self.at += 1
            return made
        while True:
            self.space()
            start = self.at
            name = self.string()
            if twice(made, spelled, name, self.text[start:self.at]):
                raise NotJson("twice")
            spelled.add(self.text[start:self.at])
            self.space()
            self.expect(":")
            self.space()
            made[name] = self.value()
            if self.members_max is not None and len(made) > self.members_max:
                raise NotJson("too many members")
            self.space()
            if self.here() == "}":
                self.at += 1
                return made
            self.expect(",")
    patch(strict_json._Text, "object", parse_object)


@wrong("envelope/payload/duplicate")
def the_last_of_two_members_counts(patch):
    objects(patch, lambda made, spelled, name, text: False)


@wrong("envelope/payload/duplicate/escape")
def compares_names_as_they_are_spelled(patch):
    objects(patch, lambda made, spelled, name, text: text in spelled)


@wrong("envelope/payload/duplicate/not/case")
def compares_names_without_case(patch):
    objects(patch, lambda made, spelled, name, text: name.lower() in map(str.lower, made))


@wrong("envelope/payload/duplicate/not/composed")
def compares_names_once_normalised(patch):
    import unicodedata

    def nfc(text):
        return unicodedata.normalize("NFC", text)
    objects(patch, lambda made, spelled, name, text: nfc(name) in map(nfc, made))


def escapes(patch, change):
    """Escapes of four digits by another rule."""
    plain = strict_json._Text.escape

    def escape(self):
        if self.here() == "u":
            found = re.compile(r"u([0-9a-fA-F]{4})").match(self.text, self.at)
            made = change(int(found.group(1), 16)) if found else None
            if made is not None:
                self.at = found.end()
                return made
        return plain(self)
    patch(strict_json._Text, "escape", escape)


@wrong("envelope/json/escape/nul")
def lets_a_zero_character_pass(patch):
    escapes(patch, lambda unit: "\0" if unit == 0 else None)


@wrong("envelope/json/escape/low-alone")
def replaces_lone_surrogates(patch):
    escapes(patch, lambda unit: "\ufffd" if 0xDC00 <= unit < 0xE000 else None)


@wrong("envelope/json/control-raw")
def lets_control_characters_pass(patch):
    patch(strict_json, "_PLAIN", re.compile(r'[^"\\\x00]*'))


@wrong("envelope/payload/number")
def takes_numbers_for_what_they_are_worth(patch):
    patch(strict_json, "_NUMBER", re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"))


@wrong("envelope/json/timestamp")
def takes_a_fraction_of_zero(patch):
    plain = strict_json.parse

    def parse(data, depth_max=None, members_max=None):
        value = plain(data, depth_max, members_max)
        if depth_max == 1 and isinstance(value, dict) and isinstance(value.get("timestamp"), Number):
            value["timestamp"] = Number(re.sub(r"\.0+$", "", value["timestamp"]))
        return value
    patch(strict_json, "parse", parse)


@wrong("envelope/json/timestamp/2-to-the-53-less-one")
def timestamps_are_floats(patch):
    patch(model, "TIMESTAMP_MAX", 2 ** 53 - 2)


@wrong("envelope/field/id")
def hex_digits_of_either_case(patch):
    patch(model, "_UUID", re.compile(model._UUID.pattern, re.IGNORECASE))


@wrong("envelope/field/source_node_id")
def node_ids_with_a_prefix(patch):
    plain = model.node_id_from
    patch(model, "node_id_from", lambda value: plain(value.removeprefix("0x").ljust(32, "0")))


@wrong("envelope/json/size/one-more")
def no_limit_for_json(patch):
    patch(model, "JSON_MAX", 1 << 40)


# ---- Protobuf ----


@wrong("envelope/protobuf/varint")
def longer_varints_are_fine(patch):
    def read(data, at):
        number = 0
        for place in range(10):
            if at >= len(data):
                raise Refused("malformed")
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if number >> 64:
                    raise Refused("malformed")
                return number, at
        raise Refused("malformed")
    patch(model, "read_varint", read)


@wrong("envelope/protobuf/timestamp/2-to-the-64")
def varints_wrap_around(patch):
    plain = model.read_varint

    def read(data, at):
        run = re.compile(rb"[\x80-\xff]{9}[\x02-\x7f]").match(data, at)
        if run is None:
            return plain(data, at)
        number = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(run.group()))
        return number % (1 << 64), run.end()
    patch(model, "read_varint", read)


def fields_of(data):
    """(number, bytes of the whole field), as far as it goes."""
    at, made = 0, []
    while at < len(data):
        start = at
        tag, at = model.read_varint(data, at)
        value, at = model.read_varint(data, at)
        if tag & 7 == 2:
            at += value
        made.append((tag >> 3, data[start:at]))
    return made


def repaired(patch, repair):
    """Reads what it has made right first."""
    plain = model.decode_protobuf

    def decode(data, draft=False):
        try:
            data = repair(data)
        except Refused:
            pass
        return plain(data, draft)
    patch(model, "decode_protobuf", decode)
    patch(model, "DECODE", model.DECODE | {"protobuf": decode})


@wrong("envelope/protobuf/out-of-order")
def sorts_the_fields(patch):
    repaired(patch, lambda data: b"".join(part for _, part in sorted(fields_of(data),
                                                                    key=lambda one: one[0])))


@wrong("envelope/protobuf/twice")
def the_last_of_two_fields_counts(patch):
    repaired(patch, lambda data: b"".join(dict(fields_of(data)).values()))


@wrong("envelope/protobuf/unknown")
def skips_unknown_fields(patch):
    repaired(patch, lambda data: b"".join(part for number, part in fields_of(data)
                                          if 1 <= number <= 10))


@wrong("envelope/protobuf/explicit-default/correlation_id")
def an_empty_field_is_absent(patch):
    repaired(patch, lambda data: b"".join(part for _, part in fields_of(data) if part[1:] != b"\0"))


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


# ---- A node ----


@wrong("node/nothing-is-acknowledged-before-it-is-durable")
def acknowledges_what_is_not_durable(patch):
    plain = runtime_node.Node.acknowledge

    def acknowledge(self, number, link, again=False):
        with unittest.mock.patch.object(self, "durable", len(self.accepted)):
            plain(self, number, link, again)
    patch(runtime_node.Node, "acknowledge", acknowledge)


@wrong("node/what-is-refused-is-acknowledged-too")
def acknowledges_only_what_it_accepts(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        if made[0] == "refuse":
            self.out = [one for one in self.out if one["out"] != "ack"]
        return made
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/numbers-are-taken-in-their-order")
def takes_numbers_as_they_come(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        link = self.links[number]
        link.received = max(link.received, message - 1)
        return plain(self, number, message, data)
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/numbers-are-taken-in-their-order")
def says_nothing_to_a_repeated_number(patch):
    plain = runtime_node.Node.acknowledge
    patch(runtime_node.Node, "acknowledge",
          lambda self, number, link, again=False: None if again else plain(self, number, link))


@wrong("node/ids-outlive-a-restart")
def a_restart_forgets_ids(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        self.accepted, self.durable = [], 0
        return plain(self)
    patch(runtime_node.Node, "restart", restart)


@wrong("node/the-floor-outlives-a-restart")
def a_restart_forgets_the_floor(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        self.accepted = [(*one[:3], 0) for one in self.accepted]
        return plain(self)
    patch(runtime_node.Node, "restart", restart)


@wrong("node/what-was-lost-is-taken-again")
def remembers_what_it_did_not_store(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        self.durable = len(self.accepted)
        return plain(self)
    patch(runtime_node.Node, "restart", restart)


@wrong("node/nothing-is-passed-on")
def passes_messages_on(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        for other, link in self.links.items():
            if made[0] == "accept" and other != number:
                link.sent += 1
                self.say("send", link=other, number=link.sent, envelope=data.hex())
        return made
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/misbehaviour-ends-the-link")
def bears_with_everything(patch):
    patch(runtime_node, "BUDGET", 1 << 40)


@wrong("node/honest-mistakes-cost-nothing")
def duplicates_are_misbehaviour(patch):
    patch(runtime_node, "HONEST", tuple(one for one in runtime_node.HONEST if one != "duplicate"))


@wrong("node/honest-mistakes-cost-nothing")
def a_wrong_clock_is_misbehaviour(patch):
    patch(runtime_node, "HONEST", tuple(one for one in runtime_node.HONEST if one != "from_future"))


@wrong("node/who-only-asked-to-join")
def publishes_to_whoever_is_connected(patch):
    def publish(self, object_id):
        for link in self.links.values():
            link.waiting[object_id] = None
        self.flush()
    patch(runtime_node.Node, "publish", publish)


@wrong("node/what-is-published-goes-to-each-peer")
def publishes_to_one_peer_only(patch):
    def publish(self, object_id):
        for link in list(self.links.values())[:1]:
            link.waiting[object_id] = None
        self.flush()
    patch(runtime_node.Node, "publish", publish)


@wrong("node/a-write-is-announced")
def announces_what_is_not_durable(patch):
    plain = runtime_node.Node.write

    def write(self):
        with unittest.mock.patch.object(self, "held", False):
            return plain(self)
    patch(runtime_node.Node, "write", write)


@wrong("node/a-write-that-was-lost")
def announces_what_it_lost(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        written = self.written
        plain(self)
        self.lost = written

    link_up = runtime_node.Node.link_up

    def tell(self, peer, offset_ms):
        number = link_up(self, peer, offset_ms)
        for object_id in getattr(self, "lost", []):
            self.publish(object_id)
        return number
    patch(runtime_node.Node, "restart", restart)
    patch(runtime_node.Node, "link_up", tell)


@wrong("node/the-state-has-its-own-topic")
def one_topic_for_everything(patch):
    patch(runtime_node, "STATE", runtime_node.DATABASE)


@wrong("node/nothing-waits-for-who-is-away")
def keeps_messages_for_who_is_away(patch):
    publish, link_up = runtime_node.Node.publish, runtime_node.Node.link_up

    def remember(self, object_id):
        self.__dict__.setdefault("published", []).append(object_id)
        publish(self, object_id)

    def tell(self, peer, offset_ms):
        number = link_up(self, peer, offset_ms)
        for object_id in self.__dict__.get("published", []):
            self.links[number].waiting[object_id] = None
        self.flush()
        return number
    patch(runtime_node.Node, "publish", remember)
    patch(runtime_node.Node, "link_up", tell)


@wrong("node/what-is-not-acknowledged-is-sent-again")
def never_sends_again(patch):
    def resend(self, number, link):
        link.resend_at = None
    patch(runtime_node.Node, "resend", resend)


@wrong("node/what-is-not-acknowledged-is-sent-again")
def sends_again_without_backing_off(patch):
    patch(runtime_node, "RESEND_MAX_MS", runtime_node.RESEND_MIN_MS)


@wrong("node/what-is-not-acknowledged-is-sent-again")
def signs_anew_what_it_sends_again(patch):
    plain = runtime_node.Node.resend

    def resend(self, number, link):
        for sent in link.window.values():
            e = model.dataclasses.replace(model.decode_protobuf(sent.data), timestamp=self.wall_ms)
            sent.data = model.encode_protobuf(e.signed(self.seed))
        plain(self, number, link)
    patch(runtime_node.Node, "resend", resend)


@wrong("node/no-more-is-under-way")
def a_window_of_one_more(patch):
    patch(runtime_node, "WINDOW_MESSAGES", 65)


@wrong("node/no-more-is-under-way")
def says_each_thing_as_often_as_it_is_told(patch):
    def publish(self, object_id):
        count = self.__dict__["told"] = self.__dict__.get("told", 0) + 1
        for link in self.links.values():
            link.waiting[object_id + " " * count] = None
        self.flush()

    plain = runtime_node.Node.compose
    patch(runtime_node.Node, "publish", publish)
    patch(runtime_node.Node, "compose",
          lambda self, object_id, **fields: plain(self, object_id.strip(), **fields))


@wrong("node/an-acknowledgement-covers")
def acknowledgements_are_of_one_number(patch):
    def ack(self, number, message):
        self.links[number].window.pop(message, None)
        self.flush()
    patch(runtime_node.Node, "ack", ack)


@wrong("node/what-a-broken-link-left-goes-first")
def a_broken_link_drops_everything(patch):
    def link_down(self, number):
        del self.links[number]
    patch(runtime_node.Node, "link_down", link_down)


@wrong("node/what-a-broken-link-left-goes-first")
def what_is_new_goes_first(patch):
    plain = runtime_node.Node.link_up

    def link_up(self, peer, offset_ms):
        left = self.orphans.pop(peer, [])
        number = plain(self, peer, offset_ms)
        self.links[number].redo_later = left
        return number

    flush = runtime_node.Node.flush

    def late(self):
        flush(self)
        for link in self.links.values():
            if link.sent > 0 and getattr(link, "redo_later", []):
                link.redo, link.redo_later = link.redo_later, []
        flush(self)
    patch(runtime_node.Node, "link_up", link_up)
    patch(runtime_node.Node, "flush", late)


@wrong("node/after-a-second-break")
def redelivers_for_ever(patch):
    plain = runtime_node.Node.link_down

    def link_down(self, number):
        for sent in self.links[number].window.values():
            sent.redelivered = False
        plain(self, number)
    patch(runtime_node.Node, "link_down", link_down)


@wrong("node/after-a-minute")
def redelivers_after_an_hour(patch):
    patch(runtime_node, "REDELIVER_MS", 3600000)


@wrong("node/ids-are-new-and-rise")
def ids_go_by_the_clock_alone(patch):
    plain = runtime_node.Node.new_id

    def new_id(self):
        self.last_id = b""
        return plain(self)
    patch(runtime_node.Node, "new_id", new_id)


@wrong("node/sync-is-answered-once")
def answers_every_sync(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        if made[1] == "duplicate":
            e = model.decode_protobuf(data)
            if e.message_type.endswith("sync"):
                self.links[number].answers.append((e.id, json.loads(e.payload)["object_id"], 0))
                self.flush()
        return made
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/sync-is-answered-once")
def answers_sync_to_a_topic(patch):
    plain = runtime_node.Node.compose

    def compose(self, object_id, **fields):
        fields |= {"delivery_mode": model.MODES["topic"], "target": runtime_node.DATABASE}
        return plain(self, object_id, **fields)
    patch(runtime_node.Node, "compose", compose)


@wrong("node/sync-is-not-answered-before-it-is-durable")
def answers_sync_at_once(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        link = self.links[number]
        link.answers = [(sync, wanted, 0) for sync, wanted, _ in link.answers]
        self.flush()
        return made
    patch(runtime_node.Node, "deliver", deliver)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ALL:
        print("\n".join(ALL))
        return 2 if len(sys.argv) > 1 else 0
    with adapter(sys.argv[1]) as runtime:
        runtime_python.serve(runtime, sys.stdin, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
