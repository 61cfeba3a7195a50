/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the programs that are made of the simulator. The toys have a file of their
 * own in the place of program.c and mutants.c (toys/main.c). */
#ifndef FB_SIM_PROGRAM_H
#define FB_SIM_PROGRAM_H

#include "sim/world/world.h"

/* How people call it in a clone of the project. */
extern const char fb_sim_command[];

/* What is other than the default in every run. */
void fb_sim_config_adapt(fb_sim_config *config);

/* Switches a planted bug on. In the program that has none this starts the other one of the same
 * folder with the same words, and returns only when that fails: an exit code, or -1 to go on. */
int fb_sim_mutant_switch(int argc, char **argv, const char *mutant);

#endif
