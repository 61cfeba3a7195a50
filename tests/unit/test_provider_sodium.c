/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/keys/file.h"
#include "io/keys/provider_sodium.h"
#include "protocol/base/hex.h"

static fb_sodium *sodium;
static const fb_provider *p;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(fb_sodium_create(16, &sodium), FB_OK);
    p = fb_sodium_provider(sodium);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fb_sodium_destroy(sodium);
    return 0;
}

static size_t unhex(const char *hex, uint8_t *out, size_t cap)
{
    size_t len = strlen(hex) / 2;
    assert_true(len <= cap);
    assert_true(fb_hex_parse(fb_span_text(hex), out, len));
    return len;
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    assert_non_null(value);
    return value;
}

static json_t *load(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, FB_SOURCE_DIR "/tests/vectors/%s", name);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL) fail_msg("%s: %s", path, error.text);
    return root;
}

/* A signature that is not 64 bytes long cannot be handed over at all: refused by its shape. */
static bool accepts(const char *public_key, const char *message, const char *signature)
{
    fb_b32 pk;
    fb_b64 sig;
    uint8_t msg[1024];
    if (!fb_hex_parse(fb_span_text(public_key), pk.b, sizeof pk.b)) return false;
    if (!fb_hex_parse(fb_span_text(signature), sig.b, sizeof sig.b)) return false;
    size_t len = unhex(message, msg, sizeof msg);
    fb_span whole = {msg, len};
    bool one = p->verify(p->user, &pk, &whole, 1, &sig);
    /* The same in three parts, one of them empty. */
    fb_span parts[3] = {{msg, len / 3}, {NULL, 0}, {msg + len / 3, len - len / 3}};
    assert_int_equal(p->verify(p->user, &pk, parts, 3, &sig), one);
    return one;
}

/* FM-5.1-11, MP-1-7 */
static void wycheproof(void **state)
{
    (void)state;
    json_t *root = load("ed25519-wycheproof.json");
    size_t i, j, count = 0, valid = 0;
    json_t *group, *test;
    json_array_foreach(json_object_get(root, "groups"), i, group)
    {
        json_array_foreach(json_object_get(group, "tests"), j, test)
        {
            bool expected = strcmp(text(test, "result"), "valid") == 0;
            bool got = accepts(text(group, "public_key"), text(test, "msg"), text(test, "sig"));
            if (got != expected) {
                fail_msg("tcId %d: accepted %d, expected %d",
                         (int)json_integer_value(json_object_get(test, "tcId")), got, expected);
            }
            count++;
            valid += expected;
        }
    }
    assert_int_equal(count, 151);
    assert_true(valid > 0 && valid < count);
    json_decref(root);
}

/* MP-1-7 */
static void speccheck_accepts_number_3_only(void **state)
{
    (void)state;
    json_t *root = load("ed25519-speccheck.json");
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(root, "cases"), i, test)
    {
        bool got = accepts(text(test, "pub_key"), text(test, "message"), text(test, "signature"));
        assert_int_equal(got, i == 3);
    }
    assert_int_equal(i, 12);
    json_decref(root);
}

/* MP-1-6 */
static void enrolment_refuses_bad_points(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        bool valid;
    } points[] = {
        {"43a72e714401762df66b68c26dfbdf2682aaec9f2474eca4613e424a0fbafd3c", true},
        {"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", false},
        {"f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43", false},
        {"cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d", false},
        {"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", false},
        {"0000000000000000000000000000000000000000000000000000000000000000", false},
        {"0100000000000000000000000000000000000000000000000000000000000000", false},
    };
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        fb_b32 pk;
        unhex(points[i].hex, pk.b, sizeof pk.b);
        assert_int_equal(p->point_is_valid(p->user, &pk), points[i].valid);
    }
}

static void signing_joins_the_parts(void **state)
{
    (void)state;
    fb_b32 seed, pk, expected;
    memset(seed.b, 0x0a, sizeof seed.b);
    fb_key_handle key;
    assert_int_equal(fb_sodium_add_signing(sodium, &seed, &key), FB_OK);
    assert_int_equal(p->public_key(p->user, key, &pk), FB_OK);
    unhex("43a72e714401762df66b68c26dfbdf2682aaec9f2474eca4613e424a0fbafd3c", expected.b, 32);
    assert_true(fb_b32_equal(pk, expected));

    static uint8_t message[FB_SODIUM_MESSAGE_MAX + 1];
    for (size_t i = 0; i < sizeof message; i++) message[i] = (uint8_t)(i * 7);
    fb_b64 one, two;
    fb_span whole = {message, FB_SODIUM_MESSAGE_MAX};
    fb_span parts[2] = {{message, 100}, {message + 100, FB_SODIUM_MESSAGE_MAX - 100}};
    assert_int_equal(p->sign(p->user, key, &whole, 1, &one), FB_OK);
    assert_int_equal(p->sign(p->user, key, parts, 2, &two), FB_OK);
    assert_memory_equal(one.b, two.b, sizeof one.b);
    assert_true(p->verify(p->user, &pk, parts, 2, &one));
    one.b[5] ^= 1;
    assert_false(p->verify(p->user, &pk, parts, 2, &one));

    parts[1].len++;
    whole.len++;
    assert_int_equal(p->sign(p->user, key, parts, 2, &one), FB_ERR_NO_SPACE);
    assert_int_equal(p->sign(p->user, key, &whole, 1, &one), FB_ERR_NO_SPACE);
    assert_false(p->verify(p->user, &pk, parts, 2, &two));
    fb_sodium_remove(sodium, key);
}

static void handles_are_never_reused(void **state)
{
    (void)state;
    fb_b32 out;
    fb_key_handle first, second, all[16];
    assert_int_equal(fb_sodium_keys(sodium), 0);
    assert_int_equal(p->dh_generate(p->user, &first), FB_OK);
    assert_int_equal(p->dh_public(p->user, first, &out), FB_OK);
    p->dh_release(p->user, first);
    assert_int_equal(p->dh_public(p->user, first, &out), FB_ERR_KEY);
    assert_int_equal(p->dh_generate(p->user, &second), FB_OK);
    assert_true(first != second);
    p->dh_release(p->user, first);
    assert_int_equal(p->dh_public(p->user, second, &out), FB_OK);
    /* A key of one kind is no key of the other. */
    assert_int_equal(p->public_key(p->user, second, &out), FB_ERR_KEY);
    assert_int_equal(p->public_key(p->user, 0, &out), FB_ERR_KEY);
    assert_int_equal(p->public_key(p->user, UINT64_MAX, &out), FB_ERR_KEY);
    p->dh_release(p->user, second);
    for (size_t i = 0; i < 16; i++) assert_int_equal(p->dh_generate(p->user, &all[i]), FB_OK);
    assert_int_equal(p->dh_generate(p->user, &first), FB_ERR_BUSY);
    for (size_t i = 0; i < 16; i++) p->dh_release(p->user, all[i]);
    assert_int_equal(fb_sodium_keys(sodium), 0);
}

/* MP-7-9 */
static void dh_agrees_and_refuses_zero(void **state)
{
    (void)state;
    /* Two arbitrary secrets. */
    fb_b32 a, b, pub_a, pub_b, shared, k, expected;
    unhex("77076d0a7318a57d3c16c17251b26645df4c6b2a2d9e7c9b8e6b6f6c6b6a6b6c", a.b, 32);
    unhex("77076d0a7318a57d3c16c17251b26645df1f6e2e8a5b9c4d3e2f1a0b9c8d7e6f", b.b, 32);
    fb_key_handle ha, hb;
    assert_int_equal(fb_sodium_add_dh(sodium, &a, &ha), FB_OK);
    assert_int_equal(fb_sodium_add_dh(sodium, &b, &hb), FB_OK);
    assert_int_equal(p->dh_public(p->user, ha, &pub_a), FB_OK);
    assert_int_equal(p->dh_public(p->user, hb, &pub_b), FB_OK);
    assert_int_equal(p->dh(p->user, ha, &pub_b, &shared), FB_OK);
    assert_int_equal(p->dh(p->user, hb, &pub_a, &k), FB_OK);
    assert_true(fb_b32_equal(shared, k));
    memset(expected.b, 0, sizeof expected.b);
    assert_int_equal(p->dh(p->user, ha, &expected, &k), FB_ERR_KEY);
    fb_sodium_remove(sodium, ha);
    fb_sodium_remove(sodium, hb);
}

static void hashes_have_known_answers(void **state)
{
    (void)state;
    fb_span parts[2] = {fb_span_text("a"), fb_span_text("bc")};
    fb_b32 sha, sha_expected;
    p->sha256(p->user, parts, 2, &sha);
    unhex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", sha_expected.b, 32);
    assert_true(fb_b32_equal(sha, sha_expected));
    uint8_t blake[64], expected[64];
    p->blake2b(p->user, (fb_span){NULL, 0}, parts, 2, blake, 64);
    unhex("ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
          "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
          expected, 64);
    assert_memory_equal(blake, expected, 64);
}

static void aead_opens_what_it_sealed(void **state)
{
    (void)state;
    fb_b32 key;
    memset(key.b, 3, sizeof key.b);
    uint8_t buffer[64 + 16];
    for (size_t i = 0; i < 64; i++) buffer[i] = (uint8_t)i;
    fb_span ad = fb_span_text("ad");
    p->aead_seal(p->user, &key, 5, ad, fb_span_of(buffer, 64), buffer);
    uint8_t out[64];
    assert_false(p->aead_open(p->user, &key, 6, ad, fb_span_of(buffer, 80), out));
    assert_false(p->aead_open(p->user, &key, 5, fb_span_text("aD"), fb_span_of(buffer, 80), out));
    assert_false(p->aead_open(p->user, &key, 5, ad, fb_span_of(buffer, 15), out));
    assert_true(p->aead_open(p->user, &key, 5, ad, fb_span_of(buffer, 80), out));
    for (size_t i = 0; i < 64; i++) assert_int_equal(out[i], i);
    assert_true(p->aead_open(p->user, &key, 5, ad, fb_span_of(buffer, 80), buffer));
    assert_memory_equal(out, buffer, 64);
}

static char directory[] = "/tmp/fb-key-XXXXXX";

static void put(const char *path, const char *content, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void key_files(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    char path[64];
    snprintf(path, sizeof path, "%s/key", directory);
    fb_b32 secret, back;
    fb_key_file_error error;
    assert_int_equal(fb_key_file_read(path, FB_KEY_ED25519, &back, &error), FB_ERR_NOT_FOUND);
    assert_int_equal(fb_key_file_generate(path, FB_KEY_ED25519, &secret, &error), FB_OK);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fb_key_file_read(path, FB_KEY_ED25519, &back, &error), FB_OK);
    assert_true(fb_b32_equal(secret, back));
    assert_int_equal(fb_key_file_write(path, FB_KEY_ED25519, &secret, &error), FB_ERR_EXISTS);
    assert_int_equal(fb_key_file_read(path, FB_KEY_X25519, &back, &error), FB_ERR_KEY);
    assert_true(strlen(error.text) > 0);
    static const mode_t open_modes[] = {0640, 0604, 0620, 0602, 0610, 0601};
    for (size_t i = 0; i < sizeof open_modes / sizeof open_modes[0]; i++) {
        assert_int_equal(chmod(path, open_modes[i]), 0);
        assert_int_equal(fb_key_file_read(path, FB_KEY_ED25519, &back, NULL),
                         FB_ERR_NOT_AUTHORISED);
    }
    static const char *const bad[] = {
        "",
        "faberio-key-1 ed25519 ",
        "faberio-key-2 ed25519 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\n",
        "faberio-key-1 ed25519 0A0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\n",
        "faberio-key-1 ed25519 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\n",
        "faberio-key-1 ed25519 "
        "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\n\n",
        "faberio-key-1 ed25519 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
        "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put(path, bad[i], 0600);
        assert_int_equal(fb_key_file_read(path, FB_KEY_ED25519, &back, &error), FB_ERR_KEY);
    }
    assert_int_equal(fb_key_file_read(directory, FB_KEY_ED25519, &back, &error), FB_ERR_KEY);
    unlink(path);
    snprintf(path, sizeof path, "%s/absent/key", directory);
    assert_int_equal(fb_key_file_write(path, FB_KEY_ED25519, &secret, &error), FB_ERR_STORE_FAILED);
    rmdir(directory);
}

static void arguments(void **state)
{
    (void)state;
    fb_sodium *none;
    assert_int_equal(fb_sodium_create(0, &none), FB_ERR_ARGUMENT);
    assert_int_equal(fb_sodium_create(0x10000, &none), FB_ERR_ARGUMENT);
    fb_sodium_destroy(NULL);
    assert_int_equal(fb_sodium_self_test(), FB_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wycheproof),
        cmocka_unit_test(speccheck_accepts_number_3_only),
        cmocka_unit_test(enrolment_refuses_bad_points),
        cmocka_unit_test(signing_joins_the_parts),
        cmocka_unit_test(handles_are_never_reused),
        cmocka_unit_test(dh_agrees_and_refuses_zero),
        cmocka_unit_test(hashes_have_known_answers),
        cmocka_unit_test(aead_opens_what_it_sealed),
        cmocka_unit_test(key_files),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
