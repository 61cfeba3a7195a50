/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/digest.h"

#include "protocol/core/digests.h"
#include "protocol/core/internal.h"

struct fb_digest_mark {
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
    fb_digests *digests = &node->digests;
    fb_digest_cell *cell = digests->kinds[tag]->cell(node, index);
    if (cell->dirty) return;
    cell->dirty = true;
    FB_ASSERT(digests->dirty_count < digests->capacity);
    digests->dirty[digests->dirty_count++] = (struct fb_digest_mark){(uint32_t)tag, index};
}

static void add(fb_hash128 *sum, fb_hash128 h)
{
    sum->lo += h.lo;
    sum->hi += h.hi + (sum->lo < h.lo);
}

static void subtract(fb_hash128 *sum, fb_hash128 h)
{
    sum->hi -= h.hi + (sum->lo < h.lo);
    sum->lo -= h.lo;
}

void fb_digests_update(fb_node *node)
{
    fb_digests *digests = &node->digests;
    uint8_t bytes[8 + FB_DIGEST_OBJECT_BYTES_MAX];
    for (uint32_t i = 0; i < digests->dirty_count; i++) {
        struct fb_digest_mark mark = digests->dirty[i];
        const fb_digest_kind *kind = digests->kinds[mark.tag];
        fb_digest_cell *cell = kind->cell(node, mark.index);
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_u32(&w, mark.tag);
        fb_write_u32(&w, mark.index);
        kind->write(node, mark.index, &w);
        FB_ASSERT(!w.failed);
        fb_hash128 fresh = {0, 0};
        if (w.at > 8) fresh = fb_xxh128(bytes, w.at, 0);
        subtract(&digests->sum, cell->last);
        add(&digests->sum, fresh);
        cell->last = fresh;
        cell->dirty = false;
    }
    digests->dirty_count = 0;
}
