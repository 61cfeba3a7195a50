/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that comes in: parsed strictly, and the texts of an object's values kept as they were
 * written, so that a number never passes through floating point. */
#ifndef FB_RUNTIME_JSON_IN_H
#define FB_RUNTIME_JSON_IN_H

#include <jansson.h>

#include "runtime/text.h"

/* One member of an object: its name unescaped, its value's text without insignificant white
 * space. */
typedef struct fb_json_member_in {
    fb_text name;
    fb_text value;
} fb_json_member_in;

typedef struct fb_json_object_in {
    json_t *tree; /* the same members in the same order */
    fb_json_member_in *members;
    size_t count;
} fb_json_object_in;

/* Parses one JSON object: RFC 8259, no duplicate names at any depth, no U+0000, no lone surrogate,
 * integers of at most 64 bits. False with "line L, column C: ..." in why. */
bool fb_json_object_read(fb_span text, fb_json_object_in *out, char *why, size_t why_len);
void fb_json_object_free(fb_json_object_in *object);

/* Walks the elements of a minified array that was parsed before: *at starts at 0; false at the end.
 */
bool fb_json_element_next(fb_span array, size_t *at, fb_span *element);

/* Any one JSON value, minified into out. False as above. */
bool fb_json_value_read(fb_span text, fb_text *out, char *why, size_t why_len);

#endif
