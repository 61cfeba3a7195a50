/* SPDX-License-Identifier: Apache-2.0 */
/* The network between simulated nodes: byte streams that the link layer runs over, and the external
 * carrier of whole frames.
 *
 * A connection has two ends and two flows, one each way. A stream keeps its order and loses nothing
 * unless a fault says so; a carrier loses, repeats and reorders frames. What may happen on the way
 * from one node to another is the state of a directed path, which the weather sets. */
#ifndef FB_SIM_NETWORK_NETWORK_H
#define FB_SIM_NETWORK_NETWORK_H

#include "protocol/base/error.h"
#include "sim/world/blobs.h"

typedef struct fb_sim_world fb_sim_world;

/* From one node to another. Ratios are "1 of n"; 0 is never. */
typedef struct fb_sim_path {
    uint64_t delay_min_ns;
    uint64_t delay_mean_ns; /* beyond the minimum, exponential */
    uint64_t delay_draws;   /* fb_draw_base of its delays */
    uint64_t reorder_ns;
    uint32_t rate; /* bytes a second; 0: no limit */
    uint32_t corrupt_of;
    uint32_t truncate_of;
    uint32_t cut_of;
    uint32_t loss_of;
    uint32_t dup_of;
    uint32_t reorder_of;
    uint32_t stale_of;
    uint32_t queue_cap; /* bytes that may wait; 0: as many as there is room for */
    uint16_t corrupt_bits;
    uint16_t segment_of_16;
    uint16_t dup_copies;
    bool blocked;
    bool in_order;     /* but for `delay` and `reorder` a carrier's frames do not overtake */
    bool queue_old_go; /* of a full queue the oldest are lost, not the newest */
    bool half_open;    /* a peer that vanishes here is not noticed */
    /* Occurrences of the draws. */
    uint64_t sends;
    uint64_t deliveries;
    uint64_t dials;
} fb_sim_path;

#define FB_SIM_RECORDED_BYTES 1024

/* What one send put on the way: the head of a blob, the bytes follow. */
typedef struct fb_sim_segment {
    uint64_t at_ns;
    fb_sim_blob next;
    uint32_t len;
} fb_sim_segment;

/* One direction of a connection. Offsets count all bytes since the connection was made. */
typedef struct fb_sim_flow {
    fb_sim_blob first; /* segments on the way, oldest first; 0: none */
    fb_sim_blob last;
    uint32_t skip; /* of the first one, taken already */
    uint64_t written;
    uint64_t taken;   /* was consumed by the receiver */
    uint64_t granted; /* credit given to the sender, in all */
    uint64_t last_at_ns;
    uint64_t busy_until_ns;
    uint64_t waiting; /* of a carrier: bytes of frames on the way */
    bool scheduled;   /* a delivery is in the queue */
    bool paused;      /* the receiver did not take everything: waits for RESUME */
    bool stalled;     /* a delivery fell into a partition */
    bool credit_scheduled;
    bool credit_stalled;
    bool swallowing; /* the receiver is gone without a word */
    bool ended;      /* the sender closed: the receiver learns when all is delivered */
    uint64_t end_at_ns;
    fb_error end_reason;
} fb_sim_flow;

typedef struct fb_sim_end {
    uint64_t link; /* the node's number for it; 0: not told yet */
    uint16_t node;
    bool open;    /* the node knows it and has not seen its end */
    bool closing; /* the node asked to close */
    bool close_stalled;
} fb_sim_end;

typedef enum fb_sim_connection_state {
    FB_SIM_CONNECTION_FREE,
    FB_SIM_CONNECTION_DIALLING,
    FB_SIM_CONNECTION_OPEN,
} fb_sim_connection_state;

/* End 0 dialled; flow 0 goes from end 0 to end 1. */
typedef struct fb_sim_connection {
    fb_sim_connection_state state;
    uint32_t stamp; /* rises whenever the place is used again */
    uint32_t next_free;
    bool carrier;
    uint8_t space; /* of a carrier: a number of the world */
    bool refused;  /* the dial's answer is a refusal */
    bool attacker; /* end 0 is nobody: recorded bytes are played */
    uint64_t dial; /* the dialler's number */
    uint64_t dial_incarnation;
    uint32_t dial_boots;
    fb_sim_end ends[2];
    fb_sim_flow flows[2];
} fb_sim_connection;

typedef struct fb_sim_frame {
    fb_sim_blob bytes;
    uint32_t end; /* that will receive it */
    uint32_t stamp;
    uint32_t next_free;
    uint64_t serial;
    bool lost; /* on its way: it will not arrive */
} fb_sim_frame;

typedef struct fb_sim_network {
    fb_sim_path *paths; /* from * nodes + to */
    fb_sim_connection *connections;
    uint32_t connection_count;
    uint32_t connection_free;
    uint32_t connections_open;
    uint32_t window_bytes; /* of a stream: so much may be on its way */
    fb_sim_frame *frames;
    uint32_t frame_count;
    uint32_t frame_free;
    uint64_t frame_serial;
    uint16_t *answers; /* by node: who is reached at its address */
    uint64_t dial_timeout_ns;
    /* What an attacker recorded: the first bytes of dialled connections, and carrier frames. */
    uint8_t *recorded; /* FB_SIM_RECORDED_BYTES */
    uint32_t recorded_len;
    uint32_t recorded_connection;
    uint32_t recorded_stamp;
    uint32_t recorded_to;         /* node that was dialled */
    fb_sim_blob *recorded_frames; /* by path: what it carried once */
    uint64_t disturbed_ns;        /* a carrier lost, repeated or mixed up a frame; 0: never */
    uint64_t hung_ns; /* a stream lost, changed or gained bytes, or an end that nobody tells */
    uint64_t replays;
    uint64_t link_serial; /* numbers of links are never reused, also across boots */
} fb_sim_network;

#define FB_SIM_END_NONE UINT32_MAX

/* What a node asked for. Ends are named connection * 2 + side. */
void fb_sim_dial(fb_sim_world *world, uint32_t node, uint64_t dial, fb_span address);
void fb_sim_send(fb_sim_world *world, uint32_t node, uint64_t link, fb_span bytes);
void fb_sim_frame_send(fb_sim_world *world, uint32_t node, uint64_t link, fb_span frame);
void fb_sim_close(fb_sim_world *world, uint32_t node, uint64_t link, fb_error why);
void fb_sim_resume(fb_sim_world *world, uint32_t node, uint64_t link);

/* What comes out of the queue. */
void fb_sim_at_accept(fb_sim_world *world, uint32_t end, uint32_t stamp);
void fb_sim_at_dial_result(fb_sim_world *world, uint32_t end, uint32_t stamp);
void fb_sim_at_bytes(fb_sim_world *world, uint32_t end, uint32_t stamp);
void fb_sim_at_credit(fb_sim_world *world, uint32_t end, uint32_t stamp);
void fb_sim_at_closed(fb_sim_world *world, uint32_t end, uint32_t stamp);
void fb_sim_at_carrier(fb_sim_world *world, uint32_t end, uint32_t stamp);
void fb_sim_at_frame(fb_sim_world *world, uint32_t frame);

/* Opens an external carrier between two nodes, unless they have one. */
void fb_sim_carrier_open(fb_sim_world *world, uint32_t space, uint32_t a, uint32_t b);
/* The node's process ended: its connections break, noticed by the peers or not. */
void fb_sim_network_crashed(fb_sim_world *world, uint32_t node);
/* The weather changed: what was stuck may move on. */
void fb_sim_network_unblocked(fb_sim_world *world);
/* Recorded bytes are played to the node they were once sent to. */
void fb_sim_network_replay(fb_sim_world *world);
/* A Byzantine node's machine puts bytes of its own into one of its streams, or frames into one of
 * its carriers. `pick` chooses among its links. */
void fb_sim_network_inject(fb_sim_world *world, uint32_t node, uint64_t pick, fb_span bytes);

/* For changes by hand: a frame on its way comes twice; a connection breaks, and nothing arrives of
 * what is on its way. */
bool fb_sim_network_frame_repeat(fb_sim_world *world, uint32_t frame, uint64_t at_ns);
void fb_sim_network_cut(fb_sim_world *world, uint32_t end);

/* The node that an address names. */
bool fb_sim_address_node(fb_span address, uint32_t nodes, uint32_t *node);
/* This frame will not arrive, or has: it waits no longer. */
void fb_sim_frame_over(fb_sim_world *world, fb_sim_frame *frame);
/* Of what waits for this end the oldest frames are lost, until no more than so many bytes do. */
void fb_sim_frames_oldest_lost(fb_sim_world *world, uint32_t end, uint64_t most);

fb_sim_path *fb_sim_path_of(fb_sim_world *world, uint32_t from, uint32_t to);

void fb_sim_network_init(fb_sim_world *world, fb_arena *arena);

#endif
