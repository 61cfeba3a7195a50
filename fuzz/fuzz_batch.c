/* SPDX-License-Identifier: Apache-2.0 */
/* A batch from the wire: decode it, hash every leaf, and merge its changes into one record, which
 * must read back as what was merged. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fuzz/mutate.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool never(void *user, const uint8_t dot[FB_DOT_BYTES])
{
    (void)user;
    return (dot[31] & 1) != 0;
}

static void require(bool condition)
{
    if (!condition) abort();
}

static fb_change changes[FB_BATCH_CHANGES_MAX];

static void merge(const fb_batch *batch)
{
    static uint8_t stored[FB_RECORD_BYTES_MAX_STORED], out[FB_RECORD_BYTES_MAX_STORED],
        scratch[FB_RECORD_BYTES_MAX_STORED];
    size_t len = 0;
    fb_merge_ops ops = {.covered = never};
    for (uint32_t i = 0; i < batch->count; i++) {
        const fb_change *change = &changes[i];
        fb_dot dot = {{{1}}, batch->incarnation, batch->first_seq + i};
        uint8_t leaf[32];
        fb_change_leaf(change, dot, leaf);
        if (change->form != FB_CHANGE_WHOLE || change->holes) continue;
        fb_record record;
        fb_merged merged;
        require(fb_record_decode(fb_span_of(stored, len), &record) == FB_OK);
        if (fb_record_merge(&record, change, dot, &ops, out, scratch, sizeof out, &merged) !=
            FB_OK) {
            continue;
        }
        require(fb_record_decode(merged.stored, &record) == FB_OK);
        require(memcmp(record.fingerprint, merged.fingerprint, 16) == 0);
        len = merged.stored.len;
        memcpy(stored, out, len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fb_batch batch;
    if (fb_batch_decode(fb_span_of(data, size), &batch, changes) == FB_OK) merge(&batch);
    /* The same bytes as what a damaged store might give. */
    fb_record record;
    if (fb_record_decode(fb_span_of(data, size), &record) == FB_OK) {
        int64_t stamp;
        fb_record_visible(&record, 0, &stamp);
    }
    return 0;
}

/* ---- Mutation: an item, the number of items, or anything ---- */

#define COUNT_AT (16u + 16 + 32 + 24 + 1 + 32) /* in a header without one before it */

/* One item and its length. */
typedef struct item {
    size_t at, len;
} item;

/* The items of what has the frame of a batch; *count_at is where their number stands. */
static unsigned items_of(fb_span in, item *items, unsigned most, size_t *count_at)
{
    fb_reader r = fb_reader_of(in);
    (void)fb_read_u8(&r);
    fb_span header = fb_read_span16(&r);
    (void)fb_read_bytes(&r, 64);
    if (r.failed || header.len < FB_BATCH_HEADER_BYTES - 48) return 0;
    *count_at = (size_t)(header.p - in.p) + COUNT_AT + (header.p[88] == 1 ? 48 : 0);
    if (*count_at + 2 > (size_t)(header.p - in.p) + header.len) return 0;
    unsigned n = 0;
    while (n < most && fb_reader_left(&r) != 0) {
        fb_span bytes = fb_read_bytes(&r, fb_read_u32(&r));
        if (r.failed) break;
        items[n++] = (item){(size_t)(bytes.p - in.p), bytes.len};
    }
    return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    item items[FB_BATCH_CHANGES_MAX];
    size_t count_at = 0;
    unsigned n = items_of(fb_span_of(data, size), items, FB_BATCH_CHANGES_MAX, &count_at);
    unsigned how = fb_fuzz_draw(&seed, 8);
    if (n == 0 || how == 0) return LLVMFuzzerMutate(data, size, max_size);
    item one = items[fb_fuzz_draw(&seed, n)];
    size_t head = one.at - 4, whole = one.len + 4;
    if (how == 1 && n > 1) { /* one less */
        memmove(data + head, data + head + whole, size - head - whole);
        fb_store_be(data + count_at, n - 1, 2);
        return size - whole;
    }
    if (how == 2 && whole <= max_size - size && n < FB_BATCH_CHANGES_MAX) { /* one twice */
        memmove(data + head + whole, data + head, size - head);
        fb_store_be(data + count_at, n + 1, 2);
        return size + whole;
    }
    size_t now;
    size = fb_fuzz_mutate_within(data, size, max_size, one.at, one.len, &now);
    fb_store_be(data + head, now, 4);
    fb_store_be(data + count_at, n, 2);
    return size;
}
