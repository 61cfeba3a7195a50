/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* A sender's floor only rises, but for the reset of profile 5, which happens once a link. */
typedef struct state {
    fb_sim_memo floors; /* (node, space, sender) -> floor */
    fb_sim_memo resets; /* as above -> link bound since, counted */
    uint64_t *bound;    /* by node: links bound so far */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->floors, arena, 1u << 12);
    fb_sim_memo_init(&s->resets, arena, 1u << 12);
    s->bound = fb_arena_take(arena, world->config.nodes, sizeof *s->bound);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    if (fx->a == FB_FACT_LINK_BOUND) {
        s->bound[node]++;
        return;
    }
    uint64_t key = fb_sim_key(fb_span_of(fb_effect_bytes(fx), fx->len < 32 ? fx->len : 32), node);
    const uint64_t *known = fb_sim_memo_find(&s->floors, key);
    if (known != NULL && (int64_t)fx->b < (int64_t)*known) {
        const uint64_t *reset = fb_sim_memo_find(&s->resets, key);
        if (reset != NULL && *reset == s->bound[node]) {
            fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_floor_rises.id,
                            "%s lowers the floor of a sender twice on one link", fb_sim_name(node));
            return;
        }
        fb_sim_memo_put(&s->resets, key, s->bound[node]);
    }
    fb_sim_memo_put(&s->floors, key, fx->b);
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    (void)node;
    /* A floor that was not durable may be lower afterwards. */
    fb_sim_memo_clear(&((state *)own)->floors);
}

const fb_sim_check fb_sim_check_floor_rises = {
    .id = "floor-rises",
    .musts = "P-5",
    .cost = "O(1) a change of a floor",
    .text = "what was forgotten of a sender is never accepted again: its floor rises",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_FLOOR) | FB_SIM_FACT(FB_FACT_LINK_BOUND),
    .fact = fact,
    .over = over,
};
