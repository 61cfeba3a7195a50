/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* An id is delivered once while its record lives. A crash may undo a delivery that was not
 * acknowledged: the record of the id was not durable either, and at least once means again. */

#define ACKED  UINT64_C(1) /* low bit of the value: the rest is the incarnation */
#define WINDOW 64u         /* deliveries of a link that may wait for their acknowledgement */

typedef struct waiting {
    uint64_t link;
    uint64_t first; /* number of the delivery at keys[0] of the ring */
    uint64_t last;
    uint64_t keys[WINDOW];
} waiting;

typedef struct state {
    fb_sim_memo delivered;
    fb_sim_memo resets; /* (node, space, sender) -> how often its floor was lowered */
    uint64_t lowered;   /* resets in all */
    waiting *links;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->delivered, arena, 1u << 13);
    fb_sim_memo_init(&s->resets, arena, 1u << 12);
    s->links = fb_arena_take(arena, (size_t)world->network.connection_count * 2, sizeof *s->links);
}

static waiting *of_link(fb_sim_world *world, state *s, uint64_t link)
{
    waiting *w = &s->links[fb_sim_link_end(world, link)];
    if (w->link != link) *w = (waiting){.link = link};
    return w;
}

static void delivered(fb_sim_world *world, state *s, uint32_t node, const fb_effect *fx)
{
    fb_sim_message m = fb_sim_message_of(fx);
    /* A lowered floor forgets what was behind it: ids from before count as new (P-5). */
    uint64_t key = fb_sim_message_key(m.id, m.peer, world->nodes[node].id);
    /* A liar may give one id to messages of two times; the floor tells only times apart. */
    key += m.timestamp * UINT64_C(0x9e3779b97f4a7c15);
    if (s->lowered != 0) {
        fb_id pair[2] = {m.space, m.peer};
        const uint64_t *resets =
            fb_sim_memo_find(&s->resets, fb_sim_key(fb_span_of(pair, sizeof pair), node));
        if (resets != NULL) key += *resets;
    }
    if (key == 0) key = 1;
    uint64_t incarnation = world->nodes[node].incarnation & ~ACKED;
    uint64_t *known = fb_sim_memo_at(&s->delivered, key);
    if (*known != 0 && (ORACLE(ONCE_IN_A_LIFE, (*known & ACKED) != 0, false) ||
                        (*known & ~ACKED) == incarnation)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_delivered_once.id,
                        "%s accepted one message twice%s", fb_sim_name(node),
                        (*known & ACKED) != 0 ? ", the first time acknowledged" : "");
        return;
    }
    *known = incarnation;
    waiting *w = of_link(world, s, fx->b);
    if (fx->c >= w->first + WINDOW) w->first = fx->c - WINDOW + 1;
    for (uint64_t n = w->last + 1; n < fx->c && n < w->last + WINDOW; n++) w->keys[n % WINDOW] = 0;
    w->keys[fx->c % WINDOW] = key;
    if (fx->c > w->last) w->last = fx->c;
}

static void acked(fb_sim_world *world, state *s, const fb_effect *fx)
{
    waiting *w = of_link(world, s, fx->b);
    for (; w->first <= fx->c && w->first <= w->last; w->first++) {
        uint64_t key = w->keys[w->first % WINDOW];
        w->keys[w->first % WINDOW] = 0;
        uint64_t *known = key == 0 ? NULL : fb_sim_memo_find(&s->delivered, key);
        if (known != NULL) *known |= ACKED;
    }
}

static void floor_moved(state *s, uint32_t node, const fb_effect *fx)
{
    if (fx->c == 0) return;
    uint64_t key = fb_sim_key(fb_span_of(fb_effect_bytes(fx), fx->len < 32 ? fx->len : 32), node);
    const uint64_t *resets = fb_sim_memo_find(&s->resets, key);
    fb_sim_memo_put(&s->resets, key, resets == NULL ? 1 : *resets + 1);
    s->lowered++;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    if (fx->a == FB_FACT_LINK_BOUND) {
        waiting *w = of_link(world, own, fx->b);
        *w = (waiting){.link = fx->b}; /* a new session of a carrier counts anew */
    } else if (fx->a == FB_FACT_FLOOR) {
        floor_moved(own, node, fx);
    } else if (fx->a == FB_FACT_DELIVERED) {
        delivered(world, own, node, fx);
    } else {
        acked(world, own, fx);
    }
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)world;
    (void)node;
    (void)empty;
    /* An old store has forgotten ids that it had acknowledged: nothing can be said of them. */
    fb_sim_memo_clear(&((state *)own)->delivered);
}

const fb_sim_check fb_sim_check_delivered_once = {
    .id = "delivered-once",
    .musts = "FM-4.1-8, FM-8.1-4, FM-8.1-5, MP-5-10, MP-5-13, MP-5-16",
    .cost = "O(1) a message",
    .text = "an id is accepted once from its sender; after a restart too, when it was acknowledged",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_DELIVERED) | FB_SIM_FACT(FB_FACT_ACKED) |
             FB_SIM_FACT(FB_FACT_FLOOR) | FB_SIM_FACT(FB_FACT_LINK_BOUND),
    .fact = fact,
    .restored = restored,
};
