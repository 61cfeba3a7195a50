#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the vectors of envelopes and of receivers, from the model alone: docs/VECTORS.md. And what the
suite, which uses them, asks about each requirement.

    make_vectors.py [--check]

--check: the files must be as they would be written."""
import collections
import hashlib
import json
import pathlib
import sys

import envelope_model
import suite
import vector_requirements
import vector_sequences
import vectors_fields
import vectors_json
import vectors_protobuf
import vectors_receive
from receiver_model import Receiver
from vector_bytes import compact
from vector_make import NODES

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parent / "tests/vectors"
ENVELOPES, SEQUENCES = FOLDER / "envelopes.jsonl", FOLDER / "sequences.jsonl"
COVERAGE = HERE / "suite-coverage.json"


class Disagreement(Exception):
    """A case says one thing and the model another: one of them is wrong."""


def judge(receiver, encoding, data):
    """(reason or None, field or None)"""
    try:
        receiver.deliver(encoding, data)
    except envelope_model.Refused as refused:
        return refused.reason, refused.field
    return None, None


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def forms(encoding, data):
    """What a runtime must make of it in each form, where the form and the fields are right."""
    try:
        e = envelope_model.DECODE[encoding](data)
    except envelope_model.Refused:
        return {}
    return {"id": envelope_model.uuid_text(e.id), "preimage_sha256": sha256(e.preimage()),
            "json_sha256": sha256(envelope_model.encode_json(e)),
            "protobuf_sha256": sha256(envelope_model.encode_protobuf(e))}


def vector(case):
    receiver = Receiver(vectors_receive.CONTEXTS[case.context])
    reason, field = judge(receiver, case.encoding, case.data)
    if reason != case.reason or (case.field is not None and field != case.field):
        raise Disagreement(f"{case.name}: the model says {reason} ({field}), the case {case.reason} "
                           f"({case.field})")
    made = {"vector": case.name, "encoding": case.encoding, "context": case.context,
            "verdict": "accept" if reason is None else "refuse"}
    if reason is not None:
        made["reason"] = reason
        if field is not None:
            made["field"] = field
    made["requirements"] = vector_requirements.of(case.name, [reason])
    made["input"] = compact(case.data)
    return made | forms(case.encoding, case.data)


def sequence(one):
    receiver = Receiver(one.context)
    steps, reasons = [], []
    for number, step in enumerate(one.steps, 1):
        if step["do"] != "deliver":
            steps.append(step)
            arguments = {name: value for name, value in step.items() if name != "do"}
            getattr(receiver, step["do"])(**arguments)
            continue
        reason, field = judge(receiver, step["encoding"], step["data"])
        if (reason, receiver.floor_reset) != (step["reason"], step["floor_reset"]):
            raise Disagreement(f"{one.name}, step {number}: the model says {reason}, floor reset "
                               f"{receiver.floor_reset}; the case {step['reason']}")
        made = {"do": "deliver", "encoding": step["encoding"], "input": compact(step["data"]),
                "verdict": "accept" if reason is None else "refuse"}
        if reason is not None:
            made["reason"] = reason
            if field is not None:
                made["field"] = field
        if receiver.floor_reset:
            made["floor_reset"] = True
        steps.append(made)
        reasons.append(reason)
    name = "sequence/" + one.name
    return {"sequence": name, "requirements": vector_requirements.of(name, reasons),
            "context": one.context, "steps": steps}


def cases():
    for part in (vectors_json, vectors_protobuf, vectors_fields, vectors_receive):
        yield from part.cases()


def unique(rows, member):
    names = [row[member] for row in rows]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Disagreement(f"one name for two: {sorted(twice)}")
    return rows


def text_of(rows):
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def envelopes_text():
    nodes = [{"name": node.name, "seed": node.seed.hex(), "public_key": node.public_key.hex(),
              "node_id": node.node_id.hex()} for node in NODES.values()]
    header = {"format": "faberio-envelope-vectors 1", "nodes": nodes,
              "contexts": vectors_receive.CONTEXTS}
    return text_of([header] + unique([vector(case) for case in cases()], "vector"))


def sequences_text():
    header = {"format": "faberio-receiver-sequences 1"}
    made = [sequence(one) for one in vector_sequences.sequences()]
    return text_of([header] + unique(made, "sequence"))


def coverage_text():
    """How many checks of the suite there are for each requirement; it reads the vectors' files."""
    counts = collections.Counter(one for check in suite.checks() for one in check.requirements)
    return json.dumps(counts, sort_keys=True, indent=0) + "\n"


def main():
    found = 0
    for path, text_of_it in ((ENVELOPES, envelopes_text), (SEQUENCES, sequences_text),
                             (COVERAGE, coverage_text)):
        text = text_of_it()
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.name} is not what make_vectors.py writes")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
