/* SPDX-License-Identifier: Apache-2.0 */
/* One run from its configuration to its verdict. */
#ifndef FB_SIM_RUN_H
#define FB_SIM_RUN_H

#include "sim/checkers/checks.h"
#include "sim/world/world.h"

typedef struct fb_sim_verdict {
    fb_sim_result result;
    const char *stall;
    const char *check; /* NULL when it passed */
    char detail[512];
    uint64_t events;
    uint64_t events_per_s; /* of processor time: outside everything that is compared */
    uint64_t rounds;
    uint64_t sim_ns;
    fb_hash128 hash;
    uint64_t fired[FB_SIM_FAULTS];
    /* By place in the list of checks: how often one had something to look at. */
    uint64_t seen[FB_SIM_CHECKS_MAX];
    /* Of a schedule that was played: lines that did not do what they say, the first of them. */
    uint32_t unreached;
    uint32_t unreached_first;
    bool stopped;         /* at its limit of steps, before its end */
    bool recorded;        /* config.record is whole */
    const char *schedule; /* file that this run is in, named in the closing line; or NULL */
} fb_sim_verdict;

/* False when the machine has no memory for it. */
bool fb_sim_run(const fb_sim_config *config, fb_sim_verdict *out);

/* The text in double quotes as JSON, whatever it holds. */
void fb_sim_print_json_text(const char *text);

const char *fb_sim_result_name(fb_sim_result result);
int fb_sim_result_exit(fb_sim_result result);

/* The closing line of the command contract. */
void fb_sim_print_verdict(const fb_sim_config *config, const fb_sim_verdict *verdict);

/* Nanoseconds of processor time that this process used: for rates only, and fair on a busy machine.
 */
uint64_t fb_sim_processor_ns(void);
/* Time as it passes outside, for deadlines of many runs: never within one. */
uint64_t fb_sim_real_ns(void);

#endif
