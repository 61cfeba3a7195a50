# SPDX-License-Identifier: Apache-2.0
"""Vectors of the JSON encoding's form: profile 3, and the first paragraph of profile 4."""
import envelope_model as model
from vector_make import OBJECT, PAYLOAD, Case, json_text, message, unicast

FIELDS = model.FIELDS


def case(name, data, reason=None, field=None):
    if isinstance(data, str):
        data = data.encode()
    return Case("json/" + name, "json", data, reason, field)


def malformed(name, data):
    return case(name, data, "malformed")


def whole():
    e = message()
    text = json_text(e)
    yield case("whole/default", text)
    yield case("whole/with-correlation", json_text(message(correlation_id=e.id)))
    yield case("whole/unicast", json_text(unicast()))
    yield case("whole/members-reversed", json_text(e, order=FIELDS[8::-1][1:] + FIELDS[9:]))
    yield case("whole/signature-first", json_text(e, order=FIELDS[9:] + FIELDS[:8]))
    for name, space in (("blank", " "), ("tab", "\t"), ("line-feed", "\n"),
                        ("carriage-return", "\r"), ("all-four", " \t\r\n")):
        yield case(f"space/between/{name}", json_text(e, space=space))
        yield case(f"space/around/{name}", space.encode() + text + space.encode())
    for name, space in (("form-feed", "\f"), ("vertical-tab", "\v"), ("no-break-space", "\xa0"),
                        ("line-separator", "\u2028"), ("zero-width", "\u200b"),
                        ("comment", "/**/")):
        yield malformed(f"space/not/{name}", text + space.encode())
        yield malformed(f"space/not-between/{name}", json_text(e, space=space))
    yield malformed("whole/empty", b"")
    yield malformed("whole/blank", b"   ")
    yield malformed("whole/two-objects", text + text)
    yield malformed("whole/trailing-zero", text + b"\0")
    yield malformed("whole/trailing-comma", text + b",")
    yield malformed("whole/trailing-brace", text + b"}")
    yield malformed("whole/array", b"[" + text + b"]")
    yield malformed("whole/array-of-nothing", b"[]")
    yield malformed("whole/object-of-nothing", b"{}")
    for value in ("null", "true", "1", '"text"'):
        yield malformed(f"whole/{value.strip(chr(34))}", value)
    yield malformed("whole/cut-at-the-end", text[:-1])
    yield malformed("whole/cut-in-a-string", text[:40])
    yield malformed("whole/cut-in-an-escape", text[:text.index(b"\\") + 1])
    yield malformed("whole/comma-at-the-end", text[:-1] + b",}")
    yield malformed("whole/comma-at-the-start", b"{," + text[1:])
    yield malformed("whole/no-comma", text.replace(b'","', b'""', 1))
    yield malformed("whole/no-colon", text.replace(b'":"', b'""', 1))
    yield malformed("whole/single-quotes", text.replace(b'"id"', b"'id'"))
    yield malformed("whole/name-without-quotes", text.replace(b'"id"', b"id"))
    yield malformed("whole/nested-5000-deep", b'{"id":' + b"[" * 5000 + b"]" * 5000 + b"}")
    yield malformed("bom/utf-8", b"\xef\xbb\xbf" + text)
    yield malformed("bom/utf-8-behind-a-blank", b" \xef\xbb\xbf" + text)
    yield malformed("bom/utf-16", text.decode().encode("utf-16"))
    yield malformed("bom/utf-16-without", text.decode().encode("utf-16-le"))
    yield malformed("bom/utf-8-behind", text + b"\xef\xbb\xbf")


def members():
    e = message(correlation_id=message().id)
    for name in FIELDS:
        if name != "correlation_id":
            yield malformed(f"missing/{name}", json_text(e, without=(name,)))
        yield malformed(f"null/{name}", json_text(e, {name: "null"}))
        for kind, value in (("true", "true"), ("array", "[]"), ("object", "{}")):
            yield malformed(f"type/{name}/{kind}", json_text(e, {name: value}))
        other = '"1718000001000"' if name == "timestamp" else "7"
        yield malformed(f"type/{name}/{'string' if name == 'timestamp' else 'number'}",
                        json_text(e, {name: other}))
        token = model.json_tokens(e)[name]
        yield malformed(f"duplicate/{name}/same", json_text(e, more=[(f'"{name}"', token)]))
        yield malformed(f"duplicate/{name}/other", json_text(e, more=[(f'"{name}"', "null")]))
        escaped = '"' + f"\\u{ord(name[0]):04x}" + name[1:] + '"'
        yield malformed(f"duplicate/{name}/escaped", json_text(e, more=[(escaped, token)]))
        yield case(f"name-escaped/{name}", json_text(e).replace(
            f'"{name}":'.encode(), f"{escaped}:".encode(), 1))
    for name in ("Id", "ID", "extra", "", "id ", "id\\u0020", "payload_", "version"):
        yield malformed(f"unknown/{name or 'empty'}", json_text(e, more=[(f'"{name}"', "1")]))
    yield malformed("unknown/in-place-of-one", json_text(e, without=("id",),
                                                        more=[('"idd"', f'"{e.id.hex()}"')]))
    yield malformed("unknown/twice", json_text(e, more=[('"x"', "1"), ('"x"', "1")]))


def escaped_all(text, upper=False):
    return '"' + "".join(f"\\u{ord(c):04{'X' if upper else 'x'}}" for c in text) + '"'


def characters():
    """What a string may hold and how it may be spelled."""
    e = message()
    for name in FIELDS:
        token = model.json_tokens(message(correlation_id=e.id))[name]
        if name == "timestamp":
            continue
        plain = token[1:-1].replace('\\"', '"')
        there = message(correlation_id=e.id)
        yield case(f"escapes/{name}/all", json_text(there, {name: escaped_all(plain)}))
        yield case(f"escapes/{name}/upper-case", json_text(there, {name: escaped_all(plain, True)}))

    def text(note, spelled=None):
        """A payload with that text in it, spelled so in the envelope."""
        inner = PAYLOAD[:-1] + ',"note":"' + note + '"}'
        made = message(payload=inner.encode())
        if spelled is None:
            return json_text(made)
        before, after = (model.quote(part)[1:-1] for part in inner.split(note))
        return json_text(made, {"payload": '"' + before + spelled + after + '"'})

    for name, char in (("two-bytes-least", "\x80"), ("two-bytes-greatest", "\u07ff"),
                       ("three-bytes-least", "\u0800"), ("before-surrogates", "\ud7ff"),
                       ("behind-surrogates", "\ue000"), ("byte-order-mark", "\ufeff"),
                       ("noncharacter", "\uffff"), ("four-bytes-least", "\U00010000"),
                       ("four-bytes-greatest", "\U0010ffff"), ("delete", "\x7f"),
                       ("combining", "e\u0301"), ("composed", "\u00e9")):
        yield case(f"character/{name}/raw", text(char))
        units = char.encode("utf-16-be")
        spelled = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
        yield case(f"character/{name}/escaped", text(char, spelled))
    for name, char in (("quote", '\\"'), ("backslash", "\\\\"), ("slash", "\\/"),
                       ("backspace", "\\b"), ("form-feed", "\\f"), ("line-feed", "\\n"),
                       ("carriage-return", "\\r"), ("tab", "\\t"), ("unit", "\\u0041")):
        yield case(f"escape-in-escape/{name}", text(char))
    base = text("@")
    wrong = {
        "overlong-two": b"\xc0\xaf", "overlong-two-c1": b"\xc1\xbf", "overlong-three": b"\xe0\x9f\xbf",
        "overlong-four": b"\xf0\x8f\xbf\xbf", "surrogate-high": b"\xed\xa0\x80",
        "surrogate-low": b"\xed\xbf\xbf", "surrogate-pair": b"\xed\xa0\x80\xed\xb0\x80",
        "beyond-10ffff": b"\xf4\x90\x80\x80", "lead-f5": b"\xf5\x80\x80\x80",
        "lead-ff": b"\xff", "lead-fe": b"\xfe", "tail-alone": b"\x80", "tail-alone-bf": b"\xbf",
        "two-cut": b"\xc3", "three-cut": b"\xe2\x82", "four-cut": b"\xf0\x9f\x98",
        "three-with-ascii": b"\xe2\x82A", "latin-1": b"\xe9", "nul-overlong": b"\xc0\x80",
        "five-bytes": b"\xf8\x88\x80\x80\x80"}
    for name, data in wrong.items():
        yield malformed(f"utf-8/{name}", base.replace(b"@", data))
    yield malformed("utf-8/outside-a-string", json_text(e).replace(b"{", b"{\xff", 1))
    yield malformed("utf-8/in-a-name", json_text(e, more=[('"x"', "1")]).replace(b'"x"', b'"\xff"'))
    spellings = {
        "nul-escaped": "\\u0000", "high-alone": "\\ud800", "high-alone-greatest": "\\udbff",
        "low-alone": "\\udc00", "low-alone-greatest": "\\udfff", "high-high": "\\ud800\\ud800",
        "high-then-letter": "\\ud800a", "high-then-newline": "\\ud800\\n",
        "high-then-low-cut": "\\ud800\\udc0", "low-then-high": "\\udc00\\ud800",
        "high-then-unit": "\\ud800\\u0041", "three-digits": "\\u004", "no-digits": "\\u",
        "digit-g": "\\u004g", "with-sign": "\\u+041", "with-braces": "\\u{41}",
        "letter-x": "\\x41", "letter-a": "\\a", "letter-v": "\\v", "letter-zero": "\\0",
        "letter-upper-n": "\\N", "letter-upper-u": "\\U0041", "single-quote": "\\'",
        "line-continued": "\\\n"}
    for name, spelled in spellings.items():
        yield malformed(f"escape/{name}", base.replace(b"@", spelled.encode()))
    for code in (0x00, 0x01, 0x08, 0x09, 0x0a, 0x0d, 0x1b, 0x1f):
        yield malformed(f"control-raw/{code:02x}", base.replace(b"@", bytes([code])))
    for name in FIELDS:
        if name in ("timestamp", "payload"):
            continue
        token = model.json_tokens(message(correlation_id=e.id))[name]
        for kind, spelled in (("nul", "\\u0000"), ("surrogate", "\\ud800")):
            yield malformed(f"escape/{kind}-in/{name}", json_text(
                message(correlation_id=e.id), {name: token[:-1] + spelled + '"'}))
    for kind, spelled in (("nul", "\\u0000"), ("surrogate", "\\udfff"), ("escape", "\\q")):
        yield malformed(f"escape/{kind}-in-a-name", json_text(e, more=[(f'"x{spelled}"', "1")]))


def numbers():
    """The timestamp, which is the one number."""
    def at(time, token=None, reason=None, context="b"):
        data = json_text(message(timestamp=time), {"timestamp": token or str(time)})
        return "json", data, reason, "timestamp" if reason == "bad_timestamp" else None, context

    for name, token in (("fraction", "1718000001000.0"), ("fraction-of-zero", "0.5"),
                        ("exponent", "1718000001e3"), ("exponent-upper", "1718000001E3"),
                        ("exponent-plus", "1718000001000e+0"), ("exponent-minus", "17180000010000e-1"),
                        ("negative", "-1718000001000"), ("minus-zero", "-0"), ("zero", "0"),
                        ("2-to-the-53", "9007199254740992"), ("2-to-the-63", "9223372036854775808"),
                        ("2-to-the-64", "18446744073709551616"),
                        ("2-to-the-64-and-now", str((1 << 64) + 1718000001000)),
                        ("100-digits", "1" * 100), ("5000-digits", "9" * 5000),
                        ("17-digits", "10000000000000000")):
        yield Case(f"json/timestamp/{name}", *at(1718000001000, token, "bad_timestamp"))
    for name, token in (("plus", "+1718000001000"), ("leading-zero", "01718000001000"),
                        ("two-zeros", "00"), ("hex", "0x190"), ("underscore", "1_718"),
                        ("point-at-the-end", "1."), ("point-at-the-start", ".5"),
                        ("no-exponent", "1e"), ("no-exponent-digits", "1e+"), ("minus-alone", "-"),
                        ("nan", "NaN"), ("infinity", "Infinity"), ("minus-infinity", "-Infinity"),
                        ("two-signs", "--1"), ("blank-within", "1718 000001000"),
                        ("full-width-digit", "１"), ("nothing", " "), ("letter", "1718000001000n")):
        yield Case(f"json/timestamp/{name}", *at(1718000001000, token, "malformed"))
    yield Case("json/timestamp/one", *at(1, context="b-at-one"))
    yield Case("json/timestamp/2-to-the-53-less-one", *at((1 << 53) - 1, context="b-at-the-end"))


def sizes():
    e = message()
    text = json_text(e)
    room = model.JSON_MAX - len(text)
    yield case("size/exact-with-blanks", text + b" " * room)
    yield case("size/one-more", text + b" " * (room + 1), "too_large")
    yield case("size/one-more-and-malformed", b"{" * (model.JSON_MAX + 1), "too_large")
    yield case("size/exact-and-malformed", b"{" * model.JSON_MAX, "malformed")
    empty = '{"object_id":"%s","pad":""}' % OBJECT
    pad = model.PAYLOAD_MAX - len(empty)

    def payload(fill, spelled=None):
        made = message(payload=(empty[:-2] + fill + '"}').encode())
        if spelled is None:
            return json_text(made)
        head = model.quote(empty[:-2])[:-1]
        return json_text(made, {"payload": head + spelled + '\\"}"'})

    yield case("size/payload-exact", payload("a" * pad))
    yield case("size/payload-one-more", payload("a" * (pad + 1)), "bad_payload")
    yield case("size/payload-exact-all-escaped", payload("a" * pad, "\\u0061" * pad))
    yield case("size/payload-one-more-all-escaped", payload("a" * (pad + 1), "\\u0061" * (pad + 1)),
               "bad_payload")
    yield case("size/payload-exact-three-bytes", payload("\u20ac" * (pad // 3) + "a" * (pad % 3)))
    yield case("size/payload-one-more-three-bytes",
               payload("\u20ac" * (pad // 3) + "a" * (pad % 3 + 1)), "bad_payload")
    yield case("size/payload-of-pairs-escaped",
               payload("\U0001f600" * (pad // 4), "\\ud83d\\ude00" * (pad // 4)))


def cases():
    for part in (whole, members, characters, numbers, sizes):
        yield from part()
