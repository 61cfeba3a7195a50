/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses what the next run of a hunt plays, by what earlier ones have shown. With one job a hunt
 * is a function of its numbers and of the pool that it found. */
#ifndef FB_SIM_EXPLORE_EXPLORER_H
#define FB_SIM_EXPLORE_EXPLORER_H

#include "sim/explore/pool.h"
#include "sim/explore/seen.h"

typedef enum fb_sim_explore {
    FB_SIM_EXPLORE_RANDOM,   /* each number is the seed of a run in which everything is on */
    FB_SIM_EXPLORE_SWARM,    /* each is one, and each of its rounds has a part of everything */
    FB_SIM_EXPLORE_PRIORITY, /* every second one is an earlier one in another order of speeds */
    FB_SIM_EXPLORE_POOL,     /* most are mutations of runs that showed something new */
} fb_sim_explore;

typedef struct fb_sim_explorer {
    fb_sim_explore how;
    fb_seed seed;
    fb_sim_pool pool;
    fb_sim_seen seen; /* of all runs */
    uint32_t states;  /* places of it */
    uint32_t traits;
} fb_sim_explorer;

/* "random", "swarm", "priority", "pool". False: no such way. */
bool fb_sim_explore_read(const char *text, fb_sim_explore *how);

/* False: no memory, or the folder of the pool cannot be made. NULL: the pool is not kept. */
bool fb_sim_explorer_open(fb_sim_explorer *e, fb_sim_explore how, const char *folder);
void fb_sim_explorer_close(fb_sim_explorer *e);

/* True when run `number` plays a schedule, which the caller frees, made of the member `parent`;
 * false when it is drawn by that seed. */
bool fb_sim_explorer_next(fb_sim_explorer *e, uint64_t number, fb_sim_plan *plan, uint64_t *parent);

/* A run that is drawn: without swarm. */
bool fb_sim_explorer_plain(const fb_sim_explorer *e, uint64_t number);

/* How long such a run is. */
uint64_t fb_sim_explorer_events(const fb_sim_explorer *e, uint64_t number, uint64_t events);

/* It is over and has shown this: how much of it is new. */
uint32_t fb_sim_explorer_over(fb_sim_explorer *e, const fb_sim_seen *shown);
/* Whether a run that gained so much and passed is worth being kept. */
bool fb_sim_explorer_wants(const fb_sim_explorer *e, uint32_t gained);

#endif
