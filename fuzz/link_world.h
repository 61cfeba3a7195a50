/* SPDX-License-Identifier: Apache-2.0 */
/* Link planes of a few nodes in one process, without the rest of the core: the planes around them
 * are stand-ins (link_planes.h). Byte streams and external carriers are queues that a test may cut,
 * corrupt, truncate, delay and repeat.
 *
 * Included by one source file of a program: it defines the functions of the core that the link
 * plane imports, so the real ones are not linked. */
#ifndef FB_FUZZ_LINK_WORLD_H
#define FB_FUZZ_LINK_WORLD_H

#include "fuzz/link_planes.h"

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
