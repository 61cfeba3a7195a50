/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/timer.h"

#include "protocol/core/internal.h"
#include "protocol/core/timers.h"

static bool before(const fb_timer *a, const fb_timer *b)
{
    if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns;
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->index < b->index;
}

static void place(fb_timers *timers, uint32_t at, fb_timer *timer)
{
    timers->heap[at] = timer;
    timer->place = at + 1;
}

static void rise(fb_timers *timers, uint32_t at)
{
    fb_timer *timer = timers->heap[at];
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (!before(timer, timers->heap[parent])) break;
        place(timers, at, timers->heap[parent]);
        at = parent;
    }
    place(timers, at, timer);
}

static void sink(fb_timers *timers, uint32_t at)
{
    fb_timer *timer = timers->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= timers->count) break;
        if (child + 1 < timers->count && before(timers->heap[child + 1], timers->heap[child])) {
            child++;
        }
        if (!before(timers->heap[child], timer)) break;
        place(timers, at, timers->heap[child]);
        at = child;
    }
    place(timers, at, timer);
}

void fb_timer_register(fb_node *node, fb_timer_kind kind, fb_timer_handler handler, uint32_t count)
{
    FB_ASSERT(node->timers.handlers[kind] == NULL); /* one plane for each kind */
    node->timers.handlers[kind] = handler;
    node->timers.capacity += count;
}

void fb_timers_layout(fb_node *node, fb_arena *arena)
{
    node->timers.heap = fb_arena_take(arena, node->timers.capacity, sizeof *node->timers.heap);
}

void fb_timers_reset(fb_node *node)
{
    for (uint32_t i = 0; i < node->timers.count; i++) node->timers.heap[i]->place = 0;
    node->timers.count = 0;
}

void fb_timer_set(fb_node *node, fb_timer *timer, uint64_t at_ns)
{
    fb_timers *timers = &node->timers;
    if (at_ns == FB_NEVER) {
        fb_timer_clear(node, timer);
        return;
    }
    if (timer->place == 0) {
        FB_ASSERT(timers->count < timers->capacity);
        timer->at_ns = at_ns;
        place(timers, timers->count, timer);
        timers->count++;
        rise(timers, timer->place - 1);
        return;
    }
    uint64_t earlier = timer->at_ns;
    timer->at_ns = at_ns;
    if (at_ns < earlier) {
        rise(timers, timer->place - 1);
    } else if (at_ns > earlier) {
        sink(timers, timer->place - 1);
    }
}

void fb_timer_clear(fb_node *node, fb_timer *timer)
{
    fb_timers *timers = &node->timers;
    if (timer->place == 0) return;
    uint32_t at = timer->place - 1;
    timer->place = 0;
    fb_timer *last = timers->heap[--timers->count];
    if (last == timer) return;
    place(timers, at, last);
    rise(timers, at);
    sink(timers, last->place - 1);
}

void fb_timers_fire(fb_node *node)
{
    fb_timers *timers = &node->timers;
    /* A handler may set its timer again for now: one round a step keeps every step bounded. */
    uint32_t left = timers->count;
    while (timers->count > 0 && timers->heap[0]->at_ns <= node->mono_ns) {
        if (left-- == 0 || !fb_effect_fits(node, FB_REPLY_BYTES_MAX)) {
            fb_starved(node);
            return;
        }
        fb_timer *timer = timers->heap[0];
        fb_timer_clear(node, timer);
        timers->handlers[timer->kind](node, timer->index);
        if (node->ending != FB_OK) return;
    }
}

uint64_t fb_timers_next(const fb_node *node)
{
    return node->timers.count == 0 ? FB_NEVER : node->timers.heap[0]->at_ns;
}
