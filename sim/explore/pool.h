/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules whose runs are unlike others, to be mutated. How unlike a run is, is what its traits
 * are worth, each the less the more runs have shown it; a run is the more promising the more that
 * is for each of its steps. Who was tried often in vain makes room. */
#ifndef FB_SIM_EXPLORE_POOL_H
#define FB_SIM_EXPLORE_POOL_H

#include <limits.h>

#include "sim/explore/seen.h"
#include "sim/schedule/schedule.h"

#define FB_SIM_POOL_MAX 128u
/* A member that has more loses its first rounds. */
#define FB_SIM_POOL_LINES_MAX 4000u

typedef struct fb_sim_pool_member {
    fb_sim_plan plan;
    uint64_t id;    /* of the run that it came from, never used again: names its file */
    uint64_t steps; /* of that run */
    uint64_t worth; /* of its traits, by what was common when it was looked at last */
    uint32_t tried; /* mutations of it that were played */
    uint32_t paid;  /* of those, how many joined the pool or failed */
    bool known;     /* its traits are: not those of an earlier hunt */
    uint64_t traits[FB_SIM_SEEN_TRAITS / 64];
} fb_sim_pool_member;

typedef struct fb_sim_pool {
    fb_sim_pool_member *members; /* FB_SIM_POOL_MAX */
    uint32_t count;
    uint32_t *shown;           /* of each trait: how many runs have shown it */
    char folder[PATH_MAX / 2]; /* of the files that outlive the process; empty: none */
} fb_sim_pool;

/* Reads what an earlier hunt left. False: no memory, or the folder cannot be made. */
bool fb_sim_pool_open(fb_sim_pool *pool, const char *folder);
void fb_sim_pool_close(fb_sim_pool *pool);

/* What a run has shown, whatever becomes of it. Returns how many traits are new. */
uint32_t fb_sim_pool_saw(fb_sim_pool *pool, const fb_sim_seen *seen);
/* Takes the plan, whose run had so many steps and showed this, when it is worth it; the least
 * promising member goes when there are too many. */
void fb_sim_pool_add(fb_sim_pool *pool, fb_sim_plan *plan, uint64_t id, uint64_t steps,
                     const fb_sim_seen *seen);

/* A member to be mutated; UINT32_MAX when there is none. */
uint32_t fb_sim_pool_pick(fb_sim_pool *pool, fb_seed seed, uint64_t number);
/* What came of a mutation of the member with this id, should it still be there. */
void fb_sim_pool_tried(fb_sim_pool *pool, uint64_t id, bool paid);

#endif
