/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim` with schedules: replay, test, and what `run --schedule` does. */
#ifndef FB_SIM_SCHEDULE_VERBS_H
#define FB_SIM_SCHEDULE_VERBS_H

#include "sim/run.h"
#include "sim/schedule/schedule.h"

/* Runs a configuration, writes its schedule, prints the verdict. The exit code. */
int fb_sim_record_run(fb_sim_config *config, const char *bug, const char *path);
int fb_sim_replay_main(int argc, char **argv);
int fb_sim_test_main(int argc, char **argv);

/* Reads a schedule or says on standard error what is wrong with it: file, line, column. */
bool fb_sim_plan_load(const char *path, fb_sim_plan *out);
/* Writes it whole or not at all, over whatever was there. */
bool fb_sim_plan_save(const char *path, const fb_sim_plan *plan);
/* The line that plays it again. */
void fb_sim_print_replay(const char *path);

typedef enum fb_sim_outcome {
    FB_SIM_OUTCOME_PASSED,
    FB_SIM_OUTCOME_FAILED, /* it violates what it must not */
    FB_SIM_OUTCOME_STALE,  /* it no longer reaches its target */
} fb_sim_outcome;

/* What a verdict means for a schedule, in words in `why`. */
fb_sim_outcome fb_sim_outcome_of(const fb_sim_plan *plan, const fb_sim_verdict *verdict, char *why,
                                 size_t cap);

#endif
