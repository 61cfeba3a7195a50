/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs of version 7 (RFC 9562): the check, the text form, and a generator.
 *
 * Layout of what the generator makes, most significant bit first:
 *
 *     48  Unix time in milliseconds
 *      4  version 7
 *     12  counter, upper part
 *      2  variant 10
 *     20  counter, lower part
 *     42  random tail
 *
 * The 32-bit counter starts in each new millisecond at a random value whose top bit (the guard) is
 * 0, so at least 2^31 ids fit into one millisecond. */
#ifndef FB_BASE_UUID_H
#define FB_BASE_UUID_H

#include "protocol/base/draw.h"
#include "protocol/base/error.h"
#include "protocol/base/types.h"

#define FB_UUID_TEXT_LEN 36

/* The greatest time a UUID of version 7 can carry. */
#define FB_UUID_MS_MAX ((UINT64_C(1) << 48) - 1)

/* Version 7 and variant 10 (profile 4). */
/* FM-3.1-2, FI-2-1, MP-1-3 */
static inline bool fb_uuid_is_v7(fb_id id)
{
    return (id.b[6] & 0xf0) == 0x70 && (id.b[8] & 0xc0) == 0x80;
}

/* The time inside an id of version 7, in milliseconds since 1970. */
uint64_t fb_uuid_ms(fb_id id);

/* Lowercase 8-4-4-4-12 of any version; true only for exactly that form. out is unchanged on false.
 */
bool fb_uuid_parse(fb_span text, fb_id *out);

/* The same, of version 7 only. */
bool fb_uuid_parse_v7(fb_span text, fb_id *out);

/* Writes 36 characters and no terminator. */
void fb_uuid_format(fb_id id, char out[FB_UUID_TEXT_LEN]);

/* The state of a generator. Every id it gives is greater than all it gave before, as unsigned
 * bytes, whatever the clock does. */
typedef struct fb_uuid_gen {
    fb_seed seed;
    uint64_t incarnation;
    uint64_t count;     /* ids given in this incarnation: the key of the next draw */
    uint64_t last_ms;   /* time inside the last id */
    uint32_t counter;   /* counter of the last id */
    bool started;       /* last_ms and counter are of a real id */
    uint64_t behind;    /* ids given while the clock was behind last_ms, or before 1970 */
    uint64_t ran_ahead; /* times that a full counter moved the time ahead by one */
} fb_uuid_gen;

/* Random bits are drawn under (seed, FB_STREAM_UUID, incarnation, count): a fresh incarnation
 * repeats nothing of an earlier one that had the same seed. */
void fb_uuid_gen_init(fb_uuid_gen *gen, fb_seed seed, uint64_t incarnation);

/* Continues above `last`, the greatest id that an earlier incarnation may have given and that the
 * caller persisted. A smaller one than the generator already has changes nothing.
 * FB_ERR_BAD_UUID when it is not of version 7: nothing changed. */
fb_status fb_uuid_gen_resume(fb_uuid_gen *gen, fb_id last);

/* The next id at wall clock wall_us (microseconds since 1970, may be anything).
 *
 * A clock that stands still or is behind the last id: the last time is used again and the counter
 * goes on. A clock before 1970 counts as 0. A full counter moves the time ahead by one millisecond.
 * FB_ERR_CLOCK, nothing changed and out untouched: the clock is beyond FB_UUID_MS_MAX, or every id
 * up to the end of that last millisecond was used. */
fb_status fb_uuid_gen_next(fb_uuid_gen *gen, int64_t wall_us, fb_id *out);

#endif
