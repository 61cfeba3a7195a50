/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of a run that no caller could handle. They print the run's seed, so that it can be run
 * again, and the closing JSON line of the command contract. */
#ifndef FB_SIM_WORLD_FAIL_H
#define FB_SIM_WORLD_FAIL_H

#include <stdint.h>

/* Exit codes of the command contract, section 3. */
enum fb_sim_exit {
    FB_SIM_EXIT_PASS = 0,
    FB_SIM_EXIT_USAGE = 2,
    FB_SIM_EXIT_SAFETY = 10,
    FB_SIM_EXIT_LIVENESS = 11,
    FB_SIM_EXIT_CRASH = 12,
    FB_SIM_EXIT_NONDETERMINISM = 13,
    FB_SIM_EXIT_RESOURCE = 14,
    FB_SIM_EXIT_ORACLE = 15,
};

/* What the closing line names when the process has to end in the middle of a run. */
typedef struct fb_sim_current {
    const char *seed;
    const uint64_t *steps;
    /* Told before the end, with the check that the closing line names: to write down how far the
     * run came. NULL: nobody listens. */
    void (*ending)(void *world, const char *check);
    void *world;
} fb_sim_current;

void fb_sim_fail_set(fb_sim_current current);
/* Tells who listens that the process ends, and no more. */
void fb_sim_fail_tell(const char *check);

/* A pool of the simulator is spent: exit 14. */
_Noreturn void fb_sim_fail_resource(const char *what);
/* An assertion failed: exit 12. */
_Noreturn void fb_sim_fail_crash(const char *file, int line, const char *condition);

#endif
