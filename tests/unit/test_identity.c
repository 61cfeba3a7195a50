/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/hex.h"
#include "protocol/identity/identity.h"

static fb_sodium *sodium;
static const fb_provider *p;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(fb_sodium_create(4, &sodium), FB_OK);
    p = fb_sodium_provider(sodium);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fb_sodium_destroy(sodium);
    return 0;
}

static fb_b32 key_of(const char *hex)
{
    fb_b32 key;
    assert_true(fb_hex_parse(fb_span_text(hex), key.b, sizeof key.b));
    return key;
}

/* FM-5.1-4, MP-1-1, FI-2-2 */
static void node_ids_of_the_vectors(void **state)
{
    (void)state;
    static const char *const keys[3][2] = {
        {"43a72e714401762df66b68c26dfbdf2682aaec9f2474eca4613e424a0fbafd3c",
         "2fa5bd0b6d0b9e23d8713a87a52ddcff"},
        {"66be7e332c7a453332bd9d0a7f7db055f5c5ef1a06ada66d98b39fb6810c473a",
         "615359838c84ba09a4cc9c7dcb7dd030"},
        {"0b513ad9b4924015ca0902ed079044d3ac5dbec2306f06948c10da8eb6e39f2d",
         "9f9eaf509a1636bd475ba088c585ebb0"},
    };
    for (size_t i = 0; i < 3; i++) {
        fb_b32 key = key_of(keys[i][0]);
        fb_id id = fb_node_id_of(p, &key);
        char hex[33] = {0};
        fb_hex_format(id.b, sizeof id.b, hex);
        assert_string_equal(hex, keys[i][1]);
        assert_int_equal(fb_identity_enrol_check(p, &key), FB_OK);
    }
}

/* MP-1-6 */
static void enrolment_refuses_what_is_no_proper_point(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        fb_b32 key = key_of(keys[i]);
        assert_int_equal(fb_identity_enrol_check(p, &key), FB_ERR_KEY);
    }
}

static void fingerprints_are_words(void **state)
{
    (void)state;
    fb_b32 a = key_of("43a72e714401762df66b68c26dfbdf2682aaec9f2474eca4613e424a0fbafd3c");
    fb_b32 b = a;
    b.b[31] ^= 1;
    char words[FB_FINGERPRINT_BYTES], others[FB_FINGERPRINT_BYTES];
    fb_fingerprint(p, &a, words);
    fb_fingerprint(p, &b, others);
    assert_string_not_equal(words, others);
    assert_int_equal(strlen(words), FB_FINGERPRINT_BYTES - 1);
    for (size_t i = 0; i + 1 < FB_FINGERPRINT_BYTES; i++) {
        if (i % 5 == 4) {
            assert_int_equal(words[i], '-');
        } else {
            assert_in_range(words[i], 'a', 'z');
        }
    }
    /* Pinned: people write these words down. */
    assert_string_equal(words, "husa-tofe-kepo-gobo-jada-japo-paru-sini-togi-zepo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_ids_of_the_vectors),
        cmocka_unit_test(enrolment_refuses_what_is_no_proper_point),
        cmocka_unit_test(fingerprints_are_words),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
