/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* A change is told to others only when it cannot be lost any more: it is in its author's store. */

#define WAITING 256u

typedef struct node_state {
    uint64_t dots[WAITING]; /* executed and not in the store, oldest first: a ring */
    uint64_t sets[WAITING];
    uint32_t first;
    uint32_t count;
} node_state;

typedef struct state {
    fb_sim_memo waiting; /* dot -> 1 while it waits, 2 when it was lost in a crash */
    node_state *nodes;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->waiting, arena, 1u << 12, 1);
    s->nodes = fb_arena_take(arena, world->config.nodes, sizeof *s->nodes);
}

static uint64_t dot_key(const fb_effect *fx)
{
    fb_span bytes = fb_sim_fact_bytes(fx);
    uint64_t words[4];
    memcpy(words, bytes.p + 32, sizeof words);
    fb_span area = fb_span_of(bytes.p, 16);
    return fb_sim_key(fb_span_of(words, sizeof words), fb_xxh64(area.p, area.len, 0));
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    if (fx->len < 72) return;
    uint64_t key = dot_key(fx);
    if (fx->a == FB_FACT_WRITTEN) {
        node_state *n = &s->nodes[node];
        if (n->count == WAITING) {
            fb_sim_memo_put(&s->waiting, n->dots[n->first], 0);
            n->first = (n->first + 1) % WAITING;
            n->count--;
        }
        uint32_t at = (n->first + n->count++) % WAITING;
        n->dots[at] = key;
        n->sets[at] = fx->c;
        fb_sim_memo_put(&s->waiting, key, 1);
        return;
    }
    const uint64_t *waits = fb_sim_memo_find(&s->waiting, key);
    if (waits == NULL || *waits == 0) return;
    if (ORACLE(TOLD_WHILE_WAITING, false, *waits == 1)) return;
    fb_sim_change c = fb_sim_change_of(fx);
    uint32_t author = fb_sim_node_of(world, c.node);
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_durable_before_told.id,
                    "%s applied change %llu of %s, which %s", fb_sim_name(node),
                    (unsigned long long)c.seq,
                    author == UINT32_MAX ? "a stranger" : fb_sim_name(author),
                    *waits == 1 ? "is not durable there" : "was lost there in a crash");
}

static void wrote(fb_sim_world *world, void *own, uint32_t node, uint64_t incarnation, uint64_t w)
{
    (void)world;
    (void)incarnation;
    state *s = own;
    node_state *n = &s->nodes[node];
    while (n->count != 0 && n->sets[n->first] <= w) {
        fb_sim_memo_put(&s->waiting, n->dots[n->first], 0);
        n->first = (n->first + 1) % WAITING;
        n->count--;
    }
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    state *s = own;
    node_state *n = &s->nodes[node];
    for (; n->count != 0; n->count--) {
        fb_sim_memo_put(&s->waiting, n->dots[n->first], 2);
        n->first = (n->first + 1) % WAITING;
    }
}

const fb_sim_check fb_sim_check_durable_before_told = {
    .id = "durable-before-told",
    .musts = "DESIGN 2 hold-back, FM-4.1-7",
    .cost = "O(1) a change",
    .text = "nobody applies a change that its author could still lose",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN) | FB_SIM_FACT(FB_FACT_APPLIED),
    .fact = fact,
    .wrote = wrote,
    .over = over,
};
