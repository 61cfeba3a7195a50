/* SPDX-License-Identifier: Apache-2.0 */
/* What a cut takes away is taken back, and so is what somebody wrote who is no member any more.
 * DESIGN 3.1, Revocation: above the cut everything is refused everywhere, and what only a cut
 * change had replaced lives again. (Statements stay, they are judged: space/judge.h.)
 *
 * A few batches after the others, the last ones of a life first: each record that they touched is
 * merged anew from all other batches of the area, as if they had never come (anew.c); then they go,
 * and the life's entry stands at the one before. So after each few the records are those of the
 * batches that are here, whatever is stated next. That reads the whole area for each few: what is
 * above a cut is as a rule what somebody signed in the moment it was put out. Which batches go is
 * stored with the first of their records: a crash in between repeats it, also when they may stay by
 * then. Until all of it is done nothing comes into the area.
 *
 * Where batches are folded, what they had replaced is left out by the marks of those that stay
 * (mark.h). No cut reaches below what is folded: who states one keeps to what it has reported
 * (report.c); should one be stated all the same, it acts at the stable cut. */
#include "protocol/database/cut/mend.h"

#include "protocol/base/mutant.h"
#include "protocol/database/compare/compare.h"
#include "protocol/database/compare/repair.h"

#define STATES       2u /* records of the greatest size for which there is room at once */
#define MARK_VERSION 2u
#define MARK_BYTES   9u /* u8 version, u64 number */

_Static_assert(FB_MEND_BATCHES + 1 <= FB_READ_ITEMS_MAX, "they are read at once");

static void later(fb_node *node, uint64_t ns)
{
    fb_timer_set(node, &node->database->mend->timer, fb_add_sat_u64(node->mono_ns, ns));
}

bool fb_mend_is_lost(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation,
                     uint64_t number, uint64_t claim, const uint8_t *hash)
{
    const fb_area *a = fb_area_get(node, area);
    /* What a member said to hold is not taken back: nothing depends on a right to say it. */
    if (a->kind == FB_AREA_REPORTS) return false;
    if (number <= fb_fold_cut(node, area, signer, incarnation)) return false;
    const fb_signed batch = {.claim = claim,
                             .area = a->id,
                             .own_area = a->kind == FB_AREA_SPACE,
                             .incarnation = incarnation,
                             .number = number,
                             .hash = hash};
    return fb_space_is_lost(node, a->space, signer, &batch);
}

bool fb_mend_ends(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation,
                  uint64_t batch, uint64_t claim)
{
    const fb_area *a = fb_area_get(node, area);
    const fb_signed next = {.claim = claim,
                            .area = a->id,
                            .own_area = a->kind == FB_AREA_SPACE,
                            .incarnation = incarnation,
                            .number = batch + 1};
    return a->kind != FB_AREA_REPORTS && fb_space_is_lost(node, a->space, signer, &next);
}

/* A head that is above a cut. */
static uint32_t bitten(const fb_node *node, uint32_t area)
{
    for (uint32_t at = fb_area_get(node, area)->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        uint32_t entry = at - 1;
        at = v->next;
        if (v->closed || v->batch == 0) continue;
        if (fb_mend_is_lost(node, area, v->node, v->incarnation, v->batch, v->claim, v->hash))
            return entry;
    }
    return FB_NONE;
}

uint64_t fb_mend_limit(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation)
{
    const fb_area *a = fb_area_get(node, area);
    if (a->kind == FB_AREA_REPORTS) return UINT64_MAX;
    return fb_space_limit(node, a->space, signer, a->id, a->kind == FB_AREA_SPACE, incarnation);
}

/* Claims that nobody will ever serve. */
static void clip_claims(fb_node *node, uint32_t space)
{
    for (uint32_t i = 0; i < node->options.sizes.vector_entries; i++) {
        const fb_wanted *w = fb_wanted_get(node, i);
        if (!w->used) continue;
        if (fb_area_get(node, w->area)->space != space) continue;
        if (fb_mend_limit(node, w->area, w->node, w->incarnation) >= w->batch) continue;
        fb_wanted_satisfy(node, w->area, w->node, w->incarnation, UINT64_MAX, false);
    }
}

void fb_database_cuts_changed(fb_node *node, uint32_t space)
{
    bool any = false;
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        fb_area *area = fb_area_get(node, at - 1);
        uint32_t index = at - 1;
        at = area->next;
        if (bitten(node, index) == FB_NONE) continue;
        if (!MUTANT(CUT_TAKES_NOTHING_BACK, true, false)) continue;
        area->mending = true;
        fb_fold_mended(node, index);
        any = true;
    }
    clip_claims(node, space);
    if (any) later(node, 0);
}

void fb_mend_started(fb_node *node)
{
    if (node->database->mend->marked != 0) later(node, 0);
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (fb_space_exists(node, i) && fb_space_has_cuts(node, i)) {
            fb_database_cuts_changed(node, i);
        }
    }
}

static void mend_due(fb_node *node, uint32_t index)
{
    (void)index;
    fb_mend_go(node);
}

void fb_mend_layout(fb_node *node, fb_arena *arena)
{
    struct fb_mend *m = fb_arena_take(arena, 1, sizeof *m);
    size_t most = node->options.sizes.write_set_bytes / 4;
    if (most > FB_RECORD_BYTES_MAX_STORED) most = FB_RECORD_BYTES_MAX_STORED;
    uint8_t *states = fb_arena_take(arena, STATES * most, 1);
    fb_timer_register(node, FB_TIMER_MEND, mend_due, 1);
    if (node->database == NULL) return;
    m->states = states;
    m->states_cap = STATES * most;
    node->database->mend = m;
}

void fb_mend_reset(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    m->phase = FB_MEND_IDLE;
    m->busy = false;
    m->marked = m->end_w = 0;
    fb_timer_init(&m->timer, FB_TIMER_MEND, 0);
}

fb_op *fb_mend_begin(fb_node *node, fb_op_run run, size_t bytes, size_t entries)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, run, (uint32_t)bytes, (uint32_t)entries);
    if (op == NULL) {
        later(node, FB_MEND_RETRY_NS);
        return NULL;
    }
    *(uint64_t *)fb_op_context(op) = m->serial;
    m->busy = true;
    return op;
}

bool fb_mend_is_current(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (*(const uint64_t *)fb_op_context(op) != m->serial) return false;
    m->busy = false;
    if (fb_op_status(op) == FB_OK) return true;
    later(node, FB_MEND_RETRY_NS);
    return false;
}

/* The batches that go. */

/* So many at most: with their marks they are taken out in one operation. */
static uint64_t batches_max(const fb_node *node)
{
    uint64_t most = (fb_op_write_entries_max(node) - 8) / 2;
    return most < FB_MEND_BATCHES ? most : FB_MEND_BATCHES;
}

/* The next one down of the life that is taken back; false: it is not the one expected, or is
 * damaged. */
static bool read_batch(const fb_node *node, const fb_op *op, uint32_t at, uint64_t number,
                       fb_batch *out)
{
    if (at >= fb_op_range_count(node, op, 0)) return false;
    fb_read_entry entry = fb_op_range_entry(node, op, 0, at);
    return entry.value.len == entry.value_len && entry.key.len == FB_BATCH_KEY_BYTES &&
           fb_load_be64(entry.key.p + FB_BATCH_KEY_BYTES - 8) == number &&
           fb_batch_decode(entry.value, out, node->database->changes) == FB_OK;
}

/* The batch goes with those behind it. False: there is no room for its records. */
static bool take_batch(fb_node *node, const fb_batch *batch)
{
    struct fb_mend *m = node->database->mend;
    uint32_t count = m->count;
    for (uint32_t i = 0; i < batch->count; i++) {
        fb_id record = node->database->changes[i].record;
        bool known = false;
        for (uint32_t k = 0; k < count && !known; k++) known = fb_id_equal(m->records[k], record);
        if (known) continue;
        if (count == FB_BATCH_CHANGES_MAX) return false;
        m->records[count++] = record;
    }
    m->count = count;
    m->first = batch->number;
    m->first_seq = batch->first_seq;
    m->has_previous = batch->has_previous;
    m->previous_incarnation = batch->previous_incarnation;
    memcpy(m->previous_hash, batch->previous_hash, 32);
    return true;
}

/* Does the batch go as well that is the one before those that go? Of those that are marked none is
 * joined by another one, though it may be above a cut by now: the mark would say no more where they
 * end. */
static bool goes(const fb_node *node, const fb_batch *batch)
{
    const struct fb_mend *m = node->database->mend;
    if (m->marked != 0) return batch->number >= m->marked;
    return fb_mend_is_lost(node, m->area, m->signer, m->incarnation, batch->number,
                           fb_batch_claim(batch, m->signer), m->previous_hash);
}

static void read_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!fb_mend_is_current(node, op)) return;
    fb_batch batch;
    m->count = m->at = 0;
    if (!read_batch(node, op, 0, m->last, &batch)) {
        fb_log(node, FB_LOG_ERROR, "a batch above a cut is not here any more: its changes stay",
               (fb_span){NULL, 0});
        fb_area_get(node, m->area)->mending = false;
        m->marked = 0;
        m->phase = FB_MEND_IDLE;
        later(node, FB_MEND_RETRY_NS);
        return;
    }
    (void)take_batch(node, &batch); /* one alone has room */
    /* The one before is read as well: what its signer acted under is what the life stands at. */
    uint32_t at = 1;
    bool whole = fb_op_range_whole(node, op, 0), before = false;
    while (m->first > 1 && (before = read_batch(node, op, at, m->first - 1, &batch))) {
        bool next = whole || at + 1 < fb_op_range_count(node, op, 0);
        if (!next || at == batches_max(node) || !goes(node, &batch)) break;
        if (!take_batch(node, &batch)) break;
        at++;
        before = false;
    }
    m->claim_before = before ? fb_batch_claim(&batch, m->signer) : FB_CLAIM_FIRST;
    m->phase = FB_MEND_SCAN;
    m->from_len = 0;
    fb_mend_go(node);
}

static void begin_read(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = fb_mend_begin(node, read_run, 0, 0);
    if (op == NULL) return;
    uint8_t low[FB_BATCH_KEY_BYTES], high[FB_BATCH_KEY_BYTES + 1];
    uint32_t local = fb_area_get(node, m->area)->local, most = (uint32_t)batches_max(node);
    uint64_t least = m->last > most ? m->last - most : 1;
    fb_span to = fb_key_batch(high, local, m->signer, m->incarnation, m->last);
    high[to.len] = 0; /* right behind it */
    /* Two have room, however long they are. */
    fb_op_read_range(op, fb_key_batch(low, local, m->signer, m->incarnation, least),
                     fb_span_of(high, to.len + 1), FB_BATCH_BYTES_MAX, most + 1,
                     2 * (FB_BATCH_BYTES_MAX + 2 * FB_BATCH_KEY_BYTES), true);
    fb_op_issue(node, op);
}

/* Which batches go, for the next life. */

static fb_span mark_key(const fb_node *node, uint8_t key[FB_MENDING_KEY_BYTES])
{
    const struct fb_mend *m = node->database->mend;
    return fb_key_mending(key, fb_area_get(node, m->area)->local, m->signer, m->incarnation);
}

static void put_mark(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    uint8_t key[FB_MENDING_KEY_BYTES], value[MARK_BYTES];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, MARK_VERSION);
    fb_write_u64(&w, m->first);
    fb_put(node, mark_key(node, key), fb_writer_span(&w));
    m->marked = m->first;
}

fb_status fb_mend_load(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       fb_span value)
{
    struct fb_mend *m = node->database->mend;
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    uint64_t batch = fb_read_u64(&r);
    if (!fb_reader_done(&r)) return FB_ERR_STORE_DAMAGED;
    if (version != MARK_VERSION) return FB_ERR_VERSION_NEWER;
    uint32_t entry = fb_vector_find(node, area, peer, incarnation);
    if (m->marked != 0 || entry == FB_NONE || batch == 0 ||
        fb_vector_get(node, entry)->batch < batch) {
        return FB_ERR_STORE_DAMAGED;
    }
    m->marked = batch;
    m->area = area;
    m->entry = entry;
    fb_area_get(node, area)->mending = true;
    return FB_OK;
}

/* The record as it is from now on. */

static fb_status stage_record(fb_node *node, const fb_reads *reads)
{
    struct fb_mend *m = node->database->mend;
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    uint32_t place = fb_stage_area(node, m->area);
    fb_id id = m->records[m->at + m->done];
    fb_span state = fb_mend_state(m, m->done);
    uint32_t local = fb_area_get(node, m->area)->local;
    fb_record before, after;
    FB_TRY(fb_stage_record(node, reads, m->area, id, &before));
    FB_TRY(fb_record_decode(state, &after));
    fb_record_walk walk = fb_record_walk_of(&before);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        for (uint32_t i = 0; i < field.count; i++) {
            fb_sibling sibling = fb_record_sibling(&field, i);
            if (!sibling.apart || fb_mend_lives_apart(node, m->done, field.name, sibling.dot)) {
                continue;
            }
            uint8_t key[FB_FIELD_KEY_BYTES_MAX], bytes[FB_DOT_BYTES];
            fb_writer w = fb_writer_of(bytes, sizeof bytes);
            fb_write_dot(&w, sibling.dot);
            fb_stage_delete(node, fb_key_field(key, local, id, field.name, bytes));
        }
    }
    int64_t stamp;
    fb_merged merged = {.stored = state,
                        .empty = fb_record_is_empty(&after),
                        .values = fb_record_visible(&after, INT64_MAX, &stamp) ? 1 : 0};
    memcpy(merged.fingerprint, after.fingerprint, sizeof merged.fingerprint);
    return fb_stage_rewrite(node, reads, place, id, &merged,
                            &stage->changes[stage->change_count++]);
}

static void observe_mended(fb_node *node)
{
    const struct fb_mend *m = node->database->mend;
    uint8_t bytes[32];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, fb_area_get(node, m->area)->id);
    fb_write_id(&w, m->records[m->at + m->done]);
    fb_observe(node, FB_FACT_MENDED, fb_w_building(node), 0, fb_writer_span(&w));
}

static void commit_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!fb_mend_is_current(node, op)) return;
    const fb_reads reads = {op, 0, fb_area_get(node, m->area)->root_info.levels};
    fb_status status = stage_record(node, &reads);
    size_t bytes, entries;
    fb_stage_size(node, &bytes, &entries);
    size_t mark = m->marked != 0 ? 0 : fb_write_entry_bytes(FB_MENDING_KEY_BYTES, MARK_BYTES);
    if (status != FB_OK || bytes + mark > fb_op_write_bytes(op) ||
        entries + 1 > fb_op_write_entries(op)) {
        later(node, FB_MEND_RETRY_NS);
        return;
    }
    fb_stage_commit(node);
    if (MUTANT(MENDED_HALF_FORGOTTEN, m->marked == 0, false)) put_mark(node);
    observe_mended(node);
    if (++m->done == m->group) {
        m->at += m->group;
        m->phase = m->at < m->count ? FB_MEND_SCAN : FB_MEND_REMOVE;
        m->from_len = 0;
    }
    fb_mend_go(node);
}

static void begin_commit(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = fb_mend_begin(node, commit_run, fb_op_write_bytes_max(node) - 1,
                              fb_op_write_entries_max(node) - 1);
    if (op == NULL) return;
    uint32_t next = 0;
    fb_reads reads;
    if (!fb_stage_read(node, op, m->area, m->records[m->at + m->done], &next, &reads)) {
        fb_op_abandon(node, op);
        m->busy = false;
        later(node, FB_MEND_RETRY_NS);
        return;
    }
    fb_op_issue(node, op);
}

/* The batches go, and their life stands at the one before. */

static void observe_cut(fb_node *node)
{
    const struct fb_mend *m = node->database->mend;
    uint8_t bytes[48];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, fb_area_get(node, m->area)->id);
    fb_write_id(&w, m->signer);
    fb_write_u64(&w, m->incarnation);
    fb_write_u64(&w, m->first_seq - 1);
    fb_observe(node, FB_FACT_CUT, fb_w_building(node), m->first, fb_writer_span(&w));
}

static void remove_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!fb_mend_is_current(node, op)) return;
    fb_area *area = fb_area_get(node, m->area);
    for (uint64_t number = m->last; number >= m->first; number--) {
        uint8_t key[FB_BATCH_KEY_BYTES];
        fb_span batch = fb_key_batch(key, area->local, m->signer, m->incarnation, number);
        fb_delete(node, batch);
        /* One of an earlier pass, from before its member was cut. */
        key[0] = FB_TAG_MARK;
        fb_delete(node, batch);
    }
    if (m->marked == m->first) {
        uint8_t mark[FB_MENDING_KEY_BYTES];
        fb_delete(node, mark_key(node, mark));
        m->marked = 0;
    }
    area->mended_w = fb_w_building(node);
    fb_vector *v = fb_vector_get(node, m->entry);
    v->batch = m->first - 1;
    v->last_seq = m->first_seq - 1;
    v->claim = m->claim_before;
    if (m->first > 1) {
        memcpy(v->hash, m->previous_hash, 32);
        fb_vector_put(node, m->entry);
    } else {
        fb_read_entry value;
        fb_life life;
        fb_vector_erase(node, m->entry);
        if (m->has_previous && fb_op_value(node, op, 0, &value) &&
            fb_life_decode(value.value, &life) == FB_OK) {
            fb_vector_reopen(node, m->area, m->signer, m->previous_incarnation, &life);
        }
    }
    /* What folded batches had replaced is not known of all that was merged anew. */
    if (area->skipped) fb_doubt(node, m->area, true);
    observe_cut(node);
    fb_count(node, FB_COUNTER_BATCHES_CUT, m->last - m->first + 1);
    /* Its numbers may not be given once more: the next life follows what is left. */
    if (area->own == m->entry + 1) m->end_w = fb_w_building(node);
    m->phase = FB_MEND_IDLE;
    fb_mend_go(node);
}

static void begin_remove(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = fb_mend_begin(node, remove_run, fb_op_write_bytes_max(node) - 1,
                              fb_op_write_entries_max(node) - 1);
    if (op == NULL) return;
    if (m->first == 1 && m->has_previous) {
        uint8_t key[FB_VECTOR_KEY_BYTES];
        fb_op_read_key(op,
                       fb_key_vector(key, true, fb_area_get(node, m->area)->local, m->signer,
                                     m->previous_incarnation),
                       FB_VECTOR_VALUE_BYTES);
    }
    fb_op_issue(node, op);
}

static void take_up(fb_node *node, uint32_t area, uint32_t entry)
{
    struct fb_mend *m = node->database->mend;
    const fb_vector *v = fb_vector_get(node, entry);
    m->area = area;
    m->entry = entry;
    m->signer = v->node;
    m->incarnation = v->incarnation;
    m->last = v->batch;
    m->serial = ++node->database->serial;
    m->phase = FB_MEND_READ;
}

static bool find_next(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    if (m->marked != 0) {
        take_up(node, m->area, m->entry);
        return true;
    }
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        fb_area *area = fb_area_get(node, i);
        if (!area->used || !area->mending) continue;
        if (fb_report_is_awaited(node, area->space)) {
            later(node, FB_MEND_RETRY_NS);
            continue;
        }
        uint32_t entry = bitten(node, i);
        if (entry == FB_NONE) {
            area->mending = false;
            fb_area_touch(node, i);
            fb_fetch_go(node, i);
            continue;
        }
        /* What is not sealed yet is in no batch. */
        if (area->builder != 0) {
            later(node, FB_MEND_RETRY_NS);
            continue;
        }
        take_up(node, i, entry);
        return true;
    }
    return false;
}

void fb_mend_go(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    if (m->busy) return;
    if (m->phase == FB_MEND_IDLE && !find_next(node)) return;
    switch (m->phase) {
    case FB_MEND_READ:
        begin_read(node);
        break;
    case FB_MEND_SCAN:
        fb_mend_scan(node);
        break;
    case FB_MEND_VALUES:
        fb_mend_values(node);
        break;
    case FB_MEND_COMMIT:
        begin_commit(node);
        break;
    case FB_MEND_REMOVE:
        begin_remove(node);
        break;
    case FB_MEND_IDLE:
        break;
    }
}

void fb_mend_durable(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    if (m->end_w == 0 || m->end_w > fb_w_durable(node) || m->phase != FB_MEND_IDLE) return;
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        if (fb_area_get(node, i)->used && fb_area_get(node, i)->mending) return;
    }
    m->end_w = 0;
    fb_log(node, FB_LOG_INFO, "changes of this node were cut: it begins a new life",
           (fb_span){NULL, 0});
    fb_incarnation_end(node, FB_ERR_BATCH_CUT);
}
