/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of all simulated nodes: ordered maps of bytes to bytes.
 *
 * Nodes of one space hold mostly the same keys and values. So there is one table of keys for the
 * world, and a store is a column of it: each key's row holds one value, or none, for every store.
 * A key is hashed, put in order and kept once; what five nodes put lies in one place; a value that
 * another column of the row has is shared with it. Order is kept in sorted leaves of at most 60
 * rows under one sorted array of leaves. Rows and values are blobs; all else is taken at the start,
 * and a full table ends the run as `resource`. */
#ifndef FB_SIM_WORLD_STORE_H
#define FB_SIM_WORLD_STORE_H

#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"
#include "sim/world/blobs.h"

#define FB_SIM_LEAF_ROWS 60
#define FB_SIM_FINGERS   64

typedef struct fb_sim_leaf {
    uint32_t count;
    uint32_t next_free;
    fb_sim_blob rows[FB_SIM_LEAF_ROWS];
} fb_sim_leaf;

typedef struct fb_sim_finger {
    uint32_t place; /* in `order` */
    uint32_t at;    /* in the leaf */
} fb_sim_finger;

/* The table of keys. */
typedef struct fb_sim_keys {
    fb_sim_blobs *blobs;
    uint32_t columns;
    uint32_t rows;
    uint32_t rows_max;
    fb_sim_blob *buckets; /* rows by the hash of their key */
    uint32_t bucket_mask;
    fb_sim_leaf *leaves;
    uint32_t *order; /* leaves in key order */
    uint32_t leaf_count;
    uint32_t leaves_max;
    uint32_t leaves_carved;
    uint32_t free_leaf;
    /* Where the last insertions were, and the last removals, by what keys that count up have in
     * common. */
    fb_sim_finger fingers[FB_SIM_FINGERS];
    fb_sim_finger removals[FB_SIM_FINGERS];
    /* Where long answers ended, by store and kind of key: the next page begins there. */
    fb_sim_finger pages[FB_SIM_FINGERS];
} fb_sim_keys;

typedef struct fb_sim_store {
    fb_sim_keys *keys;
    uint32_t column;
    uint32_t items;
    uint32_t items_max;
} fb_sim_store;

/* The layout of a table in an arena (measuring with base NULL). */
void fb_sim_keys_init(fb_sim_keys *keys, fb_arena *arena, fb_sim_blobs *blobs, uint32_t columns,
                      uint32_t rows_max);
/* An empty store in a column that no other store has. */
void fb_sim_store_init(fb_sim_store *store, fb_sim_keys *keys, uint32_t column, uint32_t items_max);

/* Forgets everything. */
void fb_sim_store_clear(fb_sim_store *store);
/* Makes `to` hold what `from` holds, in one table: a backup, a restored one, a cloned machine. */
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

/* The first key that is at least `from`; false when there is none. It lives until the next change.
 */
bool fb_sim_store_first(const fb_sim_store *store, fb_span from, fb_span *key);

/* Walks the items whose keys begin with the prefix, in key order: at(user, key, value). */
void fb_sim_store_walk(const fb_sim_store *store, fb_span prefix,
                       void (*at)(void *user, fb_span key, fb_span value), void *user);

/* A hash over all items in key order. */
uint64_t fb_sim_store_hash(const fb_sim_store *store);

#endif
