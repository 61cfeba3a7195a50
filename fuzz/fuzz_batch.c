/* SPDX-License-Identifier: Apache-2.0 */
/* A batch from the wire: decode it, hash every leaf, and merge its changes into one record, which
 * must read back as what was merged. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "protocol/database/batch.h"
#include "protocol/database/record.h"

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
