/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/mutants.h"

#include <string.h>

#include "sim/checkers/oracle.h"

#ifdef FB_PLANTED_BUGS
int fb_planted_bug;
int fb_oracle_bug;
#endif

const int fb_sim_mutant_count = FB_MUTANTS;

const fb_sim_mutant_row fb_sim_mutant_rows[] = {
    {"none", "", "", ""},
#define X(id, name, place, text, check) {name, place, text, check},
#include "sim/mutants.def"
#undef X
};

int fb_sim_mutant_of(const char *name)
{
    for (int i = 1; i < FB_MUTANTS; i++) {
        if (strcmp(fb_sim_mutant_rows[i].name, name) == 0) return i;
    }
    return 0;
}

static const char *const oracle_names[] = {
    "none",
#define X(id, name, place, text, bug) name,
#include "sim/checkers/oracle_mutants.def"
#undef X
};

int fb_sim_oracle_of(const char *name)
{
    for (int i = 1; i < FB_ORACLES; i++) {
        if (strcmp(oracle_names[i], name) == 0) return i;
    }
    return 0;
}
