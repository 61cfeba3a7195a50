/* SPDX-License-Identifier: Apache-2.0 */
/* The peer's end of an external carrier (docs/WIRE-FORMATS.md, "Link"): it agrees to whatever
 * session the node proposes, answers heartbeats with a clock of its own, and frames messages.
 * Whoever plays the peer sees messages and acknowledgements only. */
#ifndef FB_RUNTIME_CONFORMANCE_PEER_H
#define FB_RUNTIME_CONFORMANCE_PEER_H

#include "protocol/base/types.h"

/* Room for a frame around bytes of this length. */
#define FB_PEER_FRAME_BYTES(len) (25u + 50u + (len))

typedef struct fb_peer_end {
    uint64_t own_session;  /* 1 or more */
    uint64_t node_session; /* of the node, once it has said hello; 0 before */
    uint64_t control_number, message_frames;
    int64_t offset_us; /* this end's wall clock less the node's */
} fb_peer_end;

typedef enum fb_peer_event {
    FB_PEER_NOTHING,
    FB_PEER_REPLY,   /* `reply` is to be sent */
    FB_PEER_MESSAGE, /* `number` and `envelope` */
    FB_PEER_ACK,     /* `number` */
} fb_peer_event;

typedef struct fb_peer_in {
    fb_peer_event event;
    uint64_t number;
    fb_span envelope; /* borrowed from the frame */
    size_t reply_len;
    uint8_t reply[FB_PEER_FRAME_BYTES(0)];
} fb_peer_in;

/* A frame of the node. node_wall_us, node_mono_ns: its clocks now. */
void fb_peer_take(fb_peer_end *end, fb_span frame, int64_t node_wall_us, uint64_t node_mono_ns,
                  fb_peer_in *in);

/* Frames for the node; out has room for FB_PEER_FRAME_BYTES(envelope.len). The length is returned.
 */
size_t fb_peer_message(fb_peer_end *end, uint64_t number, fb_span envelope, uint8_t *out);
size_t fb_peer_ack(fb_peer_end *end, uint64_t number, uint8_t *out);

#endif
