/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/record/record.h"

#include "protocol/base/mutant.h"

static const char fingerprint_label[] = "faberio-record-v1"; /* hashed with its zero byte */

void fb_record_fingerprint(fb_id record, fb_span state, uint8_t out[16])
{
    const fb_span parts[] = {fb_span_of(fingerprint_label, sizeof fingerprint_label),
                             fb_span_of(record.b, sizeof record.b), state};
    fb_blake3(parts, MUTANT(FINGERPRINT_OF_KEYS, 3u, 2u), out, 16);
}

static fb_status check_fields(const fb_record *record)
{
    fb_reader r = fb_reader_of(record->fields);
    fb_reader values = fb_reader_of(record->values);
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (!fb_column_is(fb_read_span16(&r))) return FB_ERR_STORE_DAMAGED;
        uint16_t siblings = fb_read_u16(&r);
        fb_read_bytes(&r, (size_t)siblings * FB_SIBLING_BYTES);
        fb_read_dots(&r);
        for (uint32_t k = 0; k < siblings; k++) {
            uint8_t form = fb_read_u8(&values);
            if (form == 1) {
                fb_read_span16(&values);
            } else if (form == 2) {
                fb_read_u32(&values);
            } else {
                return FB_ERR_STORE_DAMAGED;
            }
        }
        if (r.failed || values.failed) return FB_ERR_STORE_DAMAGED;
    }
    return fb_reader_done(&r) && fb_reader_done(&values) ? FB_OK : FB_ERR_STORE_DAMAGED;
}

fb_status fb_record_decode(fb_span stored, fb_record *out)
{
    *out = (fb_record){.apart = 0};
    if (stored.len == 0) return FB_OK;
    fb_record record = {.apart = 0};
    fb_reader r = fb_reader_of(stored);
    uint8_t version = fb_read_u8(&r);
    fb_read_into(&r, record.fingerprint, 16);
    record.apart = fb_read_u16(&r);
    record.state = fb_read_span32(&r);
    if (r.failed) return FB_ERR_STORE_DAMAGED;
    if (version != FB_RECORD_VERSION) return FB_ERR_VERSION_NEWER;
    record.values = fb_span_of(stored.p + r.at, stored.len - r.at);
    fb_reader s = fb_reader_of(record.state);
    record.existence_count = fb_read_u16(&s);
    record.existence = fb_read_bytes(&s, (size_t)record.existence_count * FB_EXISTENCE_BYTES).p;
    record.existence_pending = fb_read_dots(&s);
    record.whole_pending = fb_read_dots(&s);
    record.field_count = fb_read_u16(&s);
    if (s.failed) return FB_ERR_STORE_DAMAGED;
    record.fields = fb_span_of(record.state.p + s.at, record.state.len - s.at);
    FB_TRY(check_fields(&record));
    *out = record;
    return FB_OK;
}

fb_status fb_record_finish(fb_id id, uint8_t *stored, size_t len)
{
    fb_record record;
    FB_TRY(fb_record_decode(fb_span_of(stored, len), &record));
    if (len != 0) fb_record_fingerprint(id, record.state, stored + 1);
    return FB_OK;
}

fb_record_walk fb_record_walk_of(const fb_record *record)
{
    return (fb_record_walk){fb_reader_of(record->fields), fb_reader_of(record->values),
                            record->field_count};
}

static void skip_value(fb_reader *values)
{
    if (fb_read_u8(values) == 1) {
        fb_read_span16(values);
    } else {
        fb_read_u32(values);
    }
}

bool fb_record_next(fb_record_walk *walk, fb_record_field *out)
{
    if (walk->left == 0) return false;
    walk->left--;
    out->name = fb_read_span16(&walk->fields);
    out->count = fb_read_u16(&walk->fields);
    out->siblings = fb_read_bytes(&walk->fields, (size_t)out->count * FB_SIBLING_BYTES).p;
    uint32_t pending = fb_read_u16(&walk->fields);
    out->pending =
        (fb_dots){fb_read_bytes(&walk->fields, (size_t)pending * FB_DOT_BYTES).p, pending};
    out->values = walk->values;
    for (uint32_t i = 0; i < out->count; i++) skip_value(&walk->values);
    return true;
}

static int64_t stamp_at(const uint8_t *entry)
{
    fb_reader r = fb_reader_of(fb_span_of(entry + FB_DOT_BYTES, 8));
    return (int64_t)fb_read_u64(&r);
}

fb_sibling fb_record_sibling(fb_record_field *field, uint32_t at)
{
    const uint8_t *entry = field->siblings + (size_t)at * FB_SIBLING_BYTES;
    fb_sibling sibling = {.dot = fb_dots_at((fb_dots){entry, 1}, 0), .stamp = stamp_at(entry)};
    sibling.apart = fb_read_u8(&field->values) == 2;
    if (sibling.apart) {
        sibling.len = fb_read_u32(&field->values);
    } else {
        sibling.value = fb_read_span16(&field->values);
        sibling.len = (uint32_t)sibling.value.len;
    }
    return sibling;
}

int fb_stamp_compare(int64_t a_stamp, const uint8_t *a_dot, int64_t b_stamp, const uint8_t *b_dot)
{
    if (a_stamp != b_stamp) return a_stamp < b_stamp ? -1 : 1;
    return memcmp(a_dot, b_dot, FB_DOT_BYTES);
}

uint32_t fb_record_displayed(const fb_record_field *field, int64_t horizon)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < field->count; i++) {
        const uint8_t *entry = field->siblings + (size_t)i * FB_SIBLING_BYTES;
        if (stamp_at(entry) > horizon) continue;
        if (best != UINT32_MAX) {
            const uint8_t *other = field->siblings + (size_t)best * FB_SIBLING_BYTES;
            if (fb_stamp_compare(stamp_at(entry), entry, stamp_at(other), other) < 0) continue;
        }
        best = i;
    }
    return best;
}

bool fb_record_is_integer(const fb_record_field *field, uint32_t at)
{
    fb_record_field walk = *field;
    fb_sibling sibling;
    int64_t number;
    for (uint32_t i = 0; i <= at; i++) sibling = fb_record_sibling(&walk, i);
    return !sibling.apart && fb_integer_parse(sibling.value, &number);
}

bool fb_record_visible(const fb_record *record, int64_t horizon, int64_t *stamp)
{
    bool visible = false;
    int64_t greatest = INT64_MIN;
    for (uint32_t i = 0; i < record->existence_count; i++) {
        int64_t s = stamp_at(record->existence + (size_t)i * FB_EXISTENCE_BYTES);
        if (s > horizon) continue;
        visible = true;
        if (s > greatest) greatest = s;
    }
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        for (uint32_t i = 0; i < field.count; i++) {
            int64_t s = stamp_at(field.siblings + (size_t)i * FB_SIBLING_BYTES);
            if (s > horizon) continue;
            visible = true;
            if (s > greatest) greatest = s;
        }
    }
    *stamp = greatest;
    return visible;
}

bool fb_record_is_empty(const fb_record *record)
{
    return record->state.len <= FB_RECORD_EMPTY_STATE;
}

fb_span fb_record_empty(fb_id record, uint8_t out[FB_RECORD_EMPTY_BYTES])
{
    static const uint8_t state[FB_RECORD_EMPTY_STATE];
    fb_writer w = fb_writer_of(out, FB_RECORD_EMPTY_BYTES);
    uint8_t fingerprint[16];
    fb_record_fingerprint(record, fb_span_of(state, sizeof state), fingerprint);
    fb_write_u8(&w, FB_RECORD_VERSION);
    fb_write_bytes(&w, fingerprint, sizeof fingerprint);
    fb_write_u16(&w, 0);
    fb_write_span32(&w, fb_span_of(state, sizeof state));
    return fb_writer_span(&w);
}

/* In place, by the bytes. */
static void sort_dots(uint8_t *dots, size_t count)
{
    for (size_t gap = count / 2; gap > 0; gap /= 2) {
        for (size_t i = gap; i < count; i++) {
            uint8_t dot[FB_DOT_BYTES];
            memcpy(dot, dots + i * FB_DOT_BYTES, FB_DOT_BYTES);
            size_t at = i;
            while (at >= gap && memcmp(dots + (at - gap) * FB_DOT_BYTES, dot, FB_DOT_BYTES) > 0) {
                memcpy(dots + at * FB_DOT_BYTES, dots + (at - gap) * FB_DOT_BYTES, FB_DOT_BYTES);
                at -= gap;
            }
            memcpy(dots + at * FB_DOT_BYTES, dot, FB_DOT_BYTES);
        }
    }
}

void fb_record_all_dots(const fb_record *record, fb_writer *w)
{
    size_t count_at = w->at;
    fb_write_u16(w, 0);
    size_t first = w->at;
    for (uint32_t i = 0; i < record->existence_count; i++) {
        fb_write_bytes(w, record->existence + (size_t)i * FB_EXISTENCE_BYTES, FB_DOT_BYTES);
    }
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        for (uint32_t i = 0; i < field.count; i++) {
            fb_write_bytes(w, field.siblings + (size_t)i * FB_SIBLING_BYTES, FB_DOT_BYTES);
        }
    }
    if (w->failed) return;
    uint8_t *dots = w->p + first;
    size_t count = (w->at - first) / FB_DOT_BYTES, kept = 0;
    sort_dots(dots, count);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *dot = dots + i * FB_DOT_BYTES;
        /* The last of a life stands for those before it. */
        if (kept > 0 && memcmp(dots + (kept - 1) * FB_DOT_BYTES, dot, 24) == 0) kept--;
        memmove(dots + kept * FB_DOT_BYTES, dot, FB_DOT_BYTES);
        kept++;
    }
    if (kept > UINT16_MAX) {
        w->failed = true;
        return;
    }
    w->at = first + kept * FB_DOT_BYTES;
    fb_store_be(w->p + count_at, kept, 2);
}
