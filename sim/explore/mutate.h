/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a schedule another one that is worth a run: mistakes live near the runs that showed
 * something new, in other orders and other company. Every draw is keyed by (seed, number of the
 * run), so a mutation can be made again. */
#ifndef FB_SIM_EXPLORE_MUTATE_H
#define FB_SIM_EXPLORE_MUTATE_H

#include "sim/schedule/schedule.h"

/* Longer schedules are cut to so many rounds: short runs try more in the same number of steps. */
#define FB_SIM_MUTATED_ROUNDS 6u

/* A few of the changes of mutate.c, drawn by the number; what is taken over from another schedule
 * comes from `other`, which may be the same one. What is expected of the schedule is forgotten.
 * False when there is no memory for it. */
bool fb_sim_mutate(fb_sim_plan *plan, const fb_sim_plan *other, fb_seed seed, uint64_t number);

/* No round has more windows than the weather can hold: the later ones go. Sorted before. */
void fb_sim_windows_limit(fb_sim_plan *plan);

/* priority.c: instead of delays of its own each round gets an order of the nodes by speed, changed
 * at a few points (probabilistic concurrency testing): whoever stands low in it waits for the
 * network, the disk and its timers far longer than who stands high, so that long overtakings
 * happen which independent delays almost never make. */
bool fb_sim_prioritise(fb_sim_plan *plan, fb_seed seed, uint64_t number);

#endif
