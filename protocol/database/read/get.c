/* SPDX-License-Identifier: Apache-2.0 */
/* RECORD_GET and RECORD_LIST: readers, so what they show is durable. */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"
#include "protocol/database/write/write.h"

typedef struct get_context {
    uint64_t request;
    uint32_t index;
    uint32_t area;
    bool list;
    uint32_t limit;
    uint32_t tries;
    fb_id record; /* of GET; the one after which LIST goes on */
    int64_t horizon;
} get_context;

static void get_run(fb_node *node, fb_op *op);

static void answer(fb_node *node, const get_context *c, fb_status status, fb_span bytes)
{
    fb_area_unpin(node, c->area);
    if (fb_request_at(node, c->index).number != c->request) return;
    fb_reply(node, c->index, status, bytes);
}

static fb_status start(fb_node *node, const get_context *context)
{
    fb_op *op = fb_op_begin(node, FB_OP_READER, get_run, 0, 0);
    if (op == NULL) return FB_ERR_BUSY;
    get_context *c = fb_op_context(op);
    *c = *context;
    const fb_area *area = fb_area_get(node, c->area);
    uint8_t low[FB_RECORD_KEY_BYTES + 1], high[FB_AREA_KEY_BYTES];
    fb_span from = fb_key_record(low, area->local, c->record);
    uint32_t record_max = (uint32_t)node->database->record_max;
    bool ok;
    if (c->list) {
        if (!fb_id_is_zero(c->record)) low[from.len++] = 0; /* beyond that one */
        fb_writer h = fb_writer_of(high, sizeof high);
        fb_write_u8(&h, FB_TAG_RECORD);
        fb_write_u32(&h, area->local + 1);
        uint32_t items = c->limit < FB_LIST_ITEMS_MAX ? c->limit : FB_LIST_ITEMS_MAX;
        ok = fb_op_read_range(op, from, fb_writer_span(&h), record_max, items,
                              node->options.sizes.operation_bytes / 2, false);
    } else {
        ok = fb_op_read_key(op, from, record_max);
    }
    if (!ok) {
        fb_op_abandon(node, op);
        return FB_ERR_LIMIT;
    }
    fb_op_issue(node, op);
    return FB_OK;
}

/* Goes on in an operation of its own: further down the list, or once more. */
static void go_on(fb_node *node, const get_context *c)
{
    fb_status status = c->tries < 8 ? start(node, c) : FB_ERR_BUSY;
    if (status != FB_OK) answer(node, c, status, (fb_span){NULL, 0});
}

static uint32_t entry_count(const fb_node *node, const fb_op *op, const get_context *c)
{
    fb_read_entry entry;
    if (c->list) return fb_op_range_count(node, op, 0);
    return fb_op_value(node, op, 0, &entry) ? 1 : 0;
}

static fb_status entry_at(const fb_node *node, const fb_op *op, const get_context *c, uint32_t at,
                          fb_id *id, fb_record *record)
{
    fb_read_entry entry;
    if (c->list) {
        entry = fb_op_range_entry(node, op, 0, at);
    } else if (!fb_op_value(node, op, 0, &entry)) {
        return FB_ERR_NOT_FOUND;
    }
    if (entry.key.len != FB_RECORD_KEY_BYTES) return FB_ERR_STORE_DAMAGED;
    if (entry.value.len != entry.value_len) return FB_ERR_LIMIT;
    memcpy(id->b, entry.key.p + 5, sizeof id->b);
    return fb_record_decode(entry.value, record);
}

/* How many entries the answer holds, how many visible records are among them, and the values that
 * must be read for them. */
typedef struct page {
    uint32_t entries, records, apart;
    bool whole; /* nothing of the answer was left out */
} page;

/* Larger than any answer: concurrent writers made it so. A list names it without its fields and
 * goes on behind it; a write or a delete makes it smaller. */
static bool too_large(const fb_node *node, const fb_record *record, int64_t horizon)
{
    uint32_t apart = 0;
    size_t size = fb_show_size(record, horizon, &apart);
    return FB_SHOW_HEAD_BYTES + size > fb_show_max(node) || apart + 1 > FB_READ_ITEMS_MAX - 8;
}

static size_t size_shown(const fb_node *node, const get_context *c, const fb_record *record,
                         uint32_t *apart)
{
    bool named = c->list && MUTANT(LIST_ENDS_AT_LARGE, true, false);
    if (named && too_large(node, record, c->horizon)) return FB_SHOW_TOO_LARGE_BYTES;
    return fb_show_size(record, c->horizon, apart);
}

static fb_status measure(const fb_node *node, const fb_op *op, const get_context *c, page *out)
{
    uint32_t count = entry_count(node, op, c);
    size_t bytes = FB_SHOW_HEAD_BYTES;
    *out = (page){0, 0, 0, true};
    for (uint32_t i = 0; i < count; i++) {
        fb_id id;
        fb_record record;
        uint32_t apart = out->apart;
        FB_TRY(entry_at(node, op, c, i, &id, &record));
        size_t size = size_shown(node, c, &record, &apart);
        bool full = bytes + size > fb_show_max(node) || apart + 1 > FB_READ_ITEMS_MAX - 8 ||
                    (c->list && out->records == c->limit);
        if (size != 0 && full) {
            if (out->records == 0) return FB_ERR_LIMIT;
            out->whole = false;
            return FB_OK;
        }
        out->entries++;
        if (size == 0) continue;
        out->records++;
        out->apart = apart;
        bytes += size;
    }
    return FB_OK;
}

static fb_status ask_values(fb_node *node, fb_op *op, const get_context *c, const page *p)
{
    fb_show show = {fb_area_get(node, c->area)->local, c->horizon, 1};
    for (uint32_t i = 0; i < p->entries; i++) {
        fb_id id;
        fb_record record;
        uint32_t apart = 0;
        FB_TRY(entry_at(node, op, c, i, &id, &record));
        if (size_shown(node, c, &record, &apart) == 0 || apart == 0) continue;
        if (!fb_show_read(op, &show, id, &record)) return FB_ERR_LIMIT;
    }
    return FB_OK;
}

/* FM-4.1-10 */
static fb_status write_page(fb_node *node, fb_op *op, const get_context *c, const page *p)
{
    /* The stage is idle while a reader runs. */
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    fb_writer w = fb_writer_of(stage->set.bytes, fb_show_max(node));
    if (c->list) {
        bool whole = p->whole && fb_op_range_whole(node, op, 0);
        fb_write_u8(&w, whole ? 1 : 0);
        fb_write_u16(&w, (uint16_t)p->records);
    }
    fb_show show = {fb_area_get(node, c->area)->local, c->horizon, 1};
    for (uint32_t i = 0; i < p->entries; i++) {
        fb_id id;
        fb_record record;
        uint32_t apart = 0;
        FB_TRY(entry_at(node, op, c, i, &id, &record));
        if (size_shown(node, c, &record, &apart) == 0) continue;
        if (c->list && too_large(node, &record, c->horizon)) {
            fb_show_too_large(&w, id, &record);
            continue;
        }
        FB_TRY(fb_show_write(node, op, &show, &w, id, &record));
    }
    answer(node, c, FB_OK, fb_writer_span(&w));
    return FB_OK;
}

static void get_run(fb_node *node, fb_op *op)
{
    get_context *c = fb_op_context(op);
    page p;
    fb_status status = fb_op_status(op);
    if (status == FB_OK) status = measure(node, op, c, &p);
    if (status == FB_OK && !c->list && p.records == 0) status = FB_ERR_NOT_FOUND;
    if (status == FB_OK && p.apart > 0 && fb_op_round(op) == 1) {
        status = ask_values(node, op, c, &p);
        if (status == FB_OK) {
            fb_op_issue(node, op);
            return;
        }
    } else if (status == FB_OK && c->list && p.records == 0 && !fb_op_range_whole(node, op, 0)) {
        /* Nothing visible so far: deleted records and hidden ones. */
        fb_span last = p.entries > 0 ? fb_op_range_entry(node, op, 0, p.entries - 1).key
                                     : fb_op_range_next(node, op, 0);
        get_context next = *c;
        if (last.len == FB_RECORD_KEY_BYTES) {
            memcpy(next.record.b, last.p + 5, sizeof next.record.b);
            next.tries = 0;
            go_on(node, &next);
            return;
        }
        status = FB_ERR_STORE_DAMAGED;
    } else if (status == FB_OK) {
        status = write_page(node, op, c, &p);
        if (status == FB_OK) return;
    }
    /* The values moved meanwhile. A store that says so itself has waited as long as it may. */
    if (status == FB_ERR_AGAIN && fb_op_status(op) == FB_OK) {
        get_context next = *c;
        next.tries++;
        go_on(node, &next);
        return;
    }
    answer(node, c, status, (fb_span){NULL, 0});
}

static void on_read(fb_node *node, fb_request request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    uint32_t space;
    get_context c = {.request = request.number,
                     .index = request.index,
                     .list = request.verb == FB_VERB_RECORD_LIST,
                     .area = FB_NONE};
    fb_status status = fb_space_read(node, &r, request.principal, &space);
    if (status == FB_OK) status = fb_collection_read(node, &r, space, false, &c.area);
    c.record = fb_read_id(&r);
    if (c.list) c.limit = fb_read_u32(&r);
    if (status == FB_OK && (!fb_reader_done(&r) || (c.list && c.limit == 0))) {
        status = FB_ERR_REQUEST_MALFORMED;
    }
    if (status == FB_OK && c.area == FB_NONE) {
        static const uint8_t nothing[3] = {1, 0, 0};
        if (c.list) {
            fb_reply(node, request.index, FB_OK, fb_span_of(nothing, sizeof nothing));
            return;
        }
        status = FB_ERR_NOT_FOUND;
    }
    c.horizon = MUTANT(FUTURE_IS_SHOWN,
                       fb_horizon(node->wall_us, node->options.timing.window_future_us), INT64_MAX);
    if (status == FB_OK) {
        fb_area_pin(node, c.area);
        status = start(node, &c);
        if (status != FB_OK) fb_area_unpin(node, c.area);
    }
    if (status != FB_OK) fb_refuse(node, request, status);
}

void fb_get_layout(fb_node *node)
{
    fb_verb_register(node, FB_VERB_RECORD_GET, on_read);
    fb_verb_register(node, FB_VERB_RECORD_LIST, on_read);
}
