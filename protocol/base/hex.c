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

bool fb_hex_parse(fb_span text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len) return false;
    uint64_t wrong = 0;
    size_t whole = len - len % 8;
    for (size_t at = 0; at < whole; at += 8) {
        uint64_t low = eight_digits(fb_word_load(text.p + 2 * at), &wrong);
        uint64_t high = eight_digits(fb_word_load(text.p + 2 * at + 8), &wrong);
        fb_word_store(out + at, high << 32 | low);
    }
    /* What is no digit has its upper bits set: one look at the union of all values is enough. */
    uint8_t seen = 0;
    for (size_t at = whole; at < len; at++) {
        uint8_t hi = fb_hex_value[text.p[2 * at]], lo = fb_hex_value[text.p[2 * at + 1]];
        seen |= hi | lo;
        out[at] = (uint8_t)(hi << 4 | lo);
    }
    return wrong == 0 && seen <= 15;
}
