# SPDX-License-Identifier: Apache-2.0
"""A node by sections 5 and 6 of the messaging profile, as the conformance adapter shows one: messages of
its peers come in, its own go out, time is what it is told. Nothing else of a node is here."""
import dataclasses
import json

import envelope_model as model
from envelope_model import Refused
from receiver_model import Receiver

RESEND_MIN_MS, RESEND_MAX_MS, REDELIVER_MS = 400, 5000, 60000
WINDOW_MESSAGES, WINDOW_BYTES = 64, 262144
BUDGET = 10  # bad messages of a link; a second takes one back
HONEST = ("unknown_sender", "revoked", "stale", "from_future", "wrong_target", "not_subscribed",
          "duplicate")
DATABASE, STATE = b"platform.replication.database", b"platform.replication.state"
SYNC, CHANGED, _ = model.TYPES


@dataclasses.dataclass
class Sent:
    """What is under way on a link."""
    data: bytes
    redelivered: bool


class Link:
    def __init__(self, peer, offset_ms):
        self.peer = peer
        self.offset_ms = offset_ms
        self.received = 0
        self.finals = []        # of each message: how many acceptances must be durable first
        self.acked_out = 0
        self.sent = 0           # numbers given
        self.window = {}        # number -> Sent
        self.redo = []          # Sent, until
        self.waiting = {}       # objects to announce, in order
        self.answers = []       # (sync id, object id, acceptances)
        self.resend_at = None
        self.backoff_ms = RESEND_MIN_MS
        self.bad = []  # when a bad message came

    def room(self):
        # As if each message were as long as one may be.
        used = sum(len(sent.data) for sent in self.window.values())
        return len(self.window) < WINDOW_MESSAGES and used + 512 <= WINDOW_BYTES


class Node:
    def __init__(self, seed, wall_ms, peers, limits):
        self.seed = seed
        self.key = model.public_key_of(seed)
        self.node_id = model.node_id_of(self.key)
        self.mono_ms, self.wall_ms = 0, wall_ms
        self.space = self.new_id()
        self.state_object = self.new_id()
        members = [{"public_key": self.key.hex(), "status": "approved"}]
        members += [{"public_key": model.public_key_of(bytes.fromhex(peer["seed"])).hex(),
                     "status": peer["status"]} for peer in peers]
        self.context = {
            "self": self.node_id.hex(), "space": model.uuid_text(self.space), "now_ms": wall_ms,
            "members": members, "subscriptions": [DATABASE.decode(), STATE.decode()]} | limits
        self.receiver = Receiver(self.context)
        self.approved = {model.node_id_of(bytes.fromhex(member["public_key"]))
                         for member in members if member["status"] == "approved"}
        self.held = False      # the disk answers nothing
        self.written = []      # objects whose writes it holds
        self.accepted = []     # (peer, id, timestamp, floor afterwards)
        self.durable = 0
        self.links = {}
        self.numbers = 0       # of links
        self.orphans = {}      # peer -> what a broken link left: (Sent, until)
        self.out = []

    # ---- Ids ----

    ids = 0

    def new_id(self):
        """Version 7; each greater than the one before, whatever the clock does."""
        Node.ids += 1
        raw = max(self.wall_ms, 0).to_bytes(6, "big") + b"\x70\x00" + bytes([0x80]) + \
            Node.ids.to_bytes(7, "big")
        self.last_id = max(getattr(self, "last_id", raw), raw)
        if self.last_id != raw:
            raw = self.last_id[:8] + raw[8:]
            self.last_id = raw
        return raw

    # ---- What happens ----

    def take_out(self):
        out, self.out = self.out, []
        return out

    def say(self, kind, **members):
        self.out.append({"out": kind, "at_ms": self.mono_ms} | members)

    def clock(self, wall_ms):
        self.wall_ms = wall_ms

    def tick(self, ms):
        end = self.mono_ms + ms
        while True:
            due = [link.resend_at for link in self.links.values() if link.resend_at is not None]
            at = min([t for t in due if t <= end], default=None)
            if at is None:
                break
            self.advance(at)
            for number, link in self.links.items():
                if link.resend_at is not None and link.resend_at <= self.mono_ms:
                    self.resend(number, link)
        self.advance(end)
        self.flush()

    def advance(self, to_ms):
        self.wall_ms += to_ms - self.mono_ms
        self.mono_ms = to_ms

    def link_up(self, peer, offset_ms):
        self.numbers += 1
        link = Link(peer, offset_ms)
        link.redo = self.orphans.pop(peer, [])
        self.links[self.numbers] = link
        self.receiver.link(peer.hex(), offset_ms)
        self.flush()
        return self.numbers

    def link_down(self, number):
        link = self.links.pop(number)
        until = self.mono_ms + REDELIVER_MS
        kept = [(sent, until) for _, sent in sorted(link.window.items())]
        for sent, _ in kept:
            if sent.redelivered:
                self.drop(sent)
        left = [one for one in kept if not one[0].redelivered] + link.redo
        if left:
            self.orphans[link.peer] = left

    def drop(self, sent):
        self.say("drop", id=model.uuid_text(model.decode_protobuf(sent.data).id))

    def restart(self):
        """What is durable stays; links, windows and buckets are gone."""
        self.accepted = self.accepted[:self.durable]
        links = [(link.peer, link.offset_ms) for link in self.links.values()]
        self.links, self.orphans, self.held, self.written = {}, {}, False, []
        self.receiver = Receiver(self.context)
        for peer, name, timestamp, floor in self.accepted:
            sender = self.receiver.sender(peer)
            sender.seen[name] = timestamp
            sender.highest = max(timestamp, sender.highest or timestamp)
            sender.floor = floor
        for peer in {one[0] for one in self.accepted}:
            sender = self.receiver.sender(peer)
            sender.seen = {n: t for n, t in sender.seen.items() if t > sender.floor}
        return links

    def disk(self, hold):
        self.held = hold
        if not hold:
            self.durable = len(self.accepted)
            written, self.written = self.written, []
            for object_id in written:
                self.publish(object_id)
        self.flush()

    # ---- Receiving ----

    def deliver(self, number, message, data):
        """(verdict, reason, floor reset)"""
        link = self.links[number]
        if message != link.received + 1:
            if message <= link.received:
                self.acknowledge(number, link, again=True)
            return "none", None, False
        link.received = message
        before = len(self.accepted)
        self.receiver.peer, self.receiver.offset_ms = link.peer, link.offset_ms
        self.receiver.clock(self.wall_ms, self.mono_ms)
        try:
            e = self.receiver.deliver("protobuf", data)
            verdict, reason = "accept", None
            floor = self.receiver.sender(link.peer).floor
            self.accepted.append((link.peer, e.id, e.timestamp, floor))
            link.finals.append(len(self.accepted))
            if not self.held:
                self.durable = len(self.accepted)
            if e.message_type == SYNC:
                wanted = json.loads(e.payload).get("object_id", model.uuid_text(self.state_object))
                link.answers.append((e.id, wanted, len(self.accepted)))
        except Refused as refused:
            verdict, reason = "refuse", refused.reason
            # A repetition is final when what it repeats is durable.
            link.finals.append(before if reason in ("duplicate", "stale") else 0)
            self.misbehaved(number, link, reason)
        self.flush()
        return verdict, reason, self.receiver.floor_reset

    def misbehaved(self, number, link, reason):
        if reason in HONEST:
            return
        link.bad = [at for at in link.bad if at > self.mono_ms - BUDGET * 1000] + [self.mono_ms]
        if len(link.bad) > BUDGET:
            self.say("close", link=number)
            self.link_down(number)

    def acknowledge(self, number, link, again=False):
        final = 0
        for needed in link.finals:
            if needed > self.durable:
                break
            final += 1
        if final > link.acked_out or (again and final > 0):
            link.acked_out = final
            self.say("ack", link=number, number=final)

    # ---- Sending ----

    def publish(self, object_id):
        for link in self.links.values():
            if link.peer in self.approved:
                link.waiting[object_id] = None
        self.flush()

    def write(self):
        """An application writes a record; only the object it is in is told, and not before it is durable."""
        self.collection = getattr(self, "collection", None) or model.uuid_text(self.new_id())
        if self.held:
            self.written.append(self.collection)
        else:
            self.publish(self.collection)
        return self.collection

    def ack(self, number, message):
        link = self.links[number]
        gone = [n for n in link.window if n <= message]
        for n in gone:
            del link.window[n]
        if gone:
            link.backoff_ms = RESEND_MIN_MS
            link.resend_at = self.mono_ms + link.backoff_ms if link.window else None
        self.flush()

    def flush(self):
        for number, link in self.links.items():
            self.acknowledge(number, link)
            while link.room():
                sent = self.next_message(link)
                if sent is None:
                    break
                link.sent += 1
                link.window[link.sent] = sent
                self.say("send", link=number, number=link.sent, envelope=sent.data.hex())
                if link.resend_at is None:
                    link.resend_at = self.mono_ms + link.backoff_ms

    def next_message(self, link):
        while link.redo:
            sent, until = link.redo.pop(0)
            if until > self.mono_ms:
                return Sent(sent.data, True)
            self.drop(sent)
        for at, (sync, wanted, needed) in enumerate(link.answers):
            if needed <= self.durable:
                del link.answers[at]
                return self.compose(wanted, delivery_mode=model.MODES["unicast"], target=link.peer,
                                    correlation_id=sync)
        if not link.waiting:
            return None
        object_id = next(iter(link.waiting))
        del link.waiting[object_id]
        state = object_id == model.uuid_text(self.state_object)
        return self.compose(object_id, delivery_mode=model.MODES["topic"],
                            target=STATE if state else DATABASE)

    def compose(self, object_id, **fields):
        e = model.Envelope(
            id=self.new_id(), information_space_id=self.space, source_node_id=self.node_id,
            message_type=CHANGED, payload=json.dumps({"object_id": object_id}).encode(),
            timestamp=self.wall_ms, **fields)
        return Sent(model.encode_protobuf(e.signed(self.seed)), False)

    def resend(self, number, link):
        for n, sent in sorted(link.window.items()):
            self.say("send", link=number, number=n, envelope=sent.data.hex())
        link.backoff_ms = min(2 * link.backoff_ms, RESEND_MAX_MS)
        link.resend_at = self.mono_ms + link.backoff_ms if link.window else None
