/* SPDX-License-Identifier: Apache-2.0 */
/* Records, reassembly, bindings and invite proofs by themselves. messaging-profile 7. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/keys/provider_sodium.h"
#include "protocol/link/binding.h"
#include "protocol/link/external.h"
#include "protocol/link/preamble.h"
#include "protocol/link/record.h"

static fb_sodium *sodium;
static const fb_provider *provider;

static int open_sodium(void **state)
{
    (void)state;
    if (fb_sodium_create(8, &sodium) != FB_OK) return 1;
    provider = fb_sodium_provider(sodium);
    return 0;
}

static int close_sodium(void **state)
{
    (void)state;
    fb_sodium_destroy(sodium);
    return 0;
}

/* MP-7-18 */
static void records_follow_their_form(void **state)
{
    (void)state;
    for (unsigned channel = 0; channel < 256; channel++) {
        for (unsigned flags = 0; flags < 256; flags++) {
            const uint8_t plain[3] = {(uint8_t)channel, (uint8_t)flags, 7};
            fb_record record;
            fb_status want = channel < 3 && flags < 4 ? FB_OK : FB_ERR_LINK_RECORD;
            assert_int_equal(fb_record_parse(fb_span_of(plain, 3), &record), want);
            if (want != FB_OK) continue;
            assert_int_equal(record.channel, channel);
            assert_int_equal(record.bytes.len, 1);
        }
    }
    static uint8_t plain[FB_RECORD_BYTES_MAX + 1];
    fb_record record;
    assert_int_equal(fb_record_parse(fb_span_of(plain, 0), &record), FB_ERR_LINK_RECORD);
    assert_int_equal(fb_record_parse(fb_span_of(plain, 1), &record), FB_ERR_LINK_RECORD);
    assert_int_equal(fb_record_parse(fb_span_of(plain, 2), &record), FB_OK);
    assert_int_equal(fb_record_parse(fb_span_of(plain, FB_RECORD_BYTES_MAX), &record), FB_OK);
    assert_int_equal(fb_record_parse(fb_span_of(plain, sizeof plain), &record), FB_ERR_LINK_RECORD);
}

/* MP-7-18 */
static void frames_are_put_together(void **state)
{
    (void)state;
    uint8_t buffer[8];
    fb_reassembly r = {buffer, sizeof buffer, 0, false};
    fb_span frame;
    bool complete;
    const fb_record first = {FB_CHANNEL_CALLS, FB_RECORD_FIRST, fb_span_of("abc", 3)};
    const fb_record middle = {FB_CHANNEL_CALLS, 0, fb_span_of("de", 2)};
    const fb_record last = {FB_CHANNEL_CALLS, FB_RECORD_LAST, fb_span_of("fgh", 3)};
    const fb_record whole = {FB_CHANNEL_CALLS, FB_RECORD_WHOLE, fb_span_of("longer than that", 16)};
    /* Only in order. */
    assert_int_equal(fb_reassembly_add(&r, &middle, &frame, &complete), FB_ERR_LINK_RECORD);
    assert_int_equal(fb_reassembly_add(&r, &last, &frame, &complete), FB_ERR_LINK_RECORD);
    assert_int_equal(fb_reassembly_add(&r, &whole, &frame, &complete), FB_OK);
    assert_true(complete && frame.p == whole.bytes.p); /* not copied, however long */
    assert_int_equal(fb_reassembly_add(&r, &first, &frame, &complete), FB_OK);
    assert_false(complete);
    assert_int_equal(fb_reassembly_add(&r, &first, &frame, &complete), FB_ERR_LINK_RECORD);
    assert_int_equal(fb_reassembly_add(&r, &whole, &frame, &complete), FB_ERR_LINK_RECORD);
    assert_int_equal(fb_reassembly_add(&r, &middle, &frame, &complete), FB_OK);
    assert_int_equal(fb_reassembly_add(&r, &last, &frame, &complete), FB_OK);
    assert_true(complete);
    assert_int_equal(frame.len, 8);
    assert_memory_equal(frame.p, "abcdefgh", 8);
    /* One byte more than the buffer: refused, and nothing was written. */
    assert_int_equal(fb_reassembly_add(&r, &first, &frame, &complete), FB_OK);
    assert_int_equal(fb_reassembly_add(&r, &middle, &frame, &complete), FB_OK);
    assert_int_equal(fb_reassembly_add(&r, &middle, &frame, &complete), FB_OK);
    assert_int_equal(fb_reassembly_add(&r, &middle, &frame, &complete), FB_ERR_LINK_RECORD);
    assert_int_equal(r.used, 7);
    /* Without a buffer the frame has to wait. */
    fb_reassembly none = {NULL, 0, 0, false};
    assert_int_equal(fb_reassembly_add(&none, &whole, &frame, &complete), FB_OK);
    assert_int_equal(fb_reassembly_add(&none, &first, &frame, &complete), FB_ERR_BUSY);
    assert_false(none.open);
}

/* MP-1-8, MP-7-7 */
static void bindings_are_tied_to_everything(void **state)
{
    (void)state;
    fb_key_handle identity, link;
    fb_b32 seed = {{3}}, link_static, other = {{9}}, public_key;
    uint8_t hash[64] = {1, 2, 3}, bytes[FB_BINDING_BYTES];
    assert_int_equal(fb_sodium_add_signing(sodium, &seed, &identity), FB_OK);
    assert_int_equal(fb_sodium_add_dh(sodium, &seed, &link), FB_OK);
    assert_int_equal(provider->dh_public(provider->user, link, &link_static), FB_OK);
    assert_int_equal(provider->public_key(provider->user, identity, &public_key), FB_OK);
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    assert_int_equal(
        fb_binding_write(provider, identity, FB_LINK_DIALER, hash, &link_static, 5, &w), FB_OK);
    assert_int_equal(w.at, FB_BINDING_BYTES);
    fb_binding b = {{{0}}, 0};
    fb_span whole = fb_span_of(bytes, sizeof bytes);
    assert_int_equal(fb_binding_read(provider, FB_LINK_DIALER, hash, &link_static, whole, &b),
                     FB_OK);
    assert_true(fb_b32_equal(b.public_key, public_key));
    assert_int_equal(b.incarnation, 5);

    fb_binding kept = b;
    assert_int_equal(fb_binding_read(provider, FB_LINK_ACCEPTOR, hash, &link_static, whole, &b),
                     FB_ERR_LINK_BINDING);
    assert_int_equal(fb_binding_read(provider, FB_LINK_DIALER, hash, &other, whole, &b),
                     FB_ERR_LINK_BINDING);
    for (size_t len = 0; len < sizeof bytes; len++) {
        assert_int_equal(fb_binding_read(provider, FB_LINK_DIALER, hash, &link_static,
                                         fb_span_of(bytes, len), &b),
                         FB_ERR_LINK_BINDING);
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 4;
        assert_int_equal(fb_binding_read(provider, FB_LINK_DIALER, hash, &link_static, whole, &b),
                         FB_ERR_LINK_BINDING);
        bytes[i] ^= 4;
    }
    for (size_t i = 0; i < sizeof hash; i++) {
        hash[i] ^= 4;
        assert_int_equal(fb_binding_read(provider, FB_LINK_DIALER, hash, &link_static, whole, &b),
                         FB_ERR_LINK_BINDING);
        hash[i] ^= 4;
    }
    assert_true(fb_b32_equal(b.public_key, kept.public_key)); /* unchanged by all of them */
    /* An incarnation of 0 is none, however well it is signed. */
    w = fb_writer_of(bytes, sizeof bytes);
    assert_int_equal(
        fb_binding_write(provider, identity, FB_LINK_DIALER, hash, &link_static, 0, &w), FB_OK);
    assert_int_equal(fb_binding_read(provider, FB_LINK_DIALER, hash, &link_static, whole, &b),
                     FB_ERR_LINK_BINDING);
    fb_writer small = fb_writer_of(bytes, sizeof bytes - 1);
    assert_int_equal(
        fb_binding_write(provider, identity, FB_LINK_DIALER, hash, &link_static, 5, &small),
        FB_ERR_NO_SPACE);
}

/* MP-7-14 */
static void invite_proofs_differ_in_all_they_cover(void **state)
{
    (void)state;
    const fb_b32 secret = {{1}}, secret2 = {{2}};
    const fb_id invite = {{3}}, invite2 = {{4}};
    const uint8_t hash[64] = {5}, hash2[64] = {6};
    fb_b32 proof[6];
    fb_invite_proof(provider, &secret, FB_LINK_DIALER, invite, hash, &proof[0]);
    fb_invite_proof(provider, &secret2, FB_LINK_DIALER, invite, hash, &proof[1]);
    fb_invite_proof(provider, &secret, FB_LINK_ACCEPTOR, invite, hash, &proof[2]);
    fb_invite_proof(provider, &secret, FB_LINK_DIALER, invite2, hash, &proof[3]);
    fb_invite_proof(provider, &secret, FB_LINK_DIALER, invite, hash2, &proof[4]);
    fb_invite_proof(provider, &secret, FB_LINK_DIALER, invite, hash, &proof[5]);
    assert_true(fb_proof_equal(&proof[0], &proof[5]));
    for (int i = 1; i < 5; i++) assert_false(fb_proof_equal(&proof[0], &proof[i]));
}

/* MP-7-24 */
static void external_heads_are_read_back(void **state)
{
    (void)state;
    uint8_t bytes[FB_EXTERNAL_HEAD + 2] = {0};
    const fb_external_frame in = {FB_CHANNEL_CALLS, 0x0102030405060708, 9, UINT64_MAX, {NULL, 0}};
    fb_external_frame out;
    fb_external_write_head(bytes, &in);
    assert_int_equal(fb_external_read(fb_span_of(bytes, sizeof bytes), &out), FB_OK);
    assert_int_equal(out.channel, in.channel);
    assert_true(out.sender_session == in.sender_session && out.peer_session == 9);
    assert_true(out.number == UINT64_MAX);
    assert_int_equal(out.bytes.len, 2);
    for (size_t len = 0; len < FB_EXTERNAL_HEAD; len++) {
        assert_int_equal(fb_external_read(fb_span_of(bytes, len), &out), FB_ERR_LINK_RECORD);
    }
}

/* MP-7-2 */
static void a_space_tag_is_that_of_the_profile(void **state)
{
    (void)state;
    /* Python: hashlib.blake2b(b"faberio-space-tag-v1\0" + bytes(range(16)), digest_size=16) */
    static const uint8_t want[16] = {0x3b, 0x02, 0x27, 0x2f, 0xa0, 0x63, 0xf6, 0x81,
                                     0xf9, 0xbd, 0xb3, 0x85, 0x5a, 0xdf, 0x49, 0x29};
    fb_id space, tag;
    for (size_t i = 0; i < sizeof space.b; i++) space.b[i] = (uint8_t)i;
    fb_space_tag(provider, space, &tag);
    assert_memory_equal(tag.b, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_follow_their_form),
        cmocka_unit_test(frames_are_put_together),
        cmocka_unit_test(bindings_are_tied_to_everything),
        cmocka_unit_test(invite_proofs_differ_in_all_they_cover),
        cmocka_unit_test(external_heads_are_read_back),
        cmocka_unit_test(a_space_tag_is_that_of_the_profile),
    };
    return cmocka_run_group_tests(tests, open_sodium, close_sodium);
}
