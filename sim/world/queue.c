/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/queue.h"

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

/* The same among sorted ones: all that come before it move up. */
static void insert(fb_sim_entry *entries, uint32_t at, fb_sim_entry entry)
{
    for (; at > 0 && before(&entries[at - 1], &entry); at--) entries[at] = entries[at - 1];
    entries[at] = entry;
}

/* Sorted the other way round they are a heap. */
static void become_heap(fb_sim_queue *queue)
{
    fb_sim_entry *entries = queue->entries;
    for (uint32_t i = 0, k = queue->count; i + 1 < k; i++) {
        fb_sim_entry entry = entries[i];
        entries[i] = entries[--k];
        entries[k] = entry;
    }
    queue->is_heap = true;
}

static void become_sorted(fb_sim_queue *queue)
{
    for (uint32_t i = 1; i < queue->count; i++) insert(queue->entries, i, queue->entries[i]);
    queue->is_heap = false;
}

void fb_sim_queue_put(fb_sim_queue *queue, fb_sim_entry entry)
{
    FB_ASSERT(queue->count < queue->capacity);
    if (!queue->is_heap && queue->count == FB_SIM_QUEUE_SORTED_MAX) become_heap(queue);
    uint32_t at = queue->count++;
    if (queue->is_heap) {
        rise(queue->entries, at, entry);
    } else {
        insert(queue->entries, at, entry);
    }
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

static void heap_take(fb_sim_queue *queue, uint32_t place)
{
    fb_sim_entry *heap = queue->entries;
    fb_sim_entry last = heap[--queue->count];
    if (place != queue->count) {
        if (place > 0 && before(&last, &heap[(place - 1) / 4])) {
            rise(heap, place, last);
        } else {
            sink(heap, queue->count, place, last);
        }
    }
    if (queue->count <= FB_SIM_QUEUE_SORTED_MAX / 2) become_sorted(queue);
}

fb_sim_entry fb_sim_queue_take(fb_sim_queue *queue, uint32_t place)
{
    FB_ASSERT(place < queue->count);
    fb_sim_entry *entries = queue->entries;
    fb_sim_entry taken = entries[place];
    if (queue->is_heap) {
        heap_take(queue, place);
    } else {
        queue->count--;
        for (uint32_t i = place; i < queue->count; i++) entries[i] = entries[i + 1];
    }
    return taken;
}

bool fb_sim_queue_pop(fb_sim_queue *queue, fb_sim_entry *out)
{
    const fb_sim_entry *first = fb_sim_queue_first(queue);
    if (first == NULL) return false;
    *out = *first;
    if (queue->is_heap) {
        heap_take(queue, 0);
    } else {
        queue->count--;
    }
    return true;
}
