/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* Timestamps of what was sent lately, by id, sender and receiver. A repeated message counts as sent
 * again, so only what is on its way has to be remembered. */
typedef struct state {
    fb_sim_memo sent;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    if (own != NULL) world->checks->sent = own;
    fb_sim_memo_init(&s->sent, arena, world->config.nodes <= 16 ? 1u << 13 : 1u << 15);
}

uint64_t fb_sim_sent_at(fb_sim_world *world, fb_id id, fb_id from, fb_id to)
{
    state *s = world->checks->sent;
    const uint64_t *known = fb_sim_memo_find(&s->sent, fb_sim_message_key(id, from, to));
    return known == NULL ? 0 : *known;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    fb_sim_message m = fb_sim_message_of(fx);
    fb_id self = world->nodes[node].id;
    if (fx->a != FB_FACT_DELIVERED) {
        fb_sim_memo_put(&s->sent, fb_sim_message_key(m.id, self, m.peer), m.timestamp);
        /* A traitor may give anybody what it signed for another. */
        if (node == world->traitor) {
            fb_sim_memo_put(&s->sent, fb_sim_message_key(m.id, self, self), m.timestamp);
        }
        return;
    }
    if (fb_sim_memo_find(&s->sent, fb_sim_message_key(m.id, m.peer, self)) != NULL) return;
    uint32_t sender = fb_sim_node_of(world, m.peer);
    if (sender != UINT32_MAX && sender == world->traitor &&
        fb_sim_memo_find(&s->sent, fb_sim_message_key(m.id, m.peer, m.peer)) != NULL) {
        return;
    }
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_delivered_was_sent.id,
                    "%s accepted a message that %s never sent it", fb_sim_name(node),
                    sender == UINT32_MAX ? "a stranger" : fb_sim_name(sender));
}

const fb_sim_check fb_sim_check_delivered_was_sent = {
    .id = "delivered-was-sent",
    .musts = "FM-5.4, FM-11, P-5",
    .cost = "O(1) a message",
    .text = "what is delivered was signed and sent by its member, by an honest one to this node",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_DELIVERED),
    .fact = fact,
};
