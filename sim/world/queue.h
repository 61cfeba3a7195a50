/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of what is going to happen, in the simulator's written total order:
 * (time, node, kind, sequence). No two entries are equal, so the order never depends on the heap.
 */
#ifndef FB_SIM_WORLD_QUEUE_H
#define FB_SIM_WORLD_QUEUE_H

#include "protocol/base/types.h"

#define FB_SIM_QUEUE_NODE_BITS     10
#define FB_SIM_QUEUE_KIND_BITS     8
#define FB_SIM_QUEUE_SEQUENCE_BITS 46

typedef struct fb_sim_entry {
    uint64_t time_ns;
    uint64_t order; /* node, kind, sequence from the highest bit down */
    uint32_t ref;   /* what it is about: meaning by kind */
    uint32_t stamp; /* generation of that thing; an entry for an older one is void */
} fb_sim_entry;

#define FB_SIM_QUEUE_SORTED_MAX 32u

typedef struct fb_sim_queue {
    /* While they are few they are sorted, the first one at the end: what is far away stays where it
     * is. More of them are a heap of four children a node. */
    fb_sim_entry *entries;
    bool is_heap;
    uint32_t count;
    uint32_t capacity;
    uint64_t sequence;
} fb_sim_queue;

/* memory holds `capacity` entries and belongs to the caller. */
void fb_sim_queue_init(fb_sim_queue *queue, fb_sim_entry *memory, uint32_t capacity);

/* Asserts that there is room: the world sizes the queue from its other limits. */
void fb_sim_queue_push(fb_sim_queue *queue, uint64_t time_ns, uint32_t node, uint32_t kind,
                       uint32_t ref, uint32_t stamp);

/* NULL when empty. */
static inline const fb_sim_entry *fb_sim_queue_first(const fb_sim_queue *queue)
{
    if (queue->count == 0) return NULL;
    return &queue->entries[queue->is_heap ? 0 : queue->count - 1];
}

/* False when empty. */
bool fb_sim_queue_pop(fb_sim_queue *queue, fb_sim_entry *out);

/* For changes by hand: takes out the entry at a place of `entries`, and puts one in with the order
 * that it has. */
fb_sim_entry fb_sim_queue_take(fb_sim_queue *queue, uint32_t place);
void fb_sim_queue_put(fb_sim_queue *queue, fb_sim_entry entry);

static inline uint32_t fb_sim_entry_node(const fb_sim_entry *entry)
{
    return (uint32_t)(entry->order >> (FB_SIM_QUEUE_KIND_BITS + FB_SIM_QUEUE_SEQUENCE_BITS));
}

static inline uint32_t fb_sim_entry_kind(const fb_sim_entry *entry)
{
    return (uint32_t)(entry->order >> FB_SIM_QUEUE_SEQUENCE_BITS) &
           ((1u << FB_SIM_QUEUE_KIND_BITS) - 1);
}

#endif
