# SPDX-License-Identifier: Apache-2.0
"""Vectors of the fields' rules: the table of profile 4, each value in both encodings where both can say
it, and the order in which broken rules are named."""
import dataclasses

import envelope_model as model
from vector_make import (A, B, CHANGED, CONFLICT, OBJECT, PAYLOAD, SYNC, TOPIC, Case, field,
                         json_text, message, protobuf, unicast)

NUMBER = {name: number for number, name in enumerate(model.FIELDS, 1)}


def both(name, e, reason=None, where=None):
    """One message in both encodings."""
    yield Case(f"{name}/json", "json", json_text(e), reason, where)
    yield Case(f"{name}/protobuf", "protobuf", protobuf(e), reason, where)


def text(name, where, token, reason, e=None):
    return Case(f"field/{where}/{name}/json", "json",
                json_text(e or message(correlation_id=message().id), {where: token}), reason,
                where if reason and reason.startswith("bad_") else None)


def raw(name, where, value, reason, e=None):
    e = e or message(correlation_id=message().id)
    return Case(f"field/{where}/{name}/protobuf", "protobuf",
                protobuf(e, {where: field(NUMBER[where], value)}), reason, where)


def uuids():
    for where in model.UUIDS:
        good = message(correlation_id=message().id)
        value = getattr(good, where)
        spelled = model.uuid_text(value)
        for version in (0, 1, 4, 6, 8, 15):
            bad = bytearray(value)
            bad[6] = version << 4 | bad[6] & 15
            wrong = dataclasses.replace(good, **{where: bytes(bad)}).signed(A.seed)
            yield from both(f"field/{where}/version-{version}", wrong, "bad_uuid", where)
        for name, bits in (("00", 0), ("01", 1), ("11", 3)):
            bad = bytearray(value)
            bad[8] = bits << 6 | bad[8] & 63
            wrong = dataclasses.replace(good, **{where: bytes(bad)}).signed(A.seed)
            yield from both(f"field/{where}/variant-{name}", wrong, "bad_uuid", where)
        for name, token in (("upper-case", spelled.upper()), ("no-hyphens", value.hex()),
                            ("braces", "{" + spelled + "}"), ("urn", "urn:uuid:" + spelled),
                            ("blank-before", " " + spelled), ("blank-behind", spelled + " "),
                            ("one-digit-less", spelled[:-1]), ("one-digit-more", spelled + "0"),
                            ("letter-g", spelled[:-1] + "g"), ("empty", ""),
                            ("hyphen-elsewhere", spelled[:7] + "-" + spelled[7] + spelled[9:]),
                            ("full-width-digit", "０" + spelled[1:])):
            yield text(name, where, f'"{token}"', "bad_uuid")
        for length in (1, 15, 17, 32, 36):
            yield raw(f"{length}-bytes", where, (value * 3)[:length], "bad_uuid")
        yield raw("as-text", where, spelled.encode(), "bad_uuid")
        for name, changed in (("variant-9", 0x9f), ("variant-b", 0xbf), ("variant-8", 0x80)):
            if where == "information_space_id":
                continue
            right = bytearray(value)
            right[8] = changed
            yield from both(f"field/{where}/{name}", dataclasses.replace(
                good, **{where: bytes(right)}).signed(A.seed))


def node_ids():
    unicast_e = unicast()
    for where, reason, e in (("source_node_id", "bad_node_id", message()),
                             ("target", "bad_target", unicast_e)):
        value = getattr(e, where)
        for name, token in (("upper-case", value.hex().upper()), ("31-digits", value.hex()[:31]),
                            ("33-digits", value.hex() + "0"), ("30-digits", value.hex()[:30]),
                            ("64-digits", value.hex() * 2), ("letter-g", value.hex()[:31] + "g"),
                            ("blank-before", " " + value.hex()), ("empty", ""),
                            ("prefix-0x", "0x" + value.hex()[2:]),
                            ("as-uuid", model.uuid_text(value))):
            yield text(name, where, f'"{token}"', reason, e)
        for length in (1, 15, 17, 32):
            yield raw(f"{length}-bytes", where, (value * 2)[:length], reason, e)
        yield raw("as-text", where, value.hex().encode(), reason, e)
    yield raw("public-key", "source_node_id", A.public_key, "bad_node_id")


def modes():
    for name, token in (("upper-case", "Topic"), ("broadcast", "broadcast"), ("empty", ""),
                        ("blank-behind", "topic "), ("number-as-text", "2"), ("plural", "topics"),
                        ("multicast", "multicast"), ("enum-name", "DELIVERY_TOPIC")):
        yield text(name, "delivery_mode", f'"{token}"', "bad_mode")
    # The target is read by the mode.
    topic = (TOPIC + "database").encode()
    yield raw("topic-in-unicast", "target", topic, "bad_target", unicast())
    yield text("topic-in-unicast", "target", f'"{topic.decode()}"', "bad_target", unicast())
    yield raw("node-id-in-topic", "target", B.node_id, "bad_target", message())
    yield text("node-id-in-topic", "target", f'"{B.node_id.hex()}"', "bad_target", message())


def topics():
    long = TOPIC + "a" * (model.TOPIC_MAX - len(TOPIC))
    for name, topic, reason in (
            ("one-letter", TOPIC + "a", "not_subscribed"),
            ("digits-and-underscores", TOPIC + "a_0z9_", "not_subscribed"),
            ("file", TOPIC + "file", "not_subscribed"),
            ("state", TOPIC + "state", None), ("database", TOPIC + "database", None),
            ("unknown-word", TOPIC + "databases", "not_subscribed"),
            ("128-bytes", long, "not_subscribed"), ("129-bytes", long + "a", "bad_target"),
            ("65536-less-20-bytes", TOPIC + "a" * 40000, "bad_target"),
            ("nothing-behind-the-point", TOPIC, "bad_target"),
            ("prefix-only", TOPIC[:-1], "bad_target"), ("upper-case", TOPIC + "Database", "bad_target"),
            ("upper-case-prefix", "Platform.replication.database", "bad_target"),
            ("digit-first", TOPIC + "1a", "bad_target"), ("underscore-first", TOPIC + "_a", "bad_target"),
            ("second-point", TOPIC + "a.b", "bad_target"), ("point-at-the-end", TOPIC + "a.", "bad_target"),
            ("hyphen", TOPIC + "a-b", "bad_target"), ("blank-behind", TOPIC + "a ", "bad_target"),
            ("blank-before", " " + TOPIC + "a", "bad_target"), ("line-feed-behind", TOPIC + "a\n",
                                                                "bad_target"),
            ("other-platform", "platform.messaging.database", "bad_target"),
            ("application", "app.chat", "bad_target"), ("one-word", "database", "bad_target"),
            ("letter-for-point", "platform-replication.database", "bad_target"),
            ("wildcard", TOPIC + "*", "bad_target"), ("accent", TOPIC + "caf\u00e9", "bad_target"),
            ("cyrillic-a", TOPIC + "d\u0430tabase", "bad_target")):
        e = message(target=topic.encode())
        yield from both(f"field/target/topic/{name}", e, reason, "target" if reason else None)
    for name, topic, reason in (("128-escapes", long, "not_subscribed"),
                                ("129-escapes", long + "a", "bad_target")):
        escaped = '"' + "".join(f"\\u{ord(c):04x}" for c in topic) + '"'
        yield Case(f"field/target/topic/{name}/json", "json",
                   json_text(message(target=topic.encode()), {"target": escaped}), reason, "target")
    yield raw("topic/not-utf-8", "target", TOPIC.encode() + b"\xff", "bad_target", message())
    yield raw("topic/nul-behind", "target", TOPIC.encode() + b"database\0", "bad_target", message())
    yield text("topic/empty", "target", '""', "bad_target", message())


def types():
    for name, value, good in (
            ("sync", SYNC, True), ("changed", CHANGED, True), ("conflict", CONFLICT, True),
            ("fetch", TOPIC + "fetch", False), ("upper-case", TOPIC + "Changed", False),
            ("blank-behind", CHANGED + " ", False), ("without-prefix", "changed", False),
            ("application", "app.chat.message", False), ("prefix-only", TOPIC, False),
            ("one-letter-more", CHANGED + "s", False), ("one-letter-less", CHANGED[:-1], False),
            ("2000-letters", "p" * 2000, False), ("accent", TOPIC + "synch\u00e9", False)):
        yield from both(f"field/message_type/{name}", message(message_type=value),
                        None if good else "bad_type", None if good else "message_type")
    yield raw("not-utf-8", "message_type", b"\xff\xfe", "bad_type")
    yield raw("nul-behind", "message_type", CHANGED.encode() + b"\0", "bad_type")
    yield text("empty", "message_type", '""', "bad_type")


def signatures():
    e = message()
    spelled = e.signature.hex()
    for name, token in (("upper-case", spelled.upper()), ("127-digits", spelled[:-1]),
                        ("126-digits", spelled[:-2]), ("129-digits", spelled + "0"),
                        ("130-digits", spelled + "00"), ("empty", ""), ("letter-g", spelled[:-1] + "g"),
                        ("blank-behind", spelled + " "), ("base64", "A" * 86 + "==")):
        yield text(name, "signature", f'"{token}"', "malformed", e)


def in_order():
    """Two broken rules: the first in the order of the fields is named."""
    reasons = {"id": "bad_uuid", "information_space_id": "bad_uuid", "source_node_id": "bad_node_id",
               "delivery_mode": "bad_mode", "target": "bad_target", "message_type": "bad_type",
               "payload": "bad_payload", "timestamp": "bad_timestamp", "correlation_id": "bad_uuid"}
    tokens = {"timestamp": "0"}
    e = message(correlation_id=message().id)
    names = list(reasons)
    for first, second in zip(names, names[1:]):
        spelled = {name: tokens.get(name, '"x"') for name in (first, second)}
        yield Case(f"order/{first}-before-{second}/json", "json", json_text(e, spelled),
                   reasons[first], first)
        changed = {}
        for name in (first, second):
            number = NUMBER[name]
            changed[name] = model.varint(number << 3) + model.varint(1 << 60) \
                if name in model.VARINTS else field(number, b"x")
        yield Case(f"order/{first}-before-{second}/protobuf", "protobuf", protobuf(e, changed),
                   reasons[first], first)
    everything = {name: tokens.get(name, '"x"') for name in names}
    yield Case("order/everything-wrong/json", "json", json_text(e, everything), "bad_uuid", "id")
    yield Case("order/form-before-fields/json", "json",
               json_text(e, everything | {"signature": '"x"'}), "malformed")
    yield Case("order/type-before-fields/json", "json",
               json_text(e, {"id": '"x"', "correlation_id": "null"}), "malformed")
    yield Case("order/missing-before-fields/json", "json",
               json_text(e, {"id": '"x"'}, without=("timestamp",)), "malformed")
    yield Case("order/unknown-before-fields/json", "json",
               json_text(e, {"id": '"x"'}, more=[('"x"', "1")]), "malformed")
    bad_id = {"id": field(1, b"x")}
    yield Case("order/form-before-fields/protobuf", "protobuf",
               protobuf(e, bad_id | {"signature": field(10, b"x")}), "malformed")
    yield Case("order/missing-before-fields/protobuf", "protobuf",
               protobuf(e, bad_id, without=("timestamp",)), "malformed")
    yield Case("order/trailing-before-fields/protobuf", "protobuf",
               protobuf(e, bad_id, more=b"\x58\x01"), "malformed")


# ---- The payload ----


def member(spelled):
    return PAYLOAD[:-1] + "," + spelled + "}"


def payload(name, value, good, message_type=CHANGED):
    """In protobuf the bytes as they are; in JSON too, where a string can hold them."""
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    e = message(payload=data, message_type=message_type)
    reason, where = (None, None) if good else ("bad_payload", "payload")
    yield Case(f"payload/{name}/protobuf", "protobuf", protobuf(e), reason, where)
    try:
        decoded = data.decode()
    except UnicodeDecodeError:
        return
    if "\0" not in decoded:
        yield Case(f"payload/{name}/json", "json", json_text(e), reason, where)


def payload_form():
    good, bad = True, False
    yield text("empty", "payload", '""', "bad_payload", message())
    for name, mark in (("escaped", "\\ufeff"), ("escaped-upper-case", "\\uFEFF")):
        bom = model.quote(PAYLOAD).replace('"', '"' + mark, 1)
        yield text(f"mark-{name}", "payload", bom, "bad_payload",
                   message(payload=("\ufeff" + PAYLOAD).encode()))
    yield from payload("form/least", PAYLOAD, good)
    for name, space in (("blank", " "), ("tab", "\t"), ("line-feed", "\n"),
                        ("carriage-return", "\r")):
        yield from payload(f"form/{name}-around", space + PAYLOAD + space, good)
        yield from payload(f"form/{name}-within", PAYLOAD.replace(":", space + ":" + space), good)
    for name, value in (("array", f"[{PAYLOAD}]"), ("string", f'"{OBJECT}"'), ("number", "1"),
                        ("null", "null"), ("true", "true"), ("two-objects", PAYLOAD * 2),
                        ("blank", " "), ("open", PAYLOAD[:-1]), ("open-string", PAYLOAD[:-2]),
                        ("comma-behind", PAYLOAD + ","), ("letter-behind", PAYLOAD + "x"),
                        ("comma-at-the-end", PAYLOAD[:-1] + ",}"),
                        ("comma-twice", PAYLOAD[:-1] + ',,"x":1}'),
                        ("single-quotes", PAYLOAD.replace('"', "'")),
                        ("comment", PAYLOAD + "//x"), ("bom", "\ufeff" + PAYLOAD),
                        ("bom-behind-a-blank", " \ufeff" + PAYLOAD), ("bom-behind", PAYLOAD + "\ufeff"),
                        ("form-feed-behind", PAYLOAD + "\f"), ("name-a-number", '{1:2}'),
                        ("empty-object", "{}"), ("word-cut", member('"x":tru')),
                        ("word-upper-case", member('"x":True')), ("undefined", member('"x":undefined')),
                        ("value-missing", member('"x":')), ("colon-missing", member('"x" 1')),
                        ("array-open", member('"x":[1')), ("array-comma", member('"x":[1,]')),
                        ("array-closed-as-object", member('"x":[1}')),
                        ("object-closed-as-array", member('"x":{]'))):
        yield from payload(f"form/{name}", value, bad)
    yield from payload("form/nul-behind", PAYLOAD.encode() + b"\0", bad)
    yield from payload("form/utf-16", PAYLOAD.encode("utf-16-le"), bad)
    for name, value in (("words", "[true,false,null]"), ("strings", '["",""]'), ("empty-array", "[]"),
                        ("empty-object", "{}"), ("empty-name", '{"":1}')):
        yield from payload(f"value/{name}", member(f'"x":{value}'), good)


def payload_characters():
    good, bad = True, False
    for name, spelled in (("pair", "\\ud83d\\ude00"), ("pair-upper-case", "\\uD83D\\uDE00"),
                          ("bmp-greatest", "\\uffff"), ("mark", "\\ufeff"), ("mark-raw", "\ufeff"),
                          ("control-1", "\\u0001"), ("delete-raw", "\x7f"), ("c1-raw", "\x85"),
                          ("line-separator-raw", "\u2028"), ("four-bytes-raw", "\U0010ffff")):
        yield from payload(f"character/{name}", member(f'"x":"{spelled}"'), good)
        yield from payload(f"character/{name}/in-a-name", member(f'"{spelled}":1'), good)
    for name, spelled in (("nul", "\\u0000"), ("high-alone", "\\ud800"), ("low-alone", "\\udc00"),
                          ("high-high", "\\ud800\\ud800"), ("low-high", "\\udc00\\ud800"),
                          ("high-letter", "\\ud800x"), ("three-digits", "\\u12"), ("letter-x", "\\x41"),
                          ("line-feed-raw", "\n"), ("tab-raw", "\t"), ("control-1-raw", "\x01"),
                          ("backslash-at-the-end", "\\")):
        yield from payload(f"character/{name}", member(f'"x":"{spelled}"'), bad)
        yield from payload(f"character/{name}/in-a-name", member(f'"{spelled}":1'), bad)
        yield from payload(f"character/{name}/deep", member(f'"x":[[{{"y":["{spelled}"]}}]]'), bad)
    head = member('"x":"@"').encode()
    for name, data in (("overlong", b"\xc0\xaf"), ("nul-overlong", b"\xc0\x80"),
                       ("surrogate", b"\xed\xa0\x80"), ("beyond", b"\xf4\x90\x80\x80"),
                       ("tail", b"\x80"), ("cut", b"\xe2\x82"), ("nul-raw", b"\0"), ("ff", b"\xff")):
        yield from payload(f"utf-8/{name}", head.replace(b"@", data), bad)
    yield from payload("utf-8/outside-a-string", PAYLOAD.encode() + b"\xff", bad)


def payload_numbers():
    for name, token in (("zero", "0"), ("minus-zero", "-0"), ("fraction", "0.5"), ("exponent", "1e5"),
                        ("exponent-plus", "1E+05"), ("exponent-minus", "1e-5"), ("huge", "1e999"),
                        ("tiny", "-1e-999"), ("1000-digits", "1" * 1000), ("49000-digits", "9" * 49000), ("all", "-12.034e-056"),
                        ("exponent-of-zeros", "0e000")):
        yield from payload(f"number/{name}", member(f'"x":{token}'), True)
    for name, token in (("plus", "+1"), ("leading-zero", "01"), ("minus-leading-zero", "-01"),
                        ("point-at-the-end", "1."), ("point-at-the-start", ".1"), ("no-exponent", "1e"),
                        ("exponent-sign-only", "1e+"), ("exponent-of-fraction", "1e1.5"), ("hex", "0x1"),
                        ("nan", "NaN"), ("infinity", "Infinity"), ("minus-infinity", "-Infinity"),
                        ("minus-alone", "-"), ("two-points", "1.2.3"), ("blank-within", "1 2"),
                        ("minus-blank", "- 1"), ("point-exponent", "1.e1"), ("double-minus", "--1")):
        yield from payload(f"number/{name}", member(f'"x":{token}'), False)


def nested(depth, kind):
    """The payload itself is depth 1."""
    inner = depth - 1
    if kind == "arrays":
        return "[" * inner + "]" * inner
    if kind == "objects":
        return '{"a":' * (inner - 1) + "{}" + "}" * (inner - 1)
    return '[{"a":' * (inner // 2) + ("[]" if inner % 2 else "0") + "}]" * (inner // 2)


def payload_depth():
    for kind in ("arrays", "objects", "mixed"):
        for depth in (2, 15, 16, 17, 18, 33):
            yield from payload(f"depth/{kind}-{depth}", member(f'"x":{nested(depth, kind)}'),
                               depth <= 16)
    yield from payload("depth/17-before-the-object-id",
                       f'{{"x":{nested(17, "arrays")},"object_id":"{OBJECT}"}}', False)
    yield from payload("depth/arrays-24000", member('"x":' + nested(24000, "arrays")), False)
    yield from payload("depth/many-of-16", member(
        ",".join(f'"x{i}":{nested(16, "arrays")}' for i in range(40))), True)
    yield from payload("depth/brackets-in-a-string", member('"x":"' + "[" * 100 + '"'), True)


def payload_members():
    def many(count, start=0):
        return ",".join(f'"m{i}":{i}' for i in range(start, start + count))

    for count in (2, 255, 256, 257, 1000):
        yield from payload(f"members/{count}", member(many(count - 1)), count <= 256)
        inner = "{" + many(count) + "}"
        yield from payload(f"members/{count}-in-an-object", member(f'"x":{inner}'), count <= 256)
    yield from payload("members/256-in-each-of-four", member(
        ",".join(f'"x{i}":{{{many(256)}}}' for i in range(4))), True)
    yield from payload("members/elements-are-none", member(f'"x":[{",".join("0" * 300)}]'), True)
    yield from payload("members/256-at-eight-depths", member(
        f'"x":{"".join("{" + many(255) + f",{chr(34)}d{chr(34)}:" for _ in range(8))}'
        f'0{"}" * 8}'), True)
    # As many names as may be open at once, and one of the first twice.
    levels = "".join("{" + many(255) + ',"d":' for _ in range(14)) + "{" + many(256) + "}" + "}" * 14
    yield from payload("members/256-at-every-depth", member(f'{many(254)},"x":{levels}'), True)
    yield from payload("members/257-at-the-deepest", member(
        f'{many(254)},"x":{levels.replace(many(256), many(257))}'), False)
    yield from payload("members/256-at-every-depth-and-one-twice", member(
        f'{many(254)},"x":{levels.replace(many(256), many(255) + "," + many(1))}'), False)
    yield from payload("members/one-name-at-each-depth", member(
        '"a":' + '{"a":' * 14 + "0" + "}" * 14), True)
    yield from payload("members/one-name-in-neighbours", member('"x":[{"a":1},{"a":1}]'), True)


def payload_duplicates():
    """The same name twice, at each depth, under each escape."""
    for depth in range(1, 17):
        inner = '"a":1,"a":1'
        opened = '"o":{' * (depth - 1)
        yield from payload(f"duplicate/depth-{depth}", member(opened + inner + "}" * (depth - 1)),
                           False)
    yield from payload("duplicate/within-arrays", member('"x":[[{"a":1,"b":2,"a":3}]]'), False)
    for name, one, other in (
            ("unit", "a", "\\u0061"), ("unit-upper-case", "k", "\\u006B"),
            ("both-escaped", "\\u0061", "\\u0061"), ("cases-of-digits", "\\u006b", "\\u006B"),
            ("slash", "/", "\\/"), ("slash-unit", "\\/", "\\u002f"), ("quote", '\\"', "\\u0022"),
            ("backslash", "\\\\", "\\u005c"), ("backspace", "\\b", "\\u0008"),
            ("form-feed", "\\f", "\\u000c"), ("line-feed", "\\n", "\\u000a"),
            ("carriage-return", "\\r", "\\u000d"), ("tab", "\\t", "\\u0009"),
            ("two-bytes", "\u00e9", "\\u00e9"), ("three-bytes", "\u20ac", "\\u20ac"),
            ("pair", "\U0001f600", "\\ud83d\\ude00"), ("mark", "\ufeff", "\\ufeff"),
            ("empty", "", ""), ("later-part", "ab", "a\\u0062"), ("long", "n" * 300, "n" * 299 + "\\u006e"),
            ("across-64-bytes", "n" * 63 + "xy", "n" * 63 + "\\u0078y")):
        yield from payload(f"duplicate/escape/{name}", member(f'"{one}":1,"{other}":2'), False)
        yield from payload(f"duplicate/escape/{name}/nested",
                           member(f'"x":{{"{one}":1,"z":0,"{other}":2}}'), False)
    for name, one, other in (("case", "a", "A"), ("composed", "\u00e9", "e\u0301"),
                             ("blank", "a", "a "), ("prefix", "a", "aa"),
                             ("escape-of-escape", "\\u0061", "\\\\u0061"),
                             ("mark-before", "a", "\ufeffa"), ("full-width", "a", "\uff41")):
        yield from payload(f"duplicate/not/{name}", member(f'"{one}":1,"{other}":2'), True)
    yield from payload("duplicate/object_id", '{"object_id":"%s","object_id":"%s"}' % (OBJECT, OBJECT),
                       False)
    yield from payload("duplicate/object_id-escaped",
                       '{"object_id":"%s","object\\u005fid":"%s"}' % (OBJECT, OBJECT), False)
    yield from payload("duplicate/first-and-last-of-200", member(
        ",".join(f'"m{i}":1' for i in range(200)) + ',"m0":2'), False)
    yield from payload("duplicate/first-and-last-of-9", member(
        ",".join(f'"m{i}":1' for i in range(8)) + ',"m0":2'), False)
    yield from payload("duplicate/scope-in-changed", member('"scope":1,"scope":2'), False)
    yield from payload("duplicate/outer-name-is-no-twin", member('"x":{"object_id":1,"x":2}'), True)


def payload_objects():
    def named(token):
        return '{"object_id":%s}' % token
    for name, token in (("null", "null"), ("number", "1"), ("true", "true"), ("array", "[]"),
                        ("object", "{}"), ("in-an-array", f'["{OBJECT}"]'), ("empty", '""'),
                        ("upper-case", f'"{OBJECT.upper()}"'), ("no-hyphens", f'"{OBJECT.replace("-", "")}"'),
                        ("version-4", f'"{OBJECT.replace("-7898-", "-4898-")}"'),
                        ("variant-110", f'"{OBJECT.replace("-abcd-", "-cdef-")}"'),
                        ("one-digit-more", f'"{OBJECT}0"'), ("blank-before", f'" {OBJECT}"')):
        for kind in (SYNC, CHANGED, CONFLICT):
            yield from payload(f"object_id/{name}/{kind.rpartition('.')[2]}", named(token), False, kind)
    yield from payload("object_id/escaped-value", named(f'"\\u0030{OBJECT[1:]}"'), True)
    yield from payload("object_id/escaped-name", '{"\\u006fbject_id":"%s"}' % OBJECT, True)
    yield from payload("object_id/nested-only", '{"x":{"object_id":"%s"}}' % OBJECT, False)
    yield from payload("object_id/nested-of-any-form", member('"x":{"object_id":7}'), True)
    yield from payload("object_id/other-case", '{"Object_id":"%s"}' % OBJECT, False)
    yield from payload("object_id/missing-in-conflict", '{"x":1}', False, CONFLICT)
    yield from payload("object_id/missing-in-changed", '{"scope":"all"}', False)
    yield from payload("object_id/last", '{"x":1,"object_id":"%s"}' % OBJECT, True, CONFLICT)
    for scope in ("database", "file", "all"):
        yield from payload(f"scope/{scope}", f'{{"scope":"{scope}"}}', True, SYNC)
    for name, token in (("state", '"state"'), ("empty", '""'), ("upper-case", '"All"'), ("null", "null"),
                        ("number", "1"), ("array", '["all"]'), ("blank", '"all "'),
                        ("two", '"database,file"'), ("true", "true")):
        yield from payload(f"scope/{name}", f'{{"scope":{token}}}', False, SYNC)
        yield from payload(f"scope/{name}-in-changed", member(f'"scope":{token}'), True)
    yield from payload("scope/escaped", '{"sc\\u006fpe":"\\u0061ll"}', True, SYNC)
    yield from payload("scope/both", member('"scope":"all"'), False, SYNC)
    yield from payload("scope/both-in-conflict", member('"scope":"all"'), True, CONFLICT)
    yield from payload("scope/neither", '{"x":1}', False, SYNC)
    yield from payload("scope/object-in-sync", PAYLOAD, True, SYNC)
    for name, spelled in (("batch-and-incarnation", '"incarnation":"00000000000000ff","batch":7'),
                          ("batch-of-another-form", '"incarnation":7,"batch":"x"'),
                          ("batch-alone", '"batch":7'), ("unknown-members", '"later":{"deep":[1,2]}')):
        yield from payload(f"unknown/{name}", member(spelled), True)


def cases():
    for part in (uuids, node_ids, modes, topics, types, signatures, in_order, payload_form,
                 payload_characters, payload_numbers, payload_depth, payload_members,
                 payload_duplicates, payload_objects):
        yield from part()
