# SPDX-License-Identifier: Apache-2.0
"""A receiver by section 5 of the messaging profile: what one node makes of the messages of its peers
in one space, with what it saw before. Lists and dictionaries; every rule is looked up anew each time."""
import dataclasses

import envelope_model
from envelope_model import Refused

PAST_MS, FUTURE_MS = 900000, 300000


@dataclasses.dataclass
class Sender:
    """What is remembered of one sender."""
    floor: int = 0
    highest: int | None = None
    # Ids with their timestamps; None where the context does not say: never forgotten.
    seen: dict = dataclasses.field(default_factory=dict)
    tokens_ms: int = 0  # since when the bucket is full, as a time of the monotonic clock
    reset_used: bool = False  # on the present link


class Receiver:
    """context: the object of the command contract, and what a session may add to it."""

    def __init__(self, context):
        self.self_id = bytes.fromhex(context["self"])
        self.space = envelope_model.uuid_of(context["space"])
        self.peer = bytes.fromhex(context["peer"]) if "peer" in context else None
        self.now_ms = context["now_ms"]
        self.past_ms = context.get("past_ms", PAST_MS)
        self.future_ms = context.get("future_ms", FUTURE_MS)
        self.rate = context.get("rate_per_s", 0), context.get("rate_burst", 0)
        self.seen_ids = context.get("seen_ids")
        self.mono_ms = 0
        self.offset_ms = None
        self.floor_reset = False  # by the last message
        self.members = {}
        for member in context["members"]:
            self.member(member["public_key"], member["status"])
        self.subscriptions = {topic.encode() for topic in context.get("subscriptions", [])}
        self.senders = {}
        for one in context.get("seen", []):
            seen = self.sender(bytes.fromhex(one["source"])).seen
            seen[envelope_model.uuid_of(one["id"])] = one.get("timestamp")
        for one in context.get("floors", []):
            self.sender(bytes.fromhex(one["source"])).floor = one["timestamp"]

    def sender(self, node_id):
        return self.senders.setdefault(node_id, Sender())

    # ---- What changes around it ----

    def member(self, public_key, status):
        key = bytes.fromhex(public_key)
        self.members[envelope_model.node_id_of(key)] = key, status

    def subscribe(self, topic):
        self.subscriptions.add(topic.encode())

    def unsubscribe(self, topic):
        self.subscriptions.discard(topic.encode())

    def clock(self, now_ms=None, mono_ms=None):
        self.now_ms = self.now_ms if now_ms is None else now_ms
        self.mono_ms = self.mono_ms if mono_ms is None else mono_ms

    def link(self, peer=None, offset_ms=None):
        """Another connection: its peer, and the measured offset of that peer's clock."""
        self.peer = None if peer is None else bytes.fromhex(peer)
        self.offset_ms = offset_ms
        for sender in self.senders.values():
            sender.reset_used = False

    # ---- The order of checks ----

    def deliver(self, encoding, data):
        """The envelope of a message that is accepted; Refused otherwise."""
        self.floor_reset = False
        e = envelope_model.DECODE[encoding](data)
        if e.information_space_id != self.space:
            raise Refused("wrong_space", "information_space_id")
        peer = e.source_node_id if self.peer is None else self.peer
        if e.source_node_id != peer or e.source_node_id == self.self_id:
            raise Refused("not_origin", "source_node_id")
        key, status = self.members.get(e.source_node_id, (None, None))
        if status == "revoked":
            raise Refused("revoked", "source_node_id")
        if status != "approved":
            raise Refused("unknown_sender", "source_node_id")
        sender = self.sender(e.source_node_id)
        self.take(sender)
        if not envelope_model.verifies(key, e.preimage(), e.signature):
            raise Refused("bad_signature", "signature")
        self.judge_time(sender, e.timestamp)
        self.judge_address(e)
        if e.id in sender.seen:
            raise Refused("duplicate", "id")
        self.record(sender, e)
        return e

    def take(self, sender):
        """One token of the sender's bucket."""
        per_s, burst = self.rate
        if per_s == 0:
            return
        full_at = max(sender.tokens_ms, self.mono_ms)
        if full_at - self.mono_ms + 1000 // per_s > burst * (1000 // per_s):
            raise Refused("rate_limited", "source_node_id")
        sender.tokens_ms = full_at + 1000 // per_s

    def judge_time(self, sender, timestamp):
        if timestamp < self.now_ms - self.past_ms:
            raise Refused("stale", "timestamp")
        if timestamp > self.now_ms + self.future_ms:
            raise Refused("from_future", "timestamp")
        if timestamp > sender.floor:
            return
        agrees = (self.offset_ms is not None and not sender.reset_used
                  and -self.past_ms <= self.offset_ms <= self.future_ms)
        if not agrees:
            raise Refused("stale", "timestamp")
        self.floor_reset = sender.reset_used = True
        sender.floor = self.now_ms - self.past_ms - 1

    def judge_address(self, e):
        if e.delivery_mode == envelope_model.MODES["unicast"]:
            if e.target != self.self_id:
                raise Refused("wrong_target", "target")
        elif e.target not in self.subscriptions:
            raise Refused("not_subscribed", "target")

    def record(self, sender, e):
        sender.seen[e.id] = e.timestamp
        sender.highest = max(e.timestamp, sender.highest or e.timestamp)
        safe = min(sender.highest, self.now_ms - self.past_ms - self.future_ms)
        sender.floor = max(sender.floor, safe)
        timed = [t for t in sender.seen.values() if t is not None]
        if self.seen_ids is not None and len(timed) > self.seen_ids:
            sender.floor = max(sender.floor, min(timed))
        for name in [n for n, t in sender.seen.items() if t is not None and t <= sender.floor]:
            del sender.seen[name]
