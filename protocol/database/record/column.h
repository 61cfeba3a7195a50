/* SPDX-License-Identifier: Apache-2.0 */
/* A field of a record is what an application names; columns are what the merge knows: registers
 * with several values, each on its own (DESIGN 3.1, Merge). A plain field is one column of the same
 * name. A counter is one more: each life's share of the sum is its sibling, so that additions made
 * apart are all there. A set has a column for each element: who inserts writes it, who removes
 * takes away the insertions seen. The name of a column says all of that:
 *
 *     register   name
 *     counter    name 0x00 0x02
 *     element    name 0x00 0x03, 16 bytes: BLAKE3("faberio-element-v1" 0x00 ‖ value)
 *
 * A zero byte sorts first, so the columns of a field follow each other, the register before them.
 * A field's name is UTF-8 without one. */
#ifndef FB_DATABASE_RECORD_COLUMN_H
#define FB_DATABASE_RECORD_COLUMN_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "protocol/base/limits.h"

typedef enum fb_field_kind {
    FB_FIELD_REGISTER = 1,
    FB_FIELD_COUNTER = 2,
    FB_FIELD_ELEMENT = 3,
} fb_field_kind;

typedef struct fb_column {
    fb_span field; /* its name */
    fb_field_kind kind;
} fb_column;

/* Of a name that fb_column_valid or fb_column_is accepted; borrowed. */
fb_column fb_column_of(fb_span name);

/* It is a column's name and of this kind; of any kind. */
bool fb_column_valid(fb_span name, uint8_t kind);
bool fb_column_is(fb_span name);

/* A field's name may be used: 1 to FB_FIELD_NAME_BYTES_MAX bytes of UTF-8, none of them zero.
 * FB_ERR_REQUEST_MALFORMED, FB_ERR_LIMIT. */
fb_status fb_field_name_check(fb_span name);

/* Into out, FB_COLUMN_NAME_BYTES_MAX bytes. */
fb_span fb_column_counter(uint8_t *out, fb_span field);
fb_span fb_column_element(uint8_t *out, fb_span field, fb_span value);

/* The value of a column that is set is of its kind: the integer of a counter, the element whose
 * hash the name has, without white space between its parts. FB_ERR_VALUE_MALFORMED. That it is a
 * JSON text is checked before. */
fb_status fb_column_value_check(fb_span name, fb_span value);

/* A JSON number that is an integer of 64 bits, written in the one way there is. */
bool fb_integer_parse(fb_span text, int64_t *out);

/* Its text; at most FB_INTEGER_TEXT_MAX bytes. */
#define FB_INTEGER_TEXT_MAX 20u
size_t fb_integer_format(int64_t value, uint8_t out[FB_INTEGER_TEXT_MAX]);

/* A sum of up to 2^31 integers, exact on the way, whatever their order; the end of the range where
 * the whole is beyond it. */
typedef struct fb_sum {
    int64_t high, low;
} fb_sum;
void fb_sum_add(fb_sum *sum, int64_t value);
int64_t fb_sum_value(const fb_sum *sum);

#endif
