/* SPDX-License-Identifier: Apache-2.0 */
/* One pool of byte strings for the whole world: keys and values of all simulated stores, and
 * buffers of what is on its way.
 *
 * A blob is named by a 32-bit number, its place in units of 16 bytes; 0 is none. A number of
 * references is kept before its bytes, which are aligned to 8. All memory is taken at the start. */
#ifndef FB_SIM_WORLD_BLOBS_H
#define FB_SIM_WORLD_BLOBS_H

#include "protocol/base/alloc.h"

typedef uint32_t fb_sim_blob;

#define FB_SIM_BLOB_CLASSES 64

typedef struct fb_sim_blobs {
    uint8_t *memory;
    uint64_t capacity; /* bytes */
    uint64_t used;     /* bytes ever carved from memory */
    uint64_t live;     /* bytes in blobs that are held now */
    uint64_t live_peak;
    uint8_t poison; /* fills what was made and is not written yet; 0: nothing does */
    fb_sim_blob free[FB_SIM_BLOB_CLASSES];
} fb_sim_blobs;

/* Stands before the bytes of each blob. */
typedef struct fb_sim_blob_head {
    uint32_t references;
    uint32_t len; /* of a free one: the next of its class */
} fb_sim_blob_head;

/* memory: capacity bytes aligned to 16. */
void fb_sim_blobs_init(fb_sim_blobs *blobs, uint8_t *memory, uint64_t capacity);

/* A blob of len bytes of any content, to be filled in by the caller. When the pool is spent the run
 * ends as `resource` (fb_sim_fail_resource). */
fb_sim_blob fb_sim_blob_make(fb_sim_blobs *blobs, size_t len);
void fb_sim_blob_drop(fb_sim_blobs *blobs, fb_sim_blob blob);

static inline fb_sim_blob_head *fb_sim_blob_head_of(const fb_sim_blobs *blobs, fb_sim_blob blob)
{
    return (fb_sim_blob_head *)(void *)(blobs->memory + (uint64_t)blob * 16);
}

/* For who made it, before anybody else holds it. */
static inline uint8_t *fb_sim_blob_writable(const fb_sim_blobs *blobs, fb_sim_blob blob)
{
    return (uint8_t *)(fb_sim_blob_head_of(blobs, blob) + 1);
}

static inline fb_span fb_sim_blob_bytes(const fb_sim_blobs *blobs, fb_sim_blob blob)
{
    const fb_sim_blob_head *head = fb_sim_blob_head_of(blobs, blob);
    return fb_span_of(head + 1, head->len);
}

static inline void fb_sim_blob_hold(const fb_sim_blobs *blobs, fb_sim_blob blob)
{
    fb_sim_blob_head_of(blobs, blob)->references++;
}

#endif
