/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* RFC 9562: a generator's UUIDs ascend, through steps of the clock and through restarts. */

typedef struct state {
    fb_id *last; /* by node */
    bool *known;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    s->last = fb_arena_take(arena, world->config.nodes, sizeof *s->last);
    s->known = fb_arena_take(arena, world->config.nodes, sizeof *s->known);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    fb_reader r = fb_reader_of(fb_sim_fact_bytes(fx));
    fb_id id = fb_read_id(&r);
    if ((id.b[6] >> 4) != 7 || (id.b[8] >> 6) != 2) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_ids_ascend.id,
                        "%s made an id that is no UUIDv7", fb_sim_name(node));
        return;
    }
    if (s->known[node] && ORACLE(EQUAL_IDS_ONLY, fb_id_compare(id, s->last[node]) <= 0,
                                 fb_id_equal(id, s->last[node]))) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_ids_ascend.id,
                        "%s made an id that is not above its last one", fb_sim_name(node));
        return;
    }
    s->last[node] = id;
    s->known[node] = true;
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)world;
    (void)empty;
    ((state *)own)->known[node] = false;
}

const fb_sim_check fb_sim_check_ids_ascend = {
    .id = "ids-ascend",
    .musts = "RFC 9562, FM-3.1-2, FM-5.1-2, FI-2-1",
    .cost = "O(1) an id",
    .text = "UUIDv7 of one node ascend, also across clock steps and restarts",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_UUID),
    .fact = fact,
    .restored = restored,
    .histories = true,
};
