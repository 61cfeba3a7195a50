/* SPDX-License-Identifier: Apache-2.0 */
/* Read sets and their completions, as bytes between the core and whoever owns the store.
 *
 * Read set: u16 items, then each item:
 *     u8  kind: 1 key, 2 range
 *     u8  flags: bit 0 descending (ranges)
 *     u32 value bytes: so many leading bytes of each value are wanted
 *     u32 items: at most so many (ranges; 1 for a key)
 *     u32 bytes: stop before the answer of this item passes so many, but give at least one entry
 *     span16 low: the key, or the range's first key
 *     span16 high: empty, or the first key beyond the range (empty in a range: no bound)
 * Completion, after the u64 incarnation: for each item in order:
 *     u8  1 when the range was given whole, 0 when a bound stopped it
 *     u32 entries, then each: span16 key, u32 whole length of the value, span32 leading bytes
 * A stopped range goes on from the last key given (exclusive). */
#ifndef FB_STORE_READSET_H
#define FB_STORE_READSET_H

#include "protocol/base/cursor.h"

typedef enum fb_read_kind {
    FB_READ_KEY = 1,
    FB_READ_RANGE = 2,
} fb_read_kind;

#define FB_READ_DESCENDING 1u

typedef struct fb_read_item {
    uint8_t kind;
    uint8_t flags;
    uint32_t value_bytes;
    uint32_t items;
    uint32_t bytes;
    fb_span low;
    fb_span high;
} fb_read_item;

/* The next item; the reader fails on bytes that are no read set. */
static inline fb_read_item fb_read_item_next(fb_reader *r)
{
    fb_read_item item;
    item.kind = fb_read_u8(r);
    item.flags = fb_read_u8(r);
    item.value_bytes = fb_read_u32(r);
    item.items = fb_read_u32(r);
    item.bytes = fb_read_u32(r);
    item.low = fb_read_span16(r);
    item.high = fb_read_span16(r);
    return item;
}

static inline void fb_read_item_write(fb_writer *w, const fb_read_item *item)
{
    fb_write_u8(w, item->kind);
    fb_write_u8(w, item->flags);
    fb_write_u32(w, item->value_bytes);
    fb_write_u32(w, item->items);
    fb_write_u32(w, item->bytes);
    fb_write_span16(w, item->low);
    fb_write_span16(w, item->high);
}

/* One entry of a completion: what a store writes and the core reads. */
typedef struct fb_read_entry {
    fb_span key;
    uint32_t value_len; /* of the whole value */
    fb_span value;      /* its leading bytes */
} fb_read_entry;

static inline fb_read_entry fb_read_entry_next(fb_reader *r)
{
    fb_read_entry entry;
    entry.key = fb_read_span16(r);
    entry.value_len = fb_read_u32(r);
    entry.value = fb_read_span32(r);
    return entry;
}

static inline void fb_read_entry_write(fb_writer *w, const fb_read_entry *entry)
{
    fb_write_span16(w, entry->key);
    fb_write_u32(w, entry->value_len);
    fb_write_span32(w, entry->value);
}

#endif
