/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction: batches of which nothing lives go, once every member holds them. DESIGN 3.1, Stable
 * cut; docs/WIRE-FORMATS.md, "Folding".
 *
 * A pass goes through the batches of an area in the order of their keys, a few in each step, and
 * notes of each that is below the cut what of it is dead (mark.h). The next pass begins when
 * everything that was here at the end of this one is below the cut: what killed it is below as
 * well, and no statement that counts takes that away again. So what is dead then is dead for ever,
 * and the mark says so. A batch all of which is dead for ever goes two passes later: by then
 * whatever it had replaced in batches that stay is marked itself. A pass that could not look at all
 * of it, or an area that was mended, begins to count anew.
 *
 * A delete is dead from the start: nothing of it lives, ever. It goes as others do, when what it
 * replaced is marked; a record of which nothing is left is no item of the tree, so nobody can tell
 * who has taken its batches away. A batch stays while a record holds one of the dots that it
 * replaces for a change that has not come: that is known from nowhere else.
 *
 * A record that is not there is empty, and all that was put into it is dead; but only if it is no
 * item of the tree either. Else it was lost, and its batches are what brings it back elsewhere.
 *
 * The last batch of each life stays, as its signed header proves that those before it were, and so
 * does the last one below the cut, which a life may be cut at. Of reports nothing depends, so they
 * are taken away at once. */
#include "protocol/base/mutant.h"
#include "protocol/database/batch/mark.h"
#include "protocol/database/state.h"
#include "protocol/database/tree/path.h"

/* Passes between the one in which a batch became dead for ever and the one that takes it away. */
#define SETTLED_PASSES 2u
#define WRITE_BYTES    8000u
#define ENTRIES        (3u * FB_FOLD_BATCHES_MAX)
/* Items of an operation: the batches, their marks, then their records. */
#define FIRST_RECORD 2u

typedef struct fold_context {
    uint32_t area;
    uint32_t pass;
    uint32_t records; /* that the second round asked for */
    uint32_t paths;   /* of the first of them, `levels` down */
    uint32_t levels;
    bool any;      /* some batch was looked at, `key` is the last one */
    bool all;      /* nothing is left behind it */
    bool last;     /* the batch at hand is the last one of its life, as far as is known */
    fb_span folds; /* keys of the batches that the second round is about */
    uint8_t key[FB_BATCH_KEY_BYTES];
} fold_context;

_Static_assert(sizeof(fold_context) <= FB_OP_CONTEXT_BYTES, "the context fits an operation");
_Static_assert(WRITE_BYTES > FB_MARK_BYTES_MAX + 3 * FB_BATCH_KEY_BYTES + 64, "a mark fits");
typedef struct batch_key {
    fb_id node;
    uint64_t incarnation;
    uint64_t number;
} batch_key;

static void fold_run(fb_node *node, fb_op *op);

static batch_key key_of(fb_span key)
{
    fb_reader r = fb_reader_of(key);
    fb_read_bytes(&r, 5);
    batch_key k;
    k.node = fb_read_id(&r);
    k.incarnation = fb_read_u64(&r);
    k.number = fb_read_u64(&r);
    return k;
}

static fb_span mark_key(uint8_t *out, fb_span batch)
{
    memcpy(out, batch.p, batch.len);
    out[0] = FB_TAG_MARK;
    return fb_span_of(out, batch.len);
}

/* Up to which batch of a life every member holds it, as far as the reports say. A life that others
 * have taken up is held by who holds them. */
uint64_t fb_fold_cut(const fb_node *node, uint32_t index, fb_id signer, uint64_t incarnation)
{
    bool any = false, all = true;
    for (uint32_t at = fb_area_get(node, index)->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->closed || !fb_id_equal(v->node, signer)) continue;
        if (v->incarnation == incarnation) return v->cut;
        any = true;
        all = all && v->cut > 0;
    }
    return any && all ? UINT64_MAX : 0;
}

static bool is_among(const uint8_t *entries, uint32_t count, size_t each, const uint8_t *dot)
{
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(entries + i * each, dot, FB_DOT_BYTES) == 0) return true;
    }
    return false;
}

static bool is_awaited(fb_dots pending, fb_dots replaced)
{
    for (uint32_t i = 0; i < replaced.count; i++) {
        if (fb_dots_cover(pending, replaced.p + (size_t)i * FB_DOT_BYTES)) return true;
    }
    return false;
}

/* The record keeps a dot that the change replaces, for when that comes. */
static bool holds_back(const fb_record *record, const fb_change *change)
{
    bool deletes = change->op == FB_CHANGE_DELETE;
    if (is_awaited(deletes ? record->whole_pending : record->existence_pending, change->replaced)) {
        return true;
    }
    fb_change_walk walk = fb_change_walk_of(change);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        fb_record_walk columns = fb_record_walk_of(record);
        fb_record_field column;
        while (fb_record_next(&columns, &column)) {
            if (fb_span_equal(column.name, field.name) &&
                is_awaited(column.pending, field.replaced)) {
                return true;
            }
        }
    }
    return false;
}

/* What of a change is dead in its record now: bits from `bit` on. */
static void look(const fb_record *record, const fb_change *change, fb_dot dot, uint32_t bit,
                 uint8_t *dead)
{
    uint8_t bytes[FB_DOT_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_dot(&w, dot);
    bool gone = MUTANT(DELETES_STAY, true, change->op != FB_CHANGE_DELETE) &&
                !is_among(record->existence, record->existence_count, FB_EXISTENCE_BYTES, bytes) &&
                !holds_back(record, change);
    if (MUTANT(LIVING_FOLDED, gone, true)) fb_mark_set(dead, bit);
    fb_change_walk walk = fb_change_walk_of(change);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        if (field.op != FB_FIELD_SET) continue;
        bit++;
        fb_record_walk columns = fb_record_walk_of(record);
        fb_record_field column;
        bool lives = false;
        while (!lives && fb_record_next(&columns, &column)) {
            lives = fb_span_equal(column.name, field.name) &&
                    is_among(column.siblings, column.count, FB_SIBLING_BYTES, bytes);
        }
        if (MUTANT(LIVING_FOLDED, !lives, true)) fb_mark_set(dead, bit);
    }
}

static void pass_over(fb_node *node, uint32_t index, bool whole)
{
    fb_area *area = fb_area_get(node, index);
    area->folding = false;
    area->looked_at = area->looking_at;
    if (!whole) area->pass_from = area->pass + 1;
    for (uint32_t at = area->entries; at != 0;) {
        fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        v->marked = v->batch;
        v->marked_seq = v->last_seq;
    }
    fb_area_unpin(node, index);
}

void fb_fold_mended(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    area->pass_from = area->pass + 1;
    for (uint32_t at = area->entries; at != 0;) {
        fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        v->marked = fb_min_u64(v->marked, v->batch);
        v->marked_seq = fb_min_u64(v->marked_seq, v->last_seq);
    }
}

/* Everything that was here when the pass before ended is below the cut, and all members judge by
 * the same statements. A pass reads the whole area: it begins when an eighth of that is new. */
static bool may_begin(const fb_node *node, const fb_area *area)
{
    uint32_t least = area->looked_at / 8;
    if (area->fresh < (least < FB_FOLD_FRESH_MIN ? FB_FOLD_FRESH_MIN : least)) return false;
    if (area->kind == FB_AREA_REPORTS) return true;
    if (area->mending || area->doubt || !node->database->spaces[area->space].settled) return false;
    for (uint32_t at = area->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (!v->closed && v->cut < v->marked) return false;
    }
    return true;
}

/* False: no operation is free. */
static bool step(fb_node *node, uint32_t index, fb_span after)
{
    uint32_t most = fb_op_write_bytes_max(node) - 1;
    fb_op *op =
        fb_op_begin(node, FB_OP_WRITER, fold_run, most < WRITE_BYTES ? most : WRITE_BYTES, ENTRIES);
    if (op == NULL) return false;
    fold_context *c = fb_op_context(op);
    const fb_area *area = fb_area_get(node, index);
    c->area = index;
    c->pass = area->pass;
    uint8_t low[FB_BATCH_KEY_BYTES], high[FB_BATCH_KEY_BYTES], marks[2][FB_BATCH_KEY_BYTES];
    static const fb_id nobody;
    fb_span from = after.len != 0 ? after : fb_key_batch(low, area->local, nobody, 0, 0);
    /* Areas are numbered, so the next number is beyond all keys of this one. */
    fb_span to = fb_key_batch(high, area->local + 1, nobody, 0, 0);
    uint32_t bytes = node->options.sizes.operation_bytes;
    fb_op_read_range(op, from, to, FB_BATCH_BYTES_MAX, FB_FOLD_BATCHES_MAX, bytes / 3, false);
    fb_op_read_range(op, mark_key(marks[0], from), mark_key(marks[1], to), FB_MARK_BYTES_MAX,
                     FB_FOLD_BATCHES_MAX, bytes / 4, false);
    fb_op_issue(node, op);
    return true;
}

static void go_on(fb_node *node, uint32_t index, fb_span after)
{
    if (step(node, index, after)) return;
    pass_over(node, index, false); /* another pass begins anew */
    fb_fold_due(node, index);
}

/* Is there another batch of the same life behind this one? Where the range was cut there may be
 * one: the next step begins with it. */
static bool is_last(const fb_node *node, const fb_op *op, uint32_t at)
{
    if (at + 1 == fb_op_range_count(node, op, 0)) return true;
    fb_span key = fb_op_range_entry(node, op, 0, at).key;
    fb_span next = fb_op_range_entry(node, op, 0, at + 1).key;
    return MUTANT(LAST_OF_A_LIFE_FOLDED, memcmp(key.p, next.p, FB_BATCH_KEY_BYTES - 8) != 0, false);
}

/* With each of the first records its way through the tree, as far as there is room. */
static void ask_paths(fb_node *node, fb_op *op, fold_context *c, const fb_id *ids)
{
    c->levels = fb_area_get(node, c->area)->root_info.levels;
    for (; c->paths < c->records; c->paths++) {
        fb_path path = fb_path_to(ids[c->paths], c->levels);
        if (!fb_op_read_fits(op, c->levels + 1, (c->levels + (size_t)1) * FB_TREE_KEY_BYTES))
            return;
        (void)fb_path_ask(node, op, c->area, &path);
    }
}

/* False: they are more than an operation reads, and stay. */
static bool ask_records(fb_node *node, fb_op *op, fold_context *c)
{
    uint32_t count = fb_op_range_count(node, op, 0), asked = 0;
    fb_id ids[FB_BATCH_CHANGES_MAX];
    size_t next = 0;
    for (uint32_t i = 0; i < count && next < c->folds.len; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (memcmp(entry.key.p, c->folds.p + next, FB_BATCH_KEY_BYTES) != 0) continue;
        next += FB_BATCH_KEY_BYTES;
        fb_batch batch;
        if (fb_batch_decode(entry.value, &batch, node->database->changes) != FB_OK) return false;
        for (uint32_t at = 0; at < batch.count; at++) {
            uint8_t key[FB_RECORD_KEY_BYTES];
            fb_id record = node->database->changes[at].record;
            ids[asked++] = record;
            if (!fb_op_read_key(op, fb_key_record(key, fb_area_get(node, c->area)->local, record),
                                (uint32_t)node->database->record_max)) {
                return false;
            }
        }
    }
    ask_paths(node, op, c, ids);
    return true;
}

/* Chooses what this step is about and asks for its records. The batches are kept by their keys:
 * when the records are there, others may stand between them. */
static void choose(fb_node *node, fb_op *op, fold_context *c)
{
    fb_area *area = fb_area_get(node, c->area);
    uint32_t count = fb_op_range_count(node, op, 0);
    bool whole = fb_op_range_whole(node, op, 0);
    uint8_t keys[FB_FOLD_BATCHES_MAX * FB_BATCH_KEY_BYTES];
    fb_writer kept = fb_writer_of(keys, sizeof keys);
    size_t room = 0, most = fb_op_write_bytes(op);
    for (uint32_t i = 0; i < count; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (entry.key.len != FB_BATCH_KEY_BYTES) break;
        /* The last one of a page is looked at again with what follows it. */
        if (i + 1 == count && !whole && c->any) break;
        if (c->any && fb_mark_is_unread(node, op, entry.key)) break;
        batch_key k = key_of(entry.key);
        fb_batch batch;
        bool reports = area->kind == FB_AREA_REPORTS;
        bool folds = reports ? !is_last(node, op, i)
                             : k.number <= fb_fold_cut(node, c->area, k.node, k.incarnation);
        if (folds) {
            bool readable = entry.value.len == entry.value_len &&
                            fb_batch_decode(entry.value, &batch, node->database->changes) == FB_OK;
            if (!readable) area->flawed = true;
            folds = readable;
        }
        size_t bytes = 0;
        if (folds) {
            bytes =
                fb_write_entry_bytes(FB_BATCH_KEY_BYTES, 0) +
                fb_write_entry_bytes(FB_BATCH_KEY_BYTES,
                                     FB_MARK_BYTES(fb_mark_bits(&batch, node->database->changes)));
            bool full = c->records + batch.count > FB_BATCH_CHANGES_MAX || room + bytes > most ||
                        kept.cap - kept.at < entry.key.len;
            if (c->records != 0 && full) break;
        }
        if (folds) {
            room += bytes;
            c->records += batch.count;
            fb_write_bytes(&kept, entry.key.p, entry.key.len);
        }
        area->looking_at++;
        c->any = true;
        memcpy(c->key, entry.key.p, entry.key.len);
        c->all = whole && i + 1 == count;
    }
    c->folds = kept.at == 0 ? (fb_span){NULL, 0} : fb_op_keep(op, fb_writer_span(&kept));
    if (c->folds.p == NULL || !ask_records(node, op, c)) {
        if (kept.at != 0) area->flawed = true;
        c->records = 0;
    }
}

static void observe_folded(fb_node *node, const fb_area *area, const batch_key *k)
{
    uint8_t bytes[48];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, area->id);
    fb_write_id(&w, k->node);
    fb_write_u64(&w, k->incarnation);
    fb_write_u64(&w, k->number);
    fb_observe(node, FB_FACT_FOLDED, fb_w_building(node), 0, fb_writer_span(&w));
}

static void take_away(fb_node *node, const fb_area *area, fb_span batch, const batch_key *k)
{
    uint8_t mark[FB_BATCH_KEY_BYTES];
    fb_delete(node, batch);
    if (area->kind != FB_AREA_REPORTS) fb_delete(node, mark_key(mark, batch));
    fb_count(node, FB_COUNTER_BATCHES_FOLDED, 1);
    observe_folded(node, area, k);
}

/* The record as it stands; false: nobody knows. at: its place among those that were asked for. */
static bool record_of(fb_node *node, const fb_op *op, const fold_context *c, uint32_t at, fb_id id,
                      fb_record *out)
{
    fb_read_entry stored;
    if (fb_op_value(node, op, FIRST_RECORD + at, &stored)) {
        return stored.value.len == stored.value_len && fb_record_decode(stored.value, out) == FB_OK;
    }
    *out = (fb_record){.apart = 0};
    fb_path path = fb_path_to(id, c->levels);
    uint32_t item = FIRST_RECORD + c->records + at * (c->levels + 1);
    return at < c->paths && fb_path_is_free(node, op, item, &path);
}

static void judge(fb_node *node, fb_op *op, const fold_context *c, fb_read_entry entry,
                  uint32_t *at)
{
    const fb_area *area = fb_area_get(node, c->area);
    const fb_change *changes = node->database->changes;
    batch_key k = key_of(entry.key);
    fb_batch batch;
    fb_status status = fb_batch_decode(entry.value, &batch, node->database->changes);
    FB_ASSERT(status == FB_OK); /* it was read before */
    fb_mark now = {.incarnation = node->incarnation, .pass = area->pass}, mark;
    for (uint32_t i = 0; i < batch.count; i++) {
        fb_record record;
        uint32_t bit = now.bits;
        now.bits += fb_mark_bits_of(&changes[i]);
        if (!record_of(node, op, c, (*at)++, changes[i].record, &record)) continue;
        fb_dot dot = {k.node, k.incarnation, batch.first_seq + i};
        look(&record, &changes[i], dot, bit, now.seen);
    }
    uint32_t size = (now.bits + 7) / 8;
    memcpy(now.dead, now.seen, size);
    bool gone = fb_mark_is_whole(&now);
    if (area->kind == FB_AREA_REPORTS) {
        if (gone) take_away(node, area, entry.key, &k);
        return;
    }
    fb_mark_of(node, op, entry.key, &mark);
    if (mark.bits != now.bits) memset(&mark, 0, sizeof mark);
    bool valid = mark.incarnation == node->incarnation && mark.pass >= area->pass_from;
    if (valid && mark.pass == area->pass) return; /* it was the last one of a page */
    uint64_t cut = fb_fold_cut(node, c->area, k.node, k.incarnation);
    bool was_whole = fb_mark_is_whole(&mark), any = false, changed = false;
    for (uint32_t i = 0; i < size; i++) {
        uint8_t dead = mark.dead[i];
        if (valid) dead |= (uint8_t)(mark.seen[i] & now.seen[i]);
        now.seen[i] &= (uint8_t)~dead;
        now.dead[i] = dead;
        any = any || dead != 0 || now.seen[i] != 0;
        changed = changed || dead != mark.dead[i] || now.seen[i] != 0 || mark.seen[i] != 0;
    }
    bool last = c->last || MUTANT(LAST_OF_A_LIFE_FOLDED, k.number >= cut, false);
    bool settled = was_whole && valid && area->pass - mark.pass >= SETTLED_PASSES;
    if (MUTANT(FOLDED_AT_ONCE, settled, gone) && !last) {
        take_away(node, area, entry.key, &k);
        return;
    }
    if (!any || (was_whole && valid) || (!changed && !was_whole)) return;
    uint8_t key[FB_BATCH_KEY_BYTES], value[FB_MARK_BYTES_MAX];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_mark_write(&w, &now);
    fb_put(node, mark_key(key, entry.key), fb_writer_span(&w));
}

static void fold_run(fb_node *node, fb_op *op)
{
    fold_context *c = fb_op_context(op);
    uint32_t index = c->area;
    const fb_area *area = fb_area_get(node, index);
    if (fb_op_status(op) != FB_OK || area->mending) {
        pass_over(node, index, false);
        return;
    }
    if (fb_op_round(op) == 1) {
        choose(node, op, c);
        if (c->records != 0) {
            fb_op_issue(node, op);
            return;
        }
    }
    uint32_t at = 0, count = fb_op_range_count(node, op, 0);
    size_t next_key = 0;
    for (uint32_t i = 0; i < count && c->records != 0 && next_key < c->folds.len; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (memcmp(entry.key.p, c->folds.p + next_key, FB_BATCH_KEY_BYTES) != 0) continue;
        next_key += FB_BATCH_KEY_BYTES;
        c->last = is_last(node, op, i);
        judge(node, op, c, entry, &at);
    }
    if (!c->any || c->all) {
        pass_over(node, index, !area->flawed);
        return;
    }
    /* From the first one that was not looked at. */
    uint8_t next[FB_BATCH_KEY_BYTES];
    memcpy(next, c->key, sizeof next);
    for (size_t i = sizeof next; i-- > 0;) {
        if (++next[i] != 0) break;
    }
    go_on(node, index, fb_span_of(next, sizeof next));
}

static void on_fold(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    if (!area->used || !area->stored || area->folding || !may_begin(node, area)) return;
    area->folding = true;
    area->flawed = false;
    area->fresh = area->looking_at = 0;
    area->pass++;
    fb_area_pin(node, index);
    go_on(node, index, (fb_span){NULL, 0});
}

void fb_fold_due(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    if (area->kind == FB_AREA_SPACE || fb_timer_is_set(&area->fold)) return;
    fb_timer_set(node, &area->fold, fb_add_sat_u64(node->mono_ns, node->options.timing.onward_ns));
}

void fb_fold_layout(fb_node *node)
{
    fb_timer_register(node, FB_TIMER_FOLD, on_fold, node->options.sizes.areas);
}
