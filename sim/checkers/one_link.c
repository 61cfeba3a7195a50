/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/link/link.h"
#include "protocol/space/space.h"
#include "sim/checkers/list.h"

/* When a core is healed and quiet, every duplicate has been closed by the node with the smaller id,
 * and not both by both. */

static uint32_t links_between(const fb_sim_world *world, uint32_t i, uint32_t j, fb_id space)
{
    const fb_node *node = world->nodes[i].core;
    fb_id peer = fb_node_self(world->nodes[j].core);
    uint32_t count = 0;
    for (uint32_t l = 0; l < fb_link_capacity(node); l++) {
        const fb_link_info *info = fb_link_at(node, l);
        if (info->state != FB_LINK_OPEN || !fb_id_equal(info->peer, peer)) continue;
        if (fb_id_equal(fb_space_id(node, info->space), space)) count++;
    }
    return count;
}

static void round_end(fb_sim_world *world, void *own)
{
    (void)own;
    uint32_t nodes = world->config.nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        for (uint32_t j = 0; j < nodes; j++) {
            const fb_sim_node *a = &world->nodes[i], *b = &world->nodes[j];
            if (i == j || !a->running || !b->running) continue;
            if (world->held_apart[i] || world->held_apart[j]) continue;
            uint32_t here = links_between(world, i, j, world->space);
            if (here <= 1 && here == links_between(world, j, i, world->space)) continue;
            fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_one_link.id,
                            "%s has %u open links to %s, which has %u to it", fb_sim_name(i), here,
                            fb_sim_name(j), links_between(world, j, i, world->space));
            return;
        }
    }
}

const fb_sim_check fb_sim_check_one_link = {
    .id = "one-link-per-pair",
    .musts = "P-7",
    .cost = "round",
    .text = "two members of a quiet core have one link in their space, or none, at both ends",
    .round = round_end,
};
