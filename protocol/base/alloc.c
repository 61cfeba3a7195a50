/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/alloc.h"

#include "protocol/base/assert.h"

void *fb_arena_take(fb_arena *arena, size_t count, size_t size)
{
    size_t at = arena->used;
    bool fits = size == 0 || count <= (SIZE_MAX / 4) / size;
    size_t bytes = fits ? (count * size + 15) & ~(size_t)15 : 0;
    if (!fits || at > SIZE_MAX / 2 - bytes) {
        FB_ASSERT(arena->base == NULL);
        arena->used = SIZE_MAX;
        return NULL;
    }
    arena->used = at + bytes;
    if (arena->base == NULL) return NULL;
    FB_ASSERT(arena->used <= arena->cap);
    return arena->base + at;
}
