/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/blobs.h"

#include "protocol/base/assert.h"
#include "sim/world/fail.h"

_Static_assert(sizeof(fb_sim_blob_head) == 8, "what stands in a blob is aligned to 8");

void fb_sim_blobs_init(fb_sim_blobs *blobs, uint8_t *memory, uint64_t capacity)
{
    FB_ASSERT(capacity / 16 <= UINT32_MAX);
    *blobs = (fb_sim_blobs){
        .memory = memory, .capacity = capacity, .used = 16, /* number 0 is no blob */
    };
}

/* Classes in units of 16 bytes: 1, 2, 3, 4, then four steps to each doubling. */
static uint32_t class_of(uint32_t units, uint32_t *rounded)
{
    if (units <= 4) {
        *rounded = units == 0 ? 1 : units;
        return *rounded - 1;
    }
    /* So far that three bits are left. */
    uint32_t shift = 29 - (uint32_t)__builtin_clz(units - 1);
    /* (units - 1) >> shift is 4..7. */
    uint32_t step = ((units - 1) >> shift) + 1;
    *rounded = step << shift;
    return 4 * shift + step - 1;
}

/* Head and bytes. */
static uint32_t class_for(size_t len, uint32_t *units)
{
    FB_ASSERT(len <= UINT32_MAX / 2);
    uint32_t class = class_of((uint32_t)((sizeof(fb_sim_blob_head) + len + 15) / 16), units);
    FB_ASSERT(class < FB_SIM_BLOB_CLASSES);
    return class;
}

fb_sim_blob fb_sim_blob_make(fb_sim_blobs *blobs, size_t len)
{
    uint32_t units;
    uint32_t class = class_for(len, &units);
    uint64_t bytes = (uint64_t)units * 16;
    fb_sim_blob blob = blobs->free[class];
    if (blob != 0) {
        blobs->free[class] = fb_sim_blob_head_of(blobs, blob)->len;
    } else {
        if (bytes > blobs->capacity - blobs->used) fb_sim_fail_resource("the pool of blobs");
        blob = (fb_sim_blob)(blobs->used / 16);
        blobs->used += bytes;
    }
    blobs->live += bytes;
    if (blobs->live > blobs->live_peak) blobs->live_peak = blobs->live;
    *fb_sim_blob_head_of(blobs, blob) = (fb_sim_blob_head){1, (uint32_t)len};
    if (blobs->poison != 0) memset(fb_sim_blob_writable(blobs, blob), blobs->poison, len);
    return blob;
}

void fb_sim_blob_drop(fb_sim_blobs *blobs, fb_sim_blob blob)
{
    if (blob == 0) return;
    fb_sim_blob_head *head = fb_sim_blob_head_of(blobs, blob);
    FB_ASSERT(head->references != 0);
    if (--head->references != 0) return;
    uint32_t units;
    uint32_t class = class_for(head->len, &units);
    blobs->live -= (uint64_t)units * 16;
    head->len = blobs->free[class];
    blobs->free[class] = blob;
}
