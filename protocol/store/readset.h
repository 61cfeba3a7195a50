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

#define FB_READ_ITEM_HEAD 14u /* what stands before `low` */

/* The next item; the reader fails on bytes that are no read set. */
static inline fb_read_item fb_read_item_next(fb_reader *r)
{
    fb_read_item item = {.kind = 0};
    fb_span head = fb_read_bytes(r, FB_READ_ITEM_HEAD);
    if (head.p == NULL) return item;
    item.kind = head.p[0];
    item.flags = head.p[1];
    item.value_bytes = fb_load_be32(head.p + 2);
    item.items = fb_load_be32(head.p + 6);
    item.bytes = fb_load_be32(head.p + 10);
    item.low = fb_read_span16(r);
    item.high = fb_read_span16(r);
    return item;
}

static inline void fb_read_item_write(fb_writer *w, const fb_read_item *item)
{
    uint8_t *head = fb_write_room(w, FB_READ_ITEM_HEAD);
    if (head == NULL) return;
    head[0] = item->kind;
    head[1] = item->flags;
    fb_store_be32(head + 2, item->value_bytes);
    fb_store_be32(head + 6, item->items);
    fb_store_be32(head + 10, item->bytes);
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
    fb_read_entry entry = {.key = fb_read_span16(r)};
    fb_span lengths = fb_read_bytes(r, 8);
    if (lengths.p == NULL) return entry;
    entry.value_len = fb_load_be32(lengths.p);
    entry.value = fb_read_bytes(r, fb_load_be32(lengths.p + 4));
    return entry;
}

static inline void fb_read_entry_write(fb_writer *w, const fb_read_entry *entry)
{
    size_t key_len = entry->key.len, value_len = entry->value.len;
    if (key_len > UINT16_MAX) w->failed = true;
    uint8_t *room = fb_write_room(w, 2 + key_len + 8 + value_len);
    if (room == NULL) return;
    fb_store_be16(room, (uint16_t)key_len);
    fb_copy(room + 2, entry->key.p, key_len);
    fb_store_be32(room + 2 + key_len, entry->value_len);
    fb_store_be32(room + 6 + key_len, (uint32_t)value_len);
    fb_copy(room + 10 + key_len, entry->value.p, value_len);
}

#endif
