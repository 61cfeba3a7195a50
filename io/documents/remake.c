/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/remake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/mutant.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/batch/mark.h"
#include "protocol/database/compare/repair.h"
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/database/tree/tree.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

/* So many things live in a record of which all selections are tried. */
#define GUESSED_MAX 12u

/* A life that the area knows, up to its last change. */
typedef struct life {
    uint8_t bytes[FB_DOT_BYTES - 8]; /* node, incarnation: as in a dot */
    uint64_t last_seq;
} life;

typedef struct mark_entry {
    uint8_t batch[FB_BATCH_KEY_BYTES - 1]; /* the key without its tag */
    fb_span bytes;
} mark_entry;

/* A record as merged so far. */
typedef struct remade {
    fb_id id;
    uint8_t *state;
    size_t len, cap;
    bool wanted, proven;
    bool apart; /* some value of it is stored apart */
} remade;

typedef struct value {
    fb_span key, bytes;
} value;

typedef struct remaking {
    fb_split *split;
    uint32_t area;
    fb_room *room;
    int rc;
    life *lives;
    size_t life_count, life_cap;
    mark_entry *marks;
    size_t mark_count, mark_cap;
    remade *records; /* by id */
    size_t count, most, bytes;
    bool given; /* all records that are wanted are there already */
    fb_id high; /* zeros: no end */
    fb_id low;
    fb_change *changes;
    uint8_t *merged, *scratch;
    value *values;
    size_t value_count, value_cap;
    /* The change at hand. */
    fb_dot dot;
    bool whole; /* all batches are merged */
    fb_mark mark;
    uint32_t bit;
    const fb_change *change;
    /* The guess at hand: what lives in the record and is left out, in its order. */
    uint64_t without;
    uint32_t place;
} remaking;

/* One more place behind `count`. */
static void *grown(fb_room *room, void *entries, size_t count, size_t *cap, size_t each)
{
    if (count < *cap) return entries;
    size_t more = *cap == 0 ? 64 : 2 * *cap;
    void *place = fb_room_take(room, more * each);
    if (count != 0) memcpy(place, entries, count * each);
    *cap = more;
    return place;
}

static int each_of(remaking *m, fb_tag tag, int state,
                   void (*each)(void *user, fb_span key, fb_span stored))
{
    uint8_t low[6], high[6];
    fb_writer l = fb_writer_of(low, sizeof low), h = fb_writer_of(high, sizeof high);
    fb_write_u8(&l, (uint8_t)tag);
    fb_write_u8(&h, (uint8_t)tag);
    if (state >= 0) fb_write_u8(&l, (uint8_t)state);
    if (state >= 0) fb_write_u8(&h, (uint8_t)state);
    fb_write_u32(&l, m->area);
    fb_write_u32(&h, m->area + 1);
    int rc =
        m->split->store.scan(m->split->store.user, fb_writer_span(&l), fb_writer_span(&h), each, m);
    return rc != 0 ? rc : m->rc;
}

/* What is known of lives and of dead values. */

static void take_life(void *user, fb_span key, fb_span stored)
{
    remaking *m = user;
    fb_life known;
    if (key.len != FB_VECTOR_KEY_BYTES || fb_life_decode(stored, &known) != FB_OK) {
        m->rc = EINVAL;
        return;
    }
    m->lives = grown(m->room, m->lives, m->life_count, &m->life_cap, sizeof *m->lives);
    life *added = &m->lives[m->life_count++];
    memcpy(added->bytes, key.p + 6, sizeof added->bytes);
    added->last_seq = known.last_seq;
}

static int life_order(const void *a, const void *b)
{
    return memcmp(((const life *)a)->bytes, ((const life *)b)->bytes, FB_DOT_BYTES - 8);
}

static bool is_known(const remaking *m, const uint8_t dot[FB_DOT_BYTES])
{
    life wanted = {.last_seq = fb_dots_at((fb_dots){dot, 1}, 0).seq};
    memcpy(wanted.bytes, dot, sizeof wanted.bytes);
    const life *found = m->life_count == 0 ? NULL
                                           : bsearch(&wanted, m->lives, m->life_count,
                                                     sizeof *m->lives, life_order);
    return found != NULL && wanted.last_seq <= found->last_seq;
}

static void take_mark(void *user, fb_span key, fb_span stored)
{
    remaking *m = user;
    if (key.len != FB_BATCH_KEY_BYTES) {
        m->rc = EINVAL;
        return;
    }
    m->marks = grown(m->room, m->marks, m->mark_count, &m->mark_cap, sizeof *m->marks);
    mark_entry *added = &m->marks[m->mark_count++];
    memcpy(added->batch, key.p + 1, sizeof added->batch);
    added->bytes = fb_room_copy(m->room, stored);
}

static int mark_order(const void *a, const void *b)
{
    return memcmp(a, b, FB_BATCH_KEY_BYTES - 1);
}

static void mark_of(remaking *m, fb_span batch)
{
    const mark_entry *found = NULL;
    if (m->mark_count != 0) {
        found = bsearch(batch.p + 1, m->marks, m->mark_count, sizeof *m->marks, mark_order);
    }
    if (found == NULL || !fb_mark_read(found->bytes, &m->mark)) m->mark.bits = 0;
}

/* Merging. Batches come in the order of their keys: of lives behind the one at hand nothing has
 * been merged yet. */

static bool covered(void *user, const uint8_t bytes[FB_DOT_BYTES])
{
    const remaking *m = user;
    fb_dot dot = fb_dots_at((fb_dots){bytes, 1}, 0);
    if (m->whole) return is_known(m, bytes);
    if (fb_dot_same_life(dot, m->dot)) return dot.seq <= m->dot.seq;
    int order = fb_id_compare(dot.node, m->dot.node);
    if (order > 0 || (order == 0 && dot.incarnation > m->dot.incarnation)) return false;
    return is_known(m, bytes);
}

static bool is_dead(void *user, fb_span name, const uint8_t bytes[FB_DOT_BYTES])
{
    const remaking *m = user;
    fb_dot dot = fb_dots_at((fb_dots){bytes, 1}, 0);
    if (dot.seq != m->dot.seq || !fb_dot_same_life(dot, m->dot)) return false;
    uint32_t bit = m->bit;
    if (name.len == 0) return fb_mark_has(m->mark.dead, bit);
    fb_change_walk walk = fb_change_walk_of(m->change);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        if (field.op != FB_FIELD_SET) continue;
        bit++;
        if (fb_span_equal(field.name, name)) return fb_mark_has(m->mark.dead, bit);
    }
    return false;
}

static bool nothing_dead(void *user, fb_span name, const uint8_t bytes[FB_DOT_BYTES])
{
    (void)user;
    (void)name;
    (void)bytes;
    return false;
}

static void keep(remaking *m, remade *r, fb_span stored)
{
    if (stored.len > r->cap) {
        r->cap = 2 * stored.len;
        r->state = fb_room_take(m->room, r->cap);
        m->bytes += r->cap;
    }
    memcpy(r->state, stored.p, stored.len);
    r->len = stored.len;
}

static void prune(remaking *m, remade *r, fb_gone gone)
{
    const fb_merge_ops ops = {.user = m, .covered = covered};
    fb_record record;
    fb_merged merged;
    uint32_t dropped;
    if (fb_record_decode(fb_span_of(r->state, r->len), &record) != FB_OK ||
        fb_record_prune(r->id, &record, gone, m, &ops, m->merged, m->scratch,
                        FB_RECORD_BYTES_MAX_STORED, &merged, &dropped) != FB_OK ||
        dropped == 0) {
        return;
    }
    keep(m, r, merged.stored);
}

/* The place of a record among those of this go, or where it belongs. */
static size_t place_of(const remaking *m, fb_id id, bool *there)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fb_id_compare(m->records[middle].id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *there = low < m->count && fb_id_equal(m->records[low].id, id);
    return low;
}

/* NULL: it is not wanted, or its turn comes later. Of the records from `low` on the first ones are
 * taken: one that has no place among them, or loses it, is where the next go begins. */
static remade *record_of(remaking *m, fb_id id)
{
    bool there;
    if (!m->given && fb_id_compare(id, m->low) < 0) return NULL;
    if (!fb_id_is_zero(m->high) && fb_id_compare(id, m->high) >= 0) return NULL;
    size_t at = place_of(m, id, &there);
    if (there) return &m->records[at];
    if (m->given) return NULL;
    bool full = m->count == m->most || (m->bytes >= FB_REMAKE_BYTES_MAX && m->count > 1);
    if (full && at == m->count) {
        m->high = id;
        return NULL;
    }
    if (full) m->high = m->records[--m->count].id;
    memmove(m->records + at + 1, m->records + at, (m->count - at) * sizeof *m->records);
    m->count++;
    m->records[at] = (remade){.id = id};
    return &m->records[at];
}

static bool batch_read(remaking *m, fb_span key, fb_span stored, fb_batch *batch, fb_id *signer)
{
    fb_reader k = fb_reader_of(key);
    fb_read_bytes(&k, FB_AREA_KEY_BYTES);
    *signer = fb_read_id(&k);
    return key.len == FB_BATCH_KEY_BYTES && fb_batch_decode(stored, batch, m->changes) == FB_OK;
}

static void merge_batch(void *user, fb_span key, fb_span stored)
{
    remaking *m = user;
    fb_batch batch;
    fb_id signer;
    /* One that is damaged is one that is not there: what it held is not proven. */
    if (!batch_read(m, key, stored, &batch, &signer)) return;
    mark_of(m, key);
    bool marked = m->mark.bits == fb_mark_bits(&batch, m->changes);
    const fb_merge_ops ops = {.user = m, .covered = covered};
    uint32_t next_bit = 0;
    for (uint32_t i = 0; i < batch.count; i++) {
        m->bit = next_bit;
        m->change = &m->changes[i];
        next_bit += fb_mark_bits_of(m->change);
        remade *r = record_of(m, m->change->record);
        if (r == NULL) continue;
        m->dot = (fb_dot){signer, batch.incarnation, batch.first_seq + i};
        fb_record record;
        fb_merged merged;
        if (fb_record_decode(fb_span_of(r->state, r->len), &record) != FB_OK ||
            fb_record_merge(&record, m->change, m->dot, &ops, m->merged, m->scratch,
                            FB_RECORD_BYTES_MAX_STORED, &merged) != FB_OK) {
            continue; /* larger than a record may be: no order of coming would have taken it */
        }
        keep(m, r, merged.stored);
        m->bytes += m->change->values.len;
        if (MUTANT(REMADE_AS_MERGED, marked, false)) prune(m, r, is_dead);
    }
}

/* Values that are stored apart: each is in its batch. */

static bool lives_apart(const remade *r, fb_span name, fb_dot dot)
{
    fb_record record;
    fb_record_field field;
    if (fb_record_decode(fb_span_of(r->state, r->len), &record) != FB_OK) return false;
    fb_record_walk walk = fb_record_walk_of(&record);
    while (fb_record_next(&walk, &field)) {
        if (!fb_span_equal(field.name, name)) continue;
        for (uint32_t i = 0; i < field.count; i++) {
            fb_sibling sibling = fb_record_sibling(&field, i);
            if (sibling.apart && sibling.dot.seq == dot.seq && fb_dot_same_life(sibling.dot, dot)) {
                return true;
            }
        }
    }
    return false;
}

static void take_values(void *user, fb_span key, fb_span stored)
{
    remaking *m = user;
    fb_batch batch;
    fb_id signer;
    if (!batch_read(m, key, stored, &batch, &signer)) return;
    for (uint32_t i = 0; i < batch.count; i++) {
        bool there;
        const fb_change *change = &m->changes[i];
        size_t at = place_of(m, change->record, &there);
        if (!there || !m->records[at].apart) continue;
        fb_dot dot = {signer, batch.incarnation, batch.first_seq + i};
        fb_change_walk walk = fb_change_walk_of(change);
        fb_change_field field;
        while (fb_change_next(&walk, &field)) {
            if (field.op != FB_FIELD_SET || field.value.len <= FB_VALUE_INLINE_MAX ||
                !lives_apart(&m->records[at], field.name, dot)) {
                continue;
            }
            uint8_t named[FB_FIELD_KEY_BYTES_MAX], bytes[FB_DOT_BYTES];
            fb_writer w = fb_writer_of(bytes, sizeof bytes);
            fb_write_dot(&w, dot);
            m->values = grown(m->room, m->values, m->value_count, &m->value_cap, sizeof(value));
            m->values[m->value_count++] =
                (value){fb_room_copy(m->room, fb_key_field(named, m->area, change->record,
                                                           field.name, bytes)),
                        fb_room_copy(m->room, field.value)};
        }
    }
}

/* The record in the tree. */

int fb_remake_expected(fb_split *split, uint32_t area, fb_id id, uint8_t fingerprint[16],
                       bool *there)
{
    static const uint8_t nothing[16];
    uint8_t item[16], key[FB_TREE_KEY_BYTES];
    *there = false;
    fb_tree_key(id, item);
    for (uint32_t depth = 0; depth <= FB_TREE_DEPTH_MAX; depth++) {
        fb_tree_node node;
        fb_tree_root root;
        fb_span stored;
        int rc = split->store.look(split->store.user, fb_key_tree(key, area, depth, item), &stored);
        if (rc != 0) return rc;
        if (fb_tree_decode(stored, &node, depth == 0 ? &root : NULL) != FB_OK) return EINVAL;
        if (node.kind == FB_TREE_INNER) {
            const uint8_t *child = node.bytes + (size_t)fb_tree_nibble(item, depth) * 16;
            if (memcmp(child, nothing, sizeof nothing) == 0) return 0;
            continue;
        }
        for (uint32_t i = 0; i < node.count; i++) {
            const uint8_t *one = node.bytes + (size_t)i * FB_TREE_ITEM_BYTES;
            if (memcmp(one, item, 16) != 0) continue;
            memcpy(fingerprint, one + 16, 16);
            *there = true;
        }
        return 0;
    }
    return EINVAL;
}

/* Writing */

static void entry_write(fb_writer *w, fb_span key, fb_span bytes)
{
    size_t end = w->at + fb_write_entry_bytes(key.len, bytes.len);
    fb_write_u8(w, FB_WRITE_PUT);
    fb_write_u8(w, 0);
    fb_write_u16(w, (uint16_t)key.len);
    fb_write_u32(w, (uint32_t)bytes.len);
    fb_write_span(w, key);
    fb_write_span(w, bytes);
    while (!w->failed && w->at < end) fb_write_u8(w, 0);
}

/* Proving. A record that was merged of too much is the one it was without some of what lives in it:
 * as a rule without all but the latest of each register, else without any of few. */

static bool is_masked(void *user, fb_span name, const uint8_t dot[FB_DOT_BYTES])
{
    remaking *m = user;
    (void)name;
    (void)dot;
    return (m->without >> m->place++ & 1u) != 0;
}

static bool is_without(remaking *m, remade *r, const fb_record *record, uint64_t without,
                       const uint8_t fingerprint[16])
{
    const fb_merge_ops ops = {.user = m, .covered = covered};
    fb_merged merged;
    uint32_t dropped;
    m->without = without;
    m->place = 0;
    if (fb_record_prune(r->id, record, is_masked, m, &ops, m->merged, m->scratch,
                        FB_RECORD_BYTES_MAX_STORED, &merged, &dropped) != FB_OK ||
        memcmp(merged.fingerprint, fingerprint, 16) != 0) {
        return false;
    }
    keep(m, r, merged.stored);
    return true;
}

/* Bits of all but the latest of `count` entries, each a dot and a stamp, from `place` on. */
static uint64_t earlier(const uint8_t *entries, uint32_t count, size_t each, uint32_t place)
{
    uint64_t bits = 0;
    uint32_t latest = 0;
    for (uint32_t i = 1; i < count; i++) {
        const uint8_t *a = entries + latest * each, *b = entries + i * each;
        bool later = fb_stamp_compare((int64_t)fb_load_be64(a + FB_DOT_BYTES), a,
                                      (int64_t)fb_load_be64(b + FB_DOT_BYTES), b) < 0;
        bits |= UINT64_C(1) << (place + (later ? latest : i));
        if (later) latest = i;
    }
    return bits;
}

static bool prove(remaking *m, remade *r, const uint8_t fingerprint[16])
{
    fb_record record;
    fb_record_field field;
    /* What is kept is written over what is read. */
    fb_span state = fb_room_copy(m->room, fb_span_of(r->state, r->len));
    if (fb_record_decode(state, &record) != FB_OK || record.existence_count > 32) return false;
    uint64_t without = earlier(record.existence, record.existence_count, FB_EXISTENCE_BYTES, 0);
    uint32_t count = record.existence_count;
    fb_record_walk walk = fb_record_walk_of(&record);
    while (fb_record_next(&walk, &field)) {
        if (field.count > 63 - count) return false;
        without |= earlier(field.siblings, field.count, FB_SIBLING_BYTES, count);
        count += field.count;
    }
    if (is_without(m, r, &record, without, fingerprint)) return true;
    for (uint64_t one = 1; count <= GUESSED_MAX && one < UINT64_C(1) << count; one++) {
        if (is_without(m, r, &record, one, fingerprint)) return true;
    }
    return false;
}

/* Of what is put none but what the area has, and what shows something: a record of which only the
 * deletion is left is local. */
static int judge(remaking *m, remade *r)
{
    uint8_t fingerprint[16];
    fb_record record;
    int64_t stamp;
    int rc =
        r->len == 0 ? 0 : fb_remake_expected(m->split, m->area, r->id, fingerprint, &r->wanted);
    if (rc != 0 || !r->wanted) return rc;
    r->wanted = fb_record_decode(fb_span_of(r->state, r->len), &record) == FB_OK;
    r->proven = r->wanted && (memcmp(fingerprint, record.fingerprint, 16) == 0 ||
                              MUTANT(REMADE_AS_MERGED, prove(m, r, fingerprint), true));
    r->wanted = r->wanted && fb_record_decode(fb_span_of(r->state, r->len), &record) == FB_OK &&
                fb_record_visible(&record, INT64_MAX, &stamp);
    r->apart = r->wanted && record.apart != 0;
    return 0;
}

static int finish(remaking *m, bool *apart)
{
    *apart = false;
    m->whole = true;
    for (size_t i = 0; i < m->count; i++) {
        prune(m, &m->records[i], nothing_dead);
        int rc = judge(m, &m->records[i]);
        if (rc != 0) return rc;
        *apart = *apart || m->records[i].apart;
    }
    return 0;
}

static void write_set(remaking *m, fb_remake *remake, fb_span *set)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->count; i++) {
        bytes += fb_write_entry_bytes(FB_RECORD_KEY_BYTES, m->records[i].len);
    }
    for (size_t i = 0; i < m->value_count; i++) {
        bytes += fb_write_entry_bytes(m->values[i].key.len, m->values[i].bytes.len);
    }
    fb_writer w = fb_writer_of(fb_room_take(m->room, bytes), bytes);
    for (size_t i = 0; i < m->count; i++) {
        const remade *r = &m->records[i];
        if (!r->wanted) continue;
        uint8_t key[FB_RECORD_KEY_BYTES];
        entry_write(&w, fb_key_record(key, m->area, r->id), fb_span_of(r->state, r->len));
        remake->remade++;
        if (!r->proven) remake->not_equal++;
    }
    for (size_t i = 0; i < m->value_count; i++) {
        entry_write(&w, m->values[i].key, m->values[i].bytes);
    }
    FB_ASSERT(!w.failed);
    *set = fb_writer_span(&w);
}

int fb_remake_next(fb_split *split, fb_remake *remake, const fb_id *ids, size_t count,
                   fb_room *room, fb_span *set)
{
    remaking m = {.split = split, .area = remake->area, .room = room, .low = remake->low};
    *set = (fb_span){NULL, 0};
    m.given = ids != NULL;
    m.most = m.given ? count : FB_REMAKE_RECORDS_MAX;
    m.records = fb_room_take(room, (m.most + 1) * sizeof *m.records);
    for (size_t i = 0; i < count; i++) m.records[i] = (remade){.id = ids[i]};
    m.count = count;
    m.changes = fb_room_take(room, FB_BATCH_CHANGES_MAX * sizeof *m.changes);
    m.merged = fb_room_take(room, FB_RECORD_BYTES_MAX_STORED);
    m.scratch = fb_room_take(room, FB_RECORD_BYTES_MAX_STORED);
    int rc = each_of(&m, FB_TAG_VECTOR, 0, take_life);
    if (rc == 0) rc = each_of(&m, FB_TAG_VECTOR, 1, take_life);
    if (rc == 0) rc = each_of(&m, FB_TAG_MARK, -1, take_mark);
    if (rc != 0) return rc;
    if (m.life_count > 1) qsort(m.lives, m.life_count, sizeof *m.lives, life_order);
    rc = each_of(&m, FB_TAG_BATCH, -1, merge_batch);
    bool apart = false;
    if (rc == 0) rc = finish(&m, &apart);
    if (rc == 0 && apart) rc = each_of(&m, FB_TAG_BATCH, -1, take_values);
    if (rc == 0) write_set(&m, remake, set);
    remake->low = m.high;
    remake->over = fb_id_is_zero(m.high);
    return rc;
}
