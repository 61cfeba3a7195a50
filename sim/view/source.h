/* SPDX-License-Identifier: Apache-2.0 */
/* Which run a verb is about: a schedule's file, or a seed with flags. */
#ifndef FB_SIM_VIEW_SOURCE_H
#define FB_SIM_VIEW_SOURCE_H

#include "sim/flags.h"
#include "sim/schedule/schedule.h"
#include "sim/view/record.h"

typedef struct fb_sim_source {
    fb_sim_config config;
    const char *mutant; /* NULL: none */
    const char *path;   /* of a schedule; NULL: seed and flags */
    fb_sim_plan *plan;  /* that was read from there; worlds read in it as long as they live */
    bool sound;         /* without the planted bug that the schedule names */
} fb_sim_source;

void fb_sim_source_init(fb_sim_source *source);
void fb_sim_source_free(fb_sim_source *source);

/* One word of the command line, with its value: a flag of a run, or a schedule's path; what follows
 * a path changes what the schedule says. */
fb_sim_flag fb_sim_source_read(fb_sim_source *source, int argc, char **argv, int *at);

/* A world that is ready for its first turn, with a record of so many steps. */
fb_sim_world *fb_sim_source_open(const fb_sim_source *source, uint64_t steps);
void fb_sim_source_close(fb_sim_world *world);

/* The closing line of the command contract for a run that went so far. */
void fb_sim_source_verdict(const fb_sim_world *world, const fb_sim_source *source);

#endif
