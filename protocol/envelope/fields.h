/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the envelope: what both decoders share. */
#ifndef FB_ENVELOPE_FIELDS_H
#define FB_ENVELOPE_FIELDS_H

#include "protocol/envelope/envelope.h"

/* A decoder at work. The first fault stays; what follows only fills in what can still be read. */
typedef struct fb_decoding {
    fb_envelope *e;
    fb_envelope_fault fault;
} fb_decoding;

static inline void fb_decoding_refuse(fb_decoding *d, fb_status reason, fb_envelope_field field,
                                      const char *detail)
{
    if (d->fault.reason == FB_OK) d->fault = (fb_envelope_fault){reason, field, detail, 0};
}

static inline void fb_decoding_read(fb_decoding *d, fb_envelope_field field)
{
    d->e->readable |= (uint32_t)1 << field;
}

/* Ends a decoding: hands the fault over and gives its reason. */
static inline fb_status fb_decoding_end(const fb_decoding *d, fb_envelope_fault *fault)
{
    if (fault != NULL) *fault = d->fault;
    return d->fault.reason;
}

/* The rules of profile 4 for values that are of the encoding's type, one function a field. An id
 * is NULL when it did not have the form of 16 bytes. */
void fb_field_uuid(fb_decoding *d, fb_envelope_field field, const fb_id *id);
void fb_field_source(fb_decoding *d, const fb_id *id);
void fb_field_mode(fb_decoding *d, unsigned mode);
void fb_field_target_node(fb_decoding *d, const fb_id *id);
void fb_field_target_topic(fb_decoding *d, fb_span name);
void fb_field_type(fb_decoding *d, fb_span name);
void fb_field_payload(fb_decoding *d, fb_span payload);
void fb_field_timestamp(fb_decoding *d, bool in_form, uint64_t timestamp);

#endif
