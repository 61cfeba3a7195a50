/* SPDX-License-Identifier: Apache-2.0 */
/* Links between nodes, as the planes above see them (profile 7).
 *
 * A link belongs to one space and, once bound, to one peer. It carries frames of three channels.
 * Frames are pulled: a plane says that it has output, the link asks for it when the carrier's
 * credit allows, so what is to be sent is state of the plane and nothing queues here. */
#ifndef FB_LINK_LINK_H
#define FB_LINK_LINK_H

#include "protocol/core/internal.h"

typedef enum fb_channel_id {
    FB_CHANNEL_CONTROL = 0,
    FB_CHANNEL_MESSAGING = 1,
    FB_CHANNEL_CALLS = 2,
    FB_CHANNELS
} fb_channel_id;

typedef enum fb_link_state {
    FB_LINK_FREE,
    FB_LINK_OPENING, /* preamble, handshake, binding */
    FB_LINK_PENDING, /* the peer is no approved member: nothing of the space is on it */
    FB_LINK_OPEN,    /* bound to an approved member */
    FB_LINK_CLOSING, /* FB_FX_CLOSE is out */
} fb_link_state;

/* What others may know of a link. Links are named by their index in the table, which is reused;
 * `number` is the driver's, which is not. */
typedef struct fb_link_info {
    uint64_t number;
    fb_link_state state;
    bool external;   /* whole frames on a carrier that may lose and repeat them */
    bool dialled;    /* by this node */
    uint32_t space;  /* index in the space plane */
    uint32_t member; /* index of the peer in the space plane, FB_NONE before binding */
    fb_id peer;      /* node id, once proven */
    fb_b32 peer_key; /* Ed25519, once proven */
    uint64_t peer_incarnation;
    bool offset_known;
    int64_t clock_offset_us; /* the peer's wall clock minus ours, measured */
    uint64_t heard_ns;       /* mono_ns of the last byte that authenticated */
    uint64_t session;        /* ours, drawn for this link */
    /* Final hash of the handshake, once it is complete: what invite proofs are bound to. On an
     * external carrier a BLAKE2b-512 of both keys and both sessions, the same at both ends. */
    uint8_t handshake_hash[64];
} fb_link_info;

/* A frame to be sent: head and body are sent as one. They stay valid until `sent` or until the
 * plane's state changes it in the same step. */
typedef struct fb_frame_out {
    uint8_t head[40];
    uint8_t head_len;
    fb_span body;
} fb_frame_out;

/* What a plane does with a channel. All are called within a step. */
typedef struct fb_channel {
    /* Control types INVITE and MEMBERSHIP only: this end's binding is out, so their frames may be
     * sent (also while the link is pending). Dialer: right after the handshake, the acceptor still
     * nameless. Acceptor: when it knows the peer, or has called fb_link_keep_pending. Once a link,
     * before `up`. These two types are also delivered to `frame` while the link is pending, and
     * `down` follows for a link that was shown, up or not. */
    void (*shown)(fb_node *node, uint32_t link);
    /* The link is open, with an approved member. Called once, and again never for this link. */
    void (*up)(fb_node *node, uint32_t link);
    /* It is no longer. */
    void (*down)(fb_node *node, uint32_t link, fb_error why);
    /* A whole frame arrived. FB_ERR_BUSY: it cannot be taken now; on a byte stream the link pauses
     * and offers it again when a write set is durable or fb_link_take_again is called, on an
     * external carrier it counts as lost. Another error: the peer broke a rule; counted against its
     * budget. */
    fb_status (*frame)(fb_node *node, uint32_t link, fb_span frame);
    /* The next frame to send, or false. On a byte stream a part of it may be out already, so the
     * same frame is asked for again until `sent`, unless the link goes down. On an external carrier
     * frames leave whole: what was peeked and did not leave may be another one next time. */
    bool (*peek)(fb_node *node, uint32_t link, fb_frame_out *out);
    /* The frame last peeked was given to the carrier whole. */
    void (*sent)(fb_node *node, uint32_t link);
    /* NULL, or: lays down what the plane holds for the link, a part of the link's digest
     * (digest.h). The plane says fb_link_touch when that changed. */
    void (*digest)(const fb_node *node, uint32_t link, fb_writer *w);
} fb_channel;

/* From a plane's layout. Several planes may share the control channel: a control frame's first byte
 * tells whose it is (fb_control_type), and each registers with its type. */
typedef enum fb_control_type {
    FB_CONTROL_HEARTBEAT = 1,  /* link: clocks, digest of the vectors */
    FB_CONTROL_CLOSE = 2,      /* link: reason */
    FB_CONTROL_INVITE = 3,     /* space: proofs on pending links */
    FB_CONTROL_MEMBERSHIP = 4, /* space: a request to join, signed statements on a pending link */
    FB_CONTROL_VECTORS = 5,    /* database: version vectors of one area */
    FB_CONTROL_INTEREST = 6,   /* messaging: areas and topics asked for */
    FB_CONTROL_HELLO = 7,      /* link: sessions of an external carrier */
    FB_CONTROL_TYPES
} fb_control_type;

void fb_channel_register(fb_node *node, fb_channel_id channel, const fb_channel *ops);
void fb_control_register(fb_node *node, fb_control_type type, const fb_channel *ops);

/* The plane has something for `peek`. Cheap when said already. */
void fb_link_has_output(fb_node *node, uint32_t link, fb_channel_id channel);

/* What `digest` of a channel lays down for the link changed. */
void fb_link_touch(fb_node *node, uint32_t link);

const fb_link_info *fb_link_at(const fb_node *node, uint32_t link);
uint32_t fb_link_capacity(const fb_node *node);
/* The open link to a member, or FB_NONE. */
uint32_t fb_link_to(const fb_node *node, uint32_t space, uint32_t member);

/* What a plane answered with FB_ERR_BUSY may be offered again. Cheap when nothing waits. */
void fb_link_take_again(fb_node *node, uint32_t link);

/* Ends it; the planes hear of it at the end of the event. */
void fb_link_close(fb_node *node, uint32_t link, fb_error why);
/* Points against the budget of misbehaviour; at the budget the link is closed with a back-off. */
void fb_link_misbehaved(fb_node *node, uint32_t link, uint32_t points);
/* A pending link became that of an approved member (approval, or statements that prove it). */
void fb_link_approved(fb_node *node, uint32_t link, uint32_t member);
/* A valid invite proof was shown: this end's binding is sent if it was not, and the link may
 * outlive the 30 s. FB_ERR_LINK_TOO_MANY: FB_PENDING_LINKS_MAX such links exist. */
fb_status fb_link_keep_pending(fb_node *node, uint32_t link);

/* The address book: dialled until forgotten or until the incarnation ends (who calls this does so
 * again after START; what PEER_ADD stored the link plane itself dials again), one link per (peer,
 * space): an address whose expected peer has an open link here rests. expected: the node that
 * should answer, zeros for any member. Said again for a known address: only `expected` changes.
 * FB_ERR_LIMIT: the book is full or the address too long. */
fb_status fb_link_dial(fb_node *node, uint32_t space, fb_span address, fb_id expected);
/* Takes back what fb_link_dial said; what PEER_ADD stored stays. */
void fb_link_forget(fb_node *node, uint32_t space, fb_span address);
/* No address is dialled for this space any more, stored or not. */
void fb_link_forget_space(fb_node *node, uint32_t space);

#endif
