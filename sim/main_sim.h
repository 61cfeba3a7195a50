/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim`: the simulator's command line (command contract, section 3). */
#ifndef FB_SIM_MAIN_SIM_H
#define FB_SIM_MAIN_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* argv[0] is the program, argv[1] the verb. Returns the exit code of the contract. */
int fb_sim_main(int argc, char **argv);

/* `bench`, in bench_main.c. */
int fb_sim_bench_main(int argc, char **argv);
/* `faults`, `checks`, `mutants`, `limits`, in catalogues.c. */
int fb_sim_catalogue_main(int argc, char **argv);

/* A decimal or 0x number, k, m and g as thousands. False when it is none. */
bool fb_sim_parse_number(const char *text, uint64_t *out);
/* A time: a number with ns, us, ms, s, m or h. */
bool fb_sim_parse_time(const char *text, uint64_t *out_ns);
/* A node's name, as a bit that is added to a set of the first 64. */
bool fb_sim_parse_node(const char *name, uint64_t *bits);

typedef struct fb_sim_config fb_sim_config;
/* An integer, or 40 hex digits as a commit has. */
bool fb_sim_parse_seed(const char *text, fb_sim_config *config);

#endif
