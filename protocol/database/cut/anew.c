/* SPDX-License-Identifier: Apache-2.0 */
/* The records of what is taken back (mend.c), merged from all batches that stay, as if the others
 * had never come. The area is read for that once, for as many records as there is room for. */
#include "protocol/base/mutant.h"
#include "protocol/database/batch/mark.h"
#include "protocol/database/compare/repair.h"
#include "protocol/database/cut/mend.h"

#define PAGE_MAX 64u

typedef struct merge_at {
    fb_node *node;
    fb_op *op;
    uint32_t first_life; /* item of the first closed life */
    uint32_t record;     /* place of the record among those at hand */
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
        if (m->life_count == FB_MEND_LIVES) return false;
        m->lives[m->life_count++] = (fb_mend_life){dot.node, dot.incarnation};
    }
    return true;
}

/* Its place among the records at hand, FB_NONE. */
static uint32_t at_hand(const struct fb_mend *m, fb_id record)
{
    for (uint32_t i = 0; i < m->group; i++) {
        if (fb_id_equal(m->records[m->at + i], record)) return i;
    }
    return FB_NONE;
}

/* May a batch have something about a record at hand? Nearly none has: its changes are not read
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
        if (at_hand(m, fb_read_id(&item)) != FB_NONE) return true;
    }
    return r.failed;
}

/* One batch of a page: whose it is, and whether it stays. All but those that go stay here, also
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
        return !fb_mend_is_lost(node, m->area, *signer, batch->incarnation, batch->number,
                                fb_batch_claim(batch, *signer), NULL);
    }
    return batch->number < m->first || batch->incarnation != m->incarnation ||
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

/* Puts what a record at hand is by now. When there is no room for all of them the last ones are
 * left for another reading; false: this one as well. The first always has room. */
static bool state_put(struct fb_mend *m, uint32_t at, fb_span state)
{
    size_t old = m->state_at[at + 1] - m->state_at[at];
    while (m->group > at + 1 && m->state_at[m->group] - old + state.len > m->states_cap) m->group--;
    if (m->state_at[m->group] - old + state.len > m->states_cap) {
        FB_ASSERT(at > 0);
        m->group = at;
        return false;
    }
    uint8_t *place = m->states + m->state_at[at];
    memmove(place + state.len, place + old, m->state_at[m->group] - m->state_at[at + 1]);
    memcpy(place, state.p, state.len);
    for (uint32_t i = at + 1; i <= m->group; i++) m->state_at[i] = m->state_at[i] - old + state.len;
    return true;
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
    if (fb_record_decode(fb_mend_state(m, at->record), &record) != FB_OK ||
        fb_record_prune(m->records[m->at + at->record], &record, gone, at, &ops,
                        node->database->stage.merged, node->database->stage.scratch,
                        node->database->record_max, &merged, &dropped) != FB_OK ||
        dropped == 0) {
        return;
    }
    (void)state_put(m, at->record, merged.stored); /* it is smaller */
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
        at->record = at_hand(m, changes[i].record);
        if (at->record == FB_NONE) continue;
        at->dot = (fb_dot){signer, batch->incarnation, batch->first_seq + i};
        fb_record record;
        fb_merged merged;
        if (fb_record_decode(fb_mend_state(m, at->record), &record) != FB_OK ||
            fb_record_merge(&record, &changes[i], at->dot, &ops, node->database->stage.merged,
                            node->database->stage.scratch, node->database->record_max,
                            &merged) != FB_OK) {
            continue; /* larger than a record may be: no order of coming would have taken it */
        }
        if (!state_put(m, at->record, merged.stored)) continue;
        if (MUTANT(MARKS_FORGOTTEN, marked, false)) prune(node, at, is_dead);
    }
}

/* Reads a page of the area's batches. */
static void begin_page(fb_node *node, fb_op_run run, size_t bytes, size_t entries)
{
    struct fb_mend *m = node->database->mend;
    fb_op *op = fb_mend_begin(node, run, bytes, entries);
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

/* Lives of the dots that a record at hand keeps. */
static bool add_kept(fb_node *node, uint32_t at)
{
    const struct fb_mend *m = node->database->mend;
    fb_record record;
    fb_record_field field;
    if (fb_record_decode(fb_mend_state(m, at), &record) != FB_OK) return true;
    bool all = add_lives(node, record.existence_pending) && add_lives(node, record.whole_pending);
    fb_record_walk walk = fb_record_walk_of(&record);
    while (all && fb_record_next(&walk, &field)) all = add_lives(node, field.pending);
    return all;
}

/* Of all of them: those for which there is no place are left for another reading. */
static void add_kept_lives(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    for (uint32_t i = 0; i < m->group; i++) {
        if (!add_kept(node, i) && i > 0) m->group = i;
    }
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
        if (at_hand(m, change->record) == FB_NONE) continue;
        if (!add_lives(node, change->replaced)) return false;
        fb_change_walk walk = fb_change_walk_of(change);
        fb_change_field field;
        while (fb_change_next(&walk, &field)) {
            if (!add_lives(node, field.replaced)) return false;
        }
    }
    return true;
}

/* Which lives the first batches of a page name. False: those of the first one alone are more than
 * are kept. */
static bool collect_lives(fb_node *node, const fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    uint32_t count = fb_op_range_count(node, op, 0);
    m->life_count = 0;
    for (m->page = 0; m->page < count; m->page++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, m->page);
        if (fb_mark_is_unread(node, op, entry.key)) break;
        if (!page_lives(node, entry)) return m->page > 0;
    }
    return true;
}

/* Asks for what the store says of the lives that a page names; false: it names none. */
static bool ask_lives(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    uint32_t count = fb_op_range_count(node, op, 0);
    if (!collect_lives(node, op) && m->group > 1) {
        m->group = 1;
        (void)collect_lives(node, op);
    }
    /* One that names more lives than are kept is merged with those there are. */
    if (m->page == 0 && count != 0) m->page = 1;
    if (m->page == count && fb_op_range_whole(node, op, 0)) add_kept_lives(node);
    for (uint32_t i = 0; i < m->life_count; i++) {
        uint8_t key[FB_VECTOR_KEY_BYTES];
        fb_op_read_key(op,
                       fb_key_vector(key, true, fb_area_get(node, m->area)->local, m->lives[i].node,
                                     m->lives[i].incarnation),
                       FB_VECTOR_VALUE_BYTES);
    }
    return m->life_count != 0;
}

/* All batches are merged: a record at hand is finished. True: a value of it is stored apart. */
static bool finish(fb_node *node, merge_at *at)
{
    struct fb_mend *m = node->database->mend;
    prune(node, at, nothing_dead);
    fb_record record;
    fb_span state = fb_mend_state(m, at->record);
    return fb_record_finish(m->records[m->at + at->record], m->states + m->state_at[at->record],
                            state.len) == FB_OK &&
           fb_record_decode(state, &record) == FB_OK && record.apart != 0;
}

static void scan_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!fb_mend_is_current(node, op)) return;
    if (fb_op_round(op) == 1 && ask_lives(node, op)) {
        m->busy = true;
        fb_op_issue(node, op);
        return;
    }
    uint32_t count = fb_op_range_count(node, op, 0);
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
        bool apart = false;
        at.whole = true;
        for (at.record = 0; at.record < m->group; at.record++) {
            apart = finish(node, &at) || apart;
        }
        m->done = 0;
        m->phase = apart ? FB_MEND_VALUES : FB_MEND_COMMIT;
    }
    fb_mend_go(node);
}

void fb_mend_scan(fb_node *node)
{
    struct fb_mend *m = node->database->mend;
    if (m->from_len == 0) {
        m->group = m->count - m->at;
        memset(m->state_at, 0, sizeof m->state_at);
    }
    begin_page(node, scan_run, 0, 0);
}

/* Values that are stored apart and live (again): each is in its batch. */

bool fb_mend_lives_apart(const fb_node *node, uint32_t at, fb_span name, fb_dot dot)
{
    const struct fb_mend *m = node->database->mend;
    fb_record record;
    fb_record_field field;
    if (fb_record_decode(fb_mend_state(m, at), &record) != FB_OK) return false;
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

static void put_values(fb_node *node, const fb_change *change, uint32_t at, fb_dot dot)
{
    uint32_t local = fb_area_get(node, node->database->mend->area)->local;
    fb_change_walk walk = fb_change_walk_of(change);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        if (field.op != FB_FIELD_SET || !fb_mend_lives_apart(node, at, field.name, dot)) continue;
        uint8_t key[FB_FIELD_KEY_BYTES_MAX], bytes[FB_DOT_BYTES];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_dot(&w, dot);
        fb_put(node, fb_key_field(key, local, change->record, field.name, bytes), field.value);
    }
}

static void values_run(fb_node *node, fb_op *op)
{
    struct fb_mend *m = node->database->mend;
    if (!fb_mend_is_current(node, op)) return;
    uint32_t count = fb_op_range_count(node, op, 0);
    for (uint32_t i = 0; i < count; i++) {
        fb_batch batch;
        fb_id signer;
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (!may_touch(node, entry) || !take_batch(node, entry, &batch, &signer)) continue;
        for (uint32_t k = 0; k < batch.count; k++) {
            const fb_change *change = &node->database->changes[k];
            uint32_t at = at_hand(m, change->record);
            fb_dot dot = {signer, batch.incarnation, batch.first_seq + k};
            if (at != FB_NONE) put_values(node, change, at, dot);
        }
    }
    if (page_over(node, op, count)) m->phase = FB_MEND_COMMIT;
    fb_mend_go(node);
}

void fb_mend_values(fb_node *node)
{
    begin_page(node, values_run, fb_op_write_bytes_max(node) - 1,
               fb_op_write_entries_max(node) - 1);
}
