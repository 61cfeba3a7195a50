/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/checkers/oracle.h"
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
    /* NAME, or NAME+ORACLE with a mistake in a check beside it; then NAME may be none. */
    char name[64];
    const char *plus = strchr(mutant, '+');
    size_t len = plus == NULL ? strlen(mutant) : (size_t)(plus - mutant);
    if (len < sizeof name) memcpy(name, mutant, len);
    name[len < sizeof name ? len : 0] = 0;
    int bug = fb_sim_mutant_of(name);
    int oracle = plus == NULL ? 0 : fb_sim_oracle_of(plus + 1);
    bool none = oracle != 0 && strcmp(name, "none") == 0;
    if ((bug == 0 && !none) || (plus != NULL && oracle == 0)) {
        return fb_sim_refuse("no planted bug of this name (see `faberio sim mutants`)", mutant);
    }
#ifdef FB_PLANTED_BUGS
    (void)argc;
    (void)argv;
    fb_planted_bug = bug;
    fb_oracle_bug = oracle;
    return -1;
#else
    char path[PATH_MAX];
    ssize_t used = readlink("/proc/self/exe", path, sizeof path - 32);
    if (used <= 0) return fb_sim_refuse("cannot find the program's own folder", NULL);
    path[used] = 0;
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
