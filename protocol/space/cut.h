/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of a statement that takes a right away: for each area and life of the member the last
 * batch that stays, and the head of that batch's header hash. What it does not name is cut at 0.
 *
 * In the statement it is a JSON string of lowercase hexadecimal digits over: for each area,
 * ascending: id, u16 lives, each ascending: u64 incarnation, u64 number, 16 bytes of the hash. */
#ifndef FB_SPACE_CUT_H
#define FB_SPACE_CUT_H

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"

#define FB_CUT_HASH_BYTES 16u
#define FB_CUT_AREA_BYTES 18u
#define FB_CUT_LIFE_BYTES (8u + 8u + FB_CUT_HASH_BYTES)

typedef struct fb_cut_entry {
    fb_id area;
    uint64_t incarnation;
    uint64_t number;
    uint8_t hash[FB_CUT_HASH_BYTES];
} fb_cut_entry;

/* Over the digits, without quotes. */
typedef struct fb_cut_walk {
    fb_span digits;
    size_t at;
    fb_id area;
    uint32_t left; /* lives of it */
} fb_cut_walk;

static inline fb_cut_walk fb_cut_walk_of(fb_span digits)
{
    return (fb_cut_walk){.digits = digits};
}

bool fb_cut_next(fb_cut_walk *walk, fb_cut_entry *out);
/* Lives named; FB_NONE: it breaks the format. */
uint32_t fb_cut_count(fb_span digits);

#endif
