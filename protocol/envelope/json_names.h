/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the JSON scanner: the names of the objects that are open, to find two equal ones.
 *
 * Open objects nest, so one stack holds all their names: those of the innermost object are on top
 * and go when it closes, which is when they are compared. */
#ifndef FB_ENVELOPE_JSON_NAMES_H
#define FB_ENVELOPE_JSON_NAMES_H

#include "protocol/envelope/json.h"

#define FB_JSON_NAMES_INDEXED 256u /* a larger object is sorted instead */

typedef struct fb_json_name {
    uint32_t hash; /* of the unescaped name */
    uint32_t at;   /* offset of its first byte after the quote */
} fb_json_name;

typedef struct fb_json_names {
    uint32_t count;
    const uint8_t *text;
    fb_json_name stack[FB_JSON_NAMES_MAX];
    uint16_t index[2 * FB_JSON_NAMES_INDEXED];
} fb_json_names;

/* `name` is the spelling between the quotes, in text. False: the stack is full. */
bool fb_json_names_add(fb_json_names *names, const uint8_t *text, fb_span name, bool escaped);

/* The object whose names start at `first` closes. The offset of a name that was there before, or
 * FB_NONE. */
uint32_t fb_json_names_close(fb_json_names *names, uint32_t first);

/* A spelling with escapes against plain ASCII. */
bool fb_json_name_is(fb_span spelled, fb_span plain);

/* The next bytes of a string that a scan accepted, unescaped, one at a time. */
typedef struct fb_json_bytes {
    const uint8_t *p; /* ends at the closing quote */
    uint8_t held[4];
    uint8_t held_count;
    uint8_t held_at;
} fb_json_bytes;

static inline fb_json_bytes fb_json_bytes_at(const uint8_t *p)
{
    return (fb_json_bytes){p, {0}, 0, 0};
}

/* The next byte, or -1 at the end. */
int fb_json_bytes_next(fb_json_bytes *bytes);

/* One escape sequence that a scan accepted, at *p (the backslash): moves *p behind it and writes
 * its 1 to 4 bytes of UTF-8. */
size_t fb_json_unescape(const uint8_t **p, uint8_t out[4]);

#endif
