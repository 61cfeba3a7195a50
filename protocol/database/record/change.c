/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/record/change.h"

#include "protocol/base/assert.h"
#include "protocol/base/uuid.h"

static const char leaf_label[] = "faberio-change-v1"; /* hashed with its zero byte */

fb_dots fb_read_dots(fb_reader *r)
{
    uint32_t count = fb_read_u16(r);
    fb_span bytes = fb_read_bytes(r, (size_t)count * FB_DOT_BYTES);
    for (uint32_t i = 0; i < count && !r->failed; i++) {
        static const uint8_t zero[8] = {0};
        const uint8_t *dot = bytes.p + (size_t)i * FB_DOT_BYTES;
        bool rising = i == 0 || memcmp(dot - FB_DOT_BYTES, dot, FB_DOT_BYTES) < 0;
        if (!rising || memcmp(dot + 16, zero, 8) == 0 || memcmp(dot + 24, zero, 8) == 0) {
            r->failed = true;
        }
    }
    if (r->failed) return (fb_dots){NULL, 0};
    return (fb_dots){bytes.p, count};
}

static bool all_zero(fb_span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.p[i] != 0) return false;
    }
    return true;
}

static fb_status decode_fields(fb_reader *r, uint32_t count, uint32_t *set)
{
    fb_span before = {NULL, 0};
    bool unsupported = false;
    *set = 0;
    for (uint32_t i = 0; i < count; i++) {
        fb_span name = fb_read_span16(r);
        uint8_t kind = fb_read_u8(r);
        uint8_t op = fb_read_u8(r);
        fb_read_dots(r);
        if (r->failed || name.len == 0) return FB_ERR_BATCH_MALFORMED;
        if (i > 0 && fb_span_compare(before, name) >= 0) return FB_ERR_BATCH_MALFORMED;
        if (name.len > FB_COLUMN_NAME_BYTES_MAX) return FB_ERR_LIMIT;
        if (op != FB_FIELD_SET && op != FB_FIELD_UNSET) return FB_ERR_BATCH_MALFORMED;
        if (kind < FB_FIELD_REGISTER || kind > FB_FIELD_ELEMENT) {
            unsupported = true;
        } else if (!fb_column_valid(name, kind)) {
            return FB_ERR_BATCH_MALFORMED;
        } else if (fb_column_of(name).field.len > FB_FIELD_NAME_BYTES_MAX) {
            return FB_ERR_LIMIT;
        }
        if (op == FB_FIELD_SET) (*set)++;
        before = name;
    }
    return unsupported ? FB_ERR_UNSUPPORTED : FB_OK;
}

static fb_status decode_values(fb_reader *r, uint32_t count, bool *holes)
{
    *holes = false;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t form = fb_read_u8(r);
        if (form == 1) {
            fb_read_bytes(r, FB_SALT_BYTES);
            if (fb_read_span32(r).len > FB_FIELD_VALUE_BYTES_MAX) return FB_ERR_LIMIT;
        } else if (form == 2) {
            fb_read_bytes(r, 32);
            *holes = true;
        } else {
            return FB_ERR_BATCH_MALFORMED;
        }
        if (r->failed) return FB_ERR_BATCH_MALFORMED;
    }
    return FB_OK;
}

fb_status fb_change_decode(fb_span bytes, fb_change *out)
{
    fb_reader r = fb_reader_of(bytes);
    fb_change c = {.form = (fb_change_form)fb_read_u8(&r)};
    if (c.form == FB_CHANGE_LEAF) {
        c.leaf = fb_read_b32(&r);
        if (!fb_reader_done(&r)) return FB_ERR_BATCH_MALFORMED;
        *out = c;
        return FB_OK;
    }
    if (r.failed || c.form != FB_CHANGE_WHOLE) return FB_ERR_BATCH_MALFORMED;
    size_t head_at = r.at;
    c.record = fb_read_id(&r);
    c.op = (fb_change_op)fb_read_u8(&r);
    c.stamp = (int64_t)fb_read_u64(&r);
    uint8_t author_kind = fb_read_u8(&r);
    c.author_kind = (fb_author_kind)author_kind;
    fb_read_into(&r, c.author, sizeof c.author);
    uint16_t flags = fb_read_u16(&r);
    uint64_t expiry = fb_read_u64(&r);
    fb_span key_id = fb_read_bytes(&r, 16);
    c.replaced = fb_read_dots(&r);
    c.field_count = fb_read_u16(&r);
    if (r.failed || (c.op != FB_CHANGE_WRITE && c.op != FB_CHANGE_DELETE)) {
        return FB_ERR_BATCH_MALFORMED;
    }
    /* FI-2-1 */
    if (!fb_uuid_is_v7(c.record)) return FB_ERR_BATCH_MALFORMED;
    if (c.op == FB_CHANGE_DELETE && c.field_count != 0) return FB_ERR_BATCH_MALFORMED;
    if (c.field_count > FB_RECORD_FIELDS_MAX) return FB_ERR_LIMIT;
    size_t fields_at = r.at;
    uint32_t set;
    fb_status status = decode_fields(&r, c.field_count, &set);
    if (status != FB_OK && status != FB_ERR_UNSUPPORTED) return status;
    c.head = fb_span_of(bytes.p + head_at, r.at - head_at);
    c.fields = fb_span_of(bytes.p + fields_at, r.at - fields_at);
    size_t values_at = r.at;
    fb_status values = decode_values(&r, set, &c.holes);
    if (values != FB_OK) return values;
    if (!fb_reader_done(&r)) return FB_ERR_BATCH_MALFORMED;
    c.values = fb_span_of(bytes.p + values_at, r.at - values_at);
    c.value_count = set;
    if (status != FB_OK) return status;
    if (author_kind != FB_AUTHOR_OPERATOR && author_kind != FB_AUTHOR_APPLICATION) {
        return FB_ERR_UNSUPPORTED;
    }
    if (author_kind == FB_AUTHOR_OPERATOR && !all_zero(fb_span_of(c.author, 16))) {
        return FB_ERR_BATCH_MALFORMED;
    }
    /* DESIGN 3.1: carried from the first version; what is not built is refused, not guessed. */
    if (flags != 0 || expiry != 0 || !all_zero(key_id)) return FB_ERR_UNSUPPORTED;
    *out = c;
    return FB_OK;
}

fb_change_walk fb_change_walk_of(const fb_change *change)
{
    return (fb_change_walk){fb_reader_of(change->fields), fb_reader_of(change->values),
                            change->field_count, change->hashes};
}

bool fb_change_next(fb_change_walk *walk, fb_change_field *out)
{
    if (walk->left == 0) return false;
    walk->left--;
    *out = (fb_change_field){.name = fb_read_span16(&walk->fields)};
    fb_read_u8(&walk->fields);
    out->op = (fb_field_op)fb_read_u8(&walk->fields);
    /* Checked when it was decoded: only the bounds are walked again. */
    uint32_t count = fb_read_u16(&walk->fields);
    fb_span dots = fb_read_bytes(&walk->fields, (size_t)count * FB_DOT_BYTES);
    out->replaced = (fb_dots){dots.p, count};
    if (out->op != FB_FIELD_SET) return true;
    if (fb_read_u8(&walk->values) == 1) {
        out->salt = fb_read_bytes(&walk->values, FB_SALT_BYTES);
        out->value = fb_read_span32(&walk->values);
    } else {
        out->gone = true;
        out->hash = fb_read_bytes(&walk->values, 32).p;
    }
    if (walk->hashes != NULL) {
        out->hash = walk->hashes;
        walk->hashes += 32;
    }
    return true;
}

uint32_t fb_change_lives(const fb_change *change, uint32_t most)
{
    FB_ASSERT(most <= FB_BATCH_LIVES_MAX);
    const uint8_t *lives[FB_BATCH_LIVES_MAX + 1];
    uint32_t count = 0;
    fb_dots dots = change->replaced;
    fb_change_walk walk = fb_change_walk_of(change);
    fb_change_field field;
    for (;;) {
        for (uint32_t i = 0; i < dots.count && count <= most; i++) {
            const uint8_t *dot = dots.p + (size_t)i * FB_DOT_BYTES;
            uint32_t at = count;
            while (at > 0 && memcmp(lives[at - 1], dot, 24) != 0) at--;
            if (at == 0) lives[count++] = dot;
        }
        if (count > most || !fb_change_next(&walk, &field)) return count;
        dots = field.replaced;
    }
}

void fb_value_hash(fb_span salt, fb_span value, uint8_t out[32])
{
    const fb_span parts[] = {salt, value};
    fb_blake3(parts, 2, out, 32);
}

void fb_change_field_hash(const fb_change_field *field, uint8_t out[32])
{
    if (field->hash != NULL) {
        memcpy(out, field->hash, 32);
    } else {
        fb_value_hash(field->salt, field->value, out);
    }
}

void fb_change_value_hashes(const fb_change *change, uint8_t *out)
{
    fb_change_walk walk = fb_change_walk_of(change);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        if (field.op != FB_FIELD_SET) continue;
        fb_change_field_hash(&field, out);
        out += 32;
    }
}

void fb_change_leaf_parts(const fb_change *change, fb_dot dot, uint8_t dot_bytes[FB_DOT_BYTES],
                          fb_span parts[FB_LEAF_PARTS])
{
    FB_ASSERT(change->form == FB_CHANGE_WHOLE);
    fb_writer w = fb_writer_of(dot_bytes, FB_DOT_BYTES);
    fb_write_dot(&w, dot);
    parts[0] = fb_span_of(leaf_label, sizeof leaf_label);
    parts[1] = fb_span_of(dot_bytes, FB_DOT_BYTES);
    parts[2] = change->head;
    parts[3] = fb_span_of(change->hashes, (size_t)change->value_count * 32);
}

void fb_change_leaf(const fb_change *change, fb_dot dot, uint8_t out[32])
{
    if (change->form == FB_CHANGE_LEAF) {
        memcpy(out, change->leaf.b, 32);
        return;
    }
    if (change->worked_out != NULL) {
        memcpy(out, change->worked_out, 32);
        return;
    }
    uint8_t hashes[FB_RECORD_FIELDS_MAX * 32];
    fb_change with = *change;
    if (with.hashes == NULL) {
        fb_change_value_hashes(change, hashes);
        with.hashes = hashes;
    }
    uint8_t dot_bytes[FB_DOT_BYTES];
    fb_span parts[FB_LEAF_PARTS];
    fb_change_leaf_parts(&with, dot, dot_bytes, parts);
    fb_blake3(parts, FB_LEAF_PARTS, out, 32);
}

void fb_change_write_head(fb_writer *w, fb_id record, fb_change_op op, int64_t stamp,
                          fb_author_kind author_kind, const uint8_t author[16])
{
    static const uint8_t none[26] = {0}; /* flags, expiry, key id */
    fb_write_u8(w, FB_CHANGE_WHOLE);
    fb_write_id(w, record);
    fb_write_u8(w, (uint8_t)op);
    fb_write_u64(w, (uint64_t)stamp);
    fb_write_u8(w, (uint8_t)author_kind);
    fb_write_bytes(w, author, 16);
    fb_write_bytes(w, none, sizeof none);
}

void fb_change_write_field(fb_writer *w, fb_span name, fb_field_op op)
{
    fb_write_span16(w, name);
    fb_write_u8(w, (uint8_t)fb_column_of(name).kind);
    fb_write_u8(w, (uint8_t)op);
}

void fb_change_write_value(fb_writer *w, const uint8_t salt[FB_SALT_BYTES], fb_span value)
{
    fb_write_u8(w, 1);
    fb_write_bytes(w, salt, FB_SALT_BYTES);
    fb_write_span32(w, value);
}
