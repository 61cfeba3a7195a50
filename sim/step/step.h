/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim step`: walking through a run by commands, one a line. */
#ifndef FB_SIM_STEP_STEP_H
#define FB_SIM_STEP_STEP_H

/* Arguments as of fb_sim_main; the exit code. */
int fb_sim_step_main(int argc, char **argv);

#endif
