/* SPDX-License-Identifier: Apache-2.0 */
/* Store keys of the plane: binary, tag first, so that ranges are what one wants to scan.
 * DESIGN 3.1; docs/WIRE-FORMATS.md, "Store". */
#include "protocol/database/state.h"

static fb_writer begin(uint8_t *out, size_t cap, fb_tag tag, uint32_t number)
{
    fb_writer w = fb_writer_of(out, cap);
    fb_write_u8(&w, (uint8_t)tag);
    fb_write_u32(&w, number);
    return w;
}

fb_span fb_key_area(uint8_t *out, uint32_t area)
{
    fb_writer w = begin(out, FB_AREA_KEY_BYTES, FB_TAG_AREA, area);
    return fb_writer_span(&w);
}

fb_span fb_key_vector(uint8_t *out, bool closed, uint32_t area, fb_id node, uint64_t incarnation)
{
    fb_writer w = fb_writer_of(out, FB_VECTOR_KEY_BYTES);
    fb_write_u8(&w, FB_TAG_VECTOR);
    fb_write_u8(&w, closed ? 1 : 0);
    fb_write_u32(&w, area);
    fb_write_id(&w, node);
    fb_write_u64(&w, incarnation);
    return fb_writer_span(&w);
}

fb_span fb_key_batch(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation, uint64_t number)
{
    fb_writer w = begin(out, FB_BATCH_KEY_BYTES, FB_TAG_BATCH, area);
    fb_write_id(&w, node);
    fb_write_u64(&w, incarnation);
    fb_write_u64(&w, number);
    return fb_writer_span(&w);
}

fb_span fb_key_record(uint8_t *out, uint32_t area, fb_id record)
{
    fb_writer w = begin(out, FB_RECORD_KEY_BYTES, FB_TAG_RECORD, area);
    fb_write_id(&w, record);
    return fb_writer_span(&w);
}

fb_span fb_key_field(uint8_t *out, uint32_t area, fb_id record, fb_span name,
                     const uint8_t dot[FB_DOT_BYTES])
{
    fb_writer w = begin(out, FB_FIELD_KEY_BYTES_MAX, FB_TAG_FIELD, area);
    fb_write_id(&w, record);
    fb_write_span16(&w, name);
    fb_write_bytes(&w, dot, FB_DOT_BYTES);
    return fb_writer_span(&w);
}

fb_span fb_key_tree(uint8_t *out, uint32_t area, uint32_t depth, const uint8_t key[16])
{
    /* Without a writer: no key is built as often, and few are as short. */
    FB_ASSERT(depth <= FB_TREE_DEPTH_MAX);
    size_t whole = depth / 2, len = 6;
    out[0] = (uint8_t)FB_TAG_TREE;
    fb_store_be32(out + 1, area);
    out[5] = (uint8_t)depth;
    for (size_t i = 0; i < whole; i++) out[len++] = key[i];
    if (depth % 2 != 0) out[len++] = key[whole] & 0xf0;
    return fb_span_of(out, len);
}

fb_span fb_key_changelog(uint8_t *out, uint32_t space, uint64_t sequence)
{
    fb_writer w = begin(out, FB_CHANGELOG_KEY_BYTES, FB_TAG_CHANGELOG, space);
    fb_write_u64(&w, sequence);
    return fb_writer_span(&w);
}

fb_span fb_key_mending(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation)
{
    fb_writer w = begin(out, FB_MENDING_KEY_BYTES, FB_TAG_WANTED, area);
    fb_write_id(&w, node);
    fb_write_u64(&w, incarnation);
    fb_write_u8(&w, FB_WANTED_MENDING);
    return fb_writer_span(&w);
}

fb_span fb_key_doubt(uint8_t *out, uint32_t area)
{
    fb_writer w = begin(out, FB_DOUBT_KEY_BYTES, FB_TAG_DOUBT, area);
    return fb_writer_span(&w);
}

fb_span fb_key_wanted(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation)
{
    fb_writer w = begin(out, FB_WANTED_KEY_BYTES, FB_TAG_WANTED, area);
    fb_write_id(&w, node);
    fb_write_u64(&w, incarnation);
    return fb_writer_span(&w);
}

fb_status fb_life_decode(fb_span value, fb_life *out)
{
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    if (!r.failed && version != 1) return FB_ERR_VERSION_NEWER;
    out->batch = fb_read_u64(&r);
    out->last_seq = fb_read_u64(&r);
    fb_read_into(&r, out->hash, 32);
    out->previous_incarnation = fb_read_u64(&r);
    out->previous_number = fb_read_u64(&r);
    out->claim = fb_reader_left(&r) != 0 ? fb_read_u64(&r) : FB_CLAIM_FIRST;
    return fb_reader_done(&r) && out->batch != 0 ? FB_OK : FB_ERR_STORE_DAMAGED;
}
