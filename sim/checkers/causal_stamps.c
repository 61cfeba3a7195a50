/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/acknowledged_survives.h"

/* Who answers a change of another node comes after it, by stamp as well, though his clock be far
 * behind: what the model says that a writer held when it wrote, and could see, has a smaller stamp.
 * (stamps-ascend says the same of a node's own changes, without a model.) */

/* Values near the bound of the future may have been hidden; of those nothing is said. */
#define MARGIN_US INT64_C(5000000)

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    fb_sim_model *model = fb_sim_model_of(world);
    if (model->blind || fx->b == 0) return;
    fb_sim_change what = fb_sim_change_of(fx);
    uint32_t record = fb_sim_record_of(world, what.record);
    if (record == UINT32_MAX) return;
    const fb_sim_model_change *c = fb_sim_model_find(model, fb_sim_space_of_record(world, record),
                                                     what.node, what.incarnation, what.seq);
    if (c == NULL) return;
    int64_t future_us = fb_options_small().timing.window_future_us;
    int64_t wall_us = fb_sim_clock_wall(&world->nodes[node].clock, world->now_ns);
    for (uint32_t e = c->targets; e != 0; e = model->edges[e].next_of_replacer) {
        const fb_sim_model_change *seen = &model->changes[model->edges[e].target];
        if (model->edges[e].maybe || seen->author == node || c->stamp > seen->stamp) continue;
        if (seen->stamp > wall_us + future_us - MARGIN_US) continue;
        if (ORACLE(STAMPS_UNREAD, false, true)) continue;
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_causal_stamps.id,
                        "%s stamps a write %lld us before the change of %s that it answers",
                        fb_sim_name(node), (long long)(seen->stamp - c->stamp),
                        fb_sim_name(seen->author));
        return;
    }
}

const fb_sim_check fb_sim_check_causal_stamps = {
    .id = "causal-stamps",
    .musts = "DESIGN 3.1 change",
    .cost = "O(replaced) a change",
    .text = "a write that saw another node's value has a greater stamp, whatever the clocks say",
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN),
    .fact = fact,
};
