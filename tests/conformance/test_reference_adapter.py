# SPDX-License-Identifier: Apache-2.0
"""`faberio conformance adapter` beyond what the suite asks: it has all of the protocol, says what it does
not understand, and lives on."""
import json
import os
import subprocess

import pytest

import runtime_python
import suite
from suite_adapter import InProcess, Process
from vector_make import A, B, context, json_text, message

COMMAND = [os.environ["FABERIO_BIN"], "conformance", "adapter"]


def answers(text, code=0):
    done = subprocess.run(COMMAND, input=text, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_both_runtimes_have_everything():
    reference = Process(" ".join(COMMAND))
    for adapter in (reference, InProcess(runtime_python.Runtime())):
        answer = suite.greeting(adapter)
        assert sorted(answer["ops"]) == sorted(suite.OPS)
    reference.close()


def test_nothing_asked_is_nothing_answered():
    assert answers(b"") == []
    assert len(answers(b'{"op":"hello"}')) == 1  # without a line's end


INPUT = json_text(message()).hex()
VERIFY = {"op": "verify", "encoding": "json", "input": INPUT}
OPEN = {"op": "node", "do": "open", "seed": B.seed.hex(), "wall_ms": 1718000000000,
        "peers": [{"seed": A.seed.hex(), "status": "approved"}]}

WRONG = [
    b"", b"{", b"[]", b"null", b"\xff", b'{"op":"hello","op":"hello"}', b'{"op":7}', b"{}",
    b'{"op":"hello","x":1\0}',
    {"op": "fly"}, VERIFY | {"encoding": "xml"}, VERIFY | {"input": "0"}, VERIFY | {"input": "zz"},
    VERIFY | {"input": None}, VERIFY | {"context": {}}, VERIFY | {"context": 1},
    VERIFY | {"context": context(past_ms=-1)}, VERIFY | {"context": context(rate_per_s=1 << 40)},
    VERIFY | {"context": context() | {"extra": 1}}, VERIFY | {"public_key": "00"},
    {"op": "convert", "encoding": "json", "input": INPUT},
    {"op": "sign", "encoding": "json", "input": INPUT, "seed": "00", "to": "json"},
    {"op": "session"}, {"op": "session", "do": "deliver", "encoding": "json", "input": INPUT},
    {"op": "session", "do": "open"}, {"op": "session", "do": "open", "context": {}},
    {"op": "node"}, {"op": "node", "do": "tick", "ms": 1}, OPEN | {"seed": "00"},
    OPEN | {"peers": [{"seed": A.seed.hex(), "status": "revoked"}]}, OPEN | {"peers": None},
    *(OPEN | {"limits": {name: value}} for name in ("seen_ids", "rate_per_s", "rate_burst")
      for value in (-1, 0, 1 << 32, "1")),
    OPEN | {"wall_ms": 1 << 62}, OPEN | {"wall_ms": -(1 << 63)}, OPEN | {"wall_ms": 1 << 80},
    OPEN | {"peers": [{"seed": bytes([n]).hex() * 32, "status": "approved"} for n in range(99)]}]

WRONG_STEPS = [
    {"do": "fly"}, {"do": "tick"}, {"do": "tick", "ms": -1}, {"do": "clock"},
    {"do": "tick", "ms": 1 << 60}, {"do": "clock", "wall_ms": -(1 << 63)}, {"do": "disk"},
    {"do": "link_up", "peer": A.node_id.hex(), "offset_ms": 1 << 62},
    {"do": "link_up"}, {"do": "link_up", "peer": "00" * 16}, {"do": "link_down", "link": 9},
    {"do": "deliver", "link": 0, "number": 1, "envelope": ""}, {"do": "ack", "link": 1, "number": 1},
    {"do": "publish", "object_id": "x"}, {"do": "subscribe"}]


def line_of(request):
    return request if isinstance(request, bytes) else json.dumps(request).encode()


def test_what_is_not_understood_is_an_error_and_no_end():
    lines = [line_of(request) for request in WRONG if request != b""] + [b'{"op":"hello"}']
    found = answers(b"\n".join(lines) + b"\n")
    for line, answer in zip(lines[:-1], found):
        assert list(answer) == ["error"] and answer["error"], line
    assert found[-1]["protocol"] == "faberio-adapter 1"


def test_steps_that_a_node_does_not_take():
    lines = [OPEN] + [{"op": "node"} | step for step in WRONG_STEPS]
    lines.append({"op": "node", "do": "link_up", "peer": A.node_id.hex()})
    found = answers(b"".join(line_of(line) + b"\n" for line in lines))
    assert found[0]["node_id"] == B.node_id.hex()
    for line, answer in zip(lines[1:-1], found[1:]):
        assert list(answer) == ["error"], line
    assert found[-1]["link"] == 1


@pytest.mark.parametrize("words, code", [([], 2), (["suite"], 2), (["adapter", "x"], 2), (["--help"], 0),
                                         (["adapter", "--help"], 0)])
def test_usage(words, code):
    done = subprocess.run([COMMAND[0], "conformance", *words], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code
    assert "conformance adapter" in (done.stdout if code == 0 else done.stderr)


def test_virtual_time_is_the_only_time():
    """Moments and numbers are the same each time, whatever the machine does meanwhile."""
    steps = [OPEN, {"op": "node", "do": "link_up", "peer": A.node_id.hex()},
             {"op": "node", "do": "publish", "object_id": "0195a3f0-9150-7898-abcd-000000000013"},
             {"op": "node", "do": "tick", "ms": 30000}]
    text = b"".join(line_of(step) + b"\n" for step in steps)

    def moments():
        return [[(one["out"], one["at_ms"], one.get("number")) for one in answer["out"]]
                for answer in answers(text)]
    first = moments()
    assert len(first[-1]) >= 6 and first == moments()
