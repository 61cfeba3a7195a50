/* SPDX-License-Identifier: Apache-2.0 */
/* Does a peer hold the same? The verb RECORD_VERIFY, and the method `verify` on both ends. DESIGN
 * 3.1, Anti-entropy; docs/WIRE-FORMATS.md, "Verify".
 *
 * A fingerprint says something only beside the vector that it belongs to: two nodes of which one
 * has not fetched yet differ, and nothing is wrong. So each tells the fingerprint and the digest of
 * the vector that are durable with one write set. Who has the same vector has the same records,
 * unless it is in doubt, takes something back, or is damaged. Where it is damaged, a comparison
 * that repairs nothing says which records differ: nobody can tell whose are right. */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"

#define ARGUMENT_BYTES 16u
#define ANSWER_BYTES   33u

enum { FLAG_UNSURE = 1 };

/* What this node holds durably of an area. */
typedef struct held {
    bool unsure;
    uint8_t digest[16];
    uint8_t root[16];
} held;

static held held_of(fb_node *node, uint32_t index)
{
    const fb_area *area = fb_area_get(node, index);
    held h = {.unsure = area->doubt || area->mending || area->mended_w > fb_w_durable(node)};
    memcpy(h.digest, fb_area_digest(node, index), sizeof h.digest);
    memcpy(h.root, MUTANT(VERIFIED_AS_EXECUTED, area->durable_root, area->root), sizeof h.root);
    return h;
}

/* Served */

typedef struct serve_state {
    fb_id area;
    uint32_t link;
    bool told;
} serve_state;

static bool may_know(const fb_node *node, uint32_t area, uint32_t link)
{
    const fb_link_info *info = fb_link_at(node, link);
    return area != FB_NONE && fb_area_get(node, area)->space == info->space &&
           fb_space_may_hold(node, info->space, info->member, fb_area_get(node, area)->id);
}

static fb_status verify_begin(fb_node *node, uint32_t call, uint32_t link, fb_span arguments,
                              void *state)
{
    (void)call;
    serve_state *s = state;
    if (arguments.len != ARGUMENT_BYTES) return FB_ERR_CALL_MALFORMED;
    memcpy(s->area.b, arguments.p, sizeof s->area.b);
    s->link = link;
    return may_know(node, fb_area_find(node, s->area), link) ? FB_OK : FB_ERR_AREA_UNKNOWN;
}

static void verify_more(fb_node *node, uint32_t call, void *state)
{
    serve_state *s = state;
    uint32_t area = fb_area_find(node, s->area);
    if (s->told || !may_know(node, area, s->link)) {
        fb_call_finish(node, call, s->told ? FB_OK : FB_ERR_AREA_UNKNOWN);
        return;
    }
    held here = held_of(node, area);
    uint8_t bytes[ANSWER_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u8(&w, here.unsure ? FLAG_UNSURE : 0);
    fb_write_bytes(&w, here.digest, sizeof here.digest);
    fb_write_bytes(&w, here.root, sizeof here.root);
    s->told = true;
    fb_call_answer(node, call, fb_writer_span(&w));
}

static void verify_end(fb_node *node, uint32_t call, void *state)
{
    (void)node;
    (void)call;
    (void)state;
}

/* Asked */

static fb_verify *alive(fb_node *node, uint64_t serial)
{
    for (uint32_t i = 0; i < FB_VERIFIES_MAX; i++) {
        fb_verify *v = &node->database->verifies[i];
        if (v->used && v->serial == serial) return v;
    }
    return NULL;
}

static void finish(fb_node *node, fb_verify *v, fb_status status, fb_span answer)
{
    v->used = false;
    fb_area_unpin(node, v->area);
    if (fb_request_at(node, v->index).number != v->number) return;
    fb_reply_held(node, v->index, status, 0, answer);
}

static void answer(fb_node *node, fb_verify *v, fb_verify_state state, const fb_looked *looked)
{
    uint8_t bytes[FB_REPLY_HELD_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    uint32_t count = looked->count < FB_VERIFY_NAMED_MAX ? looked->count : FB_VERIFY_NAMED_MAX;
    fb_write_u8(&w, (uint8_t)state);
    fb_write_bytes(&w, v->mine, sizeof v->mine);
    fb_write_bytes(&w, v->theirs, sizeof v->theirs);
    fb_write_u8(&w, looked->whole ? 1 : 0);
    fb_write_u64(&w, looked->differ);
    fb_write_u16(&w, (uint16_t)count);
    for (uint32_t i = 0; i < count; i++) fb_write_id(&w, looked->ids[i]);
    FB_ASSERT(!w.failed);
    finish(node, v, FB_OK, fb_writer_span(&w));
}

static void on_looked(fb_node *node, uint64_t user, const fb_looked *looked)
{
    fb_verify *v = alive(node, user);
    if (v != NULL) answer(node, v, FB_VERIFY_DIFFERS, looked);
}

static void judge(fb_node *node, fb_verify *v, fb_reader *r)
{
    static const fb_looked all = {.whole = true}, none = {.whole = false};
    held here = held_of(node, v->area);
    bool unsure = (fb_read_u8(r) & FLAG_UNSURE) != 0 || here.unsure;
    const uint8_t *digest = fb_read_bytes(r, 16).p;
    fb_read_into(r, v->theirs, sizeof v->theirs);
    memcpy(v->mine, here.root, sizeof v->mine);
    if (!fb_reader_done(r)) {
        finish(node, v, FB_ERR_CALL_MALFORMED, (fb_span){NULL, 0});
        return;
    }
    bool behind = memcmp(digest, here.digest, sizeof here.digest) != 0;
    bool same = memcmp(v->theirs, v->mine, sizeof v->mine) == 0;
    if (unsure || behind || same) {
        answer(node, v, behind ? FB_VERIFY_BEHIND : same ? FB_VERIFY_SAME : FB_VERIFY_UNSURE, &all);
    } else if (!fb_compare_look(node, v->area, v->link, on_looked, v->serial)) {
        answer(node, v, FB_VERIFY_DIFFERS, &none); /* another comparison goes on */
    }
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status)
{
    (void)call;
    fb_verify *v = alive(node, user);
    if (v == NULL || !v->calling) return true;
    v->calling = false;
    if (last) {
        /* No answer: nothing that was asked for can be. */
        finish(node, v, status == FB_OK ? FB_ERR_CALL_MALFORMED : status, (fb_span){NULL, 0});
        return true;
    }
    fb_reader r = fb_reader_of(piece);
    judge(node, v, &r);
    return true;
}

static fb_status ask(fb_node *node, fb_request request, uint32_t area, fb_id peer)
{
    uint32_t space = fb_area_get(node, area)->space;
    uint32_t member = fb_member_find(node, space, peer);
    if (member == FB_NONE) return FB_ERR_NOT_FOUND;
    uint32_t link = fb_link_to(node, space, member);
    if (link == FB_NONE) return FB_ERR_UNREACHABLE;
    fb_verify *v = node->database->verifies;
    while (v < node->database->verifies + FB_VERIFIES_MAX && v->used) v++;
    if (v == node->database->verifies + FB_VERIFIES_MAX) return FB_ERR_BUSY;
    *v = (fb_verify){.used = true,
                     .calling = true,
                     .area = area,
                     .link = link,
                     .index = request.index,
                     .number = request.number,
                     .serial = ++node->database->serial};
    uint64_t deadline = fb_add_sat_u64(node->mono_ns, node->options.timing.call_ns);
    fb_status status =
        fb_call_start(node, link, FB_METHOD_VERIFY, fb_span_of(fb_area_get(node, area)->id.b, 16),
                      deadline, on_piece, v->serial, &v->call);
    if (status == FB_OK) fb_area_pin(node, area);
    v->used = status == FB_OK;
    return status;
}

static void on_verify(fb_node *node, fb_request request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    uint32_t space, area = FB_NONE;
    fb_status status =
        request.principal != 0 ? FB_ERR_NOT_AUTHORISED : fb_space_read(node, &r, 0, &space);
    if (status == FB_OK) status = fb_collection_read(node, &r, space, false, &area);
    fb_id peer = fb_read_id(&r);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    if (status == FB_OK && area == FB_NONE) status = FB_ERR_NOT_FOUND;
    if (status == FB_OK) status = ask(node, request, area, peer);
    if (status != FB_OK) fb_refuse(node, request, status);
}

static const fb_method_ops verify_method = {verify_begin, verify_more, verify_end};

void fb_verify_layout(fb_node *node, fb_arena *arena)
{
    fb_verify *verifies = fb_arena_take(arena, FB_VERIFIES_MAX, sizeof *verifies);
    fb_method_register(node, FB_METHOD_VERIFY, &verify_method);
    fb_verb_register(node, FB_VERB_RECORD_VERIFY, on_verify);
    if (node->database != NULL) node->database->verifies = verifies;
}

void fb_verify_reset(fb_node *node)
{
    for (uint32_t i = 0; i < FB_VERIFIES_MAX; i++) node->database->verifies[i].used = false;
}
