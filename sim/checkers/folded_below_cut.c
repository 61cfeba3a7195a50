/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/batch/batch.h"
#include "protocol/database/record/record.h"
#include "protocol/database/state.h"
#include "protocol/store/keys.h"
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* A batch is folded when every member has it (one whose store was set back or lost had it; one that
 * was out for a while may never have had it), when nothing of it lives in the store, and when that
 * was so already at the pass before. DESIGN 3.1, Stable cut. */

#define REVOKED 3u

typedef struct folded {
    fb_id area;
    fb_id node;
    uint64_t incarnation;
    uint64_t number;
} folded;

static uint32_t area_of(const fb_node *core, fb_id id)
{
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (area->used && fb_id_equal(area->id, id)) return i;
    }
    return FB_NONE;
}

/* Its durable vector covers the batch, as far as memory tells. */
static bool may_hold(const fb_node *core, const folded *f)
{
    uint32_t index = area_of(core, f->area);
    if (index == FB_NONE) return false;
    bool any = false;
    for (uint32_t at = core->database->areas[index].entries; at != 0;) {
        const fb_vector *v = &core->database->vectors[at - 1];
        at = v->next;
        if (!fb_id_equal(v->node, f->node)) continue;
        if (v->incarnation == f->incarnation && !v->closed) return v->durable_batch >= f->number;
        any = true; /* a life behind this one */
    }
    return any;
}

static bool is_there(const uint8_t *entries, uint32_t count, size_t each, const uint8_t *dot)
{
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(entries + i * each, dot, FB_DOT_BYTES) == 0) return true;
    }
    return false;
}

static bool lives(const fb_sim_store *store, uint32_t local, fb_id id, fb_dot dot)
{
    uint8_t key[FB_RECORD_KEY_BYTES], bytes[FB_DOT_BYTES];
    fb_span value;
    fb_record record;
    if (!fb_sim_store_get(store, fb_key_record(key, local, id), &value)) return false;
    if (fb_record_decode(value, &record) != FB_OK) return false;
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_dot(&w, dot);
    if (is_there(record.existence, record.existence_count, FB_EXISTENCE_BYTES, bytes)) return true;
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        if (is_there(field.siblings, field.count, FB_SIBLING_BYTES, bytes)) return true;
    }
    return false;
}

/* What is wrong with folding it, NULL. */
static const char *wrong(const fb_sim_world *world, uint32_t node, const folded *f)
{
    static fb_change changes[FB_BATCH_CHANGES_MAX];
    const fb_sim_store *store = &world->nodes[node].store;
    const fb_node *core = world->nodes[node].core;
    const fb_area *area = &core->database->areas[area_of(core, f->area)];
    uint8_t key[FB_BATCH_KEY_BYTES];
    fb_span value;
    fb_span stored = fb_key_batch(key, area->local, f->node, f->incarnation, f->number);
    if (!fb_sim_store_get(store, stored, &value)) return "is not in its store";
    fb_batch batch;
    if (fb_batch_decode(value, &batch, changes) != FB_OK) return "cannot be read";
    for (uint32_t i = 0; i < batch.count; i++) {
        fb_dot dot = {f->node, f->incarnation, batch.first_seq + i};
        if (lives(store, area->local, changes[i].record, dot)) return "lives in its store";
    }
    key[0] = FB_TAG_MARK;
    if (!fb_sim_store_get(store, stored, &value)) return "was not marked before";
    return NULL;
}

/* was_out: by node, in the first space. */
static void member(const fb_sim_world *world, bool *was_out, const fb_effect *fx)
{
    fb_sim_message m = fb_sim_message_of(fx);
    uint32_t peer = fb_sim_node_of(world, m.peer);
    bool first = peer != UINT32_MAX && fb_id_equal(m.space, world->spaces[0]);
    if (first && fx->b == REVOKED) was_out[peer] = true;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    bool *was_out = own;
    if (!world->config.reference) return;
    if (fx->a == FB_FACT_MEMBER) {
        member(world, was_out, fx);
        return;
    }
    fb_reader r = fb_reader_of(fb_sim_fact_bytes(fx));
    folded f;
    f.area = fb_read_id(&r);
    f.node = fb_read_id(&r);
    f.incarnation = fb_read_u64(&r);
    f.number = fb_read_u64(&r);
    uint32_t index = r.failed ? FB_NONE : area_of(world->nodes[node].core, f.area);
    if (index == FB_NONE) return;
    const fb_node *core = world->nodes[node].core;
    const fb_area *area = &core->database->areas[index];
    /* Reports are folded as they are replaced: nothing depends on them. */
    if (area->kind == FB_AREA_REPORTS) return;
    fb_span name = fb_span_text(fb_sim_collection);
    uint32_t space = 0;
    while (space < FB_SIM_SPACES &&
           !fb_id_equal(f.area, fb_area_id(world->spaces[space], FB_AREA_COLLECTION, name))) {
        space++;
    }
    const char *what = wrong(world, node, &f);
    uint32_t who = node;
    for (uint32_t i = 0; i < world->config.nodes && what == NULL; i++) {
        const fb_sim_node *other = &world->nodes[i];
        bool kept = other->running && !other->forgot && other->replaced == 0;
        if (i == node || !kept || i == world->traitor || may_hold(other->core, &f)) continue;
        if (space < FB_SIM_SPACES && !fb_sim_is_member(world, space, i)) continue;
        if (space == 0 && was_out[i]) continue;
        what = "is not held";
        who = i;
    }
    if (what == NULL) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_folded_below_cut.id,
                    "%s folded batch %llu of a life, which %s by %s", fb_sim_name(node),
                    (unsigned long long)f.number, what, fb_sim_name(who));
}

const fb_sim_check fb_sim_check_folded_below_cut = {
    .id = "folded-below-the-cut",
    .musts = "DESIGN 3.1",
    .cost = "O(changes, nodes) a folded batch",
    .text = "what is folded is dead, was so before, and every member has had it",
    .of_node_bytes = sizeof(bool),
    .facts = FB_SIM_FACT(FB_FACT_FOLDED) | FB_SIM_FACT(FB_FACT_MEMBER),
    .fact = fact,
};
