/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim`: the simulator, and what it needs a key for. */
#ifndef FB_RUNTIME_COMMAND_SIM_H
#define FB_RUNTIME_COMMAND_SIM_H

int fb_cmd_sim(int argc, char **argv);

#endif
