/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between nodes on the calls channel: a request, a streamed answer, credit, a deadline,
 * cancellation. Runtime-internal: no application reaches this (draft 3.6).
 *
 * Calls are named by their place in the table, which is reused; their serial is not. Own calls and
 * served ones have half of the table each, and one link at most half of the served ones. */
#ifndef FB_RPC_RPC_H
#define FB_RPC_RPC_H

#include "protocol/core/internal.h"

typedef enum fb_method {
    FB_METHOD_FETCH = 1,
    FB_METHOD_COMPARE = 3,
    FB_METHOD_VERIFY = 4,
    /* 2 snapshot, 5 resolve: answered with FB_ERR_CALL_METHOD */
    FB_METHOD_AREAS = 6,
    FB_METHODS = 7
} fb_method;

/* Caller. One piece of the answer, or its end: `last` with status FB_OK or the error; then the call
 * is gone. Pieces come whole, in order and once, on every carrier. Returning false takes the piece
 * but gives no further credit until fb_call_resume; pieces and the end that arrive meanwhile are
 * kept. Another call may be started from within. */
typedef bool (*fb_call_piece)(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                              fb_status status);

/* Starts a call over an open link. FB_ERR_BUSY: table full; FB_ERR_UNREACHABLE: link not open;
 * FB_ERR_LIMIT: arguments longer than FB_CALL_ARGUMENTS_MAX or a call's buffer. They are copied.
 * deadline_ns: mono_ns. How it may end: what the method says; FB_ERR_DEADLINE; FB_ERR_UNREACHABLE:
 * the link is gone; FB_ERR_BUSY, FB_ERR_AGAIN: the peer had no room, or forgot it;
 * FB_ERR_CALL_METHOD; FB_ERR_CALL_CREDIT: the peer broke the rules. */
fb_status fb_call_start(fb_node *node, uint32_t link, fb_method method, fb_span arguments,
                        uint64_t deadline_ns, fb_call_piece piece, uint64_t user, uint32_t *call);
void fb_call_resume(fb_node *node, uint32_t call);
/* No callback follows. */
void fb_call_cancel(fb_node *node, uint32_t call);

/* Server. A method is asked for its answer piece by piece, whenever the caller's credit and the
 * link allow another: it calls fb_call_answer or fb_call_finish once for each `more`, at once or
 * from a later operation. state is 256 zeroed bytes of the method's own, aligned to 16. A method
 * only reads: the same request may be served twice. */
typedef struct fb_method_ops {
    /* Not FB_OK: the call ends with it, `end` is not called. */
    fb_status (*begin)(fb_node *node, uint32_t call, uint32_t link, fb_span arguments, void *state);
    void (*more)(fb_node *node, uint32_t call, void *state);
    void (*end)(fb_node *node, uint32_t call, void *state); /* done, cancelled, link gone */
} fb_method_ops;

/* From a plane's layout. */
void fb_method_register(fb_node *node, fb_method method, const fb_method_ops *ops);
/* The longest piece that this call's caller and buffer can take. */
uint32_t fb_call_piece_max(const fb_node *node, uint32_t call);
/* Copied. A longer piece ends the call with FB_ERR_LIMIT. */
void fb_call_answer(fb_node *node, uint32_t call, fb_span piece);
void fb_call_finish(fb_node *node, uint32_t call, fb_status status);

extern const struct fb_plane fb_rpc_plane;

#endif
