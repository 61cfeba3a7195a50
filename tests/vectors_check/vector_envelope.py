# SPDX-License-Identifier: Apache-2.0
"""Envelopes as the messaging profile has them (sections 2 to 4): the canonical protobuf encoding, the
rules of the fields, the signed bytes. Written from the text alone; slow and short on purpose."""

import dataclasses
import hashlib
import json
import re
import sys

ENVELOPE_MAX = 50176
PAYLOAD_MAX = 49152
TYPES = ("platform.replication.sync", "platform.replication.changed",
         "platform.replication.conflict")
TOPIC = re.compile(rb"platform\.replication\.[a-z][a-z0-9_]*\Z")
UUID7_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
UNICAST, TOPIC_MODE = 1, 2
VARINT_FIELDS = (4, 8)

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


class Refused(Exception):
    """The reason by its name in the profile."""


@dataclasses.dataclass
class Envelope:
    raw: dict  # field number -> bytes or int
    mode: int
    message_type: str
    payload: dict

    @property
    def id(self):
        return self.raw[1]

    @property
    def space(self):
        return self.raw[2]

    @property
    def source(self):
        return self.raw[3]

    @property
    def target(self):
        return self.raw[5]

    @property
    def timestamp(self):
        return self.raw[8]

    @property
    def correlation(self):
        return self.raw.get(9)

    @property
    def signature(self):
        return self.raw[10]

    def preimage(self):
        """Section 2."""
        parts = [b"faberio-envelope-v1\0", self.id, self.space, self.source, bytes([self.mode])]
        for text, width in ((self.target, 2), (self.raw[6], 2), (self.raw[7], 4)):
            parts += [len(text).to_bytes(width, "big"), text]
        parts.append(self.timestamp.to_bytes(8, "big"))
        parts.append(b"\1" + self.correlation if self.correlation else b"\0")
        return b"".join(parts)


def varint(data, at):
    value = shift = 0
    for place in range(10):
        if at >= len(data):
            raise Refused("malformed")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if (byte == 0 and place > 0) or value >= 1 << 64:
                raise Refused("malformed")  # not minimal, or too long
            return value, at
    raise Refused("malformed")


def read_fields(data):
    fields, last, at = {}, 0, 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not last < number <= 10 or wire != (0 if number in VARINT_FIELDS else 2):
            raise Refused("malformed")
        last = number
        value, at = varint(data, at)
        if value == 0:
            raise Refused("malformed")  # an explicit default
        if wire == 2:
            if value > len(data) - at:
                raise Refused("malformed")
            value, at = data[at:at + value], at + value
        fields[number] = value
    if any(n not in fields for n in (1, 2, 3, 4, 5, 6, 7, 8, 10)) or len(fields[10]) != 64:
        raise Refused("malformed")
    return fields


def write_fields(fields):
    def number(value):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(out + bytes([value]))
    out = b""
    for field in sorted(fields):
        value = fields[field]
        if field in VARINT_FIELDS:
            out += number(field << 3) + number(value)
        else:
            out += number(field << 3 | 2) + number(len(value)) + value
    return out


def is_uuid7(raw):
    return len(raw) == 16 and raw[6] >> 4 == 7 and raw[8] >> 6 == 2


def check_text(text):
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("a character that no text may hold")


def check_value(value, depth):
    """Depth, members and texts of a parsed payload; objects are lists of pairs inside `dict`."""
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, (dict, list)):
        if depth > 16:
            raise ValueError("too deep")
        for item in value.values() if isinstance(value, dict) else value:
            check_value(item, depth + 1)


def members(pairs):
    made = dict(pairs)
    if len(made) != len(pairs) or len(pairs) > 256:
        raise ValueError("members")
    for name in made:
        check_text(name)
    return made


def no_constant(name):
    raise ValueError(name)


def read_payload(raw, message_type):
    if len(raw) > PAYLOAD_MAX or raw.startswith(b"\xef\xbb\xbf"):
        raise ValueError("form")
    text = raw.decode("utf-8")
    value = json.loads(text, object_pairs_hook=members, parse_constant=no_constant,
                       parse_int=str, parse_float=str)
    if not isinstance(value, dict):
        raise ValueError("no object")
    check_value(value, 1)
    # parse_int makes texts of numbers, so a number is told from a text by reading once more.
    texts = json.loads(text, parse_int=float, parse_float=float)
    if "object_id" in value:
        if not isinstance(texts["object_id"], str) or not UUID7_TEXT.match(texts["object_id"]):
            raise ValueError("object_id")
    if message_type == TYPES[0]:
        if ("object_id" in value) == ("scope" in value):
            raise ValueError("sync")
        if "scope" in value and (not isinstance(texts["scope"], str)
                                 or texts["scope"] not in ("database", "file", "all")):
            raise ValueError("scope")
    elif "object_id" not in value:
        raise ValueError("object_id is missing")
    return value


def decode(data):
    """Step 1 of section 5: the envelope, or Refused with the first rule that it breaks."""
    if len(data) > ENVELOPE_MAX:
        raise Refused("too_large")
    raw = read_fields(data)
    for field in (1, 2):
        if not is_uuid7(raw[field]):
            raise Refused("bad_uuid")
    if len(raw[3]) != 16:
        raise Refused("bad_node_id")
    if raw[4] not in (UNICAST, TOPIC_MODE):
        raise Refused("bad_mode")
    if raw[4] == UNICAST:
        if len(raw[5]) != 16:
            raise Refused("bad_target")
    elif len(raw[5]) > 128 or not TOPIC.match(raw[5]):
        raise Refused("bad_target")
    try:
        message_type = raw[6].decode("utf-8")
    except UnicodeDecodeError:
        message_type = ""
    if message_type not in TYPES:
        raise Refused("bad_type")
    try:
        payload = read_payload(raw[7], message_type)
    except (ValueError, RecursionError):
        raise Refused("bad_payload") from None
    if raw[8] > (1 << 53) - 1:
        raise Refused("bad_timestamp")
    if 9 in raw and not is_uuid7(raw[9]):
        raise Refused("bad_uuid")
    return Envelope(raw, raw[4], message_type, payload)


def node_id(public_key):
    """Section 1."""
    return hashlib.sha256(b"faberio-node-id-v1\0" + public_key).digest()[:16]


def uuid_bytes(text):
    return bytes.fromhex(text.replace("-", ""))
