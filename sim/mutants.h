/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of planted bugs. */
#ifndef FB_SIM_MUTANTS_H
#define FB_SIM_MUTANTS_H

#include "sim/mutant_ids.h"

typedef struct fb_sim_mutant_row {
    const char *name;
    const char *place;
    const char *text;
    const char *check;
} fb_sim_mutant_row;

extern const fb_sim_mutant_row fb_sim_mutant_rows[]; /* row 0 is none */
extern const int fb_sim_mutant_count;                /* with row 0 */

/* By name; 0 when there is none. */
int fb_sim_mutant_of(const char *name);

#ifdef FB_PLANTED_BUGS
/* The one that is switched on in this process: set before a run, never within one. */
extern int fb_planted_bug;
#endif

#endif
