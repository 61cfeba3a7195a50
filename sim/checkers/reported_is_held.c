/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/state.h"
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* Of a member for which nothing waits, all is held that is durable at who says so: a report is
 * about what is on the disk, and nothing that was reported is given up. Whose store was set back or
 * lost gives up what it had; what is taken back above a cut goes everywhere, not at once. DESIGN
 * 3.1, Stable cut. */

static const fb_area *area_of(const fb_node *core, fb_id id)
{
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (area->used && area->stored && fb_id_equal(area->id, id)) return area;
    }
    return NULL;
}

static bool holds(const fb_node *core, const fb_area *area, const fb_vector *of)
{
    bool any = false;
    for (uint32_t at = area != NULL ? area->entries : 0; at != 0;) {
        const fb_vector *v = &core->database->vectors[at - 1];
        at = v->next;
        if (!fb_id_equal(v->node, of->node)) continue;
        bool this_life = v->incarnation == of->incarnation && !v->closed;
        if (this_life) return v->durable_batch >= of->durable_batch;
        any = true; /* a life that another one took up is held by who holds that */
    }
    return any;
}

static bool holds_all(const fb_node *teller, const fb_node *member, fb_id space)
{
    fb_id id = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text(fb_sim_collection));
    const fb_area *area = area_of(teller, id), *there = area_of(member, id);
    for (uint32_t at = area != NULL ? area->entries : 0; at != 0;) {
        const fb_vector *v = &teller->database->vectors[at - 1];
        at = v->next;
        bool counts = !v->closed && v->durable_batch > v->cut;
        if (counts && !holds(member, there, v)) return false;
    }
    return true;
}

typedef struct state {
    bool cut;        /* something was */
    uint64_t copied; /* nodes that ran twice, or as another one */
} state;

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)world;
    (void)node;
    (void)fx;
    ((state *)own)->cut = true;
}

/* Two stores report under one name. */
static void cloned(fb_sim_world *world, void *own, uint32_t node, uint32_t of)
{
    (void)world;
    ((state *)own)->copied |= UINT64_C(1) << node % 64 | UINT64_C(1) << of % 64;
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    const state *s = own;
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || client->operation != FB_SIM_OP_REPORTED || fx->b != FB_OK || s->cut)
        return;
    uint32_t member = client->items % world->config.nodes;
    const fb_sim_node *other = &world->nodes[member];
    if (node == world->traitor || member == world->traitor) return;
    if (!other->running || other->forgot || other->replaced != 0) return;
    if (((s->copied >> node % 64 | s->copied >> member % 64) & 1) != 0) return;
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    uint8_t told = fb_read_u8(&r);
    fb_read_u64(&r);
    if (told == FB_REPORT_NONE || fb_read_u64(&r) != 0) return;
    if (holds_all(world->nodes[node].core, other->core, world->spaces[0])) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_reported_is_held.id,
                    "%s says that nothing waits for %s, which lacks something", fb_sim_name(node),
                    fb_sim_name(member));
}

const fb_sim_check fb_sim_check_reported_is_held = {
    .id = "reported-is-held",
    .musts = "DESIGN 3.1",
    .cost = "O(lives) a reply",
    .text = "for whom nothing waits, holds what is here",
    .state_bytes = sizeof(state),
    .facts = FB_SIM_FACT(FB_FACT_CUT),
    .fact = fact,
    .cloned = cloned,
    .reply = reply,
};
