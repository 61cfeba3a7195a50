/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim hunt`: many runs in processes of their own; each failure becomes a minimal schedule
 * and a line of the ledger. */
#ifndef FB_SIM_HUNT_HUNT_H
#define FB_SIM_HUNT_HUNT_H

int fb_sim_hunt_main(int argc, char **argv);

#endif
