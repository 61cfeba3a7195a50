# SPDX-License-Identifier: Apache-2.0
"""Vectors of the messaging channel against the model: those that are kept, those of fresh runs, and the
proof that the model refuses what is wrong."""

import collections
import copy
import json
import os
import pathlib
import subprocess

import pytest

import make_messaging
import vector_check
from vector_envelope import Refused, decode

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["FABERIO_BUILD"])
KEPT = vector_check.read((ROOT / "tests/vectors/messaging.jsonl").read_text().splitlines())
PLANTED = ["acked-one-too-many", "acked-when-executed", "ahead-of-its-turn", "failed-set-ignored",
           "floor-reset-again", "future-accepted", "last-acked-kept", "origin-not-compared",
           "redelivered-again", "redelivery-skips-one", "signature-not-checked",
           "space-not-compared", "told-before-durable", "window-units"]


def export(program, words, path):
    command = [BUILD / program, "export", *words, "--vectors", path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as lines:
        return vector_check.read(lines)


def wrong_ones(vectors):
    found = [(v[0]["vector"], *(vector_check.check(v) or (0, None))) for v in vectors]
    return [f for f in found if f[2] is not None]


def test_those_that_are_kept():
    assert len(KEPT) >= 500
    assert wrong_ones(KEPT) == []
    assert all(v[0]["signatures"] == "ed25519" for v in KEPT)
    shown = collections.Counter(name for v in KEPT for name in make_messaging.features(v))
    for name in ("stream accept", "carrier accept", "stream duplicate", "carrier duplicate",
                 "stream stale", "stream from_future", "stream bad_signature", "stream wrong_space",
                 "stream not_origin", "carrier none", "stream sent again", "carrier sent again",
                 "floor reset", "restart", "lost", "link down", "drop unreachable"):
        assert shown[name] >= 1, f"no vector shows {name}"


def test_those_of_fresh_runs(tmp_path):
    vectors = []
    for seed in range(1, 41):
        words = ["--seed", str(seed), "--nodes", str(2 + seed % 5), "--events", "4000"]
        vectors += export("faberio-sim", words, tmp_path / "run.jsonl")
    assert wrong_ones(vectors) == []
    total = vector_check.count(vectors)
    assert len(vectors) >= 400 and total["accept"] >= 5000
    for reason in ("duplicate", "stale", "from_future", "bad_signature"):
        assert total[reason] > 0, reason


def last_line(*words):
    done = subprocess.run([BUILD / "faberio-sim", *words], capture_output=True, text=True, cwd=ROOT,
                          check=False)
    return done.returncode, json.loads(done.stdout.splitlines()[-1]) if done.stdout else done.stderr


def test_the_command(tmp_path):
    out = tmp_path / "one.jsonl"
    words = ["--seed", "5", "--nodes", "3", "--events", "1000"]
    code, verdict = last_line("export", *words, "--node", "B", "--vectors", out)
    assert code == 0
    assert verdict["hash"] == last_line("run", *words)[1]["hash"], "listening changes the run"
    with open(out, encoding="utf-8") as lines:
        names = {v[0]["vector"] for v in vector_check.read(lines)}
    assert names and all(name.startswith("5/B-from-") for name in names)
    assert last_line("export", *words)[0] == 2
    assert last_line("export", *words, "--vectors", out, "--node", "Nobody")[0] == 2
    assert last_line("export", *words, "--vectors", tmp_path / "none" / "out")[0] == 1


def test_other_keys_change_no_verdict(tmp_path):
    words = ["--seed", "9", "--nodes", "3", "--events", "3000"]
    for vector in export("faberio-sim", words, tmp_path / "run.jsonl"):
        assert vector_check.check(make_messaging.with_ed25519(vector)) is None


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_shows_in_its_vectors(bug, tmp_path):
    schedule = f"tests/scenarios/planted/{bug}.sched"
    assert wrong_ones(export("faberio-sim-mutants", [schedule], tmp_path / "bug.jsonl"))
    assert wrong_ones(export("faberio-sim-mutants", [schedule, "--sound"],
                             tmp_path / "sound.jsonl")) == []


# ---- Vectors made wrong: each takes a vector and gives it back changed, or None where it cannot ----

def place_of(vector, wanted):
    """The last line that fits: everything before it is as it was."""
    places = [i for i, line in enumerate(vector) if i > 0 and wanted(line)]
    return places[-1] if places else None


def delivered(verdict, reason=None):
    return lambda line: (line.get("verdict") == verdict and
                         (reason is None or line.get("reason") == reason))


def changed(wanted, change):
    def mutate(vector):
        place = place_of(vector, wanted)
        return None if place is None else change(vector, place)
    return mutate


def set_line(**members):
    def change(vector, place):
        vector[place].update(members)
        return vector
    return change


def set_header(**members):
    def change(vector, _):
        vector[0].update(members)
        return vector
    return change


def flip(at):
    def change(vector, place):
        data = bytearray.fromhex(vector[place]["envelope"])
        data[at] ^= 1
        vector[place]["envelope"] = data.hex()
        return vector
    return change


def clock_by(ms):
    def change(vector, place):
        vector[place]["wall_ms"] += ms
        return vector
    return change


def one_number_on(vector, place):
    vector[place]["number"] += 1
    return vector


def said_twice(vector, place):
    line = copy.deepcopy(vector[place])
    line["number"] += 1
    return vector[:place + 1] + [line]


def left_out(vector, place):
    return vector[:place] + vector[place + 1:]


def out_before_durable(vector, place):
    """An acknowledgement of what was accepted last, moved before the line that says it is durable."""
    line = vector[place]
    durable = [i for i in range(place) if "accepted" in vector[i]]
    between = vector[durable[-1] + 1:place] if durable else []
    if not durable or any("do" in b for b in between):
        return None
    accepted = [i for i in range(durable[-1]) if vector[i].get("verdict") == "accept"]
    if not accepted or line["number"] != vector[accepted[-1]]["number"]:
        return None
    if line["link"] != vector[accepted[-1]]["link"]:
        return None
    return vector[:durable[-1]] + [line]


def lost_though_durable(vector, place):
    for i in range(place - 1, 0, -1):
        if vector[i].get("do") == "durable" and vector[i].get("accepted", 0) > 0:
            first = next(x for x in vector if x.get("verdict") == "accept")
            name = decode(bytes.fromhex(first["envelope"])).id.hex()
            parts = (name[:8], name[8:12], name[12:16], name[16:20], name[20:])
            vector[place]["lost"] = ["-".join(parts)]
            return vector
    return None


def redelivered(vector):
    """Where a message of an earlier link goes out on a later one, with another behind it there."""
    links = {}
    for i, line in enumerate(vector):
        if line.get("out") != "send":
            continue
        first = links.setdefault(line["envelope"], line["link"])
        if first != line["link"]:
            yield i


def redelivery_left_out(vector):
    for i in redelivered(vector):
        if any(line.get("out") == "send" and line["link"] == vector[i]["link"]
               for line in vector[i + 1:]):
            return vector[:i] + vector[i + 1:]
    return None


def redelivery_reworded(vector):
    for i in redelivered(vector):
        first = next(x for x in vector if x.get("out") == "send")
        if first["envelope"] != vector[i]["envelope"]:
            vector[i]["envelope"] = first["envelope"]
            return vector
    return None


def sent_again_at_once(vector):
    external = {x["link"] for x in vector if x.get("carrier") == "external"}
    for i, line in enumerate(vector):
        if line.get("out") == "send" and line["link"] in external:
            return vector[:i + 1] + [copy.deepcopy(line)]
    return None


def announced_too_early(vector):
    for i, line in enumerate(vector):
        if line.get("out") != "send":
            continue
        try:
            payload = decode(bytes.fromhex(line["envelope"])).payload
        except Refused:
            continue
        if "batch" in payload:
            return [x for k, x in enumerate(vector) if k > i or "batch" not in x]
    return None


def is_send(line):
    return line.get("out") == "send"


ACCEPT = delivered("accept")
MUTATIONS = {
    "an accepted message is refused": changed(ACCEPT, set_line(verdict="refuse", reason="stale")),
    "a stale one is accepted": changed(delivered("refuse", "stale"), set_line(verdict="accept")),
    "a duplicate is accepted": changed(delivered("refuse", "duplicate"),
                                       set_line(verdict="accept")),
    "a forged one is accepted": changed(delivered("refuse", "bad_signature"),
                                        set_line(verdict="accept")),
    "the reason is another": changed(delivered("refuse"), set_line(reason="bad_uuid")),
    "a bit of an accepted one flips": changed(ACCEPT, flip(-70)),
    "a bit of its signature flips": changed(ACCEPT, flip(-1)),
    "it comes 16 minutes later": changed(ACCEPT, clock_by(16 * 60 * 1000)),
    "it comes an hour earlier": changed(ACCEPT, clock_by(-60 * 60 * 1000)),
    "it comes twice": changed(ACCEPT, said_twice),
    "its number is one too high": changed(ACCEPT, one_number_on),
    "one out of turn is accepted": changed(delivered("none"), set_line(verdict="accept")),
    "the floor reset is not said": changed(lambda line: "floor_reset" in line,
                                           set_line(floor_reset=False)),
    "another space": changed(ACCEPT, set_header(
        information_space_id="01a0c450-6cfa-7247-a4c0-03b0a92efb00")),
    "another key of the peer": changed(ACCEPT, lambda vector, _: (
        vector[0]["peer"].update(vector[0]["self"]), vector)[1]),
    "no subscription": changed(ACCEPT, set_header(subscriptions=[])),
    "a rate of nothing": changed(ACCEPT, lambda vector, _: (
        vector[0]["limits"].update(rate_burst=0), vector)[1]),
    "one more is acknowledged": changed(lambda line: line.get("out") == "ack", one_number_on),
    "acknowledged before it is durable": changed(lambda line: line.get("out") == "ack",
                                                 out_before_durable),
    "a number is left out when sending": changed(is_send, one_number_on),
    "what is sent is signed wrongly": changed(is_send, flip(-1)),
    "what is sent is of another time": changed(is_send, flip(-70)),
    "a start loses what was durable": changed(lambda line: line.get("do") == "start",
                                              lost_though_durable),
    "redelivery leaves one out": redelivery_left_out,
    "redelivery has other bytes": redelivery_reworded,
    "sent again without a pause": sent_again_at_once,
    "announced before it is durable": announced_too_early,
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_vector_made_wrong_is_refused(name):
    refused = 0
    for vector in KEPT:
        made = MUTATIONS[name](copy.deepcopy(vector))
        if made is None:
            continue
        assert vector_check.check(made) is not None, f"{vector[0]['vector']}: not noticed"
        refused += 1
        if refused == 12:
            break
    assert refused >= 1, "no vector to make wrong"
