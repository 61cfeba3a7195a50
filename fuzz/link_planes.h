/* SPDX-License-Identifier: Apache-2.0 */
/* What is around the link planes of a few nodes: the nodes, and stand-ins for the rest of the core,
 * which take frames from the planes and hand them out. */
#ifndef FB_FUZZ_LINK_PLANES_H
#define FB_FUZZ_LINK_PLANES_H

#include <stdio.h>
#include <stdlib.h>

#ifdef WORLD_FAST /* keyed hashes instead of libsodium, for many runs */
#include "sim/world/provider_fast.h"
#else
#include "io/keys/provider_sodium.h"
#endif
#include "protocol/core/digests.h"
#include "protocol/core/timers.h"
#include "protocol/identity/identity.h"
#include "protocol/link/plane.h"
#include "protocol/link/state.h"
#include "protocol/store/ops.h"

#ifndef WORLD_NODES
#define WORLD_NODES 3u
#endif
#define WORLD_CONNS  64u
#define WORLD_LINKS  8u
#define WORLD_QUEUE  262144u
#define WORLD_FRAMES 512u
#define WORLD_MS     UINT64_C(1000000)
#define WORLD_S      (1000 * WORLD_MS)

typedef struct world_end {
    uint32_t node;
    uint64_t link;
    bool open;
    /* Towards this end. */
    uint8_t *queue; /* within `memory`, of 2 * WORLD_QUEUE bytes */
    uint8_t *memory;
    size_t used;
    size_t seen;    /* bytes delivered so far */
    bool paused;    /* the node did not take everything */
    size_t written; /* bytes that came into the queue so far */
} world_end;

typedef struct world_conn {
    bool used;
    bool external;
    bool silent; /* what is sent vanishes */
    world_end end[2];
} world_conn;

typedef struct world_frame {
    uint32_t link;
    uint8_t channel;
    uint8_t *bytes;
    size_t len;
} world_frame;

typedef struct world_out {
    uint8_t *bytes[32];
    size_t len[32];
    uint32_t count;
} world_out;

typedef struct world_node {
    fb_node node;
#ifdef WORLD_FAST
    fb_sim_provider fast;
#else
    fb_sodium *sodium;
#endif
    uint8_t *arena;
    size_t arena_bytes;
    uint8_t *effects;
    fb_event_handler handler;
    int64_t wall_offset_us;
    fb_member_status judge[WORLD_NODES]; /* what this node holds of each node */
    world_frame frames[WORLD_FRAMES];    /* received */
    uint32_t frame_count;
    world_out out[WORLD_LINKS][FB_CHANNELS];
    world_out invite[WORLD_LINKS];
    uint32_t ups, downs, shows;
    fb_error last_down;
    fb_status answer; /* of the channel's frame handler */
    uint32_t facts[256];
    fb_error last_close; /* reason of the last FB_FX_CLOSE */
    fb_error last_refused;
    uint32_t dials;
    uint64_t last_dial_ns;
    uint32_t differs;
    uint8_t digest; /* stands for the digest of the vectors */
    fb_error ended;
} world_node;

typedef struct world {
    world_node nodes[WORLD_NODES];
    world_conn conns[WORLD_CONNS];
    uint64_t mono_ns;
    uint64_t next_link;
    uint64_t finished; /* events */
    size_t segment;    /* deliver so many bytes at a time, 0: all */
    uint64_t credit;   /* a link starts with so much, and gets back what it sent */
    bool cut[WORLD_NODES][WORLD_NODES];
    size_t effects_cap;
    /* Faults of the next byte stream: on bytes towards the end number `fault_end`. */
    bool corrupt, truncate;
    uint32_t fault_end;
    size_t fault_at;
    uint8_t fault_mask;
    bool hold; /* nothing is delivered */
} world;

static const fb_id world_space = {
    {0x01, 0x95, 0xa3, 0xf0, 0x80, 0, 0x78, 0x90, 0xab, 0xcd, 0, 0, 0, 0, 0, 1}};
static const fb_options world_options = {
    .sizes = {.members = WORLD_NODES,
              .links = WORLD_LINKS,
              .addresses = 8,
              .link_bytes = FB_RECORD_WIRE_MAX,
              .frames = 2},
    .timing = {.heartbeat_ns = 2 * WORLD_S,
               .silent_ns = 7 * WORLD_S,
               .handshake_ns = 10 * WORLD_S,
               .pending_ns = 30 * WORLD_S,
               .redial_min_ns = 250 * WORLD_MS,
               .redial_max_ns = 30 * WORLD_S,
               .link_age_ns = 86400 * WORLD_S,
               .resend_min_ns = 400 * WORLD_MS,
               .resend_max_ns = 5 * WORLD_S,
               .misbehaviour_budget = 100},
    .observe = true,
};

static world *the_world;

static inline world_node *world_of(const fb_node *node)
{
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        if (&the_world->nodes[i].node == node) return &the_world->nodes[i];
    }
    abort();
}

/* Stand-ins for the core and the other planes. */
void fb_event_register(fb_node *node, fb_event_kind kind, fb_event_handler handler)
{
    if (kind == FB_EV_LINK_BYTES) world_of(node)->handler = handler;
}
void fb_verb_register(fb_node *node, fb_verb verb, fb_verb_handler handler)
{
    (void)node;
    (void)verb;
    (void)handler;
}
void fb_reply(fb_node *node, uint32_t index, fb_status status, fb_span answer)
{
    (void)node;
    (void)index;
    (void)status;
    (void)answer;
}
void fb_reply_held(fb_node *node, uint32_t index, fb_status status, uint64_t w, fb_span answer)
{
    (void)w;
    fb_reply(node, index, status, answer);
}
void fb_plane_loaded(fb_node *node)
{
    (void)node;
}
void fb_incarnation_end(fb_node *node, fb_error why)
{
    world_of(node)->ended = why;
}
fb_op *fb_op_begin(fb_node *node, fb_op_kind kind, fb_op_run run, uint32_t bytes, uint32_t entries)
{
    (void)node;
    (void)kind;
    (void)run;
    (void)bytes;
    (void)entries;
    return NULL;
}
void *fb_op_context(fb_op *op)
{
    return op;
}
bool fb_op_read_range(fb_op *op, fb_span low, fb_span high, uint32_t value_bytes, uint32_t items,
                      uint32_t bytes, bool descending)
{
    (void)op;
    (void)low;
    (void)high;
    (void)value_bytes;
    (void)items;
    (void)bytes;
    (void)descending;
    return false;
}
void fb_op_issue(fb_node *node, fb_op *op)
{
    (void)node;
    (void)op;
}
fb_status fb_op_status(const fb_op *op)
{
    (void)op;
    return FB_ERR_ARGUMENT;
}
uint32_t fb_op_range_count(const fb_node *node, const fb_op *op, uint32_t item)
{
    (void)node;
    (void)op;
    return item;
}
fb_read_entry fb_op_range_entry(const fb_node *node, const fb_op *op, uint32_t item, uint32_t at)
{
    (void)node;
    (void)op;
    (void)item;
    (void)at;
    return (fb_read_entry){{NULL, 0}, 0, {NULL, 0}};
}
bool fb_op_range_whole(const fb_node *node, const fb_op *op, uint32_t item)
{
    (void)node;
    (void)op;
    (void)item;
    return true;
}
fb_span fb_op_range_next(const fb_node *node, const fb_op *op, uint32_t item)
{
    (void)node;
    (void)op;
    (void)item;
    return (fb_span){NULL, 0};
}
void fb_put(fb_node *node, fb_span key, fb_span value)
{
    (void)node;
    (void)key;
    (void)value;
}
void fb_delete(fb_node *node, fb_span key)
{
    (void)node;
    (void)key;
}
uint64_t fb_w_building(const fb_node *node)
{
    (void)node;
    return 1;
}
uint32_t fb_space_capacity(const fb_node *node)
{
    (void)node;
    return 1;
}
bool fb_space_exists(const fb_node *node, uint32_t space)
{
    (void)node;
    return space == 0;
}
uint32_t fb_space_local(const fb_node *node, uint32_t space)
{
    (void)node;
    return space;
}
fb_id fb_space_id(const fb_node *node, uint32_t space)
{
    (void)node;
    (void)space;
    return world_space;
}
uint32_t fb_space_find(const fb_node *node, fb_id space)
{
    (void)node;
    return fb_id_equal(space, world_space) ? 0 : FB_NONE;
}
uint32_t fb_space_find_tag(const fb_node *node, const uint8_t tag[16])
{
    fb_id own;
    fb_space_tag(node->options.provider, world_space, &own);
    return memcmp(own.b, tag, 16) == 0 ? 0 : FB_NONE;
}
fb_member_status fb_space_judge_peer(const fb_node *node, uint32_t space, fb_id peer, fb_b32 key,
                                     uint32_t *member)
{
    (void)space;
    (void)key;
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        if (!fb_id_equal(the_world->nodes[i].node.self, peer)) continue;
        *member = i;
        return world_of(node)->judge[i];
    }
    return FB_MEMBER_PENDING;
}
void fb_database_digest(fb_node *node, uint32_t space, uint32_t member, uint8_t out[16])
{
    (void)space;
    (void)member;
    memset(out, world_of(node)->digest, 16);
}
void fb_database_same(fb_node *node, uint32_t link)
{
    (void)node;
    (void)link;
}

void fb_database_differs(fb_node *node, uint32_t link)
{
    (void)link;
    world_of(node)->differs++;
}

/* The planes above: frames go into and out of arrays. */
static inline fb_status world_take(fb_node *node, uint32_t link, uint8_t channel, fb_span frame)
{
    world_node *n = world_of(node);
    if (n->answer != FB_OK) return n->answer;
    if (n->frame_count == WORLD_FRAMES) return FB_ERR_LIMIT;
    world_frame *f = &n->frames[n->frame_count++];
    f->link = link;
    f->channel = channel;
    f->len = frame.len;
    f->bytes = malloc(frame.len + 1);
    if (f->bytes == NULL) abort();
    if (frame.len != 0) memcpy(f->bytes, frame.p, frame.len);
    return FB_OK;
}

static inline bool world_peek(world_out *out, fb_frame_out *frame)
{
    if (out->count == 0) return false;
    /* Some bytes in the head, the rest in the body. */
    size_t head = out->len[0] < 7 ? out->len[0] : 7;
    memcpy(frame->head, out->bytes[0], head);
    frame->head_len = (uint8_t)head;
    frame->body = fb_span_of(out->bytes[0] + head, out->len[0] - head);
    return true;
}

static inline void world_sent(world_out *out)
{
    free(out->bytes[0]);
    out->count--;
    memmove(out->bytes, out->bytes + 1, out->count * sizeof *out->bytes);
    memmove(out->len, out->len + 1, out->count * sizeof *out->len);
}

static inline void world_drop(world_out *out)
{
    while (out->count != 0) world_sent(out);
}

static inline void world_up(fb_node *node, uint32_t link)
{
    (void)link;
    world_of(node)->ups++;
}
static inline void world_down(fb_node *node, uint32_t link, fb_error why)
{
    world_node *n = world_of(node);
    n->downs++;
    n->last_down = why;
    world_drop(&n->out[link][FB_CHANNEL_MESSAGING]);
}
static inline void world_calls_down(fb_node *node, uint32_t link, fb_error why)
{
    (void)why;
    world_drop(&world_of(node)->out[link][FB_CHANNEL_CALLS]);
}
static inline void world_shown(fb_node *node, uint32_t link)
{
    world_of(node)->shows++;
    if (world_of(node)->invite[link].count != 0) {
        fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
    }
}
static inline void world_invite_down(fb_node *node, uint32_t link, fb_error why)
{
    (void)why;
    world_drop(&world_of(node)->invite[link]);
}
static inline fb_status world_messaging(fb_node *node, uint32_t link, fb_span frame)
{
    return world_take(node, link, FB_CHANNEL_MESSAGING, frame);
}
static inline fb_status world_calls(fb_node *node, uint32_t link, fb_span frame)
{
    return world_take(node, link, FB_CHANNEL_CALLS, frame);
}
static inline fb_status world_invite(fb_node *node, uint32_t link, fb_span frame)
{
    return world_take(node, link, FB_CHANNEL_CONTROL, frame);
}
static inline bool world_peek_messaging(fb_node *node, uint32_t link, fb_frame_out *out)
{
    return world_peek(&world_of(node)->out[link][FB_CHANNEL_MESSAGING], out);
}
static inline bool world_peek_calls(fb_node *node, uint32_t link, fb_frame_out *out)
{
    return world_peek(&world_of(node)->out[link][FB_CHANNEL_CALLS], out);
}
static inline bool world_peek_invite(fb_node *node, uint32_t link, fb_frame_out *out)
{
    return world_peek(&world_of(node)->invite[link], out);
}
static inline void world_sent_messaging(fb_node *node, uint32_t link)
{
    world_sent(&world_of(node)->out[link][FB_CHANNEL_MESSAGING]);
}
static inline void world_sent_calls(fb_node *node, uint32_t link)
{
    world_sent(&world_of(node)->out[link][FB_CHANNEL_CALLS]);
}
static inline void world_sent_invite(fb_node *node, uint32_t link)
{
    world_sent(&world_of(node)->invite[link]);
}

static const fb_channel world_messaging_ops = {
    NULL, world_up, world_down, world_messaging, world_peek_messaging, world_sent_messaging, NULL};
static const fb_channel world_calls_ops = {
    NULL, NULL, world_calls_down, world_calls, world_peek_calls, world_sent_calls, NULL};
static const fb_channel world_invite_ops = {
    world_shown, NULL, world_invite_down, world_invite, world_peek_invite, world_sent_invite, NULL};

#endif
