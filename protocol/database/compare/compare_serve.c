/* SPDX-License-Identifier: Apache-2.0 */
/* The method `compare`, as it is served: nodes of the fingerprint tree by their paths, and records
 * by their ids, from the durable state. DESIGN 3.1, Anti-entropy; docs/WIRE-FORMATS.md,
 * "Compare". A node that is in doubt about an area itself says so: what it knows to be replaced is,
 * but it may not know all. While something is taken back there nothing is told: records lack what
 * the vector still says to be here. */
#include "protocol/base/mutant.h"
#include "protocol/database/compare/compare.h"
#include "protocol/database/compare/repair.h"
#include "protocol/database/state.h"
#include "protocol/database/tree/path.h"

typedef struct serve_state {
    uint32_t slot;
    uint64_t serial;
} serve_state;

typedef struct serve_context {
    uint32_t slot;
    uint64_t serial;
    uint32_t count; /* paths, or dots of the record */
    uint32_t len;   /* bytes of arguments that they take */
    uint32_t levels;
} serve_context;

static fb_compare_serve *alive(fb_node *node, uint32_t slot, uint64_t serial)
{
    fb_compare_serve *serve = &node->database->compare_serves[slot];
    return serve->used && serve->serial == serial ? serve : NULL;
}

static fb_reader arguments_of(const fb_compare_serve *serve)
{
    return fb_reader_of(fb_span_of(serve->arguments + serve->at, serve->arguments_len - serve->at));
}

/* Nodes. */

static void write_view(fb_writer *w, const fb_tree_node *view)
{
    fb_write_u8(w, (uint8_t)view->kind);
    if (view->kind == FB_TREE_INNER) {
        fb_write_bytes(w, view->bytes, (size_t)FB_TREE_FAN * 16);
        return;
    }
    fb_write_u8(w, (uint8_t)view->count);
    fb_write_bytes(w, view->bytes, (size_t)view->count * FB_TREE_ITEM_BYTES);
}

/* The caller's root is this node's. */
static bool is_same(const fb_compare_serve *serve, const fb_path *path, const fb_tree_node *view)
{
    uint8_t root[16];
    fb_tree_fingerprint(view, root);
    bool same = path->depth == 0 && memcmp(root, serve->root, sizeof root) == 0;
    return MUTANT(COMPARED_EVERYWHERE, same, false);
}

static void nodes_run(fb_node *node, fb_op *op)
{
    const serve_context *c = fb_op_context(op);
    fb_compare_serve *serve = alive(node, c->slot, c->serial);
    if (serve == NULL) return;
    serve->busy = false;
    fb_status status = fb_op_status(op) == FB_OK ? FB_OK : FB_ERR_AGAIN;
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    fb_writer w = fb_writer_of(stage->set.bytes, stage->set.cap);
    fb_write_u8(&w, fb_area_get(node, serve->area)->doubt ? 1 : 0);
    fb_reader r = arguments_of(serve);
    uint32_t item = 0;
    for (uint32_t i = 0; i < c->count && status == FB_OK; i++) {
        fb_path path = fb_path_read(&r);
        fb_tree_node view;
        status = fb_path_view(node, op, item, &path, &view);
        item += path.depth + (uint32_t)1;
        if (status != FB_OK) break;
        if (is_same(serve, &path, &view)) {
            fb_write_u8(&w, 0);
        } else {
            write_view(&w, &view);
        }
    }
    serve->at += c->len;
    serve->count -= c->count;
    if (status != FB_OK || w.failed) {
        fb_call_finish(node, serve->call, status != FB_OK ? status : FB_ERR_LIMIT);
        return;
    }
    fb_call_answer(node, serve->call, fb_writer_span(&w));
}

static void serve_nodes(fb_node *node, uint32_t slot)
{
    fb_compare_serve *serve = &node->database->compare_serves[slot];
    fb_op *op = fb_op_begin(node, FB_OP_READER, nodes_run, 0, 0);
    if (op == NULL) {
        fb_call_finish(node, serve->call, FB_ERR_BUSY);
        return;
    }
    serve_context *c = fb_op_context(op);
    *c = (serve_context){.slot = slot, .serial = serve->serial};
    size_t most = fb_call_piece_max(node, serve->call) / (3 + FB_TREE_FAN * 16);
    fb_reader r = arguments_of(serve);
    uint32_t reads = 0;
    while (c->count < serve->count && c->count < most) {
        fb_path path = fb_path_read(&r);
        reads += path.depth + (uint32_t)1;
        if (reads > FB_PATH_READS_MAX && c->count != 0) break;
        if (!fb_path_ask(node, op, serve->area, &path)) break;
        c->count++;
        c->len = (uint32_t)r.at;
    }
    if (c->count == 0) {
        fb_op_abandon(node, op);
        fb_call_finish(node, serve->call, FB_ERR_LIMIT);
        return;
    }
    serve->busy = true;
    fb_op_issue(node, op);
}

/* Records. */

static bool covers(const fb_node *node, const fb_op *op, uint32_t area, fb_dot dot, uint32_t *item)
{
    uint32_t entry = fb_vector_find(node, area, dot.node, dot.incarnation);
    uint32_t asked = (*item)++;
    if (entry != FB_NONE) {
        const fb_vector *v = fb_vector_get(node, entry);
        /* The last one is less where a batch was just taken back. */
        return dot.seq <= fb_min_u64(v->durable_seq, v->last_seq);
    }
    fb_read_entry value;
    fb_life life;
    return fb_op_value(node, op, asked, &value) && fb_life_decode(value.value, &life) == FB_OK &&
           dot.seq <= life.last_seq;
}

/* What is durable here of the area: who compares takes nothing away before it has as much. */
static void write_heads(const fb_node *node, uint32_t area, fb_writer *w)
{
    size_t count_at = w->at;
    uint32_t count = 0;
    fb_write_u16(w, 0);
    for (uint32_t at = fb_area_get(node, area)->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->durable_batch == 0) continue;
        fb_write_dot(w, (fb_dot){v->node, v->incarnation, v->durable_seq});
        count++;
    }
    if (!w->failed) fb_store_be(w->p + count_at, count, 2);
}

static void record_run(fb_node *node, fb_op *op)
{
    const serve_context *c = fb_op_context(op);
    fb_compare_serve *serve = alive(node, c->slot, c->serial);
    if (serve == NULL) return;
    serve->busy = false;
    fb_reader r = arguments_of(serve);
    fb_path path = fb_path_to(fb_read_id(&r), c->levels);
    fb_read_u8(&r);
    serve->at += c->len;
    serve->count--;
    fb_read_entry entry;
    fb_record record = {.apart = 0};
    bool told = fb_op_status(op) == FB_OK && !fb_area_get(node, serve->area)->mending;
    fb_status status = told ? FB_OK : FB_ERR_AGAIN;
    if (status == FB_OK && fb_op_value(node, op, 0, &entry)) {
        status = entry.value.len == entry.value_len ? fb_record_decode(entry.value, &record)
                                                    : FB_ERR_LIMIT;
    } else if (status == FB_OK && !fb_path_is_free(node, op, c->count + 1, &path)) {
        status = FB_ERR_AGAIN; /* it was lost here, which says nothing about it */
    }
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    fb_writer w = fb_writer_of(stage->set.bytes, stage->set.cap);
    uint8_t bits[32] = {0};
    uint32_t item = 1;
    fb_reader asked = r;
    fb_span dots = fb_read_bytes(&asked, (size_t)c->count * FB_DOT_BYTES);
    for (uint32_t i = 0; i < c->count; i++) {
        fb_dot dot = fb_read_dot(&r);
        if (status == FB_OK && covers(node, op, serve->area, dot, &item)) {
            bits[i / 8] |= (uint8_t)(1u << i % 8);
        }
    }
    fb_write_bytes(&w, bits, (c->count + (size_t)7) / 8);
    size_t state_at = w.at;
    fb_write_u16(&w, 0);
    fb_peer_state_write(&w, record.state, dots);
    size_t state_len = w.at - state_at - 2;
    if (!w.failed) fb_store_be(w.p + state_at, state_len, 2);
    write_heads(node, serve->area, &w);
    if (status != FB_OK || w.failed || state_len > UINT16_MAX) {
        fb_call_finish(node, serve->call, status != FB_OK ? status : FB_ERR_LIMIT);
        return;
    }
    fb_call_answer(node, serve->call, fb_writer_span(&w));
}

static void serve_record(fb_node *node, uint32_t slot)
{
    fb_compare_serve *serve = &node->database->compare_serves[slot];
    fb_op *op = fb_op_begin(node, FB_OP_READER, record_run, 0, 0);
    if (op == NULL) {
        fb_call_finish(node, serve->call, FB_ERR_BUSY);
        return;
    }
    serve_context *c = fb_op_context(op);
    *c = (serve_context){.slot = slot, .serial = serve->serial};
    uint32_t local = fb_area_get(node, serve->area)->local;
    fb_reader r = arguments_of(serve);
    fb_id record = fb_read_id(&r);
    c->count = fb_read_u8(&r);
    uint8_t key[FB_VECTOR_KEY_BYTES];
    bool ok =
        fb_op_read_key(op, fb_key_record(key, local, record), (uint32_t)node->database->record_max);
    for (uint32_t i = 0; i < c->count && ok; i++) {
        fb_dot dot = fb_read_dot(&r);
        ok = fb_op_read_key(op, fb_key_vector(key, true, local, dot.node, dot.incarnation),
                            FB_VECTOR_VALUE_BYTES);
    }
    c->len = (uint32_t)r.at;
    c->levels = fb_area_get(node, serve->area)->root_info.levels;
    const fb_path path = fb_path_to(record, c->levels);
    if (!ok || !fb_path_ask(node, op, serve->area, &path)) {
        fb_op_abandon(node, op);
        fb_call_finish(node, serve->call, FB_ERR_LIMIT);
        return;
    }
    serve->busy = true;
    fb_op_issue(node, op);
}

/* The whole arguments follow their format. */
static bool arguments_valid(fb_compare_serve *serve)
{
    fb_reader r = arguments_of(serve);
    serve->kind = fb_read_u8(&r);
    if (serve->kind == FB_COMPARE_NODES) fb_read_into(&r, serve->root, sizeof serve->root);
    serve->count = fb_read_u8(&r);
    uint32_t first = (uint32_t)r.at;
    for (uint32_t i = 0; i < serve->count && !r.failed; i++) {
        if (serve->kind == FB_COMPARE_NODES) {
            (void)fb_path_read(&r);
        } else {
            fb_read_id(&r);
            uint32_t dots = fb_read_u8(&r);
            if (dots > FB_COMPARE_DOTS_MAX) return false;
            fb_read_bytes(&r, (size_t)dots * FB_DOT_BYTES);
        }
    }
    bool known = serve->kind == FB_COMPARE_NODES || serve->kind == FB_COMPARE_RECORDS;
    bool done = fb_reader_done(&r);
    serve->at += first;
    return known && done && serve->count != 0 && serve->count <= FB_COMPARE_PATHS_MAX;
}

static fb_status compare_begin(fb_node *node, uint32_t call, uint32_t link, fb_span arguments,
                               void *state)
{
    struct fb_database *db = node->database;
    const fb_link_info *info = fb_link_at(node, link);
    uint32_t slot = 0;
    while (slot < FB_COMPARES_SERVED && db->compare_serves[slot].used) slot++;
    if (slot == FB_COMPARES_SERVED) return FB_ERR_BUSY;
    if (arguments.len < 17 || arguments.len > FB_CALL_ARGUMENTS_MAX) return FB_ERR_CALL_MALFORMED;
    fb_compare_serve *serve = &db->compare_serves[slot];
    fb_id id;
    memcpy(id.b, arguments.p, 16);
    serve->call = call;
    serve->at = 16;
    serve->arguments_len = (uint32_t)arguments.len;
    serve->busy = false;
    memcpy(serve->arguments, arguments.p, arguments.len);
    if (!arguments_valid(serve)) return FB_ERR_CALL_MALFORMED;
    serve->area = fb_area_find(node, id);
    if (serve->area == FB_NONE || fb_area_get(node, serve->area)->space != info->space ||
        !fb_space_may_hold(node, info->space, info->member, id)) {
        return FB_ERR_AREA_UNKNOWN;
    }
    if (fb_area_get(node, serve->area)->mending) return FB_ERR_BUSY;
    serve->used = true;
    serve->serial = ++db->serial;
    fb_area_pin(node, serve->area);
    *(serve_state *)state = (serve_state){slot, serve->serial};
    return FB_OK;
}

static void compare_more(fb_node *node, uint32_t call, void *state)
{
    const serve_state *s = state;
    const fb_compare_serve *serve = &node->database->compare_serves[s->slot];
    if (serve->busy) return;
    if (serve->count == 0) {
        fb_call_finish(node, call, FB_OK);
    } else if (serve->kind == FB_COMPARE_NODES) {
        serve_nodes(node, s->slot);
    } else {
        serve_record(node, s->slot);
    }
}

static void compare_end(fb_node *node, uint32_t call, void *state)
{
    (void)call;
    const serve_state *s = state;
    fb_compare_serve *serve = alive(node, s->slot, s->serial);
    if (serve == NULL) return;
    serve->used = false;
    fb_area_unpin(node, serve->area);
}

static const fb_method_ops compare_method = {compare_begin, compare_more, compare_end};

void fb_compare_serve_layout(fb_node *node, fb_arena *arena)
{
    fb_compare_serve *serves = fb_arena_take(arena, FB_COMPARES_SERVED, sizeof *serves);
    fb_method_register(node, FB_METHOD_COMPARE, &compare_method);
    if (node->database != NULL) node->database->compare_serves = serves;
}
