# SPDX-License-Identifier: Apache-2.0
"""A node as the peer of a vector sees it: what it must make of each message that comes in, and what it
may send. Follows sections 5 and 6 of the messaging profile, and 8 of the draft. It keeps no tables, no
slots and no timers: lists and dictionaries, looked at from the beginning whenever that is simplest."""

import re

from vector_envelope import (ENVELOPE_MAX, TYPES, UNICAST, UUID7_TEXT, Refused, decode, node_id,
                             uuid_bytes)
from vector_signatures import SCHEMES

MS = 1000000
SETTLE_NS = 10_000_000_000  # after so long, what is owed must have come
SHARED_MS = 1000            # an envelope for several peers may be so old when the last one gets it
SYNC, CHANGED, CONFLICT = TYPES


class Wrong(Exception):
    """The vector asks for something that the specification does not."""


def demand(condition, sentence):
    if not condition:
        raise Wrong(sentence)


class Link:
    def __init__(self, external, mono_ns, redo):
        self.external = external
        self.since_ns = mono_ns
        self.received = 0      # numbers up to here have their outcome
        self.waits = []        # for each: what has to be durable before it is acknowledged
        self.acked_out = 0
        self.floor_reset_used = False
        self.offset_us = None
        self.sent = 0          # numbers given
        self.window = {}       # number -> [bytes, was it redelivered, when it left last, how often]
        self.redo = redo       # of an earlier link, to go first: [bytes, until]
        self.answers = {}      # sync id -> (object, acceptance)
        self.publishes = {}    # object -> when, not announced yet


class Node:
    def __init__(self, header):
        self.limits = header["limits"]
        self.verify = SCHEMES[header["signatures"]]
        self.self_id = bytes.fromhex(header["self"]["node_id"])
        self.self_key = bytes.fromhex(header["self"]["public_key"])
        self.peer_id = bytes.fromhex(header["peer"]["node_id"])
        self.peer_key = bytes.fromhex(header["peer"]["public_key"])
        if header["signatures"] == "ed25519":
            demand(node_id(self.self_key) == self.self_id, "self: the id is not that of the key")
            demand(node_id(self.peer_key) == self.peer_id, "peer: the id is not that of the key")
        self.space = uuid_bytes(header["information_space_id"])
        self.state_object = header["state_object_id"]
        self.topics = {name.encode() for name in header["subscriptions"]}
        self.mono_ns = 0
        self.final_since_ns = 0
        self.clocks = []  # (mono_ns, wall_ms) of the lines so far, the last ones
        self.seen = {uuid_bytes(s["id"]): s["timestamp"] for s in header["seen"]}
        self.floor = header["floor_ms"]
        self.begin = (dict(self.seen), self.floor)
        self.accepted = []  # (id, timestamp, floor afterwards), in this and earlier lives
        self.durable = 0    # of them, from the first
        self.ghosts = set()  # forgotten, and the floor went back since
        self.own_ids = set()
        self.links = {}
        self.incarnation = None
        self.running()

    def running(self):
        """What a start forgets."""
        self.links = {}
        self.orphans = []  # what a broken link left: [bytes, until]
        self.batches = {}
        self.tokens = self.limits["rate_burst"] * 1_000_000_000
        self.tokens_at = None

    # ---- Time ----

    def at(self, line):
        mono_ns, wall_ms = int(line["mono_ns"]), line["wall_ms"]
        demand(mono_ns >= self.mono_ns or line["do"] == "start", "the monotonic clock goes back")
        self.mono_ns, self.wall_ms = mono_ns, wall_ms
        self.clocks = [c for c in self.clocks if c[0] > mono_ns - 3_000_000_000][-50:]
        self.clocks.append((mono_ns, wall_ms))

    def clock_is_steady(self):
        shifts = [wall - mono // MS for mono, wall in self.clocks]
        return len(shifts) > 1 and max(shifts) - min(shifts) <= 20

    # ---- Lives ----

    def start(self, line):
        lost = {uuid_bytes(text) for text in line["lost"]}
        waiting = self.accepted[self.durable:]
        kept = [a for a in waiting if a[0] not in lost]
        demand(len(waiting) - len(kept) == len(lost),
               "a start lost an id that was durable, or never accepted")
        demand(waiting[:len(kept)] == kept, "a start lost one id and kept a later one")
        self.accepted = self.accepted[:self.durable] + kept
        self.durable = len(self.accepted)
        self.seen, self.floor = dict(self.begin[0]), self.begin[1]
        if self.accepted:
            self.floor = self.accepted[-1][2]
            self.seen.update((a[0], a[1]) for a in self.accepted)
        self.forget()
        self.mono_ns = int(line["mono_ns"])
        self.clocks = []
        self.incarnation = line["incarnation"]
        self.running()

    def forget(self):
        for name in [n for n, t in self.seen.items() if t <= self.floor]:
            self.ghosts.add(name)
            del self.seen[name]

    # ---- Links ----

    def link_up(self, line):
        demand(line["link"] not in self.links, "a link comes up twice")
        redo, self.orphans = self.orphans, []
        self.links[line["link"]] = Link(line["carrier"] == "external", self.mono_ns, redo)

    def link_down(self, line):
        link = self.links.pop(line["link"])
        until = self.mono_ns + self.limits["redeliver_ms"] * MS
        # Once more, on the next link; after a second break no more (6).
        self.orphans += [[entry[0], until] for number, entry in sorted(link.window.items())
                         if not entry[1]]
        if len(self.links) == 1:  # one link replaced another: the one that stays takes it over (7)
            for other in self.links.values():
                other.redo, self.orphans = other.redo + self.orphans, []

    def other_link(self, line):
        return self.links[line["link"]]

    def clock_offset(self, line):
        self.other_link(line).offset_us = int(line["offset_us"])

    # ---- Receiving: section 5 ----

    def within_rate(self):
        rate, burst = self.limits["rate_per_s"], self.limits["rate_burst"]
        if rate == 0:
            return True
        if self.tokens_at is not None:
            self.tokens = min(burst * 1_000_000_000,
                              self.tokens + (self.mono_ns - self.tokens_at) * rate)
        self.tokens_at = self.mono_ns
        if self.tokens < 1_000_000_000:
            return False
        self.tokens -= 1_000_000_000
        return True

    def judge(self, link, data):
        """(reason or None, was the floor reset, what must be durable before it is acknowledged)."""
        nothing = 0
        try:
            e = decode(data)
        except Refused as refused:
            return str(refused), False, nothing
        if e.space != self.space:
            return "wrong_space", False, nothing
        if e.source != self.peer_id or e.source == self.self_id:
            return "not_origin", False, nothing
        if not self.within_rate():
            return "rate_limited", False, nothing
        if not self.verify(self.peer_key, e.preimage(), e.signature):
            return "bad_signature", False, nothing
        past, future = self.limits["past_ms"], self.limits["future_ms"]
        reset = False
        if e.timestamp < self.wall_ms - past:
            return "stale", False, nothing
        if e.timestamp > self.wall_ms + future:
            return "from_future", False, nothing
        if e.timestamp <= self.floor:
            clocks_agree = (link.offset_us is not None
                            and -past * 1000 <= link.offset_us <= future * 1000)
            if link.floor_reset_used or not clocks_agree:
                return "stale", False, nothing
            link.floor_reset_used = reset = True
            self.floor = self.wall_ms - past - 1
        if e.mode == UNICAST:
            if e.target != self.self_id:
                return "wrong_target", reset, nothing
        elif e.target not in self.topics:
            return "not_subscribed", reset, nothing
        if e.id in self.seen:
            first = [i for i, a in enumerate(self.accepted) if a[0] == e.id]
            return "duplicate", reset, first[-1] + 1 if first else nothing
        self.accept(link, e)
        return None, reset, len(self.accepted)

    def accept(self, link, e):
        self.seen[e.id] = e.timestamp
        highest = max([e.timestamp, *(a[1] for a in self.accepted), *self.begin[0].values()])
        window = self.limits["past_ms"] + self.limits["future_ms"]
        self.floor = max(self.floor, min(highest, self.wall_ms - window))
        if len(self.seen) > self.limits["seen_ids"]:
            self.floor = max(self.floor, min(self.seen.values()))
        self.forget()
        self.accepted.append((e.id, e.timestamp, self.floor))
        if e.message_type == SYNC:
            wanted = e.payload.get("object_id", self.state_object)
            link.answers[e.id] = (wanted, len(self.accepted), self.mono_ns)

    def deliver(self, line):
        link = self.other_link(line)
        if line["number"] != link.received + 1:
            demand(link.external, "a stream's messages have ascending numbers")
            demand(line["verdict"] == "none",
                   f"number {line['number']} is not the next one, {link.received + 1}")
            return
        data = bytes.fromhex(line["envelope"])
        ghost = self.repeats_a_ghost(data)
        reason, reset, waits = self.judge(link, data)
        expected = "accept" if reason is None else "refuse " + reason
        given = line["verdict"] + (" " + line["reason"] if "reason" in line else "")
        if ghost and given == "refuse duplicate" and reason is None:
            # After the floor went back a node may know an old id or not.
            self.accepted.pop()
        else:
            demand(given == expected, f"the verdict must be: {expected}, not: {given}")
        demand(line.get("floor_reset", False) == reset, "the floor is reset, or is not")
        link.received = line["number"]
        link.waits.append(waits)
        self.final_since_ns = self.mono_ns

    def repeats_a_ghost(self, data):
        try:
            return decode(data).id in self.ghosts
        except Refused:
            return False

    def durable_line(self, line):
        self.final_since_ns = self.mono_ns
        if "accepted" in line:
            demand(self.durable <= line["accepted"] <= len(self.accepted), "durable: how many?")
            self.durable = line["accepted"]
        else:
            have = self.batches.get(line["object_id"], 0)
            self.batches[line["object_id"]] = max(have, line["batch"])

    def final(self, link):
        """Up to which number every outcome is final: the greatest acknowledgement there may be."""
        number = 0
        for waits in link.waits:
            if waits > self.durable:
                break
            number += 1
        return number

    def ack_out(self, line):
        link = self.other_link(line)
        demand(line["number"] <= self.final(link),
               f"{line['number']} is acknowledged, final are {self.final(link)}")
        demand(line["number"] > link.acked_out or
               (link.external and line["number"] == link.acked_out),
               "an acknowledgement that says nothing")
        link.acked_out = line["number"]

    # ---- Sending: section 6 ----

    def ack_in(self, line):
        link = self.other_link(line)
        if line["number"] > link.sent:
            return  # of what was never sent: the peer's fault
        gone = [n for n in link.window if n <= line["number"]]
        for number in gone:
            del link.window[number]
        if gone:
            for entry in link.window.values():
                entry[2:] = [self.mono_ns, 0]

    def publish(self, line):
        for link in self.links.values():
            link.publishes[line["object_id"]] = self.mono_ns

    def drop(self, line):
        name = uuid_bytes(line["id"])

        def other(data):
            return decode(data).id != name
        self.orphans = [o for o in self.orphans if other(o[0])]
        for link in self.links.values():
            link.redo = [r for r in link.redo if other(r[0])]
            link.window = {n: e for n, e in link.window.items() if other(e[0])}

    def send(self, line):
        link = self.other_link(line)
        data, number = bytes.fromhex(line["envelope"]), line["number"]
        if number <= link.sent:
            self.send_again(link, number, data)
            return
        demand(number == link.sent + 1, f"{number} is sent, the next number is {link.sent + 1}")
        demand(len(data) <= ENVELOPE_MAX, "an envelope that is too large")
        link.sent = number
        if not link.redo and self.orphans and data == self.orphans[0][0]:
            link.redo, self.orphans = self.orphans, []  # of several links this one stays
        again = bool(link.redo)
        if again:
            first, until = link.redo.pop(0)
            demand(data == first, "what an earlier link left unacknowledged goes first, the same "
                                  "bytes in the same order")
            demand(until > self.mono_ns, "what is older than the time of redelivery is sent")
        else:
            self.fresh(link, data)
        link.window[number] = [data, again, self.mono_ns, 0]
        demand(len(link.window) <= self.limits["window_messages"] and
               sum(len(e[0]) for e in link.window.values()) <= self.limits["window_bytes"],
               "more is on its way than the window holds")

    def send_again(self, link, number, data):
        demand(link.external, "a stream repeats nothing")
        demand(number in link.window, "what was acknowledged is sent again")
        entry = link.window[number]
        demand(entry[0] == data, "a number is sent again with other bytes")
        if number == min(link.window):
            pause = min(self.limits["resend_min_ms"] << entry[3], self.limits["resend_max_ms"])
            demand(self.mono_ns - entry[2] >= pause * MS, f"sent again before {pause} ms passed")
        entry[2:] = [self.mono_ns, entry[3] + 1]

    def fresh(self, link, data):
        try:
            e = decode(data)
        except Refused as refused:
            raise Wrong(f"an envelope is sent that is {refused}") from None
        demand(e.space == self.space, "an envelope of another space is sent")
        demand(e.source == self.self_id, "an envelope of another sender is sent")
        demand(self.verify(self.self_key, e.preimage(), e.signature), "the signature is wrong")
        demand(e.id not in self.own_ids, "a message id is used twice")
        self.own_ids.add(e.id)
        if self.clock_is_steady():
            demand(-SHARED_MS - 50 <= e.timestamp - self.wall_ms <= 50,
                   f"the timestamp is {e.timestamp - self.wall_ms} ms from the clock")
        name = e.payload.get("object_id")
        if e.mode == UNICAST:
            demand(e.target == self.peer_id, "a unicast is for another node")
            if e.message_type == CHANGED:
                demand(e.correlation in link.answers, "a unicast `changed` answers a `sync`")
                wanted, acceptance, _ = link.answers.pop(e.correlation)
                demand(acceptance <= self.durable, "a `sync` is answered before it is durable")
                demand(name == wanted, "the answer names another object than the `sync`")
            return
        demand(e.message_type in (CHANGED, CONFLICT), "a `sync` to a topic")
        topic = "state" if name == self.state_object else "database"
        demand(e.target == b"platform.replication." + topic.encode(),
               f"the topic of this object is {topic}")
        self.own_batch(e.payload)
        link.publishes.pop(name, None)

    def own_batch(self, payload):
        if "batch" not in payload:
            return
        demand(re.fullmatch("[0-9a-f]{16}", payload["incarnation"]), "incarnation: 16 hex digits")
        demand(UUID7_TEXT.match(payload["object_id"]), "object_id")
        demand(payload["incarnation"] == self.incarnation, "a batch of another incarnation")
        demand(int(payload["batch"]) <= self.batches.get(payload["object_id"], 0),
               "a batch is announced before it is durable")

    # ---- The end ----

    def end(self):
        for number, link in self.links.items():
            quiet = self.mono_ns - SETTLE_NS
            if link.since_ns > quiet:
                continue
            room = len(link.window) < self.limits["window_messages"]
            late = [o for o, when in link.publishes.items() if when < quiet and room]
            demand(not late, f"link {number}: never announced: {', '.join(late)}")
            late = [a for a in link.answers.values() if a[2] < quiet and room]
            demand(not late, f"link {number}: a `sync` without its answer")
            demand(not link.redo or not room,
                   f"link {number}: what an earlier link left unacknowledged was never sent again")
            demand(self.final_since_ns > quiet or self.final(link) <= link.acked_out,
                   f"link {number}: {self.final(link)} is final and was never acknowledged")

    def line(self, line):
        """One line of a vector after its header."""
        if "do" in line:
            if line["do"] != "start":
                self.at(line)
            verbs = {"start": self.start, "tick": lambda _: None, "link_up": self.link_up,
                     "link_down": self.link_down, "clock_offset": self.clock_offset,
                     "deliver": self.deliver, "ack": self.ack_in, "durable": self.durable_line,
                     "publish": self.publish}
            verb = line["do"]
        else:
            verbs = {"send": self.send, "ack": self.ack_out, "drop": self.drop}
            verb = line["out"]
        demand(verb in verbs, f"no such line: {verb}")
        verbs[verb](line)
