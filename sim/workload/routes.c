/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/routes.h"

#include "protocol/base/draw.h"
#include "sim/workload/director.h"
#include "sim/world/world.h"

void fb_sim_routes_draw(fb_sim_world *world)
{
    uint32_t nodes = world->config.nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        for (uint32_t j = i + 1; j < nodes && nodes <= 16; j++) {
            uint64_t dice = fb_draw_below(world->seed, FB_SIM_STREAM_TOPOLOGY, i, j, 32);
            fb_sim_route route = dice / 2 >= world->config.carriers_of_16 ? FB_SIM_ROUTE_STREAM
                                 : (dice & 1) != 0                        ? FB_SIM_ROUTE_CARRIER
                                                                          : FB_SIM_ROUTE_BOTH;
            world->carriers[i * nodes + j] = world->carriers[j * nodes + i] = (uint8_t)route;
        }
    }
}

void fb_sim_routes_open(fb_sim_world *world)
{
    const fb_sim_director *d = world->director;
    uint32_t nodes = world->config.nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        for (uint32_t j = i + 1; j < nodes; j++) {
            uint8_t route = world->carriers[i * nodes + j];
            if (route == FB_SIM_ROUTE_STREAM || world->held_apart[i] || world->held_apart[j]) {
                continue;
            }
            bool often = route == FB_SIM_ROUTE_CARRIER;
            bool now =
                d->polls % (often ? 8 : 64) == 1 && (often || d->phase == FB_SIM_PHASE_CHAOS);
            for (uint32_t s = 0; now && s < fb_sim_space_count(world); s++) {
                if (!fb_sim_is_member(world, s, i) || !fb_sim_is_member(world, s, j)) continue;
                fb_sim_carrier_open(world, s, i, j);
            }
        }
    }
}
