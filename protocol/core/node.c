/* SPDX-License-Identifier: Apache-2.0 */
/* One step: take the event, fire timers, run what is ready, seal, answer, send. */
#include "protocol/core/node.h"

#include "protocol/core/digests.h"
#include "protocol/core/internal.h"
#include "protocol/core/meta.h"
#include "protocol/core/requests.h"
#include "protocol/core/timers.h"
#include "protocol/identity/identity.h"
#include "protocol/store/store.h"

static uint32_t digest_count(const fb_node *node)
{
    (void)node;
    return 1;
}

static fb_digest_cell *digest_cell(fb_node *node, uint32_t index)
{
    (void)index;
    return &node->cell;
}

static void digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    (void)index;
    const uint64_t words[] = {
        (uint64_t)node->phase << 32 | node->uuid.counter,
        node->incarnation,
        node->store->w_sealed,
        node->store->w_durable,
        node->store->op_serial,
        node->uuid.count,
        node->uuid.last_ms,
    };
    fb_write_words(w, words, sizeof words / sizeof words[0]);
    fb_write_id(w, node->uuid_mark);
}

static const fb_digest_kind digest_kind = {"node", digest_count, digest_cell, digest_write};

void fb_event_register(fb_node *node, fb_event_kind kind, fb_event_handler handler)
{
    node->event_handlers[kind] = handler;
}

static void layout(fb_node *node, fb_arena *arena)
{
    memset(&node->timers, 0, sizeof node->timers);
    memset(&node->digests, 0, sizeof node->digests);
    fb_digest_register(node, FB_DIGEST_NODE, &digest_kind);
    fb_store_layout(node, arena);
    fb_requests_layout(node, arena);
    for (const fb_plane *const *plane = fb_planes; *plane != NULL; plane++) {
        if ((*plane)->layout != NULL) (*plane)->layout(node, arena);
    }
    fb_timers_layout(node, arena);
    fb_digests_layout(node, arena);
}

fb_status fb_node_create(const fb_options *options, fb_node **out)
{
    *out = NULL;
    if (options->allocator.allocate == NULL || options->provider == NULL ||
        !fb_sizes_are_valid(&options->sizes)) {
        return FB_ERR_ARGUMENT;
    }
    fb_arena arena = {NULL, 0, 0};
    fb_node measure = {.options = *options};
    fb_arena_take(&arena, 1, sizeof(fb_node));
    layout(&measure, &arena);
    if (arena.used == SIZE_MAX) return FB_ERR_NO_MEMORY; /* more than there are addresses for */
    arena.cap = arena.used;
    arena.used = 0;
    arena.base = options->allocator.allocate(options->allocator.user, arena.cap);
    if (arena.base == NULL) return FB_ERR_NO_MEMORY;
    fb_node *node = fb_arena_take(&arena, 1, sizeof *node);
    node->options = *options;
    layout(node, &arena);
    node->arena = arena;
    node->effects_min = fb_effects_bytes_min(options);
    node->scratch_bytes = fb_store_scratch_bytes(options);
    node->end_bytes = fb_requests_end_bytes(options);
    const fb_provider *provider = options->provider;
    fb_status status = provider->public_key(provider->user, options->identity_key, &node->self_key);
    if (status != FB_OK) {
        fb_node_destroy(node);
        return FB_ERR_ARGUMENT;
    }
    node->self = fb_node_id_of(provider, &node->self_key);
    *out = node;
    return FB_OK;
}

void fb_node_destroy(fb_node *node)
{
    if (node == NULL) return;
    fb_allocator allocator = node->options.allocator;
    allocator.release(allocator.user, node->arena.base, node->arena.cap);
}

static void reset(fb_node *node)
{
    fb_timers_reset(node);
    fb_store_reset(node);
    fb_requests_reset(node);
    for (const fb_plane *const *plane = fb_planes; *plane != NULL; plane++) {
        if ((*plane)->reset != NULL) (*plane)->reset(node);
    }
    fb_digest_touch(node, FB_DIGEST_NODE, 0);
}

void fb_plane_loaded(fb_node *node)
{
    FB_ASSERT(node->phase == FB_PHASE_LOADING);
    for (;;) {
        const fb_plane *plane = fb_planes[node->loading_plane];
        if (plane == NULL) break;
        node->loading_plane++;
        if (plane->load != NULL) {
            plane->load(node);
            return;
        }
    }
    node->phase = FB_PHASE_RUNNING;
    fb_digest_touch(node, FB_DIGEST_NODE, 0);
    fb_observe(node, FB_FACT_STARTED, node->incarnation, 0, (fb_span){NULL, 0});
    for (const fb_plane *const *plane = fb_planes; *plane != NULL; plane++) {
        if ((*plane)->started != NULL) (*plane)->started(node);
    }
}

void fb_incarnation_end(fb_node *node, fb_error why)
{
    if (node->ending == FB_OK) node->ending = why;
}

static void start(fb_node *node, const fb_event *event)
{
    node->incarnation = event->a;
    /* The core's draws are keyed by the incarnation too (DESIGN 2, crypto). */
    node->seed = fb_seed_derive((fb_seed){event->b, event->c}, FB_STREAM_DERIVE, event->a);
    node->ending = FB_OK;
    node->uuid_mark = node->uuid_durable = (fb_id){{0}};
    node->uuid_mark_w = 0;
    memset(node->counters, 0, sizeof node->counters);
    reset(node);
    node->phase = FB_PHASE_LOADING;
    node->loading_plane = 0;
    fb_meta_load(node);
}

static void end_incarnation(fb_node *node)
{
    /* Nothing of this step had the share of the arena that this needs. */
    node->effects_cap += node->end_bytes;
    FB_ASSERT(node->out->used + node->end_bytes <= node->effects_cap);
    fb_requests_end(node);
    fb_effect_put(node, FB_FX_NEED_START, node->incarnation, (uint64_t)node->ending, 0,
                  (fb_span){NULL, 0});
    node->phase = FB_PHASE_WAITING;
    reset(node);
    node->ending = FB_OK;
}

static fb_status dispatch(fb_node *node, const fb_event *event)
{
    switch (event->kind) {
    case FB_EV_START:
        start(node, event);
        return FB_OK;
    case FB_EV_TICK:
        return FB_OK;
    case FB_EV_READ_DONE:
        return fb_store_read_done(node, event);
    case FB_EV_WRITE_DONE:
        return fb_store_write_done(node, event);
    case FB_EV_REQUEST:
        return fb_requests_take(node, event);
    case FB_EV_REQUEST_CANCEL:
        return fb_requests_cancel(node, event);
    case FB_EV_REQUEST_CREDIT:
        return fb_requests_credit(node, event);
    }
    fb_event_handler handler =
        event->kind < FB_EVENT_KINDS ? node->event_handlers[event->kind] : NULL;
    return handler == NULL ? FB_ERR_EVENT_UNKNOWN : handler(node, event);
}

static void advance(fb_node *node)
{
    if (node->phase == FB_PHASE_WAITING) return;
    if (node->ending == FB_OK) fb_timers_fire(node);
    if (node->ending == FB_OK) fb_store_advance(node);
    if (node->ending == FB_OK) fb_requests_flush(node);
    for (const fb_plane *const *plane = fb_planes; *plane != NULL; plane++) {
        if ((*plane)->flush == NULL) continue;
        if (node->ending == FB_OK && node->phase == FB_PHASE_RUNNING) (*plane)->flush(node);
    }
    /* Flushing may have executed changes (an identifier's mark, an accepted frame). */
    if (node->ending == FB_OK) fb_store_advance(node);
    if (node->ending != FB_OK) end_incarnation(node);
}

fb_status fb_node_step(fb_node *node, const fb_event *event, fb_effects *out)
{
    FB_ASSERT(!node->stepping);
    out->used = 0;
    out->consumed = 0;
    if (out->capacity < node->effects_min) return FB_ERR_NO_SPACE;
    if (event->mono_ns < node->mono_ns) return FB_ERR_TIME_BACKWARDS;
    if (event->len != 0 && event->bytes == NULL) return FB_ERR_EVENT_MALFORMED;
    if (event->kind == FB_EV_START && (event->a == 0 || event->a == node->incarnation)) {
        return FB_ERR_EVENT_MALFORMED;
    }
    uint64_t mono_before = node->mono_ns;
    int64_t wall_before = node->wall_us;
    node->mono_ns = event->mono_ns;
    node->wall_us = event->wall_us;
    node->out = out;
    node->effects_cap = (out->capacity - node->scratch_bytes) & ~(size_t)7;
    fb_store_scratch(node, out->memory + node->effects_cap);
    node->effects_cap -= node->end_bytes;
    node->stepping = true;
    node->starved = false;
    fb_count(node, FB_COUNTER_STEPS, 1);
    fb_status status = FB_OK;
    if (node->phase == FB_PHASE_WAITING && event->kind != FB_EV_START) {
        if (event->kind != FB_EV_TICK) fb_count(node, FB_COUNTER_LATE_COMPLETIONS, 1);
        if (event->kind == FB_EV_LINK_BYTES) out->consumed = event->len;
    } else {
        status = dispatch(node, event);
        if (status == FB_OK) {
            advance(node);
        } else {
            FB_ASSERT(out->used == 0);
            node->mono_ns = mono_before;
            node->wall_us = wall_before;
        }
    }
    if (node->options.digest_every_step) fb_digests_update(node);
    node->stepping = false;
    node->out = NULL;
    return status;
}

uint64_t fb_node_deadline(const fb_node *node)
{
    if (node->phase == FB_PHASE_WAITING) return FB_NEVER;
    return node->starved ? node->mono_ns : fb_timers_next(node);
}

fb_hash128 fb_node_digest(fb_node *node)
{
    fb_digests_update(node);
    return node->digests.sum;
}

bool fb_node_is_running(const fb_node *node)
{
    return node->phase == FB_PHASE_RUNNING;
}

uint64_t fb_node_counter(const fb_node *node, fb_counter counter)
{
    return node->counters[counter];
}

fb_id fb_node_self(const fb_node *node)
{
    return node->self;
}

size_t fb_node_bytes(const fb_node *node)
{
    return node->arena.cap;
}
