/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/flags.h"
#include "sim/mutants.h"

const char fb_sim_command[] = "./dev sim";

void fb_sim_config_adapt(fb_sim_config *config)
{
    (void)config;
}

/* Another program of the same folder has the planted bugs in it. */
int fb_sim_mutant_switch(int argc, char **argv, const char *mutant)
{
#ifdef FB_PLANTED_BUGS
    (void)argc;
    (void)argv;
    fb_planted_bug = fb_sim_mutant_of(mutant);
    if (fb_planted_bug != 0) return -1;
    return fb_sim_refuse("no planted bug of this name (see `faberio sim mutants`)", mutant);
#else
    if (fb_sim_mutant_of(mutant) == 0) {
        return fb_sim_refuse("no planted bug of this name (see `faberio sim mutants`)", mutant);
    }
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 32);
    if (len <= 0) return fb_sim_refuse("cannot find the program's own folder", NULL);
    path[len] = 0;
    char *slash = strrchr(path, '/');
    if (slash == NULL) return fb_sim_refuse("cannot find the program's own folder", NULL);
    strcpy(slash + 1, "faberio-sim-mutants");
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    if (arguments == NULL) return FB_SIM_EXIT_RESOURCE;
    for (int i = 0; i < argc; i++) arguments[i] = argv[i];
    fflush(stdout);
    execv(path, arguments);
    fprintf(stderr, "faberio sim: cannot run %s, the program with the planted bugs\n", path);
    free(arguments);
    return FB_SIM_EXIT_USAGE;
#endif
}
