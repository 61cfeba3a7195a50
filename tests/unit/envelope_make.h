/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes for tests, member by member, so that each can be made wrong in one place. */
#ifndef FB_TESTS_ENVELOPE_MAKE_H
#define FB_TESTS_ENVELOPE_MAKE_H

#include "protocol/envelope/envelope.h"

/* The JSON text of each member's value, or NULL to leave the member out. Index: field number. */
typedef struct json_make {
    const char *value[FB_ENVELOPE_FIELDS + 1];
    const char *before; /* in front of the object */
    const char *inside; /* in front of its closing brace, e.g. ",\"x\":1" */
    const char *after;  /* behind the object */
} json_make;

/* A valid topic message `changed`. */
json_make json_make_default(void);

/* Writes the text into a buffer that the next call uses again. */
fb_span json_make_text(const json_make *m);

/* One protobuf field as raw bytes: tag, then (for bytes) length and content. */
typedef struct protobuf_make {
    struct {
        bool present;
        bool number;
        uint64_t value; /* of a number */
        fb_span bytes;
    } field[FB_ENVELOPE_FIELDS + 1];
    fb_span after; /* appended as it is */
} protobuf_make;

/* The same message as json_make_default. */
protobuf_make protobuf_make_default(void);
void protobuf_make_text(protobuf_make *m, fb_envelope_field field, const char *text);
fb_span protobuf_make_bytes(const protobuf_make *m);

/* A JSON string literal of this payload, in a buffer that the next call uses again. */
const char *json_quoted(fb_span payload);

#endif
