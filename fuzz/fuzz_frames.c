/* SPDX-License-Identifier: Apache-2.0 */
/* What comes over a link before anything is known of the peer, and heads of frames: preambles,
 * frames of external carriers, invite proofs, membership, bindings, plaintexts of records. What is
 * read is written as the same bytes.
 *
 * Input: a byte (which one), then the bytes. */
#include <stdlib.h>

#include "fuzz/envelope_same.h"
#include "protocol/link/binding.h"
#include "protocol/link/external.h"
#include "protocol/link/preamble.h"
#include "protocol/link/record.h"
#include "protocol/space/invite.h"
#include "sim/world/provider_fast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void preambles(fb_span in)
{
    fb_id tag;
    uint8_t version;
    if (in.len == FB_PREAMBLE_DIALER_BYTES &&
        fb_preamble_read_dialer(in, &tag, &version) == FB_OK) {
        fb_fuzz_require(fb_preamble_may_follow(in) && version <= FB_LINK_VERSION_HIGHEST);
        for (size_t i = 0; i < in.len; i++) {
            fb_fuzz_require(fb_preamble_may_follow(fb_span_of(in.p, i)));
        }
    }
    if (in.len == FB_PREAMBLE_ACCEPTOR_BYTES && fb_preamble_read_acceptor(in, &version) == FB_OK) {
        fb_fuzz_require(version >= FB_LINK_VERSION_LOWEST && version <= FB_LINK_VERSION_HIGHEST);
    }
    (void)fb_preamble_may_follow(in);
}

static void external(fb_span in)
{
    fb_external_frame frame;
    if (fb_external_read(in, &frame) != FB_OK) return;
    uint8_t head[FB_EXTERNAL_HEAD];
    fb_external_write_head(head, &frame);
    fb_fuzz_require(memcmp(head, in.p, sizeof head) == 0);
    fb_fuzz_require(frame.bytes.len == in.len - sizeof head && frame.sender_session != 0);
}

static void same_bytes(const fb_writer *w, fb_span in)
{
    fb_fuzz_require(fb_span_equal(fb_writer_span(w), in));
}

static void invites(fb_span in)
{
    uint8_t out[128];
    fb_writer w = fb_writer_of(out, sizeof out);
    fb_invite_frame frame;
    if (fb_invite_frame_read(in, &frame) != FB_OK) return;
    fb_invite_frame_write(&frame, &w);
    same_bytes(&w, in);
}

static void membership(fb_span in)
{
    static uint8_t out[70000];
    fb_writer w = fb_writer_of(out, sizeof out);
    fb_membership_frame frame;
    if (fb_membership_frame_read(in, &frame) != FB_OK) return;
    fb_membership_frame_write(&frame, &w);
    same_bytes(&w, in);
}

/* A binding of the other end, with what the input says in the place of some of its bytes. */
static void bindings(fb_span in)
{
    static uint8_t scratch[FB_SIM_PROVIDER_TEXT_MAX];
    static const uint8_t hash[64] = {7};
    fb_sim_provider peer;
    fb_sim_provider_init(&peer, (fb_seed){1, 1}, (fb_seed){2, 2}, scratch);
    uint8_t bytes[FB_BINDING_BYTES + 1] = {0};
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_fuzz_require(fb_binding_write(&peer.table, FB_SIM_KEY_IDENTITY, FB_LINK_DIALER, hash,
                                     &peer.link_key, 9, &w) == FB_OK);
    fb_binding seen;
    fb_reader r = fb_reader_of(in);
    fb_link_role role = fb_read_u8(&r) == 0 ? FB_LINK_DIALER : FB_LINK_ACCEPTOR;
    size_t len = fb_read_u8(&r) == 0 ? w.at : fb_read_u8(&r) % sizeof bytes;
    size_t at = fb_read_u8(&r) % w.at;
    fb_span change = fb_read_bytes(&r, fb_read_u8(&r) % (w.at - at));
    bool same = role == FB_LINK_DIALER && len == w.at;
    if (!r.failed && change.len != 0) {
        same &= memcmp(bytes + at, change.p, change.len) == 0;
        memcpy(bytes + at, change.p, change.len);
    }
    fb_status status =
        fb_binding_read(&peer.table, role, hash, &peer.link_key, fb_span_of(bytes, len), &seen);
    fb_fuzz_require((status == FB_OK) == same);
    if (same)
        fb_fuzz_require(fb_b32_equal(seen.public_key, peer.public_key) && seen.incarnation == 9);
}

static void record(fb_span in)
{
    fb_record record;
    if (fb_record_parse(in, &record) != FB_OK) return;
    fb_fuzz_require(record.bytes.len + FB_RECORD_HEAD == in.len);
    fb_fuzz_require((record.flags & ~(unsigned)FB_RECORD_WHOLE) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(fb_span) = {preambles,  external, invites,
                                               membership, bindings, record};
    if (size == 0) return 0;
    readers[data[0] % 6](fb_span_of(data + 1, size - 1));
    return 0;
}
