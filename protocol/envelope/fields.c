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

#define TYPE_SYNC     "platform.replication.sync"
#define TYPE_CHANGED  "platform.replication.changed"
#define TYPE_CONFLICT "platform.replication.conflict"

static const char *const type_names[] = {"", TYPE_SYNC, TYPE_CHANGED, TYPE_CONFLICT};

#define TOPIC_DATABASE TOPIC_PREFIX "database"
#define TOPIC_FILE     TOPIC_PREFIX "file"
#define TOPIC_STATE    TOPIC_PREFIX "state"

static const char *const topic_names[] = {"", TOPIC_DATABASE, TOPIC_FILE, TOPIC_STATE};

/* A name that is known here: compared without a call. */
#define IS(span, name)                                                                             \
    ((span).len == sizeof(name) - 1 && memcmp((span).p, name, sizeof(name) - 1) == 0)

const char *fb_envelope_field_name(fb_envelope_field field)
{
    return (unsigned)field <= FB_ENVELOPE_FIELDS ? field_names[field] : "";
}

/* FM-5.2-1 */
const char *fb_message_type_name(fb_message_type type)
{
    return (unsigned)type <= FB_TYPE_CONFLICT ? type_names[type] : "";
}

fb_message_type fb_message_type_of(fb_span name)
{
    if (IS(name, TYPE_CHANGED)) return FB_TYPE_CHANGED;
    if (IS(name, TYPE_SYNC)) return FB_TYPE_SYNC;
    return IS(name, TYPE_CONFLICT) ? FB_TYPE_CONFLICT : (fb_message_type)0;
}

/* FM-7.1-2, MP-6-20 */
const char *fb_topic_name(fb_topic topic)
{
    return (unsigned)topic <= FB_TOPIC_STATE ? topic_names[topic] : "";
}

fb_topic fb_topic_of(fb_span name)
{
    if (IS(name, TOPIC_DATABASE)) return FB_TOPIC_DATABASE;
    if (IS(name, TOPIC_FILE)) return FB_TOPIC_FILE;
    return IS(name, TOPIC_STATE) ? FB_TOPIC_STATE : FB_TOPIC_FOREIGN;
}

/* What a topic's last part is made of: 1 for a letter, with which it begins, 2 for the others. */
/* clang-format off */
static const uint8_t topic_bytes[256] = {
    ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1,
    ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1,
    ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1,
    ['y'] = 1, ['z'] = 1,
    ['0'] = 2, ['1'] = 2, ['2'] = 2, ['3'] = 2, ['4'] = 2, ['5'] = 2, ['6'] = 2, ['7'] = 2,
    ['8'] = 2, ['9'] = 2, ['_'] = 2,
};
/* clang-format on */

/* FM-7.1-1, MP-4-9 */
bool fb_topic_is_well_formed(fb_span name)
{
    const size_t prefix = sizeof TOPIC_PREFIX - 1;
    if (fb_topic_of(name) != FB_TOPIC_FOREIGN) return true;
    if (name.len <= prefix || name.len > FB_TOPIC_BYTES_MAX) return false;
    if (memcmp(name.p, TOPIC_PREFIX, prefix) != 0) return false;
    if (topic_bytes[name.p[prefix]] != 1) return false;
    for (size_t i = prefix + 1; i < name.len; i++) {
        if (topic_bytes[name.p[i]] == 0) return false;
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
