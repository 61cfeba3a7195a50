/* SPDX-License-Identifier: Apache-2.0 */
/* The defects as planted bugs, so that every verb of the simulator takes them: `--mutant NAME`. */
#include <string.h>

#include "sim/flags.h"
#include "sim/mutants.h"
#include "sim/toys/toy.h"

const char fb_sim_command[] = "./dev toy";

#define TOY "sim/toys/toy_node.c"

const fb_sim_mutant_row fb_sim_mutant_rows[] = {
    [FB_TOY_SOUND] = {"none", "", "", ""},
#define X(id, name, faults, text, check) [FB_TOY_##id] = {name, TOY, text, check},
#include "sim/toys/toys.def"
#undef X
};
const int fb_sim_mutant_count = FB_TOY_DEFECTS;

int fb_sim_mutant_of(const char *name)
{
    for (int i = 1; i < fb_sim_mutant_count; i++) {
        if (strcmp(fb_sim_mutant_rows[i].name, name) == 0) return i;
    }
    return 0;
}

int fb_sim_mutant_switch(int argc, char **argv, const char *mutant)
{
    (void)argc;
    (void)argv;
    fb_toy_defect_now = (fb_toy_defect)fb_sim_mutant_of(mutant);
    return fb_toy_defect_now != FB_TOY_SOUND
               ? -1
               : fb_sim_refuse("no defect of this name (see `./dev toy mutants`)", mutant);
}

void fb_sim_config_adapt(fb_sim_config *config)
{
    config->carriers_of_16 = 0;
    config->reference = false;
}
