/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/record/record.h"
#include "protocol/database/tree/tree.h"
#include "protocol/store/keys.h"
#include "sim/checkers/list.h"

/* The fingerprint tree, which is written node by node with each set, is that of the stored records:
 * every record's own fingerprint and the whole tree are computed again from nothing. Of a record of
 * which nothing is left there is neither. DESIGN 3.1. */

#define RECORDS_MAX 4096u /* of one area; a larger one is not looked at */

typedef struct state {
    uint8_t *items;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    uint8_t *items = fb_arena_take(arena, RECORDS_MAX, FB_TREE_ITEM_BYTES);
    if (own != NULL) ((state *)own)->items = items;
}

/* What one walk over a store looks for: first the area after the last one, then its records. */
typedef struct search {
    uint32_t after; /* local numbers of areas; the first is 1 */
    uint32_t area;  /* 0: none is left */
    uint8_t root[16];
    uint64_t records;
    uint8_t *items;
    uint32_t count;
    bool damaged; /* a value breaks its format, or a fingerprint is not its state's */
} search;

static void find_area(void *user, fb_span key, fb_span value)
{
    search *s = user;
    fb_reader k = fb_reader_of(key);
    uint8_t tag = fb_read_u8(&k);
    uint32_t area = fb_read_u32(&k);
    /* The root: no level above it. */
    if (tag != FB_TAG_TREE || fb_read_u8(&k) != 0 || area <= s->after) return;
    if (s->area != 0) return;
    fb_tree_node node;
    fb_tree_root root;
    s->area = area;
    if (fb_tree_decode(value, &node, &root) != FB_OK) {
        s->damaged = true;
        return;
    }
    fb_tree_fingerprint(&node, s->root);
    s->records = root.items;
}

static void take_record(void *user, fb_span key, fb_span value)
{
    search *s = user;
    fb_reader k = fb_reader_of(key);
    if (fb_read_u8(&k) != FB_TAG_RECORD || fb_read_u32(&k) != s->area) return;
    fb_record record;
    if (s->count == s->records || fb_record_decode(value, &record) != FB_OK) {
        s->damaged = true;
        return;
    }
    fb_id id = fb_read_id(&k);
    uint8_t *item = s->items + (size_t)s->count++ * FB_TREE_ITEM_BYTES;
    fb_tree_key(id, item);
    fb_record_fingerprint(id, record.state, item + 16);
    if (memcmp(item + 16, record.fingerprint, 16) != 0) s->damaged = true;
    if (fb_record_is_empty(&record)) s->damaged = true; /* the same as none */
}

static void sort(uint8_t *items, uint32_t count)
{
    for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
        for (uint32_t i = gap; i < count; i++) {
            uint8_t item[FB_TREE_ITEM_BYTES];
            memcpy(item, items + (size_t)i * FB_TREE_ITEM_BYTES, sizeof item);
            uint32_t at = i;
            while (at >= gap &&
                   memcmp(items + (size_t)(at - gap) * FB_TREE_ITEM_BYTES, item, 16) > 0) {
                memcpy(items + (size_t)at * FB_TREE_ITEM_BYTES,
                       items + (size_t)(at - gap) * FB_TREE_ITEM_BYTES, FB_TREE_ITEM_BYTES);
                at -= gap;
            }
            memcpy(items + (size_t)at * FB_TREE_ITEM_BYTES, item, sizeof item);
        }
    }
}

static void check_area(fb_sim_world *world, uint32_t node, search *s)
{
    uint8_t root[16];
    if (s->records > RECORDS_MAX) return;
    uint8_t prefix[5];
    fb_writer w = fb_writer_of(prefix, sizeof prefix);
    fb_write_u8(&w, FB_TAG_RECORD);
    fb_write_u32(&w, s->area);
    if (!s->damaged) {
        fb_sim_store_walk(&world->nodes[node].store, fb_writer_span(&w), take_record, s);
    }
    sort(s->items, s->count);
    fb_tree_recompute(s->items, s->count, root);
    if (s->damaged || s->count != s->records || memcmp(root, s->root, sizeof root) != 0) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_tree_recomputed.id,
                        "%s: the fingerprints of an area are not those of its %u stored records",
                        fb_sim_name(node), (unsigned)s->count);
    }
}

static void round_end(fb_sim_world *world, void *own)
{
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        uint32_t after = 0;
        while (!world->stop) {
            search s = {.after = after, .items = ((state *)own)->items};
            static const uint8_t trees = FB_TAG_TREE;
            fb_sim_store_walk(&world->nodes[i].store, fb_span_of(&trees, 1), find_area, &s);
            if (s.area == 0) break;
            check_area(world, i, &s);
            after = s.area;
        }
    }
}

const fb_sim_check fb_sim_check_tree_recomputed = {
    .id = "tree-recomputed",
    .musts = "DESIGN 3.1",
    .cost = "round",
    .text = "fingerprints kept with each write set are those of the stored records, from nothing",
    .state_bytes = sizeof(state),
    .layout = layout,
    .round = round_end,
    .stands_alone = true,
};
