/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/fields.h"

#define TOPIC_PREFIX "platform.replication."

static const char *const field_names[FB_ENVELOPE_FIELDS + 1] = {
    "",
    "id",
    "information_space_id",
    "source_node_id",
    "delivery_mode",
    "target",
    "message_type",
    "payload",
    "timestamp",
    "correlation_id",
    "signature",
};

/* A name and its length. */
typedef struct label {
    const char *text;
    size_t len;
} label;

#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static const label type_names[] = {
    NAME(""),
    NAME("platform.replication.sync"),
    NAME("platform.replication.changed"),
    NAME("platform.replication.conflict"),
};

static const label topic_names[] = {
    NAME(""),
    NAME(TOPIC_PREFIX "database"),
    NAME(TOPIC_PREFIX "file"),
    NAME(TOPIC_PREFIX "state"),
};

/* The names have different lengths, so at most one is compared. */
static int find_name(const label *names, int last, fb_span text)
{
    for (int i = 1; i <= last; i++) {
        if (text.len == names[i].len && memcmp(text.p, names[i].text, text.len) == 0) return i;
    }
    return 0;
}

const char *fb_envelope_field_name(fb_envelope_field field)
{
    return (unsigned)field <= FB_ENVELOPE_FIELDS ? field_names[field] : "";
}

/* FM-5.2-1 */
const char *fb_message_type_name(fb_message_type type)
{
    return (unsigned)type <= FB_TYPE_CONFLICT ? type_names[type].text : "";
}

fb_message_type fb_message_type_of(fb_span name)
{
    return (fb_message_type)find_name(type_names, FB_TYPE_CONFLICT, name);
}

/* FM-7.1-2, MP-6-20 */
const char *fb_topic_name(fb_topic topic)
{
    return (unsigned)topic <= FB_TOPIC_STATE ? topic_names[topic].text : "";
}

fb_topic fb_topic_of(fb_span name)
{
    return (fb_topic)find_name(topic_names, FB_TOPIC_STATE, name);
}

/* FM-7.1-1, MP-4-9 */
bool fb_topic_is_well_formed(fb_span name)
{
    const size_t prefix = sizeof TOPIC_PREFIX - 1;
    if (name.len <= prefix || name.len > FB_TOPIC_BYTES_MAX) return false;
    if (memcmp(name.p, TOPIC_PREFIX, prefix) != 0) return false;
    for (size_t i = prefix; i < name.len; i++) {
        uint8_t c = name.p[i];
        bool letter = c >= 'a' && c <= 'z';
        bool other = (c >= '0' && c <= '9') || c == '_';
        if (!letter && (!other || i == prefix)) return false;
    }
    return true;
}

fb_status fb_envelope_check(fb_envelope *e, fb_envelope_fault *fault)
{
    fb_decoding d = {e, 0, {FB_OK, FB_ENVELOPE_NONE, "", 0}};
    fb_field_uuid(&d, FB_ENVELOPE_ID, &e->id);
    fb_field_uuid(&d, FB_ENVELOPE_SPACE, &e->space);
    fb_field_source(&d, &e->source);
    fb_field_mode(&d, (unsigned)e->mode);
    if (e->mode == FB_DELIVERY_UNICAST) fb_field_target_node(&d, &e->target_node);
    if (e->mode == FB_DELIVERY_TOPIC) fb_field_target_topic(&d, e->topic);
    fb_field_type(&d, fb_span_text(fb_message_type_name(e->type)));
    fb_field_payload(&d, e->payload, 0);
    fb_field_timestamp(&d, true, e->timestamp);
    if (e->has_correlation) fb_field_uuid(&d, FB_ENVELOPE_CORRELATION, &e->correlation);
    fb_decoding_read(&d, FB_ENVELOPE_SIGNATURE);
    return fb_decoding_end(&d, fault);
}
