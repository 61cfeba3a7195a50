/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: the order of checks (profile 5), one pure function a step.
 *
 * The caller asks its own tables and calls them in this order, stopping at the first error:
 *
 *     1  fb_envelope_decode_protobuf or _json
 *     2  fb_receive_space
 *     3  fb_receive_origin
 *     4  fb_receive_sender, then its own rate limit (FB_ERR_RATE_LIMITED)
 *     5  fb_envelope_verify
 *     6  fb_receive_time
 *     7  fb_receive_address
 *     8  its own record of seen ids (FB_ERR_DUPLICATE)
 *     9  records the id, then delivers
 *
 * Only what passed all steps may enter the record of step 8. */
#ifndef FB_ENVELOPE_RECEIVE_H
#define FB_ENVELOPE_RECEIVE_H

#include "protocol/envelope/envelope.h"

/* Step 2: FB_ERR_WRONG_SPACE. */
fb_status fb_receive_space(const fb_envelope *e, fb_id space);

/* Step 3: the sender is the authenticated peer and not this node itself. FB_ERR_NOT_ORIGIN. */
fb_status fb_receive_origin(const fb_envelope *e, fb_id peer, fb_id self);

/* Step 4: what membership says of the sender; pending and unknown nodes are neither approved nor
 * revoked. FB_ERR_REVOKED, FB_ERR_UNKNOWN_SENDER. */
fb_status fb_receive_sender(bool approved, bool revoked);

/* The window and the floor of a sender, in milliseconds. */
typedef struct fb_receive_window {
    int64_t now_ms; /* of the wall clock, may be anything */
    int64_t past_ms;
    int64_t future_ms;
    int64_t floor_ms; /* timestamps at or below it are refused; 0 for a new sender */
} fb_receive_window;

/* Wall clock microseconds as milliseconds, rounded towards the past. */
int64_t fb_receive_now_ms(int64_t wall_us);

/* Step 6, limits inclusive, signed and saturating. FB_ERR_STALE, FB_ERR_FROM_FUTURE. *by_floor (may
 * be NULL) is true when the window would have taken it and only the floor refuses: the one case in
 * which a link may set the floor back (profile 5). */
fb_status fb_receive_time(const fb_envelope *e, const fb_receive_window *window, bool *by_floor);

/* Step 7: unicast is for this node; a topic has a local subscription (`subscribed` is what the
 * caller's list says of e->topic). FB_ERR_WRONG_TARGET, FB_ERR_NOT_SUBSCRIBED. */
fb_status fb_receive_address(const fb_envelope *e, fb_id self, bool subscribed);

/* The floor after a message was accepted: min(highest accepted, now - past - future), and never
 * lower than it was. */
int64_t fb_receive_floor(const fb_receive_window *window, int64_t highest_accepted_ms);

/* The floor after a reset: now - past - 1. */
int64_t fb_receive_floor_reset(const fb_receive_window *window);

#endif
