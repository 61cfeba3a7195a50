/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* A store that was copied, lost or taken back shows itself in two ways: somebody else proves the
 * node's own key, or a batch of its own comes that its store does not hold. Both raise the alarm
 * within the step (profile 5 step 3), and no link to one's own key is ever taken for a peer's. */

/* unseen: by node, the step in which a batch of its own came; 0: none. */
static void look(fb_sim_world *world, const uint64_t *unseen, uint32_t node)
{
    if (unseen[node] == 0 || unseen[node] == world->nodes[node].steps) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_clone_noticed.id,
                    "%s took a batch of its own that its store did not hold, and says nothing",
                    fb_sim_name(node));
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    uint64_t *unseen = own;
    fb_id self = world->nodes[node].id;
    look(world, unseen, node);
    if (fx->a == FB_FACT_CLONE) {
        unseen[node] = 0;
    } else if (fx->a == FB_FACT_APPLIED) {
        bool of_own = fb_id_equal(fb_sim_change_of(fx).node, self);
        if (of_own) unseen[node] = world->nodes[node].steps;
    } else if (fb_id_equal(fb_sim_message_of(fx).peer, self)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_clone_noticed.id,
                        "%s is linked to its own key", fb_sim_name(node));
    }
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    uint64_t *unseen = own;
    look(world, unseen, node);
    unseen[node] = 0;
}

static void round_end(fb_sim_world *world, void *own)
{
    uint64_t *unseen = own;
    for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
        if (unseen[i] == 0) continue;
        unseen[i]--; /* it is not this step any more */
        look(world, unseen, i);
    }
}

const fb_sim_check fb_sim_check_clone_noticed = {
    .id = "clone-noticed",
    .musts = "DESIGN 2, DESIGN 3.1",
    .cost = "O(1) a change",
    .text =
        "a copied, lost or old store is noticed when its own key or batches come from elsewhere",
    .of_node_bytes = sizeof(uint64_t),
    .facts =
        FB_SIM_FACT(FB_FACT_APPLIED) | FB_SIM_FACT(FB_FACT_CLONE) | FB_SIM_FACT(FB_FACT_LINK_BOUND),
    .fact = fact,
    .over = over,
    .round = round_end,
};
