/* SPDX-License-Identifier: Apache-2.0 */
/* A few instances of the messaging and calls planes over fakes of everything around them: links are
 * queues, the store is a list, membership is a table. So each rule can be met alone, and a peer may
 * say anything. Included by one program at a time: it defines the core's functions. */
#ifndef FB_TESTS_SIGNAL_FAKES_H
#define FB_TESTS_SIGNAL_FAKES_H

#include <stdlib.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/mix.h"
#include "protocol/core/digests.h"
#include "protocol/core/internal.h"
#include "protocol/core/timers.h"
#include "protocol/database/database.h"
#include "protocol/identity/identity.h"
#include "protocol/link/link.h"
#include "protocol/messaging/messaging.h"
#include "protocol/rpc/rpc.h"
#include "protocol/space/space.h"
#include "protocol/store/keys.h"
#include "protocol/store/ops.h"

/* A program may say how many nodes, which keys, which space. */
#ifndef NODES
#define NODES            3u
#define FAKE_KEY_BYTE(i) ((int)(i) + 1)
#define FAKE_SPACE       1, 2, 3, 4, 5, 6, 0x70, 8, 0x80, 10, 11, 12, 13, 14, 15, 16
#endif
#ifndef STORE_MAX
#define STORE_MAX 4096u
#define QUEUE_MAX 512u
#define ARENA_MAX (1u << 20)
#endif
#define MINUTE_US  INT64_C(60000000)
#define NOON_US    INT64_C(1718000000000000)
#define SECOND_NS  UINT64_C(1000000000)
#define FRAME_KEEP 66000u

typedef struct fake_frame {
    uint32_t channel;
    size_t len;
    uint8_t *bytes;
} fake_frame;

typedef struct fake_entry {
    uint64_t w;
    size_t key_len, value_len;
    uint8_t key[64], value[64];
} fake_entry;

struct fb_op {
    bool used, issued;
    fb_op_run run;
    _Alignas(16) uint8_t context[FB_OP_CONTEXT_BYTES];
    uint8_t low[64], high[64];
    size_t low_len, high_len;
    uint32_t items;
    uint32_t found[STORE_MAX];
    uint32_t count;
    bool whole;
    fb_status status;
};

typedef struct fake_changed {
    uint32_t calls;
    fb_id area;
    uint64_t incarnation, batch;
} fake_changed;

/* One node, and what surrounds it. A link's index at node i is the peer's number; member indices
 * are node numbers too. */
typedef struct fake {
    fb_node node;
    fb_effects out;
    uint64_t memory[ARENA_MAX / 8];
    fb_link_info links[NODES];
    fb_digest_cell digest[NODES]; /* of what the messaging plane holds for each */
    uint32_t wants[NODES];
    uint32_t points[NODES];
    fb_error closed[NODES];
    fake_frame queue[NODES][QUEUE_MAX]; /* arrived from a peer */
    uint32_t queued[NODES];
    fb_member_status status[NODES];
    bool may_not_hold;
    bool store_full, ops_full, read_fails;
    uint64_t uuids;
    uint64_t durable;
    bool dirty;
    fake_entry store[STORE_MAX];
    uint32_t stored;
    struct fb_op ops[4];
    fake_changed changed;
    fb_status replied;
    size_t answer_len;
    uint8_t answer[512];
    void *layout;
    size_t layout_bytes;
} fake;

static fake *fakes[NODES];
static fb_b32 keys[NODES];
static fb_sodium *sodium;
static const fb_id fake_space = {{FAKE_SPACE}};
static bool fake_external;
static bool fake_lose; /* every frame */

static fake *of(const fb_node *node)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (fakes[i] != NULL && &fakes[i]->node == node) return fakes[i];
    }
    abort();
}

static uint32_t number_of(const fake *f)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (fakes[i] == f) return i;
    }
    abort();
}

/* The profile's own numbers, small tables. */
static fb_options fake_options(void)
{
    return (fb_options){
        .sizes = {.spaces = 1,
                  .members = NODES,
                  .areas = 16,
                  .links = NODES,
                  .operation_bytes = 16384,
                  .seen_ids = 8,
                  .envelopes = 64 * NODES,
                  .calls = 8,
                  .call_bytes = 4096},
        .timing = {.resend_min_ns = 400 * (SECOND_NS / 1000),
                   .resend_max_ns = 5 * SECOND_NS,
                   .redeliver_ns = 60 * SECOND_NS,
                   .window_past_us = 15 * MINUTE_US,
                   .window_future_us = 5 * MINUTE_US,
                   .rate_per_s = 100,
                   .rate_burst = 500},
    };
}

/* ---- What the planes call ---- */

static const fb_channel *channels[FB_CHANNELS];
static const fb_channel *control;
static const fb_method_ops *methods[FB_METHODS];
static fb_verb_handler verbs[FB_VERBS_MAX];

void fb_channel_register(fb_node *node, fb_channel_id channel, const fb_channel *ops)
{
    (void)node;
    channels[channel] = ops;
}
void fb_control_register(fb_node *node, fb_control_type type, const fb_channel *ops)
{
    (void)node;
    (void)type;
    control = ops;
}
void fb_verb_register(fb_node *node, fb_verb verb, fb_verb_handler handler)
{
    (void)node;
    verbs[verb] = handler;
}
void fb_link_has_output(fb_node *node, uint32_t link, fb_channel_id channel)
{
    of(node)->wants[link] |= 1u << channel;
}
void fb_link_touch(fb_node *node, uint32_t link)
{
    fb_digest_touch(node, FB_DIGEST_LINK, link);
}
static uint32_t link_digests(const fb_node *node)
{
    (void)node;
    return NODES;
}
static fb_digest_cell *link_digest_cell(fb_node *node, uint32_t index)
{
    return &of(node)->digest[index];
}
static void link_digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    channels[FB_CHANNEL_MESSAGING]->digest(node, index, w);
}
static const fb_digest_kind link_digest = {"link", link_digests, link_digest_cell,
                                           link_digest_write};
const fb_link_info *fb_link_at(const fb_node *node, uint32_t link)
{
    return &of(node)->links[link];
}
uint32_t fb_link_capacity(const fb_node *node)
{
    (void)node;
    return NODES;
}
uint32_t fb_link_to(const fb_node *node, uint32_t space, uint32_t member)
{
    return space == 0 && of(node)->links[member].state == FB_LINK_OPEN ? member : FB_NONE;
}
void fb_link_take_again(fb_node *node, uint32_t link)
{
    (void)node;
    (void)link;
}

void fb_link_close(fb_node *node, uint32_t link, fb_error why)
{
    of(node)->closed[link] = why;
}
void fb_link_misbehaved(fb_node *node, uint32_t link, uint32_t points)
{
    of(node)->points[link] += points;
}
fb_id fb_space_id(const fb_node *node, uint32_t space)
{
    (void)node;
    (void)space;
    return fake_space;
}
uint32_t fb_space_find(const fb_node *node, fb_id space)
{
    (void)node;
    return fb_id_equal(space, fake_space) ? 0 : FB_NONE;
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
uint32_t fb_member_first(const fb_node *node, uint32_t space)
{
    (void)node;
    (void)space;
    return 0;
}
uint32_t fb_member_next(const fb_node *node, uint32_t member)
{
    (void)node;
    return member + 1 < NODES ? member + 1 : FB_NONE;
}
uint32_t fb_space_local(const fb_node *node, uint32_t space)
{
    (void)node;
    return space + 7;
}
fb_id fb_member_id(const fb_node *node, uint32_t member)
{
    (void)node;
    return fb_node_id_of(fb_sodium_provider(sodium), &keys[member]);
}
fb_b32 fb_member_key(const fb_node *node, uint32_t member)
{
    (void)node;
    return keys[member];
}
fb_member_status fb_member_status_of(const fb_node *node, uint32_t member)
{
    return of(node)->status[member];
}
fb_member_status fb_space_own_status(const fb_node *node, uint32_t space)
{
    (void)space;
    return of(node)->status[number_of(of(node))];
}
bool fb_space_may_hold(const fb_node *node, uint32_t space, uint32_t member, fb_id area)
{
    (void)space;
    (void)member;
    (void)area;
    return !of(node)->may_not_hold;
}
void fb_database_changed(fb_node *node, uint32_t link, uint32_t member, fb_id area,
                         uint64_t incarnation, uint64_t batch)
{
    (void)link;
    (void)member;
    fake_changed *changed = &of(node)->changed;
    *changed = (fake_changed){changed->calls + 1, area, incarnation, batch};
}
fb_status fb_new_uuid(fb_node *node, fb_id *out)
{
    fake *f = of(node);
    *out = (fb_id){{0x01, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80}};
    fb_store_be(out->b + 10, ++f->uuids, 6);
    out->b[9] = (uint8_t)number_of(f);
    return FB_OK;
}
void fb_reply(fb_node *node, uint32_t index, fb_status status, fb_span answer)
{
    (void)index;
    fake *f = of(node);
    f->replied = status;
    f->answer_len = answer.len;
    FB_ASSERT(answer.len <= sizeof f->answer);
    if (answer.len != 0) memcpy(f->answer, answer.p, answer.len);
}
void fb_incarnation_end(fb_node *node, fb_error why)
{
    node->ending = why;
}

/* ---- Store ---- */

uint64_t fb_w_building(const fb_node *node)
{
    return of(node)->durable + 1;
}
uint64_t fb_w_durable(const fb_node *node)
{
    return of(node)->durable;
}
bool fb_write_fits(const fb_node *node, size_t bytes, size_t entries)
{
    (void)bytes;
    (void)entries;
    return !of(node)->store_full;
}
void fb_put(fb_node *node, fb_span key, fb_span value)
{
    fake *f = of(node);
    FB_ASSERT(f->stored < STORE_MAX && key.len <= 64 && value.len <= 64);
    fake_entry *e = &f->store[f->stored++];
    *e = (fake_entry){.w = f->durable + 1, .key_len = key.len, .value_len = value.len};
    memcpy(e->key, key.p, key.len);
    memcpy(e->value, value.p, value.len);
    f->dirty = true;
}
fb_op *fb_op_begin(fb_node *node, fb_op_kind kind, fb_op_run run, uint32_t write_bytes,
                   uint32_t write_entries)
{
    (void)kind;
    (void)write_bytes;
    (void)write_entries;
    fake *f = of(node);
    for (uint32_t i = 0; i < 4 && !f->ops_full; i++) {
        if (f->ops[i].used) continue;
        f->ops[i] = (struct fb_op){.used = true, .run = run};
        return &f->ops[i];
    }
    return NULL;
}
void *fb_op_context(fb_op *op)
{
    return op->context;
}
void fb_op_abandon(fb_node *node, fb_op *op)
{
    (void)node;
    op->used = false;
}
bool fb_op_read_range(fb_op *op, fb_span low, fb_span high, uint32_t value_bytes, uint32_t items,
                      uint32_t bytes, bool descending)
{
    (void)value_bytes;
    (void)descending;
    memcpy(op->low, low.p, op->low_len = low.len);
    memcpy(op->high, high.p, op->high_len = high.len);
    op->items = bytes / 96 < items ? bytes / 96 : items;
    return true;
}
void fb_op_issue(fb_node *node, fb_op *op)
{
    (void)node;
    op->issued = true;
}
fb_status fb_op_status(const fb_op *op)
{
    return op->status;
}
uint32_t fb_op_range_count(const fb_node *node, const fb_op *op, uint32_t item)
{
    (void)node;
    (void)item;
    return op->count;
}
bool fb_op_range_whole(const fb_node *node, const fb_op *op, uint32_t item)
{
    (void)node;
    (void)item;
    return op->whole;
}
fb_span fb_op_range_next(const fb_node *node, const fb_op *op, uint32_t item)
{
    (void)node;
    (void)item;
    return fb_span_of(op->low, op->low_len);
}
fb_read_entry fb_op_range_entry(const fb_node *node, const fb_op *op, uint32_t item, uint32_t at)
{
    (void)item;
    const fake_entry *e = &of(node)->store[op->found[at]];
    return (fb_read_entry){fb_span_of(e->key, e->key_len), (uint32_t)e->value_len,
                           fb_span_of(e->value, e->value_len)};
}

static int key_order(const fake *f, uint32_t a, uint32_t b)
{
    return fb_span_compare(fb_span_of(f->store[a].key, f->store[a].key_len),
                           fb_span_of(f->store[b].key, f->store[b].key_len));
}

/* The newest version of each key of the range, in key order. */
static void answer_read(fake *f, struct fb_op *op)
{
    op->count = 0;
    fb_span low = fb_span_of(op->low, op->low_len), high = fb_span_of(op->high, op->high_len);
    for (uint32_t i = 0; i < f->stored; i++) {
        fb_span key = fb_span_of(f->store[i].key, f->store[i].key_len);
        if (fb_span_compare(key, low) < 0 || fb_span_compare(key, high) >= 0) continue;
        uint32_t at = 0;
        while (at < op->count && key_order(f, op->found[at], i) < 0) at++;
        bool same = at < op->count && key_order(f, op->found[at], i) == 0;
        if (!same) {
            memmove(op->found + at + 1, op->found + at, (op->count - at) * sizeof op->found[0]);
            op->count++;
        }
        op->found[at] = i;
    }
    op->whole = op->count <= op->items;
    if (!op->whole) op->count = op->items;
    op->status = f->read_fails ? FB_ERR_STORE_FAILED : FB_OK;
}

static void run_ops(fake *f)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < 4; i++) {
            struct fb_op *op = &f->ops[i];
            if (!op->used || !op->issued) continue;
            op->issued = false;
            answer_read(f, op);
            op->run(&f->node, op);
            if (!op->issued) op->used = false;
            again = true;
        }
    }
}

static const fb_plane *const planes[] = {&fb_messaging_plane, &fb_rpc_plane};
#define PLANES (sizeof planes / sizeof planes[0])

/* The write set being built becomes durable. */
static void commit(uint32_t i)
{
    fakes[i]->durable++;
    fakes[i]->dirty = false;
    for (size_t p = 0; p < PLANES; p++) {
        if (planes[p]->durable != NULL) planes[p]->durable(&fakes[i]->node);
    }
}

/* ---- Driving ---- */

static void flush(uint32_t i)
{
    for (size_t p = 0; p < PLANES; p++) planes[p]->flush(&fakes[i]->node);
}

/* Takes every frame that a node has for a peer. */
static void emit(uint32_t i, uint32_t j)
{
    fake *f = fakes[i];
    fb_frame_out out;
    for (uint32_t c = 0; c < FB_CHANNELS; c++) {
        const fb_channel *ops = c == FB_CHANNEL_CONTROL ? control : channels[c];
        if ((f->wants[j] & 1u << c) == 0 || f->links[j].state != FB_LINK_OPEN) continue;
        f->wants[j] &= ~(1u << c);
        while (ops->peek(&f->node, j, &out)) {
            fake *to = fakes[j];
            FB_ASSERT(to->queued[i] < QUEUE_MAX);
            fake_frame *frame = &to->queue[i][to->queued[i]];
            if (!fake_lose) {
                frame->channel = c;
                frame->len = out.head_len + out.body.len;
                frame->bytes = malloc(frame->len);
                memcpy(frame->bytes, out.head, out.head_len);
                if (out.body.len != 0)
                    memcpy(frame->bytes + out.head_len, out.body.p, out.body.len);
                to->queued[i]++;
            }
            ops->sent(&f->node, j);
        }
    }
}

static fb_status hand_over(uint32_t i, uint32_t from, uint32_t channel, fb_span bytes)
{
    const fb_channel *ops = channel == FB_CHANNEL_CONTROL ? control : channels[channel];
    /* An exact copy, so that a sanitizer sees a read beyond it. */
    uint8_t *copy = malloc(bytes.len == 0 ? 1 : bytes.len);
    if (bytes.len != 0) memcpy(copy, bytes.p, bytes.len);
    fb_status status = ops->frame(&fakes[i]->node, from, fb_span_of(copy, bytes.len));
    free(copy);
    return status;
}

static void take(uint32_t i, uint32_t from)
{
    fake *f = fakes[i];
    while (f->queued[from] > 0) {
        fake_frame frame = f->queue[from][0];
        fb_status status = FB_OK;
        if (f->links[from].state == FB_LINK_OPEN) {
            status = hand_over(i, from, frame.channel, fb_span_of(frame.bytes, frame.len));
        }
        if (status == FB_ERR_BUSY) return;
        f->queued[from]--;
        memmove(f->queue[from], f->queue[from] + 1, f->queued[from] * sizeof frame);
        free(frame.bytes);
        FB_ASSERT(status == FB_OK);
    }
}

/* Everything moves until nothing does; write sets stay undone when durable is false. */
static void settle(bool durable)
{
    for (int round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < NODES; i++) {
            fakes[i]->out.used = 0;
            run_ops(fakes[i]);
            for (uint32_t j = 0; j < NODES; j++) take(i, j);
            if (durable && fakes[i]->dirty) commit(i);
            flush(i);
            for (uint32_t j = 0; j < NODES; j++) emit(i, j);
        }
    }
}

static void advance_time(uint64_t ns)
{
    for (uint32_t i = 0; i < NODES; i++) {
        fb_node *node = &fakes[i]->node;
        node->mono_ns += ns;
        node->wall_us += (int64_t)(ns / 1000);
        fakes[i]->out.used = 0;
        fb_timers_fire(node);
    }
}

static void link_one(uint32_t i, uint32_t j)
{
    fake *f = fakes[i];
    f->links[j] = (fb_link_info){
        .number = 100 + j,
        .state = FB_LINK_OPEN,
        .external = fake_external,
        .member = j,
        .peer = fb_member_id(&f->node, j),
    };
    channels[FB_CHANNEL_MESSAGING]->up(&f->node, j);
    channels[FB_CHANNEL_CALLS]->up(&f->node, j);
    control->up(&f->node, j);
}

static void link_up(uint32_t i, uint32_t j)
{
    link_one(i, j);
    link_one(j, i);
}

static void unlink_one(uint32_t i, uint32_t j)
{
    fake *f = fakes[i];
    f->links[j].state = FB_LINK_FREE;
    for (uint32_t k = 0; k < f->queued[j]; k++) free(f->queue[j][k].bytes);
    f->queued[j] = 0;
    channels[FB_CHANNEL_MESSAGING]->down(&f->node, j, FB_ERR_LINK_CLOSED);
    channels[FB_CHANNEL_CALLS]->down(&f->node, j, FB_ERR_LINK_CLOSED);
    control->down(&f->node, j, FB_ERR_LINK_CLOSED);
}

static void link_down(uint32_t i, uint32_t j)
{
    unlink_one(i, j);
    unlink_one(j, i);
}

static void lay_out(fb_node *node, fb_arena *arena)
{
    memset(&node->timers, 0, sizeof node->timers);
    memset(&node->digests, 0, sizeof node->digests);
    fb_digest_register(node, FB_DIGEST_LINK, &link_digest);
    for (size_t p = 0; p < PLANES; p++) planes[p]->layout(node, arena);
    fb_timers_layout(node, arena);
    fb_digests_layout(node, arena);
}

static void fake_new(uint32_t i, const fb_options *options)
{
    fake *f = calloc(1, sizeof *f);
    fakes[i] = f;
    f->node.options = *options;
    f->node.options.provider = fb_sodium_provider(sodium);
    f->node.options.observe = true;
    fb_b32 seed;
    memset(seed.b, FAKE_KEY_BYTE(i), sizeof seed.b);
    FB_ASSERT(fb_sodium_add_signing(sodium, &seed, &f->node.options.identity_key) == FB_OK);
    const fb_provider *provider = f->node.options.provider;
    FB_ASSERT(provider->public_key(provider->user, f->node.options.identity_key, &keys[i]) ==
              FB_OK);
    fb_arena arena = {NULL, 0, 0};
    lay_out(&f->node, &arena);
    arena = (fb_arena){calloc(1, arena.used), 0, arena.used};
    f->layout = arena.base;
    f->layout_bytes = arena.cap;
    lay_out(&f->node, &arena);
    f->out = (fb_effects){.memory = (uint8_t *)f->memory, .capacity = sizeof f->memory};
    f->node.out = &f->out;
    f->node.effects_cap = sizeof f->memory;
    f->node.self = fb_node_id_of(provider, &keys[i]);
    f->node.phase = FB_PHASE_RUNNING;
    f->node.mono_ns = 1000 * SECOND_NS;
    f->node.wall_us = NOON_US;
    f->node.seed = (fb_seed){i, 77};
    for (uint32_t j = 0; j < NODES; j++) f->status[j] = FB_MEMBER_APPROVED;
    for (size_t p = 0; p < PLANES; p++) planes[p]->reset(&f->node);
}

/* Volatile state is lost, the store keeps what was durable. Links must be down. */
static void restart(uint32_t i)
{
    fake *f = fakes[i];
    while (f->stored > 0 && f->store[f->stored - 1].w > f->durable) f->stored--;
    f->dirty = false;
    memset(f->ops, 0, sizeof f->ops);
    fb_timers_reset(&f->node);
    for (size_t p = 0; p < PLANES; p++) planes[p]->reset(&f->node);
}

static void fakes_new(const fb_options *options)
{
    FB_ASSERT(fb_sodium_create(16, &sodium) == FB_OK);
    fake_external = fake_lose = false;
    for (uint32_t i = 0; i < NODES; i++) fake_new(i, options);
}

static void fakes_free(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t j = 0; j < NODES; j++) {
            for (uint32_t k = 0; k < fakes[i]->queued[j]; k++) free(fakes[i]->queue[j][k].bytes);
        }
        free(fakes[i]->layout);
        free(fakes[i]);
        fakes[i] = NULL;
    }
    fb_sodium_destroy(sodium);
}

/* Facts of a kind among the effects since the arena was last emptied. */
static uint32_t facts(uint32_t i, fb_fact fact, uint64_t *last_c)
{
    uint32_t count = 0;
    for (const fb_effect *e = NULL; (e = fb_effects_next(&fakes[i]->out, e)) != NULL;) {
        if (e->kind != FB_FX_OBSERVE || e->a != (uint64_t)fact) continue;
        count++;
        if (last_c != NULL) *last_c = e->c;
    }
    return count;
}

/* The incremental digest equals that of the same state counted afresh. */
static void check_digest(uint32_t i)
{
    fb_node *node = &fakes[i]->node;
    fb_digests_update(node);
    fb_hash128 kept = node->digests.sum, fresh = {0, 0};
    for (uint32_t tag = 0; tag < FB_DIGEST_TAGS; tag++) {
        const fb_digest_kind *kind = node->digests.kinds[tag];
        if (kind == NULL) continue;
        for (uint32_t k = 0; k < kind->count(node); k++) {
            uint8_t bytes[FB_DIGEST_OBJECT_BYTES_MAX];
            fb_writer w = fb_writer_of(bytes, sizeof bytes);
            kind->write(node, k, &w);
            FB_ASSERT(!w.failed);
            if (w.at == 0) continue;
            fb_hash128 h = fb_mix128(bytes, w.at, (uint64_t)tag << 32 | k);
            fresh.lo += h.lo;
            fresh.hi += h.hi + (fresh.lo < h.lo);
        }
    }
    FB_ASSERT(kept.lo == fresh.lo && kept.hi == fresh.hi);
}

static inline void unused_fakes(void)
{
    (void)methods;
    (void)link_down;
    (void)restart;
    (void)facts;
    (void)advance_time;
    (void)settle;
    (void)check_digest;
    (void)fakes_free;
    (void)fakes_new;
    (void)verbs;
    (void)link_up;
}

#endif
