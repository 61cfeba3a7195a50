# SPDX-License-Identifier: Apache-2.0
"""Who holds the stable cut back: in status, metrics and doctor."""
import re

from node import eventually, pair


def held(node):
    return node.json("status")["spaces"][0]["held_back"]


def by(node, whom):
    rows = [row for row in held(node)["by"] if row["node_id"] == whom.id]
    return rows[0] if rows else None


def metrics(node):
    text = node.http("GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert text.startswith("HTTP/1.0 200") or text.startswith("HTTP/1.1 200")
    return dict(re.findall(r"^(faberio_(?:member|space)_\S+) (\d+)$", text, re.M))


def test_a_member_that_is_gone(net):
    a, b = pair(net)
    space = a.rows("space", "list")[0]["space_id"]
    # Statements are named soon by everybody; of a member that has said all, nothing is told.
    eventually(lambda: by(a, b), lambda row: row is None or row["report"] == "known")
    assert held(a)["folds"]
    before = metrics(a)
    member = f'{{space="{space}",node="{b.id}"}}'
    assert before["faberio_member_report_missing" + member] == "0"
    assert int(before["faberio_member_report_age_seconds" + member]) < 3600
    assert before["faberio_member_waiting_batches" + member] == "0"
    assert b.stop() == 0
    for n in range(5):
        a.json("record", "put", "team", "notes", "new", f"n={n}")
    row = by(a, b)
    assert row["report"] == "known" and row["batches"] == 5
    assert row["reported"].endswith("Z") and row["reported_ms"] > 0
    assert held(a)["batches"] == 5
    after = metrics(a)
    assert after["faberio_member_waiting_batches" + member] == "5"
    assert after[f'faberio_space_waiting_batches{{space="{space}"}}'] == "5"
    # Not gone for long enough to say so.
    checks = a.json("doctor")["checks"]
    assert not [check for check in checks if check["check"] == "held_back"]
    # What is to be done about it.
    a.json("space", "revoke", "team", b.id)
    assert by(a, b) is None
    assert "faberio_member_waiting_batches" + member not in metrics(a)


def test_a_member_that_never_reported(net):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    a.json("space", "create", "team")
    a.json("record", "put", "team", "notes", "new", "n=1")
    b.json("space", "join", a.json("space", "invite", "team")["invite"])
    assert b.stop() == 0
    assert by(a, b) is None  # it only asked to join
    a.json("space", "approve", "team", b.id)
    row = by(a, b)
    assert row == {"node_id": b.id, "report": "none", "batches": 1}
    member = f'node="{b.id}"}}'
    said = {name: value for name, value in metrics(a).items() if name.endswith(member)}
    missing = [value for name, value in said.items() if "report_missing" in name]
    assert missing == ["1"]
    assert not [name for name in said if "age" in name]
    checks = [check for check in a.json("doctor")["checks"] if check["check"] == "held_back"]
    assert len(checks) == 1 and checks[0]["status"] == "warning"
    assert b.id in checks[0]["detail"] and "never" in checks[0]["detail"]
    assert "revoke" in checks[0]["remedy"]
