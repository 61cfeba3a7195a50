/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hex.h"

#include "protocol/base/block.h"

/* clang-format off */
#define NONE16                                                                                     \
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff

const uint8_t fb_hex_value[256] = {
    NONE16, NONE16, NONE16,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    NONE16, NONE16,
    0xff, 10, 11, 12, 13, 14, 15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    NONE16,
    NONE16, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16,
};
/* clang-format on */

void fb_hex_format(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

void fb_hex_text(const uint8_t *bytes, size_t len, char *out)
{
    fb_hex_format(bytes, len, out);
    out[2 * len] = 0;
}

/* Eight digits in a word, the first one lowest, as four bytes in its low half. *wrong is no longer
 * 0 when one of them is no digit. */
static uint64_t eight_digits(uint64_t text, uint64_t *wrong)
{
    /* Letters have the bit of 0x40, digits have not; 9 more than its low half is a letter's value.
     */
    uint64_t letters = (text >> 6) & FB_WORD(1);
    uint64_t values = (text & FB_WORD(15)) + letters * 9;
    /* Right if these values are written so, letters are those from 10 on, and none is above 15. */
    uint64_t written = values + FB_WORD('0') + letters * ('a' - '0' - 10);
    uint64_t from_ten = ((values + FB_WORD(128 - 10)) >> 7) & FB_WORD(1);
    *wrong |= (written ^ text) | (from_ten ^ letters) | (values & FB_WORD(0xf0));
    uint64_t pairs = (values << 4 | values >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    pairs = (pairs | pairs >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (pairs | pairs >> 16) & UINT64_C(0xffffffff);
}

#if FB_BLOCK_SSE2

/* 16 digits: their values; what is no digit is not in *good. */
static inline __m128i digit_values(__m128i text, __m128i *good)
{
    __m128i digit = _mm_sub_epi8(text, _mm_set1_epi8('0'));
    __m128i letter = _mm_sub_epi8(text, _mm_set1_epi8('a'));
    __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
    __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
    *good = _mm_and_si128(*good, _mm_or_si128(is_digit, is_letter));
    return _mm_or_si128(_mm_and_si128(is_digit, digit),
                        _mm_and_si128(is_letter, _mm_add_epi8(letter, _mm_set1_epi8(10))));
}

/* Pairs of values as bytes, in the low halves of words of 16 bits. */
static inline __m128i pairs_of(__m128i values)
{
    __m128i both = _mm_or_si128(_mm_slli_epi16(values, 4), _mm_srli_epi16(values, 8));
    return _mm_and_si128(both, _mm_set1_epi16(0xff));
}

bool fb_hex_parse_words(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint8_t out[16])
{
    __m128i good = _mm_set1_epi8(-1);
    __m128i first = digit_values(_mm_set_epi64x((long long)b, (long long)a), &good);
    __m128i last = digit_values(_mm_set_epi64x((long long)d, (long long)c), &good);
    __m128i bytes = _mm_packus_epi16(pairs_of(first), pairs_of(last));
    _mm_storeu_si128((__m128i *)(void *)out, bytes);
    return fb_block_mask(good) == 0xffff;
}

#else

bool fb_hex_parse_words(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint8_t out[16])
{
    uint64_t wrong = 0;
    uint64_t words[4] = {eight_digits(a, &wrong), eight_digits(b, &wrong), eight_digits(c, &wrong),
                         eight_digits(d, &wrong)};
    fb_word_store(out, words[1] << 32 | words[0]);
    fb_word_store(out + 8, words[3] << 32 | words[2]);
    return wrong == 0;
}

#endif

bool fb_hex_parse(fb_span text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len) return false;
    bool good = true;
    uint64_t wrong = 0;
    size_t at = 0;
    for (; len - at >= 16; at += 16) {
        const uint8_t *p = text.p + 2 * at;
        good &= fb_hex_parse_words(fb_word_load(p), fb_word_load(p + 8), fb_word_load(p + 16),
                                   fb_word_load(p + 24), out + at);
    }
    if (len - at >= 8) {
        uint64_t low = eight_digits(fb_word_load(text.p + 2 * at), &wrong);
        uint64_t high = eight_digits(fb_word_load(text.p + 2 * at + 8), &wrong);
        fb_word_store(out + at, high << 32 | low);
        at += 8;
    }
    /* What is no digit has its upper bits set: one look at the union of all values is enough. */
    uint8_t seen = 0;
    for (; at < len; at++) {
        uint8_t hi = fb_hex_value[text.p[2 * at]], lo = fb_hex_value[text.p[2 * at + 1]];
        seen |= hi | lo;
        out[at] = (uint8_t)(hi << 4 | lo);
    }
    return good && wrong == 0 && seen <= 15;
}
