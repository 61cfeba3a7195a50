/* SPDX-License-Identifier: Apache-2.0 */
/* A dot names one change of an area: who, in which life, the how-manieth (DESIGN 3.1). */
#ifndef FB_DATABASE_DOT_H
#define FB_DATABASE_DOT_H

#include "protocol/base/cursor.h"

#define FB_DOT_BYTES 32u

typedef struct fb_dot {
    fb_id node;
    uint64_t incarnation;
    uint64_t seq; /* from 1, within (area, node, incarnation) */
} fb_dot;

static inline bool fb_dot_same_life(fb_dot a, fb_dot b)
{
    return a.incarnation == b.incarnation && fb_id_equal(a.node, b.node);
}

static inline fb_dot fb_read_dot(fb_reader *r)
{
    fb_dot dot;
    dot.node = fb_read_id(r);
    dot.incarnation = fb_read_u64(r);
    dot.seq = fb_read_u64(r);
    return dot;
}

static inline void fb_write_dot(fb_writer *w, fb_dot dot)
{
    fb_write_id(w, dot.node);
    fb_write_u64(w, dot.incarnation);
    fb_write_u64(w, dot.seq);
}

/* A sorted list of dots as it stands in a change or a record: borrowed bytes. */
typedef struct fb_dots {
    const uint8_t *p;
    uint32_t count;
} fb_dots;

static inline fb_dot fb_dots_at(fb_dots dots, uint32_t at)
{
    fb_reader r = fb_reader_of(fb_span_of(dots.p + (size_t)at * FB_DOT_BYTES, FB_DOT_BYTES));
    return fb_read_dot(&r);
}

/* Does the list name this dot or a later one of its life? The bytes of a dot sort as the dot does:
 * integers are big-endian. */
static inline bool fb_dots_cover(fb_dots dots, const uint8_t dot[FB_DOT_BYTES])
{
    uint32_t low = 0, high = dots.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (memcmp(dots.p + (size_t)middle * FB_DOT_BYTES, dot, FB_DOT_BYTES) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < dots.count && memcmp(dots.p + (size_t)low * FB_DOT_BYTES, dot, 24) == 0;
}

/* u16 count, then the dots, strictly ascending, none with sequence or incarnation 0. */
fb_dots fb_read_dots(fb_reader *r);

#endif
