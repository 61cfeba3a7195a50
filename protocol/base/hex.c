/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hex.h"

#include "protocol/base/word.h"

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

/* Eight digits at once into four bytes. Digits are 0x30 to 0x39 and letters 0x61 to 0x66: bit 5 is
 * set in all, bit 6 tells letters, and bit 4 is its opposite. */
static bool parse_eight(const uint8_t *text, uint8_t *out)
{
    uint64_t w = fb_word_load(text);
    uint64_t letter = w >> 6 & FB_WORD(1);
    uint64_t value = (w & FB_WORD(0x0f)) + letter * 9;
    uint64_t wrong = (w & FB_WORD(0xa0)) ^ FB_WORD(0x20);
    wrong |= ((w >> 4 ^ letter) & FB_WORD(1)) ^ FB_WORD(1);
    /* A digit is below ten, a letter from ten to fifteen. */
    wrong |= ((value + FB_WORD(6)) >> 4 & FB_WORD(1)) ^ letter;
    wrong |= value & FB_WORD(0xf0);
    if (wrong != 0) return false;
    /* Pairs to bytes, then the bytes together. */
    value = (value << 4 | value >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    value = (value | value >> 8) & UINT64_C(0x0000ffff0000ffff);
    value |= value >> 16;
    for (size_t i = 0; i < 4; i++, value >>= 8) out[i] = (uint8_t)value;
    return true;
}

bool fb_hex_parse(fb_span text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len) return false;
    size_t at = 0;
    for (; len - at >= 4; at += 4) {
        if (!parse_eight(text.p + 2 * at, out + at)) return false;
    }
    for (; at < len; at++) {
        uint8_t hi = fb_hex_value[text.p[2 * at]], lo = fb_hex_value[text.p[2 * at + 1]];
        if ((hi | lo) > 15) return false;
        out[at] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}
