/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/cut.h"

#include "protocol/base/hex.h"

static bool take(fb_cut_walk *walk, uint8_t *out, size_t len)
{
    if (walk->digits.len - walk->at < 2 * len) return false;
    if (!fb_hex_parse(fb_span_of(walk->digits.p + walk->at, 2 * len), out, len)) return false;
    walk->at += 2 * len;
    return true;
}

bool fb_cut_next(fb_cut_walk *walk, fb_cut_entry *out)
{
    if (walk->left == 0) {
        uint8_t head[FB_CUT_AREA_BYTES];
        if (!take(walk, head, sizeof head)) return false;
        memcpy(walk->area.b, head, 16);
        walk->left = (uint32_t)head[16] << 8 | head[17];
        if (walk->left == 0) return false;
    }
    uint8_t life[FB_CUT_LIFE_BYTES];
    if (!take(walk, life, sizeof life)) return false;
    fb_reader r = fb_reader_of(fb_span_of(life, sizeof life));
    out->area = walk->area;
    out->incarnation = fb_read_u64(&r);
    out->number = fb_read_u64(&r);
    fb_read_into(&r, out->hash, sizeof out->hash);
    walk->left--;
    return true;
}

uint32_t fb_cut_count(fb_span digits)
{
    fb_cut_walk walk = fb_cut_walk_of(digits);
    fb_cut_entry entry, before;
    uint32_t count = 0;
    while (fb_cut_next(&walk, &entry)) {
        if (entry.incarnation == 0 || entry.number == 0) return FB_NONE;
        if (count > 0) {
            int order = fb_id_compare(before.area, entry.area);
            if (order > 0 || (order == 0 && before.incarnation >= entry.incarnation)) {
                return FB_NONE;
            }
        }
        before = entry;
        count++;
    }
    return walk.at == digits.len && walk.left == 0 ? count : FB_NONE;
}
