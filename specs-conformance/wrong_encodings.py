# SPDX-License-Identifier: Apache-2.0
"""Wrong adapters: JSON and protobuf."""
import re

import envelope_model as model
import strict_json
from envelope_model import Refused
from strict_json import NotJson, Number
from wrong_base import wrong

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
