/* SPDX-License-Identifier: Apache-2.0 */
/* A record without some of what lives in it.
 *
 * After it was compared with a peer's (DESIGN 3.1: what is absent there and covered there was
 * replaced), a dot that lives here and not there goes when the peer knows it; what the peer lacks
 * and does not know stays. Nothing is added: what lives there and not here was replaced here, or
 * comes with its batch. */
#include "protocol/database/compare/repair.h"
#include "protocol/base/mutant.h"

typedef struct repairing {
    fb_gone gone;
    void *gone_user;
    const fb_merge_ops *ops;
    fb_writer state, values;
    uint32_t apart, kept, dropped;
} repairing;

/* A state up to its columns. */
typedef struct state_head {
    fb_span existence;
    fb_dots existence_pending, whole_pending;
    uint32_t fields;
} state_head;

static bool read_head(fb_reader *r, state_head *head)
{
    uint16_t count = fb_read_u16(r);
    head->existence = fb_read_bytes(r, (size_t)count * FB_EXISTENCE_BYTES);
    head->existence_pending = fb_read_dots(r);
    head->whole_pending = fb_read_dots(r);
    head->fields = fb_read_u16(r);
    return !r->failed;
}

/* One column of it. */
typedef struct state_column {
    fb_span name, siblings;
    fb_dots kept;
} state_column;

static state_column read_column(fb_reader *r)
{
    state_column column;
    column.name = fb_read_span16(r);
    uint16_t siblings = fb_read_u16(r);
    column.siblings = fb_read_bytes(r, (size_t)siblings * FB_SIBLING_BYTES);
    column.kept = fb_read_dots(r);
    return column;
}

bool fb_peer_state_is_valid(fb_span state)
{
    if (state.len == 0) return true; /* no such record */
    fb_reader r = fb_reader_of(state);
    state_head head;
    if (!read_head(&r, &head)) return false;
    fb_span before = {NULL, 0};
    for (uint32_t i = 0; i < head.fields && !r.failed; i++) {
        state_column column = read_column(&r);
        if (i > 0 && fb_span_compare(before, column.name) >= 0) return false;
        before = column.name;
    }
    return fb_reader_done(&r);
}

static bool is_among(fb_span entries, size_t each, const uint8_t *dot)
{
    for (size_t at = 0; at + each <= entries.len; at += each) {
        if (memcmp(entries.p + at, dot, FB_DOT_BYTES) == 0) return true;
    }
    return false;
}

static bool is_kept(fb_dots kept, const uint8_t *dot)
{
    return is_among(fb_span_of(kept.p, (size_t)kept.count * FB_DOT_BYTES), FB_DOT_BYTES, dot);
}

/* Those of the entries that are asked about; how many. */
static uint32_t write_asked(fb_writer *w, fb_span entries, size_t each, fb_span dots)
{
    size_t count_at = w->at;
    uint32_t count = 0;
    fb_write_u16(w, 0);
    for (size_t at = 0; at + each <= entries.len; at += each) {
        if (!is_among(dots, FB_DOT_BYTES, entries.p + at)) continue;
        fb_write_bytes(w, entries.p + at, each);
        count++;
    }
    if (!w->failed) fb_store_be(w->p + count_at, count, 2);
    return count;
}

static uint32_t write_asked_dots(fb_writer *w, fb_dots kept, fb_span dots)
{
    fb_span entries = fb_span_of(kept.p, (size_t)kept.count * FB_DOT_BYTES);
    return write_asked(w, entries, FB_DOT_BYTES, dots);
}

void fb_peer_state_write(fb_writer *w, fb_span state, fb_span dots)
{
    size_t start = w->at;
    uint32_t any = 0, fields = 0;
    fb_reader r = fb_reader_of(state);
    state_head head;
    if (state.len == 0 || !read_head(&r, &head)) return;
    any += write_asked(w, head.existence, FB_EXISTENCE_BYTES, dots);
    any += write_asked_dots(w, head.existence_pending, dots);
    any += write_asked_dots(w, head.whole_pending, dots);
    size_t fields_at = w->at;
    fb_write_u16(w, 0);
    for (uint32_t i = 0; i < head.fields; i++) {
        state_column column = read_column(&r);
        size_t column_at = w->at;
        fb_write_span16(w, column.name);
        uint32_t here = write_asked(w, column.siblings, FB_SIBLING_BYTES, dots);
        here += write_asked_dots(w, column.kept, dots);
        if (here == 0 && !w->failed) w->at = column_at;
        fields += here == 0 ? 0 : 1;
    }
    if (w->failed) return;
    fb_store_be(w->p + fields_at, fields, 2);
    if (any + fields == 0) w->at = start;
}

typedef enum at_peer { AT_PEER_ABSENT, AT_PEER_LIVES, AT_PEER_REPLACED } at_peer;

/* A peer's state beside a record: columns of both ascend, so each is read once. */
typedef struct beside {
    const fb_peer_state *peer;
    fb_reader r;
    state_head head;
    uint32_t left; /* columns behind the one at hand */
    bool any;      /* there is one at hand */
    state_column column;
} beside;

static void next_column(beside *b)
{
    b->any = b->left > 0;
    if (!b->any) return;
    b->left--;
    b->column = read_column(&b->r);
}

static void begin_beside(beside *b, const fb_peer_state *peer)
{
    *b = (beside){.peer = peer, .r = fb_reader_of(peer->state)};
    if (peer->state.len == 0 || !read_head(&b->r, &b->head)) return;
    b->left = b->head.fields;
    next_column(b);
}

/* How it is there: in the column, or (no name) for the existence. What is replaced before it came
 * is kept as such. Columns are asked about as they ascend. */
static at_peer at_peer_of(beside *b, fb_span name, const uint8_t *dot)
{
    if (is_kept(b->head.whole_pending, dot)) return AT_PEER_REPLACED;
    fb_dots kept = b->head.existence_pending;
    fb_span living = b->head.existence;
    size_t each = FB_EXISTENCE_BYTES;
    if (name.len != 0) {
        while (b->any && fb_span_compare(b->column.name, name) < 0) next_column(b);
        if (!b->any || !fb_span_equal(b->column.name, name)) return AT_PEER_ABSENT;
        kept = b->column.kept;
        living = b->column.siblings;
        each = FB_SIBLING_BYTES;
    }
    if (is_kept(kept, dot)) return AT_PEER_REPLACED;
    return is_among(living, each, dot) ? AT_PEER_LIVES : AT_PEER_ABSENT;
}

static bool gone_there(void *user, fb_span name, const uint8_t *dot)
{
    beside *b = user;
    const fb_peer_state *peer = b->peer;
    for (uint32_t i = 0; i < peer->dot_count; i++) {
        if (memcmp(peer->dots + (size_t)i * FB_DOT_BYTES, dot, FB_DOT_BYTES) != 0) continue;
        bool covered = (peer->covered[i / 8] >> i % 8 & 1u) != 0;
        at_peer there = at_peer_of(b, name, dot);
        return there == AT_PEER_REPLACED || (covered && there == AT_PEER_ABSENT);
    }
    return false; /* it came since */
}

static bool is_gone(repairing *m, fb_span name, const uint8_t *dot)
{
    if (!m->gone(m->gone_user, name, dot)) return false;
    m->dropped++;
    return true;
}

/* Kept dots whose changes are here now, or never come because they were folded. */
static void write_pending(repairing *m, fb_dots dots)
{
    size_t count_at = m->state.at;
    uint32_t count = 0;
    fb_write_u16(&m->state, 0);
    for (uint32_t i = 0; i < dots.count; i++) {
        const uint8_t *dot = dots.p + (size_t)i * FB_DOT_BYTES;
        if (m->ops->covered(m->ops->user, dot)) {
            m->dropped++;
            continue;
        }
        fb_write_bytes(&m->state, dot, FB_DOT_BYTES);
        count++;
    }
    if (!m->state.failed) fb_store_be(m->state.p + count_at, count, 2);
}

static void write_existence(repairing *m, const fb_record *record)
{
    size_t count_at = m->state.at;
    uint32_t count = 0;
    fb_write_u16(&m->state, 0);
    for (uint32_t i = 0; i < record->existence_count; i++) {
        const uint8_t *entry = record->existence + (size_t)i * FB_EXISTENCE_BYTES;
        if (is_gone(m, (fb_span){NULL, 0}, entry)) continue;
        fb_write_bytes(&m->state, entry, FB_EXISTENCE_BYTES);
        count++;
    }
    m->kept += count;
    if (!m->state.failed) fb_store_be(m->state.p + count_at, count, 2);
}

/* True when anything of the column is left. */
static bool write_column(repairing *m, fb_record_field *field)
{
    size_t start = m->state.at;
    fb_write_span16(&m->state, field->name);
    size_t count_at = m->state.at;
    uint32_t count = 0;
    fb_write_u16(&m->state, 0);
    for (uint32_t i = 0; i < field->count; i++) {
        const uint8_t *entry = field->siblings + (size_t)i * FB_SIBLING_BYTES;
        fb_sibling sibling = fb_record_sibling(field, i);
        if (is_gone(m, field->name, entry)) {
            if (sibling.apart && m->ops->went != NULL)
                m->ops->went(m->ops->user, field->name, entry);
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
    size_t pending_at = m->state.at;
    write_pending(m, field->pending);
    if (m->state.failed) return true;
    fb_store_be(m->state.p + count_at, count, 2);
    if (count != 0 || m->state.at != pending_at + 2) return true;
    m->state.at = start;
    return false;
}

fb_status fb_record_repair(fb_id id, const fb_record *record, const fb_peer_state *peer,
                           const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                           fb_merged *merged, uint32_t *dropped)
{
    beside there;
    begin_beside(&there, peer);
    return fb_record_prune(id, record, gone_there, &there, ops, out, scratch, out_cap, merged,
                           dropped);
}

fb_status fb_record_prune(fb_id id, const fb_record *record, fb_gone gone, void *gone_user,
                          const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                          fb_merged *merged, uint32_t *dropped)
{
    const size_t frame = 1 + 16 + 2 + 4;
    if (out_cap < FB_RECORD_FRAME_BYTES) return FB_ERR_LIMIT;
    repairing m = {.gone = gone,
                   .gone_user = gone_user,
                   .ops = ops,
                   .state = fb_writer_of(out + frame, out_cap - frame),
                   .values = fb_writer_of(scratch, out_cap)};
    write_existence(&m, record);
    write_pending(&m, record->existence_pending);
    write_pending(&m, record->whole_pending);
    size_t count_at = m.state.at;
    uint32_t fields = 0;
    fb_write_u16(&m.state, 0);
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) fields += write_column(&m, &field) ? 1 : 0;
    if (m.state.failed || m.values.failed) return FB_ERR_LIMIT;
    fb_store_be(m.state.p + count_at, fields, 2);
    fb_span state = fb_writer_span(&m.state);
    if (ops->draft) {
        memset(merged->fingerprint, 0, sizeof merged->fingerprint);
    } else {
        fb_record_fingerprint(id, state, merged->fingerprint);
    }
    out[0] = FB_RECORD_VERSION;
    memcpy(out + 1, merged->fingerprint, 16);
    fb_store_be(out + 17, m.apart, 2);
    fb_store_be(out + 19, state.len, 4);
    if (m.values.at > out_cap - frame - state.len) return FB_ERR_LIMIT;
    if (m.values.at != 0) memcpy(out + frame + state.len, scratch, m.values.at);
    merged->stored = fb_span_of(out, frame + state.len + m.values.at);
    merged->conflict = false;
    merged->values = m.kept;
    merged->empty = state.len <= FB_RECORD_EMPTY_STATE;
    *dropped = m.dropped;
    return FB_OK;
}
