/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/batch/mark.h"

#define VERSION 1u

uint32_t fb_mark_bits_of(const fb_change *change)
{
    return 1 + change->value_count;
}

uint32_t fb_mark_bits(const fb_batch *batch, const fb_change *changes)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < batch->count; i++) bits += fb_mark_bits_of(&changes[i]);
    return bits;
}

bool fb_mark_read(fb_span bytes, fb_mark *out)
{
    fb_reader r = fb_reader_of(bytes);
    memset(out, 0, sizeof *out);
    uint8_t version = fb_read_u8(&r);
    uint64_t incarnation = fb_read_u64(&r);
    uint32_t pass = fb_read_u32(&r), bits = fb_read_u16(&r), size = (bits + 7) / 8;
    if (r.failed || version != VERSION || bits == 0 || bits > FB_MARK_BITS_MAX) return false;
    fb_read_into(&r, out->dead, size);
    fb_read_into(&r, out->seen, size);
    if (!fb_reader_done(&r)) return false;
    out->incarnation = incarnation;
    out->pass = pass;
    out->bits = bits;
    return true;
}

void fb_mark_write(fb_writer *w, const fb_mark *mark)
{
    uint32_t size = (mark->bits + 7) / 8;
    fb_write_u8(w, VERSION);
    fb_write_u64(w, mark->incarnation);
    fb_write_u32(w, mark->pass);
    fb_write_u16(w, (uint16_t)mark->bits);
    fb_write_bytes(w, mark->dead, size);
    fb_write_bytes(w, mark->seen, size);
}

bool fb_mark_is_whole(const fb_mark *mark)
{
    for (uint32_t i = 0; i < mark->bits; i++) {
        if (!fb_mark_has(mark->dead, i)) return false;
    }
    return mark->bits != 0;
}
