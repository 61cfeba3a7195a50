/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules whose runs showed something new, to be mutated. Who pays is picked more often; who was
 * tried in vain for long makes room. */
#ifndef FB_SIM_EXPLORE_POOL_H
#define FB_SIM_EXPLORE_POOL_H

#include <limits.h>

#include "sim/schedule/schedule.h"

#define FB_SIM_POOL_MAX 128u
/* A member is cut to its last lines' rounds when it has more. */
#define FB_SIM_POOL_LINES_MAX 4000u

typedef struct fb_sim_pool_member {
    fb_sim_plan plan;
    uint64_t id;     /* of the run that it came from, never used again: names its file */
    uint32_t gained; /* places of the map that were new when it came */
    uint32_t tried;  /* mutations of it that were played */
    uint32_t paid;   /* of those, how many joined the pool or failed */
} fb_sim_pool_member;

typedef struct fb_sim_pool {
    fb_sim_pool_member *members; /* FB_SIM_POOL_MAX */
    uint32_t count;
    char folder[PATH_MAX / 2]; /* of the files that outlive the process; empty: none */
} fb_sim_pool;

/* Reads what an earlier hunt left. False: no memory, or the folder cannot be made. */
bool fb_sim_pool_open(fb_sim_pool *pool, const char *folder);
void fb_sim_pool_close(fb_sim_pool *pool);

/* Takes the plan, whose run gained so much; the least promising member goes when there are too
 * many. */
void fb_sim_pool_add(fb_sim_pool *pool, fb_sim_plan *plan, uint64_t id, uint32_t gained);

/* A member to be mutated; UINT32_MAX when there is none. */
uint32_t fb_sim_pool_pick(const fb_sim_pool *pool, fb_seed seed, uint64_t number);
/* What came of a mutation of the member with this id, should it still be there. */
void fb_sim_pool_tried(fb_sim_pool *pool, uint64_t id, bool paid);

#endif
