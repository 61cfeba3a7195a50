/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation is about to put, worked out whole before the first byte goes into the write
 * set: so several changes go together or not at all, each sees those before it, and the room they
 * need is known exactly. */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"

#define STAGE_ENTRIES_MAX 1024u

void fb_stage_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    const fb_sizes *sizes = &node->options.sizes;
    size_t record_max = sizes->write_set_bytes / 4;
    if (record_max > FB_RECORD_BYTES_MAX_STORED) record_max = FB_RECORD_BYTES_MAX_STORED;
    size_t bytes_cap = sizes->write_set_bytes / 4;
    if (bytes_cap > 2 * FB_BATCH_BYTES_MAX) bytes_cap = 2 * FB_BATCH_BYTES_MAX;
    uint32_t entries =
        sizes->write_set_entries < STAGE_ENTRIES_MAX ? sizes->write_set_entries : STAGE_ENTRIES_MAX;
    fb_set_layout(db == NULL ? NULL : &db->stage.set, arena, sizes->write_set_bytes, entries);
    uint8_t *bytes = fb_arena_take(arena, bytes_cap, 1);
    uint8_t *merged = fb_arena_take(arena, record_max, 1);
    uint8_t *scratch = fb_arena_take(arena, record_max, 1);
    fb_change *changes = fb_arena_take(arena, FB_BATCH_CHANGES_MAX, sizeof *changes);
    if (db == NULL) return;
    db->record_max = record_max;
    db->record_write_max = record_max / 3; /* record.h */
    db->changes = changes;
    db->stage.bytes = bytes;
    db->stage.bytes_cap = bytes_cap;
    db->stage.merged = merged;
    db->stage.scratch = scratch;
}

void fb_stage_clear(fb_node *node)
{
    fb_stage *stage = &node->database->stage;
    fb_set_clear(&stage->set, 0);
    stage->area_count = stage->change_count = 0;
    stage->bytes_len = 0;
    stage->overflow = false;
}

uint32_t fb_stage_area(fb_node *node, uint32_t area)
{
    fb_stage *stage = &node->database->stage;
    for (uint32_t i = 0; i < stage->area_count; i++) {
        if (stage->areas[i].area == area) return i;
    }
    if (stage->area_count == FB_WRITE_AREAS_MAX) return FB_NONE;
    const fb_area *a = fb_area_get(node, area);
    fb_staged_area *staged = &stage->areas[stage->area_count];
    staged->area = area;
    staged->next_seq = a->own_seq + 1;
    staged->node = a->root_node;
    staged->info = a->root_info;
    memcpy(staged->root, a->root, sizeof staged->root);
    return stage->area_count++;
}

static void stage_entry(fb_node *node, fb_write_kind kind, fb_span key, fb_span value)
{
    fb_stage *stage = &node->database->stage;
    if (!fb_set_fits(&stage->set, fb_write_entry_bytes(key.len, value.len), 1)) {
        stage->overflow = true;
        return;
    }
    fb_set_put(&stage->set, kind, key, value);
}

void fb_stage_put(fb_node *node, fb_span key, fb_span value)
{
    stage_entry(node, FB_WRITE_PUT, key, value);
}

void fb_stage_delete(fb_node *node, fb_span key)
{
    stage_entry(node, FB_WRITE_DELETE, key, (fb_span){NULL, 0});
}

static const uint8_t *item_key(fb_node *node, fb_id record)
{
    /* The end of a UUIDv7 is random. */
    fb_item_key *kept = &node->database->item_keys[record.b[15] % FB_ITEM_KEYS];
    if (!kept->known || !fb_id_equal(kept->record, record)) {
        kept->known = true;
        kept->record = record;
        fb_tree_key(record, kept->key);
    }
    return kept->key;
}

bool fb_stage_read(fb_node *node, fb_op *op, uint32_t area, fb_id record, uint32_t *next_item,
                   fb_reads *reads)
{
    const fb_area *a = fb_area_get(node, area);
    uint8_t key[FB_TREE_KEY_BYTES];
    reads->record = *next_item;
    reads->levels = a->root_info.levels;
    if (!fb_op_read_key(op, fb_key_record(key, a->local, record),
                        (uint32_t)node->database->record_max)) {
        return false;
    }
    const uint8_t *item = item_key(node, record);
    /* DESIGN 9: every node of the path in one round; the root is in memory. */
    for (uint32_t depth = 1; depth <= reads->levels; depth++) {
        if (!fb_op_read_key(op, fb_key_tree(key, a->local, depth, item), FB_TREE_NODE_BYTES_MAX)) {
            return false;
        }
    }
    *next_item += 1 + reads->levels;
    return true;
}

static fb_span stored_value(const fb_node *node, const fb_op *op, uint32_t item, fb_span key,
                            fb_status *status)
{
    fb_write_entry staged;
    *status = FB_OK;
    const fb_set *set = &node->database->stage.set;
    if (set->live != 0 && fb_set_find(set, fb_set_hash(key), key, &staged)) return staged.value;
    fb_read_entry entry;
    if (!fb_op_value(node, op, item, &entry)) return (fb_span){NULL, 0};
    if (entry.value.len != entry.value_len) *status = FB_ERR_LIMIT;
    return entry.value;
}

fb_status fb_stage_record(const fb_node *node, const fb_reads *reads, uint32_t area, fb_id record,
                          fb_record *out)
{
    uint8_t key[FB_RECORD_KEY_BYTES];
    fb_status status;
    fb_span key_span = fb_key_record(key, fb_area_get(node, area)->local, record);
    fb_span value = stored_value(node, reads->op, reads->record, key_span, &status);
    return status == FB_OK ? fb_record_decode(value, out) : status;
}

/* The merge, with what came and went staged. */
typedef struct merge_user {
    fb_node *node;
    uint32_t local;
    fb_id record;
    bool (*covered)(void *, const uint8_t *);
    void *user;
} merge_user;

static bool merge_covered(void *user, const uint8_t dot[FB_DOT_BYTES])
{
    const merge_user *m = user;
    return m->covered(m->user, dot);
}

static void merge_came(void *user, fb_span field, const uint8_t dot[FB_DOT_BYTES], fb_span value)
{
    const merge_user *m = user;
    uint8_t key[FB_FIELD_KEY_BYTES_MAX];
    if (MUTANT(APART_VALUE_LOST, false, memcmp(dot, m->node->self.b, 16) != 0)) return;
    fb_stage_put(m->node, fb_key_field(key, m->local, m->record, field, dot), value);
}

static void merge_went(void *user, fb_span field, const uint8_t dot[FB_DOT_BYTES])
{
    const merge_user *m = user;
    uint8_t key[FB_FIELD_KEY_BYTES_MAX];
    fb_stage_delete(m->node, fb_key_field(key, m->local, m->record, field, dot));
}

/* The tree, over what is staged, read, and kept of the root. */
typedef struct tree_user {
    fb_node *node;
    const fb_reads *reads;
    fb_staged_area *staged;
    uint32_t local;
} tree_user;

static fb_status tree_get(void *user, uint32_t depth, const uint8_t key[16], fb_tree_node *out)
{
    const tree_user *t = user;
    if (depth == 0) {
        *out = t->staged->node;
        return FB_OK;
    }
    uint8_t bytes[FB_TREE_KEY_BYTES];
    fb_span key_span = fb_key_tree(bytes, t->local, depth, key);
    const fb_set *set = &t->node->database->stage.set;
    fb_write_entry staged;
    if (set->live != 0 && fb_set_find(set, fb_set_hash(key_span), key_span, &staged)) {
        return fb_tree_decode(staged.value, out, NULL);
    }
    if (depth > t->reads->levels) return FB_ERR_AGAIN;
    fb_read_entry entry;
    if (!fb_op_value(t->node, t->reads->op, t->reads->record + depth, &entry)) {
        return fb_tree_decode((fb_span){NULL, 0}, out, NULL);
    }
    return fb_tree_decode(entry.value, out, NULL);
}

static void tree_put(void *user, uint32_t depth, const uint8_t key[16], const fb_tree_node *node)
{
    tree_user *t = user;
    if (depth == 0) {
        t->staged->node = *node;
        return;
    }
    uint8_t bytes[FB_TREE_KEY_BYTES], value[FB_TREE_NODE_BYTES_MAX];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_tree_encode(&w, node, NULL);
    fb_stage_put(t->node, fb_key_tree(bytes, t->local, depth, key), fb_writer_span(&w));
}

static void tree_drop(void *user, uint32_t depth, const uint8_t key[16])
{
    const tree_user *t = user;
    uint8_t bytes[FB_TREE_KEY_BYTES];
    fb_stage_delete(t->node, fb_key_tree(bytes, t->local, depth, key));
}

/* The record as it stands from now on, and its item; without an item when it is empty. */
static fb_status place_record(fb_node *node, const fb_reads *reads, fb_staged_area *staged,
                              fb_id record, const fb_merged *merged)
{
    uint32_t local = fb_area_get(node, staged->area)->local;
    const uint8_t *key = item_key(node, record);
    tree_user user = {node, reads, staged, local};
    const fb_tree_ops ops = {&user, tree_get, tree_put, tree_drop};
    bool empty = MUTANT(EMPTY_IS_KEPT, merged->empty, false), moved;
    uint32_t levels = staged->info.levels;
    if (empty) {
        if (MUTANT(DELETE_LEAVES_TREE, true, false)) {
            FB_TRY(fb_tree_unset(&ops, key, &moved, &levels, staged->root));
            if (moved) staged->info.items--;
        }
    } else {
        FB_TRY(fb_tree_set(&ops, key, merged->fingerprint, &moved, &levels, staged->root));
        if (moved) staged->info.items++;
    }
    staged->info.levels = levels;
    uint8_t bytes[FB_RECORD_KEY_BYTES];
    fb_span name = fb_key_record(bytes, local, record);
    if (empty) {
        fb_stage_delete(node, name);
    } else {
        fb_stage_put(node, name, merged->stored);
    }
    return node->database->stage.overflow ? FB_ERR_LIMIT : FB_OK;
}

/* A dot that the change replaces, that has not come and that may come. */
static bool first_awaited(const fb_change *change, bool (*covered)(void *, const uint8_t *),
                          bool (*comes)(void *, const uint8_t *), void *user, fb_dot *out)
{
    fb_dots dots = change->replaced;
    fb_change_walk walk = fb_change_walk_of(change);
    fb_change_field field;
    do {
        for (uint32_t i = 0; i < dots.count; i++) {
            const uint8_t *dot = dots.p + (size_t)i * FB_DOT_BYTES;
            if (covered(user, dot) || MUTANT(CUT_IS_AWAITED, !comes(user, dot), false)) continue;
            *out = fb_dots_at(dots, i);
            return true;
        }
        bool more = fb_change_next(&walk, &field);
        if (!more) return false;
        dots = field.replaced;
    } while (true);
}

/* Batches come in any order of their signers, so a record may have to hold much that is replaced
 * already: values whose replacer has not come, and dots replaced before they came. Of a long
 * history that is far more than the record ever was at its writers. Where it would be larger than a
 * writer may make it, only what replaces nothing unknown is taken: then it is never larger than
 * what came in any order before (a third) and what its writers saw together. What was cut away
 * never comes: nobody waits for it, and those who saw it hold the dot as well. */
static fb_status judge_size(const fb_node *node, const fb_change *change, fb_status merged,
                            size_t len, bool (*covered)(void *, const uint8_t *),
                            bool (*comes)(void *, const uint8_t *), void *user, fb_dot *early)
{
    if (merged == FB_OK && len <= node->database->record_write_max) return FB_OK;
    if (MUTANT(EARLY_IS_TAKEN, first_awaited(change, covered, comes, user, early), false)) {
        return FB_ERR_BATCH_EARLY;
    }
    return merged;
}

fb_status fb_stage_change(fb_node *node, const fb_reads *reads, uint32_t staged_area,
                          const fb_change *change, fb_dot dot,
                          bool (*covered)(void *, const uint8_t *),
                          bool (*comes)(void *, const uint8_t *), void *user, fb_staged_change *out,
                          fb_dot *early)
{
    struct fb_database *db = node->database;
    fb_stage *stage = &db->stage;
    fb_staged_area *staged = &stage->areas[staged_area];
    uint32_t local = fb_area_get(node, staged->area)->local;
    size_t used = stage->set.used;
    fb_record record;
    FB_TRY(fb_stage_record(node, reads, staged->area, change->record, &record));
    merge_user merge = {node, local, change->record, covered, user};
    const fb_merge_ops ops = {
        .user = &merge, .covered = merge_covered, .came = merge_came, .went = merge_went};
    fb_merged merged = {.conflict = false};
    fb_status status = fb_record_merge(&record, change, dot, &ops, stage->merged, stage->scratch,
                                       db->record_max, &merged);
    if (!out->own) {
        status = judge_size(node, change, status, merged.stored.len, covered, comes, user, early);
    }
    FB_TRY(status);
    FB_TRY(place_record(node, reads, staged, change->record, &merged));
    out->deleted = merged.values == 0;
    out->conflict = false;
    if (merged.conflict) {
        FB_TRY(fb_record_decode(merged.stored, &record));
        out->conflict = fb_conflict_with_own(node, &record, change);
    }
    out->area = staged_area;
    out->record = change->record;
    out->stamp = change->stamp;
    out->cost = (uint32_t)(stage->set.used - used) + 672; /* a fuller bucket, the changelog */
    memcpy(out->etag, merged.fingerprint, sizeof out->etag);
    return FB_OK;
}

fb_status fb_stage_rewrite(fb_node *node, const fb_reads *reads, uint32_t staged_area, fb_id record,
                           const fb_merged *merged, fb_staged_change *out)
{
    fb_stage *stage = &node->database->stage;
    fb_staged_area *staged = &stage->areas[staged_area];
    FB_TRY(place_record(node, reads, staged, record, merged));
    *out =
        (fb_staged_change){.area = staged_area, .record = record, .deleted = merged->values == 0};
    memcpy(out->etag, merged->fingerprint, sizeof out->etag);
    return FB_OK;
}

static size_t root_bytes(const fb_staged_area *staged)
{
    size_t body = staged->node.kind == FB_TREE_INNER
                      ? FB_TREE_FAN * 16
                      : (size_t)staged->node.count * FB_TREE_ITEM_BYTES;
    return fb_write_entry_bytes(6, 2 + 9 + body);
}

void fb_stage_size(const fb_node *node, size_t *bytes, size_t *entries)
{
    const fb_stage *stage = &node->database->stage;
    *bytes = stage->set.used - stage->set.dead_bytes;
    *entries = stage->set.live;
    for (uint32_t i = 0; i < stage->area_count; i++) {
        const fb_area *area = fb_area_get(node, stage->areas[i].area);
        *bytes += root_bytes(&stage->areas[i]);
        *entries += 1;
        if (area->stored) continue;
        *bytes += fb_write_entry_bytes(FB_AREA_KEY_BYTES, FB_AREA_VALUE_BYTES_MAX);
        *entries += 1;
    }
    *bytes += stage->change_count * FB_CHANGELOG_ROOM;
    *entries += stage->change_count * FB_CHANGELOG_ROOM_ENTRIES;
}

static void commit_area(fb_node *node, const fb_staged_area *staged)
{
    fb_area *area = fb_area_get(node, staged->area);
    if (!area->stored) {
        uint8_t key[FB_AREA_KEY_BYTES], value[FB_AREA_VALUE_BYTES_MAX];
        size_t len = fb_area_value(node, staged->area, value);
        fb_put(node, fb_key_area(key, area->local), fb_span_of(value, len));
        fb_area_stored(node, staged->area);
    }
    area->root_node = staged->node;
    area->root_info = staged->info;
    memcpy(area->root, staged->root, sizeof area->root);
    fb_area_root_put(node, staged->area);
    area->own_seq = MUTANT(SEQUENCE_NOT_KEPT, staged->next_seq - 1, area->own_seq);
    area->changed = true;
    uint8_t key[FB_TREE_KEY_BYTES], value[FB_TREE_NODE_BYTES_MAX];
    static const uint8_t no_prefix[16];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_tree_encode(&w, &staged->node, &staged->info);
    fb_put(node, fb_key_tree(key, area->local, 0, no_prefix), fb_writer_span(&w));
    fb_area_touch(node, staged->area);
}

/* The local changelog orders what this node applied (DESIGN 3.1). Of a space the last
 * fb_sizes.changelog entries are kept: where it is full the oldest one goes with each that comes.
 */
static void commit_changelog(fb_node *node, const fb_staged_change *change)
{
    const fb_area *area = fb_area_get(node, node->database->stage.areas[change->area].area);
    if (area->kind == FB_AREA_REPORTS) return; /* nobody is told of those */
    fb_space_areas *space = &node->database->spaces[area->space];
    uint32_t local = fb_space_local(node, area->space);
    uint8_t key[FB_CHANGELOG_KEY_BYTES], value[FB_CHANGELOG_VALUE_BYTES];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, 2);
    fb_write_u64(&w, node->incarnation);
    fb_write_u32(&w, area->local);
    fb_write_id(&w, change->record);
    fb_write_u8(&w, change->deleted ? 2 : 1);
    fb_put(node, fb_key_changelog(key, local, ++space->changelog), fb_writer_span(&w));
    if (space->changelog - space->changelog_gone <= node->options.sizes.changelog) return;
    fb_delete(node, fb_key_changelog(key, local, ++space->changelog_gone));
}

void fb_stage_commit(fb_node *node)
{
    const fb_stage *stage = &node->database->stage;
    fb_put_set(node, &stage->set);
    for (uint32_t i = 0; i < stage->area_count; i++) commit_area(node, &stage->areas[i]);
    for (uint32_t i = 0; i < stage->change_count; i++) commit_changelog(node, &stage->changes[i]);
}
