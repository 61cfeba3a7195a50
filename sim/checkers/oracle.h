/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes planted in the checks themselves: who judges is judged too. ORACLE(id, good, bad) is
 * `good` but in the program with the planted bugs, where `--mutant BUG+NAME` switches one on beside
 * a bug of the core that it hides (or `none+NAME`, when it accuses a sound core).
 * tests/oracle_mutants.py shows that each is caught. */
#ifndef FB_SIM_CHECKERS_ORACLE_H
#define FB_SIM_CHECKERS_ORACLE_H

#include <stdbool.h>

enum fb_oracle_mutant {
    FB_ORACLE_NONE = 0,
#define X(id, name, place, text, bug) FB_ORACLE_##id,
#include "sim/checkers/oracle_mutants.def"
#undef X
    FB_ORACLES
};

/* By name; 0 when there is none. */
int fb_sim_oracle_of(const char *name);

#ifdef FB_PLANTED_BUGS
extern int fb_oracle_bug; /* set before a run, never within one */
#define ORACLE(id, good, bad) (fb_oracle_bug == FB_ORACLE_##id ? (bad) : (good))
#else
#define ORACLE(id, good, bad) (good)
#endif

#endif
