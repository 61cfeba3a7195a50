# SPDX-License-Identifier: Apache-2.0
"""Three processes on loopback that share a space: writes, kill -9, cut links, one final state."""
import json

import pytest

from node import eventually

COLLECTION = "notes"


def listing(node, collection=COLLECTION):
    return node.call("record", "list", "team", collection, "--json")


def put(node, *fields, record="new", collection=COLLECTION):
    return node.json("record", "put", "team", collection, record, *fields)


def members(node):
    return node.json("space", "members", "team")["members"]


def approved(node):
    return lambda: [s["status"] for s in node.rows("space", "list")]


class Team:
    """A space of three; every node is dialled through a relay of its own."""

    def __init__(self, net):
        self.net = net
        self.nodes = [net.node(name) for name in ("a", "b", "c")]
        self.relays = []
        for node in self.nodes:
            node.init()
            relay = net.relay(node)
            self.relays.append(relay)
            node.options = ("--advertise", relay.address)
            node.start(*node.options)
        a = self.nodes[0]
        self.space = a.json("space", "create", "team")["space_id"]
        invite = a.json("space", "invite", "team", "--uses", "2")["invite"]
        for node in self.nodes[1:]:
            joined = node.json("space", "join", invite)
            assert joined == {"space_id": self.space, "status": "pending"}
            a.json("space", "approve", "team", node.id)
            eventually(approved(node), lambda status: status == ["approved"])
        for node in self.nodes:
            eventually(lambda node=node: members(node), lambda rows: len(rows) == 3)

    def converged(self, ids):
        """Waits until every node has named each of these records, then compares everything."""
        for node in self.nodes:
            with node.watch("team", "--since", "0") as watch:
                watch.until(ids)
        lists = {listing(node) for node in self.nodes}
        assert len(lists) == 1
        return [json.loads(line) for line in lists.pop().splitlines()]


@pytest.fixture
def team(net):
    return Team(net)


def test_writes_on_each_are_read_on_the_others(team):
    # FM-3.6-2, FM-4.1-10
    a, b, c = team.nodes
    with a.watch("team") as seen_a, b.watch("team") as seen_b, c.watch("team") as seen_c:
        written = {}
        for node in team.nodes:
            for i in range(5):
                record = put(node, f"n={i}", f'by="{node.id}"')
                written[record["id"]] = record
        for watch in (seen_a, seen_b, seen_c):
            watch.until(written)
    final = team.converged(written)
    assert {r["id"]: r for r in final} == written
    assert [r["id"] for r in final] == sorted(written)
    for node in team.nodes:
        rows = members(node)
        assert {m["node_id"]: (m["status"], m["role"]) for m in rows} == {
            a.id: ("approved", "admin"), b.id: ("approved", "writer"),
            c.id: ("approved", "writer")}
        space, = node.json("status")["spaces"]
        assert space["space_id"] == team.space and space["name"] == "team"


def test_records_one_by_one(team):
    a, b, _ = team.nodes
    with b.watch("team") as seen:
        made = put(a, "title=\"first\"", "n=1.50", "list=[1, 2]")
        assert made["fields"] == {"title": "first", "n": 1.5, "list": [1, 2]}
        assert made["conflicts"] == {}
        assert '"n":1.50' in a.call("record", "get", "team", COLLECTION, made["id"], "--json")
        assert a.json("record", "get", "team", COLLECTION, made["id"]) == made
        first = seen.next()
        assert (first["id"], first["change"], first["collection"]) == (
            made["id"], "changed", COLLECTION)
        assert b.json("record", "get", "team", COLLECTION, made["id"]) == made

        changed = put(b, "n=2", record=made["id"])
        assert changed["fields"] == {"title": "first", "n": 2, "list": [1, 2]}
        assert changed["etag"] != made["etag"]
        code, err = a.refused("record", "put", "team", COLLECTION, made["id"], "n=3",
                              "--if-match", "0" * 32)
        assert code == 5, err
        code, err = a.refused("record", "put", "team", COLLECTION, made["id"], "n=3",
                              "--if-absent")
        assert code == 5, err
        assert seen.next()["id"] == made["id"]
        replaced = b.json("record", "put", "team", COLLECTION, made["id"], "only=true",
                          "--replace", "--if-match", changed["etag"])
        assert replaced["fields"] == {"only": True}
        assert seen.next()["id"] == made["id"]
        b.call("record", "delete", "team", COLLECTION, made["id"])
        assert seen.next()["change"] == "deleted"
    assert b.refused("record", "get", "team", COLLECTION, made["id"])[0] == 1
    assert b.refused("record", "delete", "team", COLLECTION, made["id"])[0] == 1
    assert listing(b) == ""
    with a.watch("team", "--since", "0") as watch:
        while watch.next()["change"] != "deleted":
            pass
    assert a.refused("record", "get", "team", COLLECTION, made["id"])[0] == 1


def test_lists_go_on_where_they_stopped(team):
    a = team.nodes[0]
    ids = sorted(put(a, f"n={i}")["id"] for i in range(9))
    rows = a.rows("record", "list", "team", COLLECTION, "--limit", "4")
    assert [r["id"] for r in rows] == ids[:4]
    rows = a.rows("record", "list", "team", COLLECTION, "--after", ids[3])
    assert [r["id"] for r in rows] == ids[4:]
    assert a.rows("record", "list", "team", "nothing here") == []


def test_a_watch_goes_on_from_its_cursor(team):
    a, b, _ = team.nodes
    ids = [put(a, f"n={i}")["id"] for i in range(6)]
    with b.watch("team", "--since", "0") as watch:
        events = [watch.next() for _ in ids]
    assert sorted(e["id"] for e in events) == sorted(ids)
    cursors = [int(e["cursor"].split("-")[0]) for e in events]
    assert cursors == sorted(set(cursors))
    with b.watch("team", "--since", events[2]["cursor"]) as watch:
        assert [watch.next() for _ in events[3:]] == events[3:]


def test_two_writers_of_one_field_conflict_and_agree(team):
    # FM-5.2-4, FI-2-8
    a, b, _ = team.nodes
    made = put(a, "title=\"start\"")
    team.converged([made["id"]])
    for relay in team.relays:
        relay.cut()
    for node in team.nodes:
        eventually(lambda node=node: node.json("status")["links"], lambda links: links == 0)
    put(a, "title=\"from a\"", record=made["id"])
    put(b, "title=\"from b\"", record=made["id"])
    for relay in team.relays:
        relay.heal()

    def shown():
        return [node.json("record", "get", "team", COLLECTION, made["id"]) for node in team.nodes]

    records = eventually(shown, lambda rows: all(len(r["conflicts"].get("title", [])) == 1
                                                 for r in rows))
    assert len({json.dumps(r, sort_keys=True) for r in records}) == 1
    values = {records[0]["fields"]["title"], records[0]["conflicts"]["title"][0]["value"]}
    assert values == {"from a", "from b"}
    put(b, "title=\"settled\"", record=made["id"])
    records = eventually(shown, lambda rows: all(not r["conflicts"] for r in rows))
    assert {r["fields"]["title"] for r in records} == {"settled"}


def test_conflicts_are_listed_and_settled(team):
    # FI-2-8
    a, b, _ = team.nodes
    made = [put(a, "x=0", "y=0", "z=0", "w=0", "n=0"), put(a, "x=0")]
    ids = [m["id"] for m in made]
    team.converged(ids)
    assert a.rows("conflicts", "list", "team") == []
    for relay in team.relays:
        relay.cut()
    for node in team.nodes:
        eventually(lambda node=node: node.json("status")["links"], lambda links: links == 0)
    put(a, 'x="a"', 'y="a"', 'z="a"', 'w="a"', "n+=1", 's:+="a"', record=ids[0])
    put(b, 'x="b"', 'y="b"', 'z="b"', 'w="b"', "n+=2", 's:+="b"', record=ids[0])
    put(a, "x=1", record=ids[1])
    put(b, "x=2", record=ids[1])
    for relay in team.relays:
        relay.heal()
    rows = eventually(lambda: a.rows("conflicts", "list", "team"), lambda rows: len(rows) == 5)
    eventually(lambda: b.rows("conflicts", "list", "team"), lambda there: there == rows)
    items = {(r["id"], r["field"]): r["item"] for r in rows}
    assert set(items) == {(ids[0], f) for f in "wxyz"} | {(ids[1], "x")}
    for row in rows:
        assert row["item"] == f"{COLLECTION}/{row['id']}/{row['field']}"
        assert len(row["others"]) == 1
        assert {row["node_id"], row["others"][0]["node_id"]} == {a.id, b.id}
    record = a.json("record", "get", "team", COLLECTION, ids[0])
    assert record["fields"]["n"] == 3 and sorted(record["fields"]["s"]) == ["a", "b"]

    def settle(node, record, field, keep):
        return node.json("conflicts", "resolve", "team", items[record, field], "--keep", keep)

    assert settle(a, ids[0], "x", "mine")["fields"]["x"] == "a"
    assert settle(a, ids[0], "y", "theirs")["fields"]["y"] == "b"
    assert sorted(settle(a, ids[0], "z", "both")["fields"]["z"]) == ["a", "b"]
    assert settle(a, ids[0], "w", '{"by": "hand"}')["fields"]["w"] == {"by": "hand"}
    row, = eventually(lambda: b.rows("conflicts", "list", "team"), lambda rows: len(rows) == 1)
    assert row["id"] == ids[1]
    for argument, code, why in [
            (items[ids[0], "x"], 1, "no conflict"),
            (f"{COLLECTION}/{ids[0]}/none", 1, "no conflict"), (COLLECTION, 2, "COLLECTION/ID"),
            (f"{COLLECTION}/{ids[0]}", 2, "COLLECTION/ID"), (f"/{ids[0]}/x", 2, "COLLECTION/ID"),
            (f"no such/{ids[0]}/x", 1, "absent")]:
        got, err = b.refused("conflicts", "resolve", "team", argument, "--keep", "mine")
        assert got == code and why in err, (argument, got, err)
    assert b.refused("conflicts", "resolve", "team", row["item"])[0] == 2
    assert b.refused("conflicts", "resolve", "team", row["item"], "--keep", "hers")[0] == 2
    assert settle(b, ids[1], "x", "mine")["fields"]["x"] == 2
    eventually(lambda: a.rows("conflicts", "list", "team"), lambda rows: rows == [])


def test_killed_and_started_again(team):
    a, b, c = team.nodes
    ids = [put(node, "round=0")["id"] for node in team.nodes]
    for round_number, victim in enumerate((b, c, a), start=1):
        victim.kill()
        ids += [put(node, f"round={round_number}")["id"]
                for node in team.nodes if node is not victim]
        victim.start(*victim.options)
        ids.append(put(victim, f"round={round_number}")["id"])
        final = team.converged(ids)
        assert {r["id"] for r in final} == set(ids)


def test_acknowledged_writes_survive_kill(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    ids = []
    for i in range(10):
        ids.append(put(node, f"n={i}")["id"])
        node.kill()
        node.start()
    assert [r["id"] for r in node.rows("record", "list", "team", COLLECTION)] == sorted(ids)


def test_cut_links_heal(team):
    # FI-2-6
    a, b, c = team.nodes
    ids = []
    for relay in team.relays:
        relay.cut()
    for node in team.nodes:
        eventually(lambda node=node: node.json("status")["links"], lambda links: links == 0)
    for node in team.nodes:
        ids += [put(node, f"n={i}", f'by="{node.id}"')["id"] for i in range(10)]
        assert len(node.rows("record", "list", "team", COLLECTION)) == 10
    for relay in team.relays:
        relay.heal()
    assert {r["id"] for r in team.converged(ids)} == set(ids)
    # What c writes reaches a over b alone, as b may relay but not forge.
    team.relays[0].cut()
    ids.append(put(c, "late=true")["id"])
    team.relays[0].heal()
    team.converged(ids)


def test_all_killed_at_once(team):
    ids = [put(node, f"n={i}")["id"] for node in team.nodes for i in range(5)]
    for node in team.nodes:
        node.kill()
    for node in team.nodes:
        node.start(*node.options)
    final = team.converged(ids)
    assert {r["id"] for r in final} == set(ids)
    assert all(node.stop() == 0 for node in team.nodes)


def test_joining_is_asked_and_approved(net):
    # FI-2-4
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.init()
        node.start()
    space = a.json("space", "create", "team")
    code, err = a.refused("space", "approve", "team", b.id)
    assert code == 5 and "has not asked" in err
    invite = a.call("space", "invite", "team", "--for", "1h").strip()
    assert b.json("space", "join", "-", stdin=invite + "\n")["status"] == "pending"
    pending = {m["node_id"]: m["status"] for m in members(a)}
    assert pending == {a.id: "approved", b.id: "pending"}
    code, err = b.refused("record", "put", "team", COLLECTION, "new", "n=1")
    assert code != 0 and err
    assert a.json("space", "approve", "team", b.id, "--role", "reader")["role"] == "reader"
    eventually(approved(b), lambda status: status == ["approved"])
    code, err = b.refused("record", "put", "team", COLLECTION, "new", "n=1")
    assert code in (1, 4), err
    # Once more is no error; another node finds the invite used up.
    assert b.json("space", "join", invite) == {"space_id": space["space_id"],
                                               "status": "approved"}
    for wrong in ("nonsense", invite[:-4], "fbinvite1." + "A" * 200):
        code, err = b.refused("space", "join", wrong)
        assert code == 2 and "not a whole invite" in err, err


def test_applications_use_only_what_they_are_allowed(net):
    # FM-1-1, FM-10-1, FM-10-2, FM-11-5, FM-11-8, MP-6-13
    node = net.node("a")
    node.init()
    node.start("--api", "127.0.0.1:0")
    node.json("space", "create", "team")
    node.json("space", "create", "other")
    token = node.json("app", "create", "editor")["token"]
    code, _ = node.refused("app", "create", "editor")
    assert code == 5
    as_app = {**node.env, "FABERIO_TOKEN": token}
    assert node.refused("record", "put", "team", COLLECTION, "new", "n=1", env=as_app)[0] == 4
    node.call("app", "allow", "editor", "team")
    made = node.json("record", "put", "team", COLLECTION, "new", "n=1", env=as_app)
    assert node.json("record", "get", "team", COLLECTION, made["id"], env=as_app) == made
    for args in (("record", "list", "other", COLLECTION), ("record", "list", "nowhere", COLLECTION),
                 ("space", "list"), ("status",), ("app", "create", "another"),
                 ("space", "members", "team"), ("record", "watch", "other")):
        assert node.refused(*args, env=as_app)[0] == 4, args

    # Of a space it may not use it learns nothing, whether there is one or not.
    for space in ("other", "01890000-0000-7000-8000-000000000001"):
        code, said = node.refused("conflicts", "list", space, env=as_app)
        assert code == 4 and "not found" not in said

    def port():
        return node.http_port(f"GET /v1/spaces/team/collections/{COLLECTION}/records/{made['id']} "
                              f"HTTP/1.1\r\nHost: {node.api}\r\nConnection: close\r\n"
                              f"Authorization: Bearer {token}\r\n\r\n").split()[1]

    assert port() == "200"
    node.kill()
    node.start("--api", node.api)
    assert port() == "200"
    node.call("app", "revoke", "editor")
    assert port() == "401"
    assert node.refused("record", "get", "team", COLLECTION, made["id"], env=as_app)[0] == 4


def test_http_records(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")
    base = "/v1/spaces/team/collections/notes/records"

    def ask(method, path, body=None, *headers):
        text = "" if body is None else json.dumps(body)
        lines = "".join(f"{h}\r\n" for h in headers)
        answer = node.http(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                           f"Content-Length: {len(text)}\r\n{lines}\r\n{text}")
        head, _, rest = answer.partition("\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        return int(head.split()[1]), fields, json.loads(rest)

    status, head, made = ask("PUT", f"{base}/new", {"a": 1, "b": "x"})
    assert status == 201 and head["ETag"] == f'"{made["etag"]}"'
    assert head["Location"] == made["id"]
    record = f"{base}/{made['id']}"
    assert ask("GET", record)[2] == made
    status, head, changed = ask("PATCH", record, {"b": {"$unset": True}, "c": None})
    assert status == 200 and changed["fields"] == {"a": 1, "c": None}
    assert ask("PUT", record, {"a": 2}, f'If-Match: "{made["etag"]}"')[0] == 412
    assert ask("PUT", record, {"a": 2}, "If-None-Match: *")[0] == 412
    # White space around the value of a header is none of it.
    assert ask("PUT", record, {"a": 2}, f'If-Match: "{changed["etag"]}" \t')[0] == 200
    # To an application without rights a space that is there is no other one than any.
    token = node.json("app", "create", "outside")["token"]
    for tag in ('"another"', f'"{changed["etag"]}"'):
        for space in ("team", "nowhere"):
            path = f"/v1/spaces/{space}/collections/notes/records/{made['id']}"
            assert ask("PUT", path, {"a": 3}, f"If-Match: {tag}",
                       f"Authorization: Bearer {token}")[0] == 403
    for tag in ('"another"', f'W/"{changed["etag"]}"'):
        assert ask("PUT", record, {"a": 2}, f"If-Match: {tag}")[0] == 412
    for headers in (('If-Match: nonsense',), ('If-None-Match: "x"',),
                    ('If-Match: "' + "0" * 32 + '"', "If-None-Match: *")):
        assert ask("PUT", record, {"a": 2}, *headers)[0] == 400
    assert ask("PATCH", record, {"n": {"$fly": 1}})[0] == 501
    assert ask("PATCH", record, {"n": {"$add": "1"}})[0] == 400
    assert ask("PATCH", record, {"a": {"$insert": 1}})[0] == 409
    assert ask("PATCH", record, {"n" * 300: 1})[0] == 413
    assert ask("PATCH", record, {"n": "x" * 60000})[0] == 413
    assert ask("PUT", f"{base}/not-a-uuid", {"a": 1})[0] == 400
    assert ask("GET", f"{base}/01900000-0000-7000-8000-000000000000")[0] == 404
    assert ask("GET", "/v1/spaces/nowhere/members")[0] == 404
    status, _, problem = ask("PUT", f"{base}/new", [1])
    assert status == 400 and "line 1" in problem["detail"]
    status, _, listed = ask("GET", f"{base}?limit=10")
    assert [r["fields"] for r in listed["records"]] == [{"a": 2}] and listed["next"] is None
    assert ask("GET", f"{base}?limit=0")[0] == 400
    assert ask("DELETE", record)[0] == 200
    assert ask("DELETE", record)[0] == 404
    assert ask("GET", record)[0] == 404


def test_http_batches_are_all_or_none(net):
    node = net.node("a")
    node.init()
    node.start()
    node.json("space", "create", "team")

    def post(changes):
        text = json.dumps({"changes": changes})
        answer = node.http(f"POST /v1/spaces/team/collections/{COLLECTION}/records:batch HTTP/1.1"
                           f"\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(text)}\r\n"
                           f"\r\n{text}")
        head, _, rest = answer.partition("\r\n\r\n")
        return int(head.split()[1]), json.loads(rest)

    status, done = post([{"id": "new", "fields": {"n": i}} for i in range(5)])
    assert status == 200, done
    ids = [c["id"] for c in done["changes"]]
    assert len(set(ids)) == 5 and all(c["created"] for c in done["changes"])
    rows = node.rows("record", "list", "team", COLLECTION)
    assert {r["id"]: (r["etag"], r["fields"]) for r in rows} == {
        c["id"]: (c["etag"], {"n": i}) for i, c in enumerate(done["changes"])}

    before = listing(node)
    gone = "01900000-0000-7000-8000-000000000000"
    for wrong, code in (([{"id": ids[0], "fields": {"n": 9}}, {"id": gone, "delete": True}], 404),
                        ([{"id": ids[0], "fields": {"n": 9}}, {"id": "x", "fields": {}}], 400),
                        ([{"id": ids[0], "fields": {"n": 9}}, {"id": ids[1]}], 400),
                        ([{"id": ids[0], "fields": {"n": 9}, "delete": True}], 400), ([], 400)):
        status, problem = post(wrong)
        assert status == code, (wrong, problem)
        assert listing(node) == before
    status, problem = post([{"id": ids[0], "fields": {"n": 9}}, {"id": "new", "fields": {"": 1}}])
    assert status == 413 and problem["detail"].startswith("changes[1]: field")
    status, done = post([{"id": ids[0], "delete": True}, {"id": ids[1], "fields": {"m": 1.1}}])
    assert status == 200, done
    assert '"m":1.1,' in listing(node)  # as it was written
    fields = {r["id"]: r["fields"] for r in node.rows("record", "list", "team", COLLECTION)}
    assert ids[0] not in fields and fields[ids[1]] == {"n": 1, "m": 1.1}


def test_large_values_replicate(team):
    a, b, _ = team.nodes
    ids = []
    for size in (1000, 20000, 40000, 49000):
        ids.append(put(a, f'text="{"x" * size}"')["id"])
    many = put(a, *[f"field{i}={i}" for i in range(200)])
    ids.append(many["id"])
    final = {r["id"]: r for r in team.converged(ids)}
    assert final[many["id"]] == many
    assert sorted(len(r["fields"].get("text", "")) for r in final.values()) == [
        0, 1000, 20000, 40000, 49000]
    code, err = b.refused("record", "put", "team", COLLECTION, "new", f'text="{"x" * 60000}"')
    assert code == 1 and "field text" in err


@pytest.mark.parametrize("listen, host", [("[::1]:0", "[::1]"), (":0", "127.0.0.1"),
                                          ("127.0.0.1:0", "localhost")])
def test_addresses_of_every_kind(net, listen, host):
    a, b = net.node("a"), net.node("b")
    for node in (a, b):
        node.port = listen
        node.init()
        node.start()
    a.json("space", "create", "team")
    if listen == ":0":
        code, err = a.refused("space", "invite", "team")
        assert code == 2 and "where can this node be dialled" in err
    address = f"{host}:{a.listen.rsplit(':', 1)[1]}"
    invite = a.json("space", "invite", "team", "--address", address)["invite"]
    b.json("space", "join", invite)
    a.json("space", "approve", "team", b.id)
    record = put(a, "n=1")["id"]
    with b.watch("team", "--since", "0") as watch:
        watch.until([record])
    peer, = b.json("peers")["peers"]
    assert peer["node_id"] == a.id and peer["state"] == "open" and peer["address"] == address
