# SPDX-License-Identifier: Apache-2.0
"""Wrong adapters: the behaviour of nodes."""
import json
import unittest.mock

import envelope_model as model
import runtime_node
from wrong_base import wrong

# ---- A node ----


@wrong("node/nothing-is-acknowledged-before-it-is-durable")
def acknowledges_what_is_not_durable(patch):
    plain = runtime_node.Node.acknowledge

    def acknowledge(self, number, link, again=False):
        with unittest.mock.patch.object(self, "durable", len(self.accepted)):
            plain(self, number, link, again)
    patch(runtime_node.Node, "acknowledge", acknowledge)


@wrong("node/what-is-refused-is-acknowledged-too")
def acknowledges_only_what_it_accepts(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        if made[0] == "refuse":
            self.out = [one for one in self.out if one["out"] != "ack"]
        return made
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/numbers-are-taken-in-their-order")
def takes_numbers_as_they_come(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        link = self.links[number]
        link.received = max(link.received, message - 1)
        return plain(self, number, message, data)
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/numbers-are-taken-in-their-order")
def says_nothing_to_a_repeated_number(patch):
    plain = runtime_node.Node.acknowledge
    patch(runtime_node.Node, "acknowledge",
          lambda self, number, link, again=False: None if again else plain(self, number, link))


@wrong("node/ids-outlive-a-restart")
def a_restart_forgets_ids(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        self.accepted, self.durable = [], 0
        return plain(self)
    patch(runtime_node.Node, "restart", restart)


@wrong("node/the-floor-outlives-a-restart")
def a_restart_forgets_the_floor(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        self.accepted = [(*one[:3], 0) for one in self.accepted]
        return plain(self)
    patch(runtime_node.Node, "restart", restart)


@wrong("node/what-was-lost-is-taken-again")
def remembers_what_it_did_not_store(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        self.durable = len(self.accepted)
        return plain(self)
    patch(runtime_node.Node, "restart", restart)


@wrong("node/nothing-is-passed-on")
def passes_messages_on(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        for other, link in self.links.items():
            if made[0] == "accept" and other != number:
                link.sent += 1
                self.say("send", link=other, number=link.sent, envelope=data.hex())
        return made
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/misbehaviour-ends-the-link")
def bears_with_everything(patch):
    patch(runtime_node, "BUDGET", 1 << 40)


@wrong("node/honest-mistakes-cost-nothing")
def duplicates_are_misbehaviour(patch):
    patch(runtime_node, "HONEST", tuple(one for one in runtime_node.HONEST if one != "duplicate"))


@wrong("node/honest-mistakes-cost-nothing")
def a_wrong_clock_is_misbehaviour(patch):
    patch(runtime_node, "HONEST", tuple(one for one in runtime_node.HONEST if one != "from_future"))


@wrong("node/who-only-asked-to-join")
def publishes_to_whoever_is_connected(patch):
    def publish(self, object_id):
        for link in self.links.values():
            link.waiting[object_id] = None
        self.flush()
    patch(runtime_node.Node, "publish", publish)


@wrong("node/what-is-published-goes-to-each-peer")
def publishes_to_one_peer_only(patch):
    def publish(self, object_id):
        for link in list(self.links.values())[:1]:
            link.waiting[object_id] = None
        self.flush()
    patch(runtime_node.Node, "publish", publish)


@wrong("node/a-write-is-announced")
def announces_what_is_not_durable(patch):
    plain = runtime_node.Node.write

    def write(self):
        with unittest.mock.patch.object(self, "held", False):
            return plain(self)
    patch(runtime_node.Node, "write", write)


@wrong("node/a-write-that-was-lost")
def announces_what_it_lost(patch):
    plain = runtime_node.Node.restart

    def restart(self):
        written = self.written
        plain(self)
        self.lost = written

    link_up = runtime_node.Node.link_up

    def tell(self, peer, offset_ms):
        number = link_up(self, peer, offset_ms)
        for object_id in getattr(self, "lost", []):
            self.publish(object_id)
        return number
    patch(runtime_node.Node, "restart", restart)
    patch(runtime_node.Node, "link_up", tell)


@wrong("node/the-state-has-its-own-topic")
def one_topic_for_everything(patch):
    patch(runtime_node, "STATE", runtime_node.DATABASE)


@wrong("node/nothing-waits-for-who-is-away")
def keeps_messages_for_who_is_away(patch):
    publish, link_up = runtime_node.Node.publish, runtime_node.Node.link_up

    def remember(self, object_id):
        self.__dict__.setdefault("published", []).append(object_id)
        publish(self, object_id)

    def tell(self, peer, offset_ms):
        number = link_up(self, peer, offset_ms)
        for object_id in self.__dict__.get("published", []):
            self.links[number].waiting[object_id] = None
        self.flush()
        return number
    patch(runtime_node.Node, "publish", remember)
    patch(runtime_node.Node, "link_up", tell)


@wrong("node/what-is-not-acknowledged-is-sent-again")
def never_sends_again(patch):
    def resend(self, number, link):
        link.resend_at = None
    patch(runtime_node.Node, "resend", resend)


@wrong("node/what-is-not-acknowledged-is-sent-again")
def sends_again_without_backing_off(patch):
    patch(runtime_node, "RESEND_MAX_MS", runtime_node.RESEND_MIN_MS)


@wrong("node/what-is-not-acknowledged-is-sent-again")
def signs_anew_what_it_sends_again(patch):
    plain = runtime_node.Node.resend

    def resend(self, number, link):
        for sent in link.window.values():
            e = model.dataclasses.replace(model.decode_protobuf(sent.data), timestamp=self.wall_ms)
            sent.data = model.encode_protobuf(e.signed(self.seed))
        plain(self, number, link)
    patch(runtime_node.Node, "resend", resend)


@wrong("node/no-more-is-under-way")
def a_window_of_one_more(patch):
    patch(runtime_node, "WINDOW_MESSAGES", 65)


@wrong("node/no-more-is-under-way")
def says_each_thing_as_often_as_it_is_told(patch):
    def publish(self, object_id):
        count = self.__dict__["told"] = self.__dict__.get("told", 0) + 1
        for link in self.links.values():
            link.waiting[object_id + " " * count] = None
        self.flush()

    plain = runtime_node.Node.compose
    patch(runtime_node.Node, "publish", publish)
    patch(runtime_node.Node, "compose",
          lambda self, object_id, **fields: plain(self, object_id.strip(), **fields))


@wrong("node/an-acknowledgement-covers")
def acknowledgements_are_of_one_number(patch):
    def ack(self, number, message):
        self.links[number].window.pop(message, None)
        self.flush()
    patch(runtime_node.Node, "ack", ack)


@wrong("node/what-a-broken-link-left-goes-first")
def a_broken_link_drops_everything(patch):
    def link_down(self, number):
        del self.links[number]
    patch(runtime_node.Node, "link_down", link_down)


@wrong("node/what-a-broken-link-left-goes-first")
def what_is_new_goes_first(patch):
    plain = runtime_node.Node.link_up

    def link_up(self, peer, offset_ms):
        left = self.orphans.pop(peer, [])
        number = plain(self, peer, offset_ms)
        self.links[number].redo_later = left
        return number

    flush = runtime_node.Node.flush

    def late(self):
        flush(self)
        for link in self.links.values():
            if link.sent > 0 and getattr(link, "redo_later", []):
                link.redo, link.redo_later = link.redo_later, []
        flush(self)
    patch(runtime_node.Node, "link_up", link_up)
    patch(runtime_node.Node, "flush", late)


@wrong("node/after-a-second-break")
def redelivers_for_ever(patch):
    plain = runtime_node.Node.link_down

    def link_down(self, number):
        for sent in self.links[number].window.values():
            sent.redelivered = False
        plain(self, number)
    patch(runtime_node.Node, "link_down", link_down)


@wrong("node/after-a-minute")
def redelivers_after_an_hour(patch):
    patch(runtime_node, "REDELIVER_MS", 3600000)


@wrong("node/ids-are-new-and-rise")
def ids_go_by_the_clock_alone(patch):
    plain = runtime_node.Node.new_id

    def new_id(self):
        self.last_id = b""
        return plain(self)
    patch(runtime_node.Node, "new_id", new_id)


@wrong("node/sync-is-answered-once")
def answers_every_sync(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        if made[1] == "duplicate":
            e = model.decode_protobuf(data)
            if e.message_type.endswith("sync"):
                self.links[number].answers.append((e.id, json.loads(e.payload)["object_id"], 0))
                self.flush()
        return made
    patch(runtime_node.Node, "deliver", deliver)


@wrong("node/sync-is-answered-once")
def answers_sync_to_a_topic(patch):
    plain = runtime_node.Node.compose

    def compose(self, object_id, **fields):
        fields |= {"delivery_mode": model.MODES["topic"], "target": runtime_node.DATABASE}
        return plain(self, object_id, **fields)
    patch(runtime_node.Node, "compose", compose)


@wrong("node/sync-is-not-answered-before-it-is-durable")
def answers_sync_at_once(patch):
    plain = runtime_node.Node.deliver

    def deliver(self, number, message, data):
        made = plain(self, number, message, data)
        link = self.links[number]
        link.answers = [(sync, wanted, 0) for sync, wanted, _ in link.answers]
        self.flush()
        return made
    patch(runtime_node.Node, "deliver", deliver)
