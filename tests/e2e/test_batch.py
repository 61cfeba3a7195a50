# SPDX-License-Identifier: Apache-2.0
"""records:batch: several changes, one write set, all or none, each on its own condition."""
import json

import pytest

from node import eventually, pair

FIRST, SECOND, THIRD = (f"01890000-0000-7000-8000-00000000000{n}" for n in "abc")


def started(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    return node


def batch(node, *changes):
    """Status and body."""
    body = json.dumps({"changes": changes})
    answer = node.http("POST /v1/spaces/team/collections/notes/records:batch HTTP/1.1\r\nHost: x\r\n"
                       f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    head, body = answer.split("\r\n\r\n", 1)
    return int(head.split()[1]), json.loads(body)


def shown(node):
    return {r["id"]: r["fields"] for r in node.rows("record", "list", "team", "notes")}


def test_what_two_made_too_large_can_be_made_smaller(net):
    """A set that two nodes filled apart: no more goes in, but elements go out."""
    a, b = pair(net)
    size = 150

    def elements(act, numbers):
        return [{"id": FIRST, "fields": {"t": {act: n}}} for n in numbers]

    assert batch(a, *elements("$insert", [0]))[0] == 200
    eventually(lambda: shown(b), lambda rows: FIRST in rows)
    b.stop()
    for number in range(1, size, 25):
        assert batch(a, *elements("$insert", range(number, number + 25)))[0] == 200
    a.stop()
    b.start()
    for number in range(1001, 1000 + size, 25):
        assert batch(b, *elements("$insert", range(number, number + 25)))[0] == 200
    a.start()
    eventually(lambda: len(shown(a)[FIRST]["t"]), lambda count: count == 2 * size + 1)
    assert batch(a, *elements("$insert", [9]))[0] == 200  # it is there
    assert batch(a, *elements("$insert", [9999]))[0] == 413
    assert batch(a, *elements("$remove", [9]))[0] == 200
    assert len(shown(a)[FIRST]["t"]) == 2 * size


def test_all_of_it_or_nothing(net):
    node = started(net)
    status, made = batch(node, {"id": FIRST, "fields": {"n": 1, "m": 1}, "if_absent": True},
                         {"id": SECOND, "fields": {"n": 2}})
    assert status == 200
    etag = made["changes"][0]["etag"]
    # Money that moves: both or neither.
    move = [{"id": FIRST, "fields": {"n": 0}, "if_match": etag, "replace": True},
            {"id": SECOND, "fields": {"n": 3}}, {"id": THIRD, "fields": {}, "if_absent": True}]
    assert batch(node, *move)[0] == 200
    after = {FIRST: {"n": 0}, SECOND: {"n": 3}, THIRD: {}}
    assert shown(node) == after
    for change in move[0], move[2], {"id": FIRST, "delete": True, "if_match": etag}:
        status, problem = batch(node, {"id": SECOND, "fields": {"n": 9}}, change)
        assert status == 412 and problem["code"] == "conflict"
        assert problem["detail"].startswith("changes[1]: ")
        assert shown(node) == after
    # An earlier change of the batch is what a later condition sees.
    status, _ = batch(node, {"id": THIRD, "delete": True},
                      {"id": THIRD, "fields": {"n": 5}, "if_absent": True})
    assert status == 200 and shown(node)[THIRD] == {"n": 5}


@pytest.mark.parametrize("more, said", [
    ({"if_match": "x"}, "if_match"), ({"if_match": None}, "if_match"),
    ({"if_absent": False}, "if_absent"), ({"if_absent": True, "if_match": "0" * 32}, "not both"),
    ({"replace": 1}, "replace"), ({"etag": "0" * 32}, "members are"),
])
def test_what_a_change_may_not_say(net, more, said):
    node = started(net)
    status, problem = batch(node, {"id": SECOND, "fields": {}},
                            {"id": FIRST, "fields": {"n": 1}, **more})
    assert status == 400 and "changes[1]: " in problem["detail"] and said in problem["detail"]
    assert shown(node) == {}
