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

bool fb_peer_state_is_valid(fb_span state)
{
    if (state.len == 0) return true; /* no such record */
    fb_reader r = fb_reader_of(state);
    state_head head;
    if (!read_head(&r, &head)) return false;
    for (uint32_t i = 0; i < head.fields && !r.failed; i++) {
        fb_read_span16(&r);
        uint16_t siblings = fb_read_u16(&r);
        fb_read_bytes(&r, (size_t)siblings * FB_SIBLING_BYTES);
        fb_read_dots(&r);
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

typedef enum at_peer { AT_PEER_ABSENT, AT_PEER_LIVES, AT_PEER_REPLACED } at_peer;

/* How it is there: in the column, or (no name) for the existence. What is replaced before it came
 * is kept as such. */
static at_peer at_peer_of(const fb_peer_state *peer, fb_span name, const uint8_t *dot)
{
    fb_reader r = fb_reader_of(peer->state);
    state_head head;
    if (peer->state.len == 0) return AT_PEER_ABSENT;
    if (!read_head(&r, &head)) return AT_PEER_LIVES; /* not of one that is valid */
    if (is_kept(head.whole_pending, dot)) return AT_PEER_REPLACED;
    if (name.len == 0) {
        if (is_kept(head.existence_pending, dot)) return AT_PEER_REPLACED;
        return is_among(head.existence, FB_EXISTENCE_BYTES, dot) ? AT_PEER_LIVES : AT_PEER_ABSENT;
    }
    for (uint32_t i = 0; i < head.fields; i++) {
        fb_span column = fb_read_span16(&r);
        uint16_t count = fb_read_u16(&r);
        fb_span siblings = fb_read_bytes(&r, (size_t)count * FB_SIBLING_BYTES);
        fb_dots kept = fb_read_dots(&r);
        if (!fb_span_equal(column, name)) continue;
        if (is_kept(kept, dot)) return AT_PEER_REPLACED;
        return is_among(siblings, FB_SIBLING_BYTES, dot) ? AT_PEER_LIVES : AT_PEER_ABSENT;
    }
    return AT_PEER_ABSENT;
}

static bool gone_there(void *user, fb_span name, const uint8_t *dot)
{
    const fb_peer_state *peer = user;
    for (uint32_t i = 0; i < peer->dot_count; i++) {
        if (memcmp(peer->dots + (size_t)i * FB_DOT_BYTES, dot, FB_DOT_BYTES) != 0) continue;
        bool covered = (peer->covered[i / 8] >> i % 8 & 1u) != 0;
        at_peer there = at_peer_of(peer, name, dot);
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
    fb_peer_state there = *peer;
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
