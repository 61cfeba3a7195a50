/* SPDX-License-Identifier: Apache-2.0 */
/* Events: the only way in. Everything nondeterministic that a node ever learns is one of these.
 *
 * One C struct serves all kinds; what a, b, c and the bytes mean stands with each kind. The bytes
 * are borrowed for the one call of fb_node_step. */
#ifndef FB_CORE_EVENT_H
#define FB_CORE_EVENT_H

#include "protocol/base/types.h"

/* Numbers are part of the recording format and never change. Those of later planes are listed in
 * docs/ARCHITECTURE.md (log 40.., blob 50.., buffer 60.., secured channel 70..). */
typedef enum fb_event_kind {
    /* The node begins, or begins again after `need start`. a: fresh random incarnation, never 0;
     * b, c: seed of the node's draws (nothing secret comes from it). Everything the node knew is
     * forgotten and read again from the store. The driver guarantees that no write set of an
     * earlier incarnation is applied after it has delivered this. */
    FB_EV_START = 1,
    /* Time passed, nothing else. Wanted at fb_node_deadline, allowed at any time. */
    FB_EV_TICK = 2,

    /* a: dial number of FB_FX_DIAL; b: the new link's number, or 0; c: fb_error, 0 when open. */
    FB_EV_DIAL_RESULT = 10,
    /* Somebody dialled this node. a: link; bytes: the remote address as text, used only to count
     * pending links by address. */
    FB_EV_LINK_OPENED = 11,
    /* An external carrier can reach a peer that it has authenticated (profile 7). a: link; bytes:
     * space id (16), the peer's Ed25519 public key (32). */
    FB_EV_CARRIER_OPENED = 12,
    /* a: link; b: fb_error, 0 for an orderly end. No event names this link afterwards. */
    FB_EV_LINK_CLOSED = 13,
    /* a: link; bytes: what arrived. fb_effects.consumed says how many were taken; the rest is given
     * again after FB_FX_RESUME. */
    FB_EV_LINK_BYTES = 14,
    /* a: link; b: so many more bytes may be sent (credit adds up, saturating). */
    FB_EV_LINK_WRITABLE = 15,
    /* a: link of an external carrier; bytes: one whole frame. */
    FB_EV_CARRIER_FRAME = 16,

    /* a: operation; b: all write sets up to this w were applied when it was read; c: fb_error;
     * bytes: incarnation that w counts in (u64), then the values (readset.h). */
    FB_EV_READ_DONE = 20,
    /* a: incarnation; b: w: every set up to w is durable; c: fb_error (any failure or unknown
     * outcome ends the incarnation). */
    FB_EV_WRITE_DONE = 21,

    /* A local request (request.h). a: request number, never reused; b: verb; c: principal, 0 for
     * the operator, else the number of an application (space.h); bytes: the verb's arguments. */
    FB_EV_REQUEST = 30,
    /* The caller is gone. a: request. No reply follows. */
    FB_EV_REQUEST_CANCEL = 31,
    /* A caller of a streamed answer takes more. a: request; b: so many more reply bytes. */
    FB_EV_REQUEST_CREDIT = 32,
} fb_event_kind;

typedef struct fb_event {
    uint32_t kind; /* fb_event_kind */
    uint32_t len;  /* of bytes */
    /* Monotonic time in nanoseconds: never smaller than in an earlier event of this instance (else
     * FB_ERR_TIME_BACKWARDS). Timers, liveness and rates use it. */
    uint64_t mono_ns;
    /* Wall clock in microseconds since 1970, negative before; may be anything at any time. Windows,
     * stamps and UUIDs use it. */
    int64_t wall_us;
    uint64_t a, b, c;
    const uint8_t *bytes;
} fb_event;

#endif
