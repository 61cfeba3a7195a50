/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/draw.h"

/* The finaliser of SplitMix64: a bijection with full avalanche. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x;
}

uint64_t fb_draw_base(fb_seed seed, uint32_t stream, uint64_t entity)
{
    uint64_t x = mix(seed.lo + UINT64_C(0x9e3779b97f4a7c15));
    x = mix(x ^ (seed.hi + UINT64_C(0xd1b54a32d192ed03)));
    x = mix(x ^ (stream * UINT64_C(0x8cb92ba72f3d8dd7) + 1));
    return mix(x + entity);
}

uint64_t fb_draw_at(uint64_t base, uint64_t occurrence)
{
    return mix(base ^ (occurrence * UINT64_C(0xaef17502108ef2d9) + 3));
}

uint64_t fb_draw(fb_seed seed, uint32_t stream, uint64_t entity, uint64_t occurrence)
{
    return fb_draw_at(fb_draw_base(seed, stream, entity), occurrence);
}

uint64_t fb_draw_below(fb_seed seed, uint32_t stream, uint64_t entity, uint64_t occurrence,
                       uint64_t bound)
{
    if (bound == 0) return 0;
    uint64_t x = fb_draw(seed, stream, entity, occurrence);
    if ((bound & (bound - 1)) == 0) return x & (bound - 1);
    /* Values at or above the last whole multiple of the bound would favour small results. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    while (x >= limit) x = mix(x + UINT64_C(0x9e3779b97f4a7c15));
    return x % bound;
}

bool fb_draw_chance(fb_seed seed, uint32_t stream, uint64_t entity, uint64_t occurrence,
                    uint64_t numerator, uint64_t denominator)
{
    if (numerator == 0) return false;
    return fb_draw_below(seed, stream, entity, occurrence, denominator) < numerator;
}

fb_seed fb_seed_derive(fb_seed seed, uint32_t stream, uint64_t entity)
{
    fb_seed derived;
    derived.lo = fb_draw(seed, FB_STREAM_DERIVE, entity, (uint64_t)stream * 2);
    derived.hi = fb_draw(seed, FB_STREAM_DERIVE, entity, (uint64_t)stream * 2 + 1);
    return derived;
}
