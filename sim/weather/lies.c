/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/weather/lies.h"

#include "protocol/base/cursor.h"
#include "protocol/envelope/envelope.h"
#include "protocol/link/link.h"
#include "sim/world/memo.h"
#include "sim/world/streams.h"

/* Where an envelope begins in a record, or 0: fields 1 and 2 of the protobuf encoding, 16 bytes
 * each. */
static size_t envelope_at(const uint8_t *record, size_t len)
{
    if (len < 64 || record[0] != FB_CHANNEL_MESSAGING) return 0;
    for (size_t at = 2; at + 36 < len && at < 80; at++) {
        if (record[at] == 0x0a && record[at + 1] == 16 && record[at + 18] == 0x12 &&
            record[at + 19] == 16) {
            return at;
        }
    }
    return 0;
}

/* Milliseconds that keep the length of the varint. */
#define MINUTES(n) (UINT64_C(60000) * (n))

static void note_signed(const fb_sim_provider *provider, fb_span bytes)
{
    fb_envelope envelope;
    if (provider->signs == NULL) return;
    if (fb_envelope_decode_protobuf(bytes, &envelope, NULL) != FB_OK) return;
    fb_sim_memo_put(provider->signs, fb_sim_signed_key(envelope.id, envelope.source), 1);
}

void fb_sim_lie(fb_sim_provider *provider, uint8_t *record, size_t len)
{
    if (len != 0 && record[0] == FB_CHANNEL_CALLS) {
        fb_sim_lie_of_gone(provider, record, len);
        return;
    }
    size_t at = envelope_at(record, len);
    if (at == 0) return;
    fb_span bytes = fb_span_of(record + at, len - at);
    fb_envelope envelope;
    if (fb_envelope_decode_protobuf(bytes, &envelope, NULL) != FB_OK) return;
    uint64_t bits = fb_draw(provider->secrets, FB_SIM_STREAM_BYZANTINE, 0, provider->lie_count++);
    uint32_t lie = (uint32_t)(bits & 7);
    if (lie > FB_SIM_LIE_MISADDRESS || (provider->lies >> lie & 1) == 0) return;
    uint8_t changed[2048];
    fb_writer w = fb_writer_of(changed, sizeof changed);
    switch ((enum fb_sim_lie)lie) {
    case FB_SIM_LIE_FORGE: {
        /* A new id, or other words, under the old signature. An id that its core never sent is
         * how a check would know it again. */
        size_t place = 8 + (size_t)((bits >> 8) % 10);
        if (place == 10) place = 9; /* the variant's bits stay right */
        if (bytes.len > 60 && (bits & 64) != 0) {
            record[at + bytes.len - 1 - (size_t)((bits >> 8) % 64)] ^= 1;
        }
        record[at + place] ^= (uint8_t)(1u << (bits >> 4 & 3));
        goto told;
    }
    case FB_SIM_LIE_STALE:
        if (provider->kept_len == bytes.len && (bits & 64) != 0) {
            memcpy(record + at, provider->kept, bytes.len);
            note_signed(provider, fb_span_of(provider->kept, bytes.len));
            goto told;
        }
        if (bytes.len <= sizeof provider->kept) {
            memcpy(provider->kept, bytes.p, bytes.len);
            provider->kept_len = (uint32_t)bytes.len;
        }
        envelope.timestamp -= MINUTES(16) + (bits >> 40);
        break;
    case FB_SIM_LIE_FUTURE:
        envelope.timestamp += MINUTES(6) + (bits >> 40);
        break;
    case FB_SIM_LIE_FOREIGN:
        envelope.space.b[15] ^= 1;
        break;
    case FB_SIM_LIE_MISADDRESS:
        if (envelope.mode == FB_DELIVERY_UNICAST) {
            envelope.target_node.b[15] ^= 1;
        } else {
            envelope.source.b[0] ^= 1;
        }
        break;
    }
    if (fb_envelope_sign(&envelope, &provider->table, FB_SIM_KEY_IDENTITY) != FB_OK) return;
    if (fb_envelope_encode_protobuf(&envelope, &w) != FB_OK || w.at != bytes.len) return;
    note_signed(provider, bytes); /* by the source that it had */
    memcpy(record + at, changed, bytes.len);
told:
    if (provider->fired != NULL) provider->fired[lie]++;
}
