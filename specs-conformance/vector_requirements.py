# SPDX-License-Identifier: Apache-2.0
"""Which requirements a vector shows: by its reason, and by the beginning of its name."""
import re

BY_REASON = {
    "too_large": ["MP-3-8"], "malformed": ["MP-4-2"], "bad_uuid": ["MP-4-5", "FM-3.1-2"],
    "bad_node_id": ["MP-4-6", "FM-5.1-4"], "bad_mode": ["MP-4-7", "FM-3.5-1", "FM-5.1-5"],
    "bad_target": ["FM-5.1-6"], "bad_type": ["MP-4-10", "FM-5.1-7", "FM-5.2-5"],
    "bad_payload": ["MP-4-4", "FM-5.1-8"], "bad_timestamp": ["MP-4-21", "FM-5.1-9"],
    "wrong_space": ["MP-5-2", "FM-9-2", "FM-9-3", "FM-11-4", "FM-11-10"],
    "not_origin": ["MP-5-3"], "unknown_sender": ["MP-5-5", "MP-1-4"], "revoked": ["MP-5-5"],
    "rate_limited": ["MP-5-6"], "bad_signature": ["MP-5-7", "FM-5.4-3", "FM-11-2"],
    "stale": ["MP-5-8"], "from_future": ["MP-5-8"], "wrong_target": ["MP-5-9", "FM-6.1-1"],
    "not_subscribed": ["MP-5-9", "FM-7.3-3"], "duplicate": ["MP-5-10", "FM-4.1-8", "FM-8.1-4"]}

# Every prefix that fits counts.
BY_NAME = {
    "json/": ["MP-3-1", "FM-12.1-1", "FM-5.1-1"], "json/missing/": ["MP-4-2"],
    "json/missing/information_space_id": ["FM-9-1"], "json/missing/signature": ["FM-11-9"],
    "json/missing/correlation_id": ["FM-5.1-10"], "json/duplicate/": ["MP-3-3"],
    "json/unknown/": ["MP-3-3"], "json/bom/": ["MP-3-3"], "json/utf-8/": ["MP-3-3", "MP-4-3"],
    "json/escape/": ["MP-3-3", "MP-4-3"], "json/whole/": ["MP-3-3"],
    "json/timestamp/": ["MP-3-2", "MP-4-21"], "json/size/": ["MP-3-8", "MP-4-11"],
    "json/size/payload-exact-all-escaped": ["MP-3-9"],
    "protobuf/": ["MP-3-4", "FM-5.1-1"], "protobuf/varint/": ["MP-3-5"],
    "protobuf/unknown/": ["MP-3-5", "MP-3-7"], "protobuf/explicit-default/": ["MP-3-5", "MP-4-2"],
    "protobuf/missing/information_space_id": ["FM-9-1"], "protobuf/missing/signature": ["FM-11-9"],
    "protobuf/twice/": ["MP-3-5"], "protobuf/out-of-order/": ["MP-3-5"],
    "protobuf/wire-type/": ["MP-3-5"], "protobuf/whole/": ["MP-3-5", "MP-3-7"],
    "protobuf/mode/": ["MP-3-6"], "protobuf/size/": ["MP-3-8"],
    "field/id/": ["FM-5.1-2", "MP-1-3"], "field/information_space_id/": ["FM-5.1-3", "FM-3.1-3"],
    "field/correlation_id/": ["FM-5.1-10"], "field/source_node_id/": ["MP-1-2"],
    "field/target/": ["MP-4-8", "MP-4-9", "FM-7.1-1"], "field/message_type/": ["FM-5.2-1"],
    "field/target/topic/database": ["FM-7.1-2", "MP-6-20"],
    "field/target/topic/state": ["FM-7.1-2", "MP-6-20"],
    "field/target/topic/file": ["FM-7.1-2", "MP-6-20"],
    "field/signature/": ["MP-3-2"], "field/payload/": ["MP-4-11"], "order/": ["MP-4-1"],
    "payload/form/": ["MP-4-11", "MP-4-12"], "payload/value/": ["MP-4-12", "MP-4-20"],
    "payload/character/": ["MP-4-15"],
    "payload/utf-8/": ["MP-4-11", "MP-4-15"], "payload/number/": ["MP-4-16"],
    "payload/depth/": ["MP-4-13"], "payload/members/": ["MP-4-14"],
    "payload/duplicate/": ["MP-4-14"], "payload/object_id/": ["MP-4-17", "FM-5.3-2"],
    "payload/object_id/missing": ["MP-4-19"], "payload/scope/": ["MP-4-18"],
    "payload/unknown/": ["MP-4-20", "FM-5.3-1"], "receive/order/": ["MP-5-1"],
    "receive/origin/own-id": ["MP-5-4"], "receive/signature/": ["MP-1-7", "FM-5.1-11", "MP-2-1"],
    "receive/signature/over-": ["MP-1-8", "FM-5.4-2"], "receive/time/": ["MP-5-8"],
    "receive/time/far-from-the-id": ["MP-4-21"], "receive/seen/": ["MP-5-10"],
    "receive/space/": ["FM-6.2-2"], "receive/address/": ["MP-5-9", "FM-7.2-2"],
    "receive/accept/": ["FM-3.1-1", "FM-5.4-1", "FM-11-1"],
    "sequence/repeated/": ["MP-5-10", "FM-8.1-2"],
    "sequence/repeated/one-id-of-two-senders": ["MP-5-13"], "sequence/burnt/": ["MP-5-12"],
    "sequence/held-up/": ["MP-5-19"], "sequence/clock/": ["MP-5-16"],
    "sequence/floor/": ["MP-5-14"], "sequence/capacity/": ["MP-5-15"],
    "sequence/membership/": ["MP-5-5"], "sequence/subscription/": ["FM-3.2-1", "FM-7.2-2"],
    "sequence/rate/": ["MP-5-6"], "sequence/reset/": ["MP-5-17"]}


def of(name, reasons):
    found = {one for reason in reasons for one in BY_REASON.get(reason, [])}
    for prefix, ids in BY_NAME.items():
        if name.startswith(prefix):
            found.update(ids)
    return sorted(found, key=lambda one: [int(part) if part.isdigit() else part
                                          for part in re.split(r"[-.]", one)])
