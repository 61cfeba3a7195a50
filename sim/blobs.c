/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/blobs.h"

#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "sim/fail.h"

/* Stands before the bytes of each blob. */
typedef struct blob_head {
    uint32_t references;
    uint32_t len;
    uint32_t hash; /* of an interned one */
    uint32_t next; /* in its bucket, or in the list of free ones of its class */
} blob_head;

_Static_assert(sizeof(blob_head) == 16, "numbers of blobs count units of 16 bytes");

#define INTERNED 0x80000000u

void fb_sim_blobs_init(fb_sim_blobs *blobs, uint8_t *memory, uint64_t capacity, uint32_t *buckets,
                       uint32_t bucket_count)
{
    FB_ASSERT(bucket_count != 0 && (bucket_count & (bucket_count - 1)) == 0);
    FB_ASSERT(capacity / 16 <= UINT32_MAX);
    *blobs = (fb_sim_blobs){
        .memory = memory,
        .capacity = capacity,
        .used = 32, /* numbers 0 and 1 are no blobs: stores give them a meaning */
        .buckets = buckets,
        .bucket_mask = bucket_count - 1,
    };
}

static blob_head *head_of(const fb_sim_blobs *blobs, fb_sim_blob blob)
{
    return (blob_head *)(void *)(blobs->memory + (uint64_t)blob * 16);
}

/* Classes in units of 16 bytes: 1, 2, 3, 4, then four steps to each doubling. */
static uint32_t class_of(uint32_t units, uint32_t *rounded)
{
    if (units <= 4) {
        *rounded = units == 0 ? 1 : units;
        return *rounded - 1;
    }
    uint32_t shift = 0;
    while ((units - 1) >> shift >= 8) shift++;
    /* (units - 1) >> shift is 4..7. */
    uint32_t step = ((units - 1) >> shift) + 1;
    *rounded = step << shift;
    return 4 * shift + step - 1;
}

static fb_sim_blob take(fb_sim_blobs *blobs, size_t len)
{
    FB_ASSERT(len <= UINT32_MAX / 2);
    uint32_t units;
    uint32_t class = class_of((uint32_t)((len + 15) / 16), &units);
    FB_ASSERT(class < FB_SIM_BLOB_CLASSES);
    uint64_t bytes = ((uint64_t)units + 1) * 16;
    fb_sim_blob blob = blobs->free[class];
    if (blob != 0) {
        blobs->free[class] = head_of(blobs, blob)->next;
    } else {
        if (bytes > blobs->capacity - blobs->used) fb_sim_fail_resource("the pool of blobs");
        blob = (fb_sim_blob)(blobs->used / 16);
        blobs->used += bytes;
    }
    blobs->live += bytes;
    if (blobs->live > blobs->live_peak) blobs->live_peak = blobs->live;
    *head_of(blobs, blob) = (blob_head){.references = 1, .len = (uint32_t)len};
    return blob;
}

static uint32_t hash_of(fb_span bytes)
{
    return (uint32_t)fb_xxh64(bytes.p, bytes.len, 0);
}

static fb_sim_blob find(const fb_sim_blobs *blobs, fb_span bytes, uint32_t hash)
{
    fb_sim_blob blob = blobs->buckets[hash & blobs->bucket_mask];
    while (blob != 0) {
        const blob_head *head = head_of(blobs, blob);
        if (head->hash == hash && head->len == bytes.len &&
            (bytes.len == 0 || memcmp(head + 1, bytes.p, bytes.len) == 0)) {
            return blob;
        }
        blob = head->next;
    }
    return 0;
}

fb_sim_blob fb_sim_blob_find(const fb_sim_blobs *blobs, fb_span bytes)
{
    return find(blobs, bytes, hash_of(bytes));
}

fb_sim_blob fb_sim_blob_intern(fb_sim_blobs *blobs, fb_span bytes)
{
    uint32_t hash = hash_of(bytes);
    fb_sim_blob blob = find(blobs, bytes, hash);
    if (blob != 0) {
        fb_sim_blob_hold(blobs, blob);
        return blob;
    }
    blob = take(blobs, bytes.len);
    blob_head *head = head_of(blobs, blob);
    if (bytes.len != 0) memcpy(head + 1, bytes.p, bytes.len);
    uint32_t *bucket = &blobs->buckets[hash & blobs->bucket_mask];
    head->references |= INTERNED;
    head->hash = hash;
    head->next = *bucket;
    *bucket = blob;
    return blob;
}

fb_sim_blob fb_sim_blob_make(fb_sim_blobs *blobs, size_t len)
{
    fb_sim_blob blob = take(blobs, len);
    if (blobs->poison != 0) memset(fb_sim_blob_writable(blobs, blob), blobs->poison, len);
    return blob;
}

uint8_t *fb_sim_blob_writable(fb_sim_blobs *blobs, fb_sim_blob blob)
{
    blob_head *head = head_of(blobs, blob);
    FB_ASSERT((head->references & INTERNED) == 0);
    return (uint8_t *)(head + 1);
}

fb_span fb_sim_blob_bytes(const fb_sim_blobs *blobs, fb_sim_blob blob)
{
    const blob_head *head = head_of(blobs, blob);
    return fb_span_of(head + 1, head->len);
}

void fb_sim_blob_hold(fb_sim_blobs *blobs, fb_sim_blob blob)
{
    head_of(blobs, blob)->references++;
}

void fb_sim_blob_drop(fb_sim_blobs *blobs, fb_sim_blob blob)
{
    if (blob == 0) return;
    blob_head *head = head_of(blobs, blob);
    FB_ASSERT((head->references & ~INTERNED) != 0);
    head->references--;
    if ((head->references & ~INTERNED) != 0) return;
    if ((head->references & INTERNED) != 0) {
        uint32_t *link = &blobs->buckets[head->hash & blobs->bucket_mask];
        while (*link != blob) link = &head_of(blobs, *link)->next;
        *link = head->next;
    }
    uint32_t units;
    uint32_t class = class_of((head->len + 15) / 16, &units);
    blobs->live -= ((uint64_t)units + 1) * 16;
    head->references = 0;
    head->next = blobs->free[class];
    blobs->free[class] = blob;
}
