# SPDX-License-Identifier: Apache-2.0
"""What passed between two nodes, from the receiver's side: the messages of the vectors of the messaging
channel, each at its moment, to a receiver without links (the adapter's `session`). What the node
sends of its own is in the bytes of those who were recorded; suite_nodes.py holds a node to the rules
for that.

A vector is played up to a crash that lost something, as a session forgets nothing."""
import json

from suite_check import Check, expect

REQUIREMENTS = ("FM-8.1-4", "MP-5-3", "MP-5-8", "MP-5-9", "MP-5-10", "MP-5-16", "MP-5-17")


def load(folder):
    """Vectors, each its lines; the first one is its header."""
    vectors = []
    for line in (folder / "messaging.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "vector" in row:
            if row["format"] != "faberio-messaging-vectors 1":
                raise ValueError(f"messaging: another format, {row['format']}")
            vectors.append([])
        vectors[-1].append(row)
    return vectors


def context_of(header, now_ms):
    limits, peer = header["limits"], header["peer"]["node_id"]
    floors = [{"source": peer, "timestamp": header["floor_ms"]}] if header["floor_ms"] else []
    members = [{"public_key": header[who]["public_key"], "status": "approved"} for who in ("self", "peer")]
    return {"self": header["self"]["node_id"], "space": header["information_space_id"], "peer": peer,
            "now_ms": now_ms, "members": members, "subscriptions": header["subscriptions"],
            "seen": [{"source": peer} | one for one in header["seen"]], "floors": floors,
            } | {name: limits[name] for name in ("past_ms", "future_ms", "seen_ids", "rate_per_s",
                                                 "rate_burst")}


def steps_of(lines, peer):
    """The lines that a session has words for: (moment, step). Its monotonic clock never goes back."""
    lives, began, measured = 0, 0, set()
    for line in lines:
        moment = int(line["mono_ns"]) if "mono_ns" in line else None
        match line.get("do"):
            case "start":
                if line["lost"]:
                    return
                lives, began = lives + 1, moment - (10**13 * lives)
                measured = set()
            case "link_up":
                yield line, moment - began, {"do": "link", "peer": peer}
            case "clock_offset" if line["link"] not in measured:
                measured.add(line["link"])
                yield line, moment - began, {"do": "link", "peer": peer,
                                             "offset_ms": round(int(line["offset_us"]) / 1000)}
            case "deliver" if line["verdict"] != "none":
                yield line, moment - began, {"do": "deliver", "encoding": "protobuf",
                                             "input": line["envelope"]}


def one_vector(lines):
    header = lines[0]

    def run(adapter):
        context = context_of(header, lines[1]["wall_ms"])
        adapter.ask({"op": "session", "do": "open", "context": context})
        for line, mono_ns, step in steps_of(lines[1:], header["peer"]["node_id"]):
            adapter.ask({"op": "session", "do": "clock", "now_ms": line["wall_ms"],
                         "mono_ms": mono_ns // 10**6})
            answer = adapter.ask({"op": "session"} | step)
            if step["do"] != "deliver":
                continue
            where = f"link {line['link']}, number {line['number']}"
            found, expected = [(one.get("verdict"), one.get("reason")) for one in (answer, line)]
            expect(found == expected, f"{where}: {found}, expected {expected}")
            expect(answer.get("floor_reset", False) == line.get("floor_reset", False),
                   f"{where}: the floor was set back, or was not")
    return Check("messaging/" + header["vector"], REQUIREMENTS, "session", run)


def checks(folder):
    for lines in load(folder):
        if any(line.get("do") == "deliver" for line in lines):
            yield one_vector(lines)
