/* SPDX-License-Identifier: Apache-2.0 */
/* Version vectors. DESIGN 3.1, Vectors and fetch.
 *
 * In memory stand the heads: of each node's chain of lives the newest one, which stands for those
 * before it, and what forks. A head that a later life takes up is closed; closed lives are in the
 * store alone, where a rare question about one of them is answered by a read.
 *
 * There are two views. The executed one is what changes are judged by. The durable one is what
 * peers may learn: it follows by notes, one for each entry and write set. */
#include "protocol/database/compare/believe.h"
#include "protocol/database/state.h"

static uint32_t digest_count(const fb_node *node)
{
    return node->options.sizes.vector_entries;
}

static fb_digest_cell *digest_cell(fb_node *node, uint32_t index)
{
    return &fb_vector_get(node, index)->cell;
}

static void digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_vector *v = fb_vector_get(node, index);
    if (!v->used) return;
    fb_write_id(w, v->node);
    const uint64_t words[] = {(uint64_t)v->area << 32 | (v->closed ? 1u : 0u),
                              v->incarnation,
                              v->batch,
                              v->last_seq,
                              v->durable_batch,
                              v->claim};
    fb_write_words(w, words, sizeof words / sizeof words[0]);
}

static const fb_digest_kind digest_kind = {"vector", digest_count, digest_cell, digest_write};

static void touch(fb_node *node, uint32_t entry)
{
    fb_digest_touch(node, FB_DIGEST_VECTOR, entry);
}

void fb_vectors_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    uint32_t count = node->options.sizes.vector_entries;
    fb_vector *vectors = fb_arena_take(arena, count, sizeof *vectors);
    /* Two notes at most for each batch, that the life before it is closed and how its own stands;
     * and each batch puts two entries of its own at least. */
    uint32_t notes = FB_WRITE_SETS_KEPT * node->options.sizes.write_set_entries;
    fb_note *ring = fb_arena_take(arena, notes, sizeof *ring);
    fb_digest_register(node, FB_DIGEST_VECTOR, &digest_kind);
    if (db == NULL) return;
    db->vectors = vectors;
    db->notes = ring;
    db->note_cap = notes;
}

void fb_vectors_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    db->vector_free = 0;
    db->note_head = db->note_count = 0;
    for (uint32_t i = node->options.sizes.vector_entries; i-- > 0;) {
        fb_vector *v = &db->vectors[i];
        if (v->used) touch(node, i);
        v->used = false;
        v->next = db->vector_free;
        db->vector_free = i + 1;
    }
}

static int order_of(const fb_vector *v, fb_id peer, uint64_t incarnation)
{
    int order = fb_id_compare(v->node, peer);
    if (order != 0) return order;
    return v->incarnation < incarnation ? -1 : v->incarnation > incarnation ? 1 : 0;
}

static bool is_entry(const fb_vector *v, uint32_t area, fb_id peer, uint64_t incarnation)
{
    return v->incarnation == incarnation && v->area == area && v->used &&
           fb_id_equal(v->node, peer);
}

uint32_t fb_vector_find(const fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation)
{
    /* Where this life was found last: an entry proves itself, so nothing is ever forgotten here. */
    uint32_t *last = &node->database->vector_last[(incarnation ^ area) % FB_VECTORS_FOUND];
    const fb_vector *v = fb_vector_get(node, *last);
    if (!is_entry(v, area, peer, incarnation)) {
        uint32_t at = fb_area_get(node, area)->entries;
        while (at != 0 && !is_entry(fb_vector_get(node, at - 1), area, peer, incarnation)) {
            at = fb_vector_get(node, at - 1)->next;
        }
        if (at == 0) return FB_NONE;
        *last = at - 1;
        v = fb_vector_get(node, at - 1);
    }
    return v->closed ? FB_NONE : *last;
}

bool fb_vector_knows(const fb_node *node, uint32_t area, fb_id peer)
{
    for (uint32_t at = fb_area_get(node, area)->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        if (fb_id_equal(v->node, peer) && v->batch != 0) return true;
        at = v->next;
    }
    return false;
}

bool fb_vector_room(const fb_node *node, uint32_t count)
{
    uint32_t at = node->database->vector_free;
    while (count > 0 && at != 0) {
        at = fb_vector_get(node, at - 1)->next;
        count--;
    }
    return count == 0;
}

fb_status fb_vector_admits(const fb_node *node, uint32_t area, fb_id peer, bool closes)
{
    uint32_t in_area = 1, in_all = 1;
    for (uint32_t i = 0; i < node->options.sizes.vector_entries; i++) {
        const fb_vector *v = fb_vector_get(node, i);
        if (!v->used || v->closed || !fb_id_equal(v->node, peer)) continue;
        in_all++;
        if (v->area == area) in_area++;
    }
    if (closes) {
        in_area--;
        in_all--;
    }
    uint32_t most = (node->options.sizes.vector_entries + 1) / 2;
    if (in_area > FB_LIVES_IN_AREA_MAX || in_all > most) return FB_ERR_BATCH_LIVES;
    return fb_vector_room(node, 1) ? FB_OK : FB_ERR_LIMIT;
}

uint32_t fb_vector_add(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation)
{
    struct fb_database *db = node->database;
    fb_area *a = fb_area_get(node, area);
    uint32_t *at = &a->entries;
    while (*at != 0 && order_of(&db->vectors[*at - 1], peer, incarnation) < 0) {
        at = &db->vectors[*at - 1].next;
    }
    if (*at != 0 && order_of(&db->vectors[*at - 1], peer, incarnation) == 0) {
        /* Closed a moment ago, and more of it came: a fork, a head again. */
        fb_vector *v = &db->vectors[*at - 1];
        v->closed = false;
        touch(node, *at - 1);
        return *at - 1;
    }
    if (db->vector_free == 0) return FB_NONE;
    uint32_t entry = db->vector_free - 1;
    fb_vector *v = &db->vectors[entry];
    db->vector_free = v->next;
    fb_digest_cell cell = v->cell;
    memset(v, 0, sizeof *v);
    v->cell = cell;
    v->used = true;
    v->area = area;
    v->node = peer;
    v->incarnation = incarnation;
    v->claim = FB_CLAIM_FIRST;
    v->next = *at;
    *at = entry + 1;
    a->entry_count++;
    touch(node, entry);
    return entry;
}

void fb_vector_remove(fb_node *node, uint32_t entry)
{
    struct fb_database *db = node->database;
    fb_vector *v = &db->vectors[entry];
    fb_area *a = fb_area_get(node, v->area);
    uint32_t *at = &a->entries;
    while (*at != entry + 1) at = &db->vectors[*at - 1].next;
    *at = v->next;
    a->entry_count--;
    v->used = false;
    v->next = db->vector_free;
    db->vector_free = entry + 1;
    touch(node, entry);
}

static void note(fb_node *node, uint32_t entry, bool close)
{
    struct fb_database *db = node->database;
    fb_vector *v = &db->vectors[entry];
    uint64_t w = fb_w_building(node);
    if (v->noted_w == w && !close) {
        fb_note *earlier = &db->notes[v->noted_at];
        earlier->batch = v->batch;
        earlier->seq = v->last_seq;
        earlier->close = false;
        return;
    }
    FB_ASSERT(db->note_count < db->note_cap);
    uint32_t at = (db->note_head + db->note_count++) % db->note_cap;
    db->notes[at] = (fb_note){w, entry, close, v->batch, v->last_seq};
    v->noted_w = close ? 0 : w; /* nothing is added to a note before a close */
    v->noted_at = at;
    v->notes++;
}

static fb_span life_value(const fb_vector *v, uint8_t out[FB_VECTOR_VALUE_BYTES])
{
    fb_writer w = fb_writer_of(out, FB_VECTOR_VALUE_BYTES);
    fb_write_u8(&w, 1);
    fb_write_u64(&w, v->batch);
    fb_write_u64(&w, v->last_seq);
    fb_write_bytes(&w, v->hash, 32);
    fb_write_u64(&w, v->previous_incarnation);
    fb_write_u64(&w, v->previous_number);
    if (v->claim != FB_CLAIM_FIRST) fb_write_u64(&w, v->claim);
    return fb_writer_span(&w);
}

void fb_vector_put(fb_node *node, uint32_t entry)
{
    const fb_vector *v = fb_vector_get(node, entry);
    uint8_t key[FB_VECTOR_KEY_BYTES], value[FB_VECTOR_VALUE_BYTES];
    fb_put(node,
           fb_key_vector(key, false, fb_area_get(node, v->area)->local, v->node, v->incarnation),
           life_value(v, value));
    note(node, entry, false);
    touch(node, entry);
}

void fb_vector_close(fb_node *node, uint32_t entry)
{
    fb_vector *v = fb_vector_get(node, entry);
    uint32_t local = fb_area_get(node, v->area)->local;
    uint8_t key[FB_VECTOR_KEY_BYTES], value[FB_VECTOR_VALUE_BYTES];
    fb_put(node, fb_key_vector(key, true, local, v->node, v->incarnation), life_value(v, value));
    fb_delete(node, fb_key_vector(key, false, local, v->node, v->incarnation));
    v->closed = true;
    /* What it wrote is not all below the cut, and the next pass cannot wait for that any more. */
    if (v->marked > v->cut) fb_fold_mended(node, v->area);
    note(node, entry, true);
    touch(node, entry);
}

void fb_vectors_durable(fb_node *node)
{
    struct fb_database *db = node->database;
    uint64_t w = fb_w_durable(node);
    while (db->note_count > 0 && db->notes[db->note_head].w <= w) {
        const fb_note *n = &db->notes[db->note_head];
        fb_vector *v = &db->vectors[n->entry];
        fb_area *area = fb_area_get(node, v->area);
        area->digest_known = false;
        node->database->spaces[area->space].digest_known = false;
        v->notes--;
        if (n->close) {
            /* It may have become a head again since, and closed again: the last note decides. */
            v->durable_batch = v->durable_seq = 0;
            bool living = fb_area_get(node, v->area)->own == n->entry + 1;
            if (v->closed && !living && v->notes == 0) fb_vector_remove(node, n->entry);
        } else {
            v->durable_batch =
                MUTANT(VECTOR_STANDS_STILL, n->batch, fb_max_u64(1, v->durable_batch));
            v->durable_seq = n->seq;
        }
        fb_report_due(node, v->area);
        if (area->kind == FB_AREA_SPACE) fb_believe_again(node, area->space);
        touch(node, n->entry);
        db->note_head = (db->note_head + 1) % db->note_cap;
        db->note_count--;
    }
}

const uint8_t *fb_area_digest(fb_node *node, uint32_t area)
{
    fb_area *a = fb_area_get(node, area);
    if (a->digest_known) return a->digest;
    static const char label[] = "faberio-vector-v1"; /* hashed with its zero byte */
    uint8_t entry[40];
    fb_b32 chain = {{0}};
    bool any = false;
    /* Entry by entry, each hash over the one before: the vector may be long, the step's memory is
     * not. */
    for (uint32_t at = a->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->durable_batch == 0) continue;
        fb_writer w = fb_writer_of(entry, sizeof entry);
        fb_write_id(&w, v->node);
        fb_write_u64(&w, v->incarnation);
        fb_write_u64(&w, v->durable_batch);
        fb_write_u64(&w, v->durable_seq);
        const fb_span parts[] = {fb_span_of(label, sizeof label), fb_span_of(chain.b, any ? 32 : 0),
                                 fb_span_of(entry, sizeof entry)};
        fb_blake3(parts, 3, chain.b, 32);
        any = true;
    }
    memcpy(a->digest, chain.b, sizeof a->digest);
    a->digest_known = true;
    return a->digest;
}

/* Over the areas that a member may hold, or over all of them. *all: it may hold them all. */
static void digest_of(fb_node *node, uint32_t space, uint32_t member, uint8_t out[16], bool *all)
{
    static const char label[] = "faberio-vectors-v1"; /* hashed with its zero byte */
    static const uint8_t zero[16];
    uint8_t pair[32];
    fb_b32 chain = {{0}};
    *all = true;
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        uint32_t index = at - 1;
        at = area->next;
        const uint8_t *digest = fb_area_digest(node, index);
        if (memcmp(digest, zero, sizeof zero) == 0) continue;
        if (!fb_space_may_hold(node, space, member, area->id)) {
            *all = false;
            continue;
        }
        memcpy(pair, area->id.b, 16);
        memcpy(pair + 16, digest, 16);
        const fb_span parts[] = {fb_span_of(label, sizeof label), fb_span_of(chain.b, 32),
                                 fb_span_of(pair, sizeof pair)};
        fb_blake3(parts, 3, chain.b, 32);
    }
    /* Zeros are what a link says while it does not know: an empty vector has a digest too. */
    const fb_span parts[] = {fb_span_of(label, sizeof label), fb_span_of(chain.b, 32)};
    fb_blake3(parts, 2, out, 16);
}

static bool may_hold_all(const fb_node *node, uint32_t space, uint32_t member)
{
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        at = area->next;
        if (!fb_space_may_hold(node, space, member, area->id)) return false;
    }
    return true;
}

void fb_database_digest(fb_node *node, uint32_t space, uint32_t member, uint8_t out[16])
{
    fb_space_areas *areas = &node->database->spaces[space];
    /* Hashed once for all links and heartbeats between two changes. */
    if (areas->digest_known && may_hold_all(node, space, member)) {
        memcpy(out, areas->digest, sizeof areas->digest);
        return;
    }
    bool all;
    digest_of(node, space, member, out, &all);
    if (!all) return;
    memcpy(areas->digest, out, sizeof areas->digest);
    areas->digest_known = true;
}

static void write_entry(fb_writer *w, fb_id peer, uint64_t incarnation, uint64_t batch)
{
    fb_write_id(w, peer);
    fb_write_u64(w, incarnation);
    fb_write_u64(w, batch);
}

uint32_t fb_epoch_write(const fb_node *node, uint32_t space, uint64_t claim, uint32_t most,
                        fb_writer *w)
{
    uint32_t own = fb_area_own(node, space), count = 0;
    if (own == FB_NONE || most == 0) return 0;
    bool owed = claim != FB_CLAIM_FIRST; /* in its place, and never left out */
    for (uint32_t at = fb_area_get(node, own)->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (owed && fb_id_compare(node->self, v->node) <= 0) {
            write_entry(w, node->self, 0, claim);
            owed = false;
            count++;
        }
        if (v->closed || v->batch == 0 || count + (owed ? 1 : 0) >= most) continue;
        write_entry(w, v->node, v->incarnation, v->batch);
        count++;
    }
    if (owed) {
        write_entry(w, node->self, 0, claim);
        count++;
    }
    return count;
}

uint32_t fb_vector_reopen(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                          const fb_life *life)
{
    uint32_t entry = fb_vector_add(node, area, peer, incarnation);
    if (entry == FB_NONE) return FB_NONE;
    fb_vector *v = fb_vector_get(node, entry);
    v->batch = life->batch;
    v->last_seq = life->last_seq;
    memcpy(v->hash, life->hash, 32);
    v->claim = life->claim;
    v->previous_incarnation = life->previous_incarnation;
    v->previous_number = life->previous_number;
    uint8_t key[FB_VECTOR_KEY_BYTES];
    fb_delete(node, fb_key_vector(key, true, fb_area_get(node, area)->local, peer, incarnation));
    fb_vector_put(node, entry);
    return entry;
}

void fb_vector_erase(fb_node *node, uint32_t entry)
{
    fb_vector *v = fb_vector_get(node, entry);
    uint8_t key[FB_VECTOR_KEY_BYTES];
    fb_delete(node, fb_key_vector(key, false, fb_area_get(node, v->area)->local, v->node,
                                  v->incarnation));
    /* As a life that was taken up: it keeps its place until what is said of it is durable. */
    v->closed = true;
    note(node, entry, true);
    touch(node, entry);
}
