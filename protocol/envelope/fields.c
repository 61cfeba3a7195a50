/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/fields.h"

#include "protocol/base/uuid.h"

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

/* FM-3.1-2, FM-3.1-3, FM-5.1-2, FM-5.1-3, FM-5.1-10, MP-1-3, MP-4-5 */
void fb_field_uuid(fb_decoding *d, fb_envelope_field field, const fb_id *id)
{
    if (id == NULL || !fb_uuid_is_v7(*id)) {
        fb_decoding_refuse(d, FB_ERR_BAD_UUID, field, "not a UUID of version 7, variant 10");
        return;
    }
    if (field == FB_ENVELOPE_ID) d->e->id = *id;
    if (field == FB_ENVELOPE_SPACE) d->e->space = *id;
    if (field == FB_ENVELOPE_CORRELATION) {
        d->e->correlation = *id;
        d->e->has_correlation = true;
    }
    fb_decoding_read(d, field);
}

/* FM-5.1-4, MP-4-6 */
void fb_field_source(fb_decoding *d, const fb_id *id)
{
    if (id == NULL) {
        fb_decoding_refuse(d, FB_ERR_BAD_NODE_ID, FB_ENVELOPE_SOURCE, "not a node id");
        return;
    }
    d->e->source = *id;
    fb_decoding_read(d, FB_ENVELOPE_SOURCE);
}

/* FM-3.5-1, FM-5.1-5, MP-3-6, MP-4-7 */
void fb_field_mode(fb_decoding *d, unsigned mode)
{
    if (mode != FB_DELIVERY_UNICAST && mode != FB_DELIVERY_TOPIC) {
        fb_decoding_refuse(d, FB_ERR_BAD_MODE, FB_ENVELOPE_MODE, "neither unicast nor topic");
        return;
    }
    d->e->mode = (fb_delivery_mode)mode;
    fb_decoding_read(d, FB_ENVELOPE_MODE);
}

/* FM-5.1-6, MP-4-8 */
void fb_field_target_node(fb_decoding *d, const fb_id *id)
{
    if (id == NULL) {
        fb_decoding_refuse(d, FB_ERR_BAD_TARGET, FB_ENVELOPE_TARGET, "not a node id");
        return;
    }
    d->e->target_node = *id;
    fb_decoding_read(d, FB_ENVELOPE_TARGET);
}

/* FM-5.1-6, MP-4-9 */
void fb_field_target_topic(fb_decoding *d, fb_span name)
{
    if (!fb_topic_is_well_formed(name)) {
        fb_decoding_refuse(d, FB_ERR_BAD_TARGET, FB_ENVELOPE_TARGET,
                           "not a topic platform.replication.<name> of at most 128 bytes");
        return;
    }
    d->e->topic = name;
    fb_decoding_read(d, FB_ENVELOPE_TARGET);
}

/* FM-5.1-7, FM-5.2-5, MP-4-10 */
void fb_field_type(fb_decoding *d, fb_span name)
{
    fb_message_type type = fb_message_type_of(name);
    if (type == 0) {
        fb_decoding_refuse(d, FB_ERR_BAD_TYPE, FB_ENVELOPE_TYPE,
                           "not one of the draft's three types");
        return;
    }
    d->e->type = type;
    fb_decoding_read(d, FB_ENVELOPE_TYPE);
}

/* FM-5.1-8 */
void fb_field_payload(fb_decoding *d, fb_span payload)
{
    const char *detail;
    d->e->payload = payload;
    fb_status status = fb_payload_check(payload, d->e->type, &d->e->facts, &detail);
    if (status != FB_OK) {
        fb_decoding_refuse(d, status, FB_ENVELOPE_PAYLOAD, detail);
        return;
    }
    fb_decoding_read(d, FB_ENVELOPE_PAYLOAD);
}

/* FM-5.1-9, MP-4-21 */
void fb_field_timestamp(fb_decoding *d, bool in_form, uint64_t timestamp)
{
    if (!in_form || timestamp == 0 || timestamp > (uint64_t)FB_TIMESTAMP_MS_MAX) {
        fb_decoding_refuse(d, FB_ERR_BAD_TIMESTAMP, FB_ENVELOPE_TIMESTAMP,
                           "not a plain integer within 1..2^53-1");
        return;
    }
    d->e->timestamp = timestamp;
    fb_decoding_read(d, FB_ENVELOPE_TIMESTAMP);
}

fb_status fb_envelope_check(fb_envelope *e, fb_envelope_fault *fault)
{
    fb_decoding d = {e, {FB_OK, FB_ENVELOPE_NONE, "", 0}};
    e->readable = 0;
    fb_field_uuid(&d, FB_ENVELOPE_ID, &e->id);
    fb_field_uuid(&d, FB_ENVELOPE_SPACE, &e->space);
    fb_field_source(&d, &e->source);
    fb_field_mode(&d, (unsigned)e->mode);
    if (e->mode == FB_DELIVERY_UNICAST) fb_field_target_node(&d, &e->target_node);
    if (e->mode == FB_DELIVERY_TOPIC) fb_field_target_topic(&d, e->topic);
    fb_field_type(&d, fb_span_text(fb_message_type_name(e->type)));
    fb_field_payload(&d, e->payload);
    fb_field_timestamp(&d, true, e->timestamp);
    if (e->has_correlation) fb_field_uuid(&d, FB_ENVELOPE_CORRELATION, &e->correlation);
    fb_decoding_read(&d, FB_ENVELOPE_SIGNATURE);
    return fb_decoding_end(&d, fault);
}
