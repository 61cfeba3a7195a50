/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of an instance. All of it is taken while the instance is created, from the allocator that
 * its options name; after the first step an instance asks for none. */
#ifndef FB_BASE_ALLOC_H
#define FB_BASE_ALLOC_H

#include "protocol/base/types.h"

/* The caller's allocator. Both functions are called from fb_node_create and fb_node_destroy only.
 * allocate returns `bytes` bytes of zeros aligned to 16, or NULL; release gets what allocate gave,
 * with the same size. Zeros are the caller's business because fresh pages have them for nothing: a
 * table that nobody uses then takes no memory. */
typedef struct fb_allocator {
    void *user;
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory, size_t bytes);
} fb_allocator;

/* A bump arena with two passes: with base NULL it only measures, so that one allocation of exactly
 * the right size serves a whole instance. */
typedef struct fb_arena {
    uint8_t *base;
    size_t used;
    size_t cap;
} fb_arena;

/* Room (zeros, as allocated) for count * size bytes, aligned to 16. While measuring it returns
 * NULL (and `used` is SIZE_MAX from then on where no memory is so large), and NULL as well when the
 * room is spent (which asserts in the second pass, as both passes are one code). */
void *fb_arena_take(fb_arena *arena, size_t count, size_t size);

#endif
