/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching: what is wanted, and the calls that ask for it. DESIGN 3.1, Vectors and fetch.
 *
 * A wanted entry names the furthest batch of one node in one area that somebody has and we lack. A
 * call names such entries to one peer, each with the heads that we have of that node, and gets the
 * batches between in the order of the chain. An entry is in one call at a time. What a call leaves
 * wanting is asked of another member, after a pause that doubles while nothing comes of it. */
#include "protocol/database/state.h"

#define BACK_OFF_MAX_NS (UINT64_C(300) * 1000000000)
/* Points for what no honest member relays. */
#define POINTS_FORGED 20u

static uint32_t digest_count(const fb_node *node)
{
    return node->options.sizes.vector_entries;
}

static fb_digest_cell *digest_cell(fb_node *node, uint32_t index)
{
    return &node->database->wanted[index].cell;
}

static void digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_wanted *wanted = &node->database->wanted[index];
    if (!wanted->used) return;
    fb_write_u32(w, wanted->area);
    fb_write_id(w, wanted->node);
    fb_write_u64(w, wanted->incarnation);
    fb_write_u64(w, wanted->batch);
    fb_write_u32(w, wanted->link);
    fb_write_u32(w, wanted->avoid);
    fb_write_u32(w, wanted->fetch);
    fb_write_u8(w, wanted->parked ? 1 : 0);
}

static const fb_digest_kind digest_kind = {"wanted", digest_count, digest_cell, digest_write};

static void touch(fb_node *node, uint32_t wanted)
{
    fb_digest_touch(node, FB_DIGEST_WANTED, wanted);
}

static fb_wanted *wanted_get(const fb_node *node, uint32_t wanted)
{
    return &node->database->wanted[wanted];
}

uint32_t fb_wanted_find(const fb_node *node, uint32_t area, fb_id peer)
{
    for (uint32_t at = fb_area_get(node, area)->wants; at != 0;) {
        const fb_wanted *wanted = wanted_get(node, at - 1);
        if (fb_id_equal(wanted->node, peer)) return at - 1;
        at = wanted->next;
    }
    return FB_NONE;
}

static uint32_t wanted_add(fb_node *node, uint32_t area, fb_id peer)
{
    struct fb_database *db = node->database;
    if (db->wanted_free == 0) return FB_NONE;
    uint32_t index = db->wanted_free - 1;
    fb_wanted *wanted = &db->wanted[index];
    db->wanted_free = wanted->next;
    fb_digest_cell cell = wanted->cell;
    *wanted =
        (fb_wanted){.used = true, .area = area, .node = peer, .link = FB_NONE, .avoid = FB_NONE};
    wanted->cell = cell;
    wanted->next = fb_area_get(node, area)->wants;
    fb_area_get(node, area)->wants = index + 1;
    fb_area_pin(node, area);
    touch(node, index);
    return index;
}

static void wanted_free(fb_node *node, uint32_t index)
{
    struct fb_database *db = node->database;
    fb_wanted *wanted = &db->wanted[index];
    uint32_t *at = &fb_area_get(node, wanted->area)->wants;
    while (*at != index + 1) at = &db->wanted[*at - 1].next;
    *at = wanted->next;
    wanted->used = false;
    wanted->next = db->wanted_free;
    db->wanted_free = index + 1;
    touch(node, index);
    fb_area_unpin(node, wanted->area);
}

static bool lacking(const fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                    uint64_t batch)
{
    uint32_t entry = fb_vector_find(node, area, peer, incarnation);
    return entry == FB_NONE || fb_vector_get(node, entry)->batch < batch;
}

bool fb_want(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint64_t batch,
             uint32_t link)
{
    if (!lacking(node, area, peer, incarnation, batch)) return false;
    /* More of this very life than we made: only a verified header tells what that means. */
    if (incarnation == node->incarnation && fb_id_equal(peer, node->self)) return false;
    /* Nothing of who is no member is taken, so it is not asked for either; when its membership
     * comes, vectors are compared again. */
    uint32_t space = fb_area_get(node, area)->space;
    if (fb_member_find(node, space, peer) == FB_NONE) {
        node->database->spaces[space].strangers = true;
        return false;
    }
    uint32_t index = fb_wanted_find(node, area, peer);
    if (index == FB_NONE) index = wanted_add(node, area, peer);
    if (index == FB_NONE) return false; /* the next comparison of vectors says it again */
    fb_wanted *wanted = wanted_get(node, index);
    if (wanted->fetch != 0 && wanted->incarnation != incarnation) return true;
    if (wanted->incarnation != incarnation || wanted->batch < batch) {
        wanted->incarnation = incarnation;
        wanted->batch = batch;
        wanted->link = link;
        /* News end a pause. */
        fb_area_get(node, area)->back_off_ns = 0;
    } else if (wanted->link == FB_NONE && link != wanted->avoid) {
        wanted->link = link;
    }
    touch(node, index);
    return true;
}

fb_status fb_wanted_load(fb_node *node, uint32_t area, fb_id peer, fb_span value)
{
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    uint64_t incarnation = fb_read_u64(&r);
    uint64_t batch = fb_read_u64(&r);
    if (!fb_reader_done(&r)) return FB_ERR_STORE_DAMAGED;
    if (version != 1) return FB_ERR_VERSION_NEWER;
    if (!lacking(node, area, peer, incarnation, batch)) return FB_OK;
    uint32_t index = wanted_add(node, area, peer);
    if (index == FB_NONE) return FB_OK;
    fb_wanted *wanted = wanted_get(node, index);
    wanted->incarnation = incarnation;
    wanted->batch = batch;
    wanted->stored = true;
    return FB_OK;
}

void fb_wanted_satisfy(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       uint64_t batch)
{
    uint32_t index = fb_wanted_find(node, area, peer);
    if (index == FB_NONE) return;
    const fb_wanted *wanted = wanted_get(node, index);
    if (wanted->incarnation != incarnation || wanted->batch > batch) return;
    if (wanted->stored) {
        uint8_t key[FB_WANTED_KEY_BYTES];
        fb_delete(node, fb_key_wanted(key, fb_area_get(node, area)->local, peer));
    }
    wanted_free(node, index);
}

/* Profile 5 step 9: the entry is durable together with the message that named it. */
void fb_database_changed(fb_node *node, uint32_t link, uint32_t member, fb_id id,
                         uint64_t incarnation, uint64_t batch)
{
    const fb_link_info *info = fb_link_at(node, link);
    uint32_t area = fb_area_find(node, id);
    if (area != FB_NONE && fb_area_get(node, area)->space != info->space) return;
    if (area == FB_NONE || incarnation == 0 || batch == 0) {
        /* It does not say what is new; an area not known here is asked for when a batch of it is
         * named. The comparison of digests finds the rest. */
        if (area != FB_NONE || incarnation != 0) fb_vector_ask(node, link, area, id);
        return;
    }
    fb_id peer = fb_member_id(node, member);
    if (!fb_want(node, area, peer, incarnation, batch, link)) return;
    uint32_t index = fb_wanted_find(node, area, peer);
    const fb_area *a = fb_area_get(node, area);
    size_t bytes = fb_write_entry_bytes(FB_WANTED_KEY_BYTES, FB_WANTED_VALUE_BYTES);
    if (a->stored && fb_write_fits(node, bytes + FB_CHANGED_SPARE_BYTES, 5)) {
        uint8_t key[FB_WANTED_KEY_BYTES], value[FB_WANTED_VALUE_BYTES];
        fb_wanted *wanted = wanted_get(node, index);
        fb_writer w = fb_writer_of(value, sizeof value);
        fb_write_u8(&w, 1);
        fb_write_u64(&w, wanted->incarnation);
        fb_write_u64(&w, wanted->batch);
        fb_put(node, fb_key_wanted(key, a->local, peer), fb_writer_span(&w));
        wanted->stored = true;
    }
    fb_fetch_go(node, area);
}

/* Calls */

static bool link_serves(const fb_node *node, uint32_t link, const fb_area *area)
{
    if (link == FB_NONE) return false;
    const fb_link_info *info = fb_link_at(node, link);
    return info->state == FB_LINK_OPEN && info->space == area->space && info->member != FB_NONE &&
           node->database->links[link].up &&
           fb_space_may_hold(node, area->space, info->member, area->id);
}

/* Whom to ask: who said that it has it, then whoever comes after the one asked last. */
static uint32_t choose_link(const fb_node *node, const fb_area *area, const fb_wanted *wanted)
{
    if (link_serves(node, wanted->link, area)) return wanted->link;
    uint32_t count = fb_link_capacity(node);
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t link = (area->last_link + i) % count;
        if (link != wanted->avoid && link_serves(node, link, area)) return link;
    }
    return link_serves(node, wanted->avoid, area) ? wanted->avoid : FB_NONE;
}

static void write_range(const fb_node *node, uint32_t area, const fb_wanted *wanted, fb_writer *w)
{
    fb_write_id(w, wanted->node);
    fb_write_u64(w, wanted->incarnation);
    fb_write_u64(w, wanted->batch);
    size_t count_at = w->at;
    uint32_t count = 0;
    fb_write_u8(w, 0);
    for (uint32_t at = fb_area_get(node, area)->entries; at != 0 && count < FB_FETCH_HAVES_MAX;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->closed || v->batch == 0 || !fb_id_equal(v->node, wanted->node)) continue;
        fb_write_u64(w, v->incarnation);
        fb_write_u64(w, v->batch);
        count++;
    }
    fb_store_be(w->p + count_at, count, 1);
}

static void retry_later(fb_node *node, uint32_t index, bool soon)
{
    fb_area *area = fb_area_get(node, index);
    uint64_t pause = node->options.timing.onward_ns;
    if (!soon) {
        pause = area->back_off_ns == 0 ? pause : fb_min_u64(2 * area->back_off_ns, BACK_OFF_MAX_NS);
        area->back_off_ns = pause;
    }
    fb_timer_set(node, &area->wanted, fb_add_sat_u64(node->mono_ns, pause));
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status);

/* One call for what this link is to be asked of an area. False: no call can be begun now. */
static bool begin_call(fb_node *node, uint32_t index, uint32_t link)
{
    struct fb_database *db = node->database;
    fb_area *area = fb_area_get(node, index);
    uint32_t slot = 0;
    while (slot < db->fetch_count && db->fetches[slot].used) slot++;
    if (slot == db->fetch_count) return false;
    uint8_t arguments[17 + FB_FETCH_RANGES_MAX * (33 + 16 * FB_FETCH_HAVES_MAX)];
    fb_writer w = fb_writer_of(arguments, sizeof arguments);
    fb_write_id(&w, area->id);
    fb_write_u8(&w, 0);
    uint32_t chosen[FB_FETCH_RANGES_MAX], count = 0;
    for (uint32_t at = area->wants; at != 0 && count < FB_FETCH_RANGES_MAX;) {
        const fb_wanted *wanted = wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->fetch != 0 || wanted->parked) continue;
        if (choose_link(node, area, wanted) != link) continue;
        write_range(node, index, wanted, &w);
        chosen[count++] = place;
    }
    if (count == 0) return true;
    fb_store_be(arguments + 16, count, 1);
    fb_fetch *fetch = &db->fetches[slot];
    uint8_t *piece = fetch->piece;
    *fetch = (fb_fetch){.used = true,
                        .area = index,
                        .link = link,
                        .serial = ++db->serial,
                        .link_number = fb_link_at(node, link)->number,
                        .piece = piece};
    uint64_t deadline = fb_add_sat_u64(node->mono_ns, node->options.timing.call_ns);
    fb_status status = fb_call_start(node, link, FB_METHOD_FETCH, fb_writer_span(&w), deadline,
                                     on_piece, slot, &fetch->call);
    if (status != FB_OK) {
        fetch->used = false;
        return false;
    }
    fb_area_pin(node, index);
    area->last_link = link;
    for (uint32_t i = 0; i < count; i++) {
        wanted_get(node, chosen[i])->fetch = slot + 1;
        wanted_get(node, chosen[i])->link = link;
        touch(node, chosen[i]);
    }
    return true;
}

void fb_fetch_go(fb_node *node, uint32_t index)
{
    const fb_area *area = fb_area_get(node, index);
    if (fb_timer_is_set(&area->wanted) && area->back_off_ns != 0) return; /* it pauses */
    bool waits = false;
    for (uint32_t at = area->wants; at != 0;) {
        const fb_wanted *wanted = wanted_get(node, at - 1);
        at = wanted->next;
        if (wanted->fetch != 0 || wanted->parked) continue;
        uint32_t link = choose_link(node, area, wanted);
        /* Without a link it waits for one: they compare vectors when they open. */
        if (link == FB_NONE) continue;
        if (!begin_call(node, index, link)) waits = true;
    }
    if (waits) retry_later(node, index, true);
}

void fb_fetch_go_all(fb_node *node, uint32_t space)
{
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t area = at - 1;
        at = fb_area_get(node, area)->next;
        if (fb_area_get(node, area)->wants != 0) fb_fetch_go(node, area);
    }
}

void fb_fetch_unpark(fb_node *node, uint32_t space)
{
    if (node->database->spaces[space].strangers) {
        node->database->spaces[space].strangers = false;
        fb_vector_compare_all(node, space);
    }
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t area = at - 1;
        at = fb_area_get(node, area)->next;
        bool any = false;
        for (uint32_t w = fb_area_get(node, area)->wants; w != 0;) {
            fb_wanted *wanted = wanted_get(node, w - 1);
            if (wanted->parked) touch(node, w - 1);
            any = any || wanted->parked;
            wanted->parked = false;
            w = wanted->next;
        }
        if (!any) continue;
        fb_area_get(node, area)->back_off_ns = 0;
        fb_timer_set(node, &fb_area_get(node, area)->wanted, node->mono_ns);
    }
}

static void on_timer(fb_node *node, uint32_t area)
{
    if (!fb_area_get(node, area)->used) return;
    fb_fetch_go(node, area);
}

/* An area that somebody named and nobody gave anything of takes no place for ever. */
static void forget_ghost(fb_node *node, uint32_t index)
{
    const fb_area *area = fb_area_get(node, index);
    if (area->stored || area->back_off_ns <= 8 * node->options.timing.onward_ns) return;
    for (uint32_t at = area->wants; at != 0;) {
        const fb_wanted *wanted = wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->fetch == 0) wanted_free(node, place);
    }
}

/* The call is over and nothing of it is in work. */
static void finish(fb_node *node, uint32_t slot)
{
    struct fb_database *db = node->database;
    fb_fetch *fetch = &db->fetches[slot];
    uint32_t index = fetch->area;
    fb_area *area = fb_area_get(node, index);
    bool left = false;
    for (uint32_t at = area->wants; at != 0;) {
        fb_wanted *wanted = wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->fetch == slot + 1) {
            wanted->fetch = 0;
            /* Another member may have what this one did not give. */
            if (!fetch->progress || fetch->refused) {
                wanted->link = FB_NONE;
                wanted->avoid = fetch->link;
            }
            touch(node, place);
        }
        left = left || (wanted->fetch == 0 && !wanted->parked);
    }
    bool progress = fetch->progress && !fetch->refused;
    if (fetch->status == FB_ERR_CALL_FOLDED) {
        /* Profile 6: absent for so long that a full copy is needed. */
        const fb_link_info *info = fb_link_at(node, fetch->link);
        if (info->number == fetch->link_number && info->state == FB_LINK_OPEN) {
            fb_message_sync(node, info->space, info->member, area->id, false);
        }
    }
    fetch->used = false;
    if (fetch->progress) area->back_off_ns = 0;
    if (left && progress) {
        fb_timer_clear(node, &area->wanted);
        fb_fetch_go(node, index);
    } else if (left) {
        retry_later(node, index, false);
        forget_ghost(node, index);
    }
    fb_area_unpin(node, index);
}

fb_span fb_fetch_batch(const fb_node *node, uint32_t slot)
{
    const fb_fetch *fetch = &node->database->fetches[slot];
    fb_reader r = fb_reader_of(
        fb_span_of(fetch->piece + fetch->piece_at, fetch->piece_len - fetch->piece_at));
    return fb_read_span32(&r);
}

static void park(fb_node *node, uint32_t slot)
{
    const fb_fetch *fetch = &node->database->fetches[slot];
    fb_count(node, FB_COUNTER_BATCHES_PARKED, 1);
    for (uint32_t at = fb_area_get(node, fetch->area)->wants; at != 0;) {
        fb_wanted *wanted = wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (!fb_id_equal(wanted->node, fetch->signer)) continue;
        wanted->parked = true;
        touch(node, place);
    }
    uint32_t own = fb_area_own(node, fb_area_get(node, fetch->area)->space);
    if (own != FB_NONE) {
        fb_vector_ask(node, fetch->link, own, fb_area_get(node, own)->id);
    }
}

/* A batch's outcome. False: the call is given up. */
static bool judge_outcome(fb_node *node, uint32_t slot, fb_status status)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    switch (status) {
    case FB_OK:
        fetch->progress = true;
        return true;
    case FB_ERR_DUPLICATE:
        return true;
    case FB_ERR_BATCH_EPOCH:
        park(node, slot);
        return true;
    case FB_ERR_BATCH_CHAIN:
        /* What follows a parked or refused one. */
        return true;
    case FB_ERR_BUSY:
        return false;
    default:
        break;
    }
    fb_count(node, FB_COUNTER_BATCHES_REFUSED, 1);
    fetch->refused = true;
    bool forged = status == FB_ERR_BATCH_MALFORMED || status == FB_ERR_BATCH_SIGNATURE ||
                  status == FB_ERR_BATCH_ROOT;
    const fb_link_info *info = fb_link_at(node, fetch->link);
    if (forged && info->number == fetch->link_number && info->state == FB_LINK_OPEN) {
        fb_link_misbehaved(node, fetch->link, POINTS_FORGED);
        return false;
    }
    return !forged;
}

static void give_up(fb_node *node, uint32_t slot)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    if (!fetch->ended) {
        fetch->ended = true;
        fb_call_cancel(node, fetch->call);
    }
    fetch->piece_at = fetch->piece_len;
}

/* Goes through the batches of a piece, until one needs an operation. */
static void go_through(fb_node *node, uint32_t slot)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    while (!fetch->busy && fetch->piece_at < fetch->piece_len) {
        fb_span batch = fb_fetch_batch(node, slot);
        fb_status status = FB_ERR_BATCH_MALFORMED;
        fetch->tries = 0;
        if (batch.p != NULL) {
            fetch->busy = true;
            if (fb_apply_begin(node, slot, &status)) return;
            fetch->busy = false;
        }
        if (!judge_outcome(node, slot, status)) {
            give_up(node, slot);
            return;
        }
        fetch->piece_at += 4 + (uint32_t)batch.len;
    }
}

void fb_fetch_applied(fb_node *node, uint32_t slot, fb_status status)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    fb_span batch = fb_fetch_batch(node, slot);
    fetch->busy = false;
    if (judge_outcome(node, slot, status)) {
        fetch->piece_at += 4 + (uint32_t)batch.len;
        go_through(node, slot);
    } else {
        give_up(node, slot);
    }
    if (fetch->busy) return;
    if (fetch->ended) {
        finish(node, slot);
    } else if (!fetch->inside) {
        fb_call_resume(node, fetch->call);
    }
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status)
{
    (void)call;
    fb_fetch *fetch = &node->database->fetches[user];
    if (last) {
        fetch->ended = true;
        fetch->status = status;
        if (!fetch->busy) finish(node, (uint32_t)user);
        return true;
    }
    FB_ASSERT(!fetch->busy && piece.len <= node->options.sizes.call_bytes);
    fetch->piece_len = (uint32_t)piece.len;
    fetch->piece_at = 0;
    if (piece.len != 0) memcpy(fetch->piece, piece.p, piece.len);
    fetch->inside = true;
    go_through(node, (uint32_t)user);
    fetch->inside = false;
    if (fetch->ended) {
        finish(node, (uint32_t)user);
        return false;
    }
    return !fetch->busy;
}

void fb_fetch_link_down(fb_node *node, uint32_t link)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i < node->options.sizes.vector_entries; i++) {
        fb_wanted *wanted = &db->wanted[i];
        if (!wanted->used || wanted->link != link) continue;
        wanted->link = FB_NONE;
        touch(node, i);
    }
}

void fb_fetch_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    const fb_sizes *sizes = &node->options.sizes;
    uint32_t fetches = sizes->calls / 4;
    if (fetches < 2) fetches = 2;
    if (fetches > FB_FETCHES_MAX) fetches = FB_FETCHES_MAX;
    fb_wanted *wanted = fb_arena_take(arena, sizes->vector_entries, sizeof *wanted);
    fb_fetch *slots = fb_arena_take(arena, fetches, sizeof *slots);
    uint8_t *pieces = fb_arena_take(arena, fetches, sizes->call_bytes);
    fb_digest_register(node, FB_DIGEST_WANTED, &digest_kind);
    fb_timer_register(node, FB_TIMER_WANTED, on_timer, sizes->areas);
    if (db == NULL) return;
    db->wanted = wanted;
    db->fetches = slots;
    db->fetch_count = fetches;
    for (uint32_t i = 0; i < fetches; i++) slots[i].piece = pieces + (size_t)i * sizes->call_bytes;
}

void fb_fetch_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    db->wanted_free = 0;
    for (uint32_t i = node->options.sizes.vector_entries; i-- > 0;) {
        if (db->wanted[i].used) touch(node, i);
        db->wanted[i].used = false;
        db->wanted[i].next = db->wanted_free;
        db->wanted_free = i + 1;
    }
    for (uint32_t i = 0; i < db->fetch_count; i++) db->fetches[i].used = false;
}
