/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed draws. A draw is a function of (seed, stream, entity, occurrence), never "the next number":
 * taking one away shifts no other. Nothing secret is drawn here. */
#ifndef FB_BASE_DRAW_H
#define FB_BASE_DRAW_H

#include "protocol/base/types.h"

typedef struct fb_seed {
    uint64_t lo;
    uint64_t hi;
} fb_seed;

/* Uniform over all 64-bit values. */
uint64_t fb_draw(fb_seed seed, uint32_t stream, uint64_t entity, uint64_t occurrence);

/* The same in two steps, for who draws often under one seed, stream and entity. */
uint64_t fb_draw_base(fb_seed seed, uint32_t stream, uint64_t entity);
uint64_t fb_draw_at(uint64_t base, uint64_t occurrence);

/* Uniform over 0 .. bound-1 without bias; bound 0 gives 0. */
uint64_t fb_draw_below(fb_seed seed, uint32_t stream, uint64_t entity, uint64_t occurrence,
                       uint64_t bound);

/* True with probability numerator / denominator. */
bool fb_draw_chance(fb_seed seed, uint32_t stream, uint64_t entity, uint64_t occurrence,
                    uint64_t numerator, uint64_t denominator);

/* A seed for a part of a run: independent of every draw made with `seed` itself. */
fb_seed fb_seed_derive(fb_seed seed, uint32_t stream, uint64_t entity);

/* The core's own streams; the simulator's start at 1000. */
enum fb_stream {
    FB_STREAM_UUID = 1,     /* entity: incarnation, occurrence: count of ids */
    FB_STREAM_REDIAL = 2,   /* entity: address number, occurrence: attempt */
    FB_STREAM_SESSION = 3,  /* entity: incarnation, occurrence: count of sessions */
    FB_STREAM_SALT = 4,     /* entity: incarnation, occurrence: count of salts */
    FB_STREAM_ONWARD = 5,   /* entity: area number, occurrence: announcement */
    FB_STREAM_BEAT = 6,     /* entity: link number */
    FB_STREAM_DERIVE = 999, /* fb_seed_derive */
};

#endif
