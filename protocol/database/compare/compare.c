/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing an area with a peer's: down the tree of fingerprints where the two differ, then the
 * records that differ, one by one. DESIGN 3.1, Anti-entropy; docs/WIRE-FORMATS.md, "Compare".
 *
 * It is begun where batches were skipped as folded (fb_doubt): whatever they replaced lives here
 * still, and the peer knows that it does not. One comparison goes on at a time. Differences that do
 * not fit are left for the next one, which begins when this one is over; an area is in doubt until
 * one was whole. */
#include "protocol/database/compare/compare.h"
#include "protocol/base/mutant.h"
#include "protocol/database/compare/believe.h"
#include "protocol/database/compare/repair.h"
#include "protocol/database/state.h"
#include "protocol/database/tree/path.h"
#include "protocol/store/readset.h"

typedef enum compare_phase { PHASE_NODES, PHASE_SCAN, PHASE_RECORDS } compare_phase;

/* Record ids of a page of the scan. */
#define SCAN_ITEMS 128u

typedef struct compare_context {
    uint64_t serial;
    uint32_t taken; /* paths of this piece */
    uint32_t levels;
    fb_span kept; /* of the repair: dots whose lives may be closed, each of them is read */
} compare_context;

static void next(fb_node *node);
static void over(fb_node *node, bool whole);

static fb_compare *compare_of(const fb_node *node)
{
    return node->database->compare;
}

static fb_compare *alive(fb_node *node, fb_op *op)
{
    const compare_context *c = fb_op_context(op);
    fb_compare *compare = compare_of(node);
    return compare->used && compare->serial == c->serial ? compare : NULL;
}

static fb_op *begin_op(fb_node *node, fb_op_kind kind, fb_op_run run, uint32_t bytes,
                       uint32_t entries)
{
    fb_op *op = fb_op_begin(node, kind, run, bytes, entries);
    if (op != NULL) ((compare_context *)fb_op_context(op))->serial = compare_of(node)->serial;
    return op;
}

static void later(fb_node *node, uint32_t index, uint64_t pauses)
{
    fb_area *area = fb_area_get(node, index);
    if (fb_timer_is_set(&area->compare)) return;
    fb_timer_set(node, &area->compare,
                 fb_add_sat_u64(node->mono_ns, pauses * node->options.timing.onward_ns));
}

/* Compared whole with this peer: with one that is not in doubt, or with all that are believed,
 * whose knowledge together is all there is. */
static bool is_enough(fb_node *node, const fb_area *area, const fb_compare *compare)
{
    if (compare->more || area->doubt_again) return false;
    return !compare->doubtful || fb_consulted(node, compare->area, compare->member);
}

static uint32_t choose_link(const fb_node *node, const fb_area *area, uint32_t last);

static void observe_compared(fb_node *node, const fb_compare *compare)
{
    const fb_area *area = fb_area_get(node, compare->area);
    uint8_t bytes[32];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, area->id);
    fb_write_u64(&w, compare->differ);
    fb_write_u64(&w, area->root_info.items);
    fb_observe(node, FB_FACT_COMPARED, compare->rounds, compare->bytes, fb_writer_span(&w));
}

static void over(fb_node *node, bool whole)
{
    fb_compare *compare = compare_of(node);
    uint32_t index = compare->area;
    fb_area *area = fb_area_get(node, index);
    if (compare->calling) fb_call_cancel(node, compare->call);
    if (whole && !compare->more) observe_compared(node, compare);
    if (compare->dropped != 0) {
        fb_believe_log(node, "values were taken away, as this member has seen them replaced",
                       fb_member_id(node, compare->member), area->id, compare->dropped);
    }
    compare->used = compare->calling = false;
    bool looks = compare->done != NULL;
    if (looks) {
        const fb_looked looked = {whole && !compare->more, compare->differ, compare->records,
                                  compare->record_count};
        compare->done(node, compare->user, &looked);
    }
    if (!looks && whole && is_enough(node, area, compare)) {
        uint8_t key[FB_DOUBT_KEY_BYTES];
        size_t room = fb_write_entry_bytes(FB_DOUBT_KEY_BYTES, FB_DOUBT_VALUE_BYTES);
        if (fb_write_fits(node, room, 1)) {
            static const uint8_t once = FB_DOUBT_ONCE;
            fb_put(node, fb_key_doubt(key, area->local), fb_span_of(&once, 1));
            compare->cleared = index + 1;
            compare->cleared_w = fb_w_building(node);
        }
    }
    fb_area_touch(node, index);
    if (!looks && compare->cleared != index + 1 &&
        choose_link(node, area, compare->link) != FB_NONE) {
        later(node, index, whole ? 1 : 2);
    }
    fb_area_unpin(node, index);
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        const fb_area *other = fb_area_get(node, i);
        if ((i == index && !looks) || !other->used || !other->doubt) continue;
        if (choose_link(node, other, compare->link) != FB_NONE) later(node, i, 1);
    }
}

/* What differs. */

static void found(fb_compare *compare, const uint8_t key[16])
{
    if (compare->found_count == FB_COMPARE_FOUND_MAX) {
        compare->more = true;
        return;
    }
    memcpy(compare->found[compare->found_count++], key, 16);
}

static void compare_items(fb_compare *compare, const fb_tree_node *mine, const fb_tree_node *theirs)
{
    /* What is there and not here was replaced here: it comes with its batch, or never. */
    for (uint32_t i = 0; i < mine->count; i++) {
        const uint8_t *item = mine->bytes + (size_t)i * FB_TREE_ITEM_BYTES;
        bool same = false;
        for (uint32_t k = 0; k < theirs->count && !same; k++) {
            const uint8_t *other = theirs->bytes + (size_t)k * FB_TREE_ITEM_BYTES;
            same = memcmp(item, other, FB_TREE_ITEM_BYTES) == 0;
        }
        if (!MUTANT(COMPARED_BY_KEYS, same, true)) found(compare, item);
        compare->differ += same ? 0 : 1;
    }
    for (uint32_t k = 0; k < theirs->count; k++) {
        const uint8_t *other = theirs->bytes + (size_t)k * FB_TREE_ITEM_BYTES;
        bool here = false;
        for (uint32_t i = 0; i < mine->count && !here; i++) {
            here = memcmp(mine->bytes + (size_t)i * FB_TREE_ITEM_BYTES, other, 16) == 0;
        }
        compare->differ += here ? 0 : 1;
    }
}

static void compare_views(fb_compare *compare, const fb_path *path, const fb_tree_node *mine,
                          const fb_tree_node *theirs)
{
    if (mine->kind == FB_TREE_BUCKET && theirs->kind == FB_TREE_BUCKET) {
        compare_items(compare, mine, theirs);
        return;
    }
    for (uint32_t nibble = 0; nibble < FB_TREE_FAN; nibble++) {
        static const uint8_t nothing[16];
        uint8_t a[16], b[16];
        fb_path_child(mine, path, nibble, a);
        fb_path_child(theirs, path, nibble, b);
        bool same = memcmp(a, b, sizeof a) == 0;
        if (MUTANT(COMPARED_EVERYWHERE, same, false) || memcmp(a, nothing, sizeof a) == 0) continue;
        if (compare->front_count == FB_COMPARE_FRONT_MAX || path->depth + 1u >= FB_TREE_DEPTH_MAX) {
            compare->more = true;
            return;
        }
        fb_path child = *path;
        child.key[path->depth / 2] |= (uint8_t)(path->depth % 2 == 0 ? nibble << 4 : nibble);
        child.depth++;
        compare->front[compare->front_count++] = child;
    }
}

static bool read_view(fb_reader *r, fb_tree_node *out)
{
    out->count = 0;
    out->kind = (fb_tree_kind)fb_read_u8(r);
    if (out->kind == FB_TREE_INNER) {
        fb_read_into(r, out->bytes, (size_t)FB_TREE_FAN * 16);
    } else if (out->kind == FB_TREE_BUCKET) {
        out->count = fb_read_u8(r);
        if (out->count > FB_TREE_BUCKET_MAX) return false;
        fb_read_into(r, out->bytes, (size_t)out->count * FB_TREE_ITEM_BYTES);
        for (uint32_t i = 1; i < out->count && !r->failed; i++) {
            const uint8_t *item = out->bytes + (size_t)i * FB_TREE_ITEM_BYTES;
            if (memcmp(item - FB_TREE_ITEM_BYTES, item, 16) >= 0) return false;
        }
    } else if (!r->failed && out->kind != 0) {
        return false;
    }
    return !r->failed;
}

static void resume(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    compare->busy = false;
    if (compare->calling) {
        fb_call_resume(node, compare->call);
    } else {
        next(node);
    }
}

static void nodes_run(fb_node *node, fb_op *op)
{
    fb_compare *compare = alive(node, op);
    const compare_context *c = fb_op_context(op);
    if (compare == NULL) return;
    bool ok = fb_op_status(op) == FB_OK;
    fb_reader r = fb_reader_of(fb_span_of(compare->piece, compare->piece_len));
    compare->doubtful = (fb_read_u8(&r) & 1u) != 0 || compare->doubtful;
    uint32_t item = 0;
    for (uint32_t i = 0; i < c->taken && ok; i++) {
        const fb_path path = compare->asked[compare->asked_at++];
        fb_tree_node mine, theirs;
        ok = read_view(&r, &theirs) && fb_path_view(node, op, item, &path, &mine) == FB_OK;
        item += path.depth + (uint32_t)1;
        if (ok && theirs.kind != 0) compare_views(compare, &path, &mine, &theirs);
    }
    if (!ok) {
        over(node, false);
        return;
    }
    resume(node);
}

/* The nodes of one piece, beside our own. */
static bool take_nodes(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    fb_op *op = begin_op(node, FB_OP_READER, nodes_run, 0, 0);
    if (op == NULL) return false;
    compare_context *c = fb_op_context(op);
    fb_reader r = fb_reader_of(fb_span_of(compare->piece, compare->piece_len));
    fb_read_u8(&r);
    fb_tree_node view;
    bool ok = true;
    while (ok && !fb_reader_done(&r)) {
        ok = compare->asked_at + c->taken < compare->asked_count && read_view(&r, &view) &&
             fb_path_ask(node, op, compare->area, &compare->asked[compare->asked_at + c->taken]);
        c->taken++;
    }
    if (!ok) {
        fb_op_abandon(node, op);
        return false;
    }
    fb_op_issue(node, op);
    return true;
}

/* Records. */

/* The next distinct dots that live in a record, ascending, behind one, at most so many; false:
 * there are more. */
static bool collect_dots(const fb_record *record, const uint8_t after[FB_DOT_BYTES], uint32_t most,
                         uint8_t *out, uint32_t *count)
{
    bool all = true;
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    const uint8_t *from = record->existence;
    uint32_t left = record->existence_count;
    size_t each = FB_EXISTENCE_BYTES;
    for (;;) {
        for (uint32_t i = 0; i < left; i++) {
            const uint8_t *dot = from + i * each;
            if (memcmp(dot, after, FB_DOT_BYTES) <= 0) continue;
            uint32_t place = *count;
            int order = 1;
            while (place > 0 && order > 0) {
                order = memcmp(out + (size_t)(place - 1) * FB_DOT_BYTES, dot, FB_DOT_BYTES);
                if (order > 0) place--;
            }
            if (place > 0 && order == 0) continue;
            if (*count == most) {
                all = false;
                if (place == *count) continue;
                --*count; /* the greatest one is asked about later */
            }
            uint8_t *room = out + (size_t)place * FB_DOT_BYTES;
            memmove(room + FB_DOT_BYTES, room, (size_t)(*count - place) * FB_DOT_BYTES);
            memcpy(room, dot, FB_DOT_BYTES);
            ++*count;
        }
        if (!fb_record_next(&walk, &field)) return all;
        from = field.siblings;
        left = field.count;
        each = FB_SIBLING_BYTES;
    }
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status);

static bool start_call(fb_node *node, fb_span arguments)
{
    fb_compare *compare = compare_of(node);
    const fb_link_info *info = fb_link_at(node, compare->link);
    if (info->number != compare->link_number || info->state != FB_LINK_OPEN) return false;
    uint64_t deadline = fb_add_sat_u64(node->mono_ns, node->options.timing.call_ns);
    compare->calling = fb_call_start(node, compare->link, FB_METHOD_COMPARE, arguments, deadline,
                                     on_piece, compare->serial, &compare->call) == FB_OK;
    if (compare->phase != PHASE_NODES) return compare->calling;
    compare->rounds++;
    compare->bytes += arguments.len;
    return compare->calling;
}

static void ask_run(fb_node *node, fb_op *op)
{
    fb_compare *compare = alive(node, op);
    if (compare == NULL) return;
    uint8_t arguments[16 + 2 + 16 + 1 + FB_COMPARE_DOTS_MAX * FB_DOT_BYTES];
    fb_writer w = fb_writer_of(arguments, sizeof arguments);
    fb_read_entry entry;
    fb_record record = {.apart = 0};
    bool ok = fb_op_status(op) == FB_OK;
    compare->dot_count = 0;
    compare->dots_left = false;
    if (ok && fb_op_value(node, op, 0, &entry)) {
        ok = entry.value.len == entry.value_len && fb_record_decode(entry.value, &record) == FB_OK;
        compare->dots_left = ok && !collect_dots(&record, compare->dots_after, compare->dots_most,
                                                 compare->dots, &compare->dot_count);
    }
    fb_write_id(&w, fb_area_get(node, compare->area)->id);
    fb_write_u8(&w, FB_COMPARE_RECORDS);
    fb_write_u8(&w, 1);
    fb_write_id(&w, compare->records[compare->record_at]);
    fb_write_u8(&w, (uint8_t)compare->dot_count);
    fb_write_bytes(&w, compare->dots, (size_t)compare->dot_count * FB_DOT_BYTES);
    compare->busy = false;
    if (!ok || !start_call(node, fb_writer_span(&w))) over(node, false);
}

/* Covered here, for dots that are kept until their change comes. */
typedef struct repair_user {
    fb_node *node;
    const fb_op *op;
    uint32_t area, local, first_life;
    fb_span kept;
    fb_id record;
} repair_user;

/* The record may be another one than when its closed lives were asked for, so a dot is looked for
 * among those: one that was not there then stays. */
static bool covered_here(void *user, const uint8_t bytes[FB_DOT_BYTES])
{
    const repair_user *u = user;
    fb_dot dot = fb_dots_at((fb_dots){bytes, 1}, 0);
    uint32_t entry = fb_vector_find(u->node, u->area, dot.node, dot.incarnation);
    if (entry != FB_NONE) return dot.seq <= fb_vector_get(u->node, entry)->last_seq;
    for (size_t at = 0; at < u->kept.len; at += FB_DOT_BYTES) {
        if (memcmp(u->kept.p + at, bytes, FB_DOT_BYTES) != 0) continue;
        fb_read_entry value;
        fb_life life;
        uint32_t item = u->first_life + (uint32_t)(at / FB_DOT_BYTES);
        return fb_op_value(u->node, u->op, item, &value) &&
               fb_life_decode(value.value, &life) == FB_OK && dot.seq <= life.last_seq;
    }
    return false;
}

/* Does the peer hold changes of the area that are not here? One of them may be what replaced a
 * value there: without it the value would go, and nothing come in its place. What is behind a life
 * that is closed here was taken up by another one there as well, or soon is: of a life that is not
 * here another answer may say nothing any more (*unknown). */
static bool is_ahead(const fb_node *node, uint32_t area, fb_reader *r, bool *unknown)
{
    bool ahead = false;
    uint32_t count = fb_read_u16(r);
    for (uint32_t i = 0; i < count && !r->failed; i++) {
        fb_dot head = fb_read_dot(r);
        uint32_t entry = fb_vector_find(node, area, head.node, head.incarnation);
        *unknown = *unknown || entry == FB_NONE;
        ahead = ahead || entry == FB_NONE || fb_vector_get(node, entry)->last_seq < head.seq;
    }
    return ahead;
}

static void went(void *user, fb_span field, const uint8_t dot[FB_DOT_BYTES])
{
    const repair_user *u = user;
    uint8_t key[FB_FIELD_KEY_BYTES_MAX];
    fb_stage_delete(u->node, fb_key_field(key, u->local, u->record, field, dot));
}

static fb_status repair(fb_node *node, fb_op *op, fb_compare *compare)
{
    const compare_context *c = fb_op_context(op);
    fb_id id = compare->records[compare->record_at];
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    uint32_t place = fb_stage_area(node, compare->area);
    const fb_reads reads = {op, 0, c->levels};
    fb_record record;
    FB_TRY(fb_stage_record(node, &reads, compare->area, id, &record));
    uint32_t bits = (compare->dot_count + 7) / 8;
    fb_reader r = fb_reader_of(fb_span_of(compare->piece, compare->piece_len));
    const uint8_t *covered = fb_read_bytes(&r, bits).p;
    fb_peer_state peer = {fb_read_span16(&r), compare->dots, compare->dot_count, covered};
    compare->outdated = false;
    bool ahead = is_ahead(node, compare->area, &r, &compare->outdated);
    if (!fb_reader_done(&r) || !fb_peer_state_is_valid(peer.state)) return FB_ERR_CALL_MALFORMED;
    /* It may have been put out, or made a reader, since it was asked. */
    if (!fb_believes(node, compare->area, compare->member)) return FB_ERR_AGAIN;
    if (MUTANT(PEER_AHEAD_IGNORED, ahead, false)) return FB_ERR_BEHIND;
    repair_user user = {.node = node,
                        .op = op,
                        .area = compare->area,
                        .local = fb_area_get(node, compare->area)->local,
                        .first_life = 1 + c->levels,
                        .kept = c->kept,
                        .record = id};
    const fb_merge_ops ops = {.user = &user, .covered = covered_here, .went = went};
    fb_merged merged;
    uint32_t dropped;
    FB_TRY(fb_record_repair(id, &record, &peer, &ops, stage->merged, stage->scratch,
                            node->database->record_max, &merged, &dropped));
    if (dropped == 0) return FB_OK;
    FB_TRY(fb_stage_rewrite(node, &reads, place, id, &merged, &stage->changes[0]));
    stage->change_count = 1;
    size_t bytes, entries;
    fb_stage_size(node, &bytes, &entries);
    if (bytes > fb_op_write_bytes(op) || entries > fb_op_write_entries(op)) return FB_ERR_LIMIT;
    fb_stage_commit(node);
    fb_count(node, FB_COUNTER_DOTS_DROPPED, dropped);
    compare->dropped += dropped;
    uint8_t bytes_of[48];
    memcpy(bytes_of, fb_area_get(node, compare->area)->id.b, 16);
    memcpy(bytes_of + 16, id.b, 16);
    memcpy(bytes_of + 32, fb_member_id(node, compare->member).b, 16);
    fb_observe(node, FB_FACT_REPAIRED, fb_w_building(node), 0,
               fb_span_of(bytes_of, sizeof bytes_of));
    return FB_OK;
}

/* The record was asked about: its other dots are next, or another record. */
static void record_over(fb_compare *compare)
{
    if (compare->dots_left) {
        memcpy(compare->dots_after, compare->dots + (size_t)(compare->dot_count - 1) * FB_DOT_BYTES,
               FB_DOT_BYTES);
        return;
    }
    memset(compare->dots_after, 0, FB_DOT_BYTES);
    compare->dots_most = FB_COMPARE_DOTS_MAX;
    compare->record_at++;
}

/* The peer holds what is not here yet. Its answer is of that moment, and says what was replaced by
 * then, so it counts as soon as all that the peer had then is here: asked again it would be ahead
 * again, if batches come to it all the time. It is asked again where a life that it named may have
 * been taken up meanwhile: that one is a head no more. What never comes is waited for a few pauses
 * in all and not for each record: the other areas, of all spaces, wait with this one. */
static void wait_for_more(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    if (compare->calling) fb_call_cancel(node, compare->call);
    compare->calling = compare->busy = false;
    compare->waiting = true;
    compare->waits++;
    later(node, compare->area, 1);
}

static void repair_run(fb_node *node, fb_op *op)
{
    fb_compare *compare = alive(node, op);
    if (compare == NULL) return;
    fb_status status = fb_op_status(op) == FB_OK ? repair(node, op, compare) : FB_ERR_AGAIN;
    if (status == FB_ERR_BEHIND && compare->waits < FB_COMPARE_WAITS_MAX) {
        wait_for_more(node);
        return;
    }
    /* The tree grew meanwhile, or what the peer has does not come: the next comparison finds it
     * once more. */
    if (status != FB_OK) compare->more = true;
    if (status == FB_ERR_CALL_MALFORMED) {
        over(node, false);
        return;
    }
    if (!compare->calling) record_over(compare); /* nothing more of its answer is on the way */
    resume(node);
}

/* False: there is no room for any; of those that are not asked for nothing is known. */
static bool ask_lives(fb_node *node, fb_op *op, uint32_t area, fb_span *kept)
{
    uint32_t local = fb_area_get(node, area)->local;
    size_t answers = 0;
    for (size_t at = 0; at < kept->len; at += FB_DOT_BYTES) {
        fb_dot dot = fb_dots_at((fb_dots){kept->p + at, 1}, 0);
        uint8_t key[FB_VECTOR_KEY_BYTES];
        answers += FB_VECTOR_VALUE_BYTES + FB_READ_ITEM_HEAD;
        if (!fb_op_read_fits(op, 1, sizeof key + answers)) {
            kept->len = at;
            break;
        }
        fb_op_read_key(op, fb_key_vector(key, true, local, dot.node, dot.incarnation),
                       FB_VECTOR_VALUE_BYTES);
    }
    return kept->len != 0;
}

/* Kept dots of a record whose lives may be closed are read with it; which they are is known only
 * from the record, so it is read twice. */
static void read_run(fb_node *node, fb_op *op)
{
    fb_compare *compare = alive(node, op);
    if (compare == NULL) return;
    compare_context *c = fb_op_context(op);
    if (fb_op_round(op) > 1 || fb_op_status(op) != FB_OK) {
        repair_run(node, op);
        return;
    }
    fb_read_entry entry;
    fb_record record = {.apart = 0};
    if (fb_op_value(node, op, 0, &entry) && entry.value.len == entry.value_len) {
        (void)fb_record_decode(entry.value, &record);
    }
    uint8_t bytes[FB_COMPARE_DOTS_MAX * FB_DOT_BYTES];
    fb_writer kept = fb_writer_of(bytes, sizeof bytes);
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field field = {.count = 0};
    fb_dots lists[2] = {record.existence_pending, record.whole_pending};
    for (uint32_t at = 0;; at++) {
        if (at >= 2 && !fb_record_next(&walk, &field)) break;
        fb_dots dots = at < 2 ? lists[at] : field.pending;
        for (uint32_t i = 0; i < dots.count; i++) {
            fb_dot dot = fb_dots_at(dots, i);
            bool open = fb_vector_find(node, compare->area, dot.node, dot.incarnation) != FB_NONE;
            if (!open && kept.cap - kept.at >= FB_DOT_BYTES) fb_write_dot(&kept, dot);
        }
    }
    if (kept.at != 0) c->kept = fb_op_keep(op, fb_writer_span(&kept));
    if (c->kept.len == 0 || !ask_lives(node, op, compare->area, &c->kept)) {
        repair_run(node, op);
    } else {
        fb_op_issue(node, op);
    }
}

static bool take_record(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    size_t room = node->database->record_max + (size_t)4096 +
                  (fb_area_get(node, compare->area)->root_info.levels + (size_t)2) *
                      fb_write_entry_bytes(FB_TREE_KEY_BYTES, FB_TREE_NODE_BYTES_MAX);
    /* And each value that is stored apart may go. */
    size_t apart = node->database->record_max / FB_SIBLING_BYTES;
    room += apart * fb_write_entry_bytes(FB_FIELD_KEY_BYTES_MAX, 0);
    if (room > fb_op_write_bytes_max(node)) room = fb_op_write_bytes_max(node);
    size_t entries = 64 + apart;
    if (entries > fb_op_write_entries_max(node)) entries = fb_op_write_entries_max(node);
    fb_op *op = begin_op(node, FB_OP_WRITER, read_run, (uint32_t)room, (uint32_t)entries);
    if (op == NULL) return false;
    uint32_t item = 0;
    fb_reads reads;
    if (!fb_stage_read(node, op, compare->area, compare->records[compare->record_at], &item,
                       &reads)) {
        fb_op_abandon(node, op);
        return false;
    }
    ((compare_context *)fb_op_context(op))->levels = reads.levels;
    fb_op_issue(node, op);
    return true;
}

/* Which records the keys are of: nothing in the tree tells, so all ids are gone through. */
static void scan_run(fb_node *node, fb_op *op)
{
    fb_compare *compare = alive(node, op);
    if (compare == NULL) return;
    compare->busy = false;
    if (fb_op_status(op) != FB_OK) {
        over(node, false);
        return;
    }
    uint32_t count = fb_op_range_count(node, op, 0);
    for (uint32_t i = 0; i < count; i++) {
        fb_span key = fb_op_range_entry(node, op, 0, i).key;
        fb_id id;
        uint8_t item[16];
        memcpy(id.b, key.p + 5, sizeof id.b);
        compare->scanned = id;
        fb_tree_key(id, item);
        for (uint32_t k = 0; k < compare->found_count; k++) {
            if (memcmp(item, compare->found[k], sizeof item) != 0) continue;
            if (compare->record_count < FB_COMPARE_FOUND_MAX) {
                compare->records[compare->record_count++] = id;
            }
        }
    }
    if (fb_op_range_whole(node, op, 0) || count == 0) compare->phase = PHASE_RECORDS;
    next(node);
}

static bool scan(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    fb_op *op = begin_op(node, FB_OP_READER, scan_run, 0, 0);
    if (op == NULL) return false;
    uint32_t local = fb_area_get(node, compare->area)->local;
    uint8_t low[FB_RECORD_KEY_BYTES + 1], high[FB_RECORD_KEY_BYTES];
    size_t len = fb_key_record(low, local, compare->scanned).len;
    if (!fb_id_is_zero(compare->scanned)) low[len++] = 0;
    static const fb_id zero;
    fb_op_read_range(op, fb_span_of(low, len), fb_key_record(high, local + 1, zero), 0, SCAN_ITEMS,
                     SCAN_ITEMS * 48, false);
    fb_op_issue(node, op);
    return true;
}

static bool ask_record(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    fb_op *op = begin_op(node, FB_OP_READER, ask_run, 0, 0);
    if (op == NULL) return false;
    uint8_t key[FB_RECORD_KEY_BYTES];
    fb_op_read_key(op,
                   fb_key_record(key, fb_area_get(node, compare->area)->local,
                                 compare->records[compare->record_at]),
                   (uint32_t)node->database->record_max);
    fb_op_issue(node, op);
    return true;
}

static bool ask_nodes(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    const fb_area *area = fb_area_get(node, compare->area);
    uint8_t arguments[16 + 1 + 16 + 1 + FB_COMPARE_PATHS_MAX * 17];
    fb_writer w = fb_writer_of(arguments, sizeof arguments);
    compare->asked_at = compare->asked_count = 0;
    while (compare->front_count > 0 && compare->asked_count < FB_COMPARE_PATHS_MAX) {
        compare->asked[compare->asked_count++] = compare->front[--compare->front_count];
    }
    fb_write_id(&w, area->id);
    fb_write_u8(&w, FB_COMPARE_NODES);
    fb_write_bytes(&w, area->root, 16);
    fb_write_u8(&w, (uint8_t)compare->asked_count);
    for (uint32_t i = 0; i < compare->asked_count; i++) fb_path_write(&w, &compare->asked[i]);
    return start_call(node, fb_writer_span(&w));
}

/* What comes next, when no call and no operation is under way. */
static void next(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    bool ok = true;
    if (compare->phase == PHASE_NODES && compare->front_count > 0) {
        ok = ask_nodes(node);
    } else if (compare->found_count == 0) {
        over(node, true);
        return;
    } else if (compare->phase == PHASE_NODES || compare->phase == PHASE_SCAN) {
        compare->phase = PHASE_SCAN;
        compare->busy = true;
        ok = scan(node);
    } else if (compare->record_at < compare->record_count && compare->done == NULL) {
        compare->busy = true;
        ok = ask_record(node);
    } else {
        over(node, true);
        return;
    }
    if (!ok) over(node, false);
}

/* The state of the record, and heads beside it, are too long for one answer: fewer dots have less
 * of it. One dot alone is of one change, and fits, unless the heads alone do not. */
static void ask_for_less(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    if (compare->dot_count > 1) {
        compare->dots_most = compare->dot_count / 2;
    } else {
        compare->more = true;
        record_over(compare);
    }
    next(node);
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status)
{
    (void)call;
    fb_compare *compare = compare_of(node);
    if (!compare->used || compare->serial != user) return true;
    if (last) {
        compare->calling = false;
        bool whole = compare->phase != PHASE_NODES || compare->asked_at == compare->asked_count;
        if (status != FB_OK || (!compare->busy && !whole)) {
            if (compare->phase == PHASE_RECORDS && status == FB_ERR_LIMIT) {
                ask_for_less(node);
            } else {
                over(node, false);
            }
            return true;
        }
        if (compare->phase == PHASE_RECORDS && !compare->busy) record_over(compare);
        if (!compare->busy) next(node);
        return true;
    }
    if (piece.len > node->options.sizes.call_bytes || compare->busy) return false;
    compare->piece_len = (uint32_t)piece.len;
    memcpy(compare->piece, piece.p, piece.len);
    if (compare->phase == PHASE_NODES) compare->bytes += piece.len;
    compare->busy = true;
    bool ok = compare->phase == PHASE_NODES ? take_nodes(node) : take_record(node);
    if (!ok) {
        over(node, false);
        return true;
    }
    return !compare->busy;
}

/* Whom to ask: who is believed, another one each time, and nobody twice for nothing. First who told
 * of the gap: it has what replaced something behind it, others may be on their way there. */
static uint32_t choose_link(const fb_node *node, const fb_area *area, uint32_t last)
{
    uint32_t count = fb_link_capacity(node), found = FB_NONE;
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t link = (last + i) % count;
        const fb_link_info *info = fb_link_at(node, link);
        if (info->state == FB_LINK_OPEN && info->space == area->space &&
            node->database->links[link].up &&
            fb_believes(node, (uint32_t)(area - node->database->areas), info->member) &&
            fb_space_may_hold(node, area->space, info->member, area->id) &&
            !fb_is_consulted(node, area, info->member)) {
            if (info->member + 1 == area->gap_of) return link;
            if (found == FB_NONE) found = link;
        }
    }
    return found;
}

static void begin(fb_node *node, uint32_t index, uint32_t link)
{
    fb_compare *compare = compare_of(node);
    compare->link = link;
    compare->link_number = fb_link_at(node, link)->number;
    compare->member = fb_link_at(node, link)->member;
    compare->used = true;
    compare->busy = compare->calling = compare->more = compare->dots_left = false;
    compare->waiting = compare->outdated = false;
    compare->waits = 0;
    compare->dots_most = FB_COMPARE_DOTS_MAX;
    compare->doubtful = false;
    compare->done = NULL;
    compare->area = index;
    compare->serial = ++node->database->serial;
    compare->phase = PHASE_NODES;
    compare->found_count = compare->record_count = compare->record_at = 0;
    compare->asked_at = compare->asked_count = compare->rounds = 0;
    compare->differ = compare->bytes = compare->dropped = 0;
    compare->scanned = (fb_id){{0}};
    memset(compare->dots_after, 0, sizeof compare->dots_after);
    compare->front[0] = (fb_path){.depth = 0};
    compare->front_count = 1;
    fb_area_pin(node, index);
}

static void on_compare(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    fb_compare *compare = compare_of(node);
    if (compare->used && compare->waiting && compare->area == index) {
        compare->waiting = false;
        if (compare->outdated) {
            next(node);
            return;
        }
        compare->busy = true;
        if (!take_record(node)) over(node, false);
        return;
    }
    if (!area->used || !area->doubt || MUTANT(DOUBT_IGNORED, false, true)) return;
    uint32_t link = choose_link(node, area, compare->link);
    if (link == FB_NONE) return; /* a link opens, rights change, or more is skipped */
    /* What is still wanted may be skipped as well. It is not waited for for ever: somebody may say
     * to have what never comes. */
    bool wants = area->wants != 0 && area->put_off < FB_COMPARE_WAITS_MAX;
    if (compare->used || compare->cleared != 0 || wants || area->mending) {
        area->put_off += wants ? 1 : 0;
        later(node, index, 1);
        return;
    }
    area->put_off = 0;
    begin(node, index, link);
    area->doubt_again = false;
    next(node);
}

bool fb_compare_look(fb_node *node, uint32_t index, uint32_t link, fb_compare_done done,
                     uint64_t user)
{
    fb_compare *compare = compare_of(node);
    if (compare->used || compare->cleared != 0) return false;
    begin(node, index, link);
    compare->done = done;
    compare->user = user;
    next(node);
    return true;
}

void fb_doubt(fb_node *node, uint32_t index, bool put)
{
    fb_area *area = fb_area_get(node, index);
    area->doubt_again = area->doubt_again || put;
    if (put) {
        uint8_t key[FB_DOUBT_KEY_BYTES];
        static const uint8_t doubted = FB_DOUBT_NOW;
        fb_put(node, fb_key_doubt(key, area->local), fb_span_of(&doubted, 1));
    }
    if (put) area->consulted = 0;
    area->doubt = area->skipped = true;
    fb_area_touch(node, index);
    later(node, index, 1);
}

void fb_compare_link_up(fb_node *node, uint32_t space)
{
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t index = at - 1;
        at = fb_area_get(node, index)->next;
        if (fb_area_get(node, index)->doubt) later(node, index, 1);
    }
}

void fb_compare_durable(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    if (compare->cleared == 0 || fb_w_durable(node) < compare->cleared_w) return;
    fb_area *area = fb_area_get(node, compare->cleared - 1);
    /* Unless more was skipped meanwhile: then it is doubted anew, and stored anew. */
    if (area->used && !area->doubt_again) {
        area->doubt = false;
        area->gap_of = 0;
    }
    fb_area_touch(node, compare->cleared - 1);
    compare->cleared = 0;
}

void fb_compare_layout(fb_node *node, fb_arena *arena)
{
    fb_compare *compare = fb_arena_take(arena, 1, sizeof *compare);
    uint8_t *piece = fb_arena_take(arena, 1, node->options.sizes.call_bytes);
    fb_timer_register(node, FB_TIMER_COMPARE, on_compare, node->options.sizes.areas);
    if (node->database != NULL) {
        node->database->compare = compare;
        compare->piece = piece;
    }
    fb_compare_serve_layout(node, arena);
}

void fb_compare_reset(fb_node *node)
{
    fb_compare *compare = compare_of(node);
    compare->used = compare->calling = false;
    compare->cleared = 0;
    for (uint32_t i = 0; i < FB_COMPARES_SERVED; i++) {
        fb_compare_serve *serve = &node->database->compare_serves[i];
        if (serve->used) serve->used = false; /* of an idle one no page is touched */
    }
}
