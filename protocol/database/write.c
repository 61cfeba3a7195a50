/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/write.h"

#include "protocol/base/mutant.h"

int64_t fb_horizon(int64_t wall_us, int64_t future_us)
{
    return wall_us > INT64_MAX - future_us ? INT64_MAX : wall_us + future_us;
}

int64_t fb_write_stamp(const fb_record *record, int64_t wall_us, int64_t horizon)
{
    int64_t greatest;
    if (!fb_record_visible(record, horizon, &greatest)) return wall_us;
    int64_t after = greatest == INT64_MAX ? greatest : greatest + 1;
    return MUTANT(STAMP_BY_CLOCK_ALONE, wall_us > after, true) ? wall_us : after;
}

fb_status fb_fields_sort(fb_field_write *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        fb_field_write field = fields[i];
        if (field.name.len == 0) return FB_ERR_REQUEST_MALFORMED;
        if (field.name.len > FB_FIELD_NAME_BYTES_MAX) return FB_ERR_LIMIT;
        if (field.value.len > FB_FIELD_VALUE_BYTES_MAX) return FB_ERR_LIMIT;
        /* Mostly sorted already, and at most 256. */
        uint32_t at = i;
        while (at > 0 && fb_span_compare(fields[at - 1].name, field.name) > 0) {
            fields[at] = fields[at - 1];
            at--;
        }
        if (at > 0 && fb_span_equal(fields[at - 1].name, field.name)) {
            return FB_ERR_REQUEST_MALFORMED;
        }
        fields[at] = field;
    }
    return FB_OK;
}

/* The dots of a field's siblings, hidden ones too: that is what a write removes. */
static void write_replaced(fb_writer *w, const fb_record_field *old)
{
    uint32_t count = old == NULL ? 0 : old->count;
    fb_write_u16(w, (uint16_t)count);
    for (uint32_t i = 0; i < count; i++) {
        fb_write_bytes(w, old->siblings + (size_t)i * FB_SIBLING_BYTES, FB_DOT_BYTES);
    }
}

static void write_existence_replaced(fb_writer *w, const fb_record *record)
{
    fb_write_u16(w, (uint16_t)record->existence_count);
    for (uint32_t i = 0; i < record->existence_count; i++) {
        fb_write_bytes(w, record->existence + (size_t)i * FB_EXISTENCE_BYTES, FB_DOT_BYTES);
    }
}

static uint32_t write_fields(fb_writer *w, const fb_record *record, const fb_record_write *write)
{
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field old;
    bool has_old = fb_record_next(&walk, &old);
    uint32_t next = 0, count = 0;
    while (has_old || next < write->count) {
        const fb_field_write *field = next < write->count ? &write->fields[next] : NULL;
        int order = !has_old ? 1 : field == NULL ? -1 : fb_span_compare(old.name, field->name);
        bool has_siblings = order <= 0 && old.count > 0;
        if (order < 0) {
            if (write->replace && has_siblings) {
                fb_change_write_field(w, old.name, FB_FIELD_UNSET);
                write_replaced(w, &old);
                count++;
            }
        } else if (!field->unset || has_siblings) {
            fb_change_write_field(w, field->name, field->unset ? FB_FIELD_UNSET : FB_FIELD_SET);
            write_replaced(w, has_siblings ? &old : NULL);
            count++;
        }
        if (order <= 0) has_old = fb_record_next(&walk, &old);
        if (order >= 0) next++;
    }
    return count;
}

/* Salts come from a secret of this life and the place of the value, so nothing of one tells about
 * another; four are made at a time. */
static void write_values(fb_writer *w, const fb_record_write *write)
{
    uint8_t salts[4 * FB_SALT_BYTES];
    uint32_t made = 0;
    for (uint32_t i = 0; i < write->count; i++) {
        const fb_field_write *field = &write->fields[i];
        if (field->unset) continue;
        if (made % 4 == 0) {
            uint8_t place[FB_DOT_BYTES + 16 + 4];
            fb_writer p = fb_writer_of(place, sizeof place);
            fb_write_dot(&p, write->dot);
            fb_write_id(&p, write->record);
            fb_write_u32(&p, made / 4);
            const fb_span parts[] = {fb_span_of(write->secret, 32),
                                     fb_span_of(place, sizeof place)};
            fb_blake3(parts, 2, salts, sizeof salts);
        }
        fb_change_write_value(w, salts + (size_t)(made % 4) * FB_SALT_BYTES, field->value);
        made++;
    }
}

fb_status fb_change_build(fb_writer *w, const fb_record *record, const fb_record_write *write)
{
    int64_t stamp = fb_write_stamp(record, write->wall_us, write->horizon);
    fb_change_write_head(w, write->record, write->op, stamp, write->author_kind, write->author);
    if (write->op == FB_CHANGE_DELETE) {
        fb_record_all_dots(record, w);
        fb_write_u16(w, 0);
        return w->failed ? FB_ERR_LIMIT : FB_OK;
    }
    write_existence_replaced(w, record);
    size_t count_at = w->at;
    fb_write_u16(w, 0);
    uint32_t count = write_fields(w, record, write);
    if (w->failed || count > FB_RECORD_FIELDS_MAX) return FB_ERR_LIMIT;
    fb_store_be(w->p + count_at, count, 2);
    write_values(w, write);
    return w->failed ? FB_ERR_LIMIT : FB_OK;
}
