/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a message (the draft 5; profile 2 to 4): payload, id, timestamp, signature, and the one
 * canonical encoding, into a place of the pool. */
#include "protocol/base/mutant.h"
#include "protocol/messaging/state.h"

_Static_assert(FB_SIGNAL_BYTES_MAX >= 3 * 18 + 2 + 2 + FB_TOPIC_BYTES_MAX + 2 + 32 + 2 +
                                          FB_PAYLOAD_BUILT_MAX + 9 + 18 + 66,
               "every message of ours fits its place");
_Static_assert(FB_UUID_MS_MAX <= FB_TIMESTAMP_MS_MAX, "a time that an id has is a timestamp");

bool fb_message_time_is_writable(const fb_node *node)
{
    int64_t now_ms = fb_wall_ms(node);
    return now_ms >= 1 && now_ms <= (int64_t)FB_UUID_MS_MAX;
}

static fb_status build(fb_node *node, const fb_compose *what, fb_signal *signal)
{
    /* A wrong clock is put right some day. What changed under it is told then: profile 6 drops
     * what is for a peer that cannot be reached, and this one can. */
    if (!fb_message_time_is_writable(node)) {
        node->messaging->untimed = true;
        return FB_ERR_AGAIN;
    }
    uint8_t payload[FB_PAYLOAD_BUILT_MAX];
    size_t payload_len =
        what->has_area ? fb_payload_object(what->area, what->incarnation, what->batch, payload)
                       : fb_payload_scope(FB_SCOPE_ALL, payload);
    fb_envelope envelope = {
        .space = fb_space_id(node, what->space),
        .source = node->self,
        .mode = what->topic == FB_TOPIC_FOREIGN ? FB_DELIVERY_UNICAST : FB_DELIVERY_TOPIC,
        .target_node = what->target,
        .topic = fb_span_text(fb_topic_name(what->topic)),
        .type = (fb_message_type)what->type,
        .payload = fb_span_of(payload, payload_len),
        .timestamp = (uint64_t)fb_wall_ms(node),
        .has_correlation = what->correlation != NULL,
    };
    if (what->correlation != NULL) envelope.correlation = *what->correlation;
    /* FM-3.1-2, FM-5.1-2 */
    FB_TRY(fb_new_uuid(node, &envelope.id));
    /* FM-3.1-1, FM-5.4-1, FM-11-1 */
    FB_TRY(fb_envelope_sign(&envelope, node->options.provider, node->options.identity_key));
    envelope.timestamp += MUTANT(STAMPED_AFTER_SIGNING, 0u, 1u);
    fb_writer w = fb_writer_of(signal->bytes, sizeof signal->bytes);
    FB_TRY(fb_envelope_encode_protobuf(&envelope, &w));
    signal->len = (uint16_t)w.at;
    signal->space = what->space;
    signal->type = what->type;
    signal->id = envelope.id;
    signal->has_area = what->has_area;
    signal->area = what->area;
    signal->time_ms = envelope.timestamp;
    return FB_OK;
}

fb_status fb_signal_compose(fb_node *node, const fb_compose *what, uint32_t *out)
{
    uint32_t index = fb_signal_take(node);
    if (index == FB_NONE) return FB_ERR_BUSY;
    fb_status status = build(node, what, &node->messaging->signal[index]);
    if (status != FB_OK) {
        /* Wakes nobody: the others would fail for the same reason, and wake each other for ever. */
        bool hungry = node->messaging->hungry;
        node->messaging->hungry = false;
        fb_signal_release(node, index);
        node->messaging->hungry = hungry;
        return status;
    }
    *out = index;
    return FB_OK;
}
