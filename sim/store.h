/* SPDX-License-Identifier: Apache-2.0 */
/* The store of one simulated node: an ordered map of bytes to bytes.
 *
 * Keys and values are interned blobs. Point lookups go through a hash table; order is kept in
 * sorted leaves of at most 60 keys under one sorted array of leaves. Everything is taken at the
 * start; a full table ends the run as `resource`. */
#ifndef FB_SIM_STORE_H
#define FB_SIM_STORE_H

#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"
#include "sim/blobs.h"

#define FB_SIM_LEAF_KEYS 60

typedef struct fb_sim_leaf {
    uint32_t count;
    uint32_t next_free;
    fb_sim_blob keys[FB_SIM_LEAF_KEYS];
} fb_sim_leaf;

typedef struct fb_sim_slot {
    fb_sim_blob key; /* 0: never used; 1: removed */
    fb_sim_blob value;
} fb_sim_slot;

typedef struct fb_sim_store {
    fb_sim_blobs *blobs;
    fb_sim_slot *slots;
    uint32_t slot_mask;
    uint32_t slots_used; /* removed ones included */
    uint32_t items;
    uint32_t items_max;
    fb_sim_leaf *leaves;
    uint32_t *order; /* leaves in key order */
    uint32_t leaf_count;
    uint32_t leaves_max;
    uint32_t leaves_carved;
    uint32_t free_leaf;
    uint32_t finger; /* place in `order` of the last insertion */
} fb_sim_store;

/* Bytes of tables for so many items, and their layout in an arena (measuring with base NULL). */
void fb_sim_store_init(fb_sim_store *store, fb_arena *arena, fb_sim_blobs *blobs,
                       uint32_t items_max);

/* Forgets everything. */
void fb_sim_store_clear(fb_sim_store *store);
/* Makes `to` hold what `from` holds: a backup, a restored one, a cloned machine. */
void fb_sim_store_copy(fb_sim_store *to, const fb_sim_store *from);

void fb_sim_store_put(fb_sim_store *store, fb_span key, fb_span value);
void fb_sim_store_delete(fb_sim_store *store, fb_span key);
/* False when absent. The bytes live until the next change. */
bool fb_sim_store_get(const fb_sim_store *store, fb_span key, fb_span *value);

/* Applies a whole write set. False, and nothing done, when its bytes are no write set. */
bool fb_sim_store_apply(fb_sim_store *store, fb_span write_set);

/* Answers a whole read set into `out`, in the form of readset.h without the leading incarnation.
 * False when the bytes are no read set or the answer does not fit. */
bool fb_sim_store_read(const fb_sim_store *store, fb_span read_set, fb_writer *out);

/* Walks all items in key order: at(user, key, value). */
void fb_sim_store_walk(const fb_sim_store *store,
                       void (*at)(void *user, fb_span key, fb_span value), void *user);

/* A hash over all items in key order. */
uint64_t fb_sim_store_hash(const fb_sim_store *store);

#endif
