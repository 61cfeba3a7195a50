/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of an array, one after another, as a compact JSON text spells them. */
#ifndef FB_DOCUMENTS_ELEMENTS_H
#define FB_DOCUMENTS_ELEMENTS_H

#include "protocol/base/types.h"

/* rest: the array's text at first, then what is left of it. False: there is no other element. */
static inline bool fb_element_next(fb_span *rest, fb_span *out)
{
    if (rest->len < 2 || (rest->p[0] != '[' && rest->p[0] != ',')) return false;
    size_t at = 1, depth = 0;
    bool text = false;
    for (; at < rest->len; at++) {
        uint8_t c = rest->p[at];
        if (text && c == '\\') {
            at++;
        } else if (c == '"') {
            text = !text;
        } else if (!text && (c == '[' || c == '{')) {
            depth++;
        } else if (!text && depth == 0 && (c == ',' || c == ']')) {
            break;
        } else if (!text && (c == ']' || c == '}')) {
            depth--;
        }
    }
    *out = fb_span_of(rest->p + 1, at - 1);
    *rest = at < rest->len ? fb_span_of(rest->p + at, rest->len - at) : (fb_span){NULL, 0};
    return out->len != 0;
}

#endif
