/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded memory of 64-bit keys with a value each: what a check saw lately.
 *
 * Two tables: new keys go to the young one; when it is half full the old one is forgotten and they
 * change places. So at least the last quarter of all places is remembered, at no cost of ageing. */
#ifndef FB_SIM_MEMO_H
#define FB_SIM_MEMO_H

#include "protocol/base/alloc.h"

typedef struct fb_sim_memo_slot {
    uint64_t key; /* 0: free */
    uint64_t value;
} fb_sim_memo_slot;

typedef struct fb_sim_memo {
    fb_sim_memo_slot *tables[2];
    uint32_t mask;
    uint32_t used; /* of the young one */
    uint8_t young;
    uint32_t turns; /* how often they changed places: from the second time on keys are forgotten */
} fb_sim_memo;

/* places: a power of two, in each of both tables. */
void fb_sim_memo_init(fb_sim_memo *memo, fb_arena *arena, uint32_t places);
void fb_sim_memo_clear(fb_sim_memo *memo);
/* The place of a key's value, which is 0 when the key is new. One probe less than find and put. */
uint64_t *fb_sim_memo_at(fb_sim_memo *memo, uint64_t key);
/* The value of a key, to be read or changed, or NULL. */
uint64_t *fb_sim_memo_find(fb_sim_memo *memo, uint64_t key);
/* Sets it. key is any number but 0. */
void fb_sim_memo_put(fb_sim_memo *memo, uint64_t key, uint64_t value);

#endif
