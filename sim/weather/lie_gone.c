/* SPDX-License-Identifier: Apache-2.0 */
/* What a Byzantine member says of what others hold: that it was replaced, or is folded. Nothing
 * that is signed says otherwise. */
#include "protocol/core/node_id.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/compare/repair.h"
#include "protocol/database/exchange/fetch.h"
#include "sim/faults.h"
#include "sim/weather/lies.h"
#include "sim/world/streams.h"

/* Of a record of a link: channel, flags (it is a whole frame). Of a frame of the calls channel: u8
 * 2, call, index. */
#define RECORD_HEAD  2u
#define RECORD_WHOLE 3u
#define PIECE_HEAD   (1u + 8 + 4)

/* An answer about a record: bits, state, heads (docs/WIRE-FORMATS.md, "Compare"). Where its state
 * begins, 0: it is none. */
static size_t state_at(fb_span piece)
{
    for (size_t bits = 1; bits <= (FB_COMPARE_DOTS_MAX + 7) / 8; bits++) {
        fb_reader r = fb_reader_of(piece);
        fb_read_bytes(&r, bits);
        fb_span state = fb_read_span16(&r);
        size_t heads = fb_read_u16(&r);
        fb_read_bytes(&r, heads * FB_DOT_BYTES);
        if (fb_reader_done(&r) && fb_peer_state_is_valid(state)) return bits + 2;
    }
    return 0;
}

/* Other dots live in it than those that did. */
static void change_dots(fb_span state)
{
    fb_reader r = fb_reader_of(state);
    uint8_t *p = (uint8_t *)(uintptr_t)state.p;
    if (state.len == 0) return;
    uint32_t count = fb_read_u16(&r);
    for (uint32_t i = 0; i < count; i++, fb_read_bytes(&r, FB_EXISTENCE_BYTES)) p[r.at] ^= 0x80;
    (void)fb_read_dots(&r);
    (void)fb_read_dots(&r);
    uint32_t fields = fb_read_u16(&r);
    for (uint32_t i = 0; i < fields; i++) {
        fb_read_span16(&r);
        count = fb_read_u16(&r);
        for (uint32_t k = 0; k < count; k++, fb_read_bytes(&r, FB_SIBLING_BYTES)) p[r.at] ^= 0x80;
        (void)fb_read_dots(&r);
    }
}

/* All of it is known there, and none of it lives. */
static bool say_replaced(uint8_t *piece, size_t len)
{
    size_t at = state_at(fb_span_of(piece, len));
    if (at == 0) return false;
    memset(piece, 0xff, at - 2);
    fb_reader r = fb_reader_of(fb_span_of(piece + at - 2, len - at + 2));
    change_dots(fb_read_span16(&r));
    return true;
}

/* Of two batches that follow each other the first one is said to be folded. What is too long then
 * stands behind them and means nothing. */
static bool say_folded(const fb_sim_provider *provider, uint8_t *piece, size_t len)
{
    fb_change changes[FB_BATCH_CHANGES_MAX];
    fb_reader r = fb_reader_of(fb_span_of(piece, len));
    fb_span first = fb_read_span32(&r), second = fb_read_span32(&r);
    const size_t item = 4 + FB_FOLDED_BYTES;
    fb_batch a, b;
    if (r.failed || 4 + first.len < item + 4 || fb_batch_decode(first, &a, changes) != FB_OK ||
        fb_batch_decode(second, &b, changes) != FB_OK || a.number == 1 ||
        b.number != a.number + 1 || b.incarnation != a.incarnation ||
        !fb_b32_equal(a.author, b.author)) {
        return false;
    }
    fb_id signer = fb_node_id(&provider->table, a.author);
    size_t left = 4 + first.len - item;
    uint64_t incarnation = a.incarnation, before = a.number - 1;
    memmove(piece + item, piece + 4 + first.len, len - 4 - first.len);
    fb_store_be(piece + len - left, left - 4, 4);
    memset(piece + len - left + 4, 0xee, left - 4);
    fb_writer w = fb_writer_of(piece, item);
    fb_write_u32(&w, FB_FOLDED_BYTES);
    fb_write_u8(&w, 0);
    fb_write_id(&w, signer);
    fb_write_u64(&w, incarnation);
    fb_write_u64(&w, before);
    fb_write_u64(&w, 0);
    fb_write_u64(&w, 0);
    return true;
}

void fb_sim_lie_of_gone(fb_sim_provider *provider, uint8_t *record, size_t len)
{
    const size_t head = RECORD_HEAD + PIECE_HEAD;
    if ((provider->lies >> FB_SIM_LIE_GONE & 1) == 0 || len <= head || record[1] != RECORD_WHOLE ||
        record[RECORD_HEAD] != 2) {
        return;
    }
    uint64_t bits = fb_draw(provider->secrets, FB_SIM_STREAM_BYZANTINE, 0, provider->lie_count++);
    uint8_t *piece = record + head;
    if ((bits & 1) != 0 ||
        (!say_replaced(piece, len - head) && !say_folded(provider, piece, len - head))) {
        return;
    }
    provider->took = true;
    if (provider->fired != NULL) provider->fired[FB_SIM_FAULT_GONE - FB_SIM_FAULT_FORGE]++;
}
