/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/digest.h"

#include "protocol/base/mix.h"
#include "protocol/core/digests.h"
#include "protocol/core/internal.h"

struct fb_digest_mark {
    fb_digest_cell *cell;
    uint32_t tag;
    uint32_t index;
};

void fb_digest_register(fb_node *node, fb_digest_tag tag, const fb_digest_kind *kind)
{
    node->digests.kinds[tag] = kind;
    node->digests.capacity += kind->count(node);
}

void fb_digests_layout(fb_node *node, fb_arena *arena)
{
    node->digests.dirty = fb_arena_take(arena, node->digests.capacity, sizeof *node->digests.dirty);
}

void fb_digest_touch(fb_node *node, fb_digest_tag tag, uint32_t index)
{
    fb_digest_touch_cell(node, node->digests.kinds[tag]->cell(node, index), tag, index);
}

void fb_digest_mark(fb_node *node, fb_digest_cell *cell, fb_digest_tag tag, uint32_t index)
{
    fb_digests *digests = &node->digests;
    cell->dirty = true;
    FB_ASSERT(digests->dirty_count < digests->capacity);
    digests->dirty[digests->dirty_count++] = (struct fb_digest_mark){cell, (uint32_t)tag, index};
}

/* sum - old + fresh, as numbers of 128 bits. */
static fb_hash128 exchanged(fb_hash128 sum, fb_hash128 old, fb_hash128 fresh)
{
    fb_hash128 less = {sum.lo - old.lo, sum.hi - old.hi - (sum.lo < old.lo)};
    uint64_t lo = less.lo + fresh.lo;
    return (fb_hash128){lo, less.hi + fresh.hi + (lo < fresh.lo)};
}

void fb_digests_update(fb_node *node)
{
    fb_digests *digests = &node->digests;
    if (digests->dirty_count == 0) return;
    uint8_t bytes[FB_DIGEST_OBJECT_BYTES_MAX];
    for (uint32_t i = 0; i < digests->dirty_count; i++) {
        struct fb_digest_mark mark = digests->dirty[i];
        const fb_digest_kind *kind = digests->kinds[mark.tag];
        fb_digest_cell *cell = mark.cell;
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        kind->write(node, mark.index, &w);
        FB_ASSERT(!w.failed);
        fb_hash128 fresh = {0, 0};
        if (w.at != 0) fresh = fb_mix128(bytes, w.at, (uint64_t)mark.tag << 32 | mark.index);
        digests->sum = exchanged(digests->sum, cell->last, fresh);
        cell->last = fresh;
        cell->dirty = false;
    }
    digests->dirty_count = 0;
}
