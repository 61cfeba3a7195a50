/* SPDX-License-Identifier: Apache-2.0 */
/* What the step needs of the table of requests; planes use request.h. */
#ifndef FB_CORE_REQUESTS_H
#define FB_CORE_REQUESTS_H

#include "protocol/core/internal.h"

void fb_requests_layout(fb_node *node, fb_arena *arena);
/* The incarnation ends: everybody who waits gets FB_ERR_AGAIN. */
void fb_requests_end(fb_node *node);
void fb_requests_reset(fb_node *node);

fb_status fb_requests_take(fb_node *node, const fb_event *event);   /* REQUEST */
fb_status fb_requests_cancel(fb_node *node, const fb_event *event); /* REQUEST_CANCEL */
fb_status fb_requests_credit(fb_node *node, const fb_event *event); /* REQUEST_CREDIT */

/* Replies whose write set is durable go out, as far as the arena has room. */
void fb_requests_flush(fb_node *node);

/* Bytes of effects that the end of an incarnation may need: a reply to everybody, NEED_START. */
size_t fb_requests_end_bytes(const fb_options *options);

#endif
