# SPDX-License-Identifier: Apache-2.0
"""`faberio envelope` and `faberio key` as a script meets them (command contract, section 2).

Envelopes are made and signed here with PyNaCl, from the profile's text alone."""
import hashlib
import json
import os
import stat
import struct
import subprocess
import uuid
from pathlib import Path

import nacl.signing
import pytest

from node import BIN

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "envelope.json").read_text())
SPACE = VECTORS["spaces"]["S1"]
OBJECT = "0195a3f0-9150-7898-abcd-000000000013"
NOW = 1718000000000


class Key:
    def __init__(self, byte):
        self.seed = bytes([byte]) * 32
        self.signing = nacl.signing.SigningKey(self.seed)
        self.public = bytes(self.signing.verify_key)
        self.id = hashlib.sha256(b"faberio-node-id-v1\0" + self.public).digest()[:16].hex()


A, B, C = Key(10), Key(11), Key(12)


def run(*argv, stdin=b"", code=0):
    done = subprocess.run([BIN, *map(str, argv)], input=stdin, capture_output=True, timeout=60)
    assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
    return done


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def preimage(e):
    unicast = e["delivery_mode"] == "unicast"
    target = bytes.fromhex(e["target"]) if unicast else e["target"].encode()
    kind, payload = e["message_type"].encode(), e["payload"].encode()
    out = b"faberio-envelope-v1\0" + uuid.UUID(e["id"]).bytes
    out += uuid.UUID(e["information_space_id"]).bytes + bytes.fromhex(e["source_node_id"])
    out += bytes([1 if unicast else 2]) + struct.pack(">H", len(target)) + target
    out += struct.pack(">H", len(kind)) + kind + struct.pack(">I", len(payload)) + payload
    out += struct.pack(">Q", e["timestamp"])
    if "correlation_id" in e:
        return out + b"\1" + uuid.UUID(e["correlation_id"]).bytes
    return out + b"\0"


def envelope(number=1, key=A, **other):
    e = {"id": f"0195a3f0-9200-7899-8def-{number:012x}", "information_space_id": SPACE,
         "source_node_id": key.id, "delivery_mode": "topic",
         "target": "platform.replication.database",
         "message_type": "platform.replication.changed",
         "payload": json.dumps({"object_id": OBJECT}), "timestamp": NOW} | other
    e["signature"] = key.signing.sign(preimage(e)).signature.hex()
    return e


def context(path, **other):
    value = {"self": B.id, "space": SPACE, "now_ms": NOW, "past_ms": 900000, "future_ms": 300000,
             "members": [{"public_key": A.public.hex(), "status": "approved"},
                         {"public_key": C.public.hex(), "status": "pending"}],
             "subscriptions": ["platform.replication.database"], "seen": [], "floors": []} | other
    path.write_text(json.dumps({k: v for k, v in value.items() if v is not None}))
    return path


def lines(*envelopes):
    return b"".join(json.dumps(e).encode() + b"\n" for e in envelopes)


def frames(*messages):
    return b"".join(struct.pack(">I", len(m)) + m for m in messages)


@pytest.fixture
def ctx(tmp_path):
    return context(tmp_path / "context.json")


def verdicts(done):
    return [o["verdict"] if o["verdict"] == "accept" else o["reason"] for o in objects(done)]


def test_vectors_through_every_verb(tmp_path):
    # FM-5.4-2, MP-2-2
    vectors = VECTORS["vectors"]
    text = lines(*(v["envelope"] for v in vectors))
    packed = frames(*(bytes.fromhex(v["protobuf_hex"]) for v in vectors))
    assert verdicts(run("envelope", "verify", "--lines", "--public-key", A.public.hex(), "-",
                        stdin=text)) == ["accept"] * 3
    assert verdicts(run("envelope", "verify", "--from", "protobuf", "--frames", "--public-key",
                        A.public.hex(), "-", stdin=packed)) == ["accept"] * 3
    canonical = objects(run("envelope", "canonical", "--lines", "-", stdin=text))
    assert canonical == [{"preimage": v["preimage_hex"]} for v in vectors]
    assert run("envelope", "convert", "--to", "protobuf", "--lines", "--frames", "-",
               stdin=text).stdout == packed
    hexed = run("envelope", "convert", "--to", "protobuf", "--lines", "--hex", "-", stdin=text)
    assert hexed.stdout.decode().split() == [v["protobuf_hex"] for v in vectors]
    back = objects(run("envelope", "convert", "--from", "protobuf", "--to", "json", "--frames",
                       "-", stdin=packed))
    assert back == [v["envelope"] for v in vectors]
    one = tmp_path / "one.json"
    one.write_text(json.dumps(vectors[0]["envelope"]))
    raw = run("envelope", "convert", "--to=protobuf", one).stdout
    assert raw.hex() == vectors[0]["protobuf_hex"]


def test_sign_fills_in_and_keeps_the_rest(tmp_path):
    # FM-5.4-1
    key = tmp_path / "key"
    run("key", "new", "--seed", A.seed.hex(), "--out", key)
    whole = envelope()
    draft = {k: v for k, v in whole.items() if k not in ("source_node_id", "signature")}
    assert objects(run("envelope", "sign", "--key", key, "-", stdin=lines(draft))) == [whole]
    named = draft | {"source_node_id": A.id}
    assert objects(run("envelope", "sign", "--key", key, "-", stdin=lines(named))) == [whole]
    other = draft | {"source_node_id": B.id}
    done = run("envelope", "sign", "--key", key, "-", stdin=lines(other), code=1)
    assert objects(done)[0]["reason"] == "unknown_sender"
    assert objects(done)[0]["field"] == "source_node_id"
    bad = draft | {"timestamp": 0}
    done = run("envelope", "sign", "--key", key, "--lines", "-", stdin=lines(bad, draft), code=1)
    assert objects(done)[0]["reason"] == "bad_timestamp" and objects(done)[1] == whole


def test_the_order_of_checks(ctx):
    # FM-7.2-2
    """Each envelope breaks one rule more than the one before, of an earlier step."""
    seen = envelope(1)
    cases = [(seen, "accept"), (seen, "duplicate")]
    broken = dict(seen, target="platform.replication.file")
    cases.append((envelope(1, target=broken["target"]), "not_subscribed"))
    late = {"target": broken["target"], "timestamp": NOW - 900001}
    cases.append((envelope(1, **late), "stale"))
    forged = envelope(1, **late)
    forged["signature"] = "00" * 64
    cases.append((forged, "bad_signature"))
    unknown = dict(forged, source_node_id=Key(13).id)
    cases.append((unknown, "unknown_sender"))
    cases.append((dict(forged, source_node_id=C.id), "unknown_sender"))
    cases.append((dict(forged, source_node_id=B.id), "not_origin"))
    foreign = dict(forged, source_node_id=B.id, information_space_id=VECTORS["spaces"]["S2"])
    cases.append((foreign, "wrong_space"))
    cases.append((dict(foreign, timestamp=0), "bad_timestamp"))
    cases.append((dict(foreign, timestamp=None), "malformed"))
    done = run("envelope", "verify", "--context", ctx, "--lines", "-",
               stdin=lines(*(e for e, _ in cases)), code=1)
    assert verdicts(done) == [want for _, want in cases]
    assert all(o["id"] == seen["id"] for o in objects(done))
    fields = [o.get("field") for o in objects(done)]
    assert fields[1:4] == ["id", "target", "timestamp"]


def test_window_limits_are_inclusive(ctx):
    # MP-5-8
    times = [NOW - 900000, NOW - 900001, NOW + 300000, NOW + 300001]
    done = run("envelope", "verify", "--context", ctx, "--lines", "-", code=1,
               stdin=lines(*(envelope(i, timestamp=t) for i, t in enumerate(times))))
    assert verdicts(done) == ["accept", "stale", "accept", "from_future"]


def test_context_state(tmp_path):
    path = tmp_path / "c.json"
    message = envelope(1)
    text = lines(message)
    context(path, peer=C.id)
    assert verdicts(run("envelope", "verify", "--context", path, "-", stdin=text,
                        code=1)) == ["not_origin"]
    context(path, members=[{"public_key": A.public.hex(), "status": "revoked"}])
    assert verdicts(run("envelope", "verify", "--context", path, "-", stdin=text,
                        code=1)) == ["revoked"]
    context(path, seen=[{"source": A.id, "id": message["id"]}])
    assert verdicts(run("envelope", "verify", "--context", path, "-", stdin=text,
                        code=1)) == ["duplicate"]
    context(path, seen=[{"source": C.id, "id": message["id"]}])
    run("envelope", "verify", "--context", path, "-", stdin=text)
    context(path, floors=[{"source": A.id, "timestamp": NOW}])
    assert verdicts(run("envelope", "verify", "--context", path, "-", stdin=text,
                        code=1)) == ["stale"]
    context(path, floors=[{"source": A.id, "timestamp": NOW - 1}])
    run("envelope", "verify", "--context", path, "-", stdin=text)
    unicast = lines(envelope(2, delivery_mode="unicast", target=B.id),
                    envelope(3, delivery_mode="unicast", target=C.id))
    context(path)
    assert verdicts(run("envelope", "verify", "--context", path, "--lines", "-", stdin=unicast,
                        code=1)) == ["accept", "wrong_target"]


@pytest.mark.parametrize("member,change", [
    ("self", {"self": None}),
    ("self", {"self": "xyz"}),
    ("space", {"space": "0195a3f0-8000-4890-abcd-000000000001"}),
    ("peer", {"peer": 7}),
    ("now_ms", {"now_ms": "1"}),
    ("now_ms", {"now_ms": None}),
    ("past_ms", {"past_ms": -1}),
    ("future_ms", {"future_ms": 1.5}),
    ("members", {"members": {}}),
    ("members[0]", {"members": ["x"]}),
    ("members[0].public_key", {"members": [{"public_key": "00" * 32, "status": "approved"}]}),
    ("members[0].status", {"members": [{"public_key": A.public.hex(), "status": "ok"}]}),
    ("members[1].public_key",
     {"members": [{"public_key": A.public.hex(), "status": "approved"}] * 2}),
    ("members[0].role",
     {"members": [{"public_key": A.public.hex(), "status": "approved", "role": "x"}]}),
    ("subscriptions[0]", {"subscriptions": ["database"]}),
    ("seen[0].id", {"seen": [{"source": A.id, "id": "1"}]}),
    ("seen[0].source", {"seen": [{"id": OBJECT}]}),
    ("floors[0].timestamp", {"floors": [{"source": A.id}]}),
    ("subscription", {"subscription": []}),
])
def test_a_wrong_context_is_a_usage_error(tmp_path, member, change):
    path = context(tmp_path / "c.json", **change)
    done = run("envelope", "verify", "--context", path, "-", stdin=lines(envelope()), code=2)
    assert done.stdout == b""
    assert f"{path}: {member}: " in done.stderr.decode()


def test_a_context_that_is_no_json_names_the_line(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"self":\n  nope}')
    done = run("envelope", "verify", "--context", path, "-", stdin=lines(envelope()), code=2)
    assert f"{path}: line 2, column" in done.stderr.decode()
    run("envelope", "verify", "--context", tmp_path / "absent", "-", code=2)


def test_public_key(ctx):
    # MP-1-4
    good, forged = envelope(1), envelope(2)
    forged["payload"] += " "
    done = run("envelope", "verify", "--public-key", A.public.hex(), "--lines", "-",
               stdin=lines(good, forged), code=1)
    assert verdicts(done) == ["accept", "bad_signature"]
    done = run("envelope", "verify", "--public-key", B.public.hex(), "-", stdin=lines(good), code=1)
    assert verdicts(done) == ["unknown_sender"]
    run("envelope", "verify", "--lines", "-", stdin=lines(good, forged))


def test_refusals_name_file_and_line_and_go_on(tmp_path):
    # MP-5-19
    file = tmp_path / "in.jsonl"
    file.write_bytes(lines(envelope(1), dict(envelope(2), message_type="x")) + b"\n" + b"{}\n" +
                     b" " * 400000 + b"\n" + lines(envelope(3)))
    done = run("envelope", "verify", "--lines", file, code=1)
    assert verdicts(done) == ["accept", "bad_type", "malformed", "malformed", "too_large", "accept"]
    assert "id" not in objects(done)[4]
    errors = done.stderr.decode().splitlines()
    assert errors[0].startswith(f"{file}:2: bad_type: message_type: ")
    assert errors[1].startswith(f"{file}:3: malformed: ")
    assert errors[2].startswith(f"{file}:4: malformed: id: ")
    assert errors[3].startswith(f"{file}:5: too_large: ")


def test_frames_that_are_too_long_or_cut():
    good = bytes.fromhex(VECTORS["vectors"][0]["protobuf_hex"])
    stream = frames(good, b"", b"\0" * 60000, good)
    argv = ("envelope", "verify", "--from", "protobuf", "--frames", "-")
    done = run(*argv, stdin=stream, code=1)
    assert verdicts(done) == ["accept", "malformed", "too_large", "accept"]
    for cut in (len(good) + 1, len(good) + 6, 2, 3):
        done = run(*argv, stdin=frames(good, good)[:cut + 4], code=1)
        assert verdicts(done)[-1] == "malformed"
    done = run(*argv, stdin=frames(good)[:-1], code=1)
    assert objects(done)[0]["id"] == VECTORS["vectors"][0]["envelope"]["id"]


def test_inspect_shows_what_can_be_read():
    whole = envelope(1, correlation_id=OBJECT)
    text = json.dumps(whole).encode()
    shown = objects(run("envelope", "inspect", "-", stdin=text))[0]
    assert shown["verdict"] == "accept"
    assert shown["timestamp"] == "2024-06-10T06:13:20.000Z" and shown["timestamp_ms"] == NOW
    assert shown["id_time"] == "2025-03-17T11:50:07.104Z"
    assert shown["id_time_ms"] == int(whole["id"].replace("-", "")[:12], 16)
    for name in ("id", "source_node_id", "target", "payload", "correlation_id", "signature"):
        assert shown[name] == whole[name]
    assert shown["bytes"]["preimage"] == len(preimage(whole))
    assert shown["input_bytes"] == len(text)
    bad = dict(whole, message_type="x", timestamp=2**63 - 1)
    shown = objects(run("envelope", "inspect", "-", stdin=json.dumps(bad).encode(), code=1))[0]
    assert shown["reason"] == "bad_type" and shown["field"] == "message_type"
    assert shown["unreadable"] == {"message_type": "x", "timestamp": 2**63 - 1}
    assert shown["id"] == whole["id"]
    shown = objects(run("envelope", "inspect", "-", stdin=text[:120], code=1))[0]
    assert shown["reason"] == "malformed" and shown["information_space_id"] == SPACE


@pytest.mark.parametrize("argv", [
    ("envelope",),
    ("envelope", "check", "-"),
    ("envelope", "verify"),
    ("envelope", "verify", "-", "-"),
    ("envelope", "verify", "--colour", "-"),
    ("envelope", "verify", "--from", "yaml", "-"),
    ("envelope", "verify", "--from"),
    ("envelope", "verify", "--frames", "-"),
    ("envelope", "verify", "--from", "protobuf", "--lines", "-"),
    ("envelope", "verify", "--public-key", "ABCD", "-"),
    ("envelope", "verify", "--public-key", "00" * 32, "--context", "x", "-"),
    ("envelope", "verify", "--key", "x", "-"),
    ("envelope", "verify", "--hex", "-"),
    ("envelope", "canonical", "--to", "json", "-"),
    ("envelope", "convert", "-"),
    ("envelope", "convert", "--to", "json", "--hex", "-"),
    ("envelope", "convert", "--to", "protobuf", "--hex", "--frames", "-"),
    ("envelope", "sign", "-"),
    ("key",),
    ("key", "make"),
    ("key", "new"),
    ("key", "new", "--out", "x", "--seed", "12"),
    ("key", "show"),
    ("key", "show", "a", "b"),
])
def test_usage(argv, tmp_path):
    done = subprocess.run([BIN, *argv], input=b"", capture_output=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == b"" and done.stderr != b""
    assert list(tmp_path.iterdir()) == []


def test_raw_protobuf_is_one_envelope(tmp_path):
    done = run("envelope", "convert", "--to", "protobuf", "--lines", "-",
               stdin=lines(envelope(1), envelope(2)), code=2)
    assert done.stdout == b""
    files = []
    for i in range(2):
        files.append(tmp_path / f"{i}.json")
        files[i].write_bytes(lines(envelope(i)))
    assert run("envelope", "convert", "--to", "protobuf", *files, code=2).stdout == b""
    assert run("envelope", "convert", "--to", "protobuf", files[0]).stdout != b""


def test_files_that_cannot_be_read(tmp_path):
    good = tmp_path / "good.json"
    good.write_bytes(lines(envelope()))
    for bad in (tmp_path / "absent", tmp_path):
        done = run("envelope", "verify", good, bad, code=1)
        assert done.stdout == b"" and str(bad) in done.stderr.decode()
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BIN, "envelope", "verify", good], stdout=full, timeout=60)
    assert done.returncode == 1


def test_keys(tmp_path):
    path = tmp_path / "key"
    made = objects(run("key", "new", "--out", path))[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shown = objects(run("key", "show", path))[0]
    assert shown == made and set(shown) == {"node_id", "public_key", "fingerprint"}
    public = bytes.fromhex(shown["public_key"])
    assert shown["node_id"] == hashlib.sha256(b"faberio-node-id-v1\0" + public).digest()[:16].hex()
    before = path.read_bytes()
    assert str(path) in run("key", "new", "--out", path, code=1).stderr.decode()
    assert path.read_bytes() == before
    path.chmod(0o640)
    assert str(path) in run("key", "show", path, code=1).stderr.decode()
    run("envelope", "sign", "--key", path, "-", stdin=lines(envelope()), code=1)
    seeded = tmp_path / "seeded"
    done = run("key", "new", "--seed", A.seed.hex(), "--out", seeded)
    assert objects(done)[0]["public_key"] == A.public.hex() and b"tests only" in done.stderr
    other = run("key", "show", seeded)
    assert A.seed.hex().encode() not in other.stdout + other.stderr
    assert run("key", "show", tmp_path / "absent", code=1).stdout == b""
    link = tmp_path / "link"
    os.symlink(tmp_path / "nowhere", link)
    run("key", "new", "--out", link, code=1)
    assert not (tmp_path / "nowhere").exists()
