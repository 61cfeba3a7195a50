/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the envelope: what both decoders share. */
#ifndef FB_ENVELOPE_FIELDS_H
#define FB_ENVELOPE_FIELDS_H

#include "protocol/base/uuid.h"
#include "protocol/envelope/envelope.h"

/* A decoder at work. The first fault stays; what follows only fills in what can still be read. */
typedef struct fb_decoding {
    fb_envelope *e;
    uint32_t readable; /* becomes that of the envelope */
    fb_envelope_fault fault;
} fb_decoding;

static inline void fb_decoding_refuse(fb_decoding *d, fb_status reason, fb_envelope_field field,
                                      const char *detail)
{
    if (d->fault.reason == FB_OK) d->fault = (fb_envelope_fault){reason, field, detail, 0};
}

static inline void fb_decoding_read(fb_decoding *d, fb_envelope_field field)
{
    d->readable |= (uint32_t)1 << field;
}

/* All but the payload's facts and the signature, which whoever reads those sets in any case. By
 * parts: for the whole at once compilers fall back on instructions that are slow to begin. */
static inline void fb_envelope_clear(fb_envelope *e)
{
    e->id = e->space = e->source = e->target_node = e->correlation = (fb_id){{0}};
    e->mode = (fb_delivery_mode)0;
    e->topic = e->payload = (fb_span){NULL, 0};
    e->type = (fb_message_type)0;
    e->timestamp = 0;
    e->has_correlation = false;
    e->readable = 0;
}

/* Ends a decoding: hands the fault over and gives its reason. */
static inline fb_status fb_decoding_end(const fb_decoding *d, fb_envelope_fault *fault)
{
    d->e->readable = d->readable;
    if (fault != NULL) *fault = d->fault;
    return d->fault.reason;
}

/* ---- The rules of profile 4 for values that are of the encoding's type, one function a field ----
 *
 * An id is NULL when it did not have the form of 16 bytes. Inline, as a decoder is little else. */

/* FM-3.1-2, FM-3.1-3, FM-5.1-2, FM-5.1-3, FM-5.1-10, MP-1-3, MP-4-5 */
static inline void fb_field_uuid(fb_decoding *d, fb_envelope_field field, const fb_id *id)
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
static inline void fb_field_source(fb_decoding *d, const fb_id *id)
{
    if (id == NULL) {
        fb_decoding_refuse(d, FB_ERR_BAD_NODE_ID, FB_ENVELOPE_SOURCE, "not a node id");
        return;
    }
    d->e->source = *id;
    fb_decoding_read(d, FB_ENVELOPE_SOURCE);
}

/* FM-3.5-1, FM-5.1-5, MP-3-6, MP-4-7 */
static inline void fb_field_mode(fb_decoding *d, unsigned mode)
{
    if (mode != FB_DELIVERY_UNICAST && mode != FB_DELIVERY_TOPIC) {
        fb_decoding_refuse(d, FB_ERR_BAD_MODE, FB_ENVELOPE_MODE, "neither unicast nor topic");
        return;
    }
    d->e->mode = (fb_delivery_mode)mode;
    fb_decoding_read(d, FB_ENVELOPE_MODE);
}

/* FM-5.1-6, MP-4-8 */
static inline void fb_field_target_node(fb_decoding *d, const fb_id *id)
{
    if (id == NULL) {
        fb_decoding_refuse(d, FB_ERR_BAD_TARGET, FB_ENVELOPE_TARGET, "not a node id");
        return;
    }
    d->e->target_node = *id;
    fb_decoding_read(d, FB_ENVELOPE_TARGET);
}

/* FM-5.1-6, MP-4-9 */
static inline void fb_field_target_topic(fb_decoding *d, fb_span name)
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
static inline void fb_field_type(fb_decoding *d, fb_span name)
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
/* `behind`: bytes that may be read behind the payload. */
static inline void fb_field_payload(fb_decoding *d, fb_span payload, size_t behind)
{
    const char *detail;
    d->e->payload = payload;
    fb_status status = fb_payload_check_within(payload, behind, d->e->type, &d->e->facts, &detail);
    if (status != FB_OK) {
        fb_decoding_refuse(d, status, FB_ENVELOPE_PAYLOAD, detail);
        return;
    }
    fb_decoding_read(d, FB_ENVELOPE_PAYLOAD);
}

/* FM-5.1-9, MP-4-21 */
static inline void fb_field_timestamp(fb_decoding *d, bool in_form, uint64_t timestamp)
{
    if (!in_form || timestamp == 0 || timestamp > (uint64_t)FB_TIMESTAMP_MS_MAX) {
        fb_decoding_refuse(d, FB_ERR_BAD_TIMESTAMP, FB_ENVELOPE_TIMESTAMP,
                           "not a plain integer within 1..2^53-1");
        return;
    }
    d->e->timestamp = timestamp;
    fb_decoding_read(d, FB_ENVELOPE_TIMESTAMP);
}

#endif
