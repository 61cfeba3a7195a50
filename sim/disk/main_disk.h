/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim disk`: the toys on the simulated disk, crashed at every call. */
#ifndef FB_SIM_DISK_MAIN_DISK_H
#define FB_SIM_DISK_MAIN_DISK_H

int fb_sim_disk_main(int argc, char **argv);
/* A line for each fault of the disk, for `faberio sim faults`. Returns their number. */
unsigned fb_sim_disk_print_faults(void);

#endif
