/* SPDX-License-Identifier: Apache-2.0 */
/* The toy node from inside: what its files share. */
#ifndef FB_SIM_TOYS_TOY_INSIDE_H
#define FB_SIM_TOYS_TOY_INSIDE_H

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"
#include "protocol/core/node.h"
#include "protocol/core/observe.h"
#include "sim/toys/toy.h"

#define LINKS      32u
#define PEERS      16u
#define RECORDS    32u
#define FRAME      (MESSAGE + 16u) /* and session, number in it */
#define MESSAGE    68u /* u16 length of the rest, record, counter, node, incarnation, seq, sum */
#define PERIOD_NS  UINT64_C(2000000000)
#define SILENT_NS  UINT64_C(9000000000)
#define TICKS_MOST 24u

typedef struct fb_toy_entry {
    uint64_t counter; /* greater wins; 0: nothing there */
    fb_id record;
    fb_id node;
    uint64_t incarnation;
    uint64_t seq;
} fb_toy_entry;

typedef struct toy_link {
    uint64_t link;
    uint64_t credit;
    uint64_t heard_ns;
    uint32_t silent; /* ticks since something was heard */
    uint32_t unsaid; /* registers that this link has yet to be told, as a bit set */
    uint8_t part[MESSAGE];
    size_t part_len;
    uint8_t out[MESSAGE];
    size_t out_at;         /* MESSAGE: nothing is half sent */
    int peer;              /* that was dialled, or -1 */
    bool carrier;          /* frames instead of a stream */
    bool heard;            /* something, on this link */
    uint64_t sent;         /* frames */
    uint64_t session;      /* of the peer's frames */
    uint64_t last, before; /* the greatest number of a frame, and which of the 64 below */
} toy_link;

typedef struct toy_peer {
    char address[16];
    uint32_t address_len;
    uint64_t dial; /* that is out */
    uint64_t retry_ns;
    bool linked;
} toy_peer;

typedef struct waiting_reply {
    uint64_t request;
    uint64_t w;
    uint8_t answer[33]; /* record, whether it is new, etag */
} waiting_reply;

typedef enum toy_mark { MARK_NONE, MARK_SET, MARK_CLEAR } toy_mark;

struct fb_node {
    fb_options options;
    fb_id self;
    bool started, running;
    uint64_t incarnation, seq, w, w_done, mono_ns, next_ns, numbers;
    int64_t wall_us;
    bool in_flight;
    bool mute; /* says nothing any more */
    uint64_t ticked_ns;
    uint32_t ticks;  /* since something was heard; 0: nothing was heard yet */
    uint32_t dirty;  /* registers that no write set has yet, as a bit set */
    uint32_t flight; /* those in the write set that is not durable */
    uint32_t peers_stored;
    fb_toy_entry entries[RECORDS];
    toy_link links[LINKS];
    toy_peer peers[PEERS];
    uint32_t peer_count;
    waiting_reply replies[16];
    uint32_t reply_count;
    uint64_t asked_ns;    /* anything, the last time */
    uint32_t asked;       /* so often in this moment */
    uint64_t last_asked;  /* a hash of the last write that a client asked for */
    uint32_t last_record; /* that a client wrote, and so often in a row */
    uint32_t in_a_row;
    toy_mark mark; /* that a start has begun and is not over */
    fb_effects *out;
};

extern const fb_id fb_toy_area;

/* An effect of this step. */
void fb_toy_effect(fb_node *node, uint32_t kind, uint64_t a, uint64_t b, uint64_t c,
                   const void *bytes, size_t len);
void fb_toy_observe_change(fb_node *node, fb_fact fact, uint64_t b, const fb_toy_entry *e);
void fb_toy_reply(fb_node *node, uint64_t request, fb_error status, const void *bytes, size_t len);
/* A register takes a greater entry, and everybody is to hear of it. */
bool fb_toy_take(fb_node *node, uint32_t i, const fb_toy_entry *e);

void fb_toy_entry_write(fb_writer *w, const fb_toy_entry *e);
fb_toy_entry fb_toy_entry_read(fb_reader *r);

/* The store: one write set at a time, each register under one key. */
void fb_toy_start(fb_node *node, const fb_event *ev);
void fb_toy_loaded(fb_node *node, const fb_event *ev);
void fb_toy_seal(fb_node *node);
void fb_toy_written(fb_node *node, const fb_event *ev);

void fb_toy_request(fb_node *node, const fb_event *ev);

#endif
