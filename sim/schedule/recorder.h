/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a run down as a schedule while it happens. */
#ifndef FB_SIM_SCHEDULE_RECORDER_H
#define FB_SIM_SCHEDULE_RECORDER_H

#include "protocol/base/alloc.h"

typedef struct fb_sim_world fb_sim_world;
struct fb_sim_plan;
struct fb_sim_window;
struct fb_sim_op;

typedef struct fb_sim_recorder {
    struct fb_sim_plan *schedule;
    uint64_t start_ns; /* of the running round */
    uint32_t first;    /* line of it */
    bool overflow;     /* the schedule is not whole */
} fb_sim_recorder;

void fb_sim_recorder_init(fb_sim_world *world, fb_arena *arena);
/* A round has begun, a window was drawn, an operation is asked, the round is healed. */
void fb_sim_recorder_round(fb_sim_world *world);
void fb_sim_recorder_window(fb_sim_world *world, const struct fb_sim_window *window);
void fb_sim_recorder_op(fb_sim_world *world, uint32_t node, uint32_t client,
                        const struct fb_sim_op *op);
void fb_sim_recorder_heal(fb_sim_world *world);
/* The run is over: what is expected of its schedule. False when it could not be kept whole. */
bool fb_sim_recorder_end(fb_sim_world *world);

#endif
