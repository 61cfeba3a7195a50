/* SPDX-License-Identifier: Apache-2.0 */
/* Link planes of a few nodes in one process, without the rest of the core: the planes around them
 * are stand-ins below. Byte streams and external carriers are queues that a test may cut, corrupt,
 * truncate, delay and repeat.
 *
 * Included by one source file of a program: it defines the functions of the core that the link
 * plane imports, so the real ones are not linked. */
#ifndef FB_FUZZ_LINK_WORLD_H
#define FB_FUZZ_LINK_WORLD_H

#include <stdio.h>
#include <stdlib.h>

#ifdef WORLD_FAST /* keyed hashes instead of libsodium, for many runs */
#include "sim/provider_fast.h"
#else
#include "io/provider_sodium.h"
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

/* Events, and what they cause. */
static inline void world_carry_out(world *w, uint32_t i, fb_effects *fx);

/* A step in two halves, for tests that call the plane as another plane would in between. */
static inline void world_begin(world *w, uint32_t i, fb_effects *fx)
{
    world_node *n = &w->nodes[i];
    *fx = (fb_effects){n->effects, w->effects_cap, 0, 0};
    n->node.mono_ns = w->mono_ns;
    n->node.wall_us = (int64_t)(w->mono_ns / 1000) + n->wall_offset_us;
    n->node.out = fx;
    n->node.effects_cap = fx->capacity;
    n->node.starved = false;
}

static inline void world_finish(world *w, uint32_t i, fb_effects *fx)
{
    world_node *n = &w->nodes[i];
    fb_timers_fire(&n->node);
    fb_link_plane.flush(&n->node);
#ifdef WORLD_FAST
    if (++w->finished % 16 == 0)
#endif
        fb_digests_update(&n->node);
    n->node.out = NULL;
    world_carry_out(w, i, fx);
    while (n->node.starved) {
        world_begin(w, i, fx);
        fb_link_plane.flush(&n->node);
        n->node.out = NULL;
        world_carry_out(w, i, fx);
    }
}

static inline size_t world_event(world *w, uint32_t i, fb_event event)
{
    fb_effects fx;
    world_begin(w, i, &fx);
    event.mono_ns = w->nodes[i].node.mono_ns;
    event.wall_us = w->nodes[i].node.wall_us;
    if (event.kind != FB_EV_TICK && w->nodes[i].handler(&w->nodes[i].node, &event) != FB_OK)
        abort();
    size_t consumed = fx.consumed;
    world_finish(w, i, &fx);
    return consumed;
}

static inline world_conn *world_find(world *w, uint32_t i, uint64_t link, uint32_t *end)
{
    for (uint32_t c = 0; c < WORLD_CONNS; c++) {
        for (uint32_t e = 0; e < 2; e++) {
            world_end *x = &w->conns[c].end[e];
            if (w->conns[c].used && x->open && x->node == i && x->link == link) {
                *end = e;
                return &w->conns[c];
            }
        }
    }
    return NULL;
}

/* A queue's memory stays with its place: many runs use it. */
static inline uint8_t *world_queue_take(uint32_t conn, uint32_t e)
{
    static uint8_t *queues[WORLD_CONNS][2];
    if (queues[conn][e] == NULL) queues[conn][e] = malloc(2 * WORLD_QUEUE);
    return queues[conn][e];
}

static inline world_conn *world_conn_new(world *w, uint32_t i, uint32_t j, bool external)
{
    for (uint32_t c = 0; c < WORLD_CONNS; c++) {
        world_conn *conn = &w->conns[c];
        if (conn->used) continue;
        *conn = (world_conn){.used = true, .external = external};
        uint32_t who[2] = {i, j};
        for (uint32_t e = 0; e < 2; e++) {
            conn->end[e].node = who[e];
            conn->end[e].link = ++w->next_link;
            conn->end[e].open = true;
            conn->end[e].queue = conn->end[e].memory = world_queue_take(c, e);
            if (conn->end[e].queue == NULL) abort();
        }
        return conn;
    }
    abort();
}

static inline void world_give_credit(world *w, world_end *end)
{
    world_event(w, end->node,
                (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = end->link, .b = w->credit});
}

/* i reaches j: "n0", "n1", ... */
static inline void world_dial(world *w, uint32_t i, uint64_t dial, fb_span address)
{
    uint32_t j = address.len == 2 && address.p[0] == 'n' ? (uint32_t)(address.p[1] - '0') : 99;
    w->nodes[i].dials++;
    w->nodes[i].last_dial_ns = w->mono_ns;
    if (j >= WORLD_NODES || w->cut[i][j]) {
        world_event(
            w, i,
            (fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .b = 0, .c = FB_ERR_UNREACHABLE});
        return;
    }
    world_conn *conn = world_conn_new(w, i, j, false);
    char host[8];
    int len = snprintf(host, sizeof host, "n%u:9", i);
    world_event(w, i, (fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .b = conn->end[0].link});
    world_event(w, j,
                (fb_event){.kind = FB_EV_LINK_OPENED,
                           .a = conn->end[1].link,
                           .len = (uint32_t)len,
                           .bytes = (const uint8_t *)host});
    for (uint32_t e = 0; e < 2; e++) {
        if (conn->end[e].open) world_give_credit(w, &conn->end[e]);
    }
}

static inline void world_end_conn(world *w, world_conn *conn)
{
    for (uint32_t e = 0; e < 2; e++) {
        world_end *end = &conn->end[e];
        if (!end->open) continue;
        end->open = false;
        world_event(w, end->node, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = end->link});
    }
    for (uint32_t e = 0; e < 2; e++) {
        conn->end[e].queue = NULL;
    }
    conn->used = false;
}

static inline void world_deliver_bytes(world *w, world_conn *conn, uint32_t e);

static inline void world_close(world *w, uint32_t i, uint64_t link)
{
    uint32_t e;
    world_conn *conn = world_find(w, i, link, &e);
    if (conn == NULL) return;
    conn->end[e].open = false;
    world_event(w, i, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = link});
    /* What was sent before arrives before the end does. */
    if (conn->end[1 - e].open && !w->hold) world_deliver_bytes(w, conn, 1 - e);
    world_end_conn(w, conn);
}

static inline void world_send(world *w, uint32_t i, uint64_t link, const uint8_t *bytes, size_t len)
{
    uint32_t e;
    world_conn *conn = world_find(w, i, link, &e);
    if (conn == NULL || conn->silent) return;
    world_end *to = &conn->end[1 - e];
    if (conn->external) {
        if (to->used + len + 4 > WORLD_QUEUE) abort();
        fb_store_be(to->queue + to->used, len, 4);
        to->used += 4;
    } else if (to->used + len > WORLD_QUEUE) {
        abort();
    }
    memcpy(to->queue + to->used, bytes, len);
    to->used += len;
    to->written += len;
}

static inline void world_carry_out(world *w, uint32_t i, fb_effects *fx)
{
    world_node *n = &w->nodes[i];
    if (fx->used == 0) return;
    /* The arena is used again by the steps that carrying out causes. */
    uint8_t *copy = malloc(fx->used + 1);
    if (copy == NULL) abort();
    memcpy(copy, fx->memory, fx->used);
    fb_effects own = {copy, fx->used, fx->used, 0};
    const fb_effect *f = NULL;
    while ((f = fb_effects_next(&own, f)) != NULL) {
        const uint8_t *bytes = fb_effect_bytes(f);
        uint32_t e;
        if (f->kind == FB_FX_SEND || f->kind == FB_FX_FRAME) {
            world_conn *conn = world_find(w, i, f->a, &e);
            if (conn != NULL && conn->external != (f->kind == FB_FX_FRAME)) abort();
            world_send(w, i, f->a, bytes, f->len);
        } else if (f->kind == FB_FX_RESUME) {
            world_conn *conn = world_find(w, i, f->a, &e);
            if (conn != NULL) conn->end[e].paused = false;
        } else if (f->kind == FB_FX_OBSERVE) {
            n->facts[f->a]++;
            if (f->a == FB_FACT_LINK_REFUSED) n->last_refused = (fb_error)f->c;
        }
    }
    /* What causes events comes after all bytes are on their way. */
    while ((f = fb_effects_next(&own, f)) != NULL) {
        if (f->kind == FB_FX_DIAL) {
            world_dial(w, i, f->a, fb_span_of(fb_effect_bytes(f), f->len));
        } else if (f->kind == FB_FX_CLOSE) {
            n->last_close = (fb_error)f->b;
            world_close(w, i, f->a);
        }
    }
    free(copy);
}

static inline void world_take_out(world_end *end, size_t len)
{
    end->used -= len;
    end->seen += len;
    end->queue += len;
    if (end->queue - end->memory <= WORLD_QUEUE) return;
    memmove(end->memory, end->queue, end->used);
    end->queue = end->memory;
}

/* What arrived is credit again. */
static inline void world_return_credit(world *w, world_conn *conn, uint32_t e, size_t len)
{
    world_end *from = &conn->end[1 - e];
    if (!conn->used || !from->open) return;
    world_event(w, from->node, (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = from->link, .b = len});
}

static inline void world_deliver_bytes(world *w, world_conn *conn, uint32_t e)
{
    world_end *end = &conn->end[e];
    while (conn->used && end->open && end->used != 0 && !end->paused) {
        if (conn->external) {
            size_t len = (size_t)end->queue[0] << 24 | (size_t)end->queue[1] << 16 |
                         (size_t)end->queue[2] << 8 | end->queue[3];
            uint8_t *frame = malloc(len + 1);
            if (frame == NULL) abort();
            memcpy(frame, end->queue + 4, len);
            world_take_out(end, len + 4);
            world_return_credit(w, conn, e, len);
            world_event(w, end->node,
                        (fb_event){.kind = FB_EV_CARRIER_FRAME,
                                   .a = end->link,
                                   .len = (uint32_t)len,
                                   .bytes = frame});
            free(frame);
            continue;
        }
        size_t len = end->used;
        if (w->segment != 0 && len > w->segment) len = w->segment;
        if (w->fault_end == e && w->truncate && end->seen <= w->fault_at) {
            if (w->fault_at - end->seen < len) len = w->fault_at - end->seen;
            if (len == 0) {
                world_end_conn(w, conn);
                return;
            }
        }
        if (w->fault_end == e && w->corrupt && w->fault_at >= end->seen &&
            w->fault_at < end->seen + len) {
            end->queue[w->fault_at - end->seen] ^= w->fault_mask;
            w->corrupt = false;
        }
        uint8_t *bytes = malloc(len);
        if (bytes == NULL) abort();
        memcpy(bytes, end->queue, len);
        size_t taken = world_event(
            w, end->node,
            (fb_event){
                .kind = FB_EV_LINK_BYTES, .a = end->link, .len = (uint32_t)len, .bytes = bytes});
        free(bytes);
        if (!conn->used || !end->open) return;
        world_take_out(end, taken);
        world_return_credit(w, conn, e, taken);
        if (!conn->used || !end->open) return;
        if (taken < len) {
            /* RESUME in the same step means: at once. */
            end->paused = fb_links_find(&w->nodes[end->node].node, end->link) != FB_NONE &&
                          fb_links_get(&w->nodes[end->node].node,
                                       fb_links_find(&w->nodes[end->node].node, end->link))
                              ->paused;
        }
    }
}

/* Delivers until nothing is under way. */
static inline void world_settle(world *w)
{
    bool moved = !w->hold;
    while (moved) {
        moved = false;
        for (uint32_t c = 0; c < WORLD_CONNS; c++) {
            for (uint32_t e = 0; e < 2; e++) {
                world_conn *conn = &w->conns[c];
                if (!conn->used || !conn->end[e].open || conn->end[e].paused) continue;
                if (conn->end[e].used == 0) continue;
                world_deliver_bytes(w, conn, e);
                moved = true;
            }
        }
    }
}

/* Lets time pass, with ticks at the nodes' deadlines. */
static inline void world_run(world *w, uint64_t ns)
{
    uint64_t end = w->mono_ns + ns;
    world_settle(w);
    for (;;) {
        uint64_t next = end;
        for (uint32_t i = 0; i < WORLD_NODES; i++) {
            next = fb_min_u64(next, fb_timers_next(&w->nodes[i].node));
        }
        if (next > w->mono_ns) w->mono_ns = next;
        for (uint32_t i = 0; i < WORLD_NODES; i++) {
            if (fb_timers_next(&w->nodes[i].node) <= w->mono_ns) {
                world_event(w, i, (fb_event){.kind = FB_EV_TICK});
            }
        }
        world_settle(w);
        if (w->mono_ns >= end) return;
    }
}

static inline void world_layout(fb_node *node, fb_arena *arena)
{
    memset(&node->timers, 0, sizeof node->timers);
    memset(&node->digests, 0, sizeof node->digests);
    fb_link_plane.layout(node, arena);
    fb_timers_layout(node, arena);
    fb_digests_layout(node, arena);
}

static inline void world_start(world *w, uint32_t i, uint64_t incarnation)
{
    world_node *n = &w->nodes[i];
    fb_timers_reset(&n->node);
    fb_link_plane.reset(&n->node);
    n->node.incarnation = incarnation;
    n->node.seed = fb_seed_derive((fb_seed){7, i}, FB_STREAM_DERIVE, incarnation);
    n->node.phase = FB_PHASE_RUNNING;
    fb_link_plane.started(&n->node);
}

#ifdef WORLD_FAST
static inline void world_keys(world_node *n, uint8_t identity)
{
    static uint8_t scratch[FB_SIM_PROVIDER_TEXT_MAX];
    fb_sim_provider_init(&n->fast, (fb_seed){identity, 1}, (fb_seed){identity, 2}, scratch);
    n->node.options.provider = &n->fast.table;
    n->node.options.identity_key = FB_SIM_KEY_IDENTITY;
    n->node.options.link_key = FB_SIM_KEY_LINK;
}
#else
static inline void world_keys(world_node *n, uint8_t identity)
{
    fb_b32 seed;
    if (fb_sodium_create(32, &n->sodium) != FB_OK) abort();
    n->node.options.provider = fb_sodium_provider(n->sodium);
    memset(seed.b, identity, sizeof seed.b);
    if (fb_sodium_add_signing(n->sodium, &seed, &n->node.options.identity_key) != FB_OK) abort();
    memset(seed.b, identity + 0x40, sizeof seed.b);
    if (fb_sodium_add_dh(n->sodium, &seed, &n->node.options.link_key) != FB_OK) abort();
}
#endif

static inline void world_init_node(world *w, uint32_t i, uint8_t identity)
{
    world_node *n = &w->nodes[i];
    n->node.options = world_options;
    world_keys(n, identity);
    const fb_provider *p = n->node.options.provider;
    if (p->public_key(p->user, n->node.options.identity_key, &n->node.self_key) != FB_OK) abort();
    n->node.self = fb_node_id_of(p, &n->node.self_key);

    fb_arena arena = {NULL, 0, 0};
    world_layout(&n->node, &arena);
    arena.cap = arena.used;
    arena.used = 0;
    n->arena_bytes = arena.cap;
    n->arena = aligned_alloc(16, (arena.cap + 15) & ~(size_t)15);
    n->effects = aligned_alloc(16, 1u << 20);
    if (n->arena == NULL || n->effects == NULL) abort();
    memset(n->arena, 0, arena.cap);
    arena.base = n->arena;
    n->node.links = NULL;
    world_layout(&n->node, &arena);
    fb_channel_register(&n->node, FB_CHANNEL_MESSAGING, &world_messaging_ops);
    fb_channel_register(&n->node, FB_CHANNEL_CALLS, &world_calls_ops);
    fb_control_register(&n->node, FB_CONTROL_INVITE, &world_invite_ops);
    for (uint32_t j = 0; j < WORLD_NODES; j++) n->judge[j] = FB_MEMBER_APPROVED;
    world_start(w, i, 100 + i);
}

static inline world *world_new(void)
{
    world *w = calloc(1, sizeof *w);
    if (w == NULL) abort();
    the_world = w;
    w->mono_ns = 1000 * WORLD_S;
    w->credit = WORLD_QUEUE / 2;
    w->effects_cap = 1u << 20;
    w->fault_end = 9;
    for (uint32_t i = 0; i < WORLD_NODES; i++) world_init_node(w, i, (uint8_t)(i + 1));
    return w;
}

/* What a run allocated besides the world itself. */
static inline void world_clear(world *w)
{
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        world_node *n = &w->nodes[i];
        for (uint32_t l = 0; l < WORLD_LINKS; l++) {
            for (uint32_t c = 0; c < FB_CHANNELS; c++) world_drop(&n->out[l][c]);
            world_drop(&n->invite[l]);
        }
        for (uint32_t f = 0; f < n->frame_count; f++) free(n->frames[f].bytes);
        n->frame_count = 0;
    }
}

static inline void world_free(world *w)
{
    world_clear(w);
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        world_node *n = &w->nodes[i];
        fb_links_reset_table(&n->node);
        free(n->arena);
        free(n->effects);
#ifndef WORLD_FAST
        fb_sodium_destroy(n->sodium);
#endif
    }
    free(w);
    the_world = NULL;
}

#ifdef WORLD_FAST
/* A new world for every run, at the price of a copy: the first one stays where it is. A run ends
 * with world_clear. */
static inline world *world_again(void)
{
    static world *w, fresh;
    static uint8_t *arenas[WORLD_NODES];
    if (w == NULL) {
        w = world_new();
        fresh = *w;
        for (uint32_t i = 0; i < WORLD_NODES; i++) {
            arenas[i] = malloc(w->nodes[i].arena_bytes);
            if (arenas[i] == NULL) abort();
            memcpy(arenas[i], w->nodes[i].arena, w->nodes[i].arena_bytes);
        }
        return w;
    }
    *w = fresh;
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        memcpy(w->nodes[i].arena, arenas[i], w->nodes[i].arena_bytes);
    }
    return w;
}
#endif

/* What tests do. */
static inline void world_book(world *w, uint32_t i, const char *address, fb_id expected)
{
    fb_node *node = &w->nodes[i].node;
    if (fb_link_dial(node, 0, fb_span_text(address), expected) != FB_OK) abort();
    world_event(w, i, (fb_event){.kind = FB_EV_TICK});
}

static inline world_conn *world_carrier(world *w, uint32_t i, uint32_t j)
{
    world_conn *conn = world_conn_new(w, i, j, true);
    uint32_t who[2] = {i, j};
    for (uint32_t e = 0; e < 2; e++) {
        uint8_t bytes[48];
        memcpy(bytes, world_space.b, 16);
        memcpy(bytes + 16, w->nodes[who[1 - e]].node.self_key.b, 32);
        world_event(w, who[e],
                    (fb_event){.kind = FB_EV_CARRIER_OPENED,
                               .a = conn->end[e].link,
                               .len = sizeof bytes,
                               .bytes = bytes});
        world_give_credit(w, &conn->end[e]);
    }
    return conn;
}

static inline void world_queue(world_out *out, const void *bytes, size_t len)
{
    if (out->count == 32) abort();
    out->bytes[out->count] = malloc(len + 1);
    if (out->bytes[out->count] == NULL) abort();
    memcpy(out->bytes[out->count], bytes, len);
    out->len[out->count++] = len;
}

static inline void world_say(world *w, uint32_t i, uint32_t link, fb_channel_id channel,
                             const void *bytes, size_t len)
{
    world_queue(&w->nodes[i].out[link][channel], bytes, len);
    fb_link_has_output(&w->nodes[i].node, link, channel);
}

static inline uint32_t world_count(const world *w, uint32_t i, fb_link_state state)
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < WORLD_LINKS; l++) {
        if (fb_link_at(&w->nodes[i].node, l)->state == state) count++;
    }
    return count;
}

#endif
