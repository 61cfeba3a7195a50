/* SPDX-License-Identifier: Apache-2.0 */
/* Local writes: RECORD_PUT, RECORD_DELETE, RECORD_BATCH, and the statements of the space plane.
 * DESIGN 3.2: local request, read set, change, sealed write set; the answer when that is durable.
 *
 * A request becomes items, checked once and kept with the operation:
 *     u8 operation (fb_change_op), u32 area, id record, u8 replace, u8 condition, 16 bytes etag,
 *     u16 fields in the order of names, each: span16 name, u8 fb_field_act, span32 value */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"
#include "protocol/database/write/write.h"
#include "protocol/envelope/json.h"

enum { CONDITION_NONE = 0, CONDITION_ETAG = 1, CONDITION_ABSENT = 2 };

typedef struct put_context {
    uint64_t request; /* number, 0 for a statement */
    uint32_t index;   /* of the request */
    uint32_t verb;
    uint64_t principal;
    fb_write_done done;
    uint64_t user;
    uint32_t count;
    uint32_t tries;
    uint32_t answer; /* place of a long one, FB_NONE */
    fb_span items;
    uint16_t record[FB_WRITE_ITEMS_MAX]; /* item of each record, and levels read of its path */
    uint8_t levels[FB_WRITE_ITEMS_MAX];
} put_context;

_Static_assert(sizeof(put_context) <= FB_OP_CONTEXT_BYTES, "the context fits an operation");
_Static_assert(FB_WRITE_ITEMS_MAX <= FB_BATCH_CHANGES_MAX, "the stage has a place for each");
_Static_assert(FB_READ_ITEMS_MAX <= UINT16_MAX, "a place in a read set fits");

typedef struct put_item {
    fb_change_op op;
    uint32_t area;
    fb_id record;
    bool replace;
    uint8_t condition;
    fb_span etag;
    uint32_t count;
    fb_field_write fields[FB_RECORD_FIELDS_MAX];
} put_item;

static void put_run(fb_node *node, fb_op *op);

static void item_write(fb_writer *w, const put_item *item)
{
    static const uint8_t zero[16];
    fb_write_u8(w, (uint8_t)item->op);
    fb_write_u32(w, item->area);
    fb_write_id(w, item->record);
    fb_write_u8(w, item->replace ? 1 : 0);
    fb_write_u8(w, item->condition);
    fb_write_bytes(w, item->etag.len == 16 ? item->etag.p : zero, 16);
    fb_write_u16(w, (uint16_t)item->count);
    for (uint32_t i = 0; i < item->count; i++) {
        const fb_field_write *field = &item->fields[i];
        fb_write_span16(w, field->name);
        fb_write_u8(w, (uint8_t)field->act);
        if (field->act == FB_ACT_UNSET) {
            fb_write_u32(w, 0);
            continue;
        }
        /* Values are kept without insignificant white space. */
        size_t len_at = w->at, len = 0;
        fb_write_u32(w, 0);
        if (w->failed ||
            fb_json_compact(field->value, w->p + w->at, w->cap - w->at, &len) != FB_OK) {
            w->failed = true;
            return;
        }
        fb_store_be(w->p + len_at, len, 4);
        w->at += len;
    }
}

static void item_read(fb_reader *r, put_item *item)
{
    item->op = (fb_change_op)fb_read_u8(r);
    item->area = fb_read_u32(r);
    item->record = fb_read_id(r);
    item->replace = fb_read_u8(r) != 0;
    item->condition = fb_read_u8(r);
    item->etag = fb_read_bytes(r, 16);
    item->count = fb_read_u16(r);
    for (uint32_t i = 0; i < item->count; i++) {
        item->fields[i].name = fb_read_span16(r);
        item->fields[i].act = (fb_field_act)fb_read_u8(r);
        item->fields[i].value = fb_read_span32(r);
    }
    FB_ASSERT(!r->failed);
}

static fb_status fields_check(put_item *item)
{
    FB_TRY(fb_fields_sort(item->fields, item->count));
    for (uint32_t i = 0; i < item->count; i++) {
        const fb_field_write *field = &item->fields[i];
        if (field->act != FB_ACT_UNSET) FB_TRY(fb_json_value_check(field->value));
    }
    return FB_OK;
}

static void unpin_all(fb_node *node, fb_span items, uint32_t count)
{
    fb_reader r = fb_reader_of(items);
    for (uint32_t i = 0; i < count; i++) {
        put_item item;
        item_read(&r, &item);
        fb_area_unpin(node, item.area);
    }
}

/* Room that an item will probably need; what it does need is known when its record was read. */
static void estimate(const fb_node *node, const put_item *item, size_t *bytes, size_t *entries)
{
    size_t names = 0, values = 0;
    for (uint32_t i = 0; i < item->count; i++) {
        const fb_field_write *field = &item->fields[i];
        names += field->name.len + FB_COLUMN_NAME_BYTES_MAX - FB_FIELD_NAME_BYTES_MAX;
        if (field->value.len > FB_VALUE_INLINE_MAX) {
            *bytes += fb_write_entry_bytes(FB_FIELD_KEY_BYTES_MAX, field->value.len);
            *entries += 1;
        } else {
            *bytes += fb_max_u64(field->value.len, FB_INTEGER_TEXT_MAX) + 3;
        }
        values += fb_max_u64(field->value.len, FB_INTEGER_TEXT_MAX);
    }
    const fb_area *area = fb_area_get(node, item->area);
    size_t fields = item->count + (size_t)1;
    *bytes += fb_write_entry_bytes(FB_RECORD_KEY_BYTES, FB_RECORD_FRAME_BYTES + 64) + names +
              fields * (FB_SIBLING_BYTES + 6);
    *bytes +=
        4 + FB_CHANGE_HEAD_BYTES + names + values + fields * (FB_CHANGE_FIELD_BYTES + FB_DOT_BYTES);
    *bytes += (area->root_info.levels + (size_t)1) *
              fb_write_entry_bytes(FB_TREE_KEY_BYTES, FB_TREE_NODE_BYTES_MAX);
    *bytes += FB_CHANGELOG_ROOM + fb_seal_frame_bytes(node, item->area);
    *entries += 1 + area->root_info.levels + 1 + FB_CHANGELOG_ROOM_ENTRIES + FB_SEAL_FRAME_ENTRIES;
    if (!area->stored) {
        *bytes += fb_write_entry_bytes(FB_AREA_KEY_BYTES, FB_AREA_VALUE_BYTES_MAX);
        *entries += 1;
    }
    if (area->kind == FB_AREA_SPACE) {
        *bytes += FB_SPACE_FOLD_BYTES(1u, names + values);
        *entries += FB_SPACE_FOLD_ENTRIES(1u, names + values);
    }
}

/* Begins the operation for kept or fresh items with so much room at least. The areas are pinned. */
static fb_status start(fb_node *node, const put_context *context, fb_span items, size_t bytes,
                       size_t entries)
{
    if (bytes > fb_op_write_bytes_max(node) || entries > fb_op_write_entries_max(node)) {
        return FB_ERR_LIMIT;
    }
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, put_run, (uint32_t)bytes, (uint32_t)entries);
    if (op == NULL) return FB_ERR_BUSY;
    put_context *c = fb_op_context(op);
    *c = *context;
    c->items = fb_op_keep(op, items);
    if (c->items.p == NULL) {
        fb_op_abandon(node, op);
        return FB_ERR_LIMIT;
    }
    fb_reader r = fb_reader_of(c->items);
    uint32_t next = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        put_item item;
        item_read(&r, &item);
        fb_reads reads;
        if (!fb_stage_read(node, op, item.area, item.record, &next, &reads)) {
            fb_op_abandon(node, op);
            return FB_ERR_LIMIT;
        }
        c->record[i] = (uint16_t)reads.record;
        c->levels[i] = (uint8_t)reads.levels;
    }
    fb_op_issue(node, op);
    return FB_OK;
}

static fb_status start_fresh(fb_node *node, const put_context *context, fb_span items)
{
    size_t bytes = 0, entries = 0;
    fb_reader r = fb_reader_of(items);
    for (uint32_t i = 0; i < context->count; i++) {
        put_item item;
        item_read(&r, &item);
        estimate(node, &item, &bytes, &entries);
    }
    return start(node, context, items, bytes, entries);
}

/* Which change of a batch an error is about, where it is about one: of what is too large together
 * the last one that came is no more to blame than the others. */
static fb_span which_change(const put_context *c, uint32_t at, fb_status status, uint8_t bytes[2])
{
    bool one = status != FB_ERR_LIMIT && status != FB_ERR_BUSY && status != FB_ERR_AGAIN;
    if (c->verb != FB_VERB_RECORD_BATCH || !one) return (fb_span){NULL, 0};
    fb_store_be(bytes, at, 2);
    return fb_span_of(bytes, 2);
}

/* What an error may tell depends on sets that are not durable yet: it waits for them. */
static uint64_t w_seen(const fb_node *node)
{
    return fb_w_dirty(node) ? fb_w_building(node) : fb_w_building(node) - 1;
}

/* A long answer has its place from the start, so that what is executed is answered. */
static bool answer_take(fb_node *node, put_context *c)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i < FB_ANSWERS_MAX; i++) {
        fb_answer *answer = &db->answers[i];
        if (answer->used) continue;
        *answer = (fb_answer){.used = true, .index = c->index, .number = c->request};
        db->answers_used++;
        c->answer = i;
        return true;
    }
    return false;
}

static void answer_free(fb_node *node, uint32_t place)
{
    node->database->answers[place].used = false;
    node->database->answers_used--;
}

static void answer_keep(fb_node *node, const put_context *c, uint64_t w, fb_span bytes)
{
    fb_answer *answer = &node->database->answers[c->answer];
    answer->w = w;
    answer->len = (uint32_t)bytes.len;
    memcpy(answer->bytes, bytes.p, bytes.len);
    answer->ready = true;
}

void fb_put_flush(fb_node *node)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i < FB_ANSWERS_MAX && db->answers_used > 0; i++) {
        fb_answer *answer = &db->answers[i];
        if (!answer->used || !answer->ready || answer->w > fb_w_durable(node)) continue;
        if (!fb_effect_fits(node, answer->len)) {
            fb_starved(node);
            return;
        }
        if (fb_request_at(node, answer->index).number == answer->number) {
            fb_reply(node, answer->index, FB_OK, fb_span_of(answer->bytes, answer->len));
        }
        answer_free(node, i);
    }
}

static void finish(fb_node *node, const put_context *c, fb_status status, uint64_t w,
                   fb_span answer)
{
    unpin_all(node, c->items, c->count);
    if (c->answer != FB_NONE && status == FB_OK) {
        answer_keep(node, c, w, answer);
        return;
    }
    if (c->answer != FB_NONE) answer_free(node, c->answer);
    if (c->done != NULL) {
        c->done(node, c->user, status, w);
    } else if (fb_request_at(node, c->index).number == c->request) {
        fb_reply_held(node, c->index, status, w, answer);
    }
}

static bool condition_holds(const put_item *item, const fb_record *record, bool visible)
{
    if (item->condition == CONDITION_ABSENT) return !visible;
    if (item->condition != CONDITION_ETAG) return true;
    return visible &&
           MUTANT(ETAG_IGNORED, memcmp(item->etag.p, record->fingerprint, 16) == 0, true);
}

/* A local write replaces what lives in the record, and that has come by itself. */
static bool always(void *user, const uint8_t *dot)
{
    (void)user;
    (void)dot;
    return true;
}

static void author_of(const put_context *c, fb_record_write *write)
{
    write->author_kind = c->principal == 0 ? FB_AUTHOR_OPERATOR : FB_AUTHOR_APPLICATION;
    memset(write->author, 0, sizeof write->author);
    if (c->principal != 0) fb_store_be(write->author + 8, c->principal, 8);
}

/* How large a record is: as it is kept, as it is shown, and in columns. */
typedef struct extent {
    size_t kept, shown;
    uint32_t columns;
} extent;

/* Columns in which something lives: of others only what they await is kept. */
static uint32_t columns_of(const fb_record *record)
{
    if (record->field_count <= FB_RECORD_FIELDS_MAX) return record->field_count;
    uint32_t living = 0;
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field column;
    while (fb_record_next(&walk, &column)) living += column.count != 0;
    return living;
}

static extent extent_of(const fb_record *record)
{
    uint32_t apart = 0;
    return (extent){record->state.len + record->values.len + FB_RECORD_FRAME_BYTES,
                    fb_show_size(record, INT64_MAX, &apart), columns_of(record)};
}

/* Larger than before, a record must leave room for what others write apart from this, and fit an
 * answer alone: else nobody could read it, and a list of its collection would end at it. Nor has it
 * more columns than a change may name: else no write could replace it. What was made larger than
 * that by several writers may always be made smaller. */
static fb_status judge_extent(fb_node *node, const put_item *item, const fb_reads *reads,
                              extent before)
{
    fb_record record;
    FB_TRY(fb_stage_record(node, reads, item->area, item->record, &record));
    extent after = extent_of(&record);
    bool keeps = after.kept <= before.kept || after.kept <= node->database->record_write_max;
    bool shows =
        after.shown <= before.shown || after.shown + FB_SHOW_HEAD_BYTES <= fb_show_max(node);
    bool named = after.columns <= before.columns || after.columns <= FB_RECORD_FIELDS_MAX;
    return (keeps || item->op == FB_CHANGE_DELETE) && shows && named ? FB_OK : FB_ERR_LIMIT;
}

static fb_status stage_item(fb_node *node, const put_context *c, const put_item *item,
                            const fb_reads *reads)
{
    struct fb_database *db = node->database;
    fb_stage *stage = &db->stage;
    uint32_t place = fb_stage_area(node, item->area);
    if (place == FB_NONE || stage->change_count == FB_BATCH_CHANGES_MAX) return FB_ERR_LIMIT;
    if (fb_area_get(node, item->area)->mending) return FB_ERR_BUSY;
    fb_record record;
    FB_TRY(fb_stage_record(node, reads, item->area, item->record, &record));
    int64_t stamp, horizon = fb_horizon(node->wall_us, node->options.timing.window_future_us);
    bool visible = fb_record_visible(&record, horizon, &stamp);
    extent before = extent_of(&record);
    if (item->op == FB_CHANGE_DELETE && !visible) return FB_ERR_NOT_FOUND;
    if (!condition_holds(item, &record, visible)) return FB_ERR_CONFLICT;
    fb_staged_change *out = &stage->changes[stage->change_count];
    out->own = true;
    out->seq = stage->areas[place].next_seq;
    fb_record_write write = {.record = item->record,
                             .op = item->op,
                             .replace = item->replace,
                             .fields = item->fields,
                             .count = item->count,
                             .wall_us = node->wall_us,
                             .horizon = horizon,
                             .dot = {node->self, node->incarnation, out->seq},
                             .secret = db->secret};
    author_of(c, &write);
    size_t most = stage->bytes_cap - stage->bytes_len;
    if (most > fb_change_bytes_max(node, item->area)) most = fb_change_bytes_max(node, item->area);
    fb_writer w = fb_writer_of(stage->bytes + stage->bytes_len, most);
    FB_TRY(fb_change_build(&w, &record, &write));
    fb_change change;
    FB_TRY(fb_change_decode(fb_writer_span(&w), &change));
    uint8_t hashes[FB_RECORD_FIELDS_MAX * 32];
    fb_change_value_hashes(&change, hashes);
    if (change.value_count != 0) change.hashes = hashes;
    FB_TRY(fb_stage_change(node, reads, place, &change, write.dot, always, NULL, NULL, out, NULL));
    FB_TRY(judge_extent(node, item, reads, before));
    fb_change_leaf(&change, write.dot, out->leaf);
    out->lives = fb_change_lives(&change, FB_BATCH_LIVES_MAX);
    if (!fb_batch_readable(node, item->area, 1, out->lives)) return FB_ERR_LIMIT;
    out->created = !visible;
    out->at = (uint32_t)stage->bytes_len;
    out->len = (uint32_t)w.at;
    stage->bytes_len += w.at;
    stage->areas[place].next_seq++;
    stage->change_count++;
    return FB_OK;
}

/* Sealing's part of the room, and that of the space plane. */
static void add_seal_room(const fb_node *node, size_t *bytes, size_t *entries)
{
    const fb_stage *stage = &node->database->stage;
    for (uint32_t i = 0; i < stage->change_count; i++) {
        uint32_t area = stage->areas[stage->changes[i].area].area;
        *bytes += stage->changes[i].len + 4 + fb_seal_frame_bytes(node, area);
        *entries += FB_SEAL_FRAME_ENTRIES;
        if (fb_area_get(node, area)->kind != FB_AREA_SPACE) continue;
        *bytes += FB_SPACE_FOLD_BYTES(1u, stage->changes[i].len);
        *entries += FB_SPACE_FOLD_ENTRIES(1u, stage->changes[i].len);
    }
}

static void observe_written(fb_node *node, uint64_t request, const fb_staged_change *change)
{
    const fb_stage *stage = &node->database->stage;
    uint8_t bytes[16 + 16 + FB_DOT_BYTES + 8];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, fb_area_get(node, stage->areas[change->area].area)->id);
    fb_write_id(&w, change->record);
    fb_write_dot(&w, (fb_dot){node->self, node->incarnation, change->seq});
    fb_write_u64(&w, (uint64_t)change->stamp);
    fb_observe(node, FB_FACT_WRITTEN, request, fb_w_building(node), fb_writer_span(&w));
    fb_count(node, FB_COUNTER_CHANGES_WRITTEN, 1);
}

/* A staged statement as the space sees it; fields has room for FB_RECORD_FIELDS_MAX. */
static void own_change(const fb_node *node, const fb_staged_change *staged, fb_field_write *fields,
                       fb_own_change *own)
{
    const fb_stage *stage = &node->database->stage;
    const fb_area *area = fb_area_get(node, stage->areas[staged->area].area);
    fb_change change;
    fb_status status =
        fb_change_decode(fb_span_of(stage->bytes + staged->at, staged->len), &change);
    FB_ASSERT(status == FB_OK); /* it was encoded here */
    /* It stands in the batch that is being filled, which comes after the last one sealed. */
    uint64_t sealed = area->own == 0 ? 0 : fb_vector_get(node, area->own - 1)->batch;
    fb_own_change_of(&change, node->self_key, (fb_dot){node->self, node->incarnation, staged->seq},
                     sealed + 1, fb_space_claim(node, area->space), (fb_span){NULL, 0}, fields,
                     own);
}

static bool is_statement(const fb_node *node, const fb_staged_change *staged)
{
    const fb_stage *stage = &node->database->stage;
    return fb_area_get(node, stage->areas[staged->area].area)->kind == FB_AREA_SPACE;
}

/* The right to a statement may have gone while its record was read. Everybody would refuse the
 * batch that holds it, and with it all that this life writes later. */
static fb_status statements_check(const fb_node *node)
{
    const fb_stage *stage = &node->database->stage;
    for (uint32_t i = 0; i < stage->change_count; i++) {
        const fb_staged_change *staged = &stage->changes[i];
        if (!is_statement(node, staged)) continue;
        fb_field_write fields[FB_RECORD_FIELDS_MAX];
        fb_own_change own;
        own_change(node, staged, fields, &own);
        uint32_t space = fb_area_get(node, stage->areas[staged->area].area)->space;
        fb_status status = fb_space_check_statement(node, space, &own);
        if (MUTANT(STATED_AS_ASKED, status == FB_OK, true)) continue;
        if (MUTANT(STATED_WITHOUT_ROOM, false, status == FB_ERR_LIMIT)) continue;
        return status == FB_ERR_BATCH_POLICY ? FB_ERR_NOT_AUTHORISED : status;
    }
    return FB_OK;
}

static void fold_own(fb_node *node, const fb_staged_change *staged)
{
    const fb_stage *stage = &node->database->stage;
    fb_field_write fields[FB_RECORD_FIELDS_MAX];
    fb_own_change own;
    own_change(node, staged, fields, &own);
    fb_space_fold(node, fb_area_get(node, stage->areas[staged->area].area)->space, &own);
}

static void commit(fb_node *node, const put_context *c)
{
    struct fb_database *db = node->database;
    fb_stage *stage = &db->stage;
    fb_stage_commit(node);
    for (uint32_t i = 0; i < stage->change_count; i++) {
        const fb_staged_change *change = &stage->changes[i];
        uint32_t index = stage->areas[change->area].area;
        fb_area *area = fb_area_get(node, index);
        if (area->own == 0) {
            uint32_t entry = fb_vector_add(node, index, node->self, node->incarnation);
            FB_ASSERT(entry != FB_NONE);
            area->own = entry + 1;
        }
        fb_span bytes = fb_span_of(stage->bytes + change->at, change->len);
        fb_builder_add(node, index, bytes, change->seq, change->leaf, change->cost, change->lives);
        observe_written(node, c->request, change);
        if (is_statement(node, change)) fold_own(node, change);
    }
}

/* Where this is the first change of a life, there has to be room for the life: here, and with the
 * peers, who take so many of one node. */
static fb_status lives_begin(const fb_node *node)
{
    const fb_stage *stage = &node->database->stage;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < stage->area_count; i++) {
        if (fb_area_get(node, stage->areas[i].area)->own != 0) continue;
        FB_TRY(fb_life_begins(node, stage->areas[i].area));
        missing++;
    }
    return fb_vector_room(node, missing) ? FB_OK : FB_ERR_LIMIT;
}

static void answer_written(fb_node *node, const put_context *c)
{
    const fb_stage *stage = &node->database->stage;
    uint8_t bytes[FB_ANSWER_BYTES_MAX];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    if (c->verb == FB_VERB_RECORD_BATCH) fb_write_u16(&w, (uint16_t)c->count);
    for (uint32_t i = 0; i < c->count && c->verb != FB_VERB_RECORD_DELETE; i++) {
        fb_write_id(&w, stage->changes[i].record);
        fb_write_u8(&w, stage->changes[i].created ? 1 : 0);
        fb_write_bytes(&w, stage->changes[i].etag, 16);
    }
    uint64_t waits = MUTANT(ANSWERED_WHEN_EXECUTED, fb_w_building(node), fb_w_durable(node));
    finish(node, c, FB_OK, waits, fb_writer_span(&w));
}

/* Once more, with more room or a longer path. */
static void again(fb_node *node, const put_context *c, size_t bytes, size_t entries)
{
    put_context next = *c;
    next.tries++;
    fb_status status = FB_ERR_BUSY;
    if (next.tries < 8) {
        size_t most = fb_op_write_bytes_max(node), most_entries = fb_op_write_entries_max(node);
        bytes += bytes / 4 + 512;
        entries += entries / 4 + 8;
        status = start(node, &next, c->items, bytes < most ? bytes : most,
                       entries < most_entries ? entries : most_entries);
    }
    if (status != FB_OK) finish(node, c, status, w_seen(node), (fb_span){NULL, 0});
}

static void put_run(fb_node *node, fb_op *op)
{
    const put_context *c = fb_op_context(op);
    fb_status status = fb_op_status(op);
    fb_stage_clear(node);
    fb_reader r = fb_reader_of(c->items);
    uint8_t which[2];
    fb_span about = {NULL, 0};
    for (uint32_t i = 0; i < c->count && status == FB_OK; i++) {
        put_item item;
        item_read(&r, &item);
        const fb_reads reads = {op, c->record[i], c->levels[i]};
        /* The right to it may have gone while the records were read. */
        uint32_t space = fb_area_get(node, item.area)->space;
        bool may = c->done != NULL || fb_space_may_write(node, space);
        status = may ? stage_item(node, c, &item, &reads) : FB_ERR_NOT_AUTHORISED;
        if (status != FB_OK) about = which_change(c, i, status, which);
    }
    size_t bytes, entries;
    fb_stage_size(node, &bytes, &entries);
    add_seal_room(node, &bytes, &entries);
    if (status == FB_ERR_AGAIN) {
        again(node, c, fb_op_write_bytes(op), fb_op_write_entries(op));
        return;
    }
    if (status == FB_OK) status = statements_check(node);
    if (status == FB_OK) status = lives_begin(node);
    if (status == FB_OK &&
        (bytes > fb_op_write_bytes_max(node) || entries > fb_op_write_entries_max(node))) {
        status = FB_ERR_LIMIT;
    }
    if (status != FB_OK) {
        finish(node, c, status, w_seen(node), about);
        return;
    }
    if (bytes > fb_op_write_bytes(op) || entries > fb_op_write_entries(op)) {
        again(node, c, bytes, entries);
        return;
    }
    commit(node, c);
    answer_written(node, c);
}

/* Requests */

static fb_status read_fields(fb_reader *r, put_item *item)
{
    item->count = fb_read_u16(r);
    if (r->failed) return FB_ERR_REQUEST_MALFORMED;
    if (item->count > FB_RECORD_FIELDS_MAX) return FB_ERR_LIMIT;
    for (uint32_t i = 0; i < item->count; i++) {
        fb_field_write *field = &item->fields[i];
        field->name = fb_read_span16(r);
        uint8_t op = fb_read_u8(r);
        field->value = fb_read_span32(r);
        if (r->failed || op == 0 || op > FB_ACTS) return FB_ERR_REQUEST_MALFORMED;
        field->act = (fb_field_act)(op - 1);
        if (field->act == FB_ACT_UNSET && field->value.len != 0) return FB_ERR_REQUEST_MALFORMED;
    }
    return fields_check(item);
}

/* One RECORD_PUT or RECORD_DELETE; on FB_OK its area is pinned. */
static fb_status read_item(fb_node *node, fb_reader *r, uint32_t verb, uint64_t principal,
                           put_item *item)
{
    uint32_t space;
    FB_TRY(fb_space_read(node, r, principal, &space));
    space = MUTANT(WRITES_IN_ONE_SPACE, space, 0);
    if (!fb_space_may_write(node, space)) return FB_ERR_NOT_AUTHORISED;
    bool put = verb == FB_VERB_RECORD_PUT;
    FB_TRY(fb_collection_read(node, r, space, put, &item->area));
    if (item->area != FB_NONE) fb_area_pin(node, item->area);
    fb_status status = FB_OK;
    item->op = put ? FB_CHANGE_WRITE : FB_CHANGE_DELETE;
    item->record = fb_read_id(r);
    uint8_t mode = put ? fb_read_u8(r) : 1;
    item->replace = mode == 1;
    item->condition = fb_read_u8(r);
    item->etag = fb_read_bytes(r, 16);
    item->count = 0;
    if (r->failed || mode < 1 || mode > 2 || item->condition > CONDITION_ABSENT) {
        status = FB_ERR_REQUEST_MALFORMED;
    }
    if (status == FB_OK && put) status = read_fields(r, item);
    if (status == FB_OK && item->area == FB_NONE) status = FB_ERR_NOT_FOUND;
    if (status == FB_OK && put && fb_id_is_zero(item->record)) {
        status = fb_new_uuid_held(node, &item->record);
    }
    /* FI-2-1 */
    if (status == FB_OK && !fb_uuid_is_v7(item->record)) status = FB_ERR_REQUEST_MALFORMED;
    if (status != FB_OK && item->area != FB_NONE) fb_area_unpin(node, item->area);
    return status;
}

static void on_write(fb_node *node, fb_request request, fb_span arguments)
{
    put_context c = {.request = request.number,
                     .index = request.index,
                     .verb = request.verb,
                     .principal = request.principal,
                     .answer = FB_NONE};
    fb_stage *stage = &node->database->stage;
    /* The operation's block holds items and read set. */
    fb_writer w = fb_writer_of(stage->set.bytes, stage->set.cap);
    fb_stage_clear(node);
    fb_reader r = fb_reader_of(arguments);
    uint32_t count = 1;
    fb_status status = FB_OK;
    if (request.verb == FB_VERB_RECORD_BATCH) {
        count = fb_read_u16(&r);
        if (r.failed || count == 0) status = FB_ERR_REQUEST_MALFORMED;
        if (count > FB_WRITE_ITEMS_MAX) status = FB_ERR_LIMIT;
    }
    for (uint32_t i = 0; i < count && status == FB_OK; i++) {
        uint32_t verb =
            count == 1 && request.verb != FB_VERB_RECORD_BATCH ? request.verb : fb_read_u8(&r);
        put_item item;
        if (verb != FB_VERB_RECORD_PUT && verb != FB_VERB_RECORD_DELETE) {
            status = FB_ERR_REQUEST_MALFORMED;
            break;
        }
        status = read_item(node, &r, verb, request.principal, &item);
        if (status != FB_OK) break;
        size_t before = w.at;
        item_write(&w, &item);
        if (w.failed) {
            fb_area_unpin(node, item.area);
            w = fb_writer_of(stage->set.bytes, stage->set.cap);
            w.at = before;
            status = FB_ERR_LIMIT;
            break;
        }
        c.count++;
    }
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    fb_span items = fb_span_of(stage->set.bytes, w.at);
    bool is_long = 2 + 33 * count > FB_REPLY_HELD_BYTES;
    if (status == FB_OK && is_long && !answer_take(node, &c)) status = FB_ERR_BUSY;
    if (status == FB_OK) status = start_fresh(node, &c, items);
    if (status == FB_OK) return;
    if (c.answer != FB_NONE) answer_free(node, c.answer);
    unpin_all(node, items, c.count);
    fb_refuse(node, request, status);
}

fb_status fb_database_write(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name,
                            fb_id record, const fb_field_write *fields, uint32_t count,
                            fb_write_done done, uint64_t user)
{
    put_item item = {.op = FB_CHANGE_WRITE, .record = record, .replace = true, .count = count};
    if (count > FB_RECORD_FIELDS_MAX || name.len > FB_COLLECTION_NAME_BYTES_MAX) {
        return FB_ERR_LIMIT;
    }
    memcpy(item.fields, fields, count * sizeof *fields);
    FB_TRY(fields_check(&item));
    item.area = fb_area_open(node, space, kind, name);
    if (item.area == FB_NONE) return FB_ERR_LIMIT;
    /* May be called while another write is folded: the stage is in use. */
    struct fb_database *db = node->database;
    fb_writer w = fb_writer_of(db->statement, db->statement_cap);
    item_write(&w, &item);
    if (w.failed) return FB_ERR_LIMIT;
    fb_area_pin(node, item.area);
    const put_context c = {.done = done, .user = user, .count = 1, .answer = FB_NONE};
    fb_status status = start_fresh(node, &c, fb_writer_span(&w));
    if (status != FB_OK) fb_area_unpin(node, item.area);
    return status;
}

void fb_put_reset(fb_node *node)
{
    for (uint32_t i = 0; i < FB_ANSWERS_MAX; i++) node->database->answers[i].used = false;
    node->database->answers_used = 0;
}

void fb_put_layout(fb_node *node, fb_arena *arena)
{
    fb_answer *answers = fb_arena_take(arena, FB_ANSWERS_MAX, sizeof *answers);
    /* A change that the node itself writes: a third of an operation, which keeps it. */
    size_t cap = node->options.sizes.operation_bytes / 3;
    if (cap > FB_FIELD_VALUE_BYTES_MAX + 1024) cap = FB_FIELD_VALUE_BYTES_MAX + 1024;
    uint8_t *statement = fb_arena_take(arena, cap, 1);
    if (node->database != NULL) {
        node->database->answers = answers;
        node->database->statement = statement;
        node->database->statement_cap = cap;
    }
    fb_verb_register(node, FB_VERB_RECORD_PUT, on_write);
    fb_verb_register(node, FB_VERB_RECORD_DELETE, on_write);
    fb_verb_register(node, FB_VERB_RECORD_BATCH, on_write);
}
