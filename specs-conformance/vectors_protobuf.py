# SPDX-License-Identifier: Apache-2.0
"""Vectors of the protobuf encoding's form: one canonical encoding, all else malformed (profile 3)."""
import envelope_model as model
from vector_make import A, OBJECT, PAYLOAD, Case, field, message, protobuf, unicast

FIELDS = model.FIELDS
VARINTS = model.VARINTS


def case(name, data, reason=None, where=None, context="b"):
    return Case("protobuf/" + name, "protobuf", data, reason, where, context)


def malformed(name, data):
    return case(name, data, "malformed")


def padded(number, more=1):
    """The same number in more bytes than it takes."""
    made = bytearray(model.varint(number))
    made[-1] |= 0x80
    return bytes(made) + b"\x80" * (more - 1) + b"\x00"


def whole():
    e = message()
    data = protobuf(e)
    yield case("whole/default", data)
    yield case("whole/unicast", protobuf(unicast()))
    yield case("whole/with-correlation", protobuf(message(correlation_id=e.id)))
    yield malformed("whole/empty", b"")
    yield malformed("whole/zero-byte", b"\0")
    yield malformed("whole/trailing-zero", data + b"\0")
    yield malformed("whole/twice", data + data)
    yield malformed("whole/json-text", b'{"id":""}')
    yield malformed("whole/length-before", model.varint(len(data)) + data)
    cuts = (1, 2, 10, 17, 18, 53, 54, 55, 60, len(data) - 65, len(data) - 64, len(data) - 1)
    for cut in cuts:
        yield malformed(f"cut/after-{cut}-bytes", data[:cut])
    for number in (11, 15, 16, 31, 2047, (1 << 29) - 1):
        for wire, value in ((0, b"\1"), (2, b"\1a"), (5, b"\1\0\0\0"), (1, b"\1" + bytes(7))):
            yield malformed(f"unknown/field-{number}-wire-{wire}",
                            data + model.varint(number << 3 | wire) + value)
    yield malformed("unknown/field-0", data + b"\x02\x01a")
    yield malformed("unknown/field-2-to-the-29", data + model.varint(1 << 32 | 2) + b"\1a")


def members():
    e = message(correlation_id=message().id)
    fields = model.protobuf_fields(e)
    for number, name in enumerate(FIELDS, 1):
        is_number = name in VARINTS
        if name != "correlation_id":
            yield malformed(f"missing/{name}", protobuf(e, without=(name,)))
        default = model.varint(number << 3 | (0 if is_number else 2)) + b"\0"
        yield malformed(f"explicit-default/{name}", protobuf(e, {name: default}))
        yield malformed(f"twice/{name}", protobuf(e, {name: fields[name] * 2}))
        order = list(FIELDS)
        at = min(number - 1, len(FIELDS) - 2)
        order[at], order[at + 1] = order[at + 1], order[at]
        yield malformed(f"out-of-order/{name}-and-its-neighbour", protobuf(e, order=order))
        for wire in range(8):
            if wire == (0 if is_number else 2):
                continue
            body = {0: b"\x01", 1: bytes(8), 2: b"\1a", 5: bytes(4)}.get(wire, b"")
            yield malformed(f"wire-type/{name}/{wire}",
                            protobuf(e, {name: model.varint(number << 3 | wire) + body}))
        yield malformed(f"varint/tag-of-{name}-in-two-bytes",
                        protobuf(e, {name: padded(fields[name][0]) + fields[name][1:]}))
        if is_number:
            value = getattr(e, name)
            for more in (1, 3):
                yield malformed(f"varint/{name}-{more}-longer",
                                protobuf(e, {name: fields[name][:1] + padded(value, more)}))
        else:
            value = fields[name][1:]
            size, at = model.read_varint(value, 0)
            yield malformed(f"varint/length-of-{name}-longer",
                            protobuf(e, {name: fields[name][:1] + padded(size) + value[at:]}))
    last = model.varint(10 << 3 | 2)
    yield malformed("length/one-more-than-there-is", protobuf(
        e, {"signature": last + model.varint(65) + e.signature}))
    for name, size in (("2-to-the-31", 1 << 31), ("2-to-the-32", 1 << 32),
                       ("2-to-the-63", 1 << 63), ("2-to-the-64-less-one", (1 << 64) - 1)):
        yield malformed(f"length/{name}",
                        protobuf(e, {"signature": last + model.varint(size) + e.signature}))
    for size in (0, 1, 32, 63, 65, 128):
        data = protobuf(e, {"signature": last + model.varint(size) + (e.signature * 2)[:size]})
        yield malformed(f"signature/{size}-bytes", data)


def varints():
    """Numbers at the borders of their bytes."""
    e = message()

    def mode(data):
        return protobuf(e, {"delivery_mode": b"\x20" + data})

    def time(data):
        return protobuf(e, {"timestamp": b"\x40" + data})

    for name, data, reason in (
            ("3", b"\x03", "bad_mode"), ("127", b"\x7f", "bad_mode"),
            ("128", b"\x80\x01", "bad_mode"), ("256-and-2", model.varint(258), "bad_mode"),
            ("2-to-the-32-and-2", model.varint((1 << 32) + 2), "bad_mode"),
            ("2-to-the-63", model.varint(1 << 63), "bad_mode"),
            ("minus-one", b"\xff" * 9 + b"\x01", "bad_mode"),
            ("tenth-byte-2", b"\xff" * 9 + b"\x02", "malformed"),
            ("tenth-byte-7f", b"\xff" * 9 + b"\x7f", "malformed"),
            ("tenth-byte-81", b"\xff" * 9 + b"\x81\x00", "malformed"),
            ("eleven-bytes", b"\x80" * 10 + b"\x01", "malformed"),
            ("2-in-ten-bytes", b"\x82" + b"\x80" * 8 + b"\x00", "malformed"),
            ("no-end", b"\x80", "malformed")):
        yield case(f"mode/{name}", mode(data), reason, "delivery_mode" if reason == "bad_mode" else None)
    for name, value in (("2-to-the-53", 1 << 53), ("2-to-the-63", 1 << 63),
                        ("2-to-the-63-and-now", (1 << 63) + e.timestamp),
                        ("2-to-the-64-less-one", (1 << 64) - 1)):
        yield case(f"timestamp/{name}", time(model.varint(value)), "bad_timestamp", "timestamp")
    for name, data in (("2-to-the-64", b"\x80" * 9 + b"\x02"),
                       ("2-to-the-64-and-now", _beyond(e.timestamp)),
                       ("eleven-bytes", b"\x80" * 10 + b"\x01"),
                       ("ten-bytes-of-ff", b"\xff" * 10)):
        yield malformed(f"timestamp/{name}", time(data))
    yield case("timestamp/one", protobuf(message(timestamp=1)), context="b-at-one")
    for name, value in (("127", 127), ("128", 128), ("16383", 16383), ("16384", 16384)):
        yield case(f"timestamp/{name}", protobuf(message(timestamp=value)), context="b-at-one")
    yield case("timestamp/2-to-the-53-less-one", protobuf(message(timestamp=(1 << 53) - 1)),
               context="b-at-the-end")
    yield malformed("timestamp/zig-zag-of-nothing", time(b"\x00"))


def _beyond(number):
    """A varint of ten bytes whose value is the number once 64 bits are kept."""
    made = bytearray(model.varint(number))
    made += bytes(10 - len(made))
    for i in range(9):
        made[i] |= 0x80
    made[9] = 2
    return bytes(made)


def sizes():
    empty = '{"object_id":"%s","pad":""}' % OBJECT
    pad = model.PAYLOAD_MAX - len(empty)

    def filled(count):
        return message(payload=(empty[:-2] + "a" * count + '"}').encode())

    for name, length in (("127", 127), ("128", 128), ("16383", 16383), ("16384", 16384)):
        yield case(f"size/payload-{name}", protobuf(filled(length - len(empty))))
    yield case("size/payload-exact", protobuf(filled(pad)))
    yield case("size/payload-one-more", protobuf(filled(pad + 1)), "bad_payload", "payload")
    e = message()
    rest = model.PROTOBUF_MAX - len(protobuf(e)) + len(PAYLOAD) - 2
    yield case("size/exact", protobuf(filled(rest - len(empty))), "bad_payload", "payload")
    yield case("size/one-more", protobuf(filled(rest - len(empty) + 1)), "too_large")
    yield case("size/one-more-and-malformed", bytes(model.PROTOBUF_MAX + 1), "too_large")
    yield case("size/exact-and-malformed", bytes(model.PROTOBUF_MAX), "malformed")
    yield case("size/source-of-40000-bytes", protobuf(
        e, {"source_node_id": field(3, A.node_id * 2500)}), "bad_node_id", "source_node_id")


def cases():
    for part in (whole, members, varints, sizes):
        yield from part()
