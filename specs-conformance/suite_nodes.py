# SPDX-License-Identifier: Apache-2.0
"""Checks of a whole node in virtual time: the suite plays its peers. What a node chooses for itself (ids,
moments, the order of objects) is held to the rules, not to bytes."""
import dataclasses
import itertools
import json

import envelope_model as model
from suite_check import Check, expect
from vector_make import (A, B, C, D, CHANGED, CONFLICT, MINUTE, NOW, SYNC, TOPIC, id_of, message, protobuf,
                         unicast)

OBJECTS = [f"0195a3f0-a000-7000-8000-{n:012x}" for n in range(400)]
PAST, FUTURE = 15 * MINUTE, 5 * MINUTE
UNICAST = model.MODES["unicast"]


class Net:
    """A node, B, with its peers, who are the suite: A and C, and D who asked to join."""

    def __init__(self, adapter, **limits):
        self.adapter = adapter
        self.out = []
        self.wall = NOW
        self.ids = itertools.count(1)
        opened = self.do("open", seed=B.seed.hex(), wall_ms=NOW, limits=limits, peers=[
            {"seed": node.seed.hex(), "status": "pending" if node is D else "approved"}
            for node in (A, C, D)])
        expect(opened.get("node_id") == B.node_id.hex(), f"its node id: {opened.get('node_id')}")
        self.space = model.uuid_of(opened.get("information_space_id"))
        expect(self.space is not None, "no space")
        self.state = opened.get("state_object_id")
        self.numbers = {}

    def do(self, do, **members):
        answer = self.adapter.ask({"op": "node", "do": do} | members)
        self.out += answer.get("out", [])
        return answer

    def take(self, kind):
        """Everything of a kind that came out since, and it is gone."""
        found = [one for one in self.out if one["out"] == kind]
        self.out = [one for one in self.out if one["out"] != kind]
        return found

    def tick(self, ms=1000):
        self.wall += ms
        self.do("tick", ms=ms)

    def clock(self, wall):
        self.wall = wall
        self.do("clock", wall_ms=wall)

    def link(self, peer=A, offset_ms=0):
        number = self.do("link_up", peer=peer.node_id.hex(), offset_ms=offset_ms).get("link")
        expect(number is not None, "no link")
        self.numbers[number] = 0
        self.tick()
        return number

    def down(self, link):
        self.do("link_down", link=link)

    def message(self, sender=A, make=message, **changes):
        made = {"information_space_id": self.space, "timestamp": self.wall, "id": id_of(next(self.ids))}
        return make(sender, **(made | changes))

    def give(self, link, data, number=None):
        """A frame as it stands; (verdict, reason)."""
        closed = any(one["out"] == "close" and one["link"] == link for one in self.out)
        expect(not closed, "the node closed the link")
        if number is None:
            number = self.numbers[link] = self.numbers[link] + 1
        answer = self.do("deliver", link=link, number=number, envelope=data.hex())
        self.reset = answer.get("floor_reset", False)
        return answer.get("verdict"), answer.get("reason")

    def deliver(self, link, e, expected="accept", number=None):
        verdict, reason = self.give(link, protobuf(e), number)
        expect(expected in (verdict, reason), f"{verdict} {reason or ''}, expected {expected}")

    def acked(self, link):
        """The greatest number acknowledged since, after a second."""
        self.tick()
        return max([one["number"] for one in self.take("ack") if one["link"] == link], default=0)

    def sent(self, link=None):
        """Messages of the node's own since: (number, envelope), each once."""
        found = {}
        for one in self.take("send"):
            if link is None or one["link"] == link:
                data = bytes.fromhex(one["envelope"])
                key = one["link"], one["number"]
                expect(found.setdefault(key, data) == data, f"number {key[1]} has two contents")
        return [(number, self.own(data)) for (_, number), data in found.items()]

    def own(self, data):
        try:
            e = model.decode_protobuf(data)
        except model.Refused as refused:
            expect(False, f"it sends what is {refused}")
        expect(model.encode_protobuf(e) == data, "it sends what is not canonical")
        expect(e.information_space_id == self.space, "it sends into another space")
        expect(e.source_node_id == B.node_id, "it sends under another name")
        expect(model.verifies(B.public_key, e.preimage(), e.signature), "its signature is wrong")
        return e

    def publish(self, *objects):
        for one in objects:
            self.do("publish", object_id=one)

    def ack(self, link, number):
        self.do("ack", link=link, number=number)


def object_of(e):
    return json.loads(e.payload).get("object_id")


CHECKS = []


def check(*requirements):
    def add(function):
        CHECKS.append(Check("node/" + function.__name__.replace("_", "-"), requirements, "node",
                            function))
        return function
    return add


# ---- Receiving ----


@check("MP-6-4", "MP-6-6", "MP-5-11", "FM-8.1-1")
def what_is_accepted_is_acknowledged(adapter):
    net = Net(adapter)
    link = net.link()
    for number in range(1, 6):
        net.deliver(link, net.message())
        expect(net.acked(link) == number, f"number {number} is not acknowledged")


@check("MP-6-6", "MP-5-19", "MP-5-18")
def what_is_refused_is_acknowledged_too(adapter):
    net = Net(adapter)
    link = net.link()
    good = net.message()
    wrong = [
        (protobuf(good) + b"\0", "malformed"), (bytes(50177), "too_large"),
        (protobuf(net.message(payload=b"{}")), "bad_payload"),
        (protobuf(net.message(information_space_id=message().information_space_id)), "wrong_space"),
        (protobuf(net.message(C)), "not_origin"), (protobuf(net.message(B)), "not_origin"),
        (protobuf(dataclasses.replace(good, signature=bytes(64))), "bad_signature"),
        (protobuf(net.message(timestamp=net.wall - PAST - 10000)), "stale"),
        (protobuf(net.message(timestamp=net.wall + FUTURE + 10000)), "from_future"),
        (protobuf(net.message(make=unicast, target=C.node_id)), "wrong_target"),
        (protobuf(net.message(target=(TOPIC + "nobody").encode())), "not_subscribed")]
    for data, reason in wrong:
        verdict, found = net.give(link, data)
        expect(found == reason, f"{verdict} {found}, expected {reason}")
        expect(net.acked(link) == net.numbers[link], f"{reason}: not acknowledged")
    net.deliver(link, good)
    net.deliver(link, good, "duplicate")
    expect(net.acked(link) == net.numbers[link], "a good one behind the bad ones is not acknowledged")


@check("MP-6-4", "FM-8.2-2", "MP-7-26")
def numbers_are_taken_in_their_order(adapter):
    net = Net(adapter)
    link = net.link()
    first, third = net.message(), net.message()
    net.deliver(link, first)
    net.acked(link)
    net.deliver(link, third, "none", number=3)
    expect(net.acked(link) <= 1, "a number is acknowledged before the one that is missing")
    net.take("ack")
    net.deliver(link, first, "none", number=1)
    expect(net.acked(link) == 1, "a repeated number is not acknowledged again")
    net.deliver(link, net.message(), number=2)
    net.deliver(link, third, number=3)
    expect(net.acked(link) == 3, "not acknowledged once the missing one had come")


@check("MP-6-6", "MP-5-11")
def nothing_is_acknowledged_before_it_is_durable(adapter):
    net = Net(adapter)
    link = net.link()
    net.deliver(link, net.message())
    expect(net.acked(link) == 1, "the first is not acknowledged")
    net.do("disk", hold=True)
    held = net.message()
    net.deliver(link, held)
    expect(net.acked(link) == 0, "acknowledged, and the disk has not written it")
    net.deliver(link, held, "duplicate")
    net.give(link, b"")
    expect(net.acked(link) == 0, "the duplicate of what is not durable is acknowledged")
    net.do("disk", hold=False)
    expect(net.acked(link) == 4, "not acknowledged when it was durable")


@check("MP-5-13", "FM-8.1-4", "FM-4.1-8")
def ids_outlive_a_restart(adapter):
    net = Net(adapter)
    link = net.link()
    messages = [net.message() for _ in range(5)]
    for e in messages:
        net.deliver(link, e)
    net.acked(link)
    net.do("restart")
    link = net.link()
    for e in messages:
        net.deliver(link, e, "duplicate")
    net.deliver(link, net.message())


@check("MP-5-13", "MP-6-6", "FM-8.1-1")
def what_was_lost_is_taken_again(adapter):
    net = Net(adapter)
    link = net.link()
    kept, lost = net.message(), net.message()
    net.deliver(link, kept)
    net.tick()
    net.do("disk", hold=True)
    net.deliver(link, lost)
    net.do("restart")
    link = net.link()
    net.deliver(link, kept, "duplicate")
    net.deliver(link, lost)
    expect(net.acked(link) == 2, "not acknowledged after the restart")


@check("MP-5-14", "MP-5-16", "MP-5-13")
def the_floor_outlives_a_restart(adapter):
    net = Net(adapter)
    link = net.link()
    old = net.message()
    net.deliver(link, old)
    start = net.wall
    net.clock(start + 240 * MINUTE)
    net.deliver(link, net.message())
    net.tick()
    net.do("restart")
    net.clock(start + 1000)
    link = net.link(offset_ms=240 * MINUTE)
    net.deliver(link, old, "stale")


@check("MP-5-17")
def the_floor_goes_back_once_a_link(adapter):
    net = Net(adapter)
    link = net.link()
    start = net.wall
    net.clock(start + 240 * MINUTE)
    net.deliver(link, net.message())
    net.clock(start)
    net.tick()
    net.down(link)
    link = net.link(offset_ms=240 * MINUTE)  # so it was not the own clock
    net.tick(5000)
    net.deliver(link, net.message(), "stale")
    net.down(link)
    link = net.link()
    net.tick(5000)
    net.deliver(link, net.message())
    expect(net.reset, "it says nothing of the floor")
    net.deliver(link, net.message())
    expect(not net.reset, "the floor goes back for what it does not refuse")
    # The own clock is wrong once more, on the same link.
    start = net.wall
    net.clock(start + 240 * MINUTE)
    net.deliver(link, net.message())
    net.clock(start)
    net.deliver(link, net.message(), "stale")


@check("MP-5-6")
def the_rate_is_limited(adapter):
    net = Net(adapter, rate_per_s=1, rate_burst=3)
    link = net.link()
    net.tick(10000)
    for _ in range(3):
        net.deliver(link, net.message())
    late = net.message()
    net.deliver(link, late, "rate_limited")
    forged = dataclasses.replace(net.message(), signature=bytes(64))
    net.deliver(link, forged, "rate_limited")
    expect(net.acked(link) == 5, "what is over the rate is not acknowledged")
    net.deliver(link, late)
    net.deliver(link, net.message(), "rate_limited")


@check("MP-5-15")
def ids_are_bounded(adapter):
    net = Net(adapter, seen_ids=4)
    link = net.link(offset_ms=240 * MINUTE)  # or the floor would go back
    messages = [net.message(timestamp=net.wall + n) for n in range(6)]
    for e in messages:
        net.deliver(link, e)
    net.deliver(link, messages[0], "stale")
    net.deliver(link, messages[1], "stale")
    for e in messages[2:]:
        net.deliver(link, e, "duplicate")


@check("MP-5-10", "MP-5-15", "FM-8.1-4")
def forgetting_one_id_loses_no_other(adapter):
    net = Net(adapter, seen_ids=32)
    link = net.link(offset_ms=240 * MINUTE)  # or the floor would go back
    messages = [net.message(timestamp=net.wall + n) for n in range(160)]
    for at, e in enumerate(messages):
        net.deliver(link, e)
        if at % 16 == 15:
            for kept in messages[max(at - 30, 0):at]:
                net.deliver(link, kept, "duplicate")
        if at % 40 == 39:
            net.tick()  # the rate


@check("MP-5-3", "FM-9-2", "FM-11-10")
def nothing_is_passed_on(adapter):
    net = Net(adapter)
    link = net.link(A)
    net.link(C)
    for make, changes in ((message, {}), (unicast, {}), (message, {"message_type": CONFLICT})):
        net.deliver(link, net.message(make=make, **changes))
    net.tick(10000)
    for one in net.take("send"):
        net.own(bytes.fromhex(one["envelope"]))


@check("FM-7.2-1", "FM-7.3-3", "FM-7.4-1", "MP-5-9")
def topics_are_those_it_subscribes_to(adapter):
    net = Net(adapter)
    link = net.link()
    for topic in ("database", "file", "state"):
        subscribed = net.do("subscribe", topic=TOPIC + topic).get("subscribed")
        expect(isinstance(subscribed, bool), "whether it subscribes")
        net.deliver(link, net.message(target=(TOPIC + topic).encode()),
                    "accept" if subscribed else "not_subscribed")


@check("MP-5-5", "MP-6-16", "FI-2-4")
def who_only_asked_to_join_has_nothing_of_the_space(adapter):
    net = Net(adapter)
    link = net.link(D)
    net.publish(OBJECTS[0])
    net.tick(10000)
    expect(not net.take("send"), "a node that is not approved gets a message")
    verdict, _ = net.give(link, protobuf(net.message(D)))
    expect(verdict != "accept", "a message of a node that is not approved is accepted")


@check("MP-5-21")
def misbehaviour_ends_the_link(adapter):
    for data in (lambda net: protobuf(dataclasses.replace(net.message(), signature=bytes(64))),
                 lambda net: protobuf(net.message()) + b"\0"):
        net = Net(adapter)
        link = net.link()
        for _ in range(1000):
            net.give(link, data(net))
            if net.take("close"):
                break
        else:
            expect(False, "after 1,000 bad messages the link is still up")


@check("MP-5-21")
def honest_mistakes_cost_nothing(adapter):
    net = Net(adapter)
    link = net.link(offset_ms=240 * MINUTE)
    known = net.message()
    net.deliver(link, known)
    for _ in range(300):
        net.deliver(link, known, "duplicate")
        net.deliver(link, net.message(timestamp=net.wall - PAST - 1), "stale")
        net.deliver(link, net.message(timestamp=net.wall + FUTURE + 1), "from_future")
        net.tick(10)
    expect(not net.take("close"), "the link is closed for duplicates or a wrong clock")
    net.deliver(link, net.message())


# ---- Sending ----


@check("FM-7.3-2", "MP-6-16", "FM-5.4-1", "FM-11-1", "FM-5.2-3", "FM-7.1-2", "MP-6-1", "FM-4.1-7")
def what_is_published_goes_to_each_peer(adapter):
    net = Net(adapter)
    links = net.link(A), net.link(C)
    net.publish(OBJECTS[0])
    net.tick(3000)
    for link in links:
        sent = [one for one in net.out if one["out"] == "send" and one["link"] == link]
        messages = {one["number"]: net.own(bytes.fromhex(one["envelope"])) for one in sent}
        expect(list(messages) == [1], f"numbers {list(messages)}, expected 1")
        e = messages[1]
        expect(e.message_type == CHANGED and object_of(e) == OBJECTS[0], f"{e.payload}")
        expect(e.delivery_mode == model.MODES["topic"] and e.target == (TOPIC + "database").encode(),
               f"it goes to {e.target}")
        expect(abs(e.timestamp - net.wall) <= 5000, "the time is not the clock's")


@check("FM-3.6-2", "FM-4.1-2", "FM-4.1-7", "FM-5.2-3")
def a_write_is_announced_once_it_is_durable(adapter):
    net = Net(adapter)
    link = net.link()
    net.do("disk", hold=True)
    written = net.do("write", text="a secret word").get("object_id")
    net.tick(3000)
    expect(not net.take("send"), "a change is announced, and the disk has not written it")
    net.do("disk", hold=False)
    net.tick(3000)
    told = [e for _, e in net.sent(link) if object_of(e) == written]
    expect(len(told) == 1 and told[0].message_type == CHANGED, f"{len(told)} messages about {written}")
    expect(b"secret" not in told[0].payload, "the message carries what was written")


@check("FM-4.1-7", "MP-6-6")
def a_write_that_was_lost_is_not_announced(adapter):
    net = Net(adapter)
    net.link()
    net.do("disk", hold=True)
    written = net.do("write", text="lost").get("object_id")
    net.tick(3000)
    net.do("restart")
    net.take("send")
    link = net.link()
    net.tick(10000)
    expect(written not in [object_of(e) for _, e in net.sent(link)], "a write that was lost is announced")


@check("MP-6-20", "FM-7.1-2")
def the_state_has_its_own_topic(adapter):
    net = Net(adapter)
    link = net.link()
    net.publish(net.state)
    net.tick(3000)
    sent = net.sent(link)
    expect([e.target for _, e in sent] == [(TOPIC + "state").encode()], f"{sent}")


@check("FM-8.3-1", "FM-8.3-2", "MP-6-2")
def nothing_waits_for_who_is_away(adapter):
    net = Net(adapter)
    link = net.link(A)
    net.publish(OBJECTS[1])
    net.tick(3000)
    net.ack(link, 1)
    net.take("send")
    other = net.link(C)
    net.tick(3000)
    sent = net.sent(other)
    expect(OBJECTS[1] not in [object_of(e) for _, e in sent], "it kept a message for who was away")
    net.publish(OBJECTS[2])
    net.tick(3000)
    expect(OBJECTS[2] in [object_of(e) for _, e in net.sent(other)], "the next one does not come")


@check("MP-7-26", "FM-8.1-2", "MP-6-4")
def what_is_not_acknowledged_is_sent_again(adapter):
    net = Net(adapter)
    link = net.link()
    net.publish(OBJECTS[0])
    net.tick(20000)
    sent = [one for one in net.take("send") if one["link"] == link]
    expect(len({one["envelope"] for one in sent}) == 1 and {one["number"] for one in sent} == {1},
           "a number is sent again with other bytes, or another number with the same")
    at = [one["at_ms"] for one in sent]
    pauses = [later - sooner for sooner, later in zip(at, at[1:])]
    expected = [400, 800, 1600, 3200, 5000, 5000]
    expect(len(pauses) >= 6 and all(want - 50 <= got <= want + 150
                                    for got, want in zip(pauses, expected)),
           f"pauses of {pauses} ms, expected {expected}")
    net.ack(link, 1)
    net.tick(20000)
    expect(not net.take("send"), "it sends again what was acknowledged")


@check("MP-6-5", "MP-6-21", "MP-6-1")
def no_more_is_under_way_than_the_window_holds(adapter):
    net = Net(adapter)
    link = net.link()
    net.publish(*OBJECTS[:100])
    net.tick(300)
    sent = net.sent(link)
    expect([n for n, _ in sent] == list(range(1, 65)), f"{len(sent)} are under way, expected 64")
    # They are put together while they wait.
    for _ in range(5):
        net.publish(OBJECTS[99])
    net.ack(link, 64)
    net.tick(300)
    rest = net.sent(link)
    expect([n for n, _ in rest] == list(range(65, 101)), f"then come {[n for n, _ in rest]}")
    expect(sorted(object_of(e) for _, e in sent + rest) == OBJECTS[:100],
           "an object is missing, or named twice")
    net.ack(link, 100)
    net.tick(3000)
    expect(not net.take("send"), "more comes than was to be said")


@check("MP-6-4")
def an_acknowledgement_covers_what_was_before(adapter):
    net = Net(adapter)
    link = net.link()
    net.publish(*OBJECTS[:5])
    net.tick(300)
    net.take("send")
    net.ack(link, 3)
    net.tick(3000)
    again = {one["number"] for one in net.take("send")}
    expect(again == {4, 5}, f"{sorted(again)} are sent again, expected 4 and 5")


@check("MP-6-7", "FM-8.1-2", "FM-8.3-5")
def what_a_broken_link_left_goes_first(adapter):
    net = Net(adapter)
    link = net.link()
    net.publish(*OBJECTS[:4])
    net.tick(300)
    before = dict(net.sent(link))
    net.ack(link, 1)
    net.down(link)
    net.tick(20000)
    net.take("send")
    link = net.link()
    net.publish(OBJECTS[9])
    net.tick(3000)
    sent = dict(net.sent(link))
    expect([sent.get(n) for n in (1, 2, 3)] == [before[n] for n in (2, 3, 4)],
           "not the same bytes in the same order, or not first")
    expect(sent.get(1) is not None and before[1] not in sent.values(), "what was acknowledged comes again")
    expect(OBJECTS[9] in [object_of(e) for e in sent.values()], "the next one does not come")


@check("MP-6-8")
def after_a_second_break_it_is_dropped(adapter):
    net = Net(adapter)
    link = net.link()
    net.publish(OBJECTS[0])
    net.tick(300)
    first = dict(net.sent(link))[1]
    for attempt in (1, 2):
        net.down(link)
        link = net.link()
        net.tick(3000)
        there = first in [e for _, e in net.sent(link)]
        expect(there == (attempt == 1), f"after break {attempt} it is {'there' if there else 'gone'}")
    expect(model.uuid_text(first.id) in [one.get("id") for one in net.take("drop")],
           "it does not say that it dropped it")


@check("MP-6-8", "FM-8.3-1")
def after_a_minute_it_is_dropped(adapter):
    for pause, expected in ((55000, True), (61000, False)):
        net = Net(adapter)
        link = net.link()
        net.publish(OBJECTS[0])
        net.tick(300)
        first = dict(net.sent(link))[1]
        net.down(link)
        net.tick(pause)
        link = net.link()
        net.tick(3000)
        there = first in [e for _, e in net.sent(link)]
        expect(there == expected, f"after {pause} ms it is {'there' if there else 'gone'}")


@check("FM-5.1-2", "FM-3.1-2")
def ids_are_new_and_rise(adapter):
    net = Net(adapter)
    seen = []
    for step in range(4):
        link = net.link()
        net.publish(*OBJECTS[:5])
        net.tick(300)
        fresh = [e.id for _, e in net.sent(link)]
        expect(len(fresh) == 5, f"{len(fresh)} messages, expected 5")
        seen += fresh
        net.ack(link, 5)
        net.down(link)
        if step == 1:
            net.clock(net.wall - 60 * MINUTE)
        if step == 2:
            net.do("restart")
    expect(len(set(seen)) == len(seen), "an id is used twice")
    expect(seen == sorted(seen), "an id is smaller than one before it")


# ---- sync ----


def sync_answer(net, link, payload, wanted):
    asked = net.message(make=unicast, message_type=SYNC, payload=payload.encode())
    net.deliver(link, asked)
    net.tick(3000)
    answers = [e for _, e in net.sent(link)]
    expect(len(answers) == 1, f"{len(answers)} answers to `sync`, expected 1")
    e = answers[0]
    expect(e.delivery_mode == UNICAST and e.target == A.node_id, "the answer is no unicast to the asker")
    expect(e.message_type == CHANGED and e.correlation_id == asked.id,
           "the answer does not name the `sync`")
    expect(object_of(e) == wanted, f"the answer names {object_of(e)}, expected {wanted}")
    return asked


@check("MP-6-11", "FM-5.2-2", "FM-5.2-6")
def sync_is_answered_once(adapter):
    net = Net(adapter)
    link = net.link()
    asked = sync_answer(net, link, '{"object_id":"%s"}' % OBJECTS[3], OBJECTS[3])
    net.ack(link, 1)
    net.deliver(link, asked, "duplicate")
    net.tick(3000)
    expect(not net.take("send"), "a repeated `sync` is answered again")


@check("MP-6-11")
def sync_of_a_scope_names_the_state(adapter):
    for scope in ("database", "file", "all"):
        net = Net(adapter)
        link = net.link()
        sync_answer(net, link, '{"scope":"%s"}' % scope, net.state)


@check("MP-6-11", "MP-6-6")
def sync_is_not_answered_before_it_is_durable(adapter):
    net = Net(adapter)
    link = net.link()
    net.do("disk", hold=True)
    net.deliver(link, net.message(make=unicast, message_type=SYNC, payload=b'{"scope":"all"}'))
    net.tick(3000)
    expect(not net.take("send"), "answered before it was durable")
    net.do("disk", hold=False)
    net.tick(3000)
    expect(len(net.sent(link)) == 1, "not answered when it was durable")


def checks():
    return list(CHECKS)
