/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/base/word.h"
#include "sim/checkers/checks.h"
#include "sim/documents/documents.h"
#include "sim/explore/seen.h"
#include "sim/schedule/player.h"
#include "sim/schedule/recorder.h"
#include "sim/view/record.h"
#include "sim/view/timeline.h"
#include "sim/weather/weather.h"
#include "sim/workload/director.h"
#include "sim/workload/feeds.h"
#include "sim/workload/workload.h"

#define NONE UINT32_MAX

/* The longest bytes of one event: a completion of a whole read set. */
#define SCRATCH_BYTES (UINT32_C(8) << 20)

/* In fast mode digests and checks are looked at this often. */
#define FAST_EVERY 65536u

/* A node that wants so many ticks at one moment is waiting for something that no tick brings. */
#define BUSY_MAX 4096u

/* Ids are hashes: any part of one spreads well. */
static uint32_t id_place(const fb_sim_world *world, fb_id id)
{
    return (uint32_t)fb_word_load(id.b) & world->by_id_mask;
}

static void ids_place(fb_sim_world *world)
{
    memset(world->by_id, 0, (world->by_id_mask + 1) * sizeof *world->by_id);
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        uint32_t at = id_place(world, world->nodes[i].id);
        while (world->by_id[at] != 0) at = (at + 1) & world->by_id_mask;
        world->by_id[at] = (uint16_t)(i + 1);
    }
}

static void layout(fb_sim_world *world, fb_arena *arena)
{
    const fb_sim_config *config = &world->config;
    world->provider_scratch = fb_arena_take(arena, FB_SIM_PROVIDER_TEXT_MAX, 1);
    world->nodes = fb_arena_take(arena, config->nodes, sizeof *world->nodes);
    uint32_t queue = config->nodes * 512 + config->connections * 8 + 4096;
    fb_sim_entry *entries = fb_arena_take(arena, queue, sizeof *entries);
    world->tick_leaves = 1;
    while (world->tick_leaves < config->nodes) world->tick_leaves *= 2;
    world->tick_tree = fb_arena_take(arena, 2 * world->tick_leaves, sizeof *world->tick_tree);
    world->reads_max = config->nodes * config->sizes.operations + 64;
    world->reads = fb_arena_take(arena, world->reads_max, sizeof *world->reads);
    world->scratch_bytes = SCRATCH_BYTES;
    world->held_apart = fb_arena_take(arena, config->nodes, sizeof *world->held_apart);
    fb_sim_memo_init(&world->signs, arena, 1u << 12, 1);
    world->liars = fb_arena_take(arena, config->nodes, sizeof *world->liars);
    world->carriers =
        fb_arena_take(arena, (size_t)config->nodes * config->nodes, sizeof *world->carriers);
    world->traitor = UINT32_MAX;
    if (arena->base != NULL) {
        /* Nobody wants a tick: any leaf below stands for an inner place, but none of elsewhere. */
        for (uint32_t at = world->tick_leaves; at-- > 1;) {
            bool inner = 2 * at < world->tick_leaves;
            world->tick_tree[at] = inner ? world->tick_tree[2 * at] : 2 * at - world->tick_leaves;
        }
        fb_sim_queue_init(&world->queue, entries, queue);
        fb_sim_blobs_init(&world->blobs, world->blob_memory, config->blob_bytes);
        world->blobs.poison = config->poison;
        for (uint32_t i = 0; i < world->reads_max; i++) {
            world->reads[i].next_free = i + 1 < world->reads_max ? i + 1 : NONE;
        }
    }
    fb_sim_stores_init(world, arena);
    for (uint32_t i = 0; i < config->nodes; i++) fb_sim_process_init(world, i, arena);
    uint32_t places = 4;
    while (places < 2 * config->nodes) places *= 2;
    world->by_id = fb_arena_take(arena, places, sizeof *world->by_id);
    world->by_id_mask = places - 1;
    if (arena->base != NULL) ids_place(world);
    fb_sim_network_init(world, arena);
    world->effects.memory = fb_arena_take(arena, world->effects.capacity, 1);
    fb_sim_weather_init(world, arena);
    fb_sim_workload_init(world, arena);
    fb_sim_director_init(world, arena);
    fb_sim_checks_init(world, arena);
    fb_sim_timeline_init(world, arena);
    fb_sim_player_init(world, arena);
    fb_sim_recorder_init(world, arena);
}

/* A step touches a hundred places all over the tables of one node, the next those of another: with
 * pages of 4 KiB a quarter of the time goes into finding them. Whole large pages are dear to a
 * world that is small or soon over, as schedules are, and to one that is to take little memory. */
#define LARGE_PAGES_EVENTS 100000u
#define LARGE_PAGES_NODES  16u
#define PAGE               4096u

static void use_large_pages(const fb_sim_config *config, void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (config->events < LARGE_PAGES_EVENTS || config->nodes > LARGE_PAGES_NODES) return;
    if (config->schedule != NULL) return;
    size_t before = (PAGE - (uintptr_t)memory % PAGE) % PAGE;
    if (bytes < before + PAGE) return;
    /* What the system does not grant is only slower. */
    (void)madvise((uint8_t *)memory + before, (bytes - before) / PAGE * PAGE, MADV_HUGEPAGE);
#else
    (void)config;
    (void)memory;
    (void)bytes;
#endif
}

/* Some of the nodes, and not all of them. */
static uint64_t second_draw(const fb_sim_config *config)
{
    uint32_t nodes = config->nodes;
    if (nodes < 3 || nodes > FB_SIM_SECOND_NODES || config->degree != 0 || !config->reference) {
        return 0;
    }
    uint64_t all = (UINT64_C(1) << nodes) - 1;
    uint32_t least = nodes < 5 ? 2 : 3;
    for (uint64_t i = 0;; i++) {
        uint64_t mask = fb_draw(config->seed, FB_SIM_STREAM_TOPOLOGY, UINT64_MAX, i) & all;
        uint32_t count = 0;
        for (uint32_t k = 0; k < nodes; k++) count += mask >> k & 1u;
        if (count >= least && count < nodes) return mask;
    }
}

fb_sim_world *fb_sim_world_create(const fb_sim_config *config)
{
    FB_ASSERT(config->nodes != 0 && config->nodes <= FB_SIM_NODES_MAX);
    FB_ASSERT(config->connections * 2 <= 65536);
    fb_sim_world *world = calloc(1, sizeof *world);
    if (world == NULL) return NULL;
    world->config = *config;
    world->last_step = fb_min_u64(config->stop_at_step, config->events);
    /* Nothing is folded yet, so a long run with writes in it fills its stores. */
    for (uint64_t steps = UINT64_C(1) << 20; config->faults && steps < config->events; steps *= 2) {
        if (world->config.store_items >= 1u << 21) break;
        world->config.store_items *= 2;
        if (world->config.blob_bytes < UINT64_C(4) << 30) world->config.blob_bytes *= 2;
    }
    world->seed = config->seed;
    if (config->second == FB_SIM_SECOND_DRAWN) world->config.second = second_draw(config);
    if (config->documents == FB_SIM_DOCUMENTS_DRAWN) {
        world->config.documents = fb_sim_documents_draw(world);
    }
    if (config->nodes < 64) world->config.documents &= (UINT64_C(1) << config->nodes) - 1;
    world->members[0] = UINT64_MAX;
    world->members[1] = world->config.second;
    fb_arena measure = {NULL, 0, 0};
    layout(world, &measure);
    /* Blobs and the scratch are large and mostly never touched: the system gives such memory when
     * it is first written. */
    world->blob_memory = malloc(world->config.blob_bytes);
    world->scratch = malloc(SCRATCH_BYTES);
    world->memory = calloc(1, measure.used);
    if (world->blob_memory == NULL || world->scratch == NULL || world->memory == NULL) {
        fb_sim_world_destroy(world);
        return NULL;
    }
    use_large_pages(&world->config, world->blob_memory, world->config.blob_bytes);
    use_large_pages(&world->config, world->memory, measure.used);
    world->arena = (fb_arena){world->memory, 0, measure.used};
    layout(world, &world->arena);
    return world;
}

void fb_sim_world_destroy(fb_sim_world *world)
{
    if (world == NULL) return;
    for (uint32_t i = 0; world->nodes != NULL && world->memory != NULL && i < world->config.nodes;
         i++) {
        fb_node_destroy(world->nodes[i].core);
    }
    free(world->memory);
    free(world->scratch);
    free(world->blob_memory);
    free(world);
}

const char *fb_sim_name(uint32_t node)
{
    static char names[8][16];
    static unsigned next;
    char *name = names[next++ % 8];
    if (node < 26) {
        name[0] = (char)('A' + node);
        name[1] = 0;
    } else {
        snprintf(name, sizeof names[0], "n%u", (unsigned)node);
    }
    return name;
}

void fb_sim_world_call(fb_sim_world *world, uint32_t node, fb_id id)
{
    world->nodes[node].id = world->nodes[node].home = id;
    ids_place(world);
}

uint32_t fb_sim_node_of(const fb_sim_world *world, fb_id id)
{
    for (uint32_t at = id_place(world, id); world->by_id[at] != 0;
         at = (at + 1) & world->by_id_mask) {
        uint32_t node = world->by_id[at] - 1u;
        if (fb_id_equal(world->nodes[node].home, id)) return node;
    }
    return UINT32_MAX;
}

void fb_sim_violated(fb_sim_world *world, fb_sim_result result, const char *check,
                     const char *format, ...)
{
    world->stop = true;
    if (world->result != FB_SIM_PASS) return;
    world->result = result;
    world->check = check;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->detail, sizeof world->detail, format, arguments);
    va_end(arguments);
}

void fb_sim_schedule(fb_sim_world *world, uint64_t at_ns, uint32_t node, fb_sim_kind kind,
                     uint32_t ref, uint32_t stamp)
{
    /* What is late already happens now. */
    at_ns = fb_max_u64(at_ns, world->now_ns);
    if (world->record != NULL) fb_sim_record_scheduled(world);
    fb_sim_queue_push(&world->queue, at_ns, node + 1, kind, ref, stamp);
}

void fb_sim_schedule_world(fb_sim_world *world, uint64_t at_ns, fb_sim_kind kind, uint32_t ref,
                           uint32_t stamp)
{
    if (world->record != NULL) fb_sim_record_scheduled(world);
    fb_sim_queue_push(&world->queue, at_ns, 0, kind, ref, stamp);
}

/* One step. */

static void carry_out(fb_sim_world *world, uint32_t index, const fb_effect *fx)
{
    fb_span bytes = fb_span_of(fb_effect_bytes(fx), fx->len);
    switch ((fb_effect_kind)fx->kind) {
    case FB_FX_DIAL:
        fb_sim_dial(world, index, fx->a, bytes);
        return;
    case FB_FX_SEND:
        fb_sim_send(world, index, fx->a, bytes);
        return;
    case FB_FX_FRAME:
        fb_sim_frame_send(world, index, fx->a, bytes);
        return;
    case FB_FX_CLOSE:
        fb_sim_close(world, index, fx->a, (fb_error)fx->b);
        return;
    case FB_FX_RESUME:
        fb_sim_resume(world, index, fx->a);
        return;
    case FB_FX_READ:
        fb_sim_read_set(world, index, fx->a, bytes);
        return;
    case FB_FX_WRITE:
        fb_sim_write_set(world, index, fx->a, fx->b, bytes);
        return;
    case FB_FX_REPLY:
        fb_sim_replied(world, index, fx);
        return;
    case FB_FX_NEED_START:
        fb_sim_need_start(world, index);
        return;
    case FB_FX_OBSERVE:
    case FB_FX_LOG:
        return;
    }
    fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order", "%s: an effect of no kind: %u",
                    fb_sim_name(index), (unsigned)fx->kind);
}

static uint64_t tick_time(const fb_sim_world *world, uint32_t node)
{
    return node < world->config.nodes ? world->nodes[node].tick_at_ns : FB_NEVER;
}

void fb_sim_tick_set(fb_sim_world *world, uint32_t index, uint64_t at_ns)
{
    world->nodes[index].tick_at_ns = at_ns;
    uint32_t *tree = world->tick_tree;
    uint32_t leaves = world->tick_leaves;
    for (uint32_t at = (index + leaves) / 2; at >= 1; at /= 2) {
        uint32_t left = 2 * at < leaves ? tree[2 * at] : 2 * at - leaves;
        uint32_t right = 2 * at < leaves ? tree[2 * at + 1] : 2 * at + 1 - leaves;
        tree[at] = tick_time(world, right) < tick_time(world, left) ? right : left;
    }
}

/* When the weather lets a tick come that is due then. */
static uint64_t tick_weather(fb_sim_world *world, uint32_t index, uint64_t at)
{
    fb_sim_ticks *ticks = &world->nodes[index].ticks;
    /* The last millisecond is nobody's to shorten, or a wait would never end. */
    if (ticks->early_of_16 != 0 && at > world->now_ns + 1000000) {
        at = world->now_ns + (at - world->now_ns) / 16 * ticks->early_of_16;
        world->fired[FB_SIM_FAULT_TIMER_EARLY]++;
    }
    if (ticks->late_mean_ns != 0) {
        uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_TICK, index, ticks->drawn++);
        at += fb_sim_exponential(bits, ticks->late_mean_ns);
        world->fired[FB_SIM_FAULT_TIMER_LATE]++;
    }
    if (at < ticks->starved_until_ns) {
        at = ticks->starved_until_ns;
        world->fired[FB_SIM_FAULT_TIMER_STARVE]++;
    }
    if (ticks->grid_ns != 0 && at % ticks->grid_ns != 0) {
        at += ticks->grid_ns - at % ticks->grid_ns;
        world->fired[FB_SIM_FAULT_TIMER_COALESCE]++;
    }
    return at;
}

static void tick_schedule(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    uint64_t deadline = fb_node_deadline(node->core);
    if (deadline == node->deadline_ns && node->tick_at_ns > world->now_ns) return;
    node->deadline_ns = deadline;
    uint64_t at = FB_NEVER;
    if (deadline <= node->last_mono_ns) {
        at = world->now_ns;
    } else if (deadline != FB_NEVER) {
        at = fb_sim_clock_when(&node->clock, world->now_ns, deadline);
    }
    if (at != FB_NEVER) at = tick_weather(world, index, at);
    if (at == node->tick_at_ns) return;
    fb_sim_tick_set(world, index, at);
    if (world->record != NULL) fb_sim_record_tick_set(world, index);
}

/* A sanitizer that knows which memory was written is told that this was not. */
#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define UNWRITTEN(memory, bytes) __msan_poison(memory, bytes)
#endif
#endif
#ifndef UNWRITTEN
#define UNWRITTEN(memory, bytes) (void)(memory)
#endif

static void fill(const fb_sim_world *world, uint8_t *memory, size_t bytes)
{
    memset(memory, world->config.poison, bytes);
    UNWRITTEN(memory, bytes);
}

/* The ends of the arena, where steps write, are filled before each step; all of it now and then. */
#define POISONED_ENDS  32768u
#define POISONED_EVERY 64u

/* What nobody may read before it is written: of the caller's arena, of the scratch, of the stack.
 */
static void poison(fb_sim_world *world)
{
    uint8_t below[16384];
    uint8_t *volatile stack = below;
    memset(stack, world->config.poison, sizeof below);
    uint8_t *arena = world->effects.memory;
    size_t all = world->effects.capacity, ends = POISONED_ENDS;
    if (all <= 2 * ends || world->steps % POISONED_EVERY == 0) {
        fill(world, arena, all);
        fill(world, world->provider_scratch, FB_SIM_PROVIDER_TEXT_MAX);
        return;
    }
    fill(world, arena, ends);
    fill(world, arena + all - ends, ends);
}

/* One reading of the wall clock, and no other, lies before the last one. */
static void wall_goes_back(fb_sim_world *world, uint32_t index, fb_event *event)
{
    const fb_sim_node *node = &world->nodes[index];
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_WALL, index, node->steps);
    if ((bits >> 32) % node->wall_back_of != 0) return;
    event->wall_us -= (int64_t)((bits & UINT32_MAX) * 1000 % node->wall_back_ns / 1000);
    world->fired[FB_SIM_FAULT_CLOCK_BACKWARDS]++;
}

/* True when the process ends instead of this effect. */
static bool ends_here(fb_sim_node *node, const fb_event *event, const fb_effect *fx)
{
    bool counts = false;
    switch ((enum fb_sim_crash_at)node->crash_at_kind) {
    case FB_SIM_CRASH_AT_IO:
        counts = fx->kind == FB_FX_READ || fx->kind == FB_FX_WRITE;
        break;
    case FB_SIM_CRASH_AT_SEND:
        counts = fx->kind == FB_FX_SEND || fx->kind == FB_FX_FRAME;
        break;
    case FB_SIM_CRASH_AT_TIMER:
        counts = event->kind == FB_EV_TICK; /* of ticks that do nothing nobody can tell */
        break;
    }
    return counts && ++node->crash_at_seen == node->crash_at_nth;
}

static void step(fb_sim_world *world, uint32_t index, fb_event event)
{
    fb_sim_node *node = &world->nodes[index];
    if (world->config.poison != 0) poison(world);
    event.mono_ns = fb_sim_clock_mono(&node->clock, world->now_ns);
    event.wall_us = fb_sim_clock_wall(&node->clock, world->now_ns);
    if (node->wall_back_of != 0) wall_goes_back(world, index, &event);
    if (node->clock.grain_ns != 0) world->fired[FB_SIM_FAULT_CLOCK_COARSE]++;
    FB_ASSERT(event.mono_ns >= node->last_mono_ns);
    node->last_mono_ns = event.mono_ns;
    fb_effects *effects = &world->effects;
    fb_status status = fb_node_step(node->core, &event, effects);
    if (status != FB_OK) {
        fb_sim_violated(world, FB_SIM_SAFETY, "step-accepts-events", "%s: event %u: %s",
                        fb_sim_name(index), (unsigned)event.kind, fb_error_name(status));
        return;
    }
    world->steps++;
    node->steps++;
    bool look = !world->config.fast || world->steps % FAST_EVERY == 0;
    fb_hash128 digest = look ? fb_node_digest(node->core) : (fb_hash128){0, 0};
    fb_sim_trace_step(&world->trace, index, &event, effects, digest);
    if (world->record != NULL) fb_sim_record_step(world, index, &event, effects, digest);
    if (effects->used > effects->capacity) {
        fb_sim_violated(world, FB_SIM_SAFETY, "bounded-memory", "%s: effects beyond the arena",
                        fb_sim_name(index));
        return;
    }
    fb_sim_checks_event(world, index, &event);
    if (world->config.fast && look) fb_sim_checks_round(world);
    uint64_t boots = node->boots;
    bool accepts = false;
    uint32_t applies = 0;
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (node->crash_in != FB_SIM_NO_CRASH && fx->kind < FB_FX_OBSERVE &&
            node->crash_in-- == 0) {
            fb_sim_weather_crash(world, index, (fb_sim_fault)node->crash_fault);
            return;
        }
        if (node->crash_at_kind != 0 && fx->kind < FB_FX_OBSERVE && ends_here(node, &event, fx)) {
            fb_sim_weather_crash(world, index, FB_SIM_FAULT_CRASH_AT);
            return;
        }
        uint64_t down_ns = 0;
        if (world->player != NULL && fx->kind < FB_FX_OBSERVE &&
            fb_sim_player_crashes(world, index, fx->kind, &down_ns)) {
            world->fired[FB_SIM_FAULT_CRASH]++;
            if (world->timeline != NULL) fb_sim_timeline_crash(world, index);
            fb_sim_crash(world, index, down_ns);
            return;
        }
        if (fx->kind == FB_FX_OBSERVE) {
            accepts = accepts || fx->a == FB_FACT_DELIVERED;
            applies += fx->a == FB_FACT_APPLIED;
            fb_sim_checks_fact(world, index, fx);
            if (world->timeline != NULL) fb_sim_timeline_fact(world, index, fx);
        } else {
            carry_out(world, index, fx);
        }
        if (world->stop) return;
        if (node->power_fails && fx->kind == FB_FX_WRITE) {
            fb_sim_weather_crash(world, index, FB_SIM_FAULT_POWER_FAIL);
            return;
        }
    }
    world->accepting += accepts;
    world->applying += applies != 0;
    world->applied += applies;
    if (node->slow_ns != 0) {
        fb_sim_pause(world, index, world->now_ns + node->slow_ns);
        world->fired[FB_SIM_FAULT_SLOW]++;
    }
    if (world->config.seen != NULL) fb_sim_seen_step(world, index, &event);
    if (node->core != NULL && node->boots == boots) tick_schedule(world, index);
}

void fb_sim_step(fb_sim_world *world, uint32_t index, fb_event event)
{
    if (world->nodes[index].core == NULL || world->stop) return;
    if (world->steps == world->last_step) return; /* in the middle of what an entry does */
    if (world->record == NULL) {
        step(world, index, event);
        return;
    }
    fb_sim_context before = fb_sim_record_enter(world);
    step(world, index, event);
    fb_sim_record_leave(world, index, before);
}

uint64_t fb_sim_request(fb_sim_world *world, uint32_t node, fb_verb verb, uint64_t principal,
                        fb_span arguments)
{
    uint64_t number = ++world->requests;
    fb_sim_step(world, node,
                (fb_event){.kind = FB_EV_REQUEST,
                           .len = (uint32_t)arguments.len,
                           .a = number,
                           .b = verb,
                           .c = principal,
                           .bytes = arguments.p});
    return number;
}

/* One entry of the queue. */

static void of_node(fb_sim_world *world, const fb_sim_entry *entry, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    switch ((fb_sim_kind)fb_sim_entry_kind(entry)) {
    case FB_SIM_AT_BOOT:
        fb_sim_at_boot(world, index, entry->stamp);
        return;
    case FB_SIM_AT_START:
        if (entry->stamp == node->boots) fb_sim_at_start(world, index);
        return;
    case FB_SIM_AT_ACCEPT:
        fb_sim_at_accept(world, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_DIAL_RESULT:
        fb_sim_at_dial_result(world, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_CARRIER:
        fb_sim_at_carrier(world, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_BYTES:
        fb_sim_at_bytes(world, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_FRAME:
        fb_sim_at_frame(world, entry->ref);
        return;
    case FB_SIM_AT_CREDIT:
        fb_sim_at_credit(world, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_CLOSED:
        fb_sim_at_closed(world, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_READ:
        fb_sim_at_read(world, index, entry->ref, entry->stamp != node->boots || node->core == NULL);
        return;
    case FB_SIM_AT_FLUSH:
        if (entry->stamp != node->boots || entry->ref != (uint32_t)node->incarnations) return;
        if (node->core != NULL && !node->needs_start) fb_sim_at_flush(world, index);
        return;
    case FB_SIM_AT_WORK:
        fb_sim_at_work(world, index, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_GONE:
        fb_sim_at_gone(world, index, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_FEED:
        fb_sim_at_feed(world, index, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_DOCUMENTS:
        fb_sim_at_documents(world, index, entry->ref, entry->stamp);
        return;
    case FB_SIM_AT_TICK:
        FB_ASSERT(false); /* not in the queue */
        return;
    default:
        FB_ASSERT(false);
    }
}

/* The first node in the tournament ticks. */
static void tick(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    FB_ASSERT(node->tick_at_ns >= world->now_ns);
    world->now_ns = node->tick_at_ns;
    if (node->paused_until_ns > world->now_ns) {
        fb_sim_tick_set(world, index, node->paused_until_ns);
        return;
    }
    if (node->busy_since_ns != world->now_ns) {
        node->busy_since_ns = world->now_ns;
        node->busy = 0;
    } else if (++node->busy > BUSY_MAX) {
        fb_sim_violated(world, FB_SIM_LIVENESS, "no-spinning",
                        "%s wants a tick again and again at one time", fb_sim_name(index));
        return;
    }
    /* The clock may have been changed since: then it is not time yet. */
    node->tick_at_ns = FB_NEVER;
    node->deadline_ns = 0;
    if (node->ticks.early_of_16 == 0 &&
        fb_node_deadline(node->core) > fb_sim_clock_mono(&node->clock, world->now_ns)) {
        tick_schedule(world, index);
        if (node->tick_at_ns == FB_NEVER) fb_sim_tick_set(world, index, FB_NEVER);
        return;
    }
    uint32_t boots = node->boots;
    for (uint32_t more = node->ticks.burst;; more--) {
        world->ticks++;
        fb_sim_step(world, index, (fb_event){.kind = FB_EV_TICK});
        if (more == 0 || node->core == NULL || node->boots != boots || world->stop) break;
        world->fired[FB_SIM_FAULT_TIMER_BURST]++;
    }
    if (node->core != NULL && node->tick_at_ns == FB_NEVER) {
        fb_sim_tick_set(world, index, FB_NEVER);
    }
}

void fb_sim_tick_again(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    if (node->core == NULL || node->needs_start) return;
    node->deadline_ns = 0;
    tick_schedule(world, index);
}

/* (time, node, kind): a tick is the last kind of its node. */
static bool tick_is_first(const fb_sim_world *world, uint32_t index)
{
    uint64_t at = tick_time(world, index);
    if (at == FB_NEVER) return false;
    const fb_sim_entry *first = fb_sim_queue_first(&world->queue);
    if (first == NULL) return true;
    return at != first->time_ns ? at < first->time_ns : index + 1 < fb_sim_entry_node(first);
}

bool fb_sim_world_next(fb_sim_world *world)
{
    fb_sim_entry entry;
    if (world->stop || world->steps == world->last_step) return false;
    uint32_t ticks_next = world->tick_leaves == 1 ? 0 : world->tick_tree[1];
    if (tick_is_first(world, ticks_next)) {
        if (world->record != NULL) fb_sim_record_ticks(world, ticks_next);
        tick(world, ticks_next);
        return !world->stop;
    }
    if (!fb_sim_queue_pop(&world->queue, &entry)) return false;
    if (world->record != NULL) fb_sim_record_popped(world, &entry);
    FB_ASSERT(entry.time_ns >= world->now_ns);
    world->now_ns = entry.time_ns;
    uint32_t place = fb_sim_entry_node(&entry);
    if (place == 0) {
        switch ((fb_sim_kind)fb_sim_entry_kind(&entry)) {
        case FB_SIM_AT_WEATHER:
            fb_sim_at_weather(world, entry.ref, entry.stamp != 0);
            break;
        case FB_SIM_AT_ACT:
            fb_sim_at_act(world, entry.ref, entry.stamp);
            break;
        case FB_SIM_AT_SCRIPT:
            fb_sim_at_script(world);
            break;
        case FB_SIM_AT_SERVER:
            fb_sim_at_server(world, entry.ref, entry.stamp);
            break;
        default:
            FB_ASSERT(false);
        }
        return !world->stop;
    }
    fb_sim_node *node = &world->nodes[place - 1];
    if (node->paused_until_ns > world->now_ns) {
        /* It happens when the process runs again, in the order in which it would have. */
        fb_sim_schedule(world, node->paused_until_ns, place - 1,
                        (fb_sim_kind)fb_sim_entry_kind(&entry), entry.ref, entry.stamp);
        return true;
    }
    of_node(world, &entry, place - 1);
    return !world->stop;
}
