/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded memory of 64-bit keys with a few words each: what checks saw lately.
 *
 * Two tables: new keys go to the young one; when it is half full the old one is forgotten and they
 * change places. So at least the last quarter of all places is remembered, at no cost of ageing.
 *
 * Each begins small and doubles for a while as it fills: a short run would otherwise touch a page
 * of memory for every key, and pages are what most of a short run's time goes to. */
#ifndef FB_SIM_WORLD_MEMO_H
#define FB_SIM_WORLD_MEMO_H

#include "protocol/base/alloc.h"

#define FB_SIM_MEMO_VALUES_MAX 7u

typedef struct fb_sim_memo {
    uint64_t *tables[2]; /* of places: a key, 0 for a free one, and its values. One of 2^k places
                            stands behind all the smaller ones that it was */
    uint32_t masks[2];   /* of each as large as it is now */
    uint32_t mask;       /* of one that grows no more */
    uint32_t stride;     /* words of a place */
    uint32_t used;       /* places of the young one */
    uint8_t young;
    uint32_t turns; /* how often they changed places: from the second time on keys are forgotten */
} fb_sim_memo;

/* places: a power of two, in each of both tables; values of each key: 1 to the bound above. */
void fb_sim_memo_init(fb_sim_memo *memo, fb_arena *arena, uint32_t places, uint32_t values);
void fb_sim_memo_clear(fb_sim_memo *memo);
/* A key's values, which are 0 when the key is new; until the next key is added. One probe less than
 * find and put. */
uint64_t *fb_sim_memo_at(fb_sim_memo *memo, uint64_t key);
/* The values of a key, to be read or changed, or NULL. */
uint64_t *fb_sim_memo_find(fb_sim_memo *memo, uint64_t key);
/* Sets the first value. key is any number but 0. */
void fb_sim_memo_put(fb_sim_memo *memo, uint64_t key, uint64_t value);
/* Sets one value of every key to 0. */
void fb_sim_memo_zero(fb_sim_memo *memo, uint32_t value);

#endif
