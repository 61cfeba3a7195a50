/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a space's own area, for the plane that folds them. */
#include "protocol/core/node_id.h"
#include "protocol/database/state.h"

void fb_own_change_of(const fb_change *change, fb_b32 author, fb_dot dot, uint64_t number,
                      uint64_t claim, fb_span batch, fb_field_write *fields, fb_own_change *out)
{
    fb_change_walk walk = fb_change_walk_of(change);
    fb_change_field field;
    uint32_t count = 0;
    while (fb_change_next(&walk, &field)) {
        fields[count++] = (fb_field_write){
            field.name, field.op == FB_FIELD_UNSET ? FB_ACT_UNSET : FB_ACT_SET, field.value};
    }
    *out = (fb_own_change){.author = author,
                           .record = change->record,
                           .stamp = change->stamp,
                           .dot_node = dot.node,
                           .dot_incarnation = dot.incarnation,
                           .dot_seq = dot.seq,
                           .fields = fields,
                           .count = count,
                           .number = number,
                           .claim = claim,
                           .batch = batch};
}

bool fb_database_read_statement(fb_node *node, uint32_t space, fb_span bytes,
                                fb_own_change_each each, void *user)
{
    fb_batch batch;
    fb_id id = fb_space_id(node, space);
    fb_change *changes = node->database->changes;
    if (fb_batch_decode(bytes, &batch, changes) != FB_OK || batch.holes) return false;
    if (!fb_id_equal(batch.space, id) ||
        !fb_id_equal(batch.area, fb_area_id(id, FB_AREA_SPACE, (fb_span){NULL, 0}))) {
        return false;
    }
    fb_id signer = fb_node_id(node->options.provider, batch.author);
    if (fb_batch_verify(&batch, changes, signer, node->options.provider) != FB_OK) return false;
    for (uint32_t i = 0; i < batch.count; i++) {
        fb_field_write fields[FB_RECORD_FIELDS_MAX];
        fb_own_change own;
        fb_dot dot = {signer, batch.incarnation, batch.first_seq + i};
        fb_own_change_of(&changes[i], batch.author, dot, batch.number,
                         fb_batch_claim(&batch, signer), bytes, fields, &own);
        each(node, user, &own);
    }
    return true;
}

/* Reading them again: a page of batches at a time. */

#define PAGE_MAX 8u

struct fb_own_reading {
    bool used;
    uint32_t space;
    fb_id record;
    uint32_t put_bytes;
    fb_each_own each;
    fb_each_own_done done;
    void *user;
    uint64_t serial;
    uint8_t from[FB_BATCH_KEY_BYTES + 1];
    size_t from_len;
};

void fb_own_reading_layout(fb_node *node, fb_arena *arena)
{
    struct fb_own_reading *reading = fb_arena_take(arena, 1, sizeof *reading);
    if (node->database != NULL) node->database->own_reading = reading;
}

void fb_own_reading_reset(fb_node *node)
{
    node->database->own_reading->used = false;
}

static fb_status read_page(fb_node *node);

static void take_entry(fb_node *node, fb_read_entry entry)
{
    const struct fb_own_reading *r = node->database->own_reading;
    fb_batch batch;
    fb_change *changes = node->database->changes;
    fb_reader k = fb_reader_of(entry.key);
    fb_read_bytes(&k, 5);
    fb_id signer = fb_read_id(&k);
    if (entry.value.len != entry.value_len ||
        fb_batch_decode(entry.value, &batch, changes) != FB_OK) {
        return;
    }
    for (uint32_t i = 0; i < batch.count; i++) {
        if (!fb_id_equal(changes[i].record, r->record)) continue;
        fb_field_write fields[FB_RECORD_FIELDS_MAX];
        fb_own_change own;
        fb_dot dot = {signer, batch.incarnation, batch.first_seq + i};
        fb_own_change_of(&changes[i], batch.author, dot, batch.number,
                         fb_batch_claim(&batch, signer), (fb_span){NULL, 0}, fields, &own);
        r->each(node, r->user, &own);
    }
}

static void page_run(fb_node *node, fb_op *op)
{
    struct fb_own_reading *r = node->database->own_reading;
    if (!r->used || *(const uint64_t *)fb_op_context(op) != r->serial) return;
    fb_status status = fb_op_status(op);
    uint32_t count = status == FB_OK ? fb_op_range_count(node, op, 0) : 0;
    for (uint32_t i = 0; i < count; i++) take_entry(node, fb_op_range_entry(node, op, 0, i));
    if (status == FB_OK && !fb_op_range_whole(node, op, 0)) {
        fb_span after = count > 0 ? fb_op_range_entry(node, op, 0, count - 1).key
                                  : fb_op_range_next(node, op, 0);
        memcpy(r->from, after.p, after.len);
        r->from[after.len] = 0;
        r->from_len = after.len + 1;
        status = read_page(node);
        if (status == FB_OK) return;
    }
    r->used = false;
    r->done(node, r->user, status);
}

static fb_status read_page(fb_node *node)
{
    const struct fb_own_reading *r = node->database->own_reading;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, page_run, r->put_bytes, 1);
    if (op == NULL) return FB_ERR_BUSY;
    *(uint64_t *)fb_op_context(op) = r->serial;
    static const fb_id zero, last = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    uint8_t low[FB_BATCH_KEY_BYTES], high[FB_BATCH_KEY_BYTES];
    uint32_t local = fb_area_get(node, fb_area_own(node, r->space))->local;
    fb_span from =
        r->from_len != 0 ? fb_span_of(r->from, r->from_len) : fb_key_batch(low, local, zero, 0, 0);
    fb_op_read_range(op, from, fb_key_batch(high, local, last, UINT64_MAX, UINT64_MAX),
                     FB_BATCH_BYTES_MAX, PAGE_MAX, node->options.sizes.call_bytes, false);
    fb_op_issue(node, op);
    return FB_OK;
}

fb_status fb_database_each_own(fb_node *node, uint32_t space, fb_id record, uint32_t put_bytes,
                               fb_each_own each, fb_each_own_done done, void *user)
{
    struct fb_own_reading *r = node->database->own_reading;
    uint32_t own = fb_area_own(node, space);
    if (own == FB_NONE || r->used || fb_area_get(node, own)->builder != 0) return FB_ERR_BUSY;
    *r = (struct fb_own_reading){.used = true,
                                 .space = space,
                                 .record = record,
                                 .put_bytes = put_bytes,
                                 .each = each,
                                 .done = done,
                                 .user = user,
                                 .serial = ++node->database->serial};
    fb_status status = read_page(node);
    if (status != FB_OK) r->used = false;
    return status;
}
