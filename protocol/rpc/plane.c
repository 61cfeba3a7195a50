/* SPDX-License-Identifier: Apache-2.0 */
/* The calls plane: its tables, its channel, its hooks. */
#include "protocol/core/plane.h"

#include "protocol/rpc/state.h"

static uint32_t calls_count(const fb_node *node)
{
    return node->options.sizes.calls;
}

static fb_digest_cell *call_cell(fb_node *node, uint32_t index)
{
    return &node->rpc->call[index].digest;
}

static void call_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_call *c = &node->rpc->call[index];
    if (c->role == FB_SIDE_FREE) return;
    const bool flags[] = {c->peeked, c->ended,  c->answered, c->paused,
                          c->closed, c->asking, c->ready,    c->shown};
    uint8_t bits = 0;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bits = (uint8_t)(bits | (unsigned)flags[i] << i);
    }
    const uint64_t words[] = {
        (uint64_t)c->method << 48 | (uint64_t)c->status << 32 | (uint64_t)bits << 8 | c->role,
        (uint64_t)c->owes << 32 | c->link,
        c->number,
        c->serial,
        c->credit,
        c->spent,
        c->consumed,
        (uint64_t)c->pieces << 32 | c->len,
        c->at,
        c->deadline_ns,
        c->retry_ns,
    };
    fb_write_words(w, words, sizeof words / sizeof words[0]);
}

static uint32_t links_count(const fb_node *node)
{
    return node->options.sizes.links;
}

static fb_digest_cell *link_cell(fb_node *node, uint32_t index)
{
    return &node->rpc->link[index].digest;
}

static void link_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_call_link *l = &node->rpc->link[index];
    if (!l->up) return;
    fb_write_u8(w, l->out);
    fb_write_u64(w, l->last_own);
    fb_write_u64(w, l->last_peer);
    for (uint32_t i = 0; i < l->notes; i++) {
        fb_write_u8(w, l->note[i].type);
        fb_write_u16(w, l->note[i].status);
        fb_write_u64(w, l->note[i].number);
    }
}

static const fb_digest_kind call_kind = {"call", calls_count, call_cell, call_write};
static const fb_digest_kind link_kind = {"call_link", links_count, link_cell, link_write};

static void up(fb_node *node, uint32_t index)
{
    fb_call_link *link = &node->rpc->link[index];
    fb_digest_cell digest = link->digest;
    *link = (fb_call_link){.up = true,
                           .external = fb_link_at(node, index)->external,
                           .out_call = FB_NONE,
                           .digest = digest};
    fb_digest_touch(node, FB_DIGEST_CALL_LINK, index);
}

/* Every call on the link ends: own ones may be tried again elsewhere. */
static void down(fb_node *node, uint32_t index, fb_error why)
{
    (void)why;
    struct fb_rpc *rpc = node->rpc;
    if (!rpc->link[index].up) return;
    rpc->link[index].up = false;
    rpc->link[index].out = 0;
    rpc->link[index].notes = 0;
    fb_digest_touch(node, FB_DIGEST_CALL_LINK, index);
    for (uint32_t i = 0; i < rpc->calls; i++) {
        fb_call *call = &rpc->call[i];
        if (call->role == FB_SIDE_FREE || call->link != index) continue;
        call->peeked = false;
        if (call->role == FB_SIDE_CALLER) {
            fb_caller_finish(node, i, FB_ERR_UNREACHABLE);
        } else if (call->role == FB_SIDE_SERVER) {
            fb_server_over(node, i);
        } else {
            call->role = FB_SIDE_FREE;
            fb_call_touch(node, i);
        }
    }
}

static fb_status read_frame(fb_node *node, uint32_t link, fb_span bytes)
{
    fb_reader r = fb_reader_of(bytes);
    uint8_t type = fb_read_u8(&r);
    uint64_t number = fb_read_u64(&r);
    if (type == FB_CALL_REQUEST) return fb_server_request(node, link, number, &r);
    if (type == FB_CALL_PIECE) {
        uint32_t index = fb_read_u32(&r);
        fb_span piece = fb_read_bytes(&r, fb_reader_left(&r));
        if (r.failed) return FB_ERR_CALL_MALFORMED;
        return fb_caller_piece(node, link, number, index, piece);
    }
    if (type == FB_CALL_END) {
        uint32_t pieces = fb_read_u32(&r);
        uint16_t status = fb_read_u16(&r);
        if (!fb_reader_done(&r)) return FB_ERR_CALL_MALFORMED;
        return fb_caller_end(node, link, number, pieces, status);
    }
    if (type == FB_CALL_CREDIT) {
        uint32_t pieces = fb_read_u32(&r);
        uint64_t credit = fb_read_u64(&r);
        if (!fb_reader_done(&r)) return FB_ERR_CALL_MALFORMED;
        return fb_server_credit(node, link, number, pieces, credit);
    }
    if (type != FB_CALL_CANCEL || !fb_reader_done(&r)) return FB_ERR_CALL_MALFORMED;
    return fb_server_cancel(node, link, number);
}

static fb_status frame(fb_node *node, uint32_t link, fb_span bytes)
{
    if (!node->rpc->link[link].up) return FB_OK;
    fb_status status = read_frame(node, link, bytes);
    if (status != FB_OK) fb_count(node, FB_COUNTER_CALLS_REFUSED, 1);
    return status;
}

static const fb_channel channel_ops = {
    .up = up,
    .down = down,
    .frame = frame,
    .peek = fb_call_peek,
    .sent = fb_call_sent,
};

static void timer(fb_node *node, uint32_t index)
{
    switch (node->rpc->call[index].role) {
    case FB_SIDE_CALLER:
        fb_caller_timer(node, index);
        break;
    case FB_SIDE_SERVER:
        fb_server_timer(node, index);
        break;
    default:
        break;
    }
}

static void layout(fb_node *node, fb_arena *arena)
{
    const fb_sizes *sizes = &node->options.sizes;
    struct fb_rpc shape = {
        .calls = sizes->calls,
        .links = sizes->links,
        .own = sizes->calls / 2,
        .bytes = sizes->call_bytes,
    };
    struct fb_rpc *rpc = fb_arena_take(arena, 1, sizeof *rpc);
    shape.call = fb_arena_take(arena, shape.calls, sizeof *shape.call);
    shape.buffer = fb_arena_take(arena, shape.calls, shape.bytes);
    shape.link = fb_arena_take(arena, shape.links, sizeof *shape.link);
    if (rpc != NULL) *rpc = shape;
    node->rpc = rpc;
    fb_digest_register(node, FB_DIGEST_CALL, &call_kind);
    fb_digest_register(node, FB_DIGEST_CALL_LINK, &link_kind);
    fb_timer_register(node, FB_TIMER_CALL, timer, shape.calls);
    fb_channel_register(node, FB_CHANNEL_CALLS, &channel_ops);
}

static void reset(fb_node *node)
{
    struct fb_rpc *rpc = node->rpc;
    for (uint32_t i = 0; i < rpc->calls; i++) {
        if (rpc->call[i].role != FB_SIDE_FREE) fb_call_touch(node, i);
        rpc->call[i].role = FB_SIDE_FREE;
        rpc->call[i].peeked = rpc->call[i].wanting = false;
    }
    for (uint32_t i = 0; i < rpc->links; i++) {
        if (rpc->link[i].up) fb_digest_touch(node, FB_DIGEST_CALL_LINK, i);
        rpc->link[i].up = false;
    }
    rpc->wanting = 0;
    rpc->serials = 0;
}

const fb_plane fb_rpc_plane = {
    .name = "rpc",
    .layout = layout,
    .reset = reset,
    .flush = fb_server_flush,
};
