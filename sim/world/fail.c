/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/fail.h"

#include <stdio.h>
#include <stdlib.h>
static fb_sim_current current;

void fb_sim_fail_set(fb_sim_current now)
{
    current = now;
}

void fb_sim_fail_tell(const char *check)
{
    void (*ending)(void *, const char *) = current.ending;
    current.ending = NULL; /* it may fail itself */
    if (ending != NULL) ending(current.world, check);
}

static _Noreturn void end(const char *result, const char *check, int code)
{
    fb_sim_fail_tell(check);
    unsigned long long steps = current.steps != NULL ? (unsigned long long)*current.steps : 0;
    const char *seed = current.seed != NULL ? current.seed : "0";
    printf("{\"result\":\"%s\",\"seed\":\"%s\",\"events\":%llu,\"hash\":null,\"check\":\"%s\","
           "\"stall\":null,\"schedule\":null,\"events_per_s\":0}\n",
           result, seed, steps, check);
    fflush(stdout);
    exit(code);
}

_Noreturn void fb_sim_fail_resource(const char *what)
{
    fprintf(stderr, "out of room in the simulator: %s (seed %s)\n", what,
            current.seed != NULL ? current.seed : "0");
    end("resource", "simulator-pools", FB_SIM_EXIT_RESOURCE);
}

_Noreturn void fb_sim_fail_crash(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: assertion failed: %s (seed %s, event %llu)\n", file, line, condition,
            current.seed != NULL ? current.seed : "0",
            current.steps != NULL ? (unsigned long long)*current.steps : 0ULL);
    end("crash", "assertion", FB_SIM_EXIT_CRASH);
}
