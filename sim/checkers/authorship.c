/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* A node writes data while it holds itself for a writer or an admin, and takes the data of who was
 * one to it at some time: rights are judged by what a batch's signer acted under, which may have
 * passed since. */

#define ADMIN  1u
#define WRITER 2u
#define READER 3u

typedef struct state {
    fb_sim_memo roles; /* (node, space, member): the role now, and whether it ever could write */
} state;

enum { NOW, EVER, VALUES };

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->roles, arena, fb_sim_pair_places(world), VALUES);
}

static void learn(state *s, uint32_t node, const fb_effect *fx)
{
    fb_sim_message m = fb_sim_message_of(fx);
    uint64_t key = fb_sim_pair_key(m.space, m.peer, node + 1);
    uint64_t *values = fb_sim_memo_at(&s->roles, key);
    values[NOW] = fx->c;
    if (fx->c == ADMIN || fx->c == WRITER) values[EVER] = 1;
}

/* What it learned last may not have been durable, or its disk is an old one: it may hold itself for
 * what it was before. */
static void over(fb_sim_world *world, void *own, uint32_t node)
{
    state *s = own;
    for (uint32_t i = 0; i < fb_sim_space_count(world); i++) {
        uint64_t key = fb_sim_pair_key(world->spaces[i], world->nodes[node].id, node + 1);
        uint64_t *values = fb_sim_memo_find(&s->roles, key);
        if (values != NULL && values[EVER] != 0) values[NOW] = WRITER;
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    if (fx->a == FB_FACT_MEMBER) {
        learn(s, node, fx);
        return;
    }
    fb_sim_change c = fb_sim_change_of(fx);
    uint32_t record = fb_sim_record_of(world, c.record);
    if (record == UINT32_MAX) return; /* a statement */
    fb_id space = world->spaces[fb_sim_space_of_record(world, record)];
    const uint64_t *known = fb_sim_memo_find(&s->roles, fb_sim_pair_key(space, c.node, node + 1));
    bool writes = fx->a == FB_FACT_WRITTEN;
    if (known == NULL || known[NOW] != READER || (!writes && known[EVER] != 0)) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_authorship.id,
                    writes ? "%s writes, and holds itself for no writer"
                           : "%s takes a change of a node that never was a writer to it",
                    fb_sim_name(node));
}

const fb_sim_check fb_sim_check_authorship = {
    .id = "authorship",
    .musts = "DESIGN 3.1",
    .cost = "O(1) a change",
    .text = "data is written, and taken from, by writers and admins only",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_MEMBER) | FB_SIM_FACT(FB_FACT_WRITTEN) | FB_SIM_FACT(FB_FACT_APPLIED),
    .fact = fact,
    .over = over,
};
