/* SPDX-License-Identifier: Apache-2.0 */
/* What others were attacked by or fell over, and what is right: rows of docs/HOSTILE-INPUT.md that
 * no test of a part had. Real signatures, a receiver of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/uuid.h"
#include "protocol/envelope/json.h"
#include "protocol/identity/identity.h"
#include "runtime/conformance/receiver.h"
#include "tests/unit/envelope_make.h"

#define NOON_MS INT64_C(1718000001000)

static fb_sodium *sodium;
static const fb_provider *provider;
static fb_key_handle keys[2];
static fb_b32 public_keys[2];
static fb_receiver *receiver;
static fb_envelope_scratch scratch;

static const char payload[] = "{\"object_id\":\"0195a3f0-9150-7898-abcd-000000000013\"}";

static fb_id uuid(const char *text)
{
    fb_id id;
    assert_true(fb_uuid_parse(fb_span_text(text), &id));
    return id;
}

static int begin(void **state)
{
    (void)state;
    if (fb_sodium_create(4, &sodium) != FB_OK) return -1;
    provider = fb_sodium_provider(sodium);
    for (uint8_t i = 0; i < 2; i++) {
        fb_b32 seed = {{(uint8_t)(i + 1)}};
        if (fb_sodium_add_signing(sodium, &seed, &keys[i]) != FB_OK) return -1;
        if (provider->public_key(provider->user, keys[i], &public_keys[i]) != FB_OK) return -1;
    }
    receiver = fb_receiver_new(provider);
    fb_receiver_state *r = fb_receiver_state_of(receiver);
    r->self = (fb_id){{9}};
    r->space = uuid("0195a3f0-8000-7890-abcd-000000000001");
    r->now_ms = NOON_MS;
    fb_receiver_subscribe(receiver, fb_span_text(fb_topic_name(FB_TOPIC_DATABASE)), true);
    for (size_t i = 0; i < 2; i++) {
        if (fb_receiver_member(receiver, &public_keys[i], FB_RECEIVER_APPROVED) != FB_OK) return -1;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    fb_receiver_free(receiver);
    fb_sodium_destroy(sodium);
    return 0;
}

/* A message of node 0 to all, signed by `signer`. */
static fb_envelope message(const char *id, size_t signer)
{
    fb_envelope e = {.id = uuid(id),
                     .space = fb_receiver_state_of(receiver)->space,
                     .source = fb_node_id_of(provider, &public_keys[0]),
                     .mode = FB_DELIVERY_TOPIC,
                     .topic = fb_span_text(fb_topic_name(FB_TOPIC_DATABASE)),
                     .type = FB_TYPE_CHANGED,
                     .payload = fb_span_text(payload),
                     .timestamp = (uint64_t)NOON_MS};
    fb_envelope_fault fault;
    assert_int_equal(fb_envelope_check(&e, &fault), FB_OK);
    assert_int_equal(fb_envelope_sign(&e, provider, keys[signer]), FB_OK);
    return e;
}

static fb_status judge(const fb_envelope *e)
{
    fb_envelope_fault fault;
    return fb_receiver_judge(receiver, e, &fault, NULL);
}

/* MP-5-10 */
static void a_forgery_does_not_silence_what_it_imitates(void **state)
{
    (void)state;
    fb_envelope forged = message("0195a3f0-9200-7899-8def-000000000001", 1);
    fb_envelope real = message("0195a3f0-9200-7899-8def-000000000001", 0);
    for (int i = 0; i < 3; i++) assert_int_equal(judge(&forged), FB_ERR_BAD_SIGNATURE);
    assert_int_equal(judge(&real), FB_OK);
    assert_int_equal(judge(&real), FB_ERR_DUPLICATE);
    /* The same id of another sender is another message. */
    fb_envelope other = real;
    other.source = fb_node_id_of(provider, &public_keys[1]);
    assert_int_equal(fb_envelope_sign(&other, provider, keys[1]), FB_OK);
    assert_int_equal(judge(&other), FB_OK);
}

static void what_is_of_another_space_leaves_no_trace(void **state)
{
    (void)state;
    fb_envelope real = message("0195a3f0-9200-7899-8def-000000000002", 0);
    fb_envelope there = real;
    there.space.b[15] ^= 1;
    assert_int_equal(fb_envelope_sign(&there, provider, keys[0]), FB_OK);
    assert_int_equal(judge(&there), FB_ERR_WRONG_SPACE);
    assert_int_equal(judge(&real), FB_OK);
    /* Signed there, shown here. */
    there.space = real.space;
    there.id.b[15] ^= 1;
    assert_int_equal(judge(&there), FB_ERR_BAD_SIGNATURE);
}

/* Adds the group's order to S: libraries that do not compare take it for another signature. */
static void a_signature_has_one_form(void **state)
{
    (void)state;
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,       0xd6,
                                      0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10};
    fb_envelope real = message("0195a3f0-9200-7899-8def-000000000003", 0), twin = real;
    unsigned carry = 0;
    for (size_t i = 0; i < 32; i++) {
        carry += (unsigned)twin.signature.b[32 + i] + order[i];
        twin.signature.b[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    assert_int_equal(carry, 0);
    assert_int_equal(judge(&twin), FB_ERR_BAD_SIGNATURE);
    assert_int_equal(judge(&real), FB_OK);
}

/* The time inside an id says nothing. */
static void an_id_of_the_year_10889_is_an_id(void **state)
{
    (void)state;
    fb_envelope e = message("ffffffff-ffff-7fff-bfff-ffffffffffff", 0);
    assert_int_equal(judge(&e), FB_OK);
    e = message("00000000-0000-7000-8000-000000000000", 0);
    assert_int_equal(judge(&e), FB_OK);
}

/* Of protocol names there is one spelling, in ASCII. MP-4-9 */
static void topics_of_other_alphabets_are_none(void **state)
{
    (void)state;
    static const char *const topics[] = {
        "\"platform.replication.caf\xc3\xa9\"",  /* composed */
        "\"platform.replication.cafe\xcc\x81\"", /* decomposed */
        "\"platform.replication.data\xe2\x80\x8b"
        "base\"", /* zero width */
        "\"platform.replication.\xe2\x80\xae"
        "esabatad\"",                               /* right to left */
        "\"platform.replication.d\xd0\xb0tabase\"", /* a Cyrillic letter */
        "\"platform.replication.database \"",
        "\"platform.replication.database\\u000a\"",
        "\"PLATFORM.replication.database\"",
    };
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        json_make m = json_make_default();
        m.value[FB_ENVELOPE_TARGET] = topics[i];
        fb_envelope e;
        fb_status status = fb_envelope_decode_json(json_make_text(&m), &scratch, &e, NULL);
        assert_int_equal(status, FB_ERR_BAD_TARGET);
    }
}

/* MP-4-21 */
static void a_time_is_a_plain_integer_within_2_to_the_53(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        fb_status status;
    } cases[] = {
        {"9007199254740991", FB_OK},
        {"9007199254740992", FB_ERR_BAD_TIMESTAMP},
        {"9007199254740993", FB_ERR_BAD_TIMESTAMP},
        {"18446744073709551617", FB_ERR_BAD_TIMESTAMP},
        {"1e3", FB_ERR_BAD_TIMESTAMP},
        {"1.0", FB_ERR_BAD_TIMESTAMP},
        {"-0", FB_ERR_BAD_TIMESTAMP},
        {"0", FB_ERR_BAD_TIMESTAMP},
        {"-1", FB_ERR_BAD_TIMESTAMP},
        {"NaN", FB_ERR_MALFORMED},
        {"Infinity", FB_ERR_MALFORMED},
        {"01", FB_ERR_MALFORMED},
        {"\"1718000001000\"", FB_ERR_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_make m = json_make_default();
        m.value[FB_ENVELOPE_TIMESTAMP] = cases[i].text;
        fb_envelope e;
        assert_int_equal(fb_envelope_decode_json(json_make_text(&m), &scratch, &e, NULL),
                         cases[i].status);
    }
}

/* A length is compared with what is there before anything is done with it. */
static void announced_lengths_are_not_believed(void **state)
{
    (void)state;
    static const uint8_t lengths[][10] = {
        {0xff, 0xff, 0xff, 0xff, 0x0f},                               /* 2^32-1 */
        {0x80, 0x80, 0x80, 0x80, 0x10},                               /* 2^32 */
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, /* 2^64-1 */
        {0x12},                                                       /* one more than is there */
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        /* In a block of its own size: a sanitizer sees the first byte beyond it. */
        size_t width = 1;
        while ((lengths[i][width - 1] & 0x80) != 0) width++;
        uint8_t *bytes = calloc(1, 1 + width + 17);
        assert_non_null(bytes);
        bytes[0] = FB_ENVELOPE_ID << 3 | 2;
        memcpy(bytes + 1, lengths[i], width);
        fb_envelope e;
        fb_envelope_fault fault;
        fb_status status =
            fb_envelope_decode_protobuf(fb_span_of(bytes, 1 + width + 17), &e, &fault);
        assert_int_equal(status, FB_ERR_MALFORMED);
        assert_int_equal(e.readable, 0);
        free(bytes);
    }
}

static void a_hundred_thousand_brackets(void **state)
{
    (void)state;
    static const char *const units[] = {"[", "{\"a\":", "[{\"a\":"};
    for (size_t i = 0; i < 3; i++) {
        size_t width = strlen(units[i]), count = 100000 / width;
        char *text = malloc(count * width);
        assert_non_null(text);
        for (size_t k = 0; k < count; k++) memcpy(text + k * width, units[i], width);
        fb_span in = fb_span_of(text, count * width);
        size_t at;
        static const fb_json_rules rules = {FB_PAYLOAD_DEPTH_MAX, FB_PAYLOAD_MEMBERS_MAX, false,
                                            false, 0};
        assert_int_equal(fb_json_scan(in, &rules, NULL, 0, &at), FB_JSON_DEPTH);
        assert_in_range(at, 1, FB_PAYLOAD_DEPTH_MAX * width);
        assert_int_equal(fb_json_value_check(in), FB_ERR_LIMIT);
        free(text);
    }
}

/* The place of a fault is in the text, however it was cut: who prints it reads nothing behind. */
static void a_fault_is_within_what_was_given(void **state)
{
    (void)state;
    json_make m = json_make_default();
    fb_span whole = json_make_text(&m);
    for (size_t len = 0; len < whole.len; len++) {
        uint8_t *cut = malloc(len + 1);
        assert_non_null(cut);
        memcpy(cut, whole.p, len);
        fb_envelope e;
        fb_envelope_fault fault;
        fb_status status = fb_envelope_decode_json(fb_span_of(cut, len), &scratch, &e, &fault);
        assert_int_equal(status, FB_ERR_MALFORMED);
        assert_in_range(fault.offset, 0, len);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forgery_does_not_silence_what_it_imitates),
        cmocka_unit_test(what_is_of_another_space_leaves_no_trace),
        cmocka_unit_test(a_signature_has_one_form),
        cmocka_unit_test(an_id_of_the_year_10889_is_an_id),
        cmocka_unit_test(topics_of_other_alphabets_are_none),
        cmocka_unit_test(a_time_is_a_plain_integer_within_2_to_the_53),
        cmocka_unit_test(announced_lengths_are_not_believed),
        cmocka_unit_test(a_hundred_thousand_brackets),
        cmocka_unit_test(a_fault_is_within_what_was_given),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
