/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim/main_sim.h"
#include "sim/run.h"

int fb_sim_bench_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fprintf(stderr, "faberio sim bench: not built in this version\n");
    return FB_SIM_EXIT_USAGE;
}
