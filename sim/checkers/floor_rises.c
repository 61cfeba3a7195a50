/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* A sender's floor only rises, but for the reset of profile 5, which each link has once. It is
 * stored with the id that raised it: what a restart finds is not below what the store had. */

#define WAITING 64u

typedef struct raised {
    uint64_t key;
    uint64_t floor;
    uint64_t w; /* 0: not sealed yet */
} raised;

typedef struct node_state {
    raised waiting[WAITING]; /* not in the store, oldest first: a ring */
    uint32_t first;
    uint32_t count;
} node_state;

typedef struct state {
    fb_sim_memo floors;  /* (node, incarnation, space, sender) -> floor */
    fb_sim_memo durable; /* (node, space, sender) -> floor in the store */
    fb_sim_memo resets;  /* the same and a link -> 1 when that one has set it back */
    node_state *nodes;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->floors, arena, 1u << 12, 1);
    fb_sim_memo_init(&s->durable, arena, 1u << 12, 1);
    fb_sim_memo_init(&s->resets, arena, 1u << 12, 1);
    s->nodes = fb_arena_take(arena, world->config.nodes, sizeof *s->nodes);
}

static void wait(node_state *n, uint64_t key, uint64_t floor)
{
    if (n->count == WAITING) {
        n->first = (n->first + 1) % WAITING;
        n->count--;
    }
    n->waiting[(n->first + n->count++) % WAITING] = (raised){key, floor, 0};
}

static void sealed(node_state *n, uint64_t w)
{
    for (uint32_t i = n->count; i-- > 0;) {
        raised *r = &n->waiting[(n->first + i) % WAITING];
        if (r->w != 0) return;
        r->w = w;
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    node_state *n = &s->nodes[node];
    if (fx->a == FB_FACT_SEALED) {
        sealed(n, fx->b);
        return;
    }
    const fb_sim_message *m = &world->checks->told->message;
    uint64_t life = node + world->nodes[node].incarnation;
    if (fx->a == FB_FACT_LINK_BOUND) {
        /* A new session of a carrier begins anew. */
        uint64_t *used =
            fb_sim_memo_find(&s->resets, fb_sim_pair_key(m->space, m->peer, life + fx->b));
        if (used != NULL) *used = 0;
        return;
    }
    uint64_t stored = fb_sim_pair_key(m->space, m->peer, node);
    uint64_t key = fb_sim_pair_key(m->space, m->peer, life);
    const uint64_t *known = fb_sim_memo_find(&s->floors, key);
    bool again = known == NULL;
    if (again) known = fb_sim_memo_find(&s->durable, stored);
    if (known != NULL && (int64_t)fx->b < (int64_t)*known) {
        uint64_t *used =
            fb_sim_memo_at(&s->resets, fb_sim_pair_key(m->space, m->peer, life + fx->c));
        if (fx->c == 0 && ORACLE(FLOOR_NOT_EXPECTED, true, false)) {
            fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_floor_rises.id,
                            again
                                ? "%s comes back with a lower floor of a sender than its store had"
                                : "%s lowers the floor of a sender, and no link set it back",
                            fb_sim_name(node));
            return;
        }
        if (*used != 0 && ORACLE(RESETS_UNCOUNTED, true, false)) {
            fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_floor_rises.id,
                            "%s lowers the floor of a sender twice on one link", fb_sim_name(node));
            return;
        }
        *used = 1;
    }
    fb_sim_memo_put(&s->floors, key, fx->b);
    wait(n, stored, fx->b);
}

static void wrote(fb_sim_world *world, void *own, uint32_t node, uint64_t incarnation, uint64_t w)
{
    (void)world;
    (void)incarnation;
    state *s = own;
    node_state *n = &s->nodes[node];
    while (n->count != 0) {
        const raised *r = &n->waiting[n->first];
        if (r->w == 0 || r->w > w) return;
        fb_sim_memo_put(&s->durable, r->key, r->floor);
        n->first = (n->first + 1) % WAITING;
        n->count--;
    }
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    ((state *)own)->nodes[node].count = 0;
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)world;
    (void)node;
    (void)empty;
    fb_sim_memo_clear(&((state *)own)->durable);
}

const fb_sim_check fb_sim_check_floor_rises = {
    .id = "floor-rises",
    .musts = "MP-5-14, MP-5-16, MP-5-17",
    .cost = "O(1) a change of a floor",
    .text = "what was forgotten of a sender is never accepted again: its floor rises",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_FLOOR) | FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_SEALED),
    .fact = fact,
    .wrote = wrote,
    .over = over,
    .restored = restored,
};
