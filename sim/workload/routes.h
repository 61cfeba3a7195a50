/* SPDX-License-Identifier: Apache-2.0 */
/* External carriers: where there is nothing else they are opened again whenever both ends are up;
 * beside a stream only now and then in the weather, because one of the two links will be closed. */
#ifndef FB_SIM_WORKLOAD_ROUTES_H
#define FB_SIM_WORKLOAD_ROUTES_H

#include "sim/world/world.h"

/* What each pair of nodes has: a stream, a carrier, or both. */
void fb_sim_routes_draw(fb_sim_world *world);

/* Carriers whose turn it is. */
void fb_sim_routes_open(fb_sim_world *world);

#endif
