#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/vectors/messaging.jsonl: short vectors out of many small runs, signed with Ed25519.

usage: make_messaging.py FABERIO-SIM

A vector holds on any later version of the simulator as well: it is about the protocol, not about the
run. So the file is written anew only when the specification or the format of vectors changes.
"""

import collections
import copy
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import uuid

import nacl.signing

import vector_check
from vector_envelope import UNICAST, Refused, node_id, read_fields, write_fields
from vector_envelope import Envelope
from vector_model import Node
from vector_signatures import sim_1

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "tests/vectors/messaging.jsonl"
WANTED, ENOUGH, LONGEST = 540, 12, 4000  # vectors, of each kind at first, bytes
# A few long ones of these.
RARE = ("floor reset", "lost", "drop unreachable", "stream bad_signature", "stream not_origin",
        "stream wrong_space", "stream duplicate", "carrier duplicate")
RARE_WANTED, RARE_LONGEST = 4, 40000


def export(program, words):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        command = [program, "export", *words, "--vectors", file.name]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        with open(file.name, encoding="utf-8") as lines:
            return vector_check.read(lines)


class Keys:
    """Each simulated node gets a key pair of the profile's kind, and the id that belongs to it."""

    def __init__(self, header):
        self.old, self.new = {}, {}
        for who in ("self", "peer"):
            public = bytes.fromhex(header[who]["public_key"])
            seed = hashlib.sha256(b"faberio-vector-key\0" + public).digest()
            key = nacl.signing.SigningKey(seed)
            self.old[who] = public
            self.new[bytes.fromhex(header[who]["node_id"])] = key
            made = bytes(key.verify_key)
            header[who] = {"node_id": node_id(made).hex(), "public_key": made.hex()}

    def name(self, old):
        key = self.new.get(old)
        return old if key is None else node_id(bytes(key.verify_key))


def envelope_again(keys, signer, data):
    """The same envelope from nodes with other keys: a good signature stays good, a bad one bad."""
    try:
        raw = read_fields(data)
    except Refused:
        return data
    good = len(raw[6]) < 1 << 16 and sim_1(
        keys.old[signer], Envelope(raw, raw[4] & 0xFF, "", {}).preimage(), raw[10])
    raw[3] = keys.name(raw[3])
    if raw[4] == UNICAST:
        raw[5] = keys.name(raw[5])
    if good:
        number = 0 if signer == "self" else 1
        key = list(keys.new.values())[number]
        raw[10] = key.sign(Envelope(raw, raw[4], "", {}).preimage()).signature
    return write_fields(raw)


def with_ed25519(vector):
    vector = copy.deepcopy(vector)
    vector[0]["signatures"] = "ed25519"
    keys = Keys(vector[0])
    for line in vector[1:]:
        if "envelope" in line:
            signer = "self" if "out" in line else "peer"
            data = bytes.fromhex(line["envelope"])
            line["envelope"] = envelope_again(keys, signer, data).hex()
    return vector


def features(vector):
    """What a vector shows, and behind which line each thing was shown."""
    seen, sent, external = {}, collections.Counter(), set()
    broken = False
    for place, line in enumerate(vector[1:], 1):
        what = []
        if line.get("do") == "link_up" and line["carrier"] == "external":
            external.add(line["link"])
        carrier = "carrier" if line.get("link") in external else "stream"
        if line.get("do") == "deliver":
            what.append(f"{carrier} {line.get('reason', line['verdict'])}")
            if line.get("floor_reset"):
                what.append("floor reset")
        elif line.get("do") == "start" and place > 1:
            what.append("lost" if line["lost"] else "restart")
        elif line.get("do") == "link_down":
            what.append("link down")
        elif line.get("out") == "send":
            sent[line["envelope"]] += 1
            if sent[line["envelope"]] > 1:
                what.append(f"{carrier} sent again")
            what.append(f"{carrier} send")
        elif line.get("out") == "drop":
            what.append("drop " + line["reason"])
        broken = broken or line.get("do") in ("start", "link_down")
        for name in what:
            seen.setdefault(name, place)
    return seen


def text_of(vector):
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in vector)


def runs(program):
    for path in sorted((ROOT / "tests/scenarios").rglob("*.sched")):
        yield [str(path.relative_to(ROOT)), "--sound"]
    for seed in range(1, 151):
        events = str(400 + seed % 7 * 300)
        yield ["--seed", str(seed), "--nodes", str(2 + seed % 4), "--events", events]
    for seed in range(1, 31):
        yield ["--seed", str(seed), "--nodes", str(2 + seed % 2), "--events", "6000"]
    for fault in ("forge", "stale", "future", "foreign", "misaddress", "flood", "crash", "clock-step",
                  "lose-unsynced", "write-fail", "loss", "dup", "reorder", "offset-far"):
        for seed in range(1, 7):
            yield ["--seed", str(seed), "--nodes", "3", "--only", fault, "--only", "cut",
                   "--events", "1500"]


def counted_from(line, first):
    return dict(line, accepted=line["accepted"] - first) if "accepted" in line else line


def slices(vector):
    """The vector, and what is left of it from each later start on: a start forgets everything but the
    record of seen ids and its floor, which the header then has."""
    yield vector
    node = Node(vector[0])
    for place, line in enumerate(vector[1:], 1):
        node.line(line)
        if line.get("do") == "start" and place > 1 and not line["lost"]:
            header = dict(vector[0], vector=f"{vector[0]['vector']}@{place}")
            header["seen"] = [{"id": str(uuid.UUID(bytes=i)), "timestamp": t}
                              for i, t in sorted(node.seen.items())]
            header["floor_ms"] = node.floor
            if not node.ghosts:
                yield [header] + [counted_from(rest, len(node.accepted)) for rest in vector[place:]]


def candidates(program):
    """For each thing that can be shown: prefixes of vectors that show it, as (size, source, lines)."""
    found = collections.defaultdict(list)
    for words in runs(program):
        for whole in export(program, words):
            for vector in slices(whole):
                sizes = [0]
                for line in vector:
                    sizes.append(sizes[-1] + len(json.dumps(line)))
                for name, place in features(vector).items():
                    end = min(place + 2, len(vector))
                    size = sizes[end]
                    if size <= (RARE_LONGEST if name in RARE else LONGEST):
                        found[name].append((size, vector[0]["source"], vector[0]["vector"],
                                            vector[:end]))
    return found


def choose(found):
    """The smallest ones: of what is rare first, then of everything until there are enough."""
    chosen, shown = {}, collections.Counter()
    for least in (4, ENOUGH, 4 * ENOUGH, 16 * ENOUGH):
        for name in sorted(found, key=lambda n: (len(found[n]), n)):
            for size, source, vector, lines in sorted(found[name], key=lambda c: c[:3]):
                rare = name in RARE and shown[name] >= RARE_WANTED
                if shown[name] >= least or len(chosen) >= WANTED or (rare and size > LONGEST):
                    break
                if len(chosen.get((source, vector), ())) < len(lines):
                    chosen[source, vector] = lines
                    shown.update(list(features(lines)))
    return chosen.values()


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    shown, size, out = collections.Counter(), 0, []
    for cut in choose(candidates(arguments[0])):
        made = with_ed25519(cut)
        for vector in (cut, made):
            found = vector_check.check(vector)
            if found is not None:
                raise SystemExit(f"{cut[0]['vector']} does not hold: {found}")
        out.append(text_of(made))
        size += len(out[-1])
        shown.update(list(features(made)))
    OUT.write_text("".join(out))
    for name, n in sorted(shown.items()):
        print(f"{n:5} vectors show {name}")
    print(f"{len(out)} vectors, {size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
