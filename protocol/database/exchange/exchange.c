/* SPDX-License-Identifier: Apache-2.0 */
/* Version vectors on the control channel of a link. DESIGN 3.1; docs/WIRE-FORMATS.md, "Version
 * vectors".
 *
 * After the type byte, u8 kind:
 * 1 summary: id low, id high, u16 count, each ascending: id area, 16 bytes digest of its vector.
 *   These are all areas from low to high that the sender holds something of. The receiver offers
 *   each area in that span that it holds and whose digest is another or missing.
 * 2 offer: id area, u8 kind, span16 name, u16 count, each: id node, u64 incarnation, u64 batch,
 *   u64 last sequence. What the sender holds; several frames when one is too short. The receiver
 *   fetches what it lacks.
 * A summary is sent when the link opens and when a heartbeat's digest differs; one of a single area
 * asks about that. Only what is durable is told. */
#include "protocol/base/utf8.h"
#include "protocol/database/state.h"

#define FRAME_BYTES         4096u
#define SUMMARY_ENTRY_BYTES 32u
#define OFFER_ENTRY_BYTES   40u
#define LOOKUP_BYTES        32u /* id node, u64 incarnation, u64 batch */

enum { KIND_NONE = 0, KIND_SUMMARY = 1, KIND_OFFER = 2 };
enum { PEEKED_NONE, PEEKED_STRANGER, PEEKED_ASK, PEEKED_SUMMARY, PEEKED_OFFER };

static const fb_id lowest;
static const fb_id highest = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                               0xff, 0xff, 0xff, 0xff, 0xff}};

static bool bit_get(const uint8_t *bits, uint32_t at)
{
    return (bits[at / 8] >> at % 8 & 1) != 0;
}

static void bit_set(uint8_t *bits, uint32_t at, bool value)
{
    uint8_t mask = (uint8_t)(1u << at % 8);
    bits[at / 8] = value ? bits[at / 8] | mask : bits[at / 8] & (uint8_t)~mask;
}

static fb_link_vectors *link_of(const fb_node *node, uint32_t link)
{
    return &node->database->links[link];
}

static size_t bit_bytes(const fb_node *node)
{
    return (node->options.sizes.areas + (size_t)7) / 8;
}

static bool holds_something(fb_node *node, uint32_t area)
{
    static const uint8_t zero[16];
    return memcmp(fb_area_digest(node, area), zero, sizeof zero) != 0;
}

/* Both ends may hold it. */
static bool shared(const fb_node *node, uint32_t link, uint32_t area)
{
    const fb_link_info *info = fb_link_at(node, link);
    const fb_area *a = fb_area_get(node, area);
    return a->used && a->space == info->space &&
           fb_space_may_hold(node, info->space, info->member, a->id);
}

/* Sending */

static fb_writer frame_begin(fb_node *node, fb_frame_out *out, uint8_t kind)
{
    out->head[0] = FB_CONTROL_VECTORS;
    out->head[1] = kind;
    out->head_len = 2;
    return fb_writer_of(node->database->frame, FRAME_BYTES);
}

/* All areas from `low` to `high`, as many as fit; *last: up to where it tells. */
static void write_summary(fb_node *node, uint32_t link, fb_id low, fb_id high, fb_writer *w,
                          fb_id *last)
{
    *last = high;
    fb_write_id(w, low);
    size_t high_at = w->at, count_at = w->at + 16;
    uint32_t count = 0;
    fb_write_id(w, high);
    fb_write_u16(w, 0);
    uint32_t space = fb_link_at(node, link)->space;
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t area = at - 1;
        const fb_area *a = fb_area_get(node, area);
        at = a->next;
        if (fb_id_compare(a->id, low) < 0 || fb_id_compare(a->id, high) > 0) continue;
        if (!shared(node, link, area) || !holds_something(node, area)) continue;
        fb_write_id(w, a->id);
        fb_write_bytes(w, a->digest, 16);
        count++;
        if (w->cap - w->at < SUMMARY_ENTRY_BYTES) {
            *last = a->id;
            break;
        }
    }
    memcpy(w->p + high_at, last->b, 16);
    fb_store_be(w->p + count_at, count, 2);
}

/* Entries of the durable vector from place `from` on. False when there are none. */
static bool write_offer(fb_node *node, uint32_t area, uint32_t from, fb_writer *w, uint32_t *next)
{
    const fb_area *a = fb_area_get(node, area);
    fb_write_id(w, a->id);
    fb_write_u8(w, a->kind);
    fb_write_span16(w, fb_span_of(a->name, a->name_len));
    size_t count_at = w->at;
    uint32_t count = 0, place = 0;
    fb_write_u16(w, 0);
    for (uint32_t at = a->entries; at != 0 && w->cap - w->at >= OFFER_ENTRY_BYTES;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->durable_batch == 0 || place++ < from) continue;
        fb_write_id(w, v->node);
        fb_write_u64(w, v->incarnation);
        fb_write_u64(w, v->durable_batch);
        fb_write_u64(w, v->durable_seq);
        count++;
    }
    fb_store_be(w->p + count_at, count, 2);
    *next = from + count;
    return count > 0;
}

static bool peek_summary(fb_node *node, uint32_t link, fb_id low, fb_id high, uint8_t peeked,
                         fb_frame_out *out)
{
    fb_link_vectors *lv = link_of(node, link);
    fb_writer w = frame_begin(node, out, KIND_SUMMARY);
    write_summary(node, link, low, high, &w, &lv->peeked_last);
    out->body = fb_writer_span(&w);
    lv->peeked = peeked;
    return true;
}

static bool peek(fb_node *node, uint32_t link, fb_frame_out *out)
{
    fb_link_vectors *lv = link_of(node, link);
    lv->peeked = PEEKED_NONE;
    if (!lv->up) return false;
    if (lv->stranger_count > 0) {
        fb_id id = lv->strangers[lv->stranger_count - 1];
        return peek_summary(node, link, id, id, PEEKED_STRANGER, out);
    }
    if (lv->summary) {
        /* Begins right after what the last one told. */
        fb_id low = lv->summary_after;
        for (uint32_t i = 16; i-- > 0 && !fb_id_is_zero(lv->summary_after);) {
            if (++low.b[i] != 0) break;
        }
        return peek_summary(node, link, low, highest, PEEKED_SUMMARY, out);
    }
    uint32_t areas = node->options.sizes.areas;
    for (uint32_t area = 0; area < areas; area++) {
        if (lv->ask[area / 8] == 0 && area % 8 == 0) {
            area += 7;
            continue;
        }
        if (!bit_get(lv->ask, area)) continue;
        lv->peeked_area = area;
        const fb_area *a = fb_area_get(node, area);
        if (shared(node, link, area)) {
            return peek_summary(node, link, a->id, a->id, PEEKED_ASK, out);
        }
        bit_set(lv->ask, area, false);
    }
    for (uint32_t area = 0; area < areas; area++) {
        if (lv->offer[area / 8] == 0 && area % 8 == 0) {
            area += 7;
            continue;
        }
        if (!bit_get(lv->offer, area)) continue;
        fb_writer w = frame_begin(node, out, KIND_OFFER);
        /* One that is owed since the last frame may come before the one at hand. */
        uint32_t from = area == lv->offer_area ? lv->offer_at : 0;
        if (shared(node, link, area) && write_offer(node, area, from, &w, &lv->peeked_next)) {
            lv->peeked = PEEKED_OFFER;
            lv->peeked_area = area;
            out->body = fb_writer_span(&w);
            return true;
        }
        bit_set(lv->offer, area, false);
        lv->offer_at = 0;
    }
    return false;
}

static void sent(fb_node *node, uint32_t link)
{
    fb_link_vectors *lv = link_of(node, link);
    switch (lv->peeked) {
    case PEEKED_STRANGER:
        lv->stranger_count--;
        break;
    case PEEKED_SUMMARY:
        lv->summary = !fb_id_equal(lv->peeked_last, highest);
        lv->summary_after = lv->summary ? lv->peeked_last : lowest;
        break;
    case PEEKED_ASK:
        bit_set(lv->ask, lv->peeked_area, false);
        break;
    case PEEKED_OFFER:
        lv->offer_area = lv->peeked_area;
        lv->offer_at = lv->peeked_next;
        break;
    default:
        break;
    }
    lv->peeked = PEEKED_NONE;
}

void fb_vector_ask(fb_node *node, uint32_t link, uint32_t area, fb_id id)
{
    fb_link_vectors *lv = link_of(node, link);
    if (!lv->up) return;
    if (area != FB_NONE) {
        bit_set(lv->ask, area, true);
    } else {
        for (uint32_t i = 0; i < lv->stranger_count; i++) {
            if (fb_id_equal(lv->strangers[i], id)) return;
        }
        if (lv->stranger_count == FB_STRANGERS_MAX) return; /* the next digest tells */
        lv->strangers[lv->stranger_count++] = id;
    }
    fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
}

void fb_vector_compare_all(fb_node *node, uint32_t space)
{
    for (uint32_t link = 0; link < fb_link_capacity(node); link++) {
        fb_link_vectors *lv = link_of(node, link);
        if (!lv->up || fb_link_at(node, link)->space != space) continue;
        lv->summary = true;
        lv->summary_after = lowest;
        fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
    }
}

void fb_database_differs(fb_node *node, uint32_t link)
{
    fb_link_vectors *lv = link_of(node, link);
    if (!lv->up || MUTANT(DIFFERENCE_IGNORED, false, true)) return;
    lv->differs_ns = node->mono_ns;
    lv->summary = true;
    fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
}

/* Receiving */

static fb_status on_summary(fb_node *node, uint32_t link, fb_reader *r)
{
    fb_link_vectors *lv = link_of(node, link);
    fb_id low = fb_read_id(r), high = fb_read_id(r);
    uint32_t count = fb_read_u16(r);
    fb_span entries = fb_read_bytes(r, (size_t)count * SUMMARY_ENTRY_BYTES);
    if (!fb_reader_done(r)) return FB_ERR_LINK_RECORD;
    for (uint32_t i = 1; i < count; i++) {
        const uint8_t *entry = entries.p + (size_t)i * SUMMARY_ENTRY_BYTES;
        if (memcmp(entry - SUMMARY_ENTRY_BYTES, entry, 16) >= 0) return FB_ERR_LINK_RECORD;
    }
    bool any = false;
    uint32_t next = 0, space = fb_link_at(node, link)->space;
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t area = at - 1;
        const fb_area *a = fb_area_get(node, area);
        at = a->next;
        if (fb_id_compare(a->id, low) < 0 || fb_id_compare(a->id, high) > 0) continue;
        int order = 1;
        const uint8_t *entry = NULL;
        while (next < count) {
            entry = entries.p + (size_t)next * SUMMARY_ENTRY_BYTES;
            order = memcmp(entry, a->id.b, 16);
            if (order >= 0) break;
            next++;
        }
        if (!holds_something(node, area) || !shared(node, link, area)) continue;
        bool same = next < count && order == 0 && memcmp(entry + 16, a->digest, 16) == 0;
        if (same) continue;
        bit_set(lv->offer, area, true);
        any = true;
    }
    if (any) fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
    return FB_OK;
}

/* Offered lives that are no heads here: behind us, or new? The store knows the closed ones. */
typedef struct lookup_context {
    uint32_t area;
    uint32_t link;
    uint64_t link_number;
    fb_span entries;
} lookup_context;

static void lookup_run(fb_node *node, fb_op *op)
{
    const lookup_context *c = fb_op_context(op);
    const fb_link_info *info = fb_link_at(node, c->link);
    bool same = info->number == c->link_number && info->state == FB_LINK_OPEN;
    for (size_t at = 0; at < c->entries.len && fb_op_status(op) == FB_OK; at += LOOKUP_BYTES) {
        fb_reader r = fb_reader_of(fb_span_of(c->entries.p + at, LOOKUP_BYTES));
        fb_id peer = fb_read_id(&r);
        uint64_t incarnation = fb_read_u64(&r), batch = fb_read_u64(&r);
        fb_read_entry entry;
        fb_life life;
        if (fb_op_value(node, op, (uint32_t)(at / LOOKUP_BYTES), &entry) &&
            fb_life_decode(entry.value, &life) == FB_OK && life.batch >= batch) {
            continue;
        }
        (void)fb_want(node, c->area, peer, incarnation, batch, same ? c->link : FB_NONE);
    }
    fb_fetch_go(node, c->area);
    fb_area_unpin(node, c->area);
}

static void look_up(fb_node *node, uint32_t link, uint32_t area, fb_span entries)
{
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, lookup_run, 0, 0);
    if (op == NULL) return; /* the next comparison says it again */
    lookup_context *c = fb_op_context(op);
    *c = (lookup_context){area, link, fb_link_at(node, link)->number, fb_op_keep(op, entries)};
    bool ok = c->entries.p != NULL;
    for (size_t at = 0; at < entries.len && ok; at += LOOKUP_BYTES) {
        fb_reader r = fb_reader_of(fb_span_of(entries.p + at, LOOKUP_BYTES));
        fb_id peer = fb_read_id(&r);
        uint8_t key[FB_VECTOR_KEY_BYTES];
        uint32_t local = fb_area_get(node, area)->local;
        ok = fb_op_read_key(op, fb_key_vector(key, true, local, peer, fb_read_u64(&r)),
                            FB_VECTOR_VALUE_BYTES);
    }
    if (!ok) {
        fb_op_abandon(node, op);
        return;
    }
    fb_area_pin(node, area);
    fb_op_issue(node, op);
}

static fb_status on_offer(fb_node *node, uint32_t link, fb_reader *r)
{
    uint32_t space = fb_link_at(node, link)->space;
    fb_id id = fb_read_id(r);
    uint8_t kind = fb_read_u8(r);
    fb_span name = fb_read_span16(r);
    uint32_t count = fb_read_u16(r);
    fb_span entries = fb_read_bytes(r, (size_t)count * OFFER_ENTRY_BYTES);
    if (!fb_reader_done(r) || kind < FB_AREA_COLLECTION || kind > FB_AREA_REPORTS ||
        name.len > FB_COLLECTION_NAME_BYTES_MAX || (name.len == 0) != (kind >= FB_AREA_SPACE) ||
        !fb_utf8_is_name(name)) {
        return FB_ERR_LINK_RECORD;
    }
    /* The id proves kind and name (DESIGN 3.1, Area). */
    if (!fb_id_equal(id, fb_area_id(fb_space_id(node, space), (fb_area_kind)kind, name))) {
        return FB_ERR_LINK_RECORD;
    }
    uint32_t area = fb_area_named(node, space, (fb_area_kind)kind, name, id, link);
    if (area == FB_NONE) {
        fb_count(node, FB_COUNTER_AREAS_REFUSED, 1);
        return FB_OK; /* the next comparison says it again */
    }
    fb_area_pin(node, area);
    uint8_t unsure[(FRAME_BYTES / OFFER_ENTRY_BYTES) * LOOKUP_BYTES];
    fb_writer w = fb_writer_of(unsure, sizeof unsure);
    fb_reader e = fb_reader_of(entries);
    for (uint32_t i = 0; i < count; i++) {
        fb_id peer = fb_read_id(&e);
        uint64_t incarnation = fb_read_u64(&e), batch = fb_read_u64(&e);
        fb_read_u64(&e);
        if (fb_vector_find(node, area, peer, incarnation) == FB_NONE &&
            fb_vector_knows(node, area, peer)) {
            fb_write_id(&w, peer);
            fb_write_u64(&w, incarnation);
            fb_write_u64(&w, batch);
            if (w.cap - w.at >= LOOKUP_BYTES) continue;
            look_up(node, link, area, fb_writer_span(&w));
            w.at = 0;
            continue;
        }
        (void)fb_want(node, area, peer, incarnation, batch, link);
    }
    if (w.at != 0) look_up(node, link, area, fb_writer_span(&w));
    fb_fetch_go(node, area);
    fb_area_unpin(node, area);
    return FB_OK;
}

static fb_status on_frame(fb_node *node, uint32_t link, fb_span frame)
{
    fb_reader r = fb_reader_of(frame);
    fb_read_u8(&r);
    uint8_t kind = fb_read_u8(&r);
    if (!link_of(node, link)->up) return FB_OK;
    if (kind == KIND_SUMMARY) return on_summary(node, link, &r);
    if (kind == KIND_OFFER) return on_offer(node, link, &r);
    return FB_ERR_LINK_RECORD;
}

static void clear(fb_node *node, uint32_t link)
{
    fb_link_vectors *lv = link_of(node, link);
    uint8_t *offer = lv->offer, *ask = lv->ask;
    memset(offer, 0, bit_bytes(node));
    memset(ask, 0, bit_bytes(node));
    *lv = (fb_link_vectors){.offer = offer, .ask = ask};
}

/* FM-8.3-3, MP-6-9 */
static void up(fb_node *node, uint32_t link)
{
    clear(node, link);
    fb_link_vectors *lv = link_of(node, link);
    lv->up = true;
    lv->summary = true;
    fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
    fb_fetch_go_all(node, fb_link_at(node, link)->space);
    fb_compare_link_up(node, fb_link_at(node, link)->space);
}

static void down(fb_node *node, uint32_t link, fb_error why)
{
    (void)why;
    clear(node, link);
    fb_wanted_link_down(node, link);
    fb_areas_link_down(node, link);
    fb_fetch_go_all(node, fb_link_at(node, link)->space);
}

static const fb_channel channel = {
    .up = up, .down = down, .frame = on_frame, .peek = peek, .sent = sent};

void fb_vector_exchange_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    uint32_t count = node->options.sizes.links;
    size_t bytes = bit_bytes(node);
    fb_link_vectors *links = fb_arena_take(arena, count, sizeof *links);
    uint8_t *bits = fb_arena_take(arena, 2 * (size_t)count, bytes);
    uint8_t *frame = fb_arena_take(arena, FRAME_BYTES, 1);
    fb_control_register(node, FB_CONTROL_VECTORS, &channel);
    if (db == NULL) return;
    db->links = links;
    db->frame = frame;
    for (uint32_t i = 0; i < count; i++) {
        links[i].offer = bits + 2 * i * bytes;
        links[i].ask = bits + (2 * i + 1) * bytes;
    }
}

void fb_vector_exchange_reset(fb_node *node)
{
    for (uint32_t i = 0; i < node->options.sizes.links; i++) clear(node, i);
}
