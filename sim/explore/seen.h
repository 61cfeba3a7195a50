/* SPDX-License-Identifier: Apache-2.0 */
/* What a run has shown, seen from far: a set of abstract states and of the steps between them. Two
 * runs that show the same are not much news to each other.
 *
 * An abstract state is what a node is about, not what it holds: how many links it has in each
 * state, whether its windows are empty or full, whether it fetches, waits for its disk or redials;
 * numbers count as none, one, a few, many. A step adds its event, the kinds of its effects and of
 * its facts. All of it is hashed to one place of a map. */
#ifndef FB_SIM_EXPLORE_SEEN_H
#define FB_SIM_EXPLORE_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/core/event.h"
#include "protocol/core/node.h"

typedef struct fb_sim_world fb_sim_world;

#define FB_SIM_SEEN_BITS (UINT32_C(1) << 21)

/* Traits are the same from further away: two things that a node is about at one time, or one of
 * them and what happens to it. States have no end, and every run shows new ones; traits come to an
 * end, and the rare ones among them say which runs are unlike the others. */
#define FB_SIM_SEEN_TRAITS (UINT32_C(1) << 16)

typedef struct fb_sim_seen {
    uint64_t bits[FB_SIM_SEEN_BITS / 64];
    uint64_t traits[FB_SIM_SEEN_TRAITS / 64];
} fb_sim_seen;

/* The step that this node has just made; does nothing when the run keeps no map. */
void fb_sim_seen_step(fb_sim_world *world, uint32_t node, const fb_event *event);

/* Adds what `more` has and returns how many places were new. */
uint32_t fb_sim_seen_add(fb_sim_seen *to, const fb_sim_seen *more);
uint32_t fb_sim_seen_count(const fb_sim_seen *seen);

/* What a node is about, as a number. abstract_core.c of the real one, or what stands in for it in
 * toys/. core is not NULL. */
uint64_t fb_sim_abstract(const fb_node *core);

#endif
