/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* An id is delivered once while its record lives. A crash may undo a delivery that was not
 * acknowledged: the record of the id was not durable either, and at least once means again. */

#define ACKED  UINT64_C(1) /* low bit of the value: the rest is the incarnation */
#define WINDOW 64u         /* deliveries of a link that may wait for their acknowledgement */

typedef struct delivery {
    uint64_t key; /* 0: none */
    uint64_t variant;
} delivery;

typedef struct waiting {
    uint64_t link;
    uint64_t first; /* number of the oldest delivery in the ring */
    uint64_t last;
    delivery waits[WINDOW];
} waiting;

/* What is known of a message: FB_SIM_KNOWN_DELIVERED, of its first variant. Others (a liar gives
 * one id to messages of two times, a floor was lowered) stand in a table of their own. */
typedef struct state {
    fb_sim_memo variants;
    fb_sim_memo resets; /* (node, space, sender) -> how often its floor was lowered */
    uint64_t lowered;   /* resets in all */
    waiting *links;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->variants, arena, 1u << 13, 1);
    fb_sim_memo_init(&s->resets, arena, 1u << 12, 1);
    s->links = fb_arena_take(arena, (size_t)world->network.connection_count * 2, sizeof *s->links);
}

static waiting *of_link(fb_sim_world *world, state *s, uint64_t link)
{
    waiting *w = &s->links[fb_sim_link_end(world, link)];
    if (w->link != link) *w = (waiting){.link = link};
    return w;
}

/* Messages of one key that may each be accepted once. */
static uint64_t variant_of(const fb_sim_world *world, state *s, uint32_t node,
                           const fb_sim_message *m)
{
    /* A liar may give one id to messages of two times; the floor tells only times apart. */
    uint64_t variant = m->timestamp * UINT64_C(0x9e3779b97f4a7c15);
    if (s->lowered != 0) {
        /* A lowered floor forgets what was behind it: ids from before count as new (P-5). */
        const uint64_t *resets =
            fb_sim_memo_find(&s->resets, fb_sim_pair_key(m->space, m->peer, node));
        if (resets != NULL) variant += *resets;
    }
    /* Two machines with one identity know nothing of each other's messages. */
    if (world->nodes[node].cloned) {
        variant ^= fb_sim_pair_key(m->space, m->peer, world->nodes[node].identities);
    }
    return variant == 0 ? 1 : variant;
}

static uint64_t variant_key(uint64_t key, uint64_t variant)
{
    return key + variant == 0 ? 1 : key + variant;
}

static void delivered(fb_sim_world *world, state *s, uint32_t node, const fb_effect *fx)
{
    const fb_sim_told *told = world->checks->told;
    uint64_t variant = variant_of(world, s, node, &told->message);
    uint64_t *first = &told->known[FB_SIM_KNOWN_VARIANT];
    if (*first == 0) *first = variant;
    uint64_t *known = *first == variant
                          ? &told->known[FB_SIM_KNOWN_DELIVERED]
                          : fb_sim_memo_at(&s->variants, variant_key(told->key, variant));
    uint64_t incarnation = world->nodes[node].incarnation & ~ACKED;
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
    for (uint64_t n = w->last + 1; n < fx->c && n < w->last + WINDOW; n++) {
        w->waits[n % WINDOW] = (delivery){0, 0};
    }
    w->waits[fx->c % WINDOW] = (delivery){told->key, variant};
    if (fx->c > w->last) w->last = fx->c;
}

static void acked(fb_sim_world *world, state *s, const fb_effect *fx)
{
    waiting *w = of_link(world, s, fx->b);
    for (; w->first <= fx->c && w->first <= w->last; w->first++) {
        delivery d = w->waits[w->first % WINDOW];
        w->waits[w->first % WINDOW] = (delivery){0, 0};
        if (d.key == 0) continue;
        uint64_t *known = fb_sim_memo_find(&world->checks->messages, d.key);
        if (known == NULL || known[FB_SIM_KNOWN_VARIANT] != d.variant) {
            known = fb_sim_memo_find(&s->variants, variant_key(d.key, d.variant));
        } else {
            known += FB_SIM_KNOWN_DELIVERED;
        }
        if (known != NULL) *known |= ACKED;
    }
}

static void floor_moved(const fb_sim_world *world, state *s, uint32_t node, const fb_effect *fx)
{
    if (fx->c == 0) return;
    const fb_sim_message *m = &world->checks->told->message;
    ++*fb_sim_memo_at(&s->resets, fb_sim_pair_key(m->space, m->peer, node));
    s->lowered++;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    if (fx->a == FB_FACT_LINK_BOUND) {
        waiting *w = of_link(world, own, fx->b);
        *w = (waiting){.link = fx->b}; /* a new session of a carrier counts anew */
    } else if (fx->a == FB_FACT_FLOOR) {
        floor_moved(world, own, node, fx);
    } else if (fx->a == FB_FACT_DELIVERED) {
        delivered(world, own, node, fx);
    } else {
        acked(world, own, fx);
    }
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)node;
    (void)empty;
    /* An old store has forgotten ids that it had acknowledged: nothing can be said of them. */
    fb_sim_memo_zero(&world->checks->messages, FB_SIM_KNOWN_DELIVERED);
    fb_sim_memo_clear(&((state *)own)->variants);
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
    .histories = true,
};
