/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen bytes of text at a time: which of them are of a kind, as a mask whose lowest bit stands
 * for the first byte. On SSE2 a few instructions each, elsewhere words; both give the same masks,
 * and a test compiles both and compares them (FB_BLOCK_PORTABLE asks for the words). */
#ifndef FB_BASE_BLOCK_H
#define FB_BASE_BLOCK_H

#include "protocol/base/word.h"

#if defined(__SSE2__) && defined(__x86_64__) && !defined(FB_BLOCK_PORTABLE)
#define FB_BLOCK_SSE2 1
#include <emmintrin.h>
#else
#define FB_BLOCK_SSE2 0
#endif

#define FB_BLOCK_BYTES 16u

/* The number of the first byte of a mask; 16 or more when there is none. */
static inline unsigned fb_block_first(uint32_t mask)
{
    return (unsigned)__builtin_ctz(mask | UINT32_C(1) << FB_BLOCK_BYTES);
}

/* The number of bytes before the first one that is not in the mask: 0 to 16. */
static inline unsigned fb_block_run(uint32_t mask)
{
    return (unsigned)__builtin_ctz(~mask);
}

#if FB_BLOCK_SSE2

static inline __m128i fb_block_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline void fb_block_copy(uint8_t *to, const uint8_t *from)
{
    _mm_storeu_si128((__m128i *)(void *)to, fb_block_load(from));
}

static inline uint32_t fb_block_mask(__m128i hits)
{
    return (uint32_t)_mm_movemask_epi8(hits);
}

/* Bytes that are not plain inside a JSON string: a quote, a backslash, below 0x20, above 0x7f. */
static inline uint32_t fb_block_specials(const uint8_t *p)
{
    __m128i v = fb_block_load(p);
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    __m128i other = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)); /* as signed bytes */
    return fb_block_mask(_mm_or_si128(_mm_or_si128(quote, slash), other));
}

static inline uint32_t fb_block_digits(const uint8_t *p)
{
    /* '0' to '9' become the ten lowest signed bytes. */
    __m128i low = _mm_add_epi8(fb_block_load(p), _mm_set1_epi8((char)(0x80 - '0')));
    return fb_block_mask(_mm_cmplt_epi8(low, _mm_set1_epi8((char)(0x80 + 10))));
}

/* The first `len` bytes of a block, at most 16, as two words filled up with zeros. */
static inline void fb_block_words(const uint8_t *p, unsigned len, uint64_t out[2])
{
    static const uint8_t keep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255, 255};
    __m128i v = _mm_and_si128(fb_block_load(p), fb_block_load(keep + 16 - len));
    out[0] = (uint64_t)_mm_cvtsi128_si64(v);
    out[1] = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v));
}

/* JSON's white space. */
static inline uint32_t fb_block_space(const uint8_t *p)
{
    __m128i v = fb_block_load(p);
    __m128i space = _mm_cmpeq_epi8(v, _mm_set1_epi8(' '));
    __m128i line = _mm_cmpeq_epi8(v, _mm_set1_epi8('\n'));
    __m128i tab = _mm_cmpeq_epi8(v, _mm_set1_epi8('\t'));
    __m128i turn = _mm_cmpeq_epi8(v, _mm_set1_epi8('\r'));
    return fb_block_mask(_mm_or_si128(_mm_or_si128(space, line), _mm_or_si128(tab, turn)));
}

#else

static inline void fb_block_copy(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from, FB_BLOCK_BYTES);
}

/* The top bits of a word's bytes side by side. */
static inline uint32_t fb_block_gather(uint64_t top_bits)
{
    return (uint32_t)(((top_bits & FB_WORD(0x80)) >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

/* The top bit of each byte that is less than `least`, of bytes below 0x80. */
static inline uint64_t fb_block_below(uint64_t low, uint64_t least)
{
    return ~(low + FB_WORD(0x80) - FB_WORD(1) * least);
}

/* The top bit of each byte that is c, which is below 0x80. */
static inline uint64_t fb_block_equal(uint64_t w, uint64_t c)
{
    uint64_t other = w ^ FB_WORD(1) * c;
    return ~(((other & FB_WORD(0x7f)) + FB_WORD(0x7f)) | other);
}

static inline uint64_t fb_block_specials_of(uint64_t w)
{
    return fb_block_equal(w, '"') | fb_block_equal(w, '\\') |
           fb_block_below(w & FB_WORD(0x7f), 0x20) | w;
}

static inline uint64_t fb_block_digits_of(uint64_t w)
{
    uint64_t low = w & FB_WORD(0x7f);
    return ~w & ~fb_block_below(low, '0') & fb_block_below(low, '9' + 1);
}

static inline uint64_t fb_block_space_of(uint64_t w)
{
    return fb_block_equal(w, ' ') | fb_block_equal(w, '\n') | fb_block_equal(w, '\t') |
           fb_block_equal(w, '\r');
}

static inline void fb_block_words(const uint8_t *p, unsigned len, uint64_t out[2])
{
    uint64_t keep = len % 8 != 0 ? UINT64_MAX >> (64 - 8 * (len % 8)) : 0;
    out[0] = fb_word_load(p) & (len < 8 ? keep : UINT64_MAX);
    out[1] = len < 8 ? 0 : fb_word_load(p + 8) & (len < 16 ? keep : UINT64_MAX);
}

static inline uint32_t fb_block_specials(const uint8_t *p)
{
    return fb_block_gather(fb_block_specials_of(fb_word_load(p))) |
           fb_block_gather(fb_block_specials_of(fb_word_load(p + 8))) << 8;
}

static inline uint32_t fb_block_digits(const uint8_t *p)
{
    return fb_block_gather(fb_block_digits_of(fb_word_load(p))) |
           fb_block_gather(fb_block_digits_of(fb_word_load(p + 8))) << 8;
}

static inline uint32_t fb_block_space(const uint8_t *p)
{
    return fb_block_gather(fb_block_space_of(fb_word_load(p))) |
           fb_block_gather(fb_block_space_of(fb_word_load(p + 8))) << 8;
}

#endif

#endif
