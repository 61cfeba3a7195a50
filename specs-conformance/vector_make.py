# SPDX-License-Identifier: Apache-2.0
"""What the vectors are made from: nodes, a context, a message that is right in everything, and ways to
spell it that are not."""
import dataclasses
import typing

import envelope_model as model
from envelope_model import Envelope

NOW = 1718000001000
MINUTE = 60000


class Node(typing.NamedTuple):
    name: str
    seed: bytes
    public_key: bytes
    node_id: bytes


def _node(name, byte):
    seed = bytes([byte]) * 32
    public_key = model.public_key_of(seed)
    return Node(name, seed, public_key, model.node_id_of(public_key))


# A sends, B receives; C is another member, D asked to join, E was one, F never.
NODES = {name: _node(name, 10 + i) for i, name in enumerate("ABCDEF")}
A, B, C, D, E, F = NODES.values()
SPACE = model.uuid_of("0195a3f0-8000-7890-abcd-000000000001")
OTHER_SPACE = model.uuid_of("0195a3f0-8000-7890-abcd-000000000002")
OBJECT = "0195a3f0-9150-7898-abcd-000000000013"
PAYLOAD = '{"object_id":"%s"}' % OBJECT
TOPIC = "platform.replication."
SYNC, CHANGED, CONFLICT = model.TYPES


def id_of(number):
    """Ids of messages, each with its own number."""
    return bytes.fromhex("0195a3f092007899") + b"\x8d\xef" + number.to_bytes(6, "big")


def context(**changes):
    """B's, as the command contract has it."""
    made = {
        "self": B.node_id.hex(), "space": model.uuid_text(SPACE), "peer": A.node_id.hex(),
        "now_ms": NOW, "past_ms": model_default("past"), "future_ms": model_default("future"),
        "members": [{"public_key": node.public_key.hex(), "status": status}
                    for node, status in ((A, "approved"), (B, "approved"), (C, "approved"),
                                         (D, "pending"), (E, "revoked"))],
        "subscriptions": [TOPIC + "database", TOPIC + "state"], "seen": [], "floors": []}
    made.update(changes)
    return {name: value for name, value in made.items() if value is not None}


def model_default(name):
    return {"past": 15 * MINUTE, "future": 5 * MINUTE}[name]


def message(sender=A, **changes):
    """`changed` of A to the topic of databases, signed by its sender."""
    made = Envelope(id=id_of(0x12), information_space_id=SPACE, source_node_id=sender.node_id,
                    delivery_mode=model.MODES["topic"], target=(TOPIC + "database").encode(),
                    message_type=CHANGED, payload=PAYLOAD.encode(), timestamp=NOW)
    return dataclasses.replace(made, **changes).signed(sender.seed)


def unicast(sender=A, **changes):
    return message(sender, **({"delivery_mode": model.MODES["unicast"], "target": B.node_id}
                              | changes))


def json_text(e, spelled=None, without=(), order=None, more=(), space=""):
    """spelled: values in another spelling; more: (name, value) as they are spelled, at the end."""
    tokens = model.json_tokens(e) | (spelled or {})
    names = [name for name in order or tokens if name not in without]
    members = [(f'"{name}"', tokens[name]) for name in names] + list(more)
    colon, comma = f"{space}:{space}", f"{space},{space}"
    text = "{" + space + comma.join(name + colon + value for name, value in members) + space + "}"
    return text.encode("utf-8", "surrogatepass")


def protobuf(e, changed=None, order=None, without=(), more=b""):
    """changed: whole fields, tag and all, as bytes."""
    fields = model.protobuf_fields(e) | (changed or {})
    return b"".join(fields[name] for name in order or fields if name not in without) + more


def field(number, value):
    """A field of bytes as it should be."""
    return model.varint(number << 3 | 2) + model.varint(len(value)) + value


class Case(typing.NamedTuple):
    name: str
    encoding: str
    data: bytes
    reason: str | None = None  # None: accepted
    field: str | None = None   # where the reason by itself does not say it
    context: str = "b"


