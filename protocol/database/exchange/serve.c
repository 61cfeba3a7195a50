/* SPDX-License-Identifier: Apache-2.0 */
/* The method `fetch`: batches of one area, from the store. DESIGN 3.1, Vectors and fetch.
 *
 * Arguments: id area, u8 ranges, each: id node, u64 incarnation, u64 batch (up to and with this
 * one), u8 heads that the caller has of this node, each: u64 incarnation, u64 batch.
 * Pieces of the answer: batches, each after its u32 length, in the order of the chain: from after
 * what the caller has, through the lives between, to the one named. What is not here is left out.
 *
 * The chain is walked back from the life that is named to one the caller has, or to the first; a
 * long walk remembers its near end only and is done again from there. When none of the heads that
 * the caller has is on the way, the life forks from the middle of what it has (a store was set
 * back), as a rule: the life comes alone. If what it follows is not there, the caller asks again
 * without heads. */
#include "protocol/database/state.h"

#define ITEMS_AT_ONCE 64u

typedef struct serve_state {
    uint32_t slot;
    uint64_t serial;
} serve_state;

typedef struct serve_context {
    uint32_t slot;
    uint64_t serial;
    uint64_t incarnation;
    uint64_t upto;
} serve_context;

static void step(fb_node *node, uint32_t slot);

/* The slot, if the call that began it is still alive. */
static fb_serve *alive(fb_node *node, uint32_t slot, uint64_t serial)
{
    fb_serve *serve = &node->database->serves[slot];
    return serve->used && serve->serial == serial ? serve : NULL;
}

static void done(fb_node *node, uint32_t slot, fb_status status)
{
    fb_call_finish(node, node->database->serves[slot].call, status);
}

static bool has(const fb_range *range, uint64_t incarnation, uint64_t *batch)
{
    for (uint32_t i = 0; i < range->have_count; i++) {
        if (range->have_incarnation[i] != incarnation) continue;
        *batch = range->have_batch[i];
        return true;
    }
    return false;
}

static void push(fb_serve *serve, fb_step_back life)
{
    if (serve->depth == FB_SERVE_PATH_MAX) {
        memmove(serve->path, serve->path + 1, (FB_SERVE_PATH_MAX - 1) * sizeof *serve->path);
        serve->depth--;
        serve->cut = true;
    }
    serve->path[serve->depth++] = life;
}

static void walk_run(fb_node *node, fb_op *op);

static bool read_life(fb_node *node, uint32_t slot, uint64_t incarnation, uint64_t upto)
{
    fb_serve *serve = &node->database->serves[slot];
    fb_op *op = fb_op_begin(node, FB_OP_READER, walk_run, 0, 0);
    if (op == NULL) return false;
    *(serve_context *)fb_op_context(op) = (serve_context){slot, serve->serial, incarnation, upto};
    uint8_t key[FB_VECTOR_KEY_BYTES];
    fb_op_read_key(op,
                   fb_key_vector(key, true, fb_area_get(node, serve->area)->local,
                                 serve->range[serve->at].node, incarnation),
                   FB_VECTOR_VALUE_BYTES);
    serve->busy = true;
    fb_op_issue(node, op);
    return true;
}

/* Walks back from a life. False: it goes on when a read is done. */
static bool walk(fb_node *node, uint32_t slot, uint64_t incarnation, uint64_t upto)
{
    fb_serve *serve = &node->database->serves[slot];
    const fb_range *range = &serve->range[serve->at];
    while (incarnation != 0) {
        uint64_t have;
        if (has(range, incarnation, &have)) {
            uint64_t from = have + MUTANT(FETCH_SKIPS_ONE, 1u, 2u);
            if (have < upto) push(serve, (fb_step_back){incarnation, from, upto, 0, 0});
            return true;
        }
        uint32_t entry = fb_vector_find(node, serve->area, range->node, incarnation);
        if (entry == FB_NONE) {
            if (read_life(node, slot, incarnation, upto)) return false;
            done(node, slot, FB_ERR_BUSY);
            return false;
        }
        const fb_vector *v = fb_vector_get(node, entry);
        push(serve, (fb_step_back){incarnation, 1, fb_min_u64(upto, v->batch),
                                   v->previous_incarnation, v->previous_number});
        incarnation = v->previous_incarnation;
        upto = v->previous_number;
    }
    if (MUTANT(FORK_FROM_THE_START, range->have_count == 0, true)) return true;
    fb_step_back life = serve->depth > 0 ? serve->path[0] : (fb_step_back){0};
    bool same = life.incarnation == range->incarnation;
    serve->depth = 0;
    serve->cut = false;
    push(serve,
         (fb_step_back){range->incarnation, 1, range->batch, same ? life.previous_incarnation : 0,
                        same ? life.previous_number : 0});
    return true;
}

static void walk_run(fb_node *node, fb_op *op)
{
    const serve_context *c = fb_op_context(op);
    fb_serve *serve = alive(node, c->slot, c->serial);
    if (serve == NULL) return;
    serve->busy = false;
    fb_read_entry entry;
    fb_life life;
    if (fb_op_status(op) != FB_OK) {
        done(node, c->slot, FB_ERR_AGAIN);
        return;
    }
    bool found = fb_op_value(node, op, 0, &entry) && fb_life_decode(entry.value, &life) == FB_OK;
    if (!found) {
        /* Not known here, or a head once more: what is on the path already is of no use. */
        serve->depth = 0;
        serve->cut = false;
    } else {
        push(serve, (fb_step_back){c->incarnation, 1, fb_min_u64(c->upto, life.batch),
                                   life.previous_incarnation, life.previous_number});
        if (!walk(node, c->slot, life.previous_incarnation, life.previous_number)) return;
    }
    step(node, c->slot);
}

/* Those between are folded: nothing of them lives (fold.c). The header behind them proves that they
 * were. */
static void write_folded(fb_writer *w, fb_id peer, const fb_step_back *life)
{
    fb_write_u32(w, FB_FOLDED_BYTES);
    fb_write_u8(w, 0);
    fb_write_id(w, peer);
    fb_write_u64(w, life->incarnation);
    fb_write_u64(w, life->from - 1);
    fb_write_u64(w, life->previous_incarnation);
    fb_write_u64(w, life->previous_number);
}

static void send_run(fb_node *node, fb_op *op)
{
    const serve_context *c = fb_op_context(op);
    fb_serve *serve = alive(node, c->slot, c->serial);
    if (serve == NULL) return;
    serve->busy = false;
    if (fb_op_status(op) != FB_OK) {
        done(node, c->slot, FB_ERR_AGAIN);
        return;
    }
    FB_ASSERT(serve->depth > 0);
    fb_step_back *life = &serve->path[serve->depth - 1];
    /* The stage is idle while a reader runs. */
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    size_t cap = fb_call_piece_max(node, serve->call);
    if (cap > stage->set.cap) cap = stage->set.cap;
    fb_writer w = fb_writer_of(stage->set.bytes, cap);
    uint32_t count = fb_op_range_count(node, op, 0);
    /* With that bug peers also say it of what lives. */
    bool lies = fb_area_get(node, serve->area)->kind == FB_AREA_COLLECTION;
    (void)lies;
    for (uint32_t i = 0; i < count; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (entry.key.len != FB_BATCH_KEY_BYTES || entry.value.len != entry.value_len) break;
        uint64_t number = fb_load_be64(entry.key.p + FB_BATCH_KEY_BYTES - 8);
        if (MUTANT(GAP_ANYWHERE, false, lies && number % 4 == 2 && i + 1 < count)) continue;
        bool gap = number > life->from;
        /* Beyond what is asked for only where that is folded. */
        if (life->from > life->upto) break;
        if (4 + entry.value.len + (gap ? 4 + FB_FOLDED_BYTES : 0) > w.cap - w.at) break;
        if (MUTANT(FOLDED_NOT_SAID, gap, false)) {
            write_folded(&w, serve->range[serve->at].node, life);
        }
        fb_write_span32(&w, entry.value);
        life->from = number + 1;
    }
    if (w.at == 0) {
        if (count > 0) {
            done(node, c->slot, FB_ERR_LIMIT);
            return;
        }
        life->from = life->upto + 1; /* not durable here yet */
    }
    if (w.at != 0) {
        fb_call_answer(node, serve->call, fb_writer_span(&w));
    } else {
        step(node, c->slot);
    }
}

static void send(fb_node *node, uint32_t slot)
{
    fb_serve *serve = &node->database->serves[slot];
    const fb_step_back *life = &serve->path[serve->depth - 1];
    fb_id peer = serve->range[serve->at].node;
    uint32_t local = fb_area_get(node, serve->area)->local;
    fb_op_kind kind = MUTANT(TOLD_BEFORE_DURABLE, FB_OP_READER, FB_OP_WRITER);
    fb_op *op = fb_op_begin(node, kind, send_run, 0, 0);
    if (op == NULL) {
        done(node, slot, FB_ERR_BUSY);
        return;
    }
    *(serve_context *)fb_op_context(op) = (serve_context){slot, serve->serial, 0, 0};
    uint8_t low[FB_BATCH_KEY_BYTES], high[FB_BATCH_KEY_BYTES];
    uint32_t bytes = fb_call_piece_max(node, serve->call);
    fb_op_read_range(op, fb_key_batch(low, local, peer, life->incarnation, life->from),
                     fb_key_batch(high, local, peer, life->incarnation, UINT64_MAX),
                     FB_BATCH_BYTES_MAX, ITEMS_AT_ONCE, bytes, false);
    serve->busy = true;
    fb_op_issue(node, op);
}

/* Does what leads to one piece, or to the end. */
static void step(fb_node *node, uint32_t slot)
{
    fb_serve *serve = &node->database->serves[slot];
    while (!serve->busy) {
        if (serve->depth > 0) {
            const fb_step_back *life = &serve->path[serve->depth - 1];
            if (life->from <= life->upto) {
                send(node, slot);
                return;
            }
            serve->depth--;
            if (serve->depth > 0 || !serve->cut) continue;
            /* The far end was forgotten: from here on again. */
            fb_range *range = &serve->range[serve->at];
            range->have_count = 1;
            range->have_incarnation[0] = life->incarnation;
            range->have_batch[0] = life->upto;
            serve->cut = false;
            serve->walking = false;
        } else if (serve->walking) {
            serve->at++;
            serve->walking = false;
        }
        if (serve->at == serve->count) {
            done(node, slot, FB_OK);
            return;
        }
        serve->walking = true;
        const fb_range *range = &serve->range[serve->at];
        if (!walk(node, slot, range->incarnation, range->batch)) return;
    }
}

static fb_status read_ranges(fb_reader *r, fb_serve *serve)
{
    serve->count = fb_read_u8(r);
    if (r->failed || serve->count == 0 || serve->count > FB_FETCH_RANGES_MAX) {
        return FB_ERR_CALL_MALFORMED;
    }
    for (uint32_t i = 0; i < serve->count; i++) {
        fb_range *range = &serve->range[i];
        range->node = fb_read_id(r);
        range->incarnation = fb_read_u64(r);
        range->batch = fb_read_u64(r);
        range->have_count = fb_read_u8(r);
        if (range->have_count > FB_FETCH_HAVES_MAX || range->incarnation == 0 ||
            range->batch == UINT64_MAX) {
            return FB_ERR_CALL_MALFORMED;
        }
        for (uint32_t k = 0; k < range->have_count; k++) {
            range->have_incarnation[k] = fb_read_u64(r);
            range->have_batch[k] = fb_read_u64(r);
        }
    }
    return fb_reader_done(r) ? FB_OK : FB_ERR_CALL_MALFORMED;
}

static fb_status serve_begin(fb_node *node, uint32_t call, uint32_t link, fb_span arguments,
                             void *state)
{
    struct fb_database *db = node->database;
    const fb_link_info *info = fb_link_at(node, link);
    uint32_t slot = 0;
    while (slot < db->serve_count && db->serves[slot].used) slot++;
    if (slot == db->serve_count) return FB_ERR_BUSY;
    fb_reader r = fb_reader_of(arguments);
    fb_id id = fb_read_id(&r);
    fb_serve *serve = &db->serves[slot];
    *serve = (fb_serve){.call = call};
    FB_TRY(read_ranges(&r, serve));
    serve->area = fb_area_find(node, id);
    if (serve->area == FB_NONE || fb_area_get(node, serve->area)->space != info->space ||
        !fb_space_may_hold(node, info->space, info->member, id)) {
        return FB_ERR_AREA_UNKNOWN;
    }
    serve->used = true;
    serve->serial = ++db->serial;
    fb_area_pin(node, serve->area);
    *(serve_state *)state = (serve_state){slot, serve->serial};
    return FB_OK;
}

static void serve_more(fb_node *node, uint32_t call, void *state)
{
    (void)call;
    const serve_state *s = state;
    if (!node->database->serves[s->slot].busy) step(node, s->slot);
}

static void serve_end(fb_node *node, uint32_t call, void *state)
{
    (void)call;
    const serve_state *s = state;
    fb_serve *serve = alive(node, s->slot, s->serial);
    if (serve == NULL) return;
    serve->used = MUTANT(SERVED_PLACE_KEPT, false, serve->depth > 0);
    fb_area_unpin(node, serve->area);
}

static const fb_method_ops fetch_method = {serve_begin, serve_more, serve_end};

void fb_serve_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    uint32_t count = node->options.sizes.calls / 2;
    if (count > FB_SERVES_MAX) count = FB_SERVES_MAX;
    if (count == 0) count = 1;
    fb_serve *serves = fb_arena_take(arena, count, sizeof *serves);
    /* FM-5.2-7, FI-2-13 */
    fb_method_register(node, FB_METHOD_FETCH, &fetch_method);
    if (db == NULL) return;
    db->serves = serves;
    db->serve_count = count;
}

void fb_serve_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i < db->serve_count; i++) db->serves[i].used = false;
}
