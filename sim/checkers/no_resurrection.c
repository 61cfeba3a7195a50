/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/record/record.h"
#include "protocol/database/state.h"
#include "protocol/store/keys.h"
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* What was replaced or deleted everywhere does not come back. At the end of a round, when all nodes
 * within reach hold the same, the dots that live are noted. One that lived, was gone at a later end
 * and lives at a still later one was brought back: by a node that was away during the delete, by an
 * old disk. It may be when every store that knew of the delete was set back or lost meanwhile, and
 * when what had replaced it is taken back with its author's rights. DESIGN 3.1, Merge, Revocation.
 */

#define DOTS (1u << 13)

typedef struct state {
    fb_sim_memo dots;  /* the round that saw it last */
    uint64_t noted;    /* nodes that held what was noted last */
    uint64_t restored; /* nodes whose store was set back or lost since everything began anew */
    uint64_t round;
    fb_sim_world *world;
    uint32_t node;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->dots, arena, DOTS, 1);
}

static void seen(state *s, fb_id record, fb_span name, const uint8_t *dot)
{
    uint64_t key = fb_sim_key(fb_span_of(record.b, 16), fb_xxh64(name.p, name.len, 7));
    key = fb_sim_key(fb_span_of(dot, FB_DOT_BYTES), key);
    uint64_t *seen_in = fb_sim_memo_at(&s->dots, key);
    if (*seen_in != 0 && *seen_in + 1 < s->round) {
        fb_sim_violated(s->world, FB_SIM_SAFETY, fb_sim_check_no_resurrection.id,
                        "%s holds a value that was gone from all nodes", fb_sim_name(s->node));
    }
    *seen_in = s->round;
}

static void take(void *user, fb_span key, fb_span value)
{
    state *s = user;
    fb_record record;
    if (key.len != FB_RECORD_KEY_BYTES || fb_record_decode(value, &record) != FB_OK) return;
    fb_id id;
    memcpy(id.b, key.p + 5, 16);
    for (uint32_t i = 0; i < record.existence_count; i++) {
        seen(s, id, (fb_span){NULL, 0}, record.existence + (size_t)i * FB_EXISTENCE_BYTES);
    }
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        for (uint32_t i = 0; i < field.count; i++) {
            seen(s, id, field.name, field.siblings + (size_t)i * FB_SIBLING_BYTES);
        }
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)world;
    (void)node;
    (void)fx;
    fb_sim_memo_clear(&((state *)own)->dots);
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)world;
    (void)empty;
    if (node < 64) ((state *)own)->restored |= UINT64_C(1) << node;
}

static void round_end(fb_sim_world *world, void *own)
{
    state *s = own;
    uint64_t noted = 0;
    uint32_t at = UINT32_MAX;
    if (world->config.nodes > 64 || !world->config.reference) return;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (world->held_apart[i]) continue;
        if (at == UINT32_MAX && world->nodes[i].running) at = i;
        noted |= UINT64_C(1) << i;
    }
    if (at == UINT32_MAX) return;
    /* None is left of those that held the same at the last end: what they knew may be lost. */
    if ((s->noted & ~s->restored) == 0) fb_sim_memo_clear(&s->dots);
    s->noted = noted;
    s->restored = 0;
    fb_id id = fb_area_id(world->spaces[0], FB_AREA_COLLECTION, fb_span_text(fb_sim_collection));
    const fb_node *core = world->nodes[at].core;
    s->round++;
    s->world = world;
    s->node = at;
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (!area->used || !fb_id_equal(area->id, id)) continue;
        uint8_t prefix[5];
        fb_writer w = fb_writer_of(prefix, sizeof prefix);
        fb_write_u8(&w, FB_TAG_RECORD);
        fb_write_u32(&w, area->local);
        fb_sim_store_walk(&world->nodes[at].store, fb_writer_span(&w), take, s);
    }
}

const fb_sim_check fb_sim_check_no_resurrection = {
    .id = "no-resurrection",
    .musts = "DESIGN 3.1",
    .cost = "round",
    .text = "what was replaced on every node does not live again",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_CUT),
    .fact = fact,
    .restored = restored,
    .round = round_end,
};
