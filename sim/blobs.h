/* SPDX-License-Identifier: Apache-2.0 */
/* One pool of byte strings for the whole world: keys and values of all simulated stores, kept once
 * however many nodes hold them, and buffers of what is on its way.
 *
 * A blob is named by a 32-bit number, its place in units of 16 bytes; 0 is
 * none and 1 is never given. Interned blobs are
 * shared and never written; plain ones belong to who made them. Both are counted. All memory is
 * taken at the start. */
#ifndef FB_SIM_BLOBS_H
#define FB_SIM_BLOBS_H

#include "protocol/base/alloc.h"

typedef uint32_t fb_sim_blob;

#define FB_SIM_BLOB_CLASSES 64

typedef struct fb_sim_blobs {
    uint8_t *memory;
    uint64_t capacity; /* bytes */
    uint64_t used;     /* bytes ever carved from memory */
    uint64_t live;     /* bytes in blobs that are held now */
    uint64_t live_peak;
    uint32_t *buckets; /* of interned blobs */
    uint32_t bucket_mask;
    uint8_t poison; /* fills what was made and is not written yet; 0: nothing does */
    fb_sim_blob free[FB_SIM_BLOB_CLASSES];
} fb_sim_blobs;

/* memory: capacity bytes aligned to 16. buckets: a power of two, zeroed. */
void fb_sim_blobs_init(fb_sim_blobs *blobs, uint8_t *memory, uint64_t capacity, uint32_t *buckets,
                       uint32_t bucket_count);

/* The blob of these bytes, with one more reference. When the pool is spent the run ends as
 * `resource` (fb_sim_fail_resource). */
fb_sim_blob fb_sim_blob_intern(fb_sim_blobs *blobs, fb_span bytes);

/* The interned blob of these bytes without a further reference, or 0. */
fb_sim_blob fb_sim_blob_find(const fb_sim_blobs *blobs, fb_span bytes);

/* A private blob of len bytes of any content, to be filled in by the caller. */
fb_sim_blob fb_sim_blob_make(fb_sim_blobs *blobs, size_t len);
uint8_t *fb_sim_blob_writable(fb_sim_blobs *blobs, fb_sim_blob blob);

fb_span fb_sim_blob_bytes(const fb_sim_blobs *blobs, fb_sim_blob blob);
void fb_sim_blob_hold(fb_sim_blobs *blobs, fb_sim_blob blob);
void fb_sim_blob_drop(fb_sim_blobs *blobs, fb_sim_blob blob);

#endif
