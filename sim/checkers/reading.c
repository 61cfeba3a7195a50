/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/reading.h"

#include "protocol/database/state.h"
#include "sim/workload/director.h"

#define MARGIN_US INT64_C(5000000)

/* What folded batches had replaced may show until the node has compared itself with a peer. */
static bool in_doubt(const fb_sim_world *world, uint32_t node)
{
    const fb_node *core = world->nodes[node].core;
    if (!world->config.reference) return false;
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        if (core->database->areas[i].used && core->database->areas[i].doubt) return true;
    }
    return false;
}

bool fb_sim_question_of(fb_sim_world *world, uint32_t node, const fb_effect *reply,
                        fb_sim_question *out)
{
    if (fb_sim_model_of(world)->blind) return false;
    if (reply->b != FB_OK && reply->b != FB_ERR_NOT_FOUND) return false;
    *out = (fb_sim_question){.node = node};
    if (in_doubt(world, node)) return false;
    const fb_sim_client *client = fb_sim_client_of(world, node, reply->a);
    if (client != NULL && client->operation == FB_SIM_OP_GET) {
        out->record = client->record;
        out->asked_step = client->asked_step;
        out->asked_ns = client->asked_ns;
        return true;
    }
    out->exact = true;
    out->asked_ns = world->director->phase_since_ns;
    return fb_sim_director_asked_record(world, node, reply->a, &out->record);
}

fb_sim_sight fb_sim_sight_of(const fb_sim_world *world, const fb_sim_question *q,
                             const fb_sim_model_change *c)
{
    fb_timing timing = fb_options_small().timing;
    const fb_sim_clock *clock = &world->nodes[q->node].clock;
    /* The answer was made at some moment since the question, by the clock of that moment. */
    if (clock->wall_set_ns >= q->asked_ns) return FB_SIM_MAYBE;
    int64_t bound = fb_sim_clock_wall(clock, world->now_ns) + timing.window_future_us;
    if (c->stamp > bound + MARGIN_US) return FB_SIM_HIDDEN;
    return c->stamp < bound - MARGIN_US ? FB_SIM_VISIBLE : FB_SIM_MAYBE;
}

bool fb_sim_stored_before(const fb_sim_model_change *c, uint32_t node, uint32_t step)
{
    return (c->stored >> node & 1) != 0 && c->stored_at[node] < step;
}
