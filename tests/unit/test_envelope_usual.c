/* SPDX-License-Identifier: Apache-2.0 */
/* A protobuf message that is as most are is read in one go, any other field by field. Drafts are
 * always read in the second way: of what has a source and a signature both say the same, whatever
 * byte of it is changed and wherever it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/unit/envelope_make.h"

#define WITH_OBJECT "{\"object_id\":\"0195a3f0-9200-7899-8def-000000000012\"}"

static bool same_id(fb_id a, fb_id b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_facts(const fb_payload_facts *a, const fb_payload_facts *b)
{
    return a->has_object == b->has_object && a->has_batch == b->has_batch && a->scope == b->scope &&
           same_id(a->object, b->object) && a->incarnation == b->incarnation &&
           a->batch == b->batch;
}

static bool same_span(fb_span a, fb_span b)
{
    return a.p == b.p && a.len == b.len;
}

static bool same(const fb_envelope *a, const fb_envelope *b)
{
    return same_id(a->id, b->id) && same_id(a->space, b->space) && same_id(a->source, b->source) &&
           a->mode == b->mode && same_id(a->target_node, b->target_node) &&
           same_span(a->topic, b->topic) && a->type == b->type &&
           same_span(a->payload, b->payload) && same_facts(&a->facts, &b->facts) &&
           a->timestamp == b->timestamp && a->has_correlation == b->has_correlation &&
           same_id(a->correlation, b->correlation) &&
           memcmp(&a->signature, &b->signature, sizeof a->signature) == 0 &&
           a->readable == b->readable;
}

/* What a draft need not have. */
static bool lacks(const fb_envelope_fault *fault)
{
    return (fault->field == FB_ENVELOPE_SOURCE || fault->field == FB_ENVELOPE_SIGNATURE) &&
           strcmp(fault->detail, "the field is missing") == 0;
}

static fb_status expect_same(fb_span bytes)
{
    fb_envelope e, draft;
    fb_envelope_fault fault, of_draft;
    /* No value is left of what was there before. */
    memset(&e, 0xa5, sizeof e);
    memset(&draft, 0x5a, sizeof draft);
    fb_status status = fb_envelope_decode_protobuf(bytes, &e, &fault);
    fb_status as_draft = fb_envelope_draft_protobuf(bytes, &draft, &of_draft);
    assert_int_equal(fault.reason, status);
    assert_int_equal(fb_envelope_decode_protobuf(bytes, &e, NULL), status);
    if (lacks(&fault)) return status;
    assert_int_equal(status, as_draft);
    assert_int_equal(fault.field, of_draft.field);
    assert_int_equal(fault.offset, of_draft.offset);
    assert_string_equal(fault.detail, of_draft.detail);
    assert_true(same(&e, &draft));
    return status;
}

/* In a block of its own size, so that a sanitizer sees a look behind its end. */
static fb_status expect_same_of(const uint8_t *bytes, size_t len)
{
    uint8_t *block = malloc(len == 0 ? 1 : len);
    assert_non_null(block);
    memcpy(block, bytes, len);
    fb_status status = expect_same(fb_span_of(block, len));
    free(block);
    return status;
}

/* Every byte changed in a few ways, every end, and something behind. */
static void expect_same_around(const protobuf_make *m)
{
    static const uint8_t values[] = {0, 1, 2, 3, 16, 0x7f, 0x80, 0xff};
    static uint8_t bytes[FB_ENVELOPE_BYTES_MAX];
    fb_span good = protobuf_make_bytes(m);
    size_t len = good.len;
    memcpy(bytes, good.p, len);
    assert_int_equal(expect_same_of(bytes, len), FB_OK);
    bytes[len] = 0x52;
    assert_int_equal(expect_same_of(bytes, len + 1), FB_ERR_MALFORMED);
    for (size_t i = 0; i < len; i++) {
        assert_int_not_equal(expect_same_of(bytes, i), FB_OK);
        uint8_t was = bytes[i];
        for (size_t k = 0; k < sizeof values; k++) {
            bytes[i] = values[k];
            expect_same_of(bytes, len);
        }
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] = (uint8_t)(was ^ 1u << bit);
            expect_same_of(bytes, len);
        }
        bytes[i] = was;
    }
}

static protobuf_make correlated(void)
{
    protobuf_make m = protobuf_make_default();
    m.field[FB_ENVELOPE_CORRELATION] = m.field[FB_ENVELOPE_ID];
    m.field[FB_ENVELOPE_CORRELATION].present = true;
    return m;
}

static protobuf_make unicast(void)
{
    protobuf_make m = protobuf_make_default();
    m.field[FB_ENVELOPE_MODE].value = FB_DELIVERY_UNICAST;
    m.field[FB_ENVELOPE_TARGET].bytes = m.field[FB_ENVELOPE_SOURCE].bytes;
    return m;
}

static void messages_to_a_topic(void **state)
{
    (void)state;
    for (int topic = FB_TOPIC_DATABASE; topic <= FB_TOPIC_STATE; topic++) {
        protobuf_make m = topic == FB_TOPIC_FILE ? correlated() : protobuf_make_default();
        protobuf_make_text(&m, FB_ENVELOPE_TARGET, fb_topic_name((fb_topic)topic));
        expect_same_around(&m);
    }
}

static void messages_to_a_node(void **state)
{
    (void)state;
    protobuf_make m = unicast();
    expect_same_around(&m);
    m.field[FB_ENVELOPE_CORRELATION] = m.field[FB_ENVELOPE_ID];
    expect_same_around(&m);
}

static void every_type(void **state)
{
    (void)state;
    protobuf_make m = protobuf_make_default();
    protobuf_make_text(&m, FB_ENVELOPE_PAYLOAD, WITH_OBJECT);
    protobuf_make_text(&m, FB_ENVELOPE_TYPE, fb_message_type_name(FB_TYPE_CONFLICT));
    expect_same_around(&m);
    protobuf_make_text(&m, FB_ENVELOPE_TYPE, fb_message_type_name(FB_TYPE_SYNC));
    expect_same_around(&m);
    protobuf_make_text(&m, FB_ENVELOPE_PAYLOAD, "{\"scope\":\"all\"}");
    expect_same_around(&m);
}

/* The length takes two bytes, then three; and one short of either. */
static void payloads_of_every_length(void **state)
{
    (void)state;
    static char text[20000];
    static const size_t lengths[] = {126, 127, 128, 129, 300, 16382, 16383, 16384, 16385};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t begin = sizeof WITH_OBJECT - 2;
        memset(text, ' ', sizeof text);
        memcpy(text, WITH_OBJECT, begin);
        text[lengths[i] - 1] = '}';
        text[lengths[i]] = 0;
        protobuf_make m = protobuf_make_default();
        protobuf_make_text(&m, FB_ENVELOPE_PAYLOAD, text);
        if (lengths[i] < 1000) {
            expect_same_around(&m);
        } else {
            assert_int_equal(expect_same(protobuf_make_bytes(&m)), FB_OK);
        }
    }
}

/* A length that is written although it is 0. */
static void an_empty_payload(void **state)
{
    (void)state;
    protobuf_make m = protobuf_make_default();
    protobuf_make_text(&m, FB_ENVELOPE_PAYLOAD, "");
    fb_span bytes = protobuf_make_bytes(&m);
    assert_int_equal(expect_same_of(bytes.p, bytes.len), FB_ERR_MALFORMED);
}

/* Times of other days take fewer or more bytes. */
static void times(void **state)
{
    (void)state;
    static const uint64_t edges[] = {1,
                                     127,
                                     UINT64_C(1) << 35,
                                     (UINT64_C(1) << 35) - 1,
                                     (UINT64_C(1) << 42) - 1,
                                     UINT64_C(1) << 42,
                                     FB_TIMESTAMP_MS_MAX};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        protobuf_make m = protobuf_make_default();
        m.field[FB_ENVELOPE_TIMESTAMP].value = edges[i];
        fb_span bytes = protobuf_make_bytes(&m);
        assert_int_equal(expect_same_of(bytes.p, bytes.len), FB_OK);
        fb_envelope e;
        assert_int_equal(fb_envelope_decode_protobuf(bytes, &e, NULL), FB_OK);
        assert_true(e.timestamp == edges[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_to_a_topic), cmocka_unit_test(messages_to_a_node),
        cmocka_unit_test(every_type),          cmocka_unit_test(payloads_of_every_length),
        cmocka_unit_test(an_empty_payload),    cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
