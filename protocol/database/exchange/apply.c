/* SPDX-License-Identifier: Apache-2.0 */
/* A received batch: judged, merged, stored whole or not at all. DESIGN 3.1, Authorship and Merge.
 *
 * The order of checks: format; what it is about; whether it is known already; chain and epoch as
 * far as memory tells; the author's right; signature and root. Then its records, their paths and
 * the closed lives it names are read in one round, everything that may have changed is judged
 * again, and the changes are merged. */
#include "protocol/base/mutant.h"
#include "protocol/core/node_id.h"
#include "protocol/database/compare/believe.h"
#include "protocol/database/state.h"
#include "protocol/envelope/json.h"

#define LIFE_BYTES 25u /* u8 1 in the space's own area, id node, u64 incarnation */

typedef struct apply_context {
    uint32_t fetch;
    uint32_t area;
    uint64_t serial;
    fb_span lives;
    uint32_t first_life; /* item of the first of them */
    uint8_t levels[FB_BATCH_CHANGES_MAX];
    uint16_t record[FB_BATCH_CHANGES_MAX];
} apply_context;

_Static_assert(sizeof(apply_context) <= FB_OP_CONTEXT_BYTES, "the context fits an operation");

/* A batch while it is judged. */
typedef struct judged {
    const fb_batch *batch;
    const fb_change *changes;
    uint32_t area;
    uint32_t space;
    bool own_area;
    fb_id signer;
    uint64_t claim;
    uint8_t hash[32];
    /* Within the operation; op is NULL before. */
    const fb_op *op;
    const apply_context *c;
    const fb_fetch *fetch;
    uint64_t seq;            /* of the change being merged */
    uint64_t here;           /* FB_ERR_DUPLICATE: the last batch of this life that is here */
    const fb_folded *folded; /* of this life: those before the batch are folded; else NULL */
    bool skips;              /* and they are not here */
    bool again;              /* a life became closed since the read */
    bool unread;             /* the store will tell whether the life before is here */
} judged;

static void apply_run(fb_node *node, fb_op *op);

/* Closed lives */

static bool life_at(const fb_node *node, const judged *j, bool own_area, fb_id peer,
                    uint64_t incarnation, bool *known, fb_life *out)
{
    uint8_t want[LIFE_BYTES];
    fb_writer w = fb_writer_of(want, sizeof want);
    fb_write_u8(&w, own_area ? 1 : 0);
    fb_write_id(&w, peer);
    fb_write_u64(&w, incarnation);
    *known = false;
    if (j->op == NULL) return false;
    for (size_t at = 0; at < j->c->lives.len; at += LIFE_BYTES) {
        if (memcmp(j->c->lives.p + at, want, LIFE_BYTES) != 0) continue;
        *known = true;
        fb_read_entry entry;
        uint32_t item = j->c->first_life + (uint32_t)(at / LIFE_BYTES);
        return fb_op_value(node, j->op, item, &entry) && fb_life_decode(entry.value, out) == FB_OK;
    }
    return false;
}

static bool add_life(fb_writer *w, bool own_area, fb_id peer, uint64_t incarnation)
{
    uint8_t life[LIFE_BYTES];
    fb_writer l = fb_writer_of(life, sizeof life);
    fb_write_u8(&l, own_area ? 1 : 0);
    fb_write_id(&l, peer);
    fb_write_u64(&l, incarnation);
    for (size_t at = 0; at < w->at; at += LIFE_BYTES) {
        if (memcmp(w->p + at, life, LIFE_BYTES) == 0) return true;
    }
    fb_write_bytes(w, life, LIFE_BYTES);
    return !w->failed;
}

static bool add_dots(const fb_node *node, fb_writer *w, const judged *j, fb_dots dots)
{
    for (uint32_t i = 0; i < dots.count; i++) {
        fb_dot dot = fb_dots_at(dots, i);
        if (fb_vector_find(node, j->area, dot.node, dot.incarnation) != FB_NONE) continue;
        /* Of a node that nothing is known of, no life is closed. */
        if (!fb_vector_knows(node, j->area, dot.node)) continue;
        if (!add_life(w, false, dot.node, dot.incarnation)) return false;
    }
    return true;
}

/* Every closed life that judging and merging may ask about. */
static bool collect_lives(const fb_node *node, const judged *j, fb_writer *w)
{
    const fb_batch *b = j->batch;
    uint32_t own = fb_area_own(node, j->space);
    for (uint32_t i = 0; i < b->epoch_count && own != FB_NONE; i++) {
        fb_epoch_entry e = fb_batch_epoch_at(b, i);
        if (e.incarnation == 0) continue;
        if (fb_vector_find(node, own, e.node, e.incarnation) != FB_NONE) continue;
        if (!add_life(w, true, e.node, e.incarnation)) return false;
    }
    uint64_t before = b->number == 1 ? b->previous_incarnation : b->incarnation;
    if (b->has_previous && fb_vector_find(node, j->area, j->signer, before) == FB_NONE) {
        if (!add_life(w, false, j->signer, before)) return false;
    }
    if (j->folded != NULL && j->folded->previous_incarnation != 0) {
        if (!add_life(w, false, j->signer, j->folded->previous_incarnation)) return false;
    }
    if (b->number == 1 && fb_vector_knows(node, j->area, j->signer)) {
        /* The whole life may be behind us. */
        if (!add_life(w, false, j->signer, b->incarnation)) return false;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        fb_change_field field;
        if (!add_dots(node, w, j, j->changes[i].replaced)) return false;
        fb_change_walk walk = fb_change_walk_of(&j->changes[i]);
        while (fb_change_next(&walk, &field)) {
            if (!add_dots(node, w, j, field.replaced)) return false;
        }
    }
    return true;
}

static bool covered(void *user, const uint8_t bytes[FB_DOT_BYTES])
{
    judged *j = ((void **)user)[0];
    const fb_node *node = ((void **)user)[1];
    fb_dot dot = fb_dots_at((fb_dots){bytes, 1}, 0);
    if (dot.incarnation == j->batch->incarnation && fb_id_equal(dot.node, j->signer)) {
        return dot.seq <= j->seq;
    }
    uint32_t entry = fb_vector_find(node, j->area, dot.node, dot.incarnation);
    if (entry != FB_NONE) {
        const fb_area *area = fb_area_get(node, j->area);
        uint64_t last =
            entry + 1 == area->own ? area->own_seq : fb_vector_get(node, entry)->last_seq;
        return dot.seq <= last;
    }
    bool known;
    fb_life life;
    if (life_at(node, j, false, dot.node, dot.incarnation, &known, &life)) {
        return dot.seq <= life.last_seq;
    }
    if (!known && fb_vector_knows(node, j->area, dot.node)) j->again = true;
    return false;
}

/* May a dot come that is not covered? Not where its life stands at a cut here: what was behind that
 * was taken back wherever it had come. Of a life that is not here nothing may have been let stand;
 * should it have begun under a later right, the record alone becomes larger for a while.
 *
 * And before a batch behind a gap nothing comes as a rule: what it waits for may wait for what is
 * folded in that gap, and that is covered with the batch alone. (What is left where batches are
 * folded is what lives: so much a record holds.) */
static bool comes(void *user, const uint8_t bytes[FB_DOT_BYTES])
{
    judged *j = ((void **)user)[0];
    const fb_node *node = ((void **)user)[1];
    fb_dot dot = fb_dots_at((fb_dots){bytes, 1}, 0);
    if (MUTANT(GAP_WAITS, j->skips, false)) return false;
    uint64_t batch = 0, claim = FB_CLAIM_FIRST;
    bool known;
    fb_life life;
    uint32_t entry = fb_vector_find(node, j->area, dot.node, dot.incarnation);
    if (entry != FB_NONE) {
        batch = fb_vector_get(node, entry)->batch;
        claim = fb_vector_get(node, entry)->claim;
    } else if (life_at(node, j, false, dot.node, dot.incarnation, &known, &life)) {
        batch = life.batch;
        claim = life.claim;
    }
    return !fb_mend_ends(node, j->area, dot.node, dot.incarnation, batch, claim);
}

/* Judging */

static fb_status judge_epoch(const fb_node *node, judged *j)
{
    uint32_t own = fb_area_own(node, j->space);
    if (own == FB_NONE) return FB_ERR_BATCH_EPOCH;
    for (uint32_t i = 0; i < j->batch->epoch_count; i++) {
        fb_epoch_entry e = fb_batch_epoch_at(j->batch, i);
        if (e.incarnation == 0) continue;
        uint32_t entry = fb_vector_find(node, own, e.node, e.incarnation);
        if (entry != FB_NONE) {
            if (fb_vector_get(node, entry)->batch < e.batch) return FB_ERR_BATCH_EPOCH;
            continue;
        }
        if (j->op == NULL) {
            if (!fb_vector_knows(node, own, e.node)) return FB_ERR_BATCH_EPOCH;
            continue; /* the store will tell */
        }
        bool known;
        fb_life life;
        if (life_at(node, j, true, e.node, e.incarnation, &known, &life)) {
            if (life.batch < e.batch) return FB_ERR_BATCH_EPOCH;
        } else if (!known) {
            j->again = true;
        } else {
            return FB_ERR_BATCH_EPOCH;
        }
    }
    return FB_OK;
}

/* Only who may write here is believed that something is folded (compare/believe.h): nothing proves
 * it, and it counts as covered then, whatever lives of it.
 *
 * Is what the peer says to be folded below what the members have said to hold? Above that nobody
 * folds, so as a rule it withholds something, and another peer has it. A report may say less than
 * was folded, though: of a member that was out meanwhile, or whose store was set back. So when for
 * a while nobody brought what it hides it is believed. Each such gap is waited for anew: or who has
 * made us wait once, for nothing, would be believed whatever it hides next. Statements are never
 * folded. */
static fb_status judge_gap(fb_node *node, const judged *j)
{
    const fb_batch *b = j->batch;
    /* Of a report nothing lives when the life has a later one, and that one is at hand. */
    bool reports = fb_area_get(node, j->area)->kind == FB_AREA_REPORTS;
    if (!reports && !fb_believes(node, j->area, j->fetch->member)) {
        fb_area_get(node, j->area)->hidden = true;
        return FB_ERR_BATCH_CHAIN;
    }
    if (MUTANT(GAP_ANYWHERE, b->number - 1 <= j->folded->upto, true)) {
        return j->own_area ? FB_ERR_BATCH_CHAIN : FB_OK;
    }
    uint32_t slot = (uint32_t)(j->fetch - node->database->fetches);
    uint64_t since = fb_wanted_gap_since(node, slot, j->signer, b->incarnation, b->number);
    uint64_t patience = FB_GAP_HEARTBEATS * node->options.timing.heartbeat_ns;
    bool long_ago = node->mono_ns - since >= patience;
    return long_ago && !j->own_area ? FB_OK : FB_ERR_BATCH_CHAIN;
}

/* Nothing of the life is here, and those before this batch are folded: what the life follows has to
 * be here. */
static fb_status judge_skip(fb_node *node, judged *j)
{
    if (j->folded == NULL || j->batch->number == 1 || j->folded->after != 0) {
        return FB_ERR_BATCH_CHAIN;
    }
    FB_TRY(judge_gap(node, j));
    j->skips = true;
    uint64_t previous = j->folded->previous_incarnation;
    if (previous == 0) return FB_OK;
    uint32_t entry = fb_vector_find(node, j->area, j->signer, previous);
    if (entry != FB_NONE) {
        bool here = fb_vector_get(node, entry)->batch >= j->folded->previous_number;
        return here ? FB_OK : FB_ERR_BATCH_CHAIN;
    }
    bool known;
    fb_life life;
    if (life_at(node, j, false, j->signer, previous, &known, &life)) {
        return life.batch >= j->folded->previous_number ? FB_OK : FB_ERR_BATCH_CHAIN;
    }
    if (!known) j->again = true;
    return FB_ERR_BATCH_CHAIN;
}

/* The header before: of this life, or the one that the first of a life names. */
static fb_status judge_chain(fb_node *node, judged *j)
{
    const fb_batch *b = j->batch;
    uint32_t entry = fb_vector_find(node, j->area, j->signer, b->incarnation);
    if (entry != FB_NONE) {
        const fb_vector *v = fb_vector_get(node, entry);
        if (b->number <= v->batch) {
            j->here = v->batch;
            bool other = b->number == v->batch && memcmp(v->hash, j->hash, 32) != 0;
            return other ? FB_ERR_BATCH_FORK : FB_ERR_DUPLICATE;
        }
    }
    fb_life life;
    if (entry == FB_NONE && b->number == 1 && j->op != NULL) {
        bool known;
        if (life_at(node, j, false, j->signer, b->incarnation, &known, &life)) {
            j->here = life.batch;
            return FB_ERR_DUPLICATE;
        }
        if (!known && fb_vector_knows(node, j->area, j->signer)) j->again = true;
    }
    if (!b->has_previous) return FB_OK;
    uint64_t before = b->previous_incarnation;
    uint64_t last, last_seq;
    const uint8_t *hash;
    entry = fb_vector_find(node, j->area, j->signer, before);
    if (entry != FB_NONE) {
        const fb_vector *v = fb_vector_get(node, entry);
        last = v->batch;
        last_seq = v->last_seq;
        hash = v->hash;
    } else {
        bool known;
        if (j->op == NULL) {
            j->unread = true;
            return FB_OK;
        }
        if (!life_at(node, j, false, j->signer, before, &known, &life)) {
            if (!known) j->again = true;
            return judge_skip(node, j);
        }
        last = life.batch;
        last_seq = life.last_seq;
        hash = life.hash;
        if (b->number > 1 && b->number <= last) {
            j->here = last;
            return FB_ERR_DUPLICATE;
        }
    }
    /* Not when one between was refused: then what is folded begins further on. */
    j->skips =
        last < b->previous_number && j->folded != NULL && b->number > 1 && last >= j->folded->after;
    if (j->skips) {
        FB_TRY(judge_gap(node, j));
        return b->first_seq > last_seq + 1 ? FB_OK : FB_ERR_BATCH_CHAIN;
    }
    if (last < b->previous_number) return FB_ERR_BATCH_CHAIN;
    if (last == b->previous_number && memcmp(hash, b->previous_hash, 32) != 0) {
        return FB_ERR_BATCH_FORK;
    }
    if (b->number > 1 && b->first_seq != last_seq + 1) return FB_ERR_BATCH_CHAIN;
    return FB_OK;
}

static fb_dot dot_of(const judged *j, uint32_t at)
{
    return (fb_dot){j->signer, j->batch->incarnation, j->batch->first_seq + at};
}

static fb_status judge_author(fb_node *node, const judged *j)
{
    /* MP-6-14 */
    if (fb_area_get(node, j->area)->kind == FB_AREA_REPORTS) {
        return fb_report_check(node, j->space, j->batch, j->signer, j->changes);
    }
    const fb_signed batch = {.author = j->batch->author,
                             .signer = j->signer,
                             .claim = j->claim,
                             .area = fb_area_get(node, j->area)->id,
                             .own_area = j->own_area,
                             .incarnation = j->batch->incarnation,
                             .number = j->batch->number,
                             .hash = j->hash};
    FB_TRY(fb_space_check_author(node, j->space, &batch));
    if (!j->own_area) return FB_OK;
    for (uint32_t i = 0; i < j->batch->count; i++) {
        fb_field_write fields[FB_RECORD_FIELDS_MAX];
        fb_own_change own;
        fb_own_change_of(&j->changes[i], j->batch->author, dot_of(j, i), j->batch->number, j->claim,
                         (fb_span){NULL, 0}, fields, &own);
        FB_TRY(fb_space_check_statement(node, j->space, &own));
    }
    return FB_OK;
}

static fb_status judge_values(const judged *j)
{
    for (uint32_t i = 0; i < j->batch->count; i++) {
        fb_change_field field;
        fb_change_walk walk = fb_change_walk_of(&j->changes[i]);
        while (fb_change_next(&walk, &field)) {
            if (field.op != FB_FIELD_SET) continue;
            FB_TRY(fb_json_value_check(field.value));
            FB_TRY(fb_column_value_check(field.name, field.value));
        }
    }
    return FB_OK;
}

static void observe_refused(fb_node *node, const fb_fetch *fetch, const judged *j, fb_status why)
{
    uint8_t bytes[48];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, fb_area_get(node, j->area)->id);
    fb_write_id(&w, j->signer);
    fb_write_u64(&w, j->batch->incarnation);
    fb_write_u64(&w, j->batch->number);
    fb_observe(node, FB_FACT_BATCH_REFUSED, fetch->link_number, (uint64_t)why, fb_writer_span(&w));
}

/* Known already, parked, or behind one that is: nothing is wrong with the batch. */
static bool tells_something(fb_status status)
{
    return status != FB_ERR_DUPLICATE && status != FB_ERR_BATCH_EPOCH &&
           status != FB_ERR_BATCH_CHAIN && status != FB_ERR_BATCH_EARLY && status != FB_ERR_BUSY;
}

static fb_status judge(fb_node *node, judged *j)
{
    if (fb_area_get(node, j->area)->mending) return FB_ERR_BUSY;
    FB_TRY(judge_chain(node, j));
    /* A life that is this one and goes on elsewhere: a memory image runs twice. */
    if (fb_id_equal(j->signer, node->self) && j->batch->incarnation == node->incarnation) {
        return FB_ERR_BATCH_FORK;
    }
    /* What it follows is to be known first: of that depends what is asked for. */
    if (!j->unread) FB_TRY(judge_epoch(node, j));
    if (!j->own_area || j->op != NULL) FB_TRY(judge_author(node, j));
    return FB_OK;
}

static void judged_of(const fb_node *node, const fb_batch *batch, const fb_change *changes,
                      const fb_fetch *fetch, judged *j)
{
    const fb_area *a = fb_area_get(node, fetch->area);
    *j = (judged){.batch = batch,
                  .changes = changes,
                  .fetch = fetch,
                  .area = fetch->area,
                  .space = a->space,
                  .own_area = a->kind == FB_AREA_SPACE,
                  .signer = fetch->signer,
                  .claim = fb_batch_claim(batch, fetch->signer)};
    const fb_folded *folded = &fetch->folded;
    bool same = folded->used && folded->incarnation == batch->incarnation &&
                fb_id_equal(folded->node, fetch->signer);
    if (same) j->folded = folded;
    memcpy(j->hash, fetch->hash, sizeof j->hash);
}

/* A value is hashed once, for its leaf; the merge finds that with the fetch. work_out: they are
 * hashed here, else they were when the batch was judged. */
static void lend_hashes(fb_fetch *fetch, fb_change *changes, uint32_t count, bool work_out)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        fb_change *change = &changes[i];
        if (change->form != FB_CHANGE_WHOLE || change->value_count > FB_FETCH_VALUES - used) return;
        if (change->value_count == 0) continue;
        uint8_t *hashes = fetch->value_hashes + (size_t)used * 32;
        if (work_out) fb_change_value_hashes(change, hashes);
        change->hashes = hashes;
        used += change->value_count;
    }
}

#define SMALL_BATCH_BYTES 1024u

/* Most batches are one short change: of those all is hashed at once, before they are judged. */
static bool hash_small(fb_fetch *fetch, const fb_batch *batch, size_t len, fb_change *change)
{
    if (batch->count != 1 || batch->holes || len > SMALL_BATCH_BYTES) return false;
    if (change->value_count > FB_FETCH_VALUES) return false;
    lend_hashes(fetch, change, 1, true);
    fb_dot dot = {fetch->signer, batch->incarnation, batch->first_seq};
    fb_batch_hash_with(batch->header, change, dot, fetch->hash, fetch->leaf);
    change->worked_out = fetch->leaf;
    return true;
}

/* The operation */

static size_t frame_room(const fb_node *node, const judged *j, size_t batch_len, size_t *entries)
{
    size_t bytes = fb_write_entry_bytes(FB_BATCH_KEY_BYTES, batch_len) +
                   2 * fb_write_entry_bytes(FB_VECTOR_KEY_BYTES, FB_VECTOR_VALUE_BYTES) +
                   2 * fb_write_entry_bytes(FB_VECTOR_KEY_BYTES, 0) +
                   fb_write_entry_bytes(FB_WANTED_KEY_BYTES, 0) +
                   fb_write_entry_bytes(FB_DOUBT_KEY_BYTES, FB_DOUBT_VALUE_BYTES);
    *entries = 7;
    if (j->own_area) {
        bytes += FB_SPACE_FOLD_BYTES(j->batch->count, j->batch->items.len);
        *entries += FB_SPACE_FOLD_ENTRIES(j->batch->count, j->batch->items.len);
    }
    (void)node;
    return bytes;
}

static void estimate(const fb_node *node, const judged *j, size_t batch_len, size_t *bytes,
                     size_t *entries)
{
    const fb_area *area = fb_area_get(node, j->area);
    size_t each =
        fb_write_entry_bytes(FB_RECORD_KEY_BYTES, FB_RECORD_FRAME_BYTES + 256) + FB_CHANGELOG_ROOM +
        area->root_info.levels * fb_write_entry_bytes(FB_TREE_KEY_BYTES, FB_TREE_NODE_BYTES_MAX);
    size_t most = fb_op_write_bytes_max(node), most_entries = fb_op_write_entries_max(node);
    *bytes = frame_room(node, j, batch_len, entries) + j->batch->items.len +
             j->batch->count * each +
             fb_write_entry_bytes(FB_TREE_KEY_BYTES, FB_TREE_NODE_BYTES_MAX) +
             fb_write_entry_bytes(FB_AREA_KEY_BYTES, FB_AREA_VALUE_BYTES_MAX);
    *entries +=
        2 + j->batch->count * ((size_t)2 + FB_CHANGELOG_ROOM_ENTRIES + area->root_info.levels);
    /* A first guess; what is really needed is known after the merge. */
    if (*bytes > most) *bytes = most;
    if (*entries > most_entries) *entries = most_entries;
}

static fb_status start(fb_node *node, uint32_t fetch, const judged *j, size_t bytes, size_t entries)
{
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, apply_run, (uint32_t)bytes, (uint32_t)entries);
    if (op == NULL) return FB_ERR_BUSY;
    apply_context *c = fb_op_context(op);
    c->fetch = fetch;
    c->area = j->area;
    c->serial = node->database->fetches[fetch].serial;
    uint8_t lives[FB_LIVES_MAX * LIFE_BYTES];
    fb_writer w = fb_writer_of(lives, sizeof lives);
    bool ok = collect_lives(node, j, &w);
    if (ok && w.at != 0) {
        c->lives = fb_op_keep(op, fb_span_of(lives, w.at));
        ok = c->lives.p != NULL;
    }
    uint32_t next = 0;
    for (uint32_t i = 0; ok && i < j->batch->count; i++) {
        fb_reads reads;
        ok = fb_stage_read(node, op, j->area, j->changes[i].record, &next, &reads);
        if (!ok) break;
        c->record[i] = (uint16_t)reads.record;
        c->levels[i] = (uint8_t)reads.levels;
    }
    c->first_life = next;
    uint32_t own = fb_area_own(node, j->space);
    for (size_t at = 0; ok && at < c->lives.len; at += LIFE_BYTES) {
        fb_reader r = fb_reader_of(fb_span_of(c->lives.p + at, LIFE_BYTES));
        uint32_t area = fb_read_u8(&r) != 0 ? own : j->area;
        fb_id peer = fb_read_id(&r);
        uint8_t key[FB_VECTOR_KEY_BYTES];
        uint32_t local = fb_area_get(node, area)->local;
        ok = fb_op_read_key(op, fb_key_vector(key, true, local, peer, fb_read_u64(&r)),
                            FB_VECTOR_VALUE_BYTES);
    }
    if (!ok) {
        fb_op_abandon(node, op);
        return FB_ERR_LIMIT;
    }
    fb_area_pin(node, j->area);
    fb_op_issue(node, op);
    return FB_OK;
}

bool fb_apply_begin(fb_node *node, uint32_t index, fb_status *status)
{
    struct fb_database *db = node->database;
    fb_fetch *fetch = &db->fetches[index];
    fb_span bytes = fb_fetch_batch(node, index);
    const fb_area *area = fb_area_get(node, fetch->area);
    fb_batch batch;
    fetch->signer = (fb_id){{0}}; /* nobody's while it cannot be read */
    *status = fb_batch_decode(bytes, &batch, db->changes);
    if (*status != FB_OK) return false;
    fetch->signer = fb_node_id(node->options.provider, batch.author);
    fetch->incarnation = batch.incarnation;
    fetch->number = batch.number;
    bool hashed = hash_small(fetch, &batch, bytes.len, db->changes);
    if (!hashed) fb_batch_hash(batch.header, fetch->hash);
    judged j;
    judged_of(node, &batch, db->changes, fetch, &j);
    if (!fb_id_equal(batch.space, fb_space_id(node, area->space)) ||
        !fb_id_equal(batch.area, area->id)) {
        *status = FB_ERR_BATCH_MALFORMED;
    }
    if (*status == FB_OK) *status = judge(node, &j);
    fetch->here = j.here;
    /* Nothing is folded yet, so a hole is what a relay withheld. */
    if (*status == FB_OK && batch.holes) *status = FB_ERR_UNSUPPORTED;
    if (*status == FB_OK || *status == FB_ERR_BATCH_FORK) {
        if (!hashed) lend_hashes(fetch, db->changes, batch.count, true);
        fb_status verified = fb_batch_verify(&batch, j.changes, j.signer, node->options.provider);
        if (verified != FB_OK) *status = verified;
    }
    if (*status == FB_ERR_BATCH_FORK && fb_id_equal(j.signer, node->self)) {
        fb_observe(node, FB_FACT_CLONE, fetch->link_number, batch.incarnation, (fb_span){NULL, 0});
        fb_log(node, FB_LOG_ERROR, "a batch of this node's own life was signed elsewhere",
               (fb_span){NULL, 0});
    }
    if (*status == FB_OK) *status = judge_values(&j);
    if (*status == FB_OK) {
        size_t room, entries;
        estimate(node, &j, bytes.len, &room, &entries);
        *status = start(node, index, &j, room, entries);
        fetch->kept = batch.count == 1;
        if (fetch->kept) {
            fetch->batch = batch;
            fetch->change = db->changes[0];
        }
        if (*status == FB_OK) return true;
    }
    if (*status != FB_ERR_BUSY && tells_something(*status)) {
        observe_refused(node, fetch, &j, *status);
    }
    return false;
}

static fb_status stage_all(fb_node *node, fb_op *op, const apply_context *c, judged *j,
                           fb_dot *early)
{
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    uint32_t place = fb_stage_area(node, j->area);
    void *user[2] = {j, node};
    uint32_t count = MUTANT(BATCH_TAIL_LOST, j->batch->count, 1u);
    for (uint32_t i = 0; i < count; i++) {
        j->seq = MUTANT(DOTS_COUNT_FROM_ONE, j->batch->first_seq, 1u) + i;
        const fb_reads reads = {op, c->record[i], c->levels[i]};
        fb_staged_change *out = &stage->changes[stage->change_count];
        out->own = false;
        out->seq = j->seq;
        fb_status status = fb_stage_change(node, &reads, place, &j->changes[i], dot_of(j, i),
                                           covered, comes, user, out, early);
        if (j->again) return FB_ERR_AGAIN;
        FB_TRY(status);
        stage->change_count++;
    }
    return FB_OK;
}

static void observe_applied(fb_node *node, const judged *j, uint64_t link)
{
    const fb_stage *stage = &node->database->stage;
    fb_id area = fb_area_get(node, j->area)->id;
    uint8_t bytes[16 + 16 + FB_DOT_BYTES + 8];
    for (uint32_t i = 0; i < stage->change_count; i++) {
        const fb_staged_change *change = &stage->changes[i];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_id(&w, area);
        fb_write_id(&w, change->record);
        fb_write_dot(&w, (fb_dot){j->signer, j->batch->incarnation, change->seq});
        fb_write_u64(&w, (uint64_t)change->stamp);
        fb_observe(node, FB_FACT_APPLIED, fb_w_building(node), link, fb_writer_span(&w));
        fb_count(node, FB_COUNTER_CHANGES_APPLIED, 1);
    }
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, area);
    fb_write_id(&w, j->signer);
    fb_write_u64(&w, j->batch->incarnation);
    fb_write_u64(&w, fb_batch_last_seq(j->batch));
    fb_observe(node, FB_FACT_BATCH, fb_w_building(node), j->batch->number, fb_writer_span(&w));
}

/* The head that a batch takes up whole, FB_NONE. */
static uint32_t taken_up(const fb_node *node, const judged *j)
{
    const fb_batch *b = j->batch;
    uint64_t previous = b->previous_incarnation, number = b->previous_number;
    if (j->skips) {
        /* The header that names the life before is folded. */
        if (fb_vector_find(node, j->area, j->signer, b->incarnation) != FB_NONE) return FB_NONE;
        previous = j->folded->previous_incarnation;
        number = j->folded->previous_number;
    } else if (b->number != 1 || !b->has_previous) {
        return FB_NONE;
    }
    if (previous == b->incarnation) return FB_NONE;
    uint32_t before = fb_vector_find(node, j->area, j->signer, previous);
    bool whole = before != FB_NONE && fb_vector_get(node, before)->batch == number;
    return whole ? before : FB_NONE;
}

/* The vector entry after the batch; the life before is closed when this one takes it up whole. */
static void advance_vector(fb_node *node, const judged *j)
{
    const fb_batch *b = j->batch;
    uint32_t before = taken_up(node, j);
    uint32_t entry = fb_vector_find(node, j->area, j->signer, b->incarnation);
    if (entry == FB_NONE) {
        entry = fb_vector_add(node, j->area, j->signer, b->incarnation);
        FB_ASSERT(entry != FB_NONE);
        if (b->number == 1 && b->has_previous) {
            fb_vector_get(node, entry)->previous_incarnation = b->previous_incarnation;
            fb_vector_get(node, entry)->previous_number = b->previous_number;
        } else if (j->skips) {
            fb_vector_get(node, entry)->previous_incarnation = j->folded->previous_incarnation;
            fb_vector_get(node, entry)->previous_number = j->folded->previous_number;
        } else if (b->number > 1) {
            /* Of a closed life more came: a fork, and a head again. */
            bool known;
            fb_life life;
            if (life_at(node, j, false, j->signer, b->incarnation, &known, &life)) {
                fb_vector_get(node, entry)->previous_incarnation = life.previous_incarnation;
                fb_vector_get(node, entry)->previous_number = life.previous_number;
            }
            uint8_t key[FB_VECTOR_KEY_BYTES];
            fb_delete(node, fb_key_vector(key, true, fb_area_get(node, j->area)->local, j->signer,
                                          b->incarnation));
        }
    }
    fb_vector *v = fb_vector_get(node, entry);
    v->batch = b->number;
    v->last_seq = fb_batch_last_seq(b);
    v->claim = j->claim;
    memcpy(v->hash, j->hash, 32);
    fb_vector_put(node, entry);
    if (before != FB_NONE) fb_vector_close(node, before);
}

static void fold(fb_node *node, const judged *j, fb_span bytes)
{
    for (uint32_t i = 0; i < j->batch->count; i++) {
        fb_field_write fields[FB_RECORD_FIELDS_MAX];
        fb_own_change own;
        fb_own_change_of(&j->changes[i], j->batch->author, dot_of(j, i), j->batch->number, j->claim,
                         bytes, fields, &own);
        fb_space_fold(node, j->space, &own);
    }
}

/* What the batches before did is not known here: something that they replaced may live. */
static void skipped(fb_node *node, const judged *j)
{
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, fb_area_get(node, j->area)->id);
    fb_write_id(&w, j->signer);
    fb_write_u64(&w, j->batch->incarnation);
    fb_write_u64(&w, j->batch->first_seq - 1);
    fb_write_id(&w, fb_member_id(node, j->fetch->member));
    fb_observe(node, FB_FACT_SKIPPED, fb_w_building(node), j->batch->number, fb_writer_span(&w));
    fb_count(node, FB_COUNTER_BATCHES_SKIPPED, 1);
    fb_area_get(node, j->area)->gap_of = j->fetch->member + 1;
    fb_doubt(node, j->area, true);
}

static void commit(fb_node *node, const judged *j, const fb_fetch *fetch, fb_span bytes)
{
    const fb_stage *stage = &node->database->stage;
    const fb_batch *b = j->batch;
    bool conflict = false;
    for (uint32_t i = 0; i < stage->change_count; i++) conflict |= stage->changes[i].conflict;
    fb_stage_commit(node);
    uint8_t key[FB_BATCH_KEY_BYTES];
    fb_put(
        node,
        fb_key_batch(key, fb_area_get(node, j->area)->local, j->signer, b->incarnation, b->number),
        bytes);
    if (j->skips) {
        skipped(node, j);
        node->database->fetches[j->c->fetch].skips++;
    }
    advance_vector(node, j);
    observe_applied(node, j, fetch->link_number);
    bool of_own = fb_id_equal(j->signer, node->self);
    if (MUTANT(OWN_BATCH_UNSEEN, of_own, false)) {
        /* Verified, of this node's own, and not in its store: it was rolled back or copied. */
        fb_observe(node, FB_FACT_CLONE, fetch->link_number, b->incarnation, (fb_span){NULL, 0});
    }
    fb_wanted_satisfy(node, j->area, j->signer, b->incarnation, b->number, true);
    fb_onward_applied(node, j->area, conflict);
    fb_fetch_woken(node, j->area, dot_of(j, b->count - 1));
    if (!j->own_area) return;
    fold(node, j, bytes);
    fb_fetch_unpark(node, j->space);
}

/* What the run comes to; FB_ERR_AGAIN: read once more, with this room. */
static fb_status execute(fb_node *node, fb_op *op, judged *j, fb_span bytes, size_t *room,
                         size_t *entries, fb_dot *early)
{
    const apply_context *c = j->c;
    *room = fb_op_write_bytes(op);
    *entries = fb_op_write_entries(op);
    fb_status status = judge(node, j);
    if (j->again) return FB_ERR_AGAIN;
    FB_TRY(status);
    if (fb_vector_find(node, j->area, j->signer, j->batch->incarnation) == FB_NONE) {
        bool closes = taken_up(node, j) != FB_NONE;
        FB_TRY(fb_vector_admits(node, j->area, j->signer, closes));
    }
    FB_TRY(stage_all(node, op, c, j, early));
    size_t need, need_entries, frame_entries;
    fb_stage_size(node, &need, &need_entries);
    need += frame_room(node, j, bytes.len, &frame_entries);
    need_entries += frame_entries;
    if (need > fb_op_write_bytes_max(node) || need_entries > fb_op_write_entries_max(node)) {
        return FB_ERR_LIMIT;
    }
    if (need <= *room && need_entries <= *entries) return FB_OK;
    *room = need + need / 4;
    *entries = need_entries + need_entries / 4;
    if (*room > fb_op_write_bytes_max(node)) *room = fb_op_write_bytes_max(node);
    if (*entries > fb_op_write_entries_max(node)) *entries = fb_op_write_entries_max(node);
    return FB_ERR_AGAIN;
}

static void apply_run(fb_node *node, fb_op *op)
{
    const apply_context *c = fb_op_context(op);
    fb_fetch *fetch = &node->database->fetches[c->fetch];
    FB_ASSERT(fetch->used && fetch->serial == c->serial);
    fb_span bytes = fb_fetch_batch(node, c->fetch);
    fb_batch read;
    judged j;
    if (fetch->kept) {
        judged_of(node, &fetch->batch, &fetch->change, fetch, &j);
    } else {
        /* It was read before: the same bytes lie in the fetch. */
        fb_change *changes = node->database->changes;
        fb_status again = fb_batch_decode(bytes, &read, changes);
        FB_ASSERT(again == FB_OK);
        lend_hashes(fetch, changes, read.count, false);
        judged_of(node, &read, changes, fetch, &j);
    }
    j.op = op;
    j.c = c;
    size_t room = 0, entries = 0;
    fb_status status = fb_op_status(op);
    if (status == FB_OK) {
        status = execute(node, op, &j, bytes, &room, &entries, &fetch->waits_for);
        fetch->here = j.here;
    }
    if (status == FB_OK) {
        commit(node, &j, fetch, bytes);
    } else if (status == FB_ERR_AGAIN) {
        status = ++fetch->tries < 8 ? start(node, c->fetch, &j, room, entries) : FB_ERR_BUSY;
        if (status == FB_OK) {
            fb_area_unpin(node, c->area);
            return;
        }
    } else if (tells_something(status)) {
        observe_refused(node, fetch, &j, status);
    }
    uint32_t index = c->fetch;
    fb_area_unpin(node, c->area);
    fb_fetch_applied(node, index, status);
}
