# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: what is asked of an adapter, each check by its name and with the requirements
that it shows. test_suite.py gives them to pytest; a program may run them by itself."""
import hashlib
import json
import pathlib
import typing

import envelope_model as model
import suite_messaging
import suite_nodes
import vector_bytes
from suite_check import Check, Failure, expect
from vector_make import A, B, NODES, json_text, message, protobuf, unicast

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests/vectors"


class Vectors(typing.NamedTuple):
    contexts: dict
    envelopes: list
    sequences: list


def load():
    rows = []
    for name, form in (("envelopes", "faberio-envelope-vectors 1"),
                       ("sequences", "faberio-receiver-sequences 1")):
        text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        if lines[0]["format"] != form:
            raise ValueError(f"{name}: another format, {lines[0]['format']}")
        rows.append(lines)
    return Vectors(rows[0][0]["contexts"], rows[0][1:], rows[1][1:])


def sha256(hexadecimal):
    return hashlib.sha256(bytes.fromhex(hexadecimal)).hexdigest()


def expect_verdict(answer, row, where=""):
    """The verdict, and of a refusal the reason and, where the vector has one, the field."""
    found = answer.get("verdict"), answer.get("reason")
    expected = row["verdict"], row.get("reason")
    expect(found == expected, f"{where}{' '.join(map(str, filter(None, found)))}, expected "
                              f"{' '.join(filter(None, expected))}")
    if "field" in row:
        expect(answer.get("field") == row["field"],
               f"{where}the field {answer.get('field')}, expected {row['field']}")


# ---- Envelopes ----


def one_envelope(row, contexts):
    def run(adapter):
        data = vector_bytes.expand(row["input"]).hex()
        asked = {"encoding": row["encoding"], "input": data}
        expect_verdict(adapter.ask({"op": "verify", "context": contexts[row["context"]]} | asked), row)
        formed = "preimage_sha256" in row
        alone = adapter.ask({"op": "verify"} | asked)
        if not formed:
            expect_verdict(alone, row, "without a context: ")
            # Nothing is made of what has no form.
            for op in ({"op": "canonical"}, {"op": "convert", "to": "json"},
                       {"op": "convert", "to": "protobuf"}):
                expect_verdict(adapter.ask(op | asked), row, f"{op['op']} {op.get('to', '')}: ")
            return
        expect(alone.get("verdict") == "accept", f"its form is right: {alone}")
        expect(alone.get("id") == row["id"], f"the id {alone.get('id')}, expected {row['id']}")
        preimage = adapter.ask({"op": "canonical"} | asked).get("preimage", "")
        expect(sha256(preimage) == row["preimage_sha256"], f"other signed bytes: {preimage[:400]}")
        for to in ("json", "protobuf"):
            output = adapter.ask({"op": "convert", "to": to} | asked).get("output", "")
            expect(sha256(output) == row[f"{to}_sha256"], f"another {to}: {output[:400]}")
    return Check("envelope/" + row["vector"], tuple(row["requirements"]), "verify", run)


# ---- Sequences ----


def one_sequence(row):
    def run(adapter):
        adapter.ask({"op": "session", "do": "open", "context": row["context"]})
        for number, step in enumerate(row["steps"], 1):
            if step["do"] != "deliver":
                adapter.ask({"op": "session"} | step)
                continue
            answer = adapter.ask({"op": "session", "do": "deliver", "encoding": step["encoding"],
                                  "input": vector_bytes.expand(step["input"]).hex()})
            expect_verdict(answer, step, f"step {number}: ")
            expect(answer.get("floor_reset", False) == step.get("floor_reset", False),
                   f"step {number}: the floor was set back, or was not")
    return Check(row["sequence"], tuple(row["requirements"]), "session", run)


# ---- Signing ----


def signing():
    """Signatures are determined by the key and the signed bytes."""
    unsigned = ("source_node_id", "signature")
    messages = {"topic": message(), "unicast": unicast(), "with-correlation":
                message(correlation_id=message().id), "long": message(
                    payload=(b'{"object_id":"%s","x":"' % b"0195a3f0-9150-7898-abcd-000000000013"
                             + b"a" * 40000 + b'"}'))}
    for name, e in messages.items():
        for encoding, data in (("json", json_text(e, without=unsigned)),
                               ("protobuf", protobuf(e, without=unsigned)),
                               ("json-with-its-id", json_text(e, without=unsigned[1:])),
                               ("json-signed-already", json_text(e, {"signature": '"%s"' % ("00" * 64)}))):
            for to in ("json", "protobuf"):
                yield sign_check(f"sign/{name}/{encoding}/to-{to}", encoding.partition("-")[0], data,
                                 to, {"output": model.ENCODE[to](e).hex()})
    e = message(B)
    yield sign_check("sign/refused/id-of-another-key", "json", json_text(e, without=("signature",)),
                     "json", {"verdict": "refuse", "reason": "unknown_sender"})
    e = message()
    for name, data, reason in (
            ("unknown-member", json_text(e, without=unsigned, more=[('"x"', "1")]), "malformed"),
            ("missing-payload", json_text(e, without=unsigned + ("payload",)), "malformed"),
            ("bad-type", json_text(e, {"message_type": '"x"'}, without=unsigned), "bad_type"),
            ("bad-payload", json_text(e, {"payload": '"{}"'}, without=unsigned), "bad_payload")):
        yield sign_check(f"sign/refused/{name}", "json", data, "json",
                         {"verdict": "refuse", "reason": reason})


def sign_check(name, encoding, data, to, expected):
    def run(adapter):
        answer = adapter.ask({"op": "sign", "seed": A.seed.hex(), "encoding": encoding,
                              "input": data.hex(), "to": to})
        for member, value in expected.items():
            expect(answer.get(member) == value, f"{member} {str(answer.get(member))[:300]}, expected "
                                                f"{value[:300]}")
    return Check(name, ("FM-5.4-1", "FM-5.4-2", "FM-11-1", "MP-1-8", "MP-2-1", "MP-2-2"), "sign", run)


def keys():
    """One message under one key: `public_key` in place of a context."""
    e = message()
    asked = {"op": "verify", "encoding": "json", "input": json_text(e).hex()}

    def right(adapter):
        answer = adapter.ask(asked | {"public_key": A.public_key.hex()})
        expect(answer.get("verdict") == "accept", f"{answer}")

    def another(adapter):
        for node in NODES.values():
            if node is not A:
                answer = adapter.ask(asked | {"public_key": node.public_key.hex()})
                expect(answer.get("reason") == "unknown_sender", f"{node.name}: {answer}")

    ids = ("MP-1-1", "FI-2-2", "FM-5.1-4")
    yield Check("key/right", ids, "verify", right)
    yield Check("key/of-another-node", ids, "verify", another)


def greeting(adapter):
    answer = adapter.ask({"op": "hello"})
    expect(answer.get("protocol") == "faberio-adapter 1", f"protocol {answer.get('protocol')!r}")
    ops = answer.get("ops")
    expect(isinstance(ops, list) and set(ops) <= set(OPS), f"ops {ops!r}")
    return answer


OPS = ("verify", "canonical", "convert", "sign", "session", "node")


def checks():
    vectors = load()
    yield Check("hello", ("FI-0-1",), None, greeting)
    for row in vectors.envelopes:
        yield one_envelope(row, vectors.contexts)
    for row in vectors.sequences:
        yield one_sequence(row)
    yield from signing()
    yield from keys()
    yield from suite_messaging.checks(FOLDER)
    yield from suite_nodes.checks()


def run(check, adapter):
    """None, or what is wrong, with the check's name and what it stands for."""
    try:
        check.run(adapter)
    except Failure as failure:
        return f"{check.name} ({', '.join(check.requirements)}): {failure}"
    return None
