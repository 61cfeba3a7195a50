/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of 128 bits for what is short and hashed at every step: objects of the digest, the
 * simulator's keyed tags. One multiplication for 16 bytes; a function of the bytes alone, the same
 * on every machine. No secrecy, and nobody who may choose the bytes gains by a collision. */
#ifndef FB_BASE_MIX_H
#define FB_BASE_MIX_H

#include "protocol/base/hash.h"
#include "protocol/base/word.h"

/* Two words that take in two more at a time. */
typedef struct fb_mix {
    uint64_t a;
    uint64_t b;
} fb_mix;

/* x * y in full. */
static inline fb_hash128 fb_multiply(uint64_t x, uint64_t y)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)x * y;
    return (fb_hash128){(uint64_t)product, (uint64_t)(product >> 64)};
#else
    const uint64_t low = UINT64_C(0xffffffff);
    uint64_t ll = (x & low) * (y & low), lh = (x & low) * (y >> 32);
    uint64_t hl = (x >> 32) * (y & low), hh = (x >> 32) * (y >> 32);
    uint64_t middle = (ll >> 32) + (lh & low) + hl;
    return (fb_hash128){middle << 32 | (ll & low), hh + (lh >> 32) + (middle >> 32)};
#endif
}

static inline void fb_mix_take(fb_mix *mix, uint64_t x, uint64_t y)
{
    fb_hash128 product = fb_multiply(mix->a ^ x, mix->b ^ y);
    mix->b += product.hi;
    mix->a = product.lo ^ mix->b;
}

/* Two of them side by side, so that the multiplications of one need not wait for the other's. The
 * end is padded with zeros; the length is a part of what is hashed. */
static inline fb_hash128 fb_mix128(const uint8_t *p, size_t len, uint64_t key)
{
    fb_mix even = {key ^ UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)};
    fb_mix odd = {key ^ UINT64_C(0xa4093822299f31d0), UINT64_C(0x082efa98ec4e6c89)};
    size_t left = len;
    for (; left >= 32; left -= 32, p += 32) {
        fb_mix_take(&even, fb_word_load(p), fb_word_load(p + 8));
        fb_mix_take(&odd, fb_word_load(p + 16), fb_word_load(p + 24));
    }
    if (left >= 16) {
        fb_mix_take(&even, fb_word_load(p), fb_word_load(p + 8));
        left -= 16;
        p += 16;
    }
    uint64_t first = 0, second = 0;
    if (left >= 8) {
        first = fb_word_load(p);
        left -= 8;
        p += 8;
        for (size_t i = left; i-- > 0;) second = second << 8 | p[i];
    } else {
        for (size_t i = left; i-- > 0;) first = first << 8 | p[i];
    }
    fb_mix_take(&odd, first, second);
    fb_mix_take(&even, odd.a ^ len, odd.b);
    fb_mix_take(&even, UINT64_C(0x452821e638d01377), UINT64_C(0xbe5466cf34e90c6c));
    return (fb_hash128){even.a, even.b};
}

#endif
