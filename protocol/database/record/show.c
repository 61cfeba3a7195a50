/* SPDX-License-Identifier: Apache-2.0 */
/* A record as it is answered: every field with its visible siblings, the displayed one first; a
 * counter as its sum, a set as an array (column.h). */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"

size_t fb_show_max(const fb_node *node)
{
    size_t cap = node->database->stage.set.cap;
    return cap < FB_REPLY_BYTES_MAX ? cap : FB_REPLY_BYTES_MAX;
}

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
        /* A sum or an array is no longer than its parts and so much more. */
        if (visible_of(&field, horizon, &bytes, apart) > 0) {
            bytes += 2 + field.name.len + 2 + FB_DOT_BYTES + 8 + 4 + FB_INTEGER_TEXT_MAX;
        }
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

/* What is shown of one column. */
static uint32_t apart_of(const fb_record_field *column, int64_t horizon)
{
    size_t bytes = 0;
    uint32_t apart = 0;
    visible_of(column, horizon, &bytes, &apart);
    return apart;
}

typedef struct showing {
    const fb_show_source *source;
    fb_show *show;
    fb_writer *w;
    fb_id id;
} showing;

/* Of an operation that asked for them. */
typedef struct op_source {
    const fb_node *node;
    const fb_op *op;
} op_source;

static bool op_value(const void *user, uint32_t item, fb_span key, fb_span *value)
{
    const op_source *from = user;
    fb_read_entry entry;
    if (item >= fb_op_items(from->node, from->op) ||
        !fb_op_value(from->node, from->op, item, &entry) || !fb_span_equal(entry.key, key)) {
        return false;
    }
    *value = entry.value;
    return true;
}

/* The value of one sibling. Those that are stored apart were asked for in the order of the columns
 * and siblings; `item` is the first of this column. */
static fb_status value_of(const showing *s, const fb_record_field *column, uint32_t item,
                          uint32_t wanted, fb_span *out)
{
    fb_record_field siblings = *column;
    for (uint32_t i = 0; i < column->count; i++) {
        fb_sibling sibling = fb_record_sibling(&siblings, i);
        bool asked = sibling.apart && sibling.stamp <= s->show->horizon;
        if (i != wanted) {
            if (asked) item++;
            continue;
        }
        *out = sibling.value;
        if (!sibling.apart) return FB_OK;
        uint8_t key[FB_FIELD_KEY_BYTES_MAX];
        const uint8_t *dot = column->siblings + (size_t)i * FB_SIBLING_BYTES;
        fb_span wants = fb_key_field(key, s->show->local, s->id, column->name, dot);
        /* A record that has changed since its values were asked for may have more of them. */
        bool found = s->source->value(s->source->user, item, wants, out);
        return found && out->len == sibling.len ? FB_OK : FB_ERR_AGAIN;
    }
    return FB_ERR_AGAIN;
}

static int64_t stamp_of(const uint8_t *entry)
{
    fb_reader r = fb_reader_of(fb_span_of(entry + FB_DOT_BYTES, 8));
    return (int64_t)fb_read_u64(&r);
}

/* The columns of one field, what they show, and the newest part of each kind. */
typedef struct group {
    fb_record_walk walk; /* before the first of them */
    uint32_t columns;
    const uint8_t *newest[FB_FIELD_ELEMENT + 1]; /* by kind; NULL: nothing of it is shown */
    bool counts_on; /* the plain value is an integer, and the counter's first part */
} group;

static void newest_raise(const uint8_t **newest, const uint8_t *entry)
{
    if (*newest == NULL ||
        fb_stamp_compare(stamp_of(*newest), *newest, stamp_of(entry), entry) < 0) {
        *newest = entry;
    }
}

/* False at the end. `walk` is left behind the last column of the field. */
static bool group_next(fb_record_walk *walk, int64_t horizon, group *out, fb_span *field)
{
    fb_record_field column;
    fb_record_walk at = *walk;
    *out = (group){.walk = *walk};
    bool integer = false;
    while (fb_record_next(&at, &column)) {
        fb_column name = fb_column_of(column.name);
        if (out->columns != 0 && !fb_span_equal(name.field, *field)) break;
        *field = name.field;
        out->columns++;
        *walk = at;
        uint32_t shown = fb_record_displayed(&column, horizon);
        if (shown == FB_NONE) continue;
        newest_raise(&out->newest[name.kind], column.siblings + (size_t)shown * FB_SIBLING_BYTES);
        if (name.kind == FB_FIELD_REGISTER) integer = fb_record_is_integer(&column, shown);
    }
    out->counts_on = integer && out->newest[FB_FIELD_COUNTER] != NULL;
    if (out->counts_on) {
        newest_raise(&out->newest[FB_FIELD_COUNTER], out->newest[FB_FIELD_REGISTER]);
    }
    return out->columns != 0;
}

static void write_head(const showing *s, const uint8_t *entry)
{
    fb_write_bytes(s->w, entry, FB_DOT_BYTES + 8);
}

/* All siblings of the plain column but `left_out`. */
static fb_status write_siblings(const showing *s, const group *g, uint32_t left_out)
{
    fb_record_walk walk = g->walk;
    fb_record_field column;
    fb_record_next(&walk, &column);
    for (uint32_t i = 0; i < column.count; i++) {
        const uint8_t *entry = column.siblings + (size_t)i * FB_SIBLING_BYTES;
        if (i == left_out || stamp_of(entry) > s->show->horizon) continue;
        fb_span value;
        FB_TRY(value_of(s, &column, s->show->item, i, &value));
        write_head(s, entry);
        fb_write_span32(s->w, value);
    }
    return FB_OK;
}

static fb_status write_plain(const showing *s, const group *g, uint32_t at)
{
    fb_record_walk walk = g->walk;
    fb_record_field column;
    fb_record_next(&walk, &column);
    fb_span value;
    FB_TRY(value_of(s, &column, s->show->item, at, &value));
    write_head(s, column.siblings + (size_t)at * FB_SIBLING_BYTES);
    fb_write_span32(s->w, value);
    return FB_OK;
}

static void write_counter(const showing *s, const group *g)
{
    fb_sum sum = {0, 0};
    fb_record_walk walk = g->walk;
    fb_record_field column;
    for (uint32_t k = 0; k < g->columns; k++) {
        fb_record_next(&walk, &column);
        fb_field_kind kind = fb_column_of(column.name).kind;
        if (kind == FB_FIELD_ELEMENT) break;
        bool plain = kind == FB_FIELD_REGISTER;
        if (plain && !g->counts_on) continue;
        uint32_t shown = fb_record_displayed(&column, s->show->horizon);
        fb_record_field siblings = column;
        for (uint32_t i = 0; i < column.count; i++) {
            fb_sibling sibling = fb_record_sibling(&siblings, i);
            int64_t part;
            if (sibling.stamp > s->show->horizon || (plain && i != shown)) continue;
            if (MUTANT(NEWEST_SHARE_SHOWN, false, !plain && i != shown)) continue;
            if (!sibling.apart && fb_integer_parse(sibling.value, &part)) fb_sum_add(&sum, part);
        }
    }
    uint8_t text[FB_INTEGER_TEXT_MAX];
    write_head(s, g->newest[FB_FIELD_COUNTER]);
    fb_write_span32(s->w, fb_span_of(text, fb_integer_format(fb_sum_value(&sum), text)));
}

static fb_status write_set(const showing *s, const group *g)
{
    write_head(s, g->newest[FB_FIELD_ELEMENT]);
    size_t len_at = s->w->at;
    fb_write_u32(s->w, 0);
    size_t from = s->w->at;
    uint32_t item = s->show->item;
    fb_record_walk walk = g->walk;
    fb_record_field column;
    char before = '[';
    for (uint32_t k = 0; k < g->columns; k++) {
        fb_record_next(&walk, &column);
        uint32_t shown = fb_record_displayed(&column, s->show->horizon);
        if (fb_column_of(column.name).kind == FB_FIELD_ELEMENT && shown != FB_NONE) {
            /* Whoever inserted it, the text is the same. */
            fb_span value;
            FB_TRY(value_of(s, &column, item, shown, &value));
            fb_write_u8(s->w, (uint8_t)before);
            fb_write_bytes(s->w, value.p, value.len);
            before = ',';
        }
        item += apart_of(&column, s->show->horizon);
    }
    fb_write_u8(s->w, ']');
    if (!s->w->failed) fb_store_be(s->w->p + len_at, s->w->at - from, 4);
    return FB_OK;
}

/* The newest kind is displayed; what other kinds hold was written beside it. */
static fb_status write_group(const showing *s, const group *g, fb_span field)
{
    fb_write_span16(s->w, field);
    size_t count_at = s->w->at;
    fb_write_u16(s->w, 0);
    fb_record_walk walk = g->walk;
    fb_record_field column;
    fb_record_next(&walk, &column);
    bool plain = fb_column_of(column.name).kind == FB_FIELD_REGISTER;
    uint32_t shown = plain ? fb_record_displayed(&column, s->show->horizon) : FB_NONE;
    size_t ignored = 0;
    uint32_t apart = 0, count = 0;
    uint32_t siblings = plain ? visible_of(&column, s->show->horizon, &ignored, &apart) : 0;
    bool left[FB_FIELD_ELEMENT + 1] = {false};
    for (uint32_t kind = FB_FIELD_REGISTER; kind <= FB_FIELD_ELEMENT; kind++) {
        left[kind] = g->newest[kind] != NULL && !(kind == FB_FIELD_REGISTER && g->counts_on);
    }
    for (;;) {
        uint32_t next = 0;
        for (uint32_t kind = FB_FIELD_REGISTER; kind <= FB_FIELD_ELEMENT; kind++) {
            const uint8_t *a = left[kind] ? g->newest[kind] : NULL;
            const uint8_t *b = g->newest[next];
            if (a == NULL) continue;
            if (next == 0 || fb_stamp_compare(stamp_of(b), b, stamp_of(a), a) < 0) next = kind;
        }
        if (next == 0) break;
        left[next] = false;
        count++;
        if (next == FB_FIELD_REGISTER) FB_TRY(write_plain(s, g, shown));
        if (next == FB_FIELD_COUNTER) write_counter(s, g);
        if (next == FB_FIELD_ELEMENT) FB_TRY(write_set(s, g));
    }
    if (siblings > 1 && MUTANT(SIBLINGS_LEFT_OUT, true, false)) {
        FB_TRY(write_siblings(s, g, shown));
        count += siblings - 1;
    }
    if (!s->w->failed) fb_store_be(s->w->p + count_at, count, 2);
    return FB_OK;
}

fb_status fb_show_write(const fb_node *node, const fb_op *op, fb_show *show, fb_writer *w, fb_id id,
                        const fb_record *record)
{
    const op_source from = {node, op};
    const fb_show_source source = {op_value, &from};
    return fb_show_record(&source, show, w, id, record);
}

fb_status fb_show_record(const fb_show_source *source, fb_show *show, fb_writer *w, fb_id id,
                         const fb_record *record)
{
    const showing s = {source, show, w, id};
    fb_write_id(w, id);
    fb_write_bytes(w, record->fingerprint, 16);
    size_t count_at = w->at;
    uint32_t fields = 0;
    fb_write_u16(w, 0);
    fb_record_walk walk = fb_record_walk_of(record);
    group g;
    fb_span field = {NULL, 0};
    while (group_next(&walk, show->horizon, &g, &field)) {
        bool any = false;
        for (uint32_t kind = FB_FIELD_REGISTER; kind <= FB_FIELD_ELEMENT; kind++) {
            any = any || g.newest[kind] != NULL;
        }
        if (!any) continue;
        fields++;
        FB_TRY(write_group(&s, &g, field));
        fb_record_walk columns = g.walk;
        for (uint32_t k = 0; k < g.columns; k++) {
            fb_record_field column;
            fb_record_next(&columns, &column);
            show->item += apart_of(&column, show->horizon);
        }
    }
    if (w->failed) return FB_ERR_LIMIT;
    fb_store_be(w->p + count_at, fields, 2);
    return FB_OK;
}

void fb_show_too_large(fb_writer *w, fb_id id, const fb_record *record)
{
    fb_write_id(w, id);
    fb_write_bytes(w, record->fingerprint, 16);
    fb_write_u16(w, UINT16_MAX);
}
