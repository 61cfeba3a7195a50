/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side: a method makes its answer piece by piece against the caller's credit. */
#include "protocol/rpc/state.h"

void fb_method_register(fb_node *node, fb_method method, const fb_method_ops *ops)
{
    node->methods[method] = ops;
}

uint32_t fb_call_piece_max(const fb_node *node, uint32_t index)
{
    const fb_call *call = &node->rpc->call[index];
    uint64_t most = node->rpc->bytes;
    most = fb_min_u64(most, FB_FRAME_BYTES_MAX - FB_PIECE_HEAD);
    most = fb_min_u64(most, call->window - fb_min_u64(call->window, FB_PIECE_COST));
    return (uint32_t)most;
}

static const fb_method_ops *ops_of(const fb_node *node, const fb_call *call)
{
    return node->methods[call->method];
}

/* Another piece may be asked for: noted here, done in the flush, so that a method never runs inside
 * a frame or the link's output. */
static void want(fb_node *node, uint32_t index)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call *call = &rpc->call[index];
    bool may = !call->ended && !call->closed && !call->asking && !call->ready &&
               call->credit > call->spent;
    if (may == call->wanting) return;
    call->wanting = may;
    rpc->wanting += may ? 1u : UINT32_MAX;
}

/* A ready piece goes out when the credit covers it. */
static void offer(fb_node *node, uint32_t index)
{
    const fb_call *call = &node->rpc->call[index];
    if (call->ready && !call->shown && call->len + FB_PIECE_COST <= call->credit - call->spent) {
        fb_call_owe(node, index, FB_CALL_PIECE);
    } else if (call->ended && !call->ready && !call->closed) {
        fb_call_owe(node, index, FB_CALL_END);
    }
    want(node, index);
}

void fb_call_answer(fb_node *node, uint32_t index, fb_span piece)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call *call = &rpc->call[index];
    if (call->role != FB_SIDE_SERVER || !call->asking) return;
    if (piece.len > fb_call_piece_max(node, index)) {
        fb_call_finish(node, index, FB_ERR_LIMIT);
        return;
    }
    call->asking = false;
    call->ready = true;
    call->shown = false;
    call->len = (uint32_t)piece.len;
    if (piece.len != 0) memcpy(fb_call_buffer(rpc, index), piece.p, piece.len);
    fb_call_touch(node, index);
    offer(node, index);
}

void fb_call_finish(fb_node *node, uint32_t index, fb_status status)
{
    fb_call *call = &node->rpc->call[index];
    if (call->role != FB_SIDE_SERVER || call->ended) return;
    call->asking = false;
    call->ended = true;
    call->status = (uint16_t)status;
    fb_call_touch(node, index);
    offer(node, index);
}

static void tell_method(fb_node *node, uint32_t index)
{
    fb_call *call = &node->rpc->call[index];
    const fb_method_ops *ops = ops_of(node, call);
    if (!call->closed && ops->end != NULL) ops->end(node, index, call->state);
}

void fb_server_over(fb_node *node, uint32_t index)
{
    tell_method(node, index);
    fb_call_free(node, index);
}

fb_status fb_server_request(fb_node *node, uint32_t link_index, uint64_t number, fb_reader *r)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call_link *link = &rpc->link[link_index];
    uint16_t method = fb_read_u16(r);
    uint32_t ms = fb_read_u32(r);
    uint64_t credit = fb_read_u64(r);
    fb_span arguments = fb_read_bytes(r, fb_reader_left(r));
    if (r->failed || number == 0 || arguments.len > FB_CALL_ARGUMENTS_MAX || credit > UINT32_MAX) {
        return FB_ERR_CALL_MALFORMED;
    }
    uint32_t index = fb_call_find(rpc, FB_SIDE_SERVER, link_index, number);
    if (index != FB_NONE) {
        if (!link->external) return FB_ERR_CALL_MALFORMED;
        /* The caller has heard nothing: what was said is said again. */
        const fb_call *call = &rpc->call[index];
        if (call->pieces == 0 && call->ready && call->shown) {
            fb_call_owe(node, index, FB_CALL_PIECE);
        } else if (call->pieces == 0 && call->closed) {
            fb_call_owe(node, index, FB_CALL_END);
        }
        return FB_OK;
    }
    if (number <= link->last_peer && !link->external) return FB_ERR_CALL_MALFORMED;
    if (number > link->last_peer) link->last_peer = number;
    fb_digest_touch(node, FB_DIGEST_CALL_LINK, link_index);
    fb_status status = FB_OK;
    const fb_method_ops *ops = method < FB_METHODS ? node->methods[method] : NULL;
    uint32_t share = (rpc->calls - rpc->own + 1) / 2;
    if (ops == NULL) {
        status = FB_ERR_CALL_METHOD;
    } else if (link->served >= share) {
        status = FB_ERR_BUSY;
    } else {
        index = fb_call_take(node, FB_SIDE_SERVER, link_index, number);
        if (index == FB_NONE) status = FB_ERR_BUSY;
    }
    if (status == FB_OK) {
        fb_call *call = &rpc->call[index];
        call->method = method;
        call->credit = call->window = credit;
        uint64_t left_ns = UINT64_C(1000000) * (ms > FB_CALL_MS_MAX ? FB_CALL_MS_MAX : ms);
        call->deadline_ns = fb_add_sat_u64(node->mono_ns, left_ns);
        fb_timer_set(node, &call->timer, call->deadline_ns);
        status = ops->begin(node, index, link_index, arguments, call->state);
        if (status == FB_OK) {
            offer(node, index);
            return FB_OK;
        }
        fb_call_free(node, index);
    }
    fb_count(node, FB_COUNTER_CALLS_REFUSED, 1);
    fb_call_note_add(node, link_index, FB_CALL_END, number, status);
    return FB_OK;
}

fb_status fb_server_credit(fb_node *node, uint32_t link, uint64_t number, uint32_t pieces,
                           uint64_t credit)
{
    struct fb_rpc *rpc = node->rpc;
    uint32_t index = fb_call_find(rpc, FB_SIDE_SERVER, link, number);
    if (index == FB_NONE) {
        if (number == 0 || number > rpc->link[link].last_peer) return FB_ERR_CALL_MALFORMED;
        if (rpc->link[link].external) {
            fb_call_note_add(node, link, FB_CALL_END, number, FB_ERR_AGAIN);
        }
        return FB_OK; /* it crossed the end */
    }
    fb_call *call = &rpc->call[index];
    uint32_t told = call->pieces + (call->ready && call->shown ? 1u : 0u);
    if (pieces > told || credit > call->spent + 2 * (uint64_t)UINT32_MAX) {
        return FB_ERR_CALL_MALFORMED; /* of what was never sent; or beyond any window */
    }
    if (credit > call->credit) call->credit = credit;
    fb_call_touch(node, index);
    if (call->external) {
        if (pieces == told && call->ready && call->shown) {
            call->spent += call->len + FB_PIECE_COST;
            call->pieces++;
            call->ready = call->shown = false;
            fb_call_paid(node, index, FB_CALL_PIECE);
        } else if (call->ready && call->shown && pieces == call->pieces) {
            fb_call_owe(node, index, FB_CALL_PIECE);
        } else if (call->closed && pieces == call->pieces) {
            fb_call_owe(node, index, FB_CALL_END);
        }
    }
    offer(node, index);
    return FB_OK;
}

fb_status fb_server_cancel(fb_node *node, uint32_t link, uint64_t number)
{
    if (number == 0) return FB_ERR_CALL_MALFORMED;
    uint32_t index = fb_call_find(node->rpc, FB_SIDE_SERVER, link, number);
    if (index != FB_NONE) fb_server_over(node, index);
    return FB_OK;
}

void fb_server_timer(fb_node *node, uint32_t index)
{
    const fb_call *call = &node->rpc->call[index];
    if (!call->closed) {
        fb_call_note_add(node, call->link, FB_CALL_END, call->number, FB_ERR_DEADLINE);
    }
    fb_server_over(node, index);
}

void fb_server_sent(fb_node *node, uint32_t index, uint8_t type)
{
    fb_call *call = &node->rpc->call[index];
    if (type == FB_CALL_PIECE) {
        if (call->external) {
            call->shown = true;
            return;
        }
        call->spent += call->len + FB_PIECE_COST;
        call->pieces++;
        call->ready = false;
        offer(node, index);
        if (call->wanting) fb_starved(node);
        return;
    }
    if (!call->external) {
        fb_server_over(node, index);
        return;
    }
    tell_method(node, index);
    call->closed = true;
}

void fb_server_flush(fb_node *node)
{
    struct fb_rpc *rpc = node->rpc;
    for (uint32_t i = rpc->own; rpc->wanting > 0 && i < rpc->calls; i++) {
        fb_call *call = &rpc->call[i];
        if (!call->wanting) continue;
        call->wanting = false;
        rpc->wanting--;
        call->asking = true;
        fb_call_touch(node, i);
        ops_of(node, call)->more(node, i, call->state);
    }
}
