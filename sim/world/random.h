/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of draws that fb_draw does not have: integer tables instead of floating point. */
#ifndef FB_SIM_WORLD_RANDOM_H
#define FB_SIM_WORLD_RANDOM_H

#include "protocol/base/draw.h"
#include "sim/world/streams.h"

/* Exponential with the given mean, from 64 random bits, capped at about 6.2 means. */
uint64_t fb_sim_exponential(uint64_t bits, uint64_t mean);

/* Uniform over low .. high, both included. high must not be below low. */
uint64_t fb_sim_between(fb_seed seed, uint32_t stream, uint64_t entity, uint64_t occurrence,
                        uint64_t low, uint64_t high);

/* Draws one after another: what comes next has the next occurrence. */
typedef struct fb_sim_dice {
    fb_seed seed;
    uint32_t stream;
    uint64_t entity;
    uint64_t occurrence;
} fb_sim_dice;

/* Uniform below count, which is not 0. */
static inline uint64_t fb_sim_roll(fb_sim_dice *d, uint64_t count)
{
    return fb_draw_below(d->seed, d->stream, d->entity, d->occurrence++, count);
}

#endif
