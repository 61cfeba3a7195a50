/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of a Noise handshake with bytes changed, cut or exchanged on the way, and the records of
 * the session behind it. Untouched messages are always read; a touched one never is, once there is
 * a key: then the end that read it has failed for good. No key is left with the provider.
 *
 * Input: for each message on the way a byte (what is done to it) and its arguments. */
#include <stdlib.h>

#include "fuzz/envelope_same.h"
#include "protocol/link/record.h"
#include "sim/world/provider_fast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t scratch[FB_SIM_PROVIDER_TEXT_MAX];

/* Does to a message what the input says; false when it is as it was. */
static bool touch(fb_reader *r, uint8_t *message, size_t *len, size_t cap)
{
    uint8_t how = fb_read_u8(r);
    if (r->failed) return false;
    switch (how % 5) {
    case 1: {
        size_t at = fb_read_u16(r) % (*len != 0 ? *len : 1);
        uint8_t change = fb_read_u8(r);
        if (r->failed || *len == 0 || change == 0) return false;
        message[at] ^= change;
        return true;
    }
    case 2: {
        size_t cut = fb_read_u16(r);
        if (r->failed || cut >= *len) return false;
        *len = cut;
        return true;
    }
    case 3: {
        fb_span more = fb_read_bytes(r, fb_read_u8(r));
        if (r->failed || more.len == 0 || more.len > cap - *len) return false;
        memcpy(message + *len, more.p, more.len);
        *len += more.len;
        return true;
    }
    case 4: {
        /* Another message in its place, e.g. one that was sent before. */
        fb_span other = fb_read_bytes(r, fb_read_u16(r) % 256);
        if (r->failed || other.len > cap) return false;
        bool differs = other.len != *len || memcmp(message, other.p, other.len) != 0;
        if (other.len != 0) memcpy(message, other.p, other.len);
        *len = other.len;
        return differs;
    }
    default:
        return false;
    }
}

static void records(fb_reader *r, const fb_provider *a, const fb_provider *b, fb_cipher *send,
                    fb_cipher *receive)
{
    static uint8_t wire[FB_RECORD_WIRE_MAX + 64], plain[FB_RECORD_WIRE_MAX + 64];
    static uint8_t buffer[4096];
    fb_reassembly whole = {buffer, sizeof buffer, 0, false};
    for (unsigned i = 0; i < 16 && fb_reader_left(r) != 0; i++) {
        fb_channel_id channel = (fb_channel_id)fb_read_u8(r);
        uint8_t flags = fb_read_u8(r);
        fb_span piece = fb_read_bytes(r, fb_read_u8(r));
        if (r->failed) return;
        fb_fuzz_require(fb_record_write(send, a, channel, flags, piece, wire) == FB_OK);
        size_t len = FB_RECORD_HEAD + piece.len + FB_NOISE_TAG;
        uint64_t nonce = receive->nonce;
        bool touched = touch(r, wire + FB_RECORD_LENGTH, &len, 64);
        fb_status status =
            fb_transport_open(receive, b, fb_span_of(wire + FB_RECORD_LENGTH, len), plain);
        fb_fuzz_require((status == FB_OK) == !touched);
        if (status != FB_OK) {
            fb_fuzz_require(receive->nonce == nonce);
            return;
        }
        fb_record record;
        if (fb_record_parse(fb_span_of(plain, len - FB_NOISE_TAG), &record) != FB_OK) return;
        fb_fuzz_require(fb_span_equal(record.bytes, piece));
        fb_span frame;
        bool complete = false;
        uint32_t used = whole.used;
        bool open = whole.open;
        if (fb_reassembly_add(&whole, &record, &frame, &complete) != FB_OK) {
            fb_fuzz_require(whole.used == used && whole.open == open);
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fb_reader r = fb_reader_of(fb_span_of(data, size));
    fb_sim_provider providers[2];
    fb_handshake ends[2];
    static const uint8_t prologue[8] = "prologue";
    uint8_t same = fb_read_u8(&r);
    for (unsigned i = 0; i < 2; i++) {
        fb_sim_provider_init(&providers[i], (fb_seed){1, i}, (fb_seed){2, i}, scratch);
        /* Another prologue at the other end: nothing that is sealed is read then. */
        size_t len = i == 1 && same == 1 ? 7 : 8;
        fb_handshake_begin(&ends[i], &providers[i].table, i == 0, FB_SIM_KEY_LINK,
                           fb_span_of(prologue, len));
    }
    bool touched = false, failed = false;
    for (unsigned i = 0; i < FB_NOISE_XX_MESSAGES && !failed; i++) {
        fb_handshake *from = &ends[i % 2], *to = &ends[1 - i % 2];
        uint8_t message[1024], got[256];
        fb_writer w = fb_writer_of(message, sizeof message);
        fb_fuzz_require(fb_handshake_writes(from) && !fb_handshake_writes(to));
        fb_span payload = fb_read_bytes(&r, fb_read_u8(&r) % 64);
        if (r.failed) payload.len = 0;
        if (fb_handshake_write(from, &providers[i % 2].table, payload, &w) != FB_OK) {
            /* Of a key that was touched a shared secret may not come. */
            fb_fuzz_require(touched);
            failed = true;
            break;
        }
        size_t len = w.at;
        bool now = touch(&r, message, &len, sizeof message - len);
        touched |= now;
        w = fb_writer_of(got, sizeof got);
        fb_status status =
            fb_handshake_read(to, &providers[1 - i % 2].table, fb_span_of(message, len), &w);
        failed = status != FB_OK;
        if (!touched && (same != 1 || i == 0)) fb_fuzz_require(!failed);
        /* The first one proves nothing yet; what comes after it does. */
        if (i > 0 && (touched || same == 1)) fb_fuzz_require(failed);
        if (!failed && !now) fb_fuzz_require(fb_span_equal(fb_writer_span(&w), payload));
        if (failed) {
            w = fb_writer_of(got, sizeof got);
            fb_fuzz_require(fb_handshake_read(to, &providers[1 - i % 2].table,
                                              fb_span_of(message, len), &w) != FB_OK);
            fb_fuzz_require(!fb_handshake_done(to));
        }
    }
    if (!failed) {
        fb_cipher send[2], receive[2];
        fb_fuzz_require(fb_handshake_done(&ends[0]) && fb_handshake_done(&ends[1]));
        fb_fuzz_require(memcmp(ends[0].h, ends[1].h, FB_NOISE_HASH) == 0);
        for (unsigned i = 0; i < 2; i++) {
            fb_handshake_split(&ends[i], &providers[i].table, &send[i], &receive[i]);
        }
        records(&r, &providers[0].table, &providers[1].table, &send[0], &receive[1]);
    }
    for (unsigned i = 0; i < 2; i++) fb_handshake_wipe(&ends[i], &providers[i].table);
    return 0;
}
