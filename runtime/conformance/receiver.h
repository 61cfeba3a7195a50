/* SPDX-License-Identifier: Apache-2.0 */
/* One receiver in one space by itself (profile 5): its state is what the caller says, and it judges
 * messages by the core's functions. `faberio envelope verify --context` asks one, and so does the
 * conformance adapter; a node has its own. Memory that runs out ends the program. */
#ifndef FB_RUNTIME_CONFORMANCE_RECEIVER_H
#define FB_RUNTIME_CONFORMANCE_RECEIVER_H

#include "protocol/envelope/envelope.h"

typedef enum fb_receiver_status {
    FB_RECEIVER_UNKNOWN,
    FB_RECEIVER_APPROVED,
    FB_RECEIVER_PENDING,
    FB_RECEIVER_REVOKED,
} fb_receiver_status;

/* What is the same for all senders; changed at will between messages. */
typedef struct fb_receiver_state {
    fb_id self;
    fb_id space;
    bool has_peer; /* without one every sender is the peer of its connection */
    fb_id peer;
    int64_t now_ms; /* of the wall clock */
    int64_t past_ms;
    int64_t future_ms;
    uint32_t rate_per_s; /* 0: no limit */
    uint32_t rate_burst;
    uint64_t mono_ms;  /* what the rate is measured by */
    uint32_t seen_ids; /* kept of a sender; 0: all */
    bool offset_known; /* of the peer's clock, on this link */
    int64_t offset_ms;
} fb_receiver_state;

typedef struct fb_receiver fb_receiver;

/* A receiver that knows nobody, with the profile's window. */
fb_receiver *fb_receiver_new(const fb_provider *provider);
void fb_receiver_free(fb_receiver *receiver); /* NULL is allowed */

fb_receiver_state *fb_receiver_state_of(fb_receiver *receiver);
const fb_provider *fb_receiver_provider(const fb_receiver *receiver);

/* FB_ERR_KEY: not a key that may be enrolled. */
fb_status fb_receiver_member(fb_receiver *receiver, const fb_b32 *public_key,
                             fb_receiver_status status);
fb_receiver_status fb_receiver_member_of(const fb_receiver *receiver, fb_id node);

void fb_receiver_subscribe(fb_receiver *receiver, fb_span topic, bool subscribed);

/* An id that was accepted earlier. timestamp 0: not known, and then it is never forgotten. */
void fb_receiver_saw(fb_receiver *receiver, fb_id source, fb_id id, int64_t timestamp);
/* False when this sender's floor was set before. */
bool fb_receiver_floor(fb_receiver *receiver, fb_id source, int64_t floor_ms);

/* Another connection: what holds once a link holds once more. The state's peer and offset are the
 * caller's. */
void fb_receiver_link(fb_receiver *receiver);

/* Steps 2 to 9 for an envelope that was decoded: FB_OK and it is recorded, or the first reason.
 * *floor_reset (may be NULL): the floor went back for it. */
fb_status fb_receiver_judge(fb_receiver *receiver, const fb_envelope *e, fb_envelope_fault *fault,
                            bool *floor_reset);

#endif
