/* SPDX-License-Identifier: Apache-2.0 */
/* The dedup record (profile 5 steps 8 and 9): which ids a sender's messages had, and the floor that
 * makes forgetting them safe.
 *
 * In the store an id stands in a numbered slot that is overwritten in place; the slot carries a
 * running sequence and the floor as it was then, so one put a message keeps both and the newest
 * slot tells the floor. In memory the ids of a sender are listed by timestamp. An honest sender's
 * timestamps hardly ever go back, and then a new id belongs next to the last one; who makes the
 * walk long costs us less than the verification of his signature.
 *
 * Room is for `seen` ids a sender, and most links are idle: places are touched in ascending order,
 * and the index grows with the ids, so that a sender costs memory by what it sent. */
#include "protocol/base/mix.h"
#include "protocol/base/mutant.h"
#include "protocol/messaging/state.h"
#include "protocol/store/keys.h"
#include "protocol/store/ops.h"

#define INDEX_MIN 256u /* a power of two */

static fb_seen *places_of(const struct fb_messaging *m, const fb_record *record)
{
    return m->ids + (size_t)fb_record_index(m, record) * m->seen;
}

static uint32_t *index_of(const struct fb_messaging *m, const fb_record *record)
{
    return m->index + (size_t)fb_record_index(m, record) * m->index_size;
}

static uint32_t home_of(const fb_node *node, const fb_record *record, fb_id id)
{
    fb_mix mix = {node->seed.lo, node->seed.hi};
    fb_mix_take(&mix, fb_word_load(id.b), fb_word_load(id.b + 8));
    return (uint32_t)(mix.a ^ mix.b >> 32) & (record->index_size - 1);
}

static void record_clear(struct fb_messaging *m, fb_record *record)
{
    if (record->state == FB_RECORD_WANTED) m->wanted--;
    *record = (fb_record){
        .member = FB_NONE,
        .newest = FB_NONE,
        .oldest = FB_NONE,
        .hint = FB_NONE,
        .free = FB_NONE,
        .index_size = m->index_size < INDEX_MIN ? m->index_size : INDEX_MIN,
        .digest = record->digest,
    };
    memset(index_of(m, record), 0, record->index_size * sizeof(uint32_t));
}

/* All places up to this one are in use or free; the later ones were never written. */
static void touch_up_to(const struct fb_messaging *m, fb_record *record, uint32_t place)
{
    fb_seen *places = places_of(m, record);
    while (record->touched <= place) {
        places[record->touched++] = (fb_seen){.newer = FB_NONE, .older = FB_NONE};
    }
}

/* The record longest out of use. Records are as many as links, and each link uses one at most. */
static fb_record *record_unused(struct fb_messaging *m)
{
    fb_record *best = NULL;
    for (uint32_t i = 0; i < m->links; i++) {
        fb_record *record = &m->record[i];
        if (record->links != 0 || record->busy) continue;
        if (best == NULL || record->used_at < best->used_at) best = record;
    }
    return best;
}

void fb_record_attach(fb_node *node, uint32_t space, uint32_t member)
{
    struct fb_messaging *m = node->messaging;
    fb_sender *sender = &m->sender[member];
    fb_record *record;
    if (sender->record != FB_NONE) {
        record = &m->record[sender->record];
    } else {
        record = record_unused(m);
        /* Those of links that just went may still be read; then fb_receive_message asks again. */
        if (record == NULL) return;
        if (record->member != FB_NONE) {
            m->sender[record->member].record = FB_NONE;
            fb_digest_touch(node, FB_DIGEST_SENDER, record->member);
        }
        record_clear(m, record);
        record->member = member;
        record->space = space;
        record->state = FB_RECORD_WANTED;
        sender->record = fb_record_index(m, record);
        fb_digest_touch(node, FB_DIGEST_SENDER, member);
        m->wanted++;
    }
    if (record->state == FB_RECORD_WANTED && !record->busy) fb_seen_load(node, record);
    record->links = 0;
    for (uint32_t i = 0; i < m->up_count; i++) {
        if (m->channel[m->up_links[i]].member == member) record->links++;
    }
    fb_digest_touch(node, FB_DIGEST_SEEN, sender->record);
}

void fb_record_detach(fb_node *node, uint32_t member)
{
    struct fb_messaging *m = node->messaging;
    if (m->sender[member].record == FB_NONE) return;
    fb_record *record = &m->record[m->sender[member].record];
    if (record->links > 0 && --record->links == 0) record->used_at = ++m->let_go;
    fb_digest_touch(node, FB_DIGEST_SEEN, m->sender[member].record);
}

bool fb_seen_find(const fb_node *node, const fb_record *record, fb_id id)
{
    const struct fb_messaging *m = node->messaging;
    const fb_seen *places = places_of(m, record);
    const uint32_t *index = index_of(m, record);
    uint32_t mask = record->index_size - 1;
    for (uint32_t at = home_of(node, record, id); index[at] != 0; at = (at + 1) & mask) {
        if (fb_id_equal(places[index[at] - 1].id, id)) return true;
    }
    return false;
}

static void index_add(const fb_node *node, const fb_record *record, uint32_t place)
{
    const struct fb_messaging *m = node->messaging;
    uint32_t *index = index_of(m, record);
    uint32_t at = home_of(node, record, places_of(m, record)[place].id);
    while (index[at] != 0) at = (at + 1) & (record->index_size - 1);
    index[at] = place + 1;
}

/* At most half of the index is in use. */
static void index_grow(const fb_node *node, fb_record *record)
{
    const struct fb_messaging *m = node->messaging;
    if (2 * (record->count + 1) <= record->index_size || record->index_size == m->index_size) {
        return;
    }
    record->index_size *= 2;
    memset(index_of(m, record), 0, record->index_size * sizeof(uint32_t));
    const fb_seen *places = places_of(m, record);
    for (uint32_t place = record->oldest; place != FB_NONE; place = places[place].newer) {
        index_add(node, record, place);
    }
}

static void index_remove(const fb_node *node, const fb_record *record, uint32_t place)
{
    const struct fb_messaging *m = node->messaging;
    const fb_seen *places = places_of(m, record);
    uint32_t *index = index_of(m, record);
    uint32_t mask = record->index_size - 1;
    uint32_t hole = home_of(node, record, places[place].id);
    while (index[hole] != place + 1) hole = (hole + 1) & mask;
    /* Entries behind the hole move up to it when their home is not beyond it. */
    for (uint32_t at = (hole + 1) & mask; index[at] != 0; at = (at + 1) & mask) {
        uint32_t home = home_of(node, record, places[index[at] - 1].id);
        if (MUTANT(SEEN_BEHIND_A_HOLE, ((at - home) & mask) < ((at - hole) & mask), true)) continue;
        index[hole] = index[at];
        hole = at;
    }
    index[hole] = 0;
}

static fb_hash128 seen_hash(const fb_seen *seen)
{
    return fb_mix128(seen->id.b, sizeof seen->id.b, (uint64_t)seen->time_ms);
}

/* Puts a place into the list by time, walking from where the last one went. */
static void list_insert(fb_seen *places, fb_record *record, uint32_t place)
{
    int64_t time_ms = places[place].time_ms;
    uint32_t older = record->hint != FB_NONE ? record->hint : record->newest;
    while (older != FB_NONE && places[older].newer != FB_NONE &&
           places[places[older].newer].time_ms <= time_ms) {
        older = places[older].newer;
    }
    while (older != FB_NONE && places[older].time_ms > time_ms) older = places[older].older;
    uint32_t newer = older != FB_NONE ? places[older].newer : record->oldest;
    places[place].older = older;
    places[place].newer = newer;
    if (older != FB_NONE) {
        places[older].newer = place;
    } else {
        record->oldest = place;
    }
    if (newer != FB_NONE) {
        places[newer].older = place;
    } else {
        record->newest = place;
    }
    record->hint = place;
}

static void forget_oldest(fb_node *node, fb_record *record)
{
    fb_seen *places = places_of(node->messaging, record);
    uint32_t place = record->oldest;
    index_remove(node, record, place);
    fb_hash128 hash = seen_hash(&places[place]);
    record->sum.hi -= hash.hi + (record->sum.lo < hash.lo);
    record->sum.lo -= hash.lo;
    record->oldest = places[place].newer;
    if (record->oldest != FB_NONE) {
        places[record->oldest].older = FB_NONE;
    } else {
        record->newest = FB_NONE;
    }
    if (record->hint == place) record->hint = record->oldest;
    places[place] = (fb_seen){.newer = record->free, .older = FB_NONE};
    record->free = place;
    record->count--;
}

/* MP-5-14, MP-5-16 */
void fb_seen_raise_floor(fb_node *node, fb_record *record, int64_t floor_ms)
{
    const struct fb_messaging *m = node->messaging;
    if (floor_ms < record->floor_ms) floor_ms = record->floor_ms;
    record->floor_ms = MUTANT(FORGOTTEN_ABOVE_FLOOR, floor_ms, record->floor_ms);
    const fb_seen *places = places_of(m, record);
    while (record->oldest != FB_NONE && places[record->oldest].time_ms <= floor_ms) {
        forget_oldest(node, record);
    }
}

static void remember(fb_node *node, fb_record *record, uint32_t place, fb_id id, int64_t time_ms)
{
    index_grow(node, record);
    fb_seen *places = places_of(node->messaging, record);
    places[place].id = id;
    places[place].time_ms = time_ms;
    list_insert(places, record, place);
    index_add(node, record, place);
    fb_hash128 hash = seen_hash(&places[place]);
    record->sum.lo += hash.lo;
    record->sum.hi += hash.hi + (record->sum.lo < hash.lo);
    record->count++;
    if (time_ms > record->highest_ms) record->highest_ms = time_ms;
}

void fb_seen_place(fb_node *node, fb_record *record, uint32_t slot, fb_id id, int64_t time_ms)
{
    touch_up_to(node->messaging, record, slot);
    remember(node, record, slot, id, time_ms);
}

void fb_seen_finish(fb_node *node, fb_record *record)
{
    struct fb_messaging *m = node->messaging;
    fb_seen *places = places_of(m, record);
    uint32_t kept = record->count;
    record->free = FB_NONE;
    for (uint32_t i = record->touched; i-- > 0;) {
        if (places[i].time_ms != 0) continue; /* timestamps begin at 1 */
        places[i].newer = record->free;
        record->free = i;
    }
    if (kept == m->seen && places[record->oldest].time_ms > record->overflow_ms) {
        record->overflow_ms = places[record->oldest].time_ms;
    }
    fb_seen_raise_floor(node, record, record->overflow_ms);
}

/* FM-4.1-3, FM-4.1-4, FM-8.1-5, MP-5-13 */
static void put_slot(fb_node *node, const fb_record *record, uint32_t slot, fb_id id,
                     int64_t time_ms)
{
    uint8_t key[25];
    key[0] = FB_TAG_SEEN;
    fb_store_be(key + 1, fb_space_local(node, record->space), 4);
    memcpy(key + 5, fb_member_id(node, record->member).b, 16);
    fb_store_be(key + 21, slot, 4);
    uint8_t value[FB_SLOT_VALUE_BYTES];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, FB_SLOT_VERSION);
    fb_write_id(&w, id);
    fb_write_u64(&w, (uint64_t)time_ms);
    fb_write_u64(&w, record->sequence);
    fb_write_u64(&w, MUTANT(FLOOR_NOT_STORED, (uint64_t)record->floor_ms, 0));
    fb_put(node, fb_span_of(key, sizeof key), fb_writer_span(&w));
}

void fb_observe_floor(fb_node *node, const fb_record *record, uint64_t reset_by)
{
    uint8_t who[32];
    memcpy(who, fb_space_id(node, record->space).b, 16);
    memcpy(who + 16, fb_member_id(node, record->member).b, 16);
    fb_observe(node, FB_FACT_FLOOR, (uint64_t)record->floor_ms, reset_by,
               fb_span_of(who, sizeof who));
}

void fb_seen_add(fb_node *node, fb_record *record, fb_id id, int64_t time_ms)
{
    struct fb_messaging *m = node->messaging;
    fb_seen *places = places_of(m, record);
    /* One place more than ids are kept, so there is always one for the newcomer. */
    uint32_t slot = record->free;
    if (slot != FB_NONE) {
        record->free = places[slot].newer;
    } else {
        slot = record->touched;
        FB_ASSERT(slot < m->seen);
        touch_up_to(m, record, slot);
    }
    remember(node, record, slot, id, time_ms);

    /* The floor: min(highest timestamp accepted, now - past - future), and the oldest timestamp
     * when the record is full. */
    int64_t before = record->floor_ms;
    fb_receive_window window = fb_message_window(node, record);
    int64_t floor_ms = fb_receive_floor(&window, record->highest_ms);
    /* MP-5-15 */
    if (record->count == m->seen && places[record->oldest].time_ms > floor_ms) {
        floor_ms = places[record->oldest].time_ms;
    }
    fb_seen_raise_floor(node, record, floor_ms);
    if (record->floor_ms != before) fb_observe_floor(node, record, 0);

    record->sequence++;
    put_slot(node, record, slot, id, time_ms);
    record->last_w = fb_w_building(node);
    fb_digest_touch(node, FB_DIGEST_SEEN, fb_record_index(m, record));
}
