/* SPDX-License-Identifier: Apache-2.0 */
/* A record as it is answered: every field with its visible siblings, the displayed one first. */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"

static uint32_t visible_of(const fb_record_field *field, int64_t horizon, size_t *bytes,
                           uint32_t *apart)
{
    uint32_t count = 0;
    fb_record_field walk = *field;
    for (uint32_t i = 0; i < field->count; i++) {
        fb_sibling sibling = fb_record_sibling(&walk, i);
        if (sibling.stamp > horizon) continue;
        count++;
        *bytes += FB_DOT_BYTES + 8 + 4 + sibling.len;
        if (sibling.apart) *apart += 1;
    }
    return count;
}

size_t fb_show_size(const fb_record *record, int64_t horizon, uint32_t *apart)
{
    int64_t stamp;
    if (!fb_record_visible(record, horizon, &stamp)) return 0;
    size_t bytes = 16 + 16 + 2;
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        if (visible_of(&field, horizon, &bytes, apart) > 0) bytes += 2 + field.name.len + 2;
    }
    return bytes;
}

bool fb_show_read(fb_op *op, fb_show *show, fb_id id, const fb_record *record)
{
    uint8_t key[FB_FIELD_KEY_BYTES_MAX];
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        fb_record_field siblings = field;
        for (uint32_t i = 0; i < field.count; i++) {
            fb_sibling sibling = fb_record_sibling(&siblings, i);
            if (!sibling.apart || sibling.stamp > show->horizon) continue;
            const uint8_t *dot = field.siblings + (size_t)i * FB_SIBLING_BYTES;
            if (!fb_op_read_key(op, fb_key_field(key, show->local, id, field.name, dot),
                                sibling.len)) {
                return false;
            }
        }
    }
    return true;
}

/* The values of a field that are stored apart were asked for in the order of its siblings. */
static fb_status write_sibling(const fb_node *node, const fb_op *op, const fb_show *show,
                               fb_writer *w, fb_id id, const fb_record_field *field,
                               uint32_t wanted)
{
    uint32_t item = show->item;
    fb_record_field siblings = *field;
    for (uint32_t i = 0; i < field->count; i++) {
        fb_sibling sibling = fb_record_sibling(&siblings, i);
        bool asked = sibling.apart && sibling.stamp <= show->horizon;
        if (i == wanted) {
            fb_write_dot(w, sibling.dot);
            fb_write_u64(w, (uint64_t)sibling.stamp);
            if (!sibling.apart) {
                fb_write_span32(w, sibling.value);
                return FB_OK;
            }
            uint8_t key[FB_FIELD_KEY_BYTES_MAX];
            const uint8_t *dot = field->siblings + (size_t)i * FB_SIBLING_BYTES;
            fb_read_entry entry;
            /* A record that has changed since its values were asked for may have more of them. */
            if (item >= fb_op_items(node, op) || !fb_op_value(node, op, item, &entry) ||
                !fb_span_equal(entry.key, fb_key_field(key, show->local, id, field->name, dot)) ||
                entry.value.len != sibling.len) {
                return FB_ERR_AGAIN;
            }
            fb_write_span32(w, entry.value);
            return FB_OK;
        }
        if (asked) item++;
    }
    return FB_ERR_AGAIN;
}

fb_status fb_show_write(const fb_node *node, const fb_op *op, fb_show *show, fb_writer *w, fb_id id,
                        const fb_record *record)
{
    fb_write_id(w, id);
    fb_write_bytes(w, record->fingerprint, 16);
    size_t count_at = w->at;
    uint32_t fields = 0;
    fb_write_u16(w, 0);
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        size_t bytes = 0;
        uint32_t apart = 0;
        uint32_t count = visible_of(&field, show->horizon, &bytes, &apart);
        bool alone = MUTANT(SIBLINGS_LEFT_OUT, false, true) && count > 1;
        if (count == 0) continue;
        fields++;
        fb_write_span16(w, field.name);
        fb_write_u16(w, (uint16_t)(alone ? 1 : count));
        uint32_t displayed = fb_record_displayed(&field, show->horizon);
        FB_TRY(write_sibling(node, op, show, w, id, &field, displayed));
        for (uint32_t i = 0; i < field.count; i++) {
            const uint8_t *entry = field.siblings + (size_t)i * FB_SIBLING_BYTES;
            fb_reader stamp = fb_reader_of(fb_span_of(entry + FB_DOT_BYTES, 8));
            if (alone || i == displayed || (int64_t)fb_read_u64(&stamp) > show->horizon) continue;
            FB_TRY(write_sibling(node, op, show, w, id, &field, i));
        }
        show->item += apart;
    }
    if (w->failed) return FB_ERR_LIMIT;
    fb_store_be(w->p + count_at, fields, 2);
    return FB_OK;
}
