/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* The last sequence that each (area, node, incarnation) gave to a change. */
typedef struct state {
    fb_sim_memo last;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->last, arena, 1u << 12, 1);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    fb_sim_change c = fb_sim_change_of(fx);
    if (!fb_id_equal(c.node, world->nodes[node].id) ||
        c.incarnation != world->nodes[node].incarnation) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_dots_unique.id,
                        "%s writes under another node or incarnation", fb_sim_name(node));
        return;
    }
    uint64_t key = fb_sim_key(fb_span_of(c.area.b, 16), c.incarnation);
    const uint64_t *last = fb_sim_memo_find(&s->last, key);
    uint64_t before = last == NULL ? 0 : *last;
    /* Long ago forgotten areas may begin anywhere. */
    if (c.seq != before + ORACLE(SAME_DOT_ALLOWED, 1u, c.seq == before ? 0u : 1u) && last != NULL) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_dots_unique.id,
                        "%s gives sequence %llu after %llu", fb_sim_name(node),
                        (unsigned long long)c.seq, (unsigned long long)before);
        return;
    }
    fb_sim_memo_put(&s->last, key, c.seq);
}

const fb_sim_check fb_sim_check_dots_unique = {
    .id = "dots-unique",
    .musts = "DESIGN 3.1",
    .cost = "O(1) a write",
    .text = "sequences of an area count from 1 without gaps under one incarnation, none twice",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN),
    .fact = fact,
    .histories = true,
};
