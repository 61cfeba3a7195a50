# SPDX-License-Identifier: Apache-2.0
"""JSON text by RFC 8259, with what the messaging profile refuses beyond the grammar. A parser of its
own, since what other parsers forgive is what has to be refused here. It reads one character at a time
wherever that is simplest."""
import re

_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_UNIT = re.compile(r"[0-9a-fA-F]{4}")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_LETTERS = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
_SPACE = " \t\n\r"


class NotJson(ValueError):
    """The text breaks a rule."""


class Number(str):
    """A number as it was spelled."""


class _Text:
    def __init__(self, text, depth_max, members_max):
        self.text = text
        self.at = 0
        self.depth = 0
        self.depth_max = depth_max
        self.members_max = members_max

    def here(self):
        return self.text[self.at:self.at + 1]

    def space(self):
        while self.here() and self.here() in _SPACE:
            self.at += 1

    def expect(self, what):
        if not self.text.startswith(what, self.at):
            raise NotJson(f"no {what!r} at {self.at}")
        self.at += len(what)

    def unit(self):
        """The four digits of an escape."""
        found = _UNIT.match(self.text, self.at)
        if not found:
            raise NotJson(f"no four hex digits at {self.at}")
        self.at = found.end()
        return int(found.group(), 16)

    def escape(self):
        """Behind the backslash."""
        letter = self.here()
        self.at += 1
        if letter in _LETTERS and letter:
            return _LETTERS[letter]
        if letter != "u":
            raise NotJson(f"no such escape at {self.at}")
        unit = self.unit()
        if 0xDC00 <= unit < 0xE000:
            raise NotJson("a low surrogate by itself")
        if 0xD800 <= unit < 0xDC00:
            self.expect("\\u")
            low = self.unit()
            if not 0xDC00 <= low < 0xE000:
                raise NotJson("a high surrogate by itself")
            return chr(0x10000 + (unit - 0xD800) * 0x400 + (low - 0xDC00))
        if unit == 0:
            raise NotJson("U+0000")
        return chr(unit)

    def string(self):
        self.expect('"')
        parts = []
        while True:
            plain = _PLAIN.match(self.text, self.at)
            parts.append(plain.group())
            self.at = plain.end()
            end = self.here()
            self.at += 1
            if end == '"':
                return "".join(parts)
            if end != "\\":
                raise NotJson("a control character, or no end of a string")
            parts.append(self.escape())

    def value(self):
        first = self.here()
        if first == '"':
            return self.string()
        if first and first in "[{":
            return self.nested(first)
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return meaning
        number = _NUMBER.match(self.text, self.at)
        if not number:
            raise NotJson(f"no value at {self.at}")
        self.at = number.end()
        return Number(number.group())

    def nested(self, first):
        self.depth += 1
        if self.depth_max is not None and self.depth > self.depth_max:
            raise NotJson("too deep")
        self.at += 1
        made = self.object() if first == "{" else self.array()
        self.depth -= 1
        return made

    def object(self):
        made = {}
        self.space()
        if self.here() == "}":
            self.at += 1
            return made
        while True:
            self.space()
            name = self.string()
            if name in made:
                raise NotJson(f"{name!r} twice")
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

    def array(self):
        made = []
        self.space()
        if self.here() == "]":
            self.at += 1
            return made
        while True:
            self.space()
            made.append(self.value())
            self.space()
            if self.here() == "]":
                self.at += 1
                return made
            self.expect(",")


def parse(data, depth_max=None, members_max=None):
    """The one value of a text: dict, list, str, Number, True, False or None. NotJson."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotJson("a byte-order mark")
    try:
        text = data.decode("utf-8")  # strict: shortest forms, no surrogates, at most U+10FFFF
    except UnicodeDecodeError as error:
        raise NotJson("invalid UTF-8") from error
    reader = _Text(text, depth_max, members_max)
    reader.space()
    value = reader.value()
    reader.space()
    if reader.at != len(text):
        raise NotJson(f"something follows at {reader.at}")
    return value
