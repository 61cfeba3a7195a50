/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/state.h"
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* A node names to another one only collections of which it has something on its disk. By the time
 * the answer is there it has had that for some while; but not where its store was set back or lost
 * since, or where all of it was taken back above a cut. DESIGN 3.1, Anti-entropy. */

static bool is_held(const fb_node *core, fb_id id)
{
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (!area->used || !fb_id_equal(area->id, id)) continue;
        for (uint32_t at = area->entries; at != 0;) {
            const fb_vector *v = &core->database->vectors[at - 1];
            at = v->next;
            if (v->durable_batch != 0) return true;
        }
    }
    return false;
}

/* own: something was cut. */
static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)world;
    (void)node;
    (void)fx;
    *(bool *)own = true;
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    const bool *cut = own;
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || client->operation != FB_SIM_OP_COLLECTIONS || fx->b != FB_OK) return;
    uint32_t peer = client->items % world->config.nodes;
    const fb_sim_node *other = &world->nodes[peer];
    if (*cut || node == world->traitor || peer == world->traitor) return;
    if (!other->running || other->forgot || other->replaced != 0) return;
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count; i++) {
        fb_id id = fb_read_id(&r);
        fb_read_u8(&r);
        fb_read_span16(&r);
        if (r.failed || is_held(other->core, id)) continue;
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_listed_is_held.id,
                        "%s was told that %s has a collection, of which nothing is on its disk",
                        fb_sim_name(node), fb_sim_name(peer));
        return;
    }
}

const fb_sim_check fb_sim_check_listed_is_held = {
    .id = "listed-is-held",
    .musts = "DESIGN 3.1",
    .cost = "O(lives) a reply",
    .text = "a collection that a peer says to have is on its disk",
    .state_bytes = sizeof(bool),
    .facts = FB_SIM_FACT(FB_FACT_CUT),
    .fact = fact,
    .reply = reply,
};
