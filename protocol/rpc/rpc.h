/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between nodes on the calls channel: a request, a streamed answer, credit, a deadline,
 * cancellation. Runtime-internal: no application reaches this (draft 3.6). */
#ifndef FB_RPC_RPC_H
#define FB_RPC_RPC_H

#include "protocol/core/internal.h"

typedef enum fb_method {
    FB_METHOD_FETCH = 1,
    /* 2 snapshot, 3 compare, 4 verify, 5 resolve: answered with FB_ERR_CALL_METHOD until built */
    FB_METHODS = 6
} fb_method;

/* Caller. One piece of the answer, or its end: `last` with status FB_OK or the error; then the call
 * is gone. Returning false takes the piece but gives no further credit until fb_call_resume. */
typedef bool (*fb_call_piece)(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                              fb_status status);

/* Starts a call over an open link. FB_ERR_BUSY: table full; FB_ERR_UNREACHABLE: link not open;
 * FB_ERR_LIMIT: arguments too long (they are copied, at most 4 KiB). deadline_ns: mono_ns. */
fb_status fb_call_start(fb_node *node, uint32_t link, fb_method method, fb_span arguments,
                        uint64_t deadline_ns, fb_call_piece piece, uint64_t user, uint32_t *call);
void fb_call_resume(fb_node *node, uint32_t call);
void fb_call_cancel(fb_node *node, uint32_t call);

/* Server. A method is asked for its answer piece by piece, whenever the caller's credit and the
 * link's allow another: it calls fb_call_answer or fb_call_finish once for each `more`, at once or
 * from a later operation. state is 256 zeroed bytes of the method's own. */
typedef struct fb_method_ops {
    fb_status (*begin)(fb_node *node, uint32_t call, uint32_t link, fb_span arguments, void *state);
    void (*more)(fb_node *node, uint32_t call, void *state);
    void (*end)(fb_node *node, uint32_t call, void *state); /* done, cancelled, link gone */
} fb_method_ops;

void fb_method_register(fb_node *node, fb_method method, const fb_method_ops *ops);
/* At most call_bytes; copied. call_id guards late operations: see fb_call_serial. */
void fb_call_answer(fb_node *node, uint32_t call, fb_span piece);
void fb_call_finish(fb_node *node, uint32_t call, fb_status status);
/* Never reused within an incarnation: an operation keeps (call, serial) and checks it is alive. */
uint64_t fb_call_serial(const fb_node *node, uint32_t call);
void *fb_call_state(fb_node *node, uint32_t call, uint64_t serial); /* NULL: gone */

#endif
