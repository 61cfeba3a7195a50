/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* A write's stamp is above those of the values that it read and could see. What can be said without
 * a model of records: of a node's own write to a record that it wrote last itself, when that was
 * no deletion and its stamp lies within the bounded future of the clock. */

#define UNKNOWN ((uint64_t)INT64_MIN) /* somebody else changed the record, or it is gone */

typedef struct state {
    fb_sim_memo last; /* (node, incarnation, area, record) -> stamp of the last change */
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
    uint64_t life = world->nodes[node].incarnation + node;
    uint64_t key = fb_sim_key(fb_span_of(fb_effect_bytes(fx), fx->len < 32 ? fx->len : 32), life);
    if (fx->a == FB_FACT_APPLIED) {
        fb_sim_memo_put(&s->last, key, UNKNOWN);
        return;
    }
    const uint64_t *last = fb_sim_memo_find(&s->last, key);
    if (last != NULL && *last != UNKNOWN && (int64_t)c.stamp <= (int64_t)*last) {
        int64_t wall_us = fb_sim_clock_wall(&world->nodes[node].clock, world->now_ns);
        int64_t future_us = fb_options_small().timing.window_future_us;
        if ((int64_t)*last <= wall_us + future_us) {
            fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_stamps_ascend.id,
                            "%s stamps a write %lld us before the value that it replaces",
                            fb_sim_name(node), (long long)((int64_t)*last - (int64_t)c.stamp));
            return;
        }
    }
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->b);
    bool stays = client != NULL && client->request != 0 &&
                 (client->operation == FB_SIM_OP_PUT || client->operation == FB_SIM_OP_CHANGE);
    fb_sim_memo_put(&s->last, key, ORACLE(STAMPS_UNREAD, stays, false) ? c.stamp : UNKNOWN);
}

const fb_sim_check fb_sim_check_stamps_ascend = {
    .id = "stamps-ascend",
    .musts = "DESIGN 3.1 change",
    .cost = "O(1) a change",
    .text = "a write that saw a value has a greater stamp, whatever the clock did",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN) | FB_SIM_FACT(FB_FACT_APPLIED),
    .fact = fact,
};
