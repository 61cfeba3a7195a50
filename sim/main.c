/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/main_sim.h"

int main(int argc, char **argv)
{
    return fb_sim_main(argc, argv);
}
