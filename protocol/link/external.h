/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of an external carrier: a transport that authenticates peers itself and hands over whole
 * frames, which may be lost, repeated and reordered. profile 7.
 *
 * A session is one use of the carrier by one incarnation of one end. A frame names the sender's
 * session and the one it believes the peer to be in; what names another is dropped, so nothing of
 * an earlier connection, nor of an earlier start of a node, is ever taken for the present. */
#ifndef FB_LINK_EXTERNAL_H
#define FB_LINK_EXTERNAL_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "protocol/link/link.h"

/* channel (u8), sender's session (u64), peer's session (u64, 0 when not known yet), number (u64).
 */
#define FB_EXTERNAL_HEAD 25u

typedef struct fb_external_frame {
    fb_channel_id channel;
    uint64_t sender_session; /* never 0 */
    uint64_t peer_session;
    uint64_t number; /* of the sender's frames on this channel, from 1, never reused in a session */
    fb_span bytes;
} fb_external_frame;

/* Writes the head; the frame's bytes follow it. */
void fb_external_write_head(uint8_t out[FB_EXTERNAL_HEAD], const fb_external_frame *frame);

/* FB_ERR_LINK_RECORD: too short, an unknown channel, session or number 0. bytes is borrowed. */
fb_status fb_external_read(fb_span bytes, fb_external_frame *out);

#endif
