/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side: request, credit, pieces to their consumer, deadline, cancellation. */
#include "protocol/rpc/state.h"

static void set_timer(fb_node *node, fb_call *call)
{
    fb_timer_set(node, &call->timer, fb_min_u64(call->deadline_ns, call->retry_ns));
}

/* External carrier: the last word is said again when nothing comes. */
static void expect_answer(fb_node *node, fb_call *call)
{
    if (!call->external) return;
    call->retry_ns = fb_add_sat_u64(node->mono_ns, call->backoff_ns);
    set_timer(node, call);
}

static void progress(fb_node *node, fb_call *call)
{
    call->answered = true;
    call->backoff_ns = node->options.timing.resend_min_ns;
    call->retry_ns = FB_NEVER;
    set_timer(node, call);
}

/* FM-3.6-3, MP-7-28 */
fb_status fb_call_start(fb_node *node, uint32_t link, fb_method method, fb_span arguments,
                        uint64_t deadline_ns, fb_call_piece piece, uint64_t user, uint32_t *out)
{
    struct fb_rpc *rpc = node->rpc;
    if (link >= rpc->links || !rpc->link[link].up) return FB_ERR_UNREACHABLE;
    if (arguments.len > FB_CALL_ARGUMENTS_MAX || arguments.len > rpc->bytes) return FB_ERR_LIMIT;
    uint32_t index = fb_call_take(node, FB_SIDE_CALLER, link, rpc->link[link].last_own + 1);
    if (index == FB_NONE) return FB_ERR_BUSY;
    rpc->link[link].last_own++;
    fb_digest_touch(node, FB_DIGEST_CALL_LINK, link);
    fb_call *call = &rpc->call[index];
    call->method = (uint16_t)method;
    call->deadline_ns = deadline_ns;
    call->piece = piece;
    call->user = user;
    call->window = call->credit = rpc->bytes;
    call->len = (uint32_t)arguments.len;
    if (arguments.len != 0) memcpy(fb_call_buffer(rpc, index), arguments.p, arguments.len);
    set_timer(node, call);
    fb_call_owe(node, index, FB_CALL_REQUEST);
    *out = index;
    return FB_OK;
}

void fb_caller_sent(fb_node *node, uint32_t index, uint8_t type)
{
    (void)type;
    expect_answer(node, &node->rpc->call[index]);
}

static void tell_server(fb_node *node, const fb_call *call)
{
    bool unsent = !call->answered && (call->owes & 1u << FB_CALL_REQUEST) != 0 && !call->peeked &&
                  call->retry_ns == FB_NEVER &&
                  call->backoff_ns == node->options.timing.resend_min_ns;
    if (!unsent) fb_call_note_add(node, call->link, FB_CALL_CANCEL, call->number, FB_OK);
}

void fb_caller_finish(fb_node *node, uint32_t index, fb_status status)
{
    fb_call *call = &node->rpc->call[index];
    fb_call_piece piece = call->piece;
    uint64_t user = call->user;
    fb_call_free(node, index);
    (void)piece(node, index, user, (fb_span){NULL, 0}, true, status);
}

void fb_call_cancel(fb_node *node, uint32_t index)
{
    fb_call *call = &node->rpc->call[index];
    if (call->role != FB_SIDE_CALLER) return;
    if (!call->ended) tell_server(node, call);
    fb_call_free(node, index);
}

void fb_caller_timer(fb_node *node, uint32_t index)
{
    fb_call *call = &node->rpc->call[index];
    if (node->mono_ns >= call->deadline_ns) {
        if (!call->ended) tell_server(node, call);
        fb_caller_finish(node, index, FB_ERR_DEADLINE);
        return;
    }
    call->retry_ns = FB_NEVER;
    call->backoff_ns = fb_min_u64(2 * call->backoff_ns, node->options.timing.resend_max_ns);
    set_timer(node, call);
    if (!call->paused && !call->ended) {
        fb_call_owe(node, index, call->answered ? FB_CALL_CREDIT : FB_CALL_REQUEST);
    }
    fb_call_touch(node, index);
}

/* What the consumer had is granted again, at once: the next piece may need the whole window. */
static void grant(fb_node *node, uint32_t index)
{
    fb_call *call = &node->rpc->call[index];
    uint64_t credit = call->consumed + call->window;
    if (call->ended) return;
    if (!call->external && credit == call->credit) return;
    call->credit = credit;
    fb_call_owe(node, index, FB_CALL_CREDIT);
}

/* Gives one piece on. False: the call is gone, or takes no more now. */
static bool give(fb_node *node, uint32_t index, fb_span piece)
{
    fb_call *call = &node->rpc->call[index];
    uint64_t serial = call->serial;
    call->inside = true;
    call->consumed += piece.len + FB_PIECE_COST;
    bool more = call->piece(node, index, call->user, piece, false, FB_OK);
    if (call->role != FB_SIDE_CALLER || call->serial != serial) return false;
    call->inside = false;
    fb_call_touch(node, index);
    if (!more && !call->resumed) {
        call->paused = true;
        return false;
    }
    call->resumed = false;
    grant(node, index);
    return true;
}

/* Kept pieces, then the end. */
static void drain(fb_node *node, uint32_t index)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call *call = &rpc->call[index];
    while (call->at < call->len) {
        const uint8_t *p = fb_call_buffer(rpc, index) + call->at;
        uint32_t len = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        call->at += 4 + len;
        if (!give(node, index, fb_span_of(p + 4, len))) return;
    }
    call->at = call->len = 0;
    if (call->ended) fb_caller_finish(node, index, (fb_status)call->status);
}

void fb_call_resume(fb_node *node, uint32_t index)
{
    fb_call *call = &node->rpc->call[index];
    if (call->role != FB_SIDE_CALLER) return;
    if (call->inside) {
        call->resumed = true; /* said before the consumer's own answer */
        return;
    }
    if (!call->paused) return;
    call->paused = false;
    fb_call_touch(node, index);
    grant(node, index);
    drain(node, index);
}

/* On a byte stream nobody can answer what has not left yet; its arguments still have the buffer. */
static bool unasked(const fb_call *call)
{
    return !call->external && (call->owes & 1u << FB_CALL_REQUEST) != 0;
}

fb_status fb_caller_piece(fb_node *node, uint32_t link, uint64_t number, uint32_t piece_index,
                          fb_span piece)
{
    struct fb_rpc *rpc = node->rpc;
    uint32_t index = fb_call_find(rpc, FB_SIDE_CALLER, link, number);
    if (index == FB_NONE) {
        if (number == 0 || number > rpc->link[link].last_own) return FB_ERR_CALL_MALFORMED;
        if (rpc->link[link].external) {
            fb_call_note_add(node, link, FB_CALL_CANCEL, number, FB_OK);
        }
        return FB_OK; /* it crossed our cancel */
    }
    fb_call *call = &rpc->call[index];
    if (unasked(call)) return FB_ERR_CALL_MALFORMED;
    if (call->ended) return call->external ? FB_OK : FB_ERR_CALL_MALFORMED;
    if (piece_index != call->pieces) {
        if (!call->external) return FB_ERR_CALL_MALFORMED;
        /* An earlier one again: what we said was lost. */
        if (piece_index < call->pieces && !call->paused) fb_call_owe(node, index, FB_CALL_CREDIT);
        return FB_OK;
    }
    uint64_t cost = piece.len + FB_PIECE_COST;
    if (cost > call->credit - call->spent) {
        tell_server(node, call);
        fb_caller_finish(node, index, FB_ERR_CALL_CREDIT);
        return FB_ERR_CALL_CREDIT;
    }
    progress(node, call);
    /* The arguments have served: the buffer is for kept pieces from now on. */
    if (call->pieces == 0) call->len = call->at = 0;
    fb_call_paid(node, index, FB_CALL_REQUEST);
    call->pieces++;
    call->spent += cost;
    fb_call_touch(node, index);
    if (!call->paused) {
        (void)give(node, index, piece);
        return FB_OK;
    }
    /* What is kept was granted, so it fits the buffer, of which the part given on is free. */
    uint8_t *buffer = fb_call_buffer(rpc, index);
    if (call->at > 0) {
        memmove(buffer, buffer + call->at, call->len - call->at);
        call->len -= call->at;
        call->at = 0;
    }
    FB_ASSERT(call->len + 4 + piece.len <= rpc->bytes);
    fb_store_be(buffer + call->len, piece.len, 4);
    if (piece.len != 0) memcpy(buffer + call->len + 4, piece.p, piece.len);
    call->len += 4 + (uint32_t)piece.len;
    return FB_OK;
}

fb_status fb_caller_end(fb_node *node, uint32_t link, uint64_t number, uint32_t pieces,
                        uint16_t status)
{
    struct fb_rpc *rpc = node->rpc;
    uint32_t index = fb_call_find(rpc, FB_SIDE_CALLER, link, number);
    if (index == FB_NONE) {
        return number == 0 || number > rpc->link[link].last_own ? FB_ERR_CALL_MALFORMED : FB_OK;
    }
    fb_call *call = &rpc->call[index];
    if (unasked(call)) return FB_ERR_CALL_MALFORMED;
    if (call->ended) return call->external ? FB_OK : FB_ERR_CALL_MALFORMED;
    /* A server that had no room, or forgot the call, counts no pieces. */
    if (pieces != call->pieces && (status == FB_OK || pieces != 0)) {
        return call->external ? FB_OK : FB_ERR_CALL_MALFORMED;
    }
    progress(node, call);
    fb_call_paid(node, index, FB_CALL_REQUEST);
    fb_call_paid(node, index, FB_CALL_CREDIT);
    if (call->pieces == 0) call->len = call->at = 0;
    call->ended = true;
    call->status = status;
    fb_call_touch(node, index);
    if (call->external) fb_call_note_add(node, link, FB_CALL_CANCEL, number, FB_OK);
    if (!call->paused && !call->inside) drain(node, index);
    return FB_OK;
}
