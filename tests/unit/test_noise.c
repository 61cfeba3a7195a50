/* SPDX-License-Identifier: Apache-2.0 */
/* The Noise handshake against published vectors, through the product's code and provider. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/keys/provider_sodium.h"
#include "protocol/link/noise.h"

/* A provider that generates the one ephemeral key a vector names, and is libsodium in all else. */
typedef struct fixed_provider {
    fb_provider table;
    const fb_provider *real;
    fb_sodium *sodium;
    fb_b32 ephemeral;
    fb_key_handle static_key;
} fixed_provider;

static fixed_provider *self(void *user)
{
    return (fixed_provider *)user;
}

static fb_status fixed_dh_public(void *user, fb_key_handle key, fb_b32 *out)
{
    return self(user)->real->dh_public(self(user)->real->user, key, out);
}

static fb_status fixed_dh_generate(void *user, fb_key_handle *out)
{
    return fb_sodium_add_dh(self(user)->sodium, &self(user)->ephemeral, out);
}

static void fixed_dh_release(void *user, fb_key_handle key)
{
    self(user)->real->dh_release(self(user)->real->user, key);
}

static fb_status fixed_dh(void *user, fb_key_handle key, const fb_b32 *peer, fb_b32 *out)
{
    return self(user)->real->dh(self(user)->real->user, key, peer, out);
}

static void fixed_blake2b(void *user, fb_span key, const fb_span *parts, size_t count, uint8_t *out,
                          size_t out_len)
{
    self(user)->real->blake2b(self(user)->real->user, key, parts, count, out, out_len);
}

static void fixed_seal(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span plain,
                       uint8_t *out)
{
    self(user)->real->aead_seal(self(user)->real->user, key, nonce, ad, plain, out);
}

static bool fixed_open(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span sealed,
                       uint8_t *out)
{
    return self(user)->real->aead_open(self(user)->real->user, key, nonce, ad, sealed, out);
}

static void fixed_create(fixed_provider *f, fb_span static_key, fb_span ephemeral)
{
    fb_b32 secret;
    assert_int_equal(static_key.len, 32);
    assert_int_equal(ephemeral.len, 32);
    memcpy(secret.b, static_key.p, 32);
    memcpy(f->ephemeral.b, ephemeral.p, 32);
    assert_int_equal(fb_sodium_create(8, &f->sodium), FB_OK);
    assert_int_equal(fb_sodium_add_dh(f->sodium, &secret, &f->static_key), FB_OK);
    f->real = fb_sodium_provider(f->sodium);
    f->table = *f->real;
    f->table.user = f;
    f->table.dh_public = fixed_dh_public;
    f->table.dh_generate = fixed_dh_generate;
    f->table.dh_release = fixed_dh_release;
    f->table.dh = fixed_dh;
    f->table.blake2b = fixed_blake2b;
    f->table.aead_seal = fixed_seal;
    f->table.aead_open = fixed_open;
}

/* The vector file is flat and its members have known names: the next member `name` after *at. */
static char text[16384];
static uint8_t pool[16384];
static size_t pool_used;

static void load_vectors(void)
{
    FILE *file = fopen(FB_SOURCE_DIR "/tests/vectors/noise-xx.json", "rb");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    assert_true(n > 0 && n < sizeof text - 1);
    text[n] = 0;
    assert_int_equal(fclose(file), 0);
    pool_used = 0;
}

static uint8_t hex_digit(char c)
{
    assert_true((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static bool next_hex(const char **at, const char *name, fb_span *out)
{
    char quoted[64];
    assert_true(snprintf(quoted, sizeof quoted, "\"%s\": \"", name) < (int)sizeof quoted);
    const char *found = strstr(*at, quoted);
    if (found == NULL) return false;
    found += strlen(quoted);
    uint8_t *start = pool + pool_used;
    for (; *found != '"'; found += 2) {
        assert_true(pool_used < sizeof pool);
        pool[pool_used++] = (uint8_t)(hex_digit(found[0]) << 4 | hex_digit(found[1]));
    }
    *out = fb_span_of(start, (size_t)(pool + pool_used - start));
    *at = found;
    return true;
}

static fb_span need_hex(const char **at, const char *name)
{
    fb_span out = {NULL, 0};
    assert_true(next_hex(at, name, &out));
    return out;
}

static void assert_span(fb_span got, fb_span want)
{
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.p, want.p, want.len);
}

/* FM-11-3, MP-7-6 */
static void vectors_of_the_pattern(void **state)
{
    (void)state;
    load_vectors();
    const char *at = strstr(text, "\"protocol_name\": \"Noise_XX_25519_ChaChaPoly_BLAKE2b\"");
    assert_non_null(at);
    fb_span prologue = need_hex(&at, "init_prologue");
    fb_span init_static = need_hex(&at, "init_static");
    fb_span init_ephemeral = need_hex(&at, "init_ephemeral");
    fb_span resp_prologue = need_hex(&at, "resp_prologue");
    fb_span resp_static = need_hex(&at, "resp_static");
    fb_span resp_ephemeral = need_hex(&at, "resp_ephemeral");
    fb_span hash = need_hex(&at, "handshake_hash");

    fixed_provider side[2];
    fb_handshake hs[2];
    fixed_create(&side[0], init_static, init_ephemeral);
    fixed_create(&side[1], resp_static, resp_ephemeral);
    fb_handshake_begin(&hs[0], &side[0].table, true, side[0].static_key, prologue);
    fb_handshake_begin(&hs[1], &side[1].table, false, side[1].static_key, resp_prologue);

    uint8_t wire[512], plain[512];
    for (unsigned i = 0; i < FB_NOISE_XX_MESSAGES; i++) {
        unsigned from = i % 2, to = 1 - from;
        fb_span payload = need_hex(&at, "payload");
        fb_span want = need_hex(&at, "ciphertext");
        assert_true(fb_handshake_writes(&hs[from]));
        assert_false(fb_handshake_writes(&hs[to]));
        size_t size = fb_handshake_overhead(&hs[from]) + payload.len;
        fb_writer out = fb_writer_of(wire, sizeof wire);
        assert_int_equal(fb_handshake_write(&hs[from], &side[from].table, payload, &out), FB_OK);
        assert_int_equal(out.at, size);
        assert_span(fb_writer_span(&out), want);
        fb_writer in = fb_writer_of(plain, sizeof plain);
        assert_int_equal(fb_handshake_read(&hs[to], &side[to].table, fb_writer_span(&out), &in),
                         FB_OK);
        assert_span(fb_writer_span(&in), payload);
    }

    fb_cipher send[2], receive[2];
    for (int i = 0; i < 2; i++) {
        assert_true(fb_handshake_done(&hs[i]));
        fb_handshake_split(&hs[i], &side[i].table, &send[i], &receive[i]);
        assert_memory_equal(hs[i].h, hash.p, FB_NOISE_HASH);
        assert_int_equal(fb_sodium_keys(side[i].sodium), 1); /* the ephemeral one is gone */
    }

    unsigned transports = 0;
    fb_span payload;
    for (unsigned i = FB_NOISE_XX_MESSAGES; next_hex(&at, "payload", &payload); i++) {
        unsigned from = i % 2, to = 1 - from;
        fb_span want = need_hex(&at, "ciphertext");
        memcpy(wire, payload.p, payload.len);
        assert_int_equal(fb_cipher_seal(&send[from], &side[from].table, fb_span_of(NULL, 0),
                                        fb_span_of(wire, payload.len), wire),
                         FB_OK);
        assert_span(fb_span_of(wire, payload.len + FB_NOISE_TAG), want);
        assert_int_equal(
            fb_cipher_open(&receive[to], &side[to].table, fb_span_of(NULL, 0), want, plain), FB_OK);
        assert_memory_equal(plain, payload.p, payload.len);
        transports++;
    }
    assert_int_equal(transports, 3);
    for (int i = 0; i < 2; i++) fb_sodium_destroy(side[i].sodium);
}

/* Two ends on one instance with fresh keys. */
typedef struct pair {
    fb_sodium *sodium;
    const fb_provider *p;
    fb_key_handle key[2];
    fb_handshake hs[2];
} pair;

static void pair_begin(pair *x, const char *prologue0, const char *prologue1)
{
    assert_int_equal(fb_sodium_create(8, &x->sodium), FB_OK);
    x->p = fb_sodium_provider(x->sodium);
    for (int i = 0; i < 2; i++) {
        fb_b32 secret;
        memset(secret.b, 0x40 + i, sizeof secret.b);
        assert_int_equal(fb_sodium_add_dh(x->sodium, &secret, &x->key[i]), FB_OK);
    }
    fb_handshake_begin(&x->hs[0], x->p, true, x->key[0], fb_span_text(prologue0));
    fb_handshake_begin(&x->hs[1], x->p, false, x->key[1], fb_span_text(prologue1));
}

static void pair_end(pair *x)
{
    for (int i = 0; i < 2; i++) fb_handshake_wipe(&x->hs[i], x->p);
    assert_int_equal(fb_sodium_keys(x->sodium), 2);
    fb_sodium_destroy(x->sodium);
}

/* Carries messages first..last-1 (from 0) over, which must go well. */
static void pair_run(pair *x, unsigned first, unsigned last)
{
    for (unsigned i = first; i < last; i++) {
        uint8_t wire[128], nothing[1];
        fb_writer out = fb_writer_of(wire, sizeof wire);
        fb_writer in = fb_writer_of(nothing, 0);
        assert_int_equal(fb_handshake_write(&x->hs[i % 2], x->p, fb_span_of(NULL, 0), &out), FB_OK);
        assert_int_equal(fb_handshake_read(&x->hs[1 - i % 2], x->p, fb_writer_span(&out), &in),
                         FB_OK);
    }
}

static void every_corrupted_byte_is_refused(void **state)
{
    (void)state;
    static const size_t size[3] = {FB_NOISE_XX_1, FB_NOISE_XX_2, FB_NOISE_XX_3};
    for (unsigned message = 0; message < FB_NOISE_XX_MESSAGES; message++) {
        for (size_t byte = 0; byte < size[message]; byte++) {
            pair x;
            uint8_t wire[128], nothing[1];
            pair_begin(&x, "p", "p");
            pair_run(&x, 0, message);
            fb_writer out = fb_writer_of(wire, sizeof wire);
            fb_writer in = fb_writer_of(nothing, 0);
            assert_int_equal(fb_handshake_write(&x.hs[message % 2], x.p, fb_span_of(NULL, 0), &out),
                             FB_OK);
            assert_int_equal(out.at, size[message]);
            wire[byte] ^= 0x01;
            fb_handshake *to = &x.hs[1 - message % 2];
            fb_status got = fb_handshake_read(to, x.p, fb_writer_span(&out), &in);
            if (message == 0) {
                /* Nothing authenticates the first message yet; the answer to it does. */
                assert_int_equal(got, FB_OK);
                out = fb_writer_of(wire, sizeof wire);
                assert_int_equal(fb_handshake_write(to, x.p, fb_span_of(NULL, 0), &out), FB_OK);
                to = &x.hs[0];
                got = fb_handshake_read(to, x.p, fb_writer_span(&out), &in);
            }
            assert_int_equal(got, FB_ERR_LINK_HANDSHAKE);
            assert_true(to->failed);
            assert_false(fb_handshake_writes(to));
            out = fb_writer_of(wire, sizeof wire);
            assert_int_equal(fb_handshake_write(to, x.p, fb_span_of(NULL, 0), &out),
                             FB_ERR_LINK_HANDSHAKE);
            pair_end(&x);
        }
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    static const size_t size[3] = {FB_NOISE_XX_1, FB_NOISE_XX_2, FB_NOISE_XX_3};
    for (unsigned message = 0; message < FB_NOISE_XX_MESSAGES; message++) {
        for (size_t len = 0; len < size[message]; len++) {
            pair x;
            uint8_t wire[128], nothing[1];
            pair_begin(&x, "p", "p");
            pair_run(&x, 0, message);
            fb_writer out = fb_writer_of(wire, sizeof wire);
            fb_writer in = fb_writer_of(nothing, 0);
            assert_int_equal(fb_handshake_write(&x.hs[message % 2], x.p, fb_span_of(NULL, 0), &out),
                             FB_OK);
            assert_int_equal(
                fb_handshake_read(&x.hs[1 - message % 2], x.p, fb_span_of(wire, len), &in),
                FB_ERR_LINK_HANDSHAKE);
            pair_end(&x);
        }
    }
}

/* MP-7-6 */
static void another_prologue_is_refused(void **state)
{
    (void)state;
    pair x;
    uint8_t wire[128], nothing[1];
    pair_begin(&x, "faberio-link-v1 a", "faberio-link-v1 b");
    pair_run(&x, 0, 1);
    fb_writer out = fb_writer_of(wire, sizeof wire);
    fb_writer in = fb_writer_of(nothing, 0);
    assert_int_equal(fb_handshake_write(&x.hs[1], x.p, fb_span_of(NULL, 0), &out), FB_OK);
    assert_int_equal(fb_handshake_read(&x.hs[0], x.p, fb_writer_span(&out), &in),
                     FB_ERR_LINK_HANDSHAKE);
    pair_end(&x);
}

/* MP-7-9 */
static void a_low_order_key_is_refused(void **state)
{
    (void)state;
    pair x;
    uint8_t zeros[FB_NOISE_XX_1] = {0}, wire[128], nothing[1];
    pair_begin(&x, "p", "p");
    fb_writer in = fb_writer_of(nothing, 0);
    assert_int_equal(fb_handshake_read(&x.hs[1], x.p, fb_span_of(zeros, sizeof zeros), &in), FB_OK);
    fb_writer out = fb_writer_of(wire, sizeof wire);
    assert_int_equal(fb_handshake_write(&x.hs[1], x.p, fb_span_of(NULL, 0), &out), FB_ERR_KEY);
    assert_true(x.hs[1].failed);
    pair_end(&x);
}

static void turns_are_kept(void **state)
{
    (void)state;
    pair x;
    uint8_t wire[128], nothing[1];
    pair_begin(&x, "p", "p");
    fb_writer out = fb_writer_of(wire, sizeof wire);
    assert_int_equal(fb_handshake_write(&x.hs[1], x.p, fb_span_of(NULL, 0), &out),
                     FB_ERR_LINK_HANDSHAKE);
    fb_writer small = fb_writer_of(wire, FB_NOISE_XX_1 - 1);
    assert_int_equal(fb_handshake_write(&x.hs[0], x.p, fb_span_of(NULL, 0), &small),
                     FB_ERR_NO_SPACE);
    pair_run(&x, 0, 3); /* neither of the two did harm */
    fb_writer in = fb_writer_of(nothing, 0);
    assert_int_equal(fb_handshake_read(&x.hs[0], x.p, fb_span_of(wire, 32), &in),
                     FB_ERR_LINK_HANDSHAKE);
    pair_end(&x);
}

/* MP-7-19 */
static void ciphers_rekey_and_end(void **state)
{
    (void)state;
    pair x;
    fb_cipher send, receive, other_send, other_receive;
    pair_begin(&x, "p", "p");
    pair_run(&x, 0, 3);
    fb_handshake_split(&x.hs[0], x.p, &send, &other_receive);
    fb_handshake_split(&x.hs[1], x.p, &other_send, &receive);

    uint8_t wire[4 + FB_NOISE_TAG] = "abc", plain[4];
    const fb_span text4 = fb_span_of("abc", 4), none = fb_span_of(NULL, 0);
    fb_b32 before = send.key;
    fb_cipher_rekey(&send, x.p);
    assert_memory_not_equal(before.b, send.key.b, sizeof before.b);
    assert_int_equal(fb_cipher_seal(&send, x.p, none, text4, wire), FB_OK);
    fb_span sealed = fb_span_of(wire, sizeof wire);
    assert_int_equal(fb_cipher_open(&receive, x.p, none, sealed, plain), FB_ERR_LINK_RECORD);
    assert_int_equal(receive.nonce, 0);
    fb_cipher_rekey(&receive, x.p);
    assert_int_equal(fb_cipher_open(&receive, x.p, none, sealed, plain), FB_OK);
    assert_memory_equal(plain, "abc", 4);
    assert_int_equal(fb_cipher_open(&receive, x.p, none, sealed, plain), FB_ERR_LINK_RECORD);
    assert_int_equal(fb_cipher_open(&receive, x.p, none, fb_span_of(wire, 15), plain),
                     FB_ERR_LINK_RECORD);

    send.nonce = receive.nonce = UINT64_MAX;
    assert_int_equal(fb_cipher_seal(&send, x.p, none, text4, wire), FB_ERR_LIMIT);
    assert_int_equal(fb_cipher_open(&receive, x.p, none, sealed, plain), FB_ERR_LIMIT);
    fb_cipher_wipe(&send);
    static const uint8_t zero[32] = {0};
    assert_memory_equal(send.key.b, zero, sizeof zero);
    pair_end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_pattern),
        cmocka_unit_test(every_corrupted_byte_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(another_prologue_is_refused),
        cmocka_unit_test(a_low_order_key_is_refused),
        cmocka_unit_test(turns_are_kept),
        cmocka_unit_test(ciphers_rekey_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
