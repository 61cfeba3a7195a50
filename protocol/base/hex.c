/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hex.h"

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

bool fb_hex_parse(fb_span text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len) return false;
    /* What is no digit has its upper bits set: one look at the union of all values is enough. */
    uint8_t seen = 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t hi = fb_hex_value[text.p[2 * i]], lo = fb_hex_value[text.p[2 * i + 1]];
        seen |= hi | lo;
        out[i] = (uint8_t)(hi << 4 | lo);
    }
    return seen <= 15;
}
