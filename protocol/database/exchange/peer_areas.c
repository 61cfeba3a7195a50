/* SPDX-License-Identifier: Apache-2.0 */
/* Which collections does a peer have? The verb PEER_AREAS, and the method `areas` on both ends.
 * docs/WIRE-FORMATS.md, "Areas".
 *
 * Vectors tell a peer's areas as well, and what it has of one that there is no place for here is
 * refused and forgotten. Who compares itself with a peer has to hear of those too: else it asks
 * about what it has, and is told that all is well. */
#include "protocol/base/mutant.h"
#include "protocol/base/utf8.h"
#include "protocol/database/state.h"

#define ARGUMENT_BYTES 16u
#define ENTRY_BYTES    (16u + 1 + 2) /* with its name */

_Static_assert(2 + ENTRY_BYTES + FB_COLLECTION_NAME_BYTES_MAX <= FB_REPLY_HELD_BYTES,
               "an answer has room for one");

/* Served */

typedef struct serve_state {
    fb_id after;
    uint32_t link;
    bool told;
} serve_state;

/* Something of it is durable here: what is not may never have been. */
static bool is_held(const fb_node *node, const fb_area *area)
{
    if (!area->used || !area->stored) return false;
    if (area->kind != FB_AREA_COLLECTION && area->kind != FB_AREA_FILES) return false;
    for (uint32_t at = area->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (MUTANT(LISTED_AS_EXECUTED, v->durable_batch, v->batch) != 0) return true;
    }
    return false;
}

static bool entry_write(fb_writer *w, const fb_area *area)
{
    if (w->cap - w->at < ENTRY_BYTES + (size_t)area->name_len) return false;
    fb_write_id(w, area->id);
    fb_write_u8(w, (uint8_t)area->kind);
    fb_write_span16(w, fb_span_of(area->name, area->name_len));
    return true;
}

static fb_status areas_begin(fb_node *node, uint32_t call, uint32_t link, fb_span arguments,
                             void *state)
{
    (void)node;
    (void)call;
    serve_state *s = state;
    if (arguments.len != ARGUMENT_BYTES) return FB_ERR_CALL_MALFORMED;
    memcpy(s->after.b, arguments.p, sizeof s->after.b);
    s->link = link;
    return FB_OK;
}

static void areas_more(fb_node *node, uint32_t call, void *state)
{
    serve_state *s = state;
    if (s->told) {
        fb_call_finish(node, call, FB_OK);
        return;
    }
    const fb_link_info *info = fb_link_at(node, s->link);
    uint8_t bytes[FB_REPLY_HELD_BYTES];
    uint32_t most = fb_call_piece_max(node, call), count = 0;
    fb_writer w = fb_writer_of(bytes, most < sizeof bytes ? most : sizeof bytes);
    fb_write_u16(&w, 0);
    for (uint32_t at = node->database->spaces[info->space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        at = area->next;
        if (fb_id_compare(area->id, s->after) <= 0 || !is_held(node, area)) continue;
        if (!fb_space_may_hold(node, info->space, info->member, area->id)) continue;
        if (!entry_write(&w, area)) break;
        count++;
    }
    fb_store_be(bytes, count, 2);
    s->told = true;
    fb_call_answer(node, call, fb_writer_span(&w));
}

static void areas_end(fb_node *node, uint32_t call, void *state)
{
    (void)node;
    (void)call;
    (void)state;
}

/* Asked */

static fb_peer_areas *alive(fb_node *node, uint64_t serial)
{
    for (uint32_t i = 0; i < FB_PEER_AREAS_MAX; i++) {
        fb_peer_areas *l = &node->database->peer_areas[i];
        if (l->used && l->serial == serial) return l;
    }
    return NULL;
}

static void finish(fb_node *node, fb_peer_areas *l, fb_status status, fb_span answer)
{
    l->used = false;
    if (fb_request_at(node, l->index).number != l->number) return;
    fb_reply_held(node, l->index, status, 0, answer);
}

/* As many as an answer has room for: kind and name prove the id, and they ascend from `after`, so
 * that whoever asks on comes to an end. False: the peer broke the format. */
static bool take(const fb_peer_areas *l, fb_span piece, fb_writer *w)
{
    fb_reader r = fb_reader_of(piece);
    fb_id last = l->after;
    uint16_t count = fb_read_u16(&r), taken = 0;
    fb_write_u16(w, 0);
    for (uint16_t i = 0; i < count; i++) {
        fb_id id = fb_read_id(&r);
        uint8_t kind = fb_read_u8(&r);
        fb_span name = fb_read_span16(&r);
        if (r.failed || fb_id_compare(id, last) <= 0) return false;
        if (kind != FB_AREA_COLLECTION && kind != FB_AREA_FILES) return false;
        if (name.len == 0 || name.len > FB_COLLECTION_NAME_BYTES_MAX || !fb_utf8_is_name(name)) {
            return false;
        }
        if (!fb_id_equal(id, fb_area_id(l->space, (fb_area_kind)kind, name))) return false;
        last = id;
        if (taken < i || w->cap - w->at < ENTRY_BYTES + name.len) continue; /* asked for again */
        fb_write_id(w, id);
        fb_write_u8(w, kind);
        fb_write_span16(w, name);
        taken++;
    }
    fb_store_be(w->p, taken, 2);
    return fb_reader_done(&r);
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status)
{
    (void)call;
    fb_peer_areas *l = alive(node, user);
    if (l == NULL) return true;
    if (last) {
        /* No answer: nothing that was asked for can be. */
        finish(node, l, status == FB_OK ? FB_ERR_CALL_MALFORMED : status, (fb_span){NULL, 0});
        return true;
    }
    uint8_t bytes[FB_REPLY_HELD_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    bool right = take(l, piece, &w);
    finish(node, l, right ? FB_OK : FB_ERR_CALL_MALFORMED,
           right ? fb_writer_span(&w) : (fb_span){NULL, 0});
    return true;
}

static fb_status ask(fb_node *node, fb_request request, uint32_t space, fb_id peer, fb_id after)
{
    uint32_t member = fb_member_find(node, space, peer);
    if (member == FB_NONE) return FB_ERR_NOT_FOUND;
    uint32_t link = fb_link_to(node, space, member);
    if (link == FB_NONE) return FB_ERR_UNREACHABLE;
    fb_peer_areas *l = node->database->peer_areas;
    while (l < node->database->peer_areas + FB_PEER_AREAS_MAX && l->used) l++;
    if (l == node->database->peer_areas + FB_PEER_AREAS_MAX) return FB_ERR_BUSY;
    *l = (fb_peer_areas){.used = true,
                         .index = request.index,
                         .number = request.number,
                         .serial = ++node->database->serial,
                         .space = fb_space_id(node, space),
                         .after = after};
    uint32_t call;
    uint64_t deadline = fb_add_sat_u64(node->mono_ns, node->options.timing.call_ns);
    fb_status status =
        fb_call_start(node, link, FB_METHOD_AREAS, fb_span_of(after.b, sizeof after.b), deadline,
                      on_piece, l->serial, &call);
    l->used = status == FB_OK;
    return status;
}

static void on_peer_areas(fb_node *node, fb_request request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    uint32_t space;
    fb_status status =
        request.principal != 0 ? FB_ERR_NOT_AUTHORISED : fb_space_read(node, &r, 0, &space);
    fb_id peer = fb_read_id(&r), after = fb_read_id(&r);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    if (status == FB_OK) status = ask(node, request, space, peer, after);
    if (status != FB_OK) fb_refuse(node, request, status);
}

static const fb_method_ops areas_method = {areas_begin, areas_more, areas_end};

void fb_peer_areas_layout(fb_node *node, fb_arena *arena)
{
    fb_peer_areas *listings = fb_arena_take(arena, FB_PEER_AREAS_MAX, sizeof *listings);
    fb_method_register(node, FB_METHOD_AREAS, &areas_method);
    fb_verb_register(node, FB_VERB_PEER_AREAS, on_peer_areas);
    if (node->database != NULL) node->database->peer_areas = listings;
}

void fb_peer_areas_reset(fb_node *node)
{
    for (uint32_t i = 0; i < FB_PEER_AREAS_MAX; i++) node->database->peer_areas[i].used = false;
}
