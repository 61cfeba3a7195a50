/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/write/write.h"

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
        FB_TRY(fb_field_name_check(field.name));
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

/* The dots of a column's siblings, hidden ones too: that is what a write removes. */
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

/* Goes through the columns of a record. */
typedef struct columns {
    fb_record_walk rest;
    fb_record_field column;
    fb_column name;
    bool has;
} columns;

static void column_next(columns *c)
{
    c->has = fb_record_next(&c->rest, &c->column);
    if (c->has) c->name = fb_column_of(c->column.name);
}

static bool is_of(const columns *c, const fb_field_write *field)
{
    return c->has && fb_span_equal(c->name.field, field->name);
}

typedef struct building {
    fb_writer *w;
    const fb_record_write *write;
    uint32_t count; /* columns written */
    int64_t *total; /* by field, of those that are added to: this life's share */
} building;

static void set_column(building *b, fb_span name, const fb_record_field *old)
{
    fb_change_write_field(b->w, name, FB_FIELD_SET);
    write_replaced(b->w, old);
    b->count++;
}

static void unset_column(building *b, const fb_record_field *old)
{
    if (old->count == 0) return;
    fb_change_write_field(b->w, old->name, FB_FIELD_UNSET);
    write_replaced(b->w, old);
    b->count++;
}

/* The field may be used so: what it shows now is nothing or of that kind. An integer is what a
 * counter counts on from. */
static bool kind_fits(const building *b, columns c, const fb_field_write *field)
{
    bool adds = field->act == FB_ACT_ADD;
    for (; is_of(&c, field); column_next(&c)) {
        uint32_t at = fb_record_displayed(&c.column, b->write->horizon);
        if (at == FB_NONE) continue;
        switch (c.name.kind) {
        case FB_FIELD_REGISTER:
            if (!adds || !fb_record_is_integer(&c.column, at)) return false;
            break;
        case FB_FIELD_COUNTER:
            if (!adds) return false;
            break;
        case FB_FIELD_ELEMENT:
            if (adds) return false;
            break;
        }
    }
    return true;
}

/* What this life has added to the counter so far; a later share replaces it (DESIGN 3.1). */
static int64_t own_share(const building *b, const fb_record_field *counter)
{
    fb_record_field walk = *counter;
    for (uint32_t i = 0; i < counter->count; i++) {
        fb_sibling sibling = fb_record_sibling(&walk, i);
        int64_t share;
        if (!fb_dot_same_life(sibling.dot, b->write->dot)) continue;
        return !sibling.apart && fb_integer_parse(sibling.value, &share) ? share : 0;
    }
    return 0;
}

static fb_status add(building *b, columns c, const fb_field_write *field, int64_t *total)
{
    int64_t share = 0, more;
    if (!fb_integer_parse(field->value, &more)) return FB_ERR_VALUE_MALFORMED;
    for (; is_of(&c, field); column_next(&c)) {
        if (c.name.kind == FB_FIELD_COUNTER) share = own_share(b, &c.column);
    }
    if (more > 0 ? share > INT64_MAX - more : share < INT64_MIN - more) return FB_ERR_LIMIT;
    *total = MUTANT(SHARE_BEGINS_ANEW, share + more, more);
    uint8_t name[FB_COLUMN_NAME_BYTES_MAX];
    set_column(b, fb_column_counter(name, field->name), NULL);
    return FB_OK;
}

static void element(building *b, columns c, const fb_field_write *field)
{
    uint8_t room[FB_COLUMN_NAME_BYTES_MAX];
    fb_span name = fb_column_element(room, field->name, field->value);
    while (is_of(&c, field) && !fb_span_equal(c.column.name, name)) column_next(&c);
    const fb_record_field *old = is_of(&c, field) ? &c.column : NULL;
    if (field->act == FB_ACT_INSERT) {
        set_column(b, name, old);
    } else if (old != NULL && MUTANT(REMOVAL_SAYS_NOTHING, true, false)) {
        unset_column(b, old);
    }
}

/* `c` is at the first column of the field, if there is one. */
static fb_status write_field(building *b, columns c, const fb_field_write *field, int64_t *total)
{
    switch (field->act) {
    case FB_ACT_ADD:
        if (!kind_fits(b, c, field)) return FB_ERR_FIELD_KIND;
        return add(b, c, field, total);
    case FB_ACT_INSERT:
    case FB_ACT_REMOVE:
        if (!kind_fits(b, c, field)) return FB_ERR_FIELD_KIND;
        element(b, c, field);
        return FB_OK;
    case FB_ACT_SET: {
        bool plain = is_of(&c, field) && c.name.kind == FB_FIELD_REGISTER;
        set_column(b, field->name, plain ? &c.column : NULL);
        if (plain) column_next(&c);
        break;
    }
    case FB_ACT_UNSET:
    case FB_ACTS:
        break;
    }
    for (; is_of(&c, field); column_next(&c)) {
        unset_column(b, &c.column);
    }
    return FB_OK;
}

static fb_status write_fields(building *b, const fb_record *record)
{
    const fb_record_write *write = b->write;
    columns c = {.rest = fb_record_walk_of(record)};
    column_next(&c);
    for (uint32_t next = 0; c.has || next < write->count;) {
        const fb_field_write *field = next < write->count ? &write->fields[next] : NULL;
        if (c.has && (field == NULL || fb_span_compare(c.name.field, field->name) < 0)) {
            bool stays = MUTANT(REPLACE_LEAVES_COUNTER, false, c.name.kind == FB_FIELD_COUNTER);
            if (write->replace && !stays) unset_column(b, &c.column);
            column_next(&c);
            continue;
        }
        FB_TRY(write_field(b, c, field, &b->total[next]));
        while (is_of(&c, field)) column_next(&c);
        next++;
    }
    return FB_OK;
}

/* Salts come from a secret of this life and the place of the value, so nothing of one tells about
 * another; four are made at a time. */
static void write_values(const building *b)
{
    const fb_record_write *write = b->write;
    uint8_t salts[4 * FB_SALT_BYTES];
    uint32_t made = 0;
    for (uint32_t i = 0; i < write->count; i++) {
        const fb_field_write *field = &write->fields[i];
        if (field->act == FB_ACT_UNSET || field->act == FB_ACT_REMOVE) continue;
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
        uint8_t text[FB_INTEGER_TEXT_MAX];
        fb_span value = field->value;
        if (field->act == FB_ACT_ADD) {
            value = fb_span_of(text, fb_integer_format(b->total[i], text));
        }
        fb_change_write_value(b->w, salts + (size_t)(made % 4) * FB_SALT_BYTES, value);
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
    int64_t total[FB_RECORD_FIELDS_MAX];
    building b = {.w = w, .write = write, .total = total};
    FB_TRY(write_fields(&b, record));
    if (w->failed || b.count > FB_RECORD_FIELDS_MAX) return FB_ERR_LIMIT;
    fb_store_be(w->p + count_at, b.count, 2);
    write_values(&b);
    return w->failed ? FB_ERR_LIMIT : FB_OK;
}
