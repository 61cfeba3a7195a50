/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

#define APPROVED 1u

/* Whom each node holds for an approved member: (node, space, member) -> status. */
typedef struct state {
    fb_sim_memo members;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    uint32_t places = 1024;
    while (places < world->config.nodes * world->config.nodes * 4) places *= 2;
    fb_sim_memo_init(&s->members, arena, places, 1);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    fb_sim_message m = fb_sim_message_of(fx);
    /* A copy of a store holds for members whom the store does. */
    uint64_t key = fb_sim_pair_key(m.space, m.peer, fb_sim_identity(world, node) + 1);
    if (fx->a == FB_FACT_MEMBER) {
        fb_sim_memo_put(&s->members, key, fx->b);
        return;
    }
    const uint64_t *status = fb_sim_memo_find(&s->members, key);
    if (status != NULL && *status == APPROVED) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_senders_are_members.id,
                    "%s %s a node that it does not hold for an approved member", fb_sim_name(node),
                    fx->a == FB_FACT_DELIVERED ? "accepts a message of" : "sends a message to");
}

const fb_sim_check fb_sim_check_senders_are_members = {
    .id = "senders-are-members",
    .musts = "MP-1-4, MP-5-5, MP-6-16",
    .cost = "O(1) a message",
    .text = "messages are sent to and accepted from approved members only",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_MEMBER) | FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_DELIVERED),
    .fact = fact,
};
