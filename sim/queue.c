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

void fb_sim_queue_push(fb_sim_queue *queue, uint64_t time_ns, uint32_t node, uint32_t kind,
                       uint32_t ref, uint32_t stamp)
{
    FB_ASSERT(queue->count < queue->capacity);
    FB_ASSERT(node < 1u << FB_SIM_QUEUE_NODE_BITS);
    FB_ASSERT(kind < 1u << FB_SIM_QUEUE_KIND_BITS);
    fb_sim_entry entry = {
        .time_ns = time_ns,
        .order = (uint64_t)node << (FB_SIM_QUEUE_KIND_BITS + FB_SIM_QUEUE_SEQUENCE_BITS) |
                 (uint64_t)kind << FB_SIM_QUEUE_SEQUENCE_BITS | queue->sequence++,
        .ref = ref,
        .stamp = stamp,
    };
    fb_sim_entry *heap = queue->entries;
    uint32_t at = queue->count++;
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;
        if (!before(&entry, &heap[parent])) break;
        heap[at] = heap[parent];
        at = parent;
    }
    heap[at] = entry;
}

bool fb_sim_queue_pop(fb_sim_queue *queue, fb_sim_entry *out)
{
    if (queue->count == 0) return false;
    fb_sim_entry *heap = queue->entries;
    *out = heap[0];
    fb_sim_entry last = heap[--queue->count];
    uint32_t count = queue->count;
    uint32_t at = 0;
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
    if (count != 0) heap[at] = last;
    return true;
}
