/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/limits.h"
#include "sim/checkers/list.h"

/* What each link end gave away lately, by number. A message is delivered before it is acknowledged,
 * so the window of the sender bounds what may come. */

typedef struct given {
    uint64_t key;
    uint64_t timestamp;
} given;

typedef struct link_state {
    uint64_t link;
    given last[FB_SEND_WINDOW_MESSAGES];
} link_state;

typedef struct state {
    link_state *links;
    fb_sim_memo of_liars; /* message, whomever it was for -> 1 */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    if (own != NULL) world->checks->sent = own;
    s->links = fb_arena_take(arena, (size_t)world->network.connection_count * 2, sizeof *s->links);
    fb_sim_memo_init(&s->of_liars, arena, 1u << 15);
}

static const given *given_of(const fb_sim_world *world, const state *s, const fb_effect *delivered,
                             const fb_sim_message *m)
{
    const link_state *l = &s->links[fb_sim_link_end(world, delivered->b) ^ 1u];
    const given *g = &l->last[delivered->c % FB_SEND_WINDOW_MESSAGES];
    return g->key == fb_sim_message_key(m->id, m->space, m->peer) ? g : NULL;
}

uint64_t fb_sim_sent_at(const fb_sim_world *world, const fb_effect *delivered)
{
    fb_sim_message m = fb_sim_message_of(delivered);
    const given *g = given_of(world, world->checks->sent, delivered, &m);
    return g == NULL ? 0 : g->timestamp;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    fb_sim_message m = fb_sim_message_of(fx);
    fb_id self = world->nodes[node].id;
    if (fx->a != FB_FACT_DELIVERED) {
        link_state *l = &s->links[fb_sim_link_end(world, fx->b)];
        if (l->link != fx->b) *l = (link_state){.link = fx->b};
        l->last[fx->c % FB_SEND_WINDOW_MESSAGES] =
            (given){fb_sim_message_key(m.id, m.space, self), m.timestamp};
        /* A liar may give anybody what it signed for another. */
        if (world->liars[node]) {
            fb_sim_memo_put(&s->of_liars, fb_sim_message_key(m.id, self, self), 1);
        }
        return;
    }
    if (given_of(world, s, fx, &m) != NULL) return;
    uint32_t sender = fb_sim_node_of(world, m.peer);
    if (sender != UINT32_MAX && world->liars[sender] && ORACLE(LIARS_BELIEVED, false, true)) return;
    if (sender != UINT32_MAX && world->liars[sender] &&
        fb_sim_memo_find(&s->of_liars, fb_sim_message_key(m.id, m.peer, m.peer)) != NULL) {
        return;
    }
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_delivered_was_sent.id,
                    "%s accepted a message that %s never sent it", fb_sim_name(node),
                    sender == UINT32_MAX ? "a stranger" : fb_sim_name(sender));
}

const fb_sim_check fb_sim_check_delivered_was_sent = {
    .id = "delivered-was-sent",
    .musts = "FM-5.4-1, FM-5.4-3, FM-6.1-1, FM-11-1, FM-11-2, FM-11-9, MP-5-7, MP-5-9, "
             "MP-5-12",
    .cost = "O(1) a message",
    .text = "what is delivered was signed and sent by its member, by an honest one to this node",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_DELIVERED),
    .fact = fact,
};
