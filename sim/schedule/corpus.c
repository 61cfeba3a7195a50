/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/flags.h"
#include "sim/schedule/verbs.h"

int fb_sim_test_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return fb_sim_refuse("not built in this version", "test");
}
