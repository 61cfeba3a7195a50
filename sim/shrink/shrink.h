/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a failing schedule small: lines are taken away while the same check still fails, then times
 * are rounded and values made small. */
#ifndef FB_SIM_SHRINK_H
#define FB_SIM_SHRINK_H

#include "sim/schedule/apart.h"
#include "sim/schedule/schedule.h"

typedef struct fb_sim_shrink_options {
    const char *path;     /* the best so far is written here now and then; or NULL */
    uint64_t deadline_ns; /* of fb_sim_real_ns; then the best so far is the result */
    bool verbose;         /* each improvement on standard error */
} fb_sim_shrink_options;

typedef struct fb_sim_shrinker {
    fb_sim_shrink_options options;
    fb_sim_plan best;
    fb_sim_report report; /* of the best */
    uint64_t limit;       /* steps of a candidate */
    uint64_t began_ns;
    uint64_t saved_ns;
    uint32_t runs;
    uint64_t run_ns;      /* what a run takes, smoothed */
    uint32_t other_seeds; /* so many are tried, when a candidate does not fail with its own */
    bool improved;        /* since it was last set to false */
} fb_sim_shrinker;

/* Plays the schedule and shrinks it. False: it does not fail, or not as it says; shrinker->report
 * says what it does. Otherwise shrinker->best is the smallest that was found: it fails by the same
 * check, its expectation and its hash are set, and the caller frees it. */
bool fb_sim_shrink(const fb_sim_plan *plan, const fb_sim_shrink_options *options,
                   fb_sim_shrinker *shrinker);

/* For the passes. Takes the candidate: when it fails by the same check it is the best from now on,
 * else it is freed. */
bool fb_sim_shrink_try(fb_sim_shrinker *shrinker, fb_sim_plan *candidate);
bool fb_sim_shrink_is_over(const fb_sim_shrinker *shrinker);

/* What is tried, in passes.c: each returns when nothing more of its kind helps. */
void fb_sim_shrink_rounds(fb_sim_shrinker *shrinker);
void fb_sim_shrink_nodes(fb_sim_shrinker *shrinker);
void fb_sim_shrink_classes(fb_sim_shrinker *shrinker);
void fb_sim_shrink_sizes(fb_sim_shrinker *shrinker);
void fb_sim_shrink_thin(fb_sim_shrinker *shrinker);
void fb_sim_shrink_lines(fb_sim_shrinker *shrinker);
/* In series.c: one line for many operations, then as few times as will do. */
void fb_sim_shrink_join(fb_sim_shrinker *shrinker);
void fb_sim_shrink_series(fb_sim_shrinker *shrinker);
void fb_sim_shrink_header(fb_sim_shrinker *shrinker);
void fb_sim_shrink_times(fb_sim_shrinker *shrinker);
void fb_sim_shrink_values(fb_sim_shrinker *shrinker);

/* `faberio sim shrink`. */
int fb_sim_shrink_main(int argc, char **argv);

#endif
