#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small second runtime behind the adapter protocol of docs/ADAPTER.md: envelopes, receivers and nodes
in Python. It shows that the suite asks for nothing that only the first runtime has."""
import json
import sys

import envelope_model as model
import receiver_model
import runtime_node
from envelope_model import Refused

PROTOCOL = "faberio-adapter 1"
OPS = ("verify", "canonical", "convert", "sign", "session", "node")


class Wrong(Exception):
    """A request that this adapter does not understand."""


def refusal(refused, e=None):
    made = {"verdict": "refuse", "reason": refused.reason}
    if refused.field is not None:
        made["field"] = refused.field
    if e is not None:
        made["id"] = model.uuid_text(e.id)
    return made


class Runtime:
    def __init__(self):
        self.session_receiver = None
        self.node_under_test = None

    def answer(self, request):
        op = request.get("op")
        if op == "hello":
            return {"protocol": PROTOCOL, "runtime": "faberio in Python", "ops": list(OPS)}
        if op not in OPS:
            raise Wrong(f"no op {op!r}")
        try:
            return getattr(self, op)(request)
        except Refused as refused:
            return refusal(refused)

    # ---- One envelope ----

    def decode(self, request, draft=False):
        decode = {"json": model.decode_json, "protobuf": model.decode_protobuf}[request["encoding"]]
        return decode(bytes.fromhex(request["input"]), draft)

    def encode(self, request, e):
        encode = {"json": model.encode_json, "protobuf": model.encode_protobuf}[request["to"]]
        return {"output": encode(e).hex()}

    def verify(self, request):
        e = self.decode(request)
        try:
            if "context" in request:
                receiver = receiver_model.Receiver(request["context"])
                receiver.deliver(request["encoding"], bytes.fromhex(request["input"]))
            elif "public_key" in request:
                key = bytes.fromhex(request["public_key"])
                if model.node_id_of(key) != e.source_node_id:
                    raise Refused("unknown_sender", "source_node_id")
                if not model.verifies(key, e.preimage(), e.signature):
                    raise Refused("bad_signature", "signature")
        except Refused as refused:
            return refusal(refused, e)
        return {"verdict": "accept", "id": model.uuid_text(e.id)}

    def canonical(self, request):
        return {"preimage": self.decode(request).preimage().hex()}

    def convert(self, request):
        return self.encode(request, self.decode(request))

    def sign(self, request):
        e = self.decode(request, draft=True)
        seed = bytes.fromhex(request["seed"])
        own = model.node_id_of(model.public_key_of(seed))
        if e.source_node_id is None:
            e.source_node_id = own
        if e.source_node_id != own:
            raise Refused("unknown_sender", "source_node_id")
        return self.encode(request, e.signed(seed))

    # ---- A receiver ----

    def session(self, request):
        arguments = {name: value for name, value in request.items() if name not in ("op", "do")}
        do = request["do"]
        if do == "open":
            self.session_receiver = receiver_model.Receiver(request["context"])
            return {}
        receiver = self.session_receiver
        if do != "deliver":
            if do not in ("clock", "link", "member", "subscribe", "unsubscribe"):
                raise Wrong(f"no step {do!r}")
            getattr(receiver, do)(**arguments)
            return {}
        try:
            receiver.deliver(request["encoding"], bytes.fromhex(request["input"]))
            made = {"verdict": "accept"}
        except Refused as refused:
            made = refusal(refused)
        return made | ({"floor_reset": True} if receiver.floor_reset else {})

    # ---- A node ----

    def node(self, request):
        do = request["do"]
        if do == "open":
            node = self.node_under_test = runtime_node.Node(
                bytes.fromhex(request["seed"]), request["wall_ms"], request["peers"],
                request.get("limits", {}))
            made = {"node_id": node.node_id.hex(),
                    "information_space_id": model.uuid_text(node.space),
                    "state_object_id": model.uuid_text(node.state_object)}
        else:
            node = self.node_under_test
            made = self.node_step(node, do, request)
        return made | {"out": node.take_out()}

    def node_step(self, node, do, request):
        if do == "link_up":
            return {"link": node.link_up(bytes.fromhex(request["peer"]), request.get("offset_ms", 0))}
        if do == "deliver":
            verdict, reason, reset = node.deliver(request["link"], request["number"],
                                                  bytes.fromhex(request["envelope"]))
            made = {"verdict": verdict} | ({"reason": reason} if reason else {})
            return made | ({"floor_reset": True} if reset else {})
        if do == "write":
            return {"object_id": node.write()}
        if do == "subscribe":
            return {"subscribed": request["topic"] in node.context["subscriptions"]}
        steps = {"link_down": lambda: node.link_down(request["link"]),
                 "ack": lambda: node.ack(request["link"], request["number"]),
                 "publish": lambda: node.publish(request["object_id"]),
                 "tick": lambda: node.tick(request["ms"]),
                 "clock": lambda: node.clock(request["wall_ms"]),
                 "disk": lambda: node.disk(request["hold"]), "restart": node.restart}
        if do not in steps:
            raise Wrong(f"no step {do!r}")
        steps[do]()
        return {}


def serve(runtime, lines, out):
    """One answer for each request, in order."""
    for line in lines:
        try:
            made = runtime.answer(json.loads(line))
        except (Wrong, KeyError, ValueError, TypeError, AttributeError) as error:
            made = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(made) + "\n")
        out.flush()


if __name__ == "__main__":
    serve(Runtime(), sys.stdin, sys.stdout)
