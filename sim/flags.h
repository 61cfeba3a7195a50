/* SPDX-License-Identifier: Apache-2.0 */
/* The flags that say what a run is made of, the same for every verb that runs one. */
#ifndef FB_SIM_FLAGS_H
#define FB_SIM_FLAGS_H

#include "sim/program.h"

typedef enum fb_sim_flag {
    FB_SIM_FLAG_TAKEN,   /* *at stands on the last word that was read */
    FB_SIM_FLAG_UNKNOWN, /* not one of these */
    FB_SIM_FLAG_REFUSED, /* its value is missing or wrong; that was said on standard error */
} fb_sim_flag;

/* Reads the flag at argv[*at] into the configuration. *mutant is set to the name of a planted bug.
 */
fb_sim_flag fb_sim_flag_read(int argc, char **argv, int *at, fb_sim_config *config,
                             const char **mutant);

/* Says on standard error what is wrong, with the word it is about (NULL: none), in one line that
 * obeys no control codes. Returns FB_SIM_EXIT_USAGE. */
int fb_sim_refuse(const char *what, const char *which);

/* The number of nodes, with the tables that grow with it. */
void fb_sim_config_nodes(fb_sim_config *config, uint32_t nodes);

#endif
