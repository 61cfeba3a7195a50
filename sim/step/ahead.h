/* SPDX-License-Identifier: Apache-2.0 */
/* What is going to happen, in the order in which it would. */
#ifndef FB_SIM_STEP_AHEAD_H
#define FB_SIM_STEP_AHEAD_H

#include "sim/world/queue.h"

typedef struct fb_sim_world fb_sim_world;

typedef struct fb_sim_ahead {
    uint64_t time_ns;
    uint64_t order;
    uint32_t node;  /* UINT32_MAX: the world */
    uint64_t cause; /* step that put it there; 0: none, or out of memory */
    char text[120];
} fb_sim_ahead;

/* The first `room` of them, ticks too; what is void already is left out. Returns how many. */
uint32_t fb_sim_look_ahead(const fb_sim_world *world, fb_sim_ahead *out, uint32_t room);

#endif
