/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing: this node's changes of an area become a signed batch. DESIGN 2, Sealing; 3.1,
 * Authorship.
 *
 * A batch is filled while its write set is built, and signed with it: one header for each area and
 * write set, and another one whenever a batch is full (FB_BATCH_CHANGES_MAX changes, or the bytes a
 * peer of the same sizes can take). What sealing will put is reserved with each change. */
#include "protocol/database/state.h"

void fb_builders_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    const fb_sizes *sizes = &node->options.sizes;
    uint32_t count = sizes->areas < FB_BUILDERS_MAX ? sizes->areas : FB_BUILDERS_MAX;
    if (sizes->write_set_bytes < 128 * 1024 && count > 3) count = 3;
    /* A peer must be able to apply it and to give it on in one piece of a call. */
    size_t batch_max = sizes->write_set_bytes / 4;
    if (batch_max > sizes->call_bytes - 64) batch_max = sizes->call_bytes - 64;
    if (batch_max > FB_BATCH_BYTES_MAX) batch_max = FB_BATCH_BYTES_MAX;
    fb_builder *builders = fb_arena_take(arena, count, sizeof *builders);
    uint8_t *items = fb_arena_take(arena, count, batch_max);
    uint8_t *header = fb_arena_take(arena, batch_max, 1);
    if (db == NULL) return;
    db->builders = builders;
    db->builder_count = count;
    db->header = header;
    db->batch_max = batch_max;
    db->cost_max = sizes->write_set_bytes / 2;
    for (uint32_t i = 0; i < count; i++) builders[i].items = items + (size_t)i * batch_max;
}

void fb_builders_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i < db->builder_count; i++) db->builders[i].used = false;
    db->builder_serial = 0;
}

/* Entries that an epoch may have by the time the batch is signed: those there are, and some that
 * come with the same write set. */
static uint32_t epoch_max(const fb_node *node, uint32_t space)
{
    uint32_t own = fb_area_own(node, space);
    size_t count = own == FB_NONE ? 0 : fb_area_get(node, own)->entry_count + (size_t)4;
    if (count > FB_EPOCH_ENTRIES_MAX) count = FB_EPOCH_ENTRIES_MAX;
    /* Where batches are small, half of one is for changes, and its epoch tells less. */
    size_t most = (node->database->batch_max / 2 - FB_BATCH_FRAME_BYTES) / FB_EPOCH_ENTRY_BYTES;
    return (uint32_t)(count < most ? count : most);
}

static size_t frame_bytes(const fb_node *node, uint32_t space)
{
    return FB_BATCH_FRAME_BYTES + (size_t)epoch_max(node, space) * FB_EPOCH_ENTRY_BYTES;
}

size_t fb_seal_frame_bytes(const fb_node *node, uint32_t area)
{
    size_t frame = frame_bytes(node, fb_area_get(node, area)->space);
    return fb_write_entry_bytes(FB_BATCH_KEY_BYTES, frame) + 8 +
           2 * fb_write_entry_bytes(FB_VECTOR_KEY_BYTES, FB_VECTOR_VALUE_BYTES) +
           fb_write_entry_bytes(FB_VECTOR_KEY_BYTES, 0);
}

/* A key to be read: its item in a read set (readset.h). */
#define READ_BYTES(key) (18u + (key))
/* And of a life, of which apply.c keeps which one it is. */
#define LIFE_BYTES (READ_BYTES(FB_VECTOR_KEY_BYTES) + 25u)
/* A peer's tree may be deeper than this node's by now. */
#define LEVELS_MIN 3u

bool fb_batch_readable(const fb_node *node, uint32_t area, uint32_t changes, uint32_t lives)
{
    const fb_area *a = fb_area_get(node, area);
    size_t levels = a->root_info.levels + (size_t)1;
    if (levels < LEVELS_MIN) levels = LEVELS_MIN;
    size_t all = (size_t)lives + epoch_max(node, a->space) + 3;
    size_t each = READ_BYTES(FB_RECORD_KEY_BYTES) + levels * READ_BYTES(FB_TREE_KEY_BYTES);
    return lives <= FB_BATCH_LIVES_MAX && changes * (1 + levels) + all <= FB_READ_ITEMS_MAX &&
           changes * each + all * LIFE_BYTES <= node->options.sizes.operation_bytes;
}

/* The life of this node before this one in an area: the head that its first header names. */
static uint32_t predecessor(const fb_node *node, const fb_area *area)
{
    uint32_t found = FB_NONE;
    for (uint32_t at = area->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        bool own = fb_id_equal(v->node, node->self) && v->incarnation != node->incarnation;
        if (own && !v->closed && v->batch != 0) found = at - 1;
        at = v->next;
    }
    return found;
}

fb_status fb_life_begins(const fb_node *node, uint32_t area)
{
    bool closes = predecessor(node, fb_area_get(node, area)) != FB_NONE;
    return fb_vector_admits(node, area, node->self, closes);
}

static void fill_header(fb_node *node, const fb_builder *builder, const fb_vector *own,
                        uint32_t before, fb_batch *batch)
{
    const fb_area *area = fb_area_get(node, builder->area);
    *batch = (fb_batch){.space = fb_space_id(node, area->space),
                        .area = area->id,
                        .author = node->self_key,
                        .incarnation = node->incarnation,
                        .number = own->batch + 1,
                        .first_seq = builder->first_seq,
                        .count = builder->count};
    if (own->batch > 0) {
        batch->has_previous = true;
        batch->previous_incarnation = node->incarnation;
        batch->previous_number = own->batch;
        memcpy(batch->previous_hash, own->hash, 32);
    } else if (before != FB_NONE) {
        /* DESIGN 2, incarnation: two lives with one predecessor show a copied store. */
        const fb_vector *v = fb_vector_get(node, before);
        batch->has_previous = true;
        batch->previous_incarnation = v->incarnation;
        batch->previous_number = v->batch;
        memcpy(batch->previous_hash, v->hash, 32);
    }
}

static void observe_batch(fb_node *node, const fb_area *area, const fb_vector *own)
{
    uint8_t bytes[48];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, area->id);
    fb_write_id(&w, own->node);
    fb_write_u64(&w, own->incarnation);
    fb_write_u64(&w, own->last_seq);
    fb_observe(node, FB_FACT_BATCH, fb_w_building(node), own->batch, fb_writer_span(&w));
}

static void seal_batch(fb_node *node, fb_builder *builder)
{
    struct fb_database *db = node->database;
    fb_area *area = fb_area_get(node, builder->area);
    uint32_t entry = area->own - 1;
    fb_vector *own = fb_vector_get(node, entry);
    uint32_t before = own->batch == 0 ? predecessor(node, area) : FB_NONE;
    fb_batch batch;
    fill_header(node, builder, own, before, &batch);
    fb_batch_root(builder->leaves, builder->count, batch.root);
    uint8_t epoch[FB_EPOCH_ENTRIES_MAX * FB_EPOCH_ENTRY_BYTES];
    fb_writer e = fb_writer_of(epoch, sizeof epoch);
    batch.epoch_count = fb_epoch_write(node, area->space, builder->claim, builder->epoch_max, &e);
    batch.epoch = epoch;
    fb_writer w = fb_writer_of(db->header, db->batch_max);
    uint8_t hash[32];
    fb_status status =
        fb_batch_seal(&w, &batch, node->options.provider, node->options.identity_key, hash);
    if (status != FB_OK) {
        fb_incarnation_end(node, FB_ERR_CRYPTO);
        return;
    }
    fb_write_bytes(&w, builder->items, builder->len);
    FB_ASSERT(!w.failed);
    own->batch++;
    own->last_seq = fb_batch_last_seq(&batch);
    memcpy(own->hash, hash, 32);
    own->claim = builder->claim;
    if (before != FB_NONE) {
        own->previous_incarnation = batch.previous_incarnation;
        own->previous_number = batch.previous_number;
    }
    uint8_t key[FB_BATCH_KEY_BYTES];
    fb_put(node, fb_key_batch(key, area->local, node->self, node->incarnation, own->batch),
           fb_writer_span(&w));
    if (own->closed) {
        /* A copy of this node took this life up, and it goes on: a fork, a head again. */
        uint8_t closed[FB_VECTOR_KEY_BYTES];
        own->closed = false;
        fb_delete(node, fb_key_vector(closed, true, area->local, node->self, node->incarnation));
    }
    fb_vector_put(node, entry);
    if (before != FB_NONE) fb_vector_close(node, before);
    observe_batch(node, area, own);
    /* DESIGN 3.2: on completion `changed` goes to every connected member that may hold the area. */
    /* FM-3.6-2, FM-4.1-7 */
    fb_message_changed_all(node, area->space, FB_NONE, area->id, node->incarnation, own->batch,
                           fb_w_building(node));
    builder->used = false;
    area->builder = 0;
    fb_area_touch(node, builder->area);
}

size_t fb_change_bytes_max(const fb_node *node, uint32_t area)
{
    return node->database->batch_max - frame_bytes(node, fb_area_get(node, area)->space) - 4;
}

/* Before the write set is sealed: the batch is full, or its place is needed. */
static void seal_early(fb_node *node, fb_builder *builder)
{
    size_t bytes = builder->reserved_bytes, entries = builder->reserved_entries;
    size_t used_bytes = 0, used_entries = 0;
    fb_seal_use(node, true);
    fb_seal_left(node, &used_bytes, &used_entries);
    seal_batch(node, builder);
    size_t left_bytes, left_entries;
    fb_seal_left(node, &left_bytes, &left_entries);
    fb_seal_use(node, false);
    used_bytes -= left_bytes;
    used_entries -= left_entries;
    FB_ASSERT(used_bytes <= bytes);
    FB_ASSERT(used_entries <= entries);
    fb_seal_release(node, bytes - used_bytes, entries - used_entries);
}

static fb_builder *begin(fb_node *node, uint32_t area)
{
    struct fb_database *db = node->database;
    fb_builder *found = NULL;
    for (uint32_t i = 0; i < db->builder_count && found == NULL; i++) {
        if (!db->builders[i].used) found = &db->builders[i];
    }
    if (found == NULL) {
        /* The one begun first makes place. */
        found = &db->builders[0];
        for (uint32_t i = 1; i < db->builder_count; i++) {
            if (db->builders[i].serial < found->serial) found = &db->builders[i];
        }
        seal_early(node, found);
    }
    found->used = true;
    found->area = area;
    found->count = 0;
    found->len = found->cost = found->lives = 0;
    found->reserved_bytes = found->reserved_entries = 0;
    found->serial = ++db->builder_serial;
    fb_area_get(node, area)->builder = (uint32_t)(found - db->builders) + 1;
    return found;
}

void fb_builder_add(fb_node *node, uint32_t area, fb_span change, uint64_t seq,
                    const uint8_t leaf[32], size_t cost, uint32_t lives)
{
    struct fb_database *db = node->database;
    fb_area *a = fb_area_get(node, area);
    fb_builder *builder = a->builder == 0 ? NULL : &db->builders[a->builder - 1];
    size_t frame = builder == NULL
                       ? 0
                       : FB_BATCH_FRAME_BYTES + (size_t)builder->epoch_max * FB_EPOCH_ENTRY_BYTES;
    if (builder != NULL &&
        (builder->claim != fb_space_claim(node, a->space) ||
         builder->count == FB_BATCH_CHANGES_MAX ||
         frame + builder->len + 4 + change.len > db->batch_max ||
         builder->cost + builder->len + cost + change.len > db->cost_max ||
         !fb_batch_readable(node, area, builder->count + 1, builder->lives + lives))) {
        seal_early(node, builder);
        builder = NULL;
    }
    size_t bytes = change.len + 4, entries = 0;
    if (builder == NULL) {
        builder = begin(node, area);
        builder->first_seq = seq;
        builder->epoch_max = epoch_max(node, a->space);
        builder->claim = fb_space_claim(node, a->space);
        bytes += fb_seal_frame_bytes(node, area);
        entries = FB_SEAL_FRAME_ENTRIES;
    }
    FB_ASSERT(frame_bytes(node, a->space) + 4 + change.len <= db->batch_max || builder->count != 0);
    fb_store_be(builder->items + builder->len, change.len, 4);
    memcpy(builder->items + builder->len + 4, change.p, change.len);
    builder->len += 4 + change.len;
    builder->cost += cost;
    builder->lives += lives;
    memcpy(builder->leaves + (size_t)builder->count * 32, leaf, 32);
    builder->count++;
    builder->reserved_bytes += bytes;
    builder->reserved_entries += entries;
    fb_seal_reserve(node, bytes, entries);
    fb_area_touch(node, area);
}

static fb_builder *next_to_seal(fb_node *node)
{
    struct fb_database *db = node->database;
    fb_builder *found = NULL;
    for (uint32_t i = 0; i < db->builder_count; i++) {
        fb_builder *builder = &db->builders[i];
        if (!builder->used) continue;
        /* The space's own areas first: the others' epochs then name what is sealed with them. */
        bool own = fb_area_get(node, builder->area)->kind == FB_AREA_SPACE;
        if (found == NULL) {
            found = builder;
            continue;
        }
        bool found_own = fb_area_get(node, found->area)->kind == FB_AREA_SPACE;
        if (own != found_own ? own : builder->serial < found->serial) found = builder;
    }
    return found;
}

void fb_database_seal(fb_node *node)
{
    struct fb_database *db = node->database;
    fb_builder *builder;
    while (node->ending == FB_OK && (builder = next_to_seal(node)) != NULL) {
        seal_batch(node, builder);
    }
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        fb_area *area = &db->areas[i];
        if (!area->used || !area->changed) continue;
        area->changed = false;
        uint8_t bytes[32];
        memcpy(bytes, area->id.b, 16);
        memcpy(bytes + 16, area->root, 16);
        fb_observe(node, FB_FACT_ROOT, fb_w_building(node), 0, fb_span_of(bytes, sizeof bytes));
    }
}
