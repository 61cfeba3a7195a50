/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/director.h"

/* When a core is healed and quiet, every pair has dialled until it had a link, every duplicate has
 * been closed by the node with the smaller id, and not both by both. */

typedef struct link_state {
    uint64_t link; /* 0: none is open at this end */
    uint32_t node;
    fb_id space;
    fb_id peer;
} link_state;

static uint32_t ends(const fb_sim_world *world)
{
    return world->network.connection_count * 2;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    link_state *links = own;
    link_state *l = &links[fb_sim_link_end(world, fx->b)];
    if (fx->a == FB_FACT_LINK_BOUND) {
        fb_sim_message m = fb_sim_message_of(fx);
        *l = (link_state){fx->b, node, m.space, m.peer};
    } else if (l->link == fx->b) {
        l->link = 0;
    }
}

/* A node that is over says nothing of its links. */
static void over(fb_sim_world *world, void *own, uint32_t node)
{
    link_state *links = own;
    for (uint32_t i = 0; i < ends(world); i++) {
        if (links[i].node == node) links[i].link = 0;
    }
}

static uint32_t links_between(const fb_sim_world *world, const link_state *links, uint32_t space,
                              uint32_t i, uint32_t j)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < ends(world); e++) {
        const link_state *l = &links[e];
        if (l->link == 0 || l->node != i || !fb_id_equal(l->peer, world->nodes[j].id)) continue;
        if (fb_id_equal(l->space, world->spaces[space])) count++;
    }
    return count;
}

static void judge(fb_sim_world *world, const link_state *links, uint32_t space, uint32_t i,
                  uint32_t j)
{
    /* A schedule may not give them the time: one end can hold a link until it notices the silence
     * of a peer that is over. */
    bool in_time = world->now_ns > world->director->quiet_ns;
    /* Of a sparse cluster not every pair has an address; a toy node tells nothing of its links. */
    bool every_pair = world->config.degree == 0 && world->config.reference && in_time &&
                      ORACLE(UNLINKED_ALLOWED, true, false);
    uint32_t here = links_between(world, links, space, i, j);
    uint32_t there = links_between(world, links, space, j, i);
    if (ORACLE(TWO_LINKS_ALLOWED, false, here >= 1 && there >= 1)) return;
    if (here == there && (here == 1 || (here == 0 && !every_pair))) return;
    if (here != there && !in_time) return;
    fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_one_link.id,
                    "%s has %u open links to %s in space %u, which has %u to it", fb_sim_name(i),
                    here, fb_sim_name(j), (unsigned)space, there);
}

static bool takes_part(const fb_sim_world *world, uint32_t space, uint32_t node)
{
    return fb_sim_is_member(world, space, node) && world->nodes[node].running &&
           !world->held_apart[node];
}

static void round_end(fb_sim_world *world, void *own)
{
    for (uint32_t space = 0; space < fb_sim_space_count(world); space++) {
        for (uint32_t i = 0; i < world->config.nodes; i++) {
            for (uint32_t j = 0; j < world->config.nodes && !world->stop; j++) {
                if (i == j || !takes_part(world, space, i) || !takes_part(world, space, j))
                    continue;
                judge(world, own, space, i, j);
            }
        }
    }
}

const fb_sim_check fb_sim_check_one_link = {
    .id = "one-link-per-pair",
    .musts = "MP-7-22, FI-2-6",
    .cost = "round",
    .text = "two members of a quiet core have one link in their space, at both ends",
    .of_end_bytes = sizeof(link_state),
    .facts = FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_LINK_ENDED),
    .fact = fact,
    .over = over,
    .round = round_end,
};
