# SPDX-License-Identifier: Apache-2.0
"""Envelopes by the messaging profile, sections 1 to 4: both encodings, the rules of the fields, the
signed bytes. Written from the text, not from the runtime; short and slow on purpose. Signatures are
libsodium's."""
import dataclasses
import hashlib
import re

import nacl.exceptions
import nacl.signing

import strict_json
from strict_json import Number

JSON_MAX, PROTOBUF_MAX, PAYLOAD_MAX = 327680, 50176, 49152
DEPTH_MAX, MEMBERS_MAX, TOPIC_MAX, TIMESTAMP_MAX = 16, 256, 128, 2 ** 53 - 1
FIELDS = ("id", "information_space_id", "source_node_id", "delivery_mode", "target", "message_type",
          "payload", "timestamp", "correlation_id", "signature")
UUIDS = ("id", "information_space_id", "correlation_id")
OPTIONAL = ("correlation_id",)
DRAFT_OPTIONAL = ("correlation_id", "source_node_id", "signature")
MODES = {"unicast": 1, "topic": 2}
TYPES = ("platform.replication.sync", "platform.replication.changed",
         "platform.replication.conflict")
SCOPES = ("database", "file", "all")

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NODE_ID = re.compile(r"[0-9a-f]{32}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_TOPIC = re.compile(rb"platform\.replication\.[a-z][a-z0-9_]*")
_INTEGER = re.compile(r"[1-9][0-9]*")


class Refused(Exception):
    """The first rule that is broken: the reason by its name in the profile, and the field or None."""

    def __init__(self, reason, field=None):
        super().__init__(reason if field is None else f"{reason} ({field})")
        self.reason = reason
        self.field = field


@dataclasses.dataclass
class Envelope:
    id: bytes
    information_space_id: bytes
    source_node_id: bytes
    delivery_mode: int
    target: bytes
    message_type: str
    payload: bytes
    timestamp: int
    correlation_id: bytes | None = None
    signature: bytes | None = None

    def preimage(self):
        """Section 2."""
        message_type = self.message_type.encode()
        return b"".join([
            b"faberio-envelope-v1\0", self.id, self.information_space_id, self.source_node_id,
            self.delivery_mode.to_bytes(1, "big"), len(self.target).to_bytes(2, "big"), self.target,
            len(message_type).to_bytes(2, "big"), message_type,
            len(self.payload).to_bytes(4, "big"), self.payload, self.timestamp.to_bytes(8, "big"),
            b"\0" if self.correlation_id is None else b"\1" + self.correlation_id])

    def signed(self, seed):
        signature = nacl.signing.SigningKey(seed).sign(self.preimage()).signature
        return dataclasses.replace(self, signature=signature)


def verifies(public_key, message, signature):
    """Ed25519 by the strict rule of section 1."""
    try:
        nacl.signing.VerifyKey(public_key).verify(message, signature)
    except (nacl.exceptions.BadSignatureError, ValueError):
        return False
    return True


def public_key_of(seed):
    return bytes(nacl.signing.SigningKey(seed).verify_key)


def node_id_of(public_key):
    return hashlib.sha256(b"faberio-node-id-v1\0" + public_key).digest()[:16]


def uuid_text(raw):
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


# ---- Rules of the fields, in their order: section 4 ----


def check_uuid(raw, field):
    if raw is None or len(raw) != 16 or raw[6] >> 4 != 7 or raw[8] >> 6 != 2:
        raise Refused("bad_uuid", field)


def check_target(mode, target):
    if mode == MODES["unicast"]:
        good = target is not None and len(target) == 16
    else:
        good = target is not None and len(target) <= TOPIC_MAX and _TOPIC.fullmatch(target)
    if not good:
        raise Refused("bad_target", "target")


def payload_is_good(payload, message_type):
    if len(payload) > PAYLOAD_MAX:
        return False
    try:
        value = strict_json.parse(payload, DEPTH_MAX, MEMBERS_MAX)
    except strict_json.NotJson:
        return False
    if not isinstance(value, dict):
        return False
    if "object_id" in value:
        object_id = uuid_of(value["object_id"])
        try:
            check_uuid(object_id, "payload")
        except Refused:
            return False
    if message_type == "platform.replication.sync":
        if ("object_id" in value) == ("scope" in value):
            return False
        return "scope" not in value or (is_text(value["scope"]) and value["scope"] in SCOPES)
    return "object_id" in value


def check(fields):
    """Section 4's table over values: ids as bytes or None where the form was wrong, mode and
    timestamp as numbers. The Envelope, or Refused."""
    check_uuid(fields["id"], "id")
    check_uuid(fields["information_space_id"], "information_space_id")
    source = fields.get("source_node_id", bytes(16))
    if source is None or len(source) != 16:
        raise Refused("bad_node_id", "source_node_id")
    mode = fields["delivery_mode"]
    if mode not in MODES.values():
        raise Refused("bad_mode", "delivery_mode")
    check_target(mode, fields["target"])
    if fields["message_type"] not in TYPES:
        raise Refused("bad_type", "message_type")
    if not payload_is_good(fields["payload"], fields["message_type"]):
        raise Refused("bad_payload", "payload")
    timestamp = fields["timestamp"]
    if timestamp is None or not 1 <= timestamp <= TIMESTAMP_MAX:
        raise Refused("bad_timestamp", "timestamp")
    if "correlation_id" in fields:
        check_uuid(fields["correlation_id"], "correlation_id")
    return Envelope(**({"source_node_id": None} | fields))


# ---- JSON: section 3 ----


def is_text(value):
    return isinstance(value, str) and not isinstance(value, Number)


def uuid_of(value):
    """16 bytes, or None when the text has another form."""
    if not is_text(value) or not _UUID.fullmatch(value):
        return None
    return bytes.fromhex(value.replace("-", ""))


def node_id_from(value):
    return bytes.fromhex(value) if _NODE_ID.fullmatch(value) else None


def json_members(text, optional):
    """The form: all members with their JSON types, or Refused."""
    try:
        members = strict_json.parse(text, depth_max=1)
    except strict_json.NotJson as error:
        raise Refused("malformed") from error
    if not isinstance(members, dict):
        raise Refused("malformed")
    if set(members) - set(FIELDS) or set(FIELDS) - set(members) - set(optional):
        raise Refused("malformed")
    for name, value in members.items():
        if name == "timestamp" and not isinstance(value, Number):
            raise Refused("malformed")
        if name != "timestamp" and not is_text(value):
            raise Refused("malformed")
    if "signature" in members and not _SIGNATURE.fullmatch(members["signature"]):
        raise Refused("malformed")
    return members


def decode_json(text, draft=False):
    if len(text) > JSON_MAX:
        raise Refused("too_large")
    members = json_members(text, DRAFT_OPTIONAL if draft else OPTIONAL)
    fields = dict(members)
    for name in UUIDS:
        if name in members:
            fields[name] = uuid_of(members[name])
    if "source_node_id" in members:
        fields["source_node_id"] = node_id_from(members["source_node_id"])
    fields["delivery_mode"] = MODES.get(members["delivery_mode"])
    if fields["delivery_mode"] == MODES["unicast"]:
        fields["target"] = node_id_from(members["target"])
    else:
        fields["target"] = members["target"].encode()
    fields["payload"] = members["payload"].encode()
    plain = _INTEGER.fullmatch(members["timestamp"])
    # More digits than the greatest one has are too many, whatever they are.
    fields["timestamp"] = int(plain.group()) if plain and len(plain.group()) <= 16 else None
    if "signature" in members:
        fields["signature"] = bytes.fromhex(members["signature"])
    return check(fields)


def quote(text):
    """A string with the escapes that JSON demands, the short ones where there are."""
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
             "\t": "\\t"}
    return '"' + "".join(short.get(c) or (c if c >= " " else f"\\u{ord(c):04x}") for c in text) + '"'


def json_tokens(e):
    """Each member's value as it is spelled, in the draft's order."""
    mode = {number: name for name, number in MODES.items()}.get(e.delivery_mode, "")
    target = e.target.hex() if e.delivery_mode == MODES["unicast"] else e.target.decode()
    tokens = {"id": quote(uuid_text(e.id)),
              "information_space_id": quote(uuid_text(e.information_space_id)),
              "source_node_id": quote(e.source_node_id.hex()), "delivery_mode": quote(mode),
              "target": quote(target), "message_type": quote(e.message_type),
              "payload": quote(e.payload.decode()), "timestamp": str(e.timestamp)}
    if e.correlation_id is not None:
        tokens["correlation_id"] = quote(uuid_text(e.correlation_id))
    if e.signature is not None:
        tokens["signature"] = quote(e.signature.hex())
    return tokens


def encode_json(e):
    """One line without white space."""
    return ("{" + ",".join(f'"{n}":{t}' for n, t in json_tokens(e).items()) + "}").encode()


# ---- Protobuf: section 3 ----

VARINTS = ("delivery_mode", "timestamp")


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def read_varint(data, at):
    number = 0
    for place in range(10):
        if at >= len(data):
            raise Refused("malformed")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if number >> 64 or (byte == 0 and place > 0):
                raise Refused("malformed")
            return number, at
    raise Refused("malformed")


def decode_protobuf(data, draft=False):
    if len(data) > PROTOBUF_MAX:
        raise Refused("too_large")
    fields, last, at = {}, 0, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not last < number <= len(FIELDS):
            raise Refused("malformed")
        last, name = number, FIELDS[number - 1]
        if wire != (0 if name in VARINTS else 2):
            raise Refused("malformed")
        value, at = read_varint(data, at)
        if value == 0:
            raise Refused("malformed")
        if name not in VARINTS:
            if len(data) - at < value:
                raise Refused("malformed")
            value, at = data[at:at + value], at + value
        fields[name] = value
    if set(FIELDS) - set(fields) - set(DRAFT_OPTIONAL if draft else OPTIONAL):
        raise Refused("malformed")
    if len(fields.get("signature", bytes(64))) != 64:
        raise Refused("malformed")
    try:
        fields["message_type"] = fields["message_type"].decode()
    except UnicodeDecodeError:
        fields["message_type"] = None
    return check(fields)


def protobuf_fields(e):
    """Each field with its tag, in order."""
    made = {}
    for number, name in enumerate(FIELDS, 1):
        value = getattr(e, name)
        if name in VARINTS:
            made[name] = varint(number << 3) + varint(value)
        elif value is not None:
            value = value.encode() if name == "message_type" else value
            made[name] = varint(number << 3 | 2) + varint(len(value)) + value
    return made


def encode_protobuf(e):
    return b"".join(protobuf_fields(e).values())


DECODE = {"json": decode_json, "protobuf": decode_protobuf}
ENCODE = {"json": encode_json, "protobuf": encode_protobuf}
