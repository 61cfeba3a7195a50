/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/limits.h"
#include "sim/checkers/list.h"
#include "sim/weather/lies.h"

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
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    if (own != NULL) world->checks->sent = own;
    s->links = fb_arena_take(arena, (size_t)world->network.connection_count * 2, sizeof *s->links);
}

static uint64_t key_of(const fb_sim_told *told)
{
    return told->key + fb_word_load(told->message.space.b + 8);
}

static const given *given_of(const state *s, const fb_effect *delivered, const fb_sim_told *told)
{
    const link_state *l = &s->links[told->end ^ 1u];
    const given *g = &l->last[delivered->c % FB_SEND_WINDOW_MESSAGES];
    return g->key == key_of(told) ? g : NULL;
}

uint64_t fb_sim_sent_ms(const fb_sim_world *world, const fb_effect *delivered,
                        const fb_sim_told *told)
{
    const given *g = given_of(world->checks->sent, delivered, told);
    return g == NULL ? 0 : g->timestamp;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    const fb_sim_told *told = world->checks->told;
    const fb_sim_message *m = &told->message;
    if (fx->a != FB_FACT_DELIVERED) {
        link_state *l = &s->links[told->end];
        if (l->link != fx->b) *l = (link_state){.link = fx->b};
        l->last[fx->c % FB_SEND_WINDOW_MESSAGES] = (given){key_of(told), m->timestamp};
        return;
    }
    if (given_of(s, fx, told) != NULL) return;
    bool lies = told->peer != UINT32_MAX && world->liars[told->peer];
    if (lies && ORACLE(LIARS_BELIEVED, false, true)) return;
    /* A liar may give anybody what was once signed for another, or for nobody, as its process ended
     * before that left. Only its machine knows what it gave. */
    if (lies && fb_sim_memo_find(&world->signs, fb_sim_signed_key(m->id, m->peer))) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_delivered_was_sent.id,
                    "%s accepted a message that %s never sent it", fb_sim_name(node),
                    told->peer == UINT32_MAX ? "a stranger" : fb_sim_name(told->peer));
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
    .histories = true,
};
