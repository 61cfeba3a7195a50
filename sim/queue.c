/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/queue.h"

#include "protocol/base/assert.h"

void fb_sim_queue_init(fb_sim_queue *queue, fb_sim_entry *memory, uint32_t capacity)
{
    *queue = (fb_sim_queue){.entries = memory, .capacity = capacity};
}

static bool before(const fb_sim_entry *a, const fb_sim_entry *b)
{
    /* Without a branch: which one it is nobody can predict. */
    return (a->time_ns < b->time_ns) | ((a->time_ns == b->time_ns) & (a->order < b->order));
}

/* The entry belongs at this place or nearer to the front. */
static void rise(fb_sim_entry *heap, uint32_t at, fb_sim_entry entry)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;
        if (!before(&entry, &heap[parent])) break;
        heap[at] = heap[parent];
        at = parent;
    }
    heap[at] = entry;
}

void fb_sim_queue_put(fb_sim_queue *queue, fb_sim_entry entry)
{
    FB_ASSERT(queue->count < queue->capacity);
    rise(queue->entries, queue->count++, entry);
}

void fb_sim_queue_push(fb_sim_queue *queue, uint64_t time_ns, uint32_t node, uint32_t kind,
                       uint32_t ref, uint32_t stamp)
{
    FB_ASSERT(node < 1u << FB_SIM_QUEUE_NODE_BITS);
    FB_ASSERT(kind < 1u << FB_SIM_QUEUE_KIND_BITS);
    fb_sim_entry entry = {
        .time_ns = time_ns,
        .order = (uint64_t)node << (FB_SIM_QUEUE_KIND_BITS + FB_SIM_QUEUE_SEQUENCE_BITS) |
                 (uint64_t)kind << FB_SIM_QUEUE_SEQUENCE_BITS | queue->sequence++,
        .ref = ref,
        .stamp = stamp,
    };
    fb_sim_queue_put(queue, entry);
}

/* The entry belongs at this place or farther from the front. */
static void sink(fb_sim_entry *heap, uint32_t count, uint32_t at, fb_sim_entry last)
{
    for (;;) {
        uint32_t first = 4 * at + 1;
        if (first >= count) break;
        uint32_t end = first + 4 < count ? first + 4 : count;
        uint32_t least = first;
        for (uint32_t i = first + 1; i < end; i++)
            least = before(&heap[i], &heap[least]) ? i : least;
        if (!before(&heap[least], &last)) break;
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = last;
}

bool fb_sim_queue_pop(fb_sim_queue *queue, fb_sim_entry *out)
{
    if (queue->count == 0) return false;
    fb_sim_entry *heap = queue->entries;
    *out = heap[0];
    fb_sim_entry last = heap[--queue->count];
    if (queue->count != 0) sink(heap, queue->count, 0, last);
    return true;
}

fb_sim_entry fb_sim_queue_take(fb_sim_queue *queue, uint32_t place)
{
    FB_ASSERT(place < queue->count);
    fb_sim_entry *heap = queue->entries;
    fb_sim_entry taken = heap[place];
    fb_sim_entry last = heap[--queue->count];
    if (place == queue->count) return taken;
    if (place > 0 && before(&last, &heap[(place - 1) / 4])) {
        rise(heap, place, last);
    } else {
        sink(heap, queue->count, place, last);
    }
    return taken;
}
