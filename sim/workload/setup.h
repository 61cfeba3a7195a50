/* SPDX-License-Identifier: Apache-2.0 */
/* How a space comes to be in a run: the local requests that its people would make. */
#ifndef FB_SIM_WORKLOAD_SETUP_H
#define FB_SIM_WORKLOAD_SETUP_H

#include "sim/world/world.h"

/* Goes on with this space; true when all its members have joined and have their neighbours'
 * addresses. */
bool fb_sim_setup_space(fb_sim_world *world, uint32_t space);

/* A node is asked for an invite that many may use for long, and to join with that of the gate. */
void fb_sim_ask_invite(fb_sim_world *world, uint32_t space, uint32_t node);
void fb_sim_ask_join(fb_sim_world *world, uint32_t space, uint32_t node);

#endif
