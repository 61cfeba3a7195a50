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
    [FB_TOY_NO_CHECKSUM] = {"no-checksum", TOY, "believes every byte of the network",
                            "applied-was-written"},
    [FB_TOY_WHOLE_MESSAGES] = {"whole-messages", TOY, "expects a message in one piece",
                               "converges"},
    [FB_TOY_NO_REDIAL] = {"no-redial", TOY, "a lost connection is lost for ever", "converges"},
    [FB_TOY_NO_PATIENCE] = {"no-patience", TOY, "does not notice that a peer is silent",
                            "converges"},
    [FB_TOY_SENDS_ONCE] = {"sends-once", TOY, "tells a new link nothing of before", "converges"},
    [FB_TOY_REPLIES_EARLY] = {"replies-early", TOY, "answers before the write set is durable",
                              "durable-before-reply"},
    [FB_TOY_FORGETS_COUNTER] = {"numbers-by-the-clock", TOY, "numbers changes by the wall clock",
                                "write-sets-in-order"},
    [FB_TOY_NEVER_RESTARTS] = {"never-restarts", TOY, "ignores a failed write set",
                               "effects-in-order"},
    [FB_TOY_READS_UNWRITTEN] = {"reads-unwritten", TOY, "sends a byte that nobody wrote",
                                "`sim diff` with two values of --poison"},
    [FB_TOY_COUNTS_TICKS] = {"counts-ticks", TOY, "takes its ticks for time", "converges"},
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
