/* SPDX-License-Identifier: Apache-2.0 */
/* Eight bytes at a time: words whose lowest byte is the first in memory, on every machine. */
#ifndef FB_BASE_WORD_H
#define FB_BASE_WORD_H

#include "protocol/base/types.h"

/* A word with one byte value in each place. */
#define FB_WORD(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t fb_word_load(const uint8_t *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* Four bytes, in the low half. */
static inline uint64_t fb_word_load_half(const uint8_t *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap32(w);
#endif
    return w;
}

/* The same bytes as a big-endian number. */
static inline uint64_t fb_load_be64(const uint8_t *p)
{
    return __builtin_bswap64(fb_word_load(p));
}

/* Big-endian numbers of two and four bytes. */
static inline uint16_t fb_load_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t fb_load_be32(const uint8_t *p)
{
    return __builtin_bswap32((uint32_t)fb_word_load_half(p));
}

static inline void fb_word_store(uint8_t *p, uint64_t w)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    memcpy(p, &w, sizeof w);
}

/* The same as big-endian numbers, of eight, four and two bytes. */
static inline void fb_store_be64(uint8_t *p, uint64_t v)
{
    fb_word_store(p, __builtin_bswap64(v));
}

static inline void fb_store_be32(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, sizeof v);
}

static inline void fb_store_be16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Bytes that do not overlap, as a rule few: up to 64 are moved here, the ends twice where they
 * meet.
 */
static inline void fb_copy(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len > 64) {
        memcpy(to, from, len);
    } else if (len >= 32) {
        memcpy(to, from, 32);
        memcpy(to + len - 32, from + len - 32, 32);
    } else if (len >= 16) {
        memcpy(to, from, 16);
        memcpy(to + len - 16, from + len - 16, 16);
    } else if (len >= 8) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else {
        for (size_t i = 0; i < len; i++) to[i] = from[i];
    }
}

/* The number of the lowest bit that is set in a word that is not 0. */
static inline unsigned fb_word_lowest(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

/* The number of the first byte whose top bit is set in a word that is not 0. */
static inline unsigned fb_word_first(uint64_t top_bits)
{
    return (unsigned)__builtin_ctzll(top_bits) >> 3;
}

#endif
