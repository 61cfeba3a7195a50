/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/batch/batch.h"
#include "protocol/database/record/record.h"
#include "protocol/database/state.h"
#include "protocol/store/keys.h"
#include "sim/checkers/list.h"

/* What is deleted or replaced leaves nothing behind: a batch of which nothing lives, and that holds
 * no record back, is gone some passes after it was seen so, but for the last ones of a life. (Of
 * the record itself and of its item in the tree nothing is left at once: tree-recomputed.) A batch
 * that the cut does not reach, and passes that could not look at everything, count from the
 * beginning. DESIGN 3.1, Stable cut. */

/* Seen dead, dead for ever, two passes more; and what was put last may not be in the store yet. */
#define PASSES 8u
#define PLACES (1u << 13)
#define AREAS  (1u << 8)

typedef struct state {
    fb_sim_memo dead;   /* batch of a node's life -> the pass in which it was noted as dead */
    fb_sim_memo looked; /* area in a node's life -> the pass in which it was gone through last */
    uint32_t pass;      /* of the area that is gone through */
    uint32_t area;
    uint32_t node;
    fb_sim_world *world;
    uint8_t
        before[FB_BATCH_KEY_BYTES]; /* the batch at hand has another one of its life behind it */
    bool any;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->dead, arena, PLACES, 1);
    fb_sim_memo_init(&s->looked, arena, AREAS, 1);
}

static bool is_there(const uint8_t *entries, uint32_t count, size_t each, const uint8_t *dot)
{
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(entries + i * each, dot, FB_DOT_BYTES) == 0) return true;
    }
    return false;
}

/* Nothing of the change lives in its record, and nothing is awaited there. */
static bool is_dead(const fb_sim_store *store, uint32_t local, fb_id id, fb_dot dot)
{
    uint8_t key[FB_RECORD_KEY_BYTES], bytes[FB_DOT_BYTES];
    fb_span value;
    fb_record record;
    if (!fb_sim_store_get(store, fb_key_record(key, local, id), &value)) return true;
    if (fb_record_decode(value, &record) != FB_OK) return false;
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_dot(&w, dot);
    if (record.existence_pending.count != 0 || record.whole_pending.count != 0) return false;
    if (is_there(record.existence, record.existence_count, FB_EXISTENCE_BYTES, bytes)) return false;
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        if (field.pending.count != 0) return false;
        if (is_there(field.siblings, field.count, FB_SIBLING_BYTES, bytes)) return false;
    }
    return true;
}

/* Of an area, in the node's life at hand. */
static uint64_t life_of(const fb_sim_world *world, uint32_t node, const fb_area *area)
{
    return fb_xxh64(area->id.b, 16, world->nodes[node].core->incarnation + node);
}

/* It is below the cut, and not the last one that is: a life that others have taken up is below it
 * whole when they are. */
static bool is_below_cut(const fb_node *core, uint32_t area, fb_id signer, uint64_t incarnation,
                         uint64_t number)
{
    bool any = false, all = true;
    for (uint32_t at = core->database->areas[area].entries; at != 0;) {
        const fb_vector *v = &core->database->vectors[at - 1];
        at = v->next;
        if (v->closed || !fb_id_equal(v->node, signer)) continue;
        if (v->incarnation == incarnation) return number < v->cut;
        any = true;
        all = all && v->cut > 0;
    }
    return any && all;
}

static void judge(state *s, fb_span key)
{
    static fb_change changes[FB_BATCH_CHANGES_MAX];
    const fb_sim_node *node = &s->world->nodes[s->node];
    const fb_area *area = &node->core->database->areas[s->area];
    fb_reader k = fb_reader_of(key);
    fb_read_bytes(&k, 5);
    fb_id signer = fb_read_id(&k);
    uint64_t incarnation = fb_read_u64(&k), number = fb_read_u64(&k);
    fb_span value;
    fb_batch batch;
    if (!fb_sim_store_get(&node->store, key, &value)) return;
    if (fb_batch_decode(value, &batch, changes) != FB_OK) return;
    bool dead = is_below_cut(node->core, s->area, signer, incarnation, number);
    for (uint32_t i = 0; i < batch.count && dead; i++) {
        fb_dot dot = {signer, incarnation, batch.first_seq + i};
        dead = is_dead(&node->store, area->local, changes[i].record, dot);
    }
    uint64_t *noted = fb_sim_memo_at(&s->dead, fb_sim_key(key, life_of(s->world, s->node, area)));
    if (!dead || *noted < area->pass_from) *noted = 0;
    if (!dead) return;
    if (*noted == 0) *noted = s->pass + 1u;
    if (s->pass < *noted + PASSES) return;
    fb_sim_violated(s->world, FB_SIM_LIVENESS, fb_sim_check_dead_are_folded.id,
                    "%s keeps batch %llu of a life, of which nothing lives since %u passes",
                    fb_sim_name(s->node), (unsigned long long)number, PASSES);
}

static void take(void *user, fb_span key, fb_span value)
{
    state *s = user;
    (void)value;
    if (key.len != FB_BATCH_KEY_BYTES || s->world->stop) return;
    if (s->any && memcmp(s->before, key.p, FB_BATCH_KEY_BYTES - 8) == 0) {
        judge(s, fb_span_of(s->before, FB_BATCH_KEY_BYTES));
    }
    memcpy(s->before, key.p, FB_BATCH_KEY_BYTES);
    s->any = true;
}

/* Something was folded: once in each pass of an area. */
static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    if (!world->config.reference) return;
    fb_reader r = fb_reader_of(fb_sim_fact_bytes(fx));
    fb_id id = fb_read_id(&r);
    const fb_node *core = world->nodes[node].core;
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (!area->used || !fb_id_equal(area->id, id) || area->kind == FB_AREA_REPORTS) continue;
        if (area->flawed) return;
        uint64_t *looked = fb_sim_memo_at(&s->looked, life_of(world, node, area));
        if (*looked == area->pass) return;
        *looked = area->pass;
        s->world = world;
        s->area = i;
        s->node = node;
        s->pass = area->pass;
        s->any = false;
        uint8_t prefix[5];
        fb_writer w = fb_writer_of(prefix, sizeof prefix);
        fb_write_u8(&w, FB_TAG_BATCH);
        fb_write_u32(&w, area->local);
        fb_sim_store_walk(&world->nodes[node].store, fb_writer_span(&w), take, s);
    }
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)world;
    (void)node;
    (void)empty;
    fb_sim_memo_clear(&((state *)own)->dead);
}

const fb_sim_check fb_sim_check_dead_are_folded = {
    .id = "dead-are-folded",
    .musts = "DESIGN 3.1",
    .cost = "O(batches) a pass that folds",
    .text = "a batch of which nothing lives goes, that of a delete as well",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_FOLDED),
    .fact = fact,
    .restored = restored,
};
