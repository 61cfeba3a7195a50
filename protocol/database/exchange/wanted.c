/* SPDX-License-Identifier: Apache-2.0 */
/* What is wanted, and who said to have it. DESIGN 3.1, Vectors and fetch.
 *
 * A claim is the furthest batch of one life of one node in one area that one peer said to have and
 * we lack. Claims of different peers, and about different lives, stand side by side, each with its
 * own pauses, so a peer that lies or is slow and a life whose batches have to wait stand in no
 * other's way. Without a link (it ended, or the claim was loaded)
 * everybody is asked in turn.
 *
 * No claimer has more of the table than its share and half of what nobody's share is, so the claims
 * of one leave room for those of the others. What found no place is said again with the next
 * comparison of vectors. */
#include "protocol/database/state.h"

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
    fb_write_id(w, wanted->node);
    const uint64_t words[] = {
        (uint64_t)wanted->area << 32 | wanted->fetch,
        wanted->incarnation,
        wanted->batch,
        wanted->again_ns,
        (uint64_t)wanted->link << 32 | wanted->avoid,
        (wanted->parked ? 1u : 0u) | (wanted->waits ? 2u : 0u) | (wanted->whole ? 4u : 0u),
        wanted->known_incarnation,
        wanted->known_batch,
        wanted->gap_incarnation,
        wanted->gap_number,
        wanted->gap_ns,
    };
    fb_write_words(w, words, sizeof words / sizeof words[0]);
    if (!wanted->waits) return;
    fb_write_dot(w, wanted->waits_for);
}

static const fb_digest_kind digest_kind = {"wanted", digest_count, digest_cell, digest_write};

void fb_wanted_touch(fb_node *node, uint32_t wanted)
{
    fb_digest_touch_cell(node, &node->database->wanted[wanted].cell, FB_DIGEST_WANTED, wanted);
}

/* Shares */

static uint32_t *count_of(const fb_node *node, uint32_t link)
{
    return &node->database->claims[link == FB_NONE ? node->options.sizes.links : link];
}

static bool may_claim(const fb_node *node, uint32_t link)
{
    const struct fb_database *db = node->database;
    uint32_t count = *count_of(node, link);
    if (count < db->claim_share) return true;
    return db->claim_slack_used < db->claim_slack &&
           count - db->claim_share < (db->claim_slack + 1) / 2;
}

static void claimed(fb_node *node, uint32_t link)
{
    if (++*count_of(node, link) > node->database->claim_share) node->database->claim_slack_used++;
}

static void unclaimed(fb_node *node, uint32_t link)
{
    if ((*count_of(node, link))-- > node->database->claim_share) node->database->claim_slack_used--;
}

/* The table */

static uint32_t find(const fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                     uint32_t link)
{
    for (uint32_t at = fb_area_get(node, area)->wants; at != 0;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        if (wanted->link == link && wanted->incarnation == incarnation &&
            fb_id_equal(wanted->node, peer)) {
            return at - 1;
        }
        at = wanted->next;
    }
    return FB_NONE;
}

uint32_t fb_wanted_asked(const fb_node *node, uint32_t slot, fb_id peer)
{
    uint32_t area = node->database->fetches[slot].area;
    for (uint32_t at = fb_area_get(node, area)->wants; at != 0;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        if (wanted->fetch == slot + 1 && fb_id_equal(wanted->node, peer)) return at - 1;
        at = wanted->next;
    }
    return FB_NONE;
}

uint64_t fb_wanted_gap_since(fb_node *node, uint32_t slot, fb_id peer, uint64_t incarnation,
                             uint64_t number)
{
    uint64_t since = node->mono_ns;
    for (uint32_t at = fb_area_get(node, node->database->fetches[slot].area)->wants; at != 0;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        at = wanted->next;
        if (fb_id_equal(wanted->node, peer) && wanted->gap_incarnation == incarnation &&
            wanted->gap_number == number) {
            since = fb_min_u64(since, wanted->gap_ns);
        }
    }
    uint32_t index = fb_wanted_asked(node, slot, peer);
    if (index == FB_NONE) return since;
    fb_wanted *wanted = fb_wanted_get(node, index);
    wanted->gap_incarnation = incarnation;
    wanted->gap_number = number;
    wanted->gap_ns = since;
    fb_wanted_touch(node, index);
    return since;
}

void fb_wanted_hurry(fb_node *node, uint32_t area)
{
    for (uint32_t at = fb_area_get(node, area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t index = at - 1;
        at = wanted->next;
        wanted->back_off_ns = wanted->again_ns = 0;
        fb_wanted_touch(node, index);
    }
}

/* A claim of this link about another life of the node, that no call asks for: where there is no
 * room for both the news stand for it. */
static uint32_t find_other(const fb_node *node, uint32_t area, fb_id peer, uint32_t link)
{
    for (uint32_t at = fb_area_get(node, area)->wants; at != 0;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        if (wanted->link == link && wanted->fetch == 0 && fb_id_equal(wanted->node, peer)) {
            return at - 1;
        }
        at = wanted->next;
    }
    return FB_NONE;
}

static uint32_t add(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint32_t link)
{
    struct fb_database *db = node->database;
    if (db->wanted_free == 0 || !may_claim(node, link)) return FB_NONE;
    uint32_t index = db->wanted_free - 1;
    fb_wanted *wanted = &db->wanted[index];
    db->wanted_free = wanted->next;
    fb_digest_cell cell = wanted->cell;
    *wanted = (fb_wanted){.used = true,
                          .area = area,
                          .node = peer,
                          .incarnation = incarnation,
                          .link = link,
                          .avoid = FB_NONE};
    wanted->cell = cell;
    /* Last: who says again what came to nothing is asked after the others. */
    uint32_t *at = &fb_area_get(node, area)->wants;
    while (*at != 0) at = &db->wanted[*at - 1].next;
    *at = index + 1;
    claimed(node, link);
    fb_area_pin(node, area);
    fb_wanted_touch(node, index);
    return index;
}

static void release(fb_node *node, uint32_t index)
{
    struct fb_database *db = node->database;
    fb_wanted *wanted = &db->wanted[index];
    uint32_t *at = &fb_area_get(node, wanted->area)->wants;
    while (*at != index + 1) at = &db->wanted[*at - 1].next;
    *at = wanted->next;
    unclaimed(node, wanted->link);
    wanted->used = false;
    wanted->next = db->wanted_free;
    db->wanted_free = index + 1;
    fb_wanted_touch(node, index);
    fb_area *area = fb_area_get(node, wanted->area);
    if (area->wants == 0) area->hidden = false;
    fb_area_unpin(node, wanted->area);
}

static bool lacking(const fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                    uint64_t batch)
{
    uint32_t entry = fb_vector_find(node, area, peer, incarnation);
    return entry == FB_NONE || fb_vector_get(node, entry)->batch < batch;
}

/* The key stands for all claims about one life. */
static void unstore(fb_node *node, uint32_t index)
{
    const fb_wanted *wanted = fb_wanted_get(node, index);
    for (uint32_t at = fb_area_get(node, wanted->area)->wants; at != 0;) {
        const fb_wanted *other = fb_wanted_get(node, at - 1);
        if (at - 1 != index && other->stored && other->incarnation == wanted->incarnation &&
            other->batch > wanted->batch && fb_id_equal(other->node, wanted->node)) {
            return;
        }
        at = other->next;
    }
    uint8_t key[FB_WANTED_KEY_BYTES];
    uint32_t local = fb_area_get(node, wanted->area)->local;
    fb_delete(node, fb_key_wanted(key, local, wanted->node, wanted->incarnation));
}

static bool may_unstore(const fb_node *node)
{
    return fb_write_fits(node, fb_write_entry_bytes(FB_WANTED_KEY_BYTES, 0), 1);
}

bool fb_want(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint64_t batch,
             uint32_t link)
{
    /* No batch has these numbers. */
    if (incarnation == 0 || batch == 0 || batch == UINT64_MAX) return false;
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
    /* Nobody takes more of who was put out, so nobody asks for it. */
    uint64_t limit = fb_mend_limit(node, area, peer, incarnation);
    if (batch > limit) batch = limit;
    if (batch == 0 || !lacking(node, area, peer, incarnation, batch)) return false;
    uint32_t index = find(node, area, peer, incarnation, link);
    if (index == FB_NONE) index = add(node, area, peer, incarnation, link);
    if (index == FB_NONE) index = find_other(node, area, peer, link);
    if (index == FB_NONE) return false;
    fb_wanted *wanted = fb_wanted_get(node, index);
    if (wanted->incarnation != incarnation) {
        if (wanted->stored && may_unstore(node)) unstore(node, index);
        wanted->incarnation = incarnation;
        wanted->batch = 0;
        wanted->waits = wanted->parked = wanted->stored = wanted->whole = false;
        wanted->known_incarnation = wanted->known_batch = 0;
    }
    if (wanted->batch < batch) {
        wanted->batch = batch;
        /* News end a pause: that of this claimer's own claim. Not one for what comes before. */
        if (!wanted->waits) wanted->back_off_ns = wanted->again_ns = 0;
    }
    fb_wanted_touch(node, index);
    return true;
}

void fb_wanted_store(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint32_t link)
{
    uint32_t index = find(node, area, peer, incarnation, link);
    const fb_area *a = fb_area_get(node, area);
    size_t bytes = fb_write_entry_bytes(FB_WANTED_KEY_BYTES, FB_WANTED_VALUE_BYTES);
    if (index == FB_NONE || !a->stored || !fb_write_fits(node, bytes + FB_CHANGED_SPARE_BYTES, 5)) {
        return;
    }
    fb_wanted *wanted = fb_wanted_get(node, index);
    uint8_t key[FB_WANTED_KEY_BYTES], value[FB_WANTED_VALUE_BYTES];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, 1);
    fb_write_u64(&w, wanted->batch);
    fb_put(node, fb_key_wanted(key, a->local, peer, incarnation), fb_writer_span(&w));
    wanted->stored = true;
}

fb_status fb_wanted_load(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                         fb_span value)
{
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    uint64_t batch = fb_read_u64(&r);
    if (!fb_reader_done(&r)) return FB_ERR_STORE_DAMAGED;
    if (version != 1) return FB_ERR_VERSION_NEWER;
    if (!lacking(node, area, peer, incarnation, batch)) return FB_OK;
    uint32_t index = add(node, area, peer, incarnation, FB_NONE);
    if (index == FB_NONE) return FB_OK;
    fb_wanted *wanted = fb_wanted_get(node, index);
    wanted->batch = batch;
    wanted->stored = true;
    return FB_OK;
}

void fb_wanted_satisfy(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       uint64_t batch, bool reserved)
{
    for (uint32_t at = fb_area_get(node, area)->wants; at != 0;) {
        uint32_t index = at - 1;
        fb_wanted *wanted = fb_wanted_get(node, index);
        at = wanted->next;
        if (!fb_id_equal(wanted->node, peer)) continue;
        if (wanted->incarnation != incarnation || wanted->batch > batch) continue;
        if (wanted->stored && (reserved || may_unstore(node))) {
            unstore(node, index);
            reserved = false;
        }
        if (wanted->fetch != 0) fb_fetch_has(node, wanted->fetch - 1, peer);
        release(node, index);
    }
}

void fb_wanted_drop(fb_node *node, uint32_t index)
{
    const fb_wanted *wanted = fb_wanted_get(node, index);
    fb_count(node, FB_COUNTER_CLAIMS_DROPPED, 1);
    /* What stays behind in the store is judged again after a restart. */
    if (wanted->stored && may_unstore(node)) unstore(node, index);
    release(node, index);
}

void fb_wanted_link_down(fb_node *node, uint32_t link)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i<node->options.sizes.vector_entries && * count_of(node, link)> 0; i++) {
        fb_wanted *wanted = &db->wanted[i];
        if (!wanted->used || wanted->link != link) continue;
        /* Others are asked; of an area that only this peer named, nobody else. */
        uint32_t nobodys = find(node, wanted->area, wanted->node, wanted->incarnation, FB_NONE);
        if (nobodys != FB_NONE) {
            fb_wanted *other = fb_wanted_get(node, nobodys);
            if (other->batch < wanted->batch) other->batch = wanted->batch;
            if (other->gap_number == 0) {
                other->gap_incarnation = wanted->gap_incarnation;
                other->gap_number = wanted->gap_number;
                other->gap_ns = wanted->gap_ns;
            }
            fb_wanted_touch(node, nobodys);
        }
        if (nobodys != FB_NONE || !fb_area_get(node, wanted->area)->stored ||
            !may_claim(node, FB_NONE)) {
            release(node, i);
            continue;
        }
        unclaimed(node, link);
        wanted->link = FB_NONE;
        claimed(node, FB_NONE);
        fb_wanted_touch(node, i);
    }
}

/* Who holds what this node holds has none of what nobody that is linked says to have: it was taken
 * back everywhere, or comes with a claim of somebody's. */
void fb_database_same(fb_node *node, uint32_t link)
{
    uint32_t space = fb_link_at(node, link)->space;
    for (uint32_t i = 0; i < node->options.sizes.vector_entries; i++) {
        if (*count_of(node, FB_NONE) == 0) return;
        const fb_wanted *wanted = fb_wanted_get(node, i);
        if (!wanted->used || wanted->link != FB_NONE || wanted->fetch != 0 ||
            fb_area_get(node, wanted->area)->space != space) {
            continue;
        }
        fb_wanted_drop(node, i);
    }
}

void fb_wanted_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    const fb_sizes *sizes = &node->options.sizes;
    uint32_t claimers = sizes->links + 1;
    fb_wanted *wanted = fb_arena_take(arena, sizes->vector_entries, sizeof *wanted);
    uint32_t *claims = fb_arena_take(arena, claimers, sizeof *claims);
    fb_digest_register(node, FB_DIGEST_WANTED, &digest_kind);
    if (db == NULL) return;
    db->wanted = wanted;
    db->claims = claims;
    db->claim_share = sizes->vector_entries / 2 / claimers;
    if (db->claim_share == 0) db->claim_share = 1;
    uint64_t shares = (uint64_t)db->claim_share * claimers;
    db->claim_slack = shares < sizes->vector_entries ? sizes->vector_entries - (uint32_t)shares : 0;
}

void fb_wanted_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    db->wanted_free = 0;
    for (uint32_t i = node->options.sizes.vector_entries; i-- > 0;) {
        if (db->wanted[i].used) fb_wanted_touch(node, i);
        db->wanted[i].used = false;
        db->wanted[i].next = db->wanted_free;
        db->wanted_free = i + 1;
    }
    memset(db->claims, 0, (node->options.sizes.links + (size_t)1) * sizeof *db->claims);
    db->claim_slack_used = 0;
}
