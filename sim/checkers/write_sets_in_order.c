/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

typedef struct state {
    uint64_t *sealed; /* by node, of this incarnation */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    s->sealed = fb_arena_take(arena, world->config.nodes, sizeof *s->sealed);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    uint64_t *sealed = &((state *)own)->sealed[node];
    if (ORACLE(SETS_ASCEND, fx->b != *sealed + 1, fx->b <= *sealed)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_write_sets_in_order.id,
                        "%s seals write set %llu after %llu", fb_sim_name(node),
                        (unsigned long long)fx->b, (unsigned long long)*sealed);
    }
    *sealed = fx->b;
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    ((state *)own)->sealed[node] = 0;
}

const fb_sim_check fb_sim_check_write_sets_in_order = {
    .id = "write-sets-in-order",
    .musts = "DESIGN 2",
    .cost = "O(1) a write set",
    .text = "write sets are numbered from 1 without gaps within an incarnation",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_SEALED),
    .fact = fact,
    .over = over,
};
