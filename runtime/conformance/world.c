/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/cursor.h"
#include "runtime/conformance/queue.h"
#include "runtime/exit.h"
#include "sim/world/store.h"

#define KEYS_MAX      64u
#define ITEMS_MAX     16384u
#define BLOB_BYTES    (UINT64_C(16) << 20)
#define ANSWER_MAX    65536u
#define READ_MAX      (1u << 20)
#define CREDIT        UINT64_MAX
#define STREAMS_MAX   32u
#define HELD_SETS_MAX 8u

/* A byte stream between two nodes, by the number that each knows it by. */
typedef struct stream {
    bool open;
    uint32_t node[2];
    uint64_t link[2];
} stream;

/* A write set that the disk holds back. */
typedef struct held_set {
    uint64_t incarnation, w;
    size_t len;
    uint8_t *bytes;
} held_set;

typedef struct place {
    fb_node *node; /* NULL: removed */
    fb_sodium *sodium;
    fb_b32 public_key;
    fb_sim_store store;
    uint64_t life, incarnation, applied_w;
    bool hold;
    held_set held[HELD_SETS_MAX];
    uint32_t held_count;
} place;

struct fb_world {
    fb_world_user user;
    place places[FB_WORLD_NODES];
    uint32_t count;
    uint64_t mono_ns;
    int64_t wall_offset_us; /* wall clock less the monotonic one */
    uint64_t numbers;       /* of links and requests */
    fb_queue queue;
    stream streams[STREAMS_MAX];
    fb_sim_blobs blobs;
    fb_sim_keys keys;
    void *keys_memory, *blob_memory;
    uint64_t *arena;
    size_t arena_bytes;
    uint8_t read[READ_MAX];
    uint64_t asked;
    bool answered;
    fb_status status;
    size_t answer_len;
    uint8_t answer[ANSWER_MAX];
};

_Noreturn static void broken(const char *what)
{
    fprintf(stderr, "faberio conformance: %s\n", what);
    exit(FB_EXIT_FAILED);
}

static void *need(void *memory)
{
    if (memory == NULL) broken("out of memory");
    return memory;
}

static void enqueue(fb_world *w, uint32_t node, fb_event event)
{
    if (!fb_queue_add(&w->queue, node, w->places[node].life, event)) broken("out of memory");
}

/* ---- Streams ---- */

/* The stream of a node's link, and which end of it that is. */
static stream *stream_of(fb_world *w, uint32_t node, uint64_t link, uint32_t *end)
{
    for (uint32_t i = 0; i < STREAMS_MAX; i++) {
        for (*end = 0; *end < 2; ++*end) {
            stream *s = &w->streams[i];
            if (s->open && s->node[*end] == node && s->link[*end] == link) return s;
        }
    }
    return NULL;
}

static void end_stream(fb_world *w, stream *s)
{
    s->open = false;
    for (uint32_t i = 0; i < 2; i++) {
        enqueue(w, s->node[i], (fb_event){.kind = FB_EV_LINK_CLOSED, .a = s->link[i]});
    }
}

static void end_streams_of(fb_world *w, uint32_t node)
{
    for (uint32_t i = 0; i < STREAMS_MAX; i++) {
        stream *s = &w->streams[i];
        if (s->open && (s->node[0] == node || s->node[1] == node)) end_stream(w, s);
    }
}

static void dial(fb_world *w, uint32_t node, const fb_effect *fx)
{
    char text[16] = {0};
    unsigned to = FB_WORLD_NODES;
    uint32_t free_place = 0;
    if (fx->len < sizeof text) memcpy(text, fb_effect_bytes(fx), fx->len);
    while (free_place < STREAMS_MAX && w->streams[free_place].open) free_place++;
    bool there = sscanf(text, "world:%u", &to) == 1 && to < w->count && w->places[to].node != NULL;
    if (!there || free_place == STREAMS_MAX) {
        enqueue(w, node,
                (fb_event){.kind = FB_EV_DIAL_RESULT, .a = fx->a, .c = FB_ERR_UNREACHABLE});
        return;
    }
    stream *s = &w->streams[free_place];
    *s = (stream){true, {node, to}, {w->numbers + 1, w->numbers + 2}};
    w->numbers += 2;
    const char *from = fb_world_address(node);
    enqueue(w, to,
            (fb_event){.kind = FB_EV_LINK_OPENED,
                       .len = (uint32_t)strlen(from),
                       .a = s->link[1],
                       .bytes = (const uint8_t *)from});
    enqueue(w, node, (fb_event){.kind = FB_EV_DIAL_RESULT, .a = fx->a, .b = s->link[0]});
    for (uint32_t i = 0; i < 2; i++) {
        enqueue(w, s->node[i],
                (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = s->link[i], .b = CREDIT});
    }
}

static void send_bytes(fb_world *w, uint32_t node, const fb_effect *fx)
{
    uint32_t end;
    const stream *s = stream_of(w, node, fx->a, &end);
    if (s == NULL) return;
    enqueue(w, s->node[1 - end],
            (fb_event){.kind = FB_EV_LINK_BYTES,
                       .len = fx->len,
                       .a = s->link[1 - end],
                       .bytes = fb_effect_bytes(fx)});
}

/* ---- Store ---- */

static void answer_read(fb_world *w, uint32_t node, const fb_effect *fx)
{
    const place *p = &w->places[node];
    fb_writer out = fb_writer_of(w->read, sizeof w->read);
    fb_write_u64(&out, p->incarnation);
    if (!fb_sim_store_read(&p->store, fb_span_of(fb_effect_bytes(fx), fx->len), &out)) {
        broken("a read set that the store does not take");
    }
    enqueue(w, node,
            (fb_event){.kind = FB_EV_READ_DONE,
                       .len = (uint32_t)out.at,
                       .a = fx->a,
                       .b = p->applied_w,
                       .bytes = w->read});
}

static void apply(fb_world *w, uint32_t node, uint64_t incarnation, uint64_t number, fb_span set)
{
    place *p = &w->places[node];
    if (!fb_sim_store_apply(&p->store, set)) broken("a write set that the store does not take");
    p->applied_w = number;
    enqueue(w, node, (fb_event){.kind = FB_EV_WRITE_DONE, .a = incarnation, .b = number});
}

static void write_set(fb_world *w, uint32_t node, const fb_effect *fx)
{
    place *p = &w->places[node];
    fb_span set = fb_span_of(fb_effect_bytes(fx), fx->len);
    if (!p->hold) {
        apply(w, node, fx->a, fx->b, set);
        return;
    }
    if (p->held_count == HELD_SETS_MAX) broken("more write sets than may be in flight");
    held_set *h = &p->held[p->held_count++];
    *h = (held_set){fx->a, fx->b, set.len, need(malloc(set.len + 1))};
    if (set.len != 0) memcpy(h->bytes, set.p, set.len);
}

static void drop_held(place *p)
{
    for (uint32_t i = 0; i < p->held_count; i++) free(p->held[i].bytes);
    p->held_count = 0;
}

void fb_world_hold_disk(fb_world *world, uint32_t node, bool hold)
{
    place *p = &world->places[node];
    p->hold = hold;
    if (hold) return;
    for (uint32_t i = 0; i < p->held_count; i++) {
        const held_set *h = &p->held[i];
        apply(world, node, h->incarnation, h->w, fb_span_of(h->bytes, h->len));
    }
    drop_held(p);
    fb_world_run(world, 0);
}

/* ---- Steps ---- */

static void start(fb_world *w, uint32_t node)
{
    place *p = &w->places[node];
    end_streams_of(w, node);
    fb_queue_resume_all(&w->queue, node);
    drop_held(p);
    p->hold = false;
    p->life++;
    p->applied_w = 0;
    /* One's own for each life of each node; no secret. */
    p->incarnation = (uint64_t)(node + 1) << 32 | p->life;
    enqueue(w, node,
            (fb_event){.kind = FB_EV_START, .a = p->incarnation, .b = node + 1, .c = p->life});
}

static void keep_answer(fb_world *w, const fb_effect *fx)
{
    if (fx->a != w->asked || fx->c != 0 || fx->len > sizeof w->answer) return;
    w->answered = true;
    w->status = (fb_status)fx->b;
    w->answer_len = fx->len;
    if (fx->len != 0) memcpy(w->answer, fb_effect_bytes(fx), fx->len);
}

static void close_link(fb_world *w, uint32_t node, const fb_effect *fx)
{
    uint32_t end;
    stream *s = stream_of(w, node, fx->a, &end);
    fb_queue_drop(&w->queue, node, fx->a);
    if (s != NULL) {
        end_stream(w, s);
        return;
    }
    enqueue(w, node, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = fx->a});
    w->user.closed(w->user.user, node, fx->a, (fb_error)fx->b);
}

static void carry_out(fb_world *w, uint32_t node, const fb_effect *fx)
{
    switch (fx->kind) {
    case FB_FX_DIAL:
        dial(w, node, fx);
        break;
    case FB_FX_SEND:
        send_bytes(w, node, fx);
        break;
    case FB_FX_FRAME:
        w->user.frame(w->user.user, node, fx->a, fb_span_of(fb_effect_bytes(fx), fx->len));
        break;
    case FB_FX_CLOSE:
        close_link(w, node, fx);
        break;
    case FB_FX_RESUME:
        fb_queue_resume(&w->queue, node, fx->a);
        break;
    case FB_FX_READ:
        answer_read(w, node, fx);
        break;
    case FB_FX_WRITE:
        write_set(w, node, fx);
        break;
    case FB_FX_REPLY:
        keep_answer(w, fx);
        break;
    case FB_FX_NEED_START:
        start(w, node);
        break;
    case FB_FX_OBSERVE:
        w->user.fact(w->user.user, node, fx);
        break;
    default:
        break;
    }
}

static void step(fb_world *w, uint32_t node, fb_event event)
{
    place *p = &w->places[node];
    event.mono_ns = w->mono_ns;
    event.wall_us = fb_world_wall_us(w);
    fb_effects out = {.memory = (uint8_t *)w->arena, .capacity = w->arena_bytes};
    fb_status status = fb_node_step(p->node, &event, &out);
    if (status != FB_OK) broken(fb_error_text(status));
    if (event.kind == FB_EV_LINK_BYTES && out.consumed < event.len &&
        !fb_queue_put_back(&w->queue, node, p->life, event, out.consumed)) {
        broken("out of memory, or more links wait than there are");
    }
    for (const fb_effect *fx = NULL; (fx = fb_effects_next(&out, fx)) != NULL;) {
        carry_out(w, node, fx);
    }
}

static bool deliver_one(fb_world *w)
{
    fb_waiting *q = fb_queue_next(&w->queue);
    if (q == NULL) return false;
    const place *p = &w->places[q->node];
    if (p->node != NULL && q->life == p->life) step(w, q->node, q->event);
    free(q);
    return true;
}

/* Everything that may happen without time passing. */
static void settle(fb_world *w)
{
    for (bool more = true; more;) {
        more = false;
        while (deliver_one(w)) more = true;
        for (uint32_t i = 0; i < w->count; i++) {
            const place *p = &w->places[i];
            if (p->node == NULL || fb_node_deadline(p->node) > w->mono_ns) continue;
            step(w, i, (fb_event){.kind = FB_EV_TICK});
            more = true;
        }
    }
}

void fb_world_run(fb_world *world, uint64_t ns)
{
    uint64_t end = world->mono_ns + ns;
    settle(world);
    for (;;) {
        uint64_t next = FB_NEVER;
        for (uint32_t i = 0; i < world->count; i++) {
            if (world->places[i].node == NULL) continue;
            uint64_t wants = fb_node_deadline(world->places[i].node);
            if (wants < next) next = wants;
        }
        if (next > end) break;
        world->mono_ns = next;
        settle(world);
    }
    world->mono_ns = end;
    settle(world);
}

/* ---- Nodes ---- */

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return calloc(1, bytes);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void lay_out(fb_world *w, fb_arena *arena)
{
    fb_sim_keys_init(&w->keys, arena, &w->blobs, FB_WORLD_NODES, FB_WORLD_NODES * ITEMS_MAX);
    for (uint32_t i = 0; i < FB_WORLD_NODES; i++) {
        fb_sim_store_init(&w->places[i].store, &w->keys, i, ITEMS_MAX);
    }
}

fb_world *fb_world_new(const fb_world_user *user, int64_t wall_us)
{
    fb_world *w = need(calloc(1, sizeof *w));
    w->user = *user;
    w->mono_ns = 1;
    fb_world_set_wall(w, wall_us);
    fb_arena arena = {NULL, 0, 0};
    lay_out(w, &arena);
    w->keys_memory = need(calloc(1, arena.used));
    w->blob_memory = need(malloc(BLOB_BYTES));
    fb_sim_blobs_init(&w->blobs, w->blob_memory, BLOB_BYTES);
    arena = (fb_arena){w->keys_memory, 0, arena.used};
    lay_out(w, &arena);
    return w;
}

void fb_world_free(fb_world *world)
{
    if (world == NULL) return;
    for (uint32_t i = 0; i < world->count; i++) fb_world_remove(world, i);
    fb_queue_free(&world->queue);
    free(world->keys_memory);
    free(world->blob_memory);
    free(world->arena);
    free(world);
}

/* What is published is counted: nobody says by itself what it holds. */
#define NO_REPORTS_NS (UINT64_C(1000000) * 1000000000)

uint32_t fb_world_add(fb_world *world, const fb_b32 *seed, const fb_options *options)
{
    if (world->count == FB_WORLD_NODES) broken("more nodes than there is room for");
    uint32_t i = world->count++;
    place *p = &world->places[i];
    fb_options own = *options;
    fb_b32 secret = *seed; /* that of its links need not be another one here */
    if (fb_sodium_create(KEYS_MAX, &p->sodium) != FB_OK ||
        fb_sodium_add_signing(p->sodium, seed, &own.identity_key) != FB_OK ||
        fb_sodium_add_dh(p->sodium, &secret, &own.link_key) != FB_OK) {
        broken("libsodium does not start");
    }
    own.allocator = (fb_allocator){NULL, allocate, release};
    own.provider = fb_sodium_provider(p->sodium);
    own.observe = true;
    own.digest_every_step = false;
    own.timing.report_ns = NO_REPORTS_NS;
    const fb_provider *provider = own.provider;
    if (provider->public_key(provider->user, own.identity_key, &p->public_key) != FB_OK) {
        broken("no usable key");
    }
    size_t bytes = fb_effects_bytes_min(&own);
    if (bytes > world->arena_bytes) {
        free(world->arena);
        world->arena = need(malloc((bytes + 7) & ~(size_t)7));
        world->arena_bytes = bytes;
    }
    fb_status status = fb_node_create(&own, &p->node);
    if (status != FB_OK) broken(fb_error_text(status));
    start(world, i);
    fb_world_run(world, 0);
    return i;
}

void fb_world_remove(fb_world *world, uint32_t node)
{
    place *p = &world->places[node];
    end_streams_of(world, node);
    fb_queue_resume_all(&world->queue, node);
    fb_node_destroy(p->node);
    fb_sodium_destroy(p->sodium);
    drop_held(p);
    p->node = NULL;
    p->sodium = NULL;
    p->life++;
}

fb_node *fb_world_node(fb_world *world, uint32_t node)
{
    return world->places[node].node;
}

fb_b32 fb_world_key(const fb_world *world, uint32_t node)
{
    return world->places[node].public_key;
}

const char *fb_world_address(uint32_t node)
{
    static const char *const names[FB_WORLD_NODES] = {"world:0", "world:1", "world:2", "world:3",
                                                      "world:4", "world:5", "world:6", "world:7"};
    return names[node];
}

void fb_world_restart(fb_world *world, uint32_t node)
{
    start(world, node);
    fb_world_run(world, 0);
}

uint64_t fb_world_mono_ns(const fb_world *world)
{
    return world->mono_ns;
}

int64_t fb_world_wall_us(const fb_world *world)
{
    return world->wall_offset_us + (int64_t)(world->mono_ns / 1000);
}

void fb_world_set_wall(fb_world *world, int64_t wall_us)
{
    world->wall_offset_us = wall_us - (int64_t)(world->mono_ns / 1000);
}

/* ---- Carriers and requests ---- */

uint64_t fb_world_carrier(fb_world *world, uint32_t node, fb_id space, const fb_b32 *peer)
{
    uint64_t link = ++world->numbers;
    uint8_t bytes[48];
    memcpy(bytes, space.b, 16);
    memcpy(bytes + 16, peer->b, 32);
    enqueue(world, node,
            (fb_event){.kind = FB_EV_CARRIER_OPENED, .len = 48, .a = link, .bytes = bytes});
    enqueue(world, node, (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = link, .b = CREDIT});
    return link;
}

void fb_world_carrier_end(fb_world *world, uint32_t node, uint64_t link)
{
    enqueue(world, node, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = link});
    fb_world_run(world, 0);
}

void fb_world_frame(fb_world *world, uint32_t node, uint64_t link, fb_span bytes)
{
    enqueue(
        world, node,
        (fb_event){
            .kind = FB_EV_CARRIER_FRAME, .len = (uint32_t)bytes.len, .a = link, .bytes = bytes.p});
}

fb_status fb_world_ask(fb_world *world, uint32_t node, fb_verb verb, fb_span arguments,
                       uint64_t patience_ns, fb_span *answer)
{
    world->asked = ++world->numbers;
    world->answered = false;
    enqueue(world, node,
            (fb_event){.kind = FB_EV_REQUEST,
                       .len = (uint32_t)arguments.len,
                       .a = world->asked,
                       .b = verb,
                       .bytes = arguments.p});
    fb_world_run(world, 0);
    for (uint64_t waited = 0; !world->answered && waited < patience_ns; waited += 100000000) {
        fb_world_run(world, 100000000);
    }
    if (answer != NULL) *answer = fb_span_of(world->answer, world->answer_len);
    return world->answered ? world->status : FB_ERR_AGAIN;
}
