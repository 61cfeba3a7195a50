/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/utf8.h"

/* Bytes of the character at the start of s, 0 when there is none. */
static size_t character_len(fb_span s)
{
    uint8_t a = s.p[0];
    if (a < 0x80) return 1;
    size_t n = a >= 0xc2 && a < 0xe0   ? 2
               : a >= 0xe0 && a < 0xf0 ? 3
               : a >= 0xf0 && a < 0xf5 ? 4
                                       : 0;
    if (n == 0 || n > s.len) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s.p[i] & 0xc0) != 0x80) return 0;
    }
    uint8_t b = s.p[1];
    bool wrong = (a == 0xe0 && b < 0xa0) || (a == 0xed && b >= 0xa0) || (a == 0xf0 && b < 0x90) ||
                 (a == 0xf4 && b >= 0x90);
    return wrong ? 0 : n;
}

bool fb_utf8_is_name(fb_span text)
{
    for (size_t at = 0; at < text.len;) {
        size_t n = character_len(fb_span_of(text.p + at, text.len - at));
        if (n == 0 || text.p[at] == 0) return false;
        at += n;
    }
    return true;
}
