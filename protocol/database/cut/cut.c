/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of a member: of each of its lives in each area the last batch that is held here, closed
 * lives included, which are in the store alone. DESIGN 3.1, Revocation. One at a time: it is asked
 * for by an operator. */
#include "protocol/space/cut.h"
#include "protocol/base/hex.h"
#include "protocol/database/state.h"

#define LIVES_AT_ONCE 64u

typedef struct fb_cutting {
    bool used;
    bool own_alone;
    uint32_t space;
    fb_id peer;
    fb_cut_done done;
    uint64_t user;
    uint64_t serial;
    fb_id after;    /* the last area that is done */
    fb_writer text; /* digits, a quote before them */
    uint32_t areas, lives;
    size_t count_at; /* of the area at hand, where its lives are counted; 0: none yet */
    uint32_t in_area;
    uint64_t from; /* incarnation from which on the area's closed lives are to be read */
    uint8_t *bytes;
    size_t cap;
} fb_cutting;

typedef struct cut_context {
    uint32_t area;
    uint64_t serial;
} cut_context;

static void next(fb_node *node);

void fb_cut_layout(fb_node *node, fb_arena *arena)
{
    /* The statement with it is kept by an operation, sealed into one batch, and folded. */
    size_t cap = node->options.sizes.operation_bytes / 4;
    if (cap > node->options.sizes.write_set_bytes / 12) {
        cap = node->options.sizes.write_set_bytes / 12;
    }
    if (cap > FB_CUT_TEXT_BYTES_MAX) cap = FB_CUT_TEXT_BYTES_MAX;
    fb_cutting *cutting = fb_arena_take(arena, 1, sizeof *cutting);
    uint8_t *bytes = fb_arena_take(arena, cap, 1);
    if (node->database == NULL) return;
    node->database->cutting = cutting;
    cutting->bytes = bytes;
    cutting->cap = cap;
}

void fb_cut_reset(fb_node *node)
{
    node->database->cutting->used = false;
}

static void end(fb_node *node, fb_status status)
{
    fb_cutting *c = node->database->cutting;
    fb_cut_text text = {.areas = c->areas, .lives = c->lives};
    fb_write_u8(&c->text, '"');
    if (c->text.failed && status == FB_OK) status = FB_ERR_LIMIT;
    text.quoted = fb_writer_span(&c->text);
    for (uint32_t i = 0; i < node->options.sizes.vector_entries; i++) {
        const fb_wanted *wanted = fb_wanted_get(node, i);
        if (!wanted->used || !fb_id_equal(wanted->node, c->peer) ||
            fb_area_get(node, wanted->area)->space != c->space) {
            continue;
        }
        uint32_t entry = fb_vector_find(node, wanted->area, c->peer, wanted->incarnation);
        uint64_t have = entry == FB_NONE ? 0 : fb_vector_get(node, entry)->batch;
        if (wanted->batch > have) text.lacking += wanted->batch - have;
    }
    c->used = false;
    c->done(node, c->user, status, &text);
}

static void write_digits(fb_writer *w, const uint8_t *bytes, size_t len)
{
    uint8_t *room = fb_write_room(w, 2 * len);
    if (room != NULL) fb_hex_format(bytes, len, (char *)room);
}

static void name_life(fb_cutting *c, const fb_area *area, uint64_t incarnation, uint64_t number,
                      const uint8_t hash[32])
{
    if (c->count_at == 0) {
        write_digits(&c->text, area->id.b, 16);
        c->count_at = c->text.at;
        c->in_area = 0;
        write_digits(&c->text, (const uint8_t[2]){0}, 2);
        c->areas++;
    }
    uint8_t life[FB_CUT_LIFE_BYTES];
    fb_writer w = fb_writer_of(life, sizeof life);
    fb_write_u64(&w, incarnation);
    fb_write_u64(&w, number);
    fb_write_bytes(&w, hash, FB_CUT_HASH_BYTES);
    write_digits(&c->text, life, sizeof life);
    c->in_area++;
    c->lives++;
    uint8_t count[2];
    fb_store_be(count, c->in_area, 2);
    if (!c->text.failed) fb_hex_format(count, 2, (char *)c->text.p + c->count_at);
}

/* Heads from memory that come before an incarnation, and after the last one named. */
static void name_heads(const fb_node *node, fb_cutting *c, const fb_area *area, uint64_t from,
                       uint64_t upto)
{
    for (uint32_t at = area->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->closed || v->batch == 0 || !fb_id_equal(v->node, c->peer)) continue;
        if (v->incarnation < from || v->incarnation > upto) continue;
        name_life(c, area, v->incarnation, v->batch, v->hash);
    }
}

static void run(fb_node *node, fb_op *op)
{
    const cut_context *context = fb_op_context(op);
    fb_cutting *c = node->database->cutting;
    if (!c->used || c->serial != context->serial) return;
    fb_status status = fb_op_status(op);
    const fb_area *area = fb_area_get(node, context->area);
    uint32_t count = status == FB_OK ? fb_op_range_count(node, op, 0) : 0;
    for (uint32_t i = 0; i < count && status == FB_OK; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        fb_reader r = fb_reader_of(entry.key);
        fb_read_bytes(&r, FB_VECTOR_KEY_BYTES - 8);
        uint64_t incarnation = fb_read_u64(&r);
        fb_life life;
        status = fb_life_decode(entry.value, &life);
        if (status != FB_OK || incarnation < c->from) continue;
        if (incarnation > c->from) name_heads(node, c, area, c->from, incarnation - 1);
        /* A life that is a head again, and closed in the store still, is named as what it is. */
        if (fb_vector_find(node, context->area, c->peer, incarnation) == FB_NONE) {
            name_life(c, area, incarnation, life.batch, life.hash);
        } else {
            name_heads(node, c, area, incarnation, incarnation);
        }
        c->from = incarnation + 1;
    }
    bool whole = status != FB_OK || fb_op_range_whole(node, op, 0);
    if (whole && status == FB_OK) {
        name_heads(node, c, area, c->from, UINT64_MAX);
        c->after = area->id;
        c->from = 0;
        c->count_at = 0;
    }
    if (status == FB_OK && c->text.failed) status = FB_ERR_LIMIT;
    if (status != FB_OK) {
        end(node, status);
        return;
    }
    next(node);
}

static void next(fb_node *node)
{
    fb_cutting *c = node->database->cutting;
    uint32_t index = FB_NONE;
    for (uint32_t at = node->database->spaces[c->space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        uint32_t here = at - 1;
        at = area->next;
        if (c->own_alone && area->kind != FB_AREA_SPACE) continue;
        /* Nothing came of it, and its place may be another one's before it is read. */
        if (!area->stored) continue;
        if (area->kind == FB_AREA_REPORTS) continue; /* those take nothing from anybody */
        if (fb_id_compare(area->id, c->after) <= 0) continue;
        index = here;
        break;
    }
    if (index == FB_NONE) {
        end(node, FB_OK);
        return;
    }
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, run, 0, 0);
    if (op == NULL) {
        end(node, FB_ERR_BUSY);
        return;
    }
    *(cut_context *)fb_op_context(op) = (cut_context){index, c->serial};
    uint8_t low[FB_VECTOR_KEY_BYTES], high[FB_VECTOR_KEY_BYTES];
    uint32_t local = fb_area_get(node, index)->local;
    fb_op_read_range(op, fb_key_vector(low, true, local, c->peer, c->from),
                     fb_key_vector(high, true, local, c->peer, UINT64_MAX), FB_VECTOR_VALUE_BYTES,
                     LIVES_AT_ONCE, LIVES_AT_ONCE * 160u, false);
    fb_op_issue(node, op);
}

fb_status fb_database_cut(fb_node *node, uint32_t space, fb_id peer, bool own_alone,
                          fb_cut_done done, uint64_t user)
{
    fb_cutting *c = node->database->cutting;
    if (c->used) return FB_ERR_BUSY;
    uint8_t *bytes = c->bytes;
    size_t cap = c->cap;
    *c = (fb_cutting){.used = true,
                      .own_alone = own_alone,
                      .space = space,
                      .peer = peer,
                      .done = done,
                      .user = user,
                      .serial = ++node->database->serial,
                      .bytes = bytes,
                      .cap = cap,
                      .text = fb_writer_of(bytes, cap)};
    fb_write_u8(&c->text, '"');
    fb_report_promise(node, space);
    return FB_OK;
}

void fb_cut_promised(fb_node *node, uint32_t space, fb_status status)
{
    fb_cutting *c = node->database->cutting;
    if (!c->used || c->space != space) return;
    if (status == FB_OK) {
        next(node);
    } else {
        end(node, status);
    }
}
