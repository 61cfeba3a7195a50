/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest driver outside of the source tree: creates a node from the installed library, starts
 * it, and sees that it asks its store for what it knew. Its provider gives no security. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/core/node.h"

_Noreturn void fb_assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return calloc(1, bytes);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static fb_status public_key(void *user, fb_key_handle key, fb_b32 *out)
{
    (void)user;
    memset(out->b, (int)key, sizeof out->b);
    return FB_OK;
}

static void sha256(void *user, const fb_span *parts, size_t count, fb_b32 *out)
{
    (void)user;
    fb_blake3(parts, count, out->b, sizeof out->b);
}

int main(void)
{
    fb_provider provider = {.public_key = public_key, .dh_public = public_key, .sha256 = sha256};
    fb_options options = fb_options_small();
    options.allocator = (fb_allocator){NULL, allocate, release};
    options.provider = &provider;
    options.identity_key = 1;
    options.link_key = 2;
    fb_node *node;
    if (fb_node_create(&options, &node) != FB_OK) return 1;

    fb_effects fx = {.capacity = (fb_effects_bytes_min(&options) + 15) & ~(size_t)15};
    fx.memory = aligned_alloc(16, fx.capacity);
    fb_event start = {.kind = FB_EV_START, .a = 1, .b = 2, .c = 3};
    if (fx.memory == NULL || fb_node_step(node, &start, &fx) != FB_OK) return 2;
    unsigned reads = 0;
    for (const fb_effect *e = fb_effects_next(&fx, NULL); e != NULL; e = fb_effects_next(&fx, e)) {
        reads += e->kind == FB_FX_READ;
    }
    printf("consumer: a node of %zu bytes starts with %u read\n", fb_node_bytes(node), reads);
    free(fx.memory);
    fb_node_destroy(node);
    return reads == 1 ? 0 : 3;
}
