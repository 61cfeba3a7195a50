/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the link plane: its tables, and who calls whom.
 *
 *   event -> stream.c or carrier.c -> session.c -> the planes above
 *   flush -> output.c -> the planes' peek and sent, control.c for the link's own frames
 *
 * A link that ends is only marked (fb_link_close); fb_links_settle tells the planes at the end of
 * the event, so no plane is called back from within its own call. */
#ifndef FB_LINK_STATE_H
#define FB_LINK_STATE_H

#include "protocol/link/binding.h"
#include "protocol/link/link.h"
#include "protocol/link/noise.h"
#include "protocol/link/preamble.h"
#include "protocol/link/record.h"
#include "protocol/space/space.h"

/* What is awaited from the peer next. */
typedef enum fb_link_step {
    FB_STEP_HELLO,     /* external carrier: the echo of one's own session */
    FB_STEP_PREAMBLE,  /* stream: the peer's preamble */
    FB_STEP_HANDSHAKE, /* stream: the next Noise message */
    FB_STEP_BINDING,   /* stream: the first transport message */
    FB_STEP_RECORDS,   /* both: frames */
} fb_link_step;

/* What the link itself has to emit, in this order. */
enum fb_link_owes {
    FB_OWES_PREAMBLE = 1u << 0,
    FB_OWES_HANDSHAKE = 1u << 1,
    FB_OWES_BINDING = 1u << 2,
    FB_OWES_HELLO = 1u << 3,
    FB_OWES_HEARTBEAT = 1u << 4,
    FB_OWES_RESUME = 1u << 5,
};

#define FB_NO_CHANNEL 0xffu

typedef struct fb_link {
    fb_link_info info;
    fb_link_step step;
    uint32_t owes;
    uint32_t wants;         /* a bit for each channel with output */
    uint32_t control_wants; /* a bit for each control type with output */

    /* Of one byte each, so that the digest takes them as they stand. */
    union {
        struct {
            bool local_ok;   /* the peer is an approved member here */
            bool peer_ok;    /* the peer said that it holds the link open */
            bool shown;      /* one's own binding is out, and the planes know it */
            bool up;         /* local_ok and peer_ok, and the planes know it */
            bool kept;       /* an invite was proven: may outlive the 30 s */
            bool stranger;   /* counted among the pending links of the acceptor */
            bool paused;     /* received bytes wait for a durable write set */
            bool close_sent; /* closing, and FB_FX_CLOSE is out */
        };
        uint8_t flags[8];
    };
    bool bound_fact;
    bool ended;      /* closing, and the planes were told */
    bool dial_again; /* the renewal of an old link was asked for */
    uint8_t phase;   /* of the heartbeat's period in which it beats */
    fb_preamble_status refusal;
    fb_error why;      /* it closes */
    fb_error peer_why; /* the peer said so */

    uint64_t fixed;         /* hash of who is at the other end, for the digest: fb_links_fix */
    uint32_t address;       /* in the book, FB_NONE when the peer dialled */
    uint32_t points;        /* of misbehaviour */
    uint32_t pending_bytes; /* taken from a peer that is no member, since pending_since_ns */
    uint64_t pending_since_ns;
    uint64_t host; /* hash of the remote host, 0 when unknown */
    uint64_t bound_serial;
    uint64_t opened_ns;
    uint64_t up_ns;
    uint64_t credit;

    /* A frame that is out in part. */
    uint8_t piece_channel;
    uint64_t piece_at;
    uint64_t piece_len;

    /* Stream. */
    fb_handshake hs;
    fb_cipher send;
    fb_cipher receive;
    uint8_t dialer_preamble[FB_PREAMBLE_DIALER_BYTES];
    uint8_t acceptor_preamble[FB_PREAMBLE_ACCEPTOR_BYTES];
    uint8_t *in; /* FB_RECORD_WIRE_MAX bytes: the message that is not complete */
    uint32_t in_used;
    fb_reassembly parts[FB_CHANNELS]; /* buffers of the pool, while a frame is incomplete */
    uint64_t parts_since_ns[FB_CHANNELS];

    /* External carrier. */
    uint64_t peer_session; /* 0: none is established */
    uint64_t next_own;     /* proposed sessions, until a frame names both; 0: none */
    uint64_t next_peer;
    uint64_t next_incarnation;
    uint64_t next_since_ns;
    uint64_t numbers[FB_CHANNELS]; /* of frames sent */
    uint64_t heartbeat_number;     /* of the newest heartbeat taken */
    uint64_t resend_ns;

    /* The peer's last heartbeat, to be echoed. */
    uint64_t echo_mono_ns;
    uint64_t echo_at_ns;

    fb_timer life;   /* handshake and pending deadlines */
    fb_timer resend; /* of the hello */
    fb_digest_cell cell;
} fb_link;

/* An entry of the address book. */
typedef struct fb_address {
    bool used;
    bool stored; /* by PEER_ADD: dialled again after every START */
    bool wanted; /* FB_FX_DIAL is to be emitted */
    bool renews; /* dialled although a link is open */
    uint8_t len;
    uint8_t text[FB_ADDRESS_BYTES_MAX];
    uint32_t space;
    fb_id expected;             /* zeros: any member */
    fb_id known;                /* who answered last, zeros before */
    uint64_t known_incarnation; /* and in which life */
    bool moved;                 /* one member answered, and later another one */
    uint64_t dial;              /* number of the dial under way, 0 for none */
    uint32_t link;              /* the link it led to, FB_NONE */
    uint32_t attempt;
    uint64_t tries;
    fb_error last;
    fb_timer timer;
    fb_digest_cell cell;
} fb_address;

/* Hosts and nodes that are not let in for a while: hashes in a ring, the oldest is forgotten. */
#define FB_SHUT_OUT_MAX 60u

typedef struct fb_shut_out {
    uint64_t who;
    uint64_t until_ns;
} fb_shut_out;

typedef struct fb_links {
    fb_link *table;
    uint32_t capacity;
    uint32_t high;   /* no link in use at or above */
    uint32_t *index; /* open addressing: slot plus one by link number */
    uint32_t index_mask;
    uint32_t *by_member; /* link plus one by member of the space plane */
    uint32_t member_capacity;
    uint64_t *ready; /* a bit for each link that may emit */
    uint32_t ready_words;
    uint32_t rotor; /* where the flush goes on */
    uint32_t ended; /* links that fb_links_settle has to look at */
    uint32_t paused;
    uint32_t dials_wanted;
    uint64_t bound_serial;
    uint64_t sessions;
    uint64_t dials; /* numbers given, never reused in an instance */

    fb_address *book;
    uint32_t book_capacity;

    fb_shut_out shut_out[FB_SHUT_OUT_MAX];
    uint32_t shut_out_next;

    /* The period of heartbeats is cut into phases, so that many links do not beat at one instant.
     */
    fb_timer heartbeat;
    uint32_t phases;
    uint32_t phase;      /* the last one that had its turn, */
    uint64_t phase_ns;   /* then */
    uint32_t next_phase; /* the one that `heartbeat` is set for */
    fb_digest_cell cell; /* of what belongs to no single link */

    /* Buffers for frames that come in several records, FB_FRAME_BYTES_MAX each. */
    uint8_t *frames;
    uint32_t *frames_free; /* a stack of numbers */
    uint32_t frames_free_count;

    uint8_t *scratch; /* one opened record, or an answer to PEER_LIST */
    uint32_t scratch_len;
} fb_links;

/* table.c */
void fb_links_layout_table(fb_node *node, fb_arena *arena);
void fb_links_reset_table(fb_node *node);
uint32_t fb_links_find(const fb_node *node, uint64_t number);
/* A free place, zeroed and named, or FB_NONE. */
uint32_t fb_links_add(fb_node *node, uint64_t number);
void fb_links_remove(fb_node *node, uint32_t index);
static inline fb_link *fb_links_get(fb_node *node, uint32_t index)
{
    return &node->links->table[index];
}
/* Space, member, peer, incarnations or sessions of the link changed. */
void fb_links_fix(fb_node *node, uint32_t index);
/* The link changed: its digest. */
static inline void fb_links_touch(fb_node *node, uint32_t index)
{
    fb_digest_touch_cell(node, &node->links->table[index].cell, FB_DIGEST_LINK, index);
}
/* The link may have something to emit. */
static inline void fb_links_ready(fb_node *node, uint32_t index)
{
    node->links->ready[index / 64] |= UINT64_C(1) << index % 64;
}
void fb_links_owe(fb_node *node, uint32_t index, uint32_t what);
/* A buffer of the pool, or NULL; giving it back lets paused links go on. */
uint8_t *fb_links_frame_take(fb_node *node);
void fb_links_frame_give(fb_node *node, fb_reassembly *parts);
/* Links that were paused may take their bytes again. */
void fb_links_unpause(fb_node *node);
/* Is it shut out, and shutting it out. `who` is a hash of one of the two below. */
bool fb_links_is_shut_out(const fb_node *node, uint64_t who);
void fb_links_shut_out(fb_node *node, uint64_t who, uint64_t for_ns);
uint64_t fb_links_hash_host(fb_span address);
uint64_t fb_links_hash_peer(fb_id space, fb_id peer);

/* session.c: binding, approval, up and down, duplicates. */
void fb_links_bound(fb_node *node, uint32_t index, const fb_binding *binding);
void fb_links_show(fb_node *node, uint32_t index);
void fb_links_try_up(fb_node *node, uint32_t index);
void fb_links_peer_ok(fb_node *node, uint32_t index);
/* A frame of any channel, whole. FB_ERR_BUSY: offer it again. Others end the link. */
fb_status fb_links_frame(fb_node *node, uint32_t index, fb_channel_id channel, fb_span frame,
                         uint64_t number);
/* The session on the link ends, the carrier may stay. */
void fb_links_down(fb_node *node, uint32_t index, fb_error why);
void fb_links_settle(fb_node *node);
void fb_links_life(fb_node *node, uint32_t index);

/* stream.c, carrier.c: received bytes. */
/* Is there a place for another link that a stranger may have opened? */
bool fb_stream_may_open(const fb_node *node);
void fb_stream_begin(fb_node *node, uint32_t index, bool dialled);
/* The next handshake message; false when it failed and the link closes. */
bool fb_stream_handshake_out(fb_node *node, uint32_t index, fb_writer *out);
size_t fb_stream_take(fb_node *node, uint32_t index, fb_span bytes);
void fb_external_begin(fb_node *node, uint32_t index);
void fb_external_frame_in(fb_node *node, uint32_t index, fb_span bytes);
void fb_external_restart(fb_node *node, uint32_t index, fb_error why);
void fb_external_resend(fb_node *node, uint32_t index);

/* control.c: the link's own control frames. Each write returns the frame's length. */
#define FB_HEARTBEAT_BYTES 50u
#define FB_CLOSE_BYTES     3u
#define FB_HELLO_BYTES     10u
#define FB_HELLO_CONFIRMED 0x01u /* the sender has seen its own session named */
#define FB_HELLO_OPEN      0x02u /* the sender holds the link open */
#define FB_HELLO_FLAGS     (FB_HELLO_CONFIRMED | FB_HELLO_OPEN)
size_t fb_control_write_heartbeat(fb_node *node, uint32_t index, uint8_t *out);
size_t fb_control_write_close(fb_node *node, uint32_t index, uint8_t *out);
size_t fb_control_write_hello(fb_node *node, uint32_t index, uint8_t *out);
fb_status fb_control_frame(fb_node *node, uint32_t index, fb_span frame, uint64_t number);
void fb_control_tick(fb_node *node);
/* The link is to be kept alive from now on. */
void fb_control_beat(fb_node *node, uint32_t index);

/* output.c */
void fb_links_flush(fb_node *node);

/* dial.c: the address book. */
void fb_dial_layout(fb_node *node, fb_arena *arena);
void fb_dial_reset(fb_node *node);
void fb_dial_started(fb_node *node);
void fb_dial_due(fb_node *node, uint32_t index);
void fb_dial_result(fb_node *node, const fb_event *event);
/* The link of an address was bound, came up, ended (or never came to be). */
void fb_dial_bound(fb_node *node, uint32_t index);
/* Another address carries a link to the member that answered at this one, which may be meant for
 * somebody else: this link is not to be, and the address is dialled again. */
bool fb_dial_is_needless(const fb_node *node, uint32_t index);
void fb_dial_up(fb_node *node, uint32_t index);
void fb_dial_ended(fb_node *node, uint32_t address, fb_error why, bool lasted);
/* Another node answered than the one that was dialled. */
bool fb_dial_expects_other(const fb_node *node, const fb_link *link);
/* The last link to a peer is gone: addresses that rested are dialled again. */
void fb_dial_lost(fb_node *node, uint32_t space, fb_id peer);
void fb_dial_renew(fb_node *node, uint32_t address);
void fb_dial_mark_stored(fb_node *node, uint32_t space, fb_span text);
/* Also an address that was stored. */
/* *link: the one that was made through it, or FB_NONE. */
bool fb_dial_remove(fb_node *node, uint32_t space, fb_span text, uint32_t *link);
void fb_dial_flush(fb_node *node);

/* peers.c: the operator's part of it. */
void fb_peers_load(fb_node *node);
void fb_peers_verbs(fb_node *node);

#endif
