/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a sender's dedup record when a link to it opens. Until it is there, messages of that sender
 * are not taken. Reading at the link's opening, not at START, keeps restarts cheap and memory
 * proportional to links instead of members. */
#include "protocol/base/mutant.h"
#include "protocol/messaging/state.h"
#include "protocol/space/space.h"
#include "protocol/store/keys.h"
#include "protocol/store/ops.h"

/* An entry of the answer, rounded up; one read takes half of what an operation may keep. */
#define SLOT_ANSWER_BYTES 96u
#define SLOTS_A_READ_MAX  512u

typedef struct load_context {
    uint32_t record;
} load_context;

static void slot_key(const fb_node *node, const fb_record *record, uint64_t slot, uint8_t key[25])
{
    key[0] = FB_TAG_SEEN;
    fb_store_be(key + 1, fb_space_local(node, record->space), 4);
    memcpy(key + 5, fb_member_id(node, record->member).b, 16);
    fb_store_be(key + 21, slot, 4);
}

static bool ask(const fb_node *node, fb_op *op, const fb_record *record)
{
    uint8_t low[25], high[25];
    uint32_t bytes = node->options.sizes.operation_bytes / 2;
    uint32_t slots = bytes / SLOT_ANSWER_BYTES;
    if (slots > SLOTS_A_READ_MAX) slots = SLOTS_A_READ_MAX;
    slot_key(node, record, record->cursor, low);
    slot_key(node, record, UINT32_MAX, high);
    return fb_op_read_range(op, fb_span_of(low, sizeof low), fb_span_of(high, sizeof high),
                            FB_SLOT_VALUE_BYTES, slots, bytes, false);
}

static bool take_slot(fb_node *node, fb_record *record, const fb_read_entry *entry)
{
    const struct fb_messaging *m = node->messaging;
    if (entry->key.len != 25 || entry->value_len != FB_SLOT_VALUE_BYTES) return false;
    fb_reader key = fb_reader_of(entry->key);
    fb_read_bytes(&key, 21);
    uint32_t slot = fb_read_u32(&key);
    if (slot < record->cursor) return false;
    record->cursor = slot + 1;

    fb_reader r = fb_reader_of(entry->value);
    if (fb_read_u8(&r) != FB_SLOT_VERSION) return false;
    fb_id id = fb_read_id(&r);
    int64_t time_ms = (int64_t)fb_read_u64(&r);
    uint64_t sequence = fb_read_u64(&r);
    int64_t floor_ms = (int64_t)fb_read_u64(&r);
    if (sequence > record->sequence) record->sequence = sequence;
    if (sequence >= record->floor_sequence) {
        record->floor_sequence = sequence;
        record->floor_ms = floor_ms;
    }
    if (time_ms > record->highest_ms) record->highest_ms = time_ms;
    if (slot >= m->seen || time_ms < 1 || time_ms > FB_TIMESTAMP_MS_MAX) {
        /* A record that was larger once: what has no place any more is forgotten safely. `count`
         * does not change, the floor does, at the end. */
        if (slot >= m->seen && time_ms > record->overflow_ms) record->overflow_ms = time_ms;
        return slot >= m->seen;
    }
    if (MUTANT(SEEN_NOT_RELOADED, true, false)) fb_seen_place(node, record, slot, id, time_ms);
    return true;
}

/* The store could not be read: the links close, and dialling again, with its back-off, asks anew.
 */
static void give_up(fb_node *node, const fb_record *record)
{
    struct fb_messaging *m = node->messaging;
    for (uint32_t i = 0; i < m->up_count; i++) {
        if (m->channel[m->up_links[i]].member != record->member) continue;
        fb_link_close(node, m->up_links[i], FB_ERR_STORE_FAILED);
    }
}

/* Messages that came before the record was there were left with their links. */
static void take_again(fb_node *node, const fb_record *record)
{
    const struct fb_messaging *m = node->messaging;
    for (uint32_t i = 0; i < m->up_count; i++) {
        if (m->channel[m->up_links[i]].member != record->member) continue;
        fb_link_take_again(node, m->up_links[i]);
    }
}

static void run(fb_node *node, fb_op *op)
{
    struct fb_messaging *m = node->messaging;
    const load_context *context = fb_op_context(op);
    fb_record *record = &m->record[context->record];
    record->busy = false;
    record->state = FB_RECORD_WANTED;
    m->wanted++;
    fb_digest_touch(node, FB_DIGEST_SEEN, context->record);
    if (fb_op_status(op) != FB_OK) {
        give_up(node, record);
        return;
    }
    uint32_t count = fb_op_range_count(node, op, 0);
    for (uint32_t i = 0; i < count; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        if (!take_slot(node, record, &entry)) {
            fb_incarnation_end(node, FB_ERR_STORE_DAMAGED);
            return;
        }
    }
    if (fb_op_range_whole(node, op, 0)) {
        fb_seen_finish(node, record);
        record->state = FB_RECORD_READY;
        if (record->count > 0) fb_observe_floor(node, record, 0);
        m->wanted--;
        take_again(node, record);
        return;
    }
    if (count == 0) {
        fb_reader next = fb_reader_of(fb_op_range_next(node, op, 0));
        fb_read_bytes(&next, 21);
        record->cursor = fb_read_u32(&next) + 1;
    }
    fb_seen_load(node, record);
}

void fb_seen_load(fb_node *node, fb_record *record)
{
    /* A writer's view: what this incarnation accepted counts even before it is durable. */
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, run, 0, 0);
    if (op == NULL) return; /* tried again by the plane's flush */
    load_context *context = fb_op_context(op);
    context->record = fb_record_index(node->messaging, record);
    if (!ask(node, op, record)) {
        fb_op_abandon(node, op);
        return;
    }
    record->busy = true;
    record->state = FB_RECORD_LOADING;
    node->messaging->wanted--;
    fb_digest_touch(node, FB_DIGEST_SEEN, context->record);
    fb_op_issue(node, op);
}
