# SPDX-License-Identifier: Apache-2.0
"""The vectors as data: what the generator writes, with every reason in it, and right by the golden
vectors of the specification and by the model of tests/vectors_check, which was written apart."""
import collections
import json
import pathlib
import re

import envelope_model as model
import make_vectors
import pytest
import strict_json
import suite
import vector_bytes
import vector_envelope
from envelope_model import Refused

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = json.loads((ROOT / "tests/vectors/envelope.json").read_text(encoding="utf-8"))
REASONS = {"too_large", "malformed", "bad_uuid", "bad_node_id", "bad_mode", "bad_target", "bad_type",
           "bad_payload", "bad_timestamp", "wrong_space", "not_origin", "unknown_sender", "revoked",
           "rate_limited", "bad_signature", "stale", "from_future", "wrong_target", "not_subscribed",
           "duplicate"}


def rows(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


VECTORS = rows(make_vectors.ENVELOPES)[1:]
SEQUENCES = rows(make_vectors.SEQUENCES)[1:]


def test_the_files_are_what_the_generator_writes():
    assert make_vectors.envelopes_text() == make_vectors.ENVELOPES.read_text(encoding="utf-8")
    assert make_vectors.sequences_text() == make_vectors.SEQUENCES.read_text(encoding="utf-8")
    assert make_vectors.coverage_text() == make_vectors.COVERAGE.read_text(encoding="utf-8")


def test_there_are_enough_of_each_kind():
    assert len(VECTORS) >= 1500 and len(SEQUENCES) >= 60
    seen = collections.Counter(row.get("reason") for row in VECTORS)
    for sequence in SEQUENCES:
        seen.update(step.get("reason") for step in sequence["steps"] if step["do"] == "deliver")
    assert set(seen) - {None} == REASONS
    assert min(seen.values()) >= 4
    fields = collections.Counter(row.get("field") for row in VECTORS)
    assert all(fields[name] >= 4 for name in model.FIELDS)
    for encoding in ("json", "protobuf"):
        assert sum(row["encoding"] == encoding for row in VECTORS) >= 600


def test_every_line_names_requirements_that_there_are():
    import catalogue  # needs Python 3.11
    known = {one["id"] for one in catalogue.requirements(catalogue.load())}
    for row in VECTORS + SEQUENCES:
        assert row["requirements"] and set(row["requirements"]) <= known, row


def test_what_documents_name_is_there():
    names = {check.name for check in suite.checks()}
    names |= {name.removeprefix("envelope/") for name in names}
    kinds = "json|protobuf|field|payload|receive|order|sequence|node|sign|key"
    cited = set()
    for page in ("FINDINGS", "VECTORS", "ADAPTER"):
        text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
        cited |= set(re.findall(rf"`((?:{kinds})/[a-z0-9_/-]+)`", text))
    assert len(cited) >= 12
    assert cited <= names, cited - names


def test_bytes_come_back():
    for data in (b"", b"a", b"\0" * 5, b"ab" * 40, b"x" + b"\xff" * 99 + b"y", bytes(range(256)) * 3,
                 "\u20ac".encode() * 50, b"\n" * 16, b"q" * 15):
        assert vector_bytes.expand(vector_bytes.compact(data)) == data
    assert vector_bytes.compact(b"a" * 1000) == [{"repeat": "a", "times": 1000}]


@pytest.mark.parametrize("one", GOLDEN["vectors"], ids=lambda one: one["name"])
def test_the_golden_vectors(one):
    text = json.dumps(one["envelope"], ensure_ascii=False).encode()
    data = bytes.fromhex(one["protobuf_hex"])
    e = model.decode_json(text)
    assert e == model.decode_protobuf(data)
    assert e.preimage().hex() == one["preimage_hex"]
    assert model.encode_protobuf(e) == data
    assert json.loads(model.encode_json(e)) == one["envelope"]
    keys = {bytes.fromhex(key["node_id"]): key for key in GOLDEN["keys"]}
    key = keys[e.source_node_id]
    public_key = bytes.fromhex(key["public_key_hex"])
    assert model.node_id_of(public_key) == e.source_node_id
    assert model.verifies(public_key, e.preimage(), e.signature)
    assert e.signed(bytes.fromhex(key["seed_hex"])) == e


def test_another_model_finds_the_same():
    """It knows protobuf and step 1 only."""
    count = 0
    for row in VECTORS:
        if row["encoding"] != "protobuf":
            continue
        data = vector_bytes.expand(row["input"])
        try:
            other = vector_envelope.decode(data)
            found = None
        except vector_envelope.Refused as refused:
            found = str(refused)
        try:
            mine = model.decode_protobuf(data)
            expected = None
        except Refused as refused:
            expected = refused.reason
        assert found == expected, row["vector"]
        if expected is None:
            assert other.preimage() == mine.preimage()
        count += 1
    assert count >= 600


def naive(data):
    """Python's own parser, made strict where it can be told to."""
    def pairs(found):
        if len(dict(found)) != len(found):
            raise ValueError("twice")
        return dict(found)

    def no_constant(name):
        raise ValueError(name)

    value = json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=no_constant,
                       parse_int=strict_json.Number, parse_float=strict_json.Number)
    if any("\ud800" <= c <= "\udfff" or c == "\0" for c in flat(value)):
        raise ValueError("characters")
    return value


def flat(value):
    """All texts of a value in one."""
    if isinstance(value, dict):
        return "".join(key + flat(one) for key, one in value.items())
    if isinstance(value, list):
        return "".join(map(flat, value))
    return value if isinstance(value, str) else ""


def test_the_parser_and_pythons_own_agree():
    texts = [vector_bytes.expand(row["input"]) for row in VECTORS if row["encoding"] == "json"]
    for text in texts:
        if text.startswith(b"\xef\xbb\xbf"):
            continue
        try:
            expected = naive(text)
        except (ValueError, RecursionError):
            expected = ValueError
        try:
            found = strict_json.parse(text, depth_max=100)
        except strict_json.NotJson:
            found = ValueError
        assert found == expected, text[:200]
