/* SPDX-License-Identifier: Apache-2.0 */
/* What a cut takes away is taken back, and so is what somebody wrote who is no member any more.
 * DESIGN 3.1, Revocation: above the cut everything is refused everywhere, and what only a cut
 * change had replaced lives again. (Statements stay, they are judged: space/judge.h.)
 *
 * One batch after another, the last one of a life first: each record that it touched is merged anew
 * from all other batches of the area, as if it had never come; then the batch goes, and the life's
 * entry stands at the one before. So after each the records are those of the batches that are here,
 * whatever is stated next. That reads the whole area for each such record: what is above a cut is
 * as a rule what somebody signed in the moment it was put out. Which batch goes is stored
 * with the first of its records: a crash in between repeats it, also when it may stay by then.
 * Until all of it is done nothing comes into the area.
 *
 * Where batches are folded, what they had replaced is left out by the marks of those that stay
 * (mark.h). No cut reaches below what is folded: who states one keeps to what it has reported
 * (report.c); should one be stated all the same, it acts at the stable cut. */
#include "protocol/base/mutant.h"
#include "protocol/database/batch/mark.h"
#include "protocol/database/compare/compare.h"
#include "protocol/database/compare/repair.h"
#include "protocol/database/state.h"

#define LIVES      128u
#define RETRY_NS   UINT64_C(2000000)
#define PAGE_MAX   64u
#define MARK_BYTES 9u /* u8 version, u64 number */

enum { MEND_IDLE, MEND_READ, MEND_SCAN, MEND_VALUES, MEND_COMMIT, MEND_REMOVE };

typedef struct closed_life {
    fb_id node;
    uint64_t incarnation;
} closed_life;

struct fb_mend {
    uint32_t phase;
    bool busy; /* an operation of it runs */
    fb_timer timer;
    uint64_t serial;
    bool marked;    /* the store says which batch goes */
    bool goes_on;   /* and it was begun in an earlier life */
    uint64_t end_w; /* then this life ends, which was cut itself; 0: it does not */
    /* The batch that goes. */
    uint32_t area;
    uint32_t entry;
    fb_id signer;
    uint64_t incarnation, batch, first_seq;
    bool has_previous;
    uint64_t previous_incarnation;
    uint8_t previous_hash[32];
    uint64_t claim_before;
    uint32_t count, at;
    fb_id records[FB_BATCH_CHANGES_MAX];
    /* The record at hand: as merged so far. */
    uint8_t *state;
    size_t state_len;
    uint8_t from[FB_BATCH_KEY_BYTES + 1];
    size_t from_len;
    uint32_t life_count;
    closed_life lives[LIVES]; /* closed ones that the page names */
    uint32_t page;            /* batches of the page that they are all of: those are merged */
};

static void go(fb_node *node);

static void later(fb_node *node, uint64_t ns)
{
    fb_timer_set(node, &node->database->mend->timer, fb_add_sat_u64(node->mono_ns, ns));
}

static bool is_lost(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation,
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

/* A head that is above a cut. */
static uint32_t bitten(const fb_node *node, uint32_t area)
{
    for (uint32_t at = fb_area_get(node, area)->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        uint32_t entry = at - 1;
        at = v->next;
        if (v->closed || v->batch == 0) continue;
        if (is_lost(node, area, v->node, v->incarnation, v->batch, v->claim, v->hash)) return entry;
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
    if (node->database->mend->goes_on) later(node, 0);
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (fb_space_exists(node, i) && fb_space_has_cuts(node, i)) {
            fb_database_cuts_changed(node, i);
        }
    }
}

static void mend_due(fb_node *node, uint32_t index)
{
    (void)index;
    go(node);
}

void fb_mend_layout(fb_node *node, fb_arena *arena)
{
    struct fb_mend *m = fb_arena_take(arena, 1, sizeof *m);
    size_t most = node->options.sizes.write_set_bytes / 4;
    if (most > FB_RECORD_BYTES_MAX_STORED) most = FB_RECORD_BYTES_MAX_STORED;
    uint8_t *state = fb_arena_take(arena, most, 1);
    fb_timer_register(node, FB_TIMER_MEND, mend_due, 1);
    if (node->database == NULL) return;
    m->state = state;
    node->database->mend = m;
}

void fb_mend_reset(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    m->phase = MEND_IDLE;
    m->busy = m->marked = m->goes_on = false;
    m->end_w = 0;
    fb_timer_init(&m->timer, FB_TIMER_MEND, 0);
}

/* An operation for the next thing to be done; NULL: later. */
static fb_op *begin(fb_node *node, fb_op_run run, size_t bytes, size_t entries)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, run, (uint32_t)bytes, (uint32_t)entries);
    if (op == NULL) {
        later(node, RETRY_NS);
        return NULL;
    }
    *(uint64_t *)fb_op_context(op) = m->serial;
    m->busy = true;
    return op;
}

/* Is the operation still about what is being done? */
static bool is_current(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (*(const uint64_t *)fb_op_context(op) != m->serial) return false;
    m->busy = false;
    if (fb_op_status(op) == FB_OK) return true;
    later(node, RETRY_NS);
    return false;
}

/* The batch that goes. */

static void read_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!is_current(node, op)) return;
    fb_read_entry entry;
    fb_batch batch;
    fb_change *changes = node->database->changes;
    if (!fb_op_value(node, op, 0, &entry) || entry.value.len != entry.value_len ||
        fb_batch_decode(entry.value, &batch, changes) != FB_OK) {
        fb_log(node, FB_LOG_ERROR, "a batch above a cut is not here any more: its changes stay",
               (fb_span){NULL, 0});
        fb_area_get(node, m->area)->mending = false;
        m->phase = MEND_IDLE;
        later(node, RETRY_NS);
        return;
    }
    m->first_seq = batch.first_seq;
    m->has_previous = batch.has_previous;
    m->previous_incarnation = batch.previous_incarnation;
    memcpy(m->previous_hash, batch.previous_hash, 32);
    m->count = m->at = 0;
    for (uint32_t i = 0; i < batch.count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < m->count; k++) {
            known = known || fb_id_equal(m->records[k], changes[i].record);
        }
        if (!known) m->records[m->count++] = changes[i].record;
    }
    m->claim_before = FB_CLAIM_FIRST;
    fb_batch before;
    if (m->batch > 1 && fb_op_value(node, op, 1, &entry) && entry.value.len == entry.value_len &&
        fb_batch_decode(entry.value, &before, changes) == FB_OK) {
        m->claim_before = fb_batch_claim(&before, m->signer);
    }
    m->phase = MEND_SCAN;
    m->from_len = 0;
    go(node);
}

static void begin_read(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = begin(node, read_run, 0, 0);
    if (op == NULL) return;
    uint8_t key[FB_BATCH_KEY_BYTES];
    uint32_t local = fb_area_get(node, m->area)->local;
    fb_op_read_key(op, fb_key_batch(key, local, m->signer, m->incarnation, m->batch),
                   FB_BATCH_BYTES_MAX);
    if (m->batch > 1) {
        fb_op_read_key(op, fb_key_batch(key, local, m->signer, m->incarnation, m->batch - 1),
                       FB_BATCH_BYTES_MAX);
    }
    fb_op_issue(node, op);
}

/* The record at hand, from all changes that stay. */

typedef struct merge_at {
    fb_node *node;
    fb_op *op;
    uint32_t first_life; /* item of the first closed life */
    fb_dot dot;          /* of the change being merged */
    bool whole;          /* all batches are merged */
    const fb_mark *mark; /* of the batch, and where the bits of the change begin in it */
    uint32_t bit;
    const fb_change *change;
} merge_at;

static bool covered(void *user, const uint8_t bytes[FB_DOT_BYTES])
{
    const merge_at *at = user;
    const struct fb_mend *m = at->node->database->mend;
    fb_dot dot = fb_dots_at((fb_dots){bytes, 1}, 0);
    if (!at->whole && fb_dot_same_life(dot, at->dot)) return dot.seq <= at->dot.seq;
    if (dot.incarnation == m->incarnation && fb_id_equal(dot.node, m->signer)) {
        if (dot.seq >= m->first_seq) return false;
    }
    /* Batches are read in the order of their keys: what stands behind comes yet, and is taken out
     * of what is kept then. */
    int order = at->whole ? -1 : fb_id_compare(dot.node, at->dot.node);
    if (order > 0 || (order == 0 && dot.incarnation > at->dot.incarnation)) return false;
    uint32_t entry = fb_vector_find(at->node, m->area, dot.node, dot.incarnation);
    if (entry != FB_NONE) return dot.seq <= fb_vector_get(at->node, entry)->last_seq;
    for (uint32_t i = 0; i < m->life_count; i++) {
        if (m->lives[i].incarnation != dot.incarnation ||
            !fb_id_equal(m->lives[i].node, dot.node)) {
            continue;
        }
        fb_read_entry value;
        fb_life life;
        return fb_op_value(at->node, at->op, at->first_life + i, &value) &&
               fb_life_decode(value.value, &life) == FB_OK && dot.seq <= life.last_seq;
    }
    return false;
}

/* False when there are more than are kept. */
static bool add_lives(fb_node *node, fb_dots dots)
{
    struct fb_mend *m = node->database->mend;
    for (uint32_t i = 0; i < dots.count; i++) {
        fb_dot dot = fb_dots_at(dots, i);
        if (fb_vector_find(node, m->area, dot.node, dot.incarnation) != FB_NONE) continue;
        bool known = false;
        for (uint32_t k = 0; k < m->life_count; k++) {
            known = known || (m->lives[k].incarnation == dot.incarnation &&
                              fb_id_equal(m->lives[k].node, dot.node));
        }
        if (known) continue;
        if (m->life_count == LIVES) return false;
        m->lives[m->life_count++] = (closed_life){dot.node, dot.incarnation};
    }
    return true;
}

/* May a batch have something about the record at hand? Nearly none has: its changes are not read
 * for that, only where each begins. */
static bool may_touch(const fb_node *node, fb_read_entry entry)
{
    const struct fb_mend *m = node->database->mend;
    fb_reader r = fb_reader_of(entry.value);
    fb_read_u8(&r);
    fb_read_span16(&r);
    fb_read_bytes(&r, 64);
    while (fb_reader_left(&r) != 0) {
        fb_reader item = fb_reader_of(fb_read_span32(&r));
        fb_read_u8(&item);
        if (fb_id_equal(fb_read_id(&item), m->records[m->at])) return true;
    }
    return r.failed;
}

/* One batch of a page: whose it is, and whether it stays. All but the one that goes stay here, also
 * those whose turn comes next: they may be let stay by what is stated before that, and then the
 * record has to hold them. */
static bool take_batch(fb_node *node, fb_read_entry entry, fb_batch *batch, fb_id *signer)
{
    const struct fb_mend *m = node->database->mend;
    fb_reader k = fb_reader_of(entry.key);
    fb_read_bytes(&k, 5);
    *signer = fb_read_id(&k);
    if (entry.value.len != entry.value_len ||
        fb_batch_decode(entry.value, batch, node->database->changes) != FB_OK) {
        return false;
    }
    if (MUTANT(NEXT_TAKEN_AS_GONE, false, true)) {
        return !is_lost(node, m->area, *signer, batch->incarnation, batch->number,
                        fb_batch_claim(batch, *signer), NULL);
    }
    return batch->number != m->batch || batch->incarnation != m->incarnation ||
           !fb_id_equal(*signer, m->signer);
}

/* What the mark says to be dead of the change that was merged last. */
static bool is_dead(void *user, fb_span name, const uint8_t bytes[FB_DOT_BYTES])
{
    const merge_at *at = user;
    fb_dot dot = fb_dots_at((fb_dots){bytes, 1}, 0);
    if (dot.seq != at->dot.seq || !fb_dot_same_life(dot, at->dot)) return false;
    uint32_t bit = at->bit;
    if (name.len == 0) return fb_mark_has(at->mark->dead, bit);
    fb_change_walk walk = fb_change_walk_of(at->change);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        if (field.op != FB_FIELD_SET) continue;
        bit++;
        if (fb_span_equal(field.name, name)) return fb_mark_has(at->mark->dead, bit);
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

/* Takes out of the record at hand what is gone, and replaced dots that are kept for changes which
 * are all here. */
static void prune(fb_node *node, merge_at *at, fb_gone gone)
{
    struct fb_mend *m = node->database->mend;
    const fb_merge_ops ops = {.user = at, .covered = covered, .draft = true};
    fb_record record;
    fb_merged merged;
    uint32_t dropped;
    if (fb_record_decode(fb_span_of(m->state, m->state_len), &record) != FB_OK ||
        fb_record_prune(m->records[m->at], &record, gone, at, &ops, node->database->stage.merged,
                        node->database->stage.scratch, node->database->record_max, &merged,
                        &dropped) != FB_OK ||
        dropped == 0) {
        return;
    }
    m->state_len = merged.stored.len;
    memcpy(m->state, merged.stored.p, merged.stored.len);
}

static void merge_batch(fb_node *node, merge_at *at, const fb_batch *batch, fb_id signer)
{
    struct fb_mend *m = node->database->mend;
    const fb_change *changes = node->database->changes;
    const fb_merge_ops ops = {.user = at, .covered = covered, .draft = true};
    bool marked = at->mark->bits == fb_mark_bits(batch, changes);
    uint32_t next_bit = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        at->bit = next_bit;
        at->change = &changes[i];
        next_bit += fb_mark_bits_of(&changes[i]);
        if (!fb_id_equal(changes[i].record, m->records[m->at])) continue;
        at->dot = (fb_dot){signer, batch->incarnation, batch->first_seq + i};
        fb_record record;
        fb_merged merged;
        if (fb_record_decode(fb_span_of(m->state, m->state_len), &record) != FB_OK ||
            fb_record_merge(&record, &changes[i], at->dot, &ops, node->database->stage.merged,
                            node->database->stage.scratch, node->database->record_max,
                            &merged) != FB_OK) {
            continue; /* larger than a record may be: no order of coming would have taken it */
        }
        m->state_len = merged.stored.len;
        memcpy(m->state, merged.stored.p, merged.stored.len);
        if (MUTANT(MARKS_FORGOTTEN, marked, false)) prune(node, at, is_dead);
    }
}

/* Reads a page of the area's batches: false when no operation is free. */
static void begin_page(fb_node *node, fb_op_run run, size_t bytes, size_t entries)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = begin(node, run, bytes, entries);
    if (op == NULL) return;
    static const fb_id zero, last = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    uint8_t low[FB_BATCH_KEY_BYTES], high[FB_BATCH_KEY_BYTES];
    uint32_t local = fb_area_get(node, m->area)->local;
    fb_span from =
        m->from_len != 0 ? fb_span_of(m->from, m->from_len) : fb_key_batch(low, local, zero, 0, 0);
    fb_span to = fb_key_batch(high, local, last, UINT64_MAX, UINT64_MAX);
    fb_op_read_range(op, from, to, FB_BATCH_BYTES_MAX, PAGE_MAX, node->options.sizes.call_bytes,
                     false);
    /* There is no mark without its batch, so these reach as far. */
    uint8_t marks[2][FB_BATCH_KEY_BYTES + 1];
    memcpy(marks[0], from.p, from.len);
    memcpy(marks[1], to.p, to.len);
    marks[0][0] = marks[1][0] = FB_TAG_MARK;
    fb_op_read_range(op, fb_span_of(marks[0], from.len), fb_span_of(marks[1], to.len),
                     FB_MARK_BYTES_MAX, PAGE_MAX, node->options.sizes.operation_bytes / 4, false);
    fb_op_issue(node, op);
}

/* Lives of the dots that the record at hand keeps. */
static void add_kept_lives(fb_node *node)
{
    const struct fb_mend *m = node->database->mend;
    fb_record record;
    fb_record_field field;
    if (fb_record_decode(fb_span_of(m->state, m->state_len), &record) != FB_OK) return;
    (void)add_lives(node, record.existence_pending);
    (void)add_lives(node, record.whole_pending);
    fb_record_walk walk = fb_record_walk_of(&record);
    while (fb_record_next(&walk, &field)) (void)add_lives(node, field.pending);
}

/* So many batches of the page are done: the next one, or what follows the last. */
static bool page_over(fb_node *node, fb_op *op, uint32_t count)
{
    struct fb_mend *m = node->database->mend;
    if (count == fb_op_range_count(node, op, 0) && fb_op_range_whole(node, op, 0)) {
        m->from_len = 0;
        return true;
    }
    fb_span after =
        count > 0 ? fb_op_range_entry(node, op, 0, count - 1).key : fb_op_range_next(node, op, 0);
    memcpy(m->from, after.p, after.len);
    m->from[after.len] = 0;
    m->from_len = after.len + 1;
    return false;
}

/* The closed lives that one batch names; false: no place for all of them. */
static bool page_lives(fb_node *node, fb_read_entry entry)
{
    const struct fb_mend *m = node->database->mend;
    fb_batch batch;
    fb_id signer;
    if (!may_touch(node, entry) || !take_batch(node, entry, &batch, &signer)) return true;
    for (uint32_t k = 0; k < batch.count; k++) {
        const fb_change *change = &node->database->changes[k];
        if (!fb_id_equal(change->record, m->records[m->at])) continue;
        if (!add_lives(node, change->replaced)) return false;
        fb_change_walk walk = fb_change_walk_of(change);
        fb_change_field field;
        while (fb_change_next(&walk, &field)) {
            if (!add_lives(node, field.replaced)) return false;
        }
    }
    return true;
}

static void scan_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!is_current(node, op)) return;
    uint32_t count = fb_op_range_count(node, op, 0);
    if (fb_op_round(op) == 1) {
        m->life_count = 0;
        m->page = 0;
        while (m->page < count) {
            fb_read_entry entry = fb_op_range_entry(node, op, 0, m->page);
            if (fb_mark_is_unread(node, op, entry.key) || !page_lives(node, entry)) break;
            m->page++;
        }
        /* One that names more lives than are kept is merged with those there are. */
        if (m->page == 0 && count != 0) m->page = 1;
        if (m->page == count && fb_op_range_whole(node, op, 0)) add_kept_lives(node);
        for (uint32_t i = 0; i < m->life_count; i++) {
            uint8_t key[FB_VECTOR_KEY_BYTES];
            fb_op_read_key(op,
                           fb_key_vector(key, true, fb_area_get(node, m->area)->local,
                                         m->lives[i].node, m->lives[i].incarnation),
                           FB_VECTOR_VALUE_BYTES);
        }
        m->busy = true;
        fb_op_issue(node, op);
        return;
    }
    if (m->page > count) m->page = count;
    fb_mark mark;
    merge_at at = {.node = node, .op = op, .first_life = 2, .mark = &mark};
    for (uint32_t i = 0; i < m->page; i++) {
        fb_batch batch;
        fb_id signer;
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (!may_touch(node, entry) || !take_batch(node, entry, &batch, &signer)) continue;
        fb_mark_of(node, op, entry.key, &mark);
        merge_batch(node, &at, &batch, signer);
    }
    if (page_over(node, op, m->page)) {
        at.whole = true;
        prune(node, &at, nothing_dead);
        fb_record record;
        bool apart = fb_record_finish(m->records[m->at], m->state, m->state_len) == FB_OK &&
                     fb_record_decode(fb_span_of(m->state, m->state_len), &record) == FB_OK &&
                     record.apart != 0;
        m->phase = apart ? MEND_VALUES : MEND_COMMIT;
    }
    go(node);
}

/* Values that are stored apart and live (again): each is in its batch. */

static bool lives_apart(const fb_node *node, fb_span name, fb_dot dot)
{
    const struct fb_mend *m = node->database->mend;
    fb_record record;
    fb_record_field field;
    if (fb_record_decode(fb_span_of(m->state, m->state_len), &record) != FB_OK) return false;
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

static void values_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!is_current(node, op)) return;
    uint32_t count = fb_op_range_count(node, op, 0);
    uint32_t local = fb_area_get(node, m->area)->local;
    for (uint32_t i = 0; i < count; i++) {
        fb_batch batch;
        fb_id signer;
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (!take_batch(node, entry, &batch, &signer)) continue;
        for (uint32_t k = 0; k < batch.count; k++) {
            const fb_change *change = &node->database->changes[k];
            if (!fb_id_equal(change->record, m->records[m->at])) continue;
            fb_dot dot = {signer, batch.incarnation, batch.first_seq + k};
            fb_change_walk walk = fb_change_walk_of(change);
            fb_change_field field;
            while (fb_change_next(&walk, &field)) {
                if (field.op != FB_FIELD_SET || !lives_apart(node, field.name, dot)) continue;
                uint8_t key[FB_FIELD_KEY_BYTES_MAX], bytes[FB_DOT_BYTES];
                fb_writer w = fb_writer_of(bytes, sizeof bytes);
                fb_write_dot(&w, dot);
                fb_put(node, fb_key_field(key, local, m->records[m->at], field.name, bytes),
                       field.value);
            }
        }
    }
    if (page_over(node, op, count)) m->phase = MEND_COMMIT;
    go(node);
}

/* Which batch goes, for the next life. */

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
    fb_write_u8(&w, 1);
    fb_write_u64(&w, m->batch);
    fb_put(node, mark_key(node, key), fb_writer_span(&w));
    m->marked = true;
}

fb_status fb_mend_load(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       fb_span value)
{
    struct fb_mend *m = node->database->mend;
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    uint64_t batch = fb_read_u64(&r);
    if (!fb_reader_done(&r)) return FB_ERR_STORE_DAMAGED;
    if (version != 1) return FB_ERR_VERSION_NEWER;
    uint32_t entry = fb_vector_find(node, area, peer, incarnation);
    if (m->goes_on || entry == FB_NONE || fb_vector_get(node, entry)->batch != batch) {
        return FB_ERR_STORE_DAMAGED;
    }
    m->goes_on = m->marked = true;
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
    fb_id id = m->records[m->at];
    uint32_t local = fb_area_get(node, m->area)->local;
    fb_record before, after;
    FB_TRY(fb_stage_record(node, reads, m->area, id, &before));
    FB_TRY(fb_record_decode(fb_span_of(m->state, m->state_len), &after));
    fb_record_walk walk = fb_record_walk_of(&before);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        for (uint32_t i = 0; i < field.count; i++) {
            fb_sibling sibling = fb_record_sibling(&field, i);
            if (!sibling.apart || lives_apart(node, field.name, sibling.dot)) continue;
            uint8_t key[FB_FIELD_KEY_BYTES_MAX], bytes[FB_DOT_BYTES];
            fb_writer w = fb_writer_of(bytes, sizeof bytes);
            fb_write_dot(&w, sibling.dot);
            fb_stage_delete(node, fb_key_field(key, local, id, field.name, bytes));
        }
    }
    int64_t stamp;
    fb_merged merged = {.stored = fb_span_of(m->state, m->state_len),
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
    fb_write_id(&w, m->records[m->at]);
    fb_observe(node, FB_FACT_MENDED, fb_w_building(node), 0, fb_writer_span(&w));
}

static void commit_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!is_current(node, op)) return;
    const fb_reads reads = {op, 0, fb_area_get(node, m->area)->root_info.levels};
    fb_status status = stage_record(node, &reads);
    size_t bytes, entries;
    fb_stage_size(node, &bytes, &entries);
    size_t mark = m->marked ? 0 : fb_write_entry_bytes(FB_MENDING_KEY_BYTES, MARK_BYTES);
    if (status != FB_OK || bytes + mark > fb_op_write_bytes(op) ||
        entries + 1 > fb_op_write_entries(op)) {
        later(node, RETRY_NS);
        return;
    }
    fb_stage_commit(node);
    if (MUTANT(MENDED_HALF_FORGOTTEN, !m->marked, false)) put_mark(node);
    observe_mended(node);
    m->at++;
    m->phase = m->at < m->count ? MEND_SCAN : MEND_REMOVE;
    m->from_len = 0;
    go(node);
}

static void begin_commit(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op =
        begin(node, commit_run, fb_op_write_bytes_max(node) - 1, fb_op_write_entries_max(node) - 1);
    if (op == NULL) return;
    uint32_t next = 0;
    fb_reads reads;
    if (!fb_stage_read(node, op, m->area, m->records[m->at], &next, &reads)) {
        fb_op_abandon(node, op);
        m->busy = false;
        later(node, RETRY_NS);
        return;
    }
    fb_op_issue(node, op);
}

/* The batch goes, and its life stands at the one before. */

static void observe_cut(fb_node *node)
{
    const struct fb_mend *m = node->database->mend;
    uint8_t bytes[48];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, fb_area_get(node, m->area)->id);
    fb_write_id(&w, m->signer);
    fb_write_u64(&w, m->incarnation);
    fb_write_u64(&w, m->first_seq - 1);
    fb_observe(node, FB_FACT_CUT, fb_w_building(node), m->batch, fb_writer_span(&w));
}

static void remove_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!is_current(node, op)) return;
    uint8_t key[FB_BATCH_KEY_BYTES];
    fb_area *area = fb_area_get(node, m->area);
    fb_delete(node, fb_key_batch(key, area->local, m->signer, m->incarnation, m->batch));
    if (m->marked) {
        uint8_t mark[FB_MENDING_KEY_BYTES];
        fb_delete(node, mark_key(node, mark));
        m->marked = false;
    }
    /* One of an earlier pass, from before its member was cut. */
    key[0] = FB_TAG_MARK;
    fb_delete(node, fb_span_of(key, sizeof key));
    area->mended_w = fb_w_building(node);
    fb_vector *v = fb_vector_get(node, m->entry);
    v->batch = m->batch - 1;
    v->last_seq = m->first_seq - 1;
    v->claim = m->claim_before;
    if (m->batch > 1) {
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
    fb_count(node, FB_COUNTER_BATCHES_CUT, 1);
    /* Its numbers may not be given once more: the next life follows what is left. */
    if (area->own == m->entry + 1) m->end_w = fb_w_building(node);
    m->phase = MEND_IDLE;
    go(node);
}

static void begin_remove(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op =
        begin(node, remove_run, fb_op_write_bytes_max(node) - 1, fb_op_write_entries_max(node) - 1);
    if (op == NULL) return;
    if (m->batch == 1 && m->has_previous) {
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
    m->batch = v->batch;
    m->serial = ++node->database->serial;
    m->phase = MEND_READ;
}

static bool find_next(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    if (m->goes_on) {
        m->goes_on = false;
        take_up(node, m->area, m->entry);
        return true;
    }
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        fb_area *area = fb_area_get(node, i);
        if (!area->used || !area->mending) continue;
        if (fb_report_is_awaited(node, area->space)) {
            later(node, RETRY_NS);
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
            later(node, RETRY_NS);
            continue;
        }
        take_up(node, i, entry);
        return true;
    }
    return false;
}

static void go(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    if (m->busy) return;
    if (m->phase == MEND_IDLE && !find_next(node)) return;
    switch (m->phase) {
    case MEND_READ:
        begin_read(node);
        break;
    case MEND_SCAN:
        if (m->from_len == 0) m->state_len = 0;
        begin_page(node, scan_run, 0, 0);
        break;
    case MEND_VALUES:
        begin_page(node, values_run, fb_op_write_bytes_max(node) - 1,
                   fb_op_write_entries_max(node) - 1);
        break;
    case MEND_COMMIT:
        begin_commit(node);
        break;
    case MEND_REMOVE:
        begin_remove(node);
        break;
    default:
        break;
    }
}

void fb_mend_durable(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    if (m->end_w == 0 || m->end_w > fb_w_durable(node) || m->phase != MEND_IDLE) return;
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        if (fb_area_get(node, i)->used && fb_area_get(node, i)->mending) return;
    }
    m->end_w = 0;
    fb_log(node, FB_LOG_INFO, "changes of this node were cut: it begins a new life",
           (fb_span){NULL, 0});
    fb_incarnation_end(node, FB_ERR_BATCH_CUT);
}
