/* SPDX-License-Identifier: Apache-2.0 */
/* The merge of one change into a record: one pass over two sorted lists of fields. */
#include "protocol/base/mutant.h"
#include "protocol/database/record/record.h"

/* What the change does to one register. */
typedef struct act {
    bool acts;        /* sets, unsets or deletes it */
    bool adds;        /* its own dot becomes a sibling, if nobody replaced it already */
    fb_dots replaced; /* when it acts */
} act;

typedef struct merging {
    const fb_merge_ops *ops;
    const fb_change *change;
    fb_dot dot;
    uint8_t dot_bytes[FB_DOT_BYTES];
    bool gone; /* a delete that came before replaced this change whole */
    fb_writer state;
    fb_writer values;
    uint32_t apart;
    uint32_t kept; /* siblings and dots of existence */
    bool conflict;
    /* Of the field whose columns are being written. */
    fb_span field;
    uint32_t kinds; /* that something lives of: bits */
    bool added;     /* by this change */
} merging;

static bool is_replaced(const merging *m, const act *a, const uint8_t *entry)
{
    if (!a->acts) return false;
    if (fb_dots_cover(a->replaced, entry)) return true;
    if (MUTANT(DELETE_TAKES_UNSEEN, false, m->change->op == FB_CHANGE_DELETE)) return true;
    if (MUTANT(WRITE_TAKES_UNSEEN, false, a->adds)) return true;
    if (MUTANT(REMOVE_TAKES_NEWER, false, !a->adds && m->change->op == FB_CHANGE_WRITE)) {
        return true;
    }
    /* DESIGN 3.1: within one incarnation a later change replaces its earlier ones, listed or not.
     */
    fb_dot dot = fb_dots_at((fb_dots){entry, 1}, 0);
    bool same = MUTANT(LIVES_TAKEN_FOR_ONE, fb_dot_same_life(dot, m->dot),
                       fb_id_equal(dot.node, m->dot.node));
    return same && dot.seq < m->dot.seq;
}

/* The kept dots of a register after the change: without its own, and with those it replaces that
 * have not come yet; of each life the last, which stands for those before it. */
static void write_pending(merging *m, fb_dots before, fb_dots replaced)
{
    size_t count_at = m->state.at;
    uint32_t count = 0, a = 0, b = 0;
    const uint8_t *last = NULL;
    fb_write_u16(&m->state, 0);
    while (a < before.count || b < replaced.count) {
        const uint8_t *x = a < before.count ? before.p + (size_t)a * FB_DOT_BYTES : NULL;
        const uint8_t *y = b < replaced.count ? replaced.p + (size_t)b * FB_DOT_BYTES : NULL;
        int order = x == NULL ? 1 : y == NULL ? -1 : memcmp(x, y, FB_DOT_BYTES);
        const uint8_t *dot = order <= 0 ? x : y;
        if (order <= 0) a++;
        if (order >= 0) b++;
        if (memcmp(dot, m->dot_bytes, FB_DOT_BYTES) == 0) continue;
        if (order > 0 && MUTANT(REPLACED_DOT_FORGOTTEN, m->ops->covered(m->ops->user, dot), true)) {
            continue;
        }
        if (last != NULL && memcmp(last, dot, 24) == 0) {
            m->state.at -= FB_DOT_BYTES;
            count--;
        }
        fb_write_bytes(&m->state, dot, FB_DOT_BYTES);
        if (m->state.failed) return;
        last = dot;
        count++;
    }
    if (count > UINT16_MAX) m->state.failed = true;
    if (!m->state.failed) fb_store_be(m->state.p + count_at, count, 2);
}

static void write_existence(merging *m, const fb_record *record, const act *a)
{
    size_t count_at = m->state.at;
    uint32_t count = 0;
    bool add =
        a->acts && a->adds && !m->gone && !fb_dots_cover(record->existence_pending, m->dot_bytes);
    fb_write_u16(&m->state, 0);
    for (uint32_t i = 0; i <= record->existence_count; i++) {
        bool end = i == record->existence_count;
        const uint8_t *entry = end ? NULL : record->existence + (size_t)i * FB_EXISTENCE_BYTES;
        if (add && (end || memcmp(entry, m->dot_bytes, FB_DOT_BYTES) > 0)) {
            fb_write_bytes(&m->state, m->dot_bytes, FB_DOT_BYTES);
            fb_write_u64(&m->state, (uint64_t)m->change->stamp);
            add = false;
            count++;
        }
        if (end || is_replaced(m, a, entry)) continue;
        fb_write_bytes(&m->state, entry, FB_EXISTENCE_BYTES);
        count++;
    }
    m->kept += count;
    if (count > UINT16_MAX) m->state.failed = true;
    if (!m->state.failed) fb_store_be(m->state.p + count_at, count, 2);
}

static void add_sibling(merging *m, const fb_change_field *field)
{
    uint8_t hash[32];
    fb_change_field_hash(field, hash);
    fb_write_bytes(&m->state, m->dot_bytes, FB_DOT_BYTES);
    fb_write_u64(&m->state, (uint64_t)m->change->stamp);
    fb_write_bytes(&m->state, hash, 16);
    if (field->value.len <= FB_VALUE_INLINE_MAX) {
        fb_write_u8(&m->values, 1);
        fb_write_span16(&m->values, field->value);
        return;
    }
    fb_write_u8(&m->values, 2);
    fb_write_u32(&m->values, (uint32_t)field->value.len);
    m->apart++;
    if (m->ops->came != NULL) {
        m->ops->came(m->ops->user, field->name, m->dot_bytes, field->value);
    }
}

/* Shares of a counter and insertions of one element stand beside each other in peace; kinds do
 * not, and plain values do not. */
static void judge_conflict(merging *m, fb_column name, uint32_t count, bool added)
{
    if (!fb_span_equal(m->field, name.field)) {
        m->field = name.field;
        m->kinds = 0;
        m->added = false;
    }
    if (count != 0) m->kinds |= 1u << name.kind;
    m->added = m->added || added;
    if (added && count > 1 && name.kind == FB_FIELD_REGISTER) m->conflict = true;
    bool several = (m->kinds & (m->kinds - 1)) != 0;
    if (m->added && several) m->conflict = true;
}

/* One column: `old` and `field` may each be NULL, not both. True when anything of it is left. */
static bool write_field(merging *m, const fb_record_field *old, const fb_change_field *field,
                        const act *a)
{
    static const fb_record_field none;
    if (old == NULL) old = &none;
    size_t start = m->state.at;
    fb_span name = field != NULL ? field->name : old->name;
    fb_write_span16(&m->state, name);
    size_t count_at = m->state.at;
    fb_write_u16(&m->state, 0);
    uint32_t count = 0;
    bool add = a->acts && a->adds && !m->gone && !fb_dots_cover(old->pending, m->dot_bytes);
    bool added = add;
    fb_record_field walk = *old;
    for (uint32_t i = 0; i <= old->count; i++) {
        bool end = i == old->count;
        const uint8_t *entry = end ? NULL : old->siblings + (size_t)i * FB_SIBLING_BYTES;
        if (add && (end || memcmp(entry, m->dot_bytes, FB_DOT_BYTES) > 0)) {
            add_sibling(m, field);
            add = false;
            count++;
        }
        if (end) continue;
        fb_sibling sibling = fb_record_sibling(&walk, i);
        if (is_replaced(m, a, entry)) {
            if (sibling.apart && m->ops->went != NULL) m->ops->went(m->ops->user, name, entry);
            continue;
        }
        fb_write_bytes(&m->state, entry, FB_SIBLING_BYTES);
        fb_write_u8(&m->values, sibling.apart ? 2 : 1);
        if (sibling.apart) {
            fb_write_u32(&m->values, sibling.len);
            m->apart++;
        } else {
            fb_write_span16(&m->values, sibling.value);
        }
        count++;
    }
    m->kept += count;
    if (count > UINT16_MAX) m->state.failed = true;
    judge_conflict(m, fb_column_of(name), count, added);
    size_t pending_at = m->state.at;
    static const fb_dots nothing;
    bool listed = a->acts && field != NULL; /* a delete keeps its dots for the whole record */
    write_pending(m, old->pending, listed ? a->replaced : nothing);
    if (m->state.failed) return true;
    fb_store_be(m->state.p + count_at, count, 2);
    if (count == 0 && m->state.at == pending_at + 2) {
        m->state.at = start;
        return false;
    }
    return true;
}

static uint32_t write_fields(merging *m, const fb_record *record)
{
    const fb_change *change = m->change;
    bool deletes = change->op == FB_CHANGE_DELETE;
    fb_record_walk old_walk = fb_record_walk_of(record);
    fb_change_walk new_walk = fb_change_walk_of(change);
    fb_record_field old;
    fb_change_field field;
    bool has_old = fb_record_next(&old_walk, &old);
    bool has_new = fb_change_next(&new_walk, &field);
    uint32_t count = 0;
    while (has_old || has_new) {
        int order = !has_old ? 1 : !has_new ? -1 : fb_span_compare(old.name, field.name);
        act a = {.acts = deletes, .replaced = change->replaced};
        if (order >= 0) {
            a = (act){true, field.op == FB_FIELD_SET, field.replaced};
        }
        if (write_field(m, order <= 0 ? &old : NULL, order >= 0 ? &field : NULL, &a)) count++;
        if (order <= 0) has_old = fb_record_next(&old_walk, &old);
        if (order >= 0) has_new = fb_change_next(&new_walk, &field);
    }
    return count;
}

/* FI-2-8 */
fb_status fb_record_merge(const fb_record *record, const fb_change *change, fb_dot dot,
                          const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                          fb_merged *merged)
{
    static const fb_dots nothing;
    if (out_cap < FB_RECORD_FRAME_BYTES) return FB_ERR_LIMIT;
    const size_t frame = 1 + 16 + 2 + 4;
    merging m = {.ops = ops,
                 .change = change,
                 .dot = dot,
                 .state = fb_writer_of(out + frame, out_cap - frame),
                 .values = fb_writer_of(scratch, out_cap)};
    fb_writer w = fb_writer_of(m.dot_bytes, sizeof m.dot_bytes);
    fb_write_dot(&w, dot);
    m.gone = fb_dots_cover(record->whole_pending, m.dot_bytes);
    bool deletes = change->op == FB_CHANGE_DELETE;
    act existence = {true, !deletes, change->replaced};
    write_existence(&m, record, &existence);
    write_pending(&m, record->existence_pending, deletes ? nothing : change->replaced);
    write_pending(&m, record->whole_pending, deletes ? change->replaced : nothing);
    size_t count_at = m.state.at;
    fb_write_u16(&m.state, 0);
    uint32_t fields = write_fields(&m, record);
    if (m.state.failed || m.values.failed || fields > UINT16_MAX || m.apart > UINT16_MAX) {
        return FB_ERR_LIMIT;
    }
    fb_store_be(m.state.p + count_at, fields, 2);
    fb_span state = fb_writer_span(&m.state);
    if (ops->draft) {
        memset(merged->fingerprint, 0, sizeof merged->fingerprint);
    } else {
        fb_record_fingerprint(change->record, state, merged->fingerprint);
    }
    out[0] = FB_RECORD_VERSION;
    memcpy(out + 1, merged->fingerprint, 16);
    fb_store_be(out + 17, m.apart, 2);
    fb_store_be(out + 19, state.len, 4);
    if (m.values.at > out_cap - frame - state.len) return FB_ERR_LIMIT;
    if (m.values.at != 0) memcpy(out + frame + state.len, scratch, m.values.at);
    merged->stored = fb_span_of(out, frame + state.len + m.values.at);
    merged->conflict = m.conflict;
    merged->values = m.kept;
    merged->empty = MUTANT(EMPTY_WHILE_AWAITED, state.len <= FB_RECORD_EMPTY_STATE, m.kept == 0);
    return FB_OK;
}
