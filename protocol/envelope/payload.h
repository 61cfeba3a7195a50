/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of a message: one JSON object whose members say what a signal is about (the draft
 * 5.3; profile 4 and 6, DESIGN 3.1). */
#ifndef FB_ENVELOPE_PAYLOAD_H
#define FB_ENVELOPE_PAYLOAD_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

/* The draft's message types (5.2). */
typedef enum fb_message_type {
    FB_TYPE_SYNC = 1,
    FB_TYPE_CHANGED = 2,
    FB_TYPE_CONFLICT = 3,
} fb_message_type;

/* What a `sync` without an object asks for. */
typedef enum fb_scope {
    FB_SCOPE_NONE = 0,
    FB_SCOPE_DATABASE = 1,
    FB_SCOPE_FILE = 2,
    FB_SCOPE_ALL = 3,
} fb_scope;

const char *fb_scope_name(fb_scope scope); /* "" for FB_SCOPE_NONE */

/* What a payload says. `incarnation` and `batch` are a hint about the sender's own batch: they
 * count only when both are there in their form, else the payload is as good without them. */
typedef struct fb_payload_facts {
    bool has_object;
    bool has_batch;
    fb_scope scope; /* of `sync` only */
    fb_id object;
    uint64_t incarnation;
    uint64_t batch;
} fb_payload_facts;

/* The payload rules of profile 4 for one message type; 0 for a type that is not known, which
 * leaves the rules about members that a type demands. FB_OK or FB_ERR_BAD_PAYLOAD with a sentence
 * in *detail (may be NULL); facts are filled in either way, as far as they were read. */
fb_status fb_payload_check(fb_span payload, fb_message_type type, fb_payload_facts *facts,
                           const char **detail);

/* The same, sooner, where `behind` bytes may be read behind the payload, whatever they are. */
fb_status fb_payload_check_within(fb_span payload, size_t behind, fb_message_type type,
                                  fb_payload_facts *facts, const char **detail);

/* Bytes that the builders below write at most. */
#define FB_PAYLOAD_BUILT_MAX 128u

/* {"object_id":"…"}, and with batch not 0 also "incarnation" and "batch". Returns the length. */
size_t fb_payload_object(fb_id object, uint64_t incarnation, uint64_t batch,
                         uint8_t out[FB_PAYLOAD_BUILT_MAX]);

/* {"scope":"…"}, for `sync`. Returns the length. */
size_t fb_payload_scope(fb_scope scope, uint8_t out[FB_PAYLOAD_BUILT_MAX]);

#endif
