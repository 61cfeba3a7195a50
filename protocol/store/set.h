/* SPDX-License-Identifier: Apache-2.0 */
/* One write set in memory: its bytes are what the store gets and what is laid over reads.
 *
 * A key that is put again is appended and the earlier entry marked dead, so bytes that somebody
 * borrowed stay as they were until fb_set_compact, which runs between operations only. */
#ifndef FB_STORE_SET_H
#define FB_STORE_SET_H

#include "protocol/base/alloc.h"
#include "protocol/store/writeset.h"

typedef struct fb_set_slot {
    uint32_t offset; /* of the entry in bytes */
    uint32_t hash;   /* of its key */
    uint32_t next;   /* in its bucket, plus one */
} fb_set_slot;

typedef struct fb_set {
    uint64_t w;
    uint8_t *bytes;
    uint32_t used;
    uint32_t cap;
    uint32_t dead_bytes;
    fb_set_slot *slots; /* in the order of bytes; dead ones have offset FB_SET_DEAD */
    uint32_t count;
    uint32_t slot_cap;
    uint32_t live;
    uint32_t *buckets; /* slot plus one */
    uint32_t bucket_mask;
    uint32_t *sorted; /* slots in the order of their keys, made when a range is asked for */
    uint32_t sorted_count;
    uint32_t sorted_upto; /* slots looked at so far */
} fb_set;

#define FB_SET_DEAD UINT32_MAX

void fb_set_layout(fb_set *set, fb_arena *arena, uint32_t bytes, uint32_t entries);
void fb_set_clear(fb_set *set, uint64_t w);

uint32_t fb_set_hash(fb_span key);

/* Asserts that fb_set_fits. */
void fb_set_put(fb_set *set, fb_write_kind kind, fb_span key, fb_span value);
/* Puts what another set has in a slot, as it is there; the bytes it takes, 0: the slot is dead. */
size_t fb_set_take(fb_set *set, const fb_set *from, uint32_t slot);
/* Writes over a value of the same length that the set has for this key; false: it has none. Only
 * for values that nobody borrows. */
bool fb_set_overwrite(fb_set *set, fb_span key, fb_span value);
bool fb_set_fits(const fb_set *set, size_t bytes, size_t entries);
void fb_set_compact(fb_set *set);

/* The live entry of a key; false when the set does not name it. */
bool fb_set_find(const fb_set *set, uint32_t hash, fb_span key, fb_write_entry *out);

/* Brings `sorted` up to date; until the next put, fb_set_lower then gives the first place in it
 * whose key is at least `key`, and fb_set_entry_at the entry there (false past the end). */
void fb_set_sort(fb_set *set);
uint32_t fb_set_lower(const fb_set *set, fb_span key);
bool fb_set_entry_at(const fb_set *set, uint32_t place, fb_write_entry *out);

#endif
