/* SPDX-License-Identifier: Apache-2.0 */
/* The golden vectors of the envelope profile through every path of the product's code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/hex.h"
#include "protocol/envelope/envelope.h"
#include "protocol/identity/identity.h"

static fb_sodium *sodium;
static const fb_provider *p;
static json_t *root;

static int set_up(void **state)
{
    (void)state;
    json_error_t error;
    root = json_load_file(FB_SOURCE_DIR "/tests/vectors/envelope.json", 0, &error);
    if (root == NULL) fail_msg("%s", error.text);
    assert_int_equal(fb_sodium_create(8, &sodium), FB_OK);
    p = fb_sodium_provider(sodium);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fb_sodium_destroy(sodium);
    json_decref(root);
    return 0;
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    assert_non_null(value);
    return value;
}

static size_t unhex(const char *hex, uint8_t *out, size_t cap)
{
    size_t len = strlen(hex) / 2;
    assert_true(len <= cap);
    assert_true(fb_hex_parse(fb_span_text(hex), out, len));
    return len;
}

static fb_key_handle key_of(fb_id source, fb_b32 *public_key)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(root, "keys"), i, entry)
    {
        fb_id id;
        fb_b32 seed;
        unhex(text(entry, "node_id"), id.b, sizeof id.b);
        if (!fb_id_equal(id, source)) continue;
        unhex(text(entry, "seed_hex"), seed.b, sizeof seed.b);
        unhex(text(entry, "public_key_hex"), public_key->b, sizeof public_key->b);
        fb_key_handle key;
        fb_b32 derived;
        assert_int_equal(fb_sodium_add_signing(sodium, &seed, &key), FB_OK);
        assert_int_equal(p->public_key(p->user, key, &derived), FB_OK);
        assert_true(fb_b32_equal(derived, *public_key));
        assert_true(fb_id_equal(fb_node_id_of(p, public_key), source));
        return key;
    }
    fail_msg("no key for the source");
    return 0;
}

static void check_vector(const json_t *vector)
{
    static fb_envelope_scratch scratch;
    static uint8_t encoded[8192];
    fb_envelope from_json, from_protobuf;
    fb_envelope_fault fault;
    const json_t *object = json_object_get(vector, "envelope");
    char *json = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    assert_int_equal(fb_envelope_decode_json(fb_span_text(json), &scratch, &from_json, &fault),
                     FB_OK);

    uint8_t bytes[2048];
    size_t len = unhex(text(vector, "protobuf_hex"), bytes, sizeof bytes);
    assert_int_equal(fb_envelope_decode_protobuf(fb_span_of(bytes, len), &from_protobuf, &fault),
                     FB_OK);
    assert_true(from_json.readable == from_protobuf.readable);

    const fb_envelope *both[2] = {&from_json, &from_protobuf};
    for (size_t i = 0; i < 2; i++) {
        const fb_envelope *e = both[i];
        fb_writer w = fb_writer_of(encoded, sizeof encoded);
        assert_int_equal(fb_envelope_encode_protobuf(e, &w), FB_OK);
        assert_int_equal(w.at, len);
        assert_memory_equal(encoded, bytes, len);

        /* The vectors' members stand in the draft's order and are spelled as we spell them. */
        w = fb_writer_of(encoded, sizeof encoded);
        assert_int_equal(fb_envelope_encode_json(e, &w), FB_OK);
        assert_int_equal(w.at, strlen(json));
        assert_memory_equal(encoded, json, w.at);

        uint8_t expected[2048];
        size_t expected_len = unhex(text(vector, "preimage_hex"), expected, sizeof expected);
        fb_preimage preimage;
        fb_envelope_preimage(e, &preimage);
        w = fb_writer_of(encoded, sizeof encoded);
        for (size_t k = 0; k < 3; k++) fb_write_span(&w, preimage.parts[k]);
        assert_int_equal(w.at, expected_len);
        assert_memory_equal(encoded, expected, expected_len);

        fb_b32 public_key;
        fb_key_handle key = key_of(e->source, &public_key);
        assert_int_equal(fb_envelope_verify(e, p, &public_key), FB_OK);
        fb_envelope again = *e;
        memset(again.signature.b, 0, sizeof again.signature.b);
        assert_int_equal(fb_envelope_verify(&again, p, &public_key), FB_ERR_BAD_SIGNATURE);
        assert_int_equal(fb_envelope_sign(&again, p, key), FB_OK);
        assert_memory_equal(again.signature.b, e->signature.b, sizeof e->signature.b);
        again.timestamp++;
        assert_int_equal(fb_envelope_verify(&again, p, &public_key), FB_ERR_BAD_SIGNATURE);
        fb_sodium_remove(sodium, key);
    }
    free(json);
}

/* FM-3.1-1, FM-5.1-1, FM-5.1-11, FM-5.4-2, FM-12.1-1, MP-1-8, MP-2-1, MP-3-4, FI-0-1 */
static void golden_vectors(void **state)
{
    (void)state;
    size_t i;
    json_t *vector;
    json_array_foreach(json_object_get(root, "vectors"), i, vector) check_vector(vector);
    assert_int_equal(i, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_vectors),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
