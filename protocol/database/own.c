/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a space's own area, for the plane that folds them. */
#include "protocol/core/node_id.h"
#include "protocol/database/state.h"

void fb_own_change_of(const fb_change *change, fb_b32 author, fb_dot dot, uint64_t claim,
                      fb_span batch, fb_field_write *fields, fb_own_change *out)
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
        fb_own_change_of(&changes[i], batch.author, dot, fb_batch_claim(&batch, signer), bytes,
                         fields, &own);
        each(node, user, &own);
    }
    return true;
}
