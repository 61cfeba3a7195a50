/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed write set: entries one after another, no key twice, in the order they were first put.
 *
 *     u8 kind (1 put, 2 delete), u8 0, u16 key length, u32 value length, key, value,
 *     zeros up to a multiple of 8
 * Integers are big-endian, as everywhere. */
#ifndef FB_STORE_WRITESET_H
#define FB_STORE_WRITESET_H

#include "protocol/base/cursor.h"

typedef enum fb_write_kind {
    FB_WRITE_PUT = 1,
    FB_WRITE_DELETE = 2,
} fb_write_kind;

typedef struct fb_write_entry {
    uint8_t kind;
    fb_span key;
    fb_span value;
} fb_write_entry;

#define FB_WRITE_ENTRY_HEAD 8u

static inline size_t fb_write_entry_bytes(size_t key_len, size_t value_len)
{
    return (FB_WRITE_ENTRY_HEAD + key_len + value_len + 7) & ~(size_t)7;
}

/* The next entry; the reader fails on bytes that are no write set. */
static inline fb_write_entry fb_write_entry_next(fb_reader *r)
{
    fb_write_entry entry = {0, {NULL, 0}, {NULL, 0}};
    fb_span head = fb_read_bytes(r, FB_WRITE_ENTRY_HEAD);
    if (head.p == NULL) return entry;
    entry.kind = head.p[0];
    size_t key_len = fb_load_be16(head.p + 2), value_len = fb_load_be32(head.p + 4);
    size_t rest = fb_write_entry_bytes(key_len, value_len) - FB_WRITE_ENTRY_HEAD;
    const uint8_t *key = fb_read_bytes(r, rest).p;
    if (key == NULL || (entry.kind != FB_WRITE_PUT && entry.kind != FB_WRITE_DELETE)) {
        r->failed = true;
        return entry;
    }
    entry.key = fb_span_of(key, key_len);
    entry.value = fb_span_of(key + key_len, value_len);
    return entry;
}

#endif
