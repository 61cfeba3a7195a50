# SPDX-License-Identifier: Apache-2.0
"""Bytes as vectors write them: a list of parts, one behind the other. A text is its UTF-8; {"hex": …} are
bytes; {"repeat": PART, "times": N} is a part N times."""
import re

# A run worth naming: up to 16 bytes at least 16 times.
_RUN = re.compile(rb"(.{1,16}?)\1{15,}", re.DOTALL)


def expand(parts):
    made = b""
    for part in parts:
        if isinstance(part, str):
            made += part.encode()
        elif "hex" in part:
            made += bytes.fromhex(part["hex"])
        else:
            made += expand([part["repeat"]]) * part["times"]
    return made


# Among other bytes, what a person may want to read.
_TEXT = re.compile(rb"[ -~]{12,}")


def _part(data):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}
    # Without U+0000 a text can be read by everybody.
    return text if all(c >= " " and c != "\x7f" or c in "\n\t" for c in text) else {"hex": data.hex()}


def _parts(data):
    """A stretch without runs."""
    whole = _part(data)
    if isinstance(whole, str):
        return [whole]
    parts, at = [], 0
    for text in _TEXT.finditer(data):
        if text.start() > at:
            parts.append(_part(data[at:text.start()]))
        parts.append(text.group().decode())
        at = text.end()
    if at < len(data):
        parts.append(_part(data[at:]))
    return parts


def compact(data):
    """The parts of these bytes, the same for the same bytes."""
    parts, at = [], 0
    for run in _RUN.finditer(data):
        unit, times = run.group(1), len(run.group()) // len(run.group(1))
        if run.start() > at:
            parts += _parts(data[at:run.start()])
        parts.append({"repeat": _part(unit), "times": times})
        at = run.end()
    if at < len(data):
        parts += _parts(data[at:])
    return parts
