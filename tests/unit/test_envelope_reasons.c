/* SPDX-License-Identifier: Apache-2.0 */
/* Profile 3 and 4: every rule broken alone, in both encodings; and the order of the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "protocol/envelope/json.h"
#include "tests/unit/envelope_make.h"

#define HEX16   "2fa5bd0b6d0b9e23d8713a87a52ddcff"
#define TOPIC   "platform.replication."
#define SIXTY4  "0123456789012345678901234567890123456789012345678901234567890123"
#define ID_TEXT "0195a3f0-9200-7899-8def-000000000012"

static fb_envelope_scratch scratch;

static void expect_fault(fb_status status, const fb_envelope_fault *fault, fb_status reason,
                         fb_envelope_field field, const char *what)
{
    if (status != reason || fault->reason != reason || fault->field != field) {
        fail_msg("%s: %s/%s (%s), expected %s/%s", what, fb_error_name(status),
                 fb_envelope_field_name(fault->field), fault->detail, fb_error_name(reason),
                 fb_envelope_field_name(field));
    }
}

static void expect_json(const json_make *m, fb_status reason, fb_envelope_field field)
{
    fb_envelope e;
    fb_envelope_fault fault;
    fb_span text = json_make_text(m);
    fb_status status = fb_envelope_decode_json(text, &scratch, &e, &fault);
    char what[400];
    snprintf(what, sizeof what, "%.*s", (int)(text.len < 390 ? text.len : 390),
             (const char *)text.p);
    expect_fault(status, &fault, reason, field, what);
    assert_int_equal(fb_envelope_decode_json(text, &scratch, &e, NULL), status);
}

static void expect_protobuf(const protobuf_make *m, fb_status reason, fb_envelope_field field)
{
    fb_envelope e;
    fb_envelope_fault fault;
    fb_status status = fb_envelope_decode_protobuf(protobuf_make_bytes(m), &e, &fault);
    expect_fault(status, &fault, reason, field, "protobuf");
}

/* FM-5.1-10 */
static void the_default_is_accepted(void **state)
{
    (void)state;
    json_make j = json_make_default();
    expect_json(&j, FB_OK, FB_ENVELOPE_NONE);
    protobuf_make p = protobuf_make_default();
    expect_protobuf(&p, FB_OK, FB_ENVELOPE_NONE);
}

/* FM-3.1-3, FM-3.5-1, FM-5.1-1, FM-5.1-2, FM-5.1-3, FM-5.1-4, FM-5.1-5, FM-5.1-6, FM-5.1-7,
 * FM-5.1-9, FM-5.2-1, FM-5.2-5, FM-7.1-1, FM-9-1, FM-11-9, FM-12.1-1, MP-1-2, MP-1-3, MP-3-1,
 * MP-3-2, MP-4-2, MP-4-5, MP-4-6, MP-4-7, MP-4-8, MP-4-9, MP-4-10, MP-4-21 */
static void json_values(void **state)
{
    (void)state;
    static const struct {
        fb_envelope_field field;
        const char *value;
        fb_status reason;
    } cases[] = {
        {FB_ENVELOPE_ID, "\"0195A3f0-9200-7899-8def-000000000012\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\"0195a3f0-9200-4899-8def-000000000012\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\"0195a3f0-9200-7899-cdef-000000000012\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\"0195a3f0920078998def000000000012\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\" " ID_TEXT "\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\"\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\"" SIXTY4 SIXTY4 SIXTY4 "\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\"\\u0030195a3f0-9200-7899-8def-000000000012\"", FB_OK},
        {FB_ENVELOPE_ID, "1", FB_ERR_MALFORMED},
        {FB_ENVELOPE_ID, "null", FB_ERR_MALFORMED},
        {FB_ENVELOPE_ID, "[]", FB_ERR_MALFORMED},
        {FB_ENVELOPE_ID, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_SPACE, "\"0195a3f0-8000-1890-abcd-000000000001\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_SPACE, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_SOURCE, "\"2FA5BD0B6D0B9E23D8713A87A52DDCFF\"", FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SOURCE, "\"2fa5bd0b6d0b9e23d8713a87a52ddcf\"", FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SOURCE, "\"2fa5bd0b6d0b9e23d8713a87a52ddcfff\"", FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SOURCE, "\"2fa5bd0b6d0b9e23d8713a87a52ddcfg\"", FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SOURCE, "false", FB_ERR_MALFORMED},
        {FB_ENVELOPE_SOURCE, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_MODE, "\"Topic\"", FB_ERR_BAD_MODE},
        {FB_ENVELOPE_MODE, "\"\"", FB_ERR_BAD_MODE},
        {FB_ENVELOPE_MODE, "\"broadcast\"", FB_ERR_BAD_MODE},
        {FB_ENVELOPE_MODE, "\"t\\u006fpic\"", FB_OK},
        {FB_ENVELOPE_MODE, "2", FB_ERR_MALFORMED},
        {FB_ENVELOPE_MODE, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_TARGET, "\"" HEX16 "\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"" TOPIC "\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"" TOPIC "Database\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"" TOPIC "1database\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"" TOPIC "_a\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"" TOPIC "a.b\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"" TOPIC "a-b\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"platform.replicationsdatabase\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "\"" TOPIC "a_0z9\"", FB_OK},
        {FB_ENVELOPE_TARGET, "\"platform\\u002ereplication.state\"", FB_OK},
        {FB_ENVELOPE_TARGET, "\"\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, "{}", FB_ERR_MALFORMED},
        {FB_ENVELOPE_TARGET, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_TYPE, "\"platform.replication.Changed\"", FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TYPE, "\"platform.replication.changed \"", FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TYPE, "\"\"", FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TYPE, "\"" SIXTY4 SIXTY4 SIXTY4 "\"", FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TYPE, "true", FB_ERR_MALFORMED},
        {FB_ENVELOPE_TYPE, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_PAYLOAD, "\"\"", FB_ERR_BAD_PAYLOAD},
        {FB_ENVELOPE_PAYLOAD, "\"{}\"", FB_ERR_BAD_PAYLOAD},
        {FB_ENVELOPE_PAYLOAD, "{}", FB_ERR_MALFORMED},
        {FB_ENVELOPE_PAYLOAD, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_TIMESTAMP, "0", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "-0", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "-1", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "1.0", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "1e3", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "1E0", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "9007199254740992", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "18446744073709551617", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, "9007199254740991", FB_OK},
        {FB_ENVELOPE_TIMESTAMP, "1", FB_OK},
        {FB_ENVELOPE_TIMESTAMP, "\"1\"", FB_ERR_MALFORMED},
        {FB_ENVELOPE_TIMESTAMP, "null", FB_ERR_MALFORMED},
        {FB_ENVELOPE_TIMESTAMP, NULL, FB_ERR_MALFORMED},
        {FB_ENVELOPE_CORRELATION, "\"0195a3f0-9050-7897-cdef-000000000005\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_CORRELATION, "\"\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_CORRELATION, "\"" ID_TEXT "\"", FB_OK},
        {FB_ENVELOPE_CORRELATION, "null", FB_ERR_MALFORMED},
        {FB_ENVELOPE_CORRELATION, "0", FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, "\"" SIXTY4 SIXTY4 "\"", FB_OK},
        {FB_ENVELOPE_SIGNATURE, "\"" SIXTY4 "\"", FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, "\"" SIXTY4 SIXTY4 "00\"", FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE,
         "\"A123456789012345678901234567890123456789012345678901234567890123" SIXTY4 "\"",
         FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, "\"\"", FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, "null", FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, NULL, FB_ERR_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_make m = json_make_default();
        m.value[cases[i].field] = cases[i].value;
        expect_json(&m, cases[i].reason,
                    cases[i].reason == FB_OK ? FB_ENVELOPE_NONE : cases[i].field);
    }
    json_make m = json_make_default();
    m.value[FB_ENVELOPE_MODE] = "\"unicast\"";
    expect_json(&m, FB_ERR_BAD_TARGET, FB_ENVELOPE_TARGET);
    m.value[FB_ENVELOPE_TARGET] = "\"" HEX16 "\"";
    expect_json(&m, FB_OK, FB_ENVELOPE_NONE);
    m.value[FB_ENVELOPE_TARGET] = "\"b4e9d3f28c5e0b1f6g2d9e8c7f6b5a4e1\""; /* the draft 12.1 */
    expect_json(&m, FB_ERR_BAD_TARGET, FB_ENVELOPE_TARGET);
    m.value[FB_ENVELOPE_TARGET] = "\"2FA5BD0B6D0B9E23D8713A87A52DDCFF\"";
    expect_json(&m, FB_ERR_BAD_TARGET, FB_ENVELOPE_TARGET);
}

/* MP-3-1, MP-3-3 */
static void json_form(void **state)
{
    (void)state;
    static const struct {
        const char *before, *inside, *after;
        fb_status reason;
    } cases[] = {
        {" \t\r\n", "", " \t\r\n", FB_OK},
        {"", " ", "", FB_OK},
        {"\xef\xbb\xbf", "", "", FB_ERR_MALFORMED},
        {"[", "", "]", FB_ERR_MALFORMED},
        {"", "", "x", FB_ERR_MALFORMED},
        {"", "", "{}", FB_ERR_MALFORMED},
        {"", ",", "", FB_ERR_MALFORMED},
        {"", ",\"x\":1", "", FB_ERR_MALFORMED},
        {"", ",\"Id\":\"" ID_TEXT "\"", "", FB_ERR_MALFORMED},
        {"", ",\"id\":\"" ID_TEXT "\"", "", FB_ERR_MALFORMED},
        {"", ",\"\\u0069d\":\"" ID_TEXT "\"", "", FB_ERR_MALFORMED},
        {"", ",\"correlation\\u005fid\":\"" ID_TEXT "\"", "", FB_OK},
        {"", ",\"correlation_id\":\"" ID_TEXT "\",\"correlation_id\":\"" ID_TEXT "\"", "",
         FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":\"\xff\"", "", FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":\"\\ud800\"", "", FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":\"\\u0000\"", "", FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":\"\xed\xa0\x80\"", "", FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":\"a\nb\"", "", FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":\"\\x\"", "", FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":01", "", FB_ERR_MALFORMED},
        {"", ",\"correlation_id\":{\"a\":1}", "", FB_ERR_MALFORMED},
        {"", "/**/", "", FB_ERR_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_make m = json_make_default();
        m.before = cases[i].before;
        m.inside = cases[i].inside;
        m.after = cases[i].after;
        fb_envelope e;
        fb_envelope_fault fault;
        fb_status status = fb_envelope_decode_json(json_make_text(&m), &scratch, &e, &fault);
        if (status != cases[i].reason) {
            fail_msg("%s{..%s}%s: %s (%s)", m.before, m.inside, m.after, fb_error_name(status),
                     fault.detail);
        }
    }
    /* A raw zero byte, which the texts above cannot hold; and every truncation. */
    json_make m = json_make_default();
    uint8_t copy[1024];
    fb_span text = json_make_text(&m);
    assert_true(text.len < sizeof copy);
    memcpy(copy, text.p, text.len);
    fb_envelope e;
    for (size_t len = 0; len < text.len; len++) {
        assert_int_equal(fb_envelope_decode_json(fb_span_of(copy, len), &scratch, &e, NULL),
                         FB_ERR_MALFORMED);
    }
    for (size_t at = 0; at < text.len; at++) {
        uint8_t saved = copy[at];
        copy[at] = 0;
        assert_int_equal(fb_envelope_decode_json(fb_span_of(copy, text.len), &scratch, &e, NULL),
                         FB_ERR_MALFORMED);
        copy[at] = saved;
    }
    assert_int_equal(fb_envelope_decode_json((fb_span){NULL, 0}, &scratch, &e, NULL),
                     FB_ERR_MALFORMED);
}

/* FM-3.1-3, FM-3.5-1, FM-5.1-1, FM-5.1-3, FM-5.1-5, FM-9-1, FM-11-9, MP-3-4, MP-3-6, MP-4-2,
 * MP-4-5, MP-4-6, MP-4-7, MP-4-8, MP-4-21 */
static void protobuf_values(void **state)
{
    (void)state;
    static const uint8_t sixteen[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    static const uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0x40, 0, 0x80};
    static const uint8_t v7[16] = {0, 0, 0, 0, 0, 0, 0x7f, 0, 0xbf};
    static const uint8_t variant110[16] = {0, 0, 0, 0, 0, 0, 0x70, 0, 0xc0};
    static const uint8_t bytes[65] = {0};
    const struct {
        fb_envelope_field field;
        fb_span value;
        fb_status reason;
    } cases[] = {
        {FB_ENVELOPE_ID, {v4, 16}, FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, {v7, 16}, FB_OK},
        {FB_ENVELOPE_ID, {variant110, 16}, FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, {v7, 15}, FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, {sixteen, 17}, FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, fb_span_text(ID_TEXT), FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, {v7, 0}, FB_ERR_MALFORMED},
        {FB_ENVELOPE_SPACE, {v4, 16}, FB_ERR_BAD_UUID},
        {FB_ENVELOPE_SPACE, {v7, 0}, FB_ERR_MALFORMED},
        {FB_ENVELOPE_SOURCE, {sixteen, 15}, FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SOURCE, {sixteen, 17}, FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SOURCE, {sixteen, 16}, FB_OK},
        {FB_ENVELOPE_SOURCE, {sixteen, 0}, FB_ERR_MALFORMED},
        {FB_ENVELOPE_TARGET, {sixteen, 16}, FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, fb_span_text(TOPIC "\xc3\xa9"), FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_TARGET, {sixteen, 0}, FB_ERR_MALFORMED},
        {FB_ENVELOPE_TYPE, fb_span_text("platform.replication.foo"), FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TYPE, fb_span_text("\xff\xfe"), FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TYPE, fb_span_text(""), FB_ERR_MALFORMED},
        {FB_ENVELOPE_PAYLOAD, fb_span_text("{}"), FB_ERR_BAD_PAYLOAD},
        {FB_ENVELOPE_PAYLOAD, fb_span_text(""), FB_ERR_MALFORMED},
        {FB_ENVELOPE_CORRELATION, {v4, 16}, FB_ERR_BAD_UUID},
        {FB_ENVELOPE_CORRELATION, {v7, 16}, FB_OK},
        {FB_ENVELOPE_CORRELATION, {v7, 0}, FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, {bytes, 64}, FB_OK},
        {FB_ENVELOPE_SIGNATURE, {bytes, 63}, FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, {bytes, 65}, FB_ERR_MALFORMED},
        {FB_ENVELOPE_SIGNATURE, {bytes, 0}, FB_ERR_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        protobuf_make m = protobuf_make_default();
        m.field[cases[i].field].present = true;
        m.field[cases[i].field].bytes = cases[i].value;
        expect_protobuf(&m, cases[i].reason,
                        cases[i].reason == FB_OK ? FB_ENVELOPE_NONE : cases[i].field);
    }
    const struct {
        fb_envelope_field field;
        uint64_t value;
        fb_status reason;
    } numbers[] = {
        {FB_ENVELOPE_MODE, 0, FB_ERR_MALFORMED},
        {FB_ENVELOPE_MODE, 3, FB_ERR_BAD_MODE},
        {FB_ENVELOPE_MODE, UINT64_C(0x100000001), FB_ERR_BAD_MODE},
        {FB_ENVELOPE_MODE, UINT64_MAX, FB_ERR_BAD_MODE},
        {FB_ENVELOPE_TIMESTAMP, 0, FB_ERR_MALFORMED},
        {FB_ENVELOPE_TIMESTAMP, 1, FB_OK},
        {FB_ENVELOPE_TIMESTAMP, (UINT64_C(1) << 53) - 1, FB_OK},
        {FB_ENVELOPE_TIMESTAMP, UINT64_C(1) << 53, FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_TIMESTAMP, UINT64_MAX, FB_ERR_BAD_TIMESTAMP},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        protobuf_make m = protobuf_make_default();
        m.field[numbers[i].field].value = numbers[i].value;
        expect_protobuf(&m, numbers[i].reason,
                        numbers[i].reason == FB_OK ? FB_ENVELOPE_NONE : numbers[i].field);
    }
    for (unsigned i = 1; i <= FB_ENVELOPE_FIELDS; i++) {
        protobuf_make m = protobuf_make_default();
        m.field[i].present = false;
        bool optional = i == FB_ENVELOPE_CORRELATION;
        expect_protobuf(&m, optional ? FB_OK : FB_ERR_MALFORMED,
                        optional ? FB_ENVELOPE_NONE : (fb_envelope_field)i);
    }
}

/* Fields before 8 of the default message, then hand-made bytes in the place of the rest. */
static void expect_timestamp_bytes(const char *bytes, size_t len, fb_status reason)
{
    protobuf_make m = protobuf_make_default();
    m.field[FB_ENVELOPE_TIMESTAMP].present = false;
    m.field[FB_ENVELOPE_SIGNATURE].present = false;
    uint8_t rest[128];
    memcpy(rest, bytes, len);
    rest[len] = 0x52;
    rest[len + 1] = 64;
    memset(rest + len + 2, 0, 64);
    m.after = fb_span_of(rest, len + 66);
    fb_envelope e;
    assert_int_equal(fb_envelope_decode_protobuf(protobuf_make_bytes(&m), &e, NULL), reason);
}

/* MP-3-5, MP-3-7, MP-4-2 */
static void protobuf_form(void **state)
{
    (void)state;
    expect_timestamp_bytes("\x40\x01", 2, FB_OK);
    expect_timestamp_bytes("\x40\x80\x01", 3, FB_OK);
    expect_timestamp_bytes("\x40\x81\x00", 3, FB_ERR_MALFORMED); /* longer than it must be */
    expect_timestamp_bytes("\x40\x80\x00", 3, FB_ERR_MALFORMED);
    expect_timestamp_bytes("\x40\x00", 2, FB_ERR_MALFORMED);
    expect_timestamp_bytes("\xc0\x00\x01", 3, FB_ERR_MALFORMED); /* the tag too */
    expect_timestamp_bytes("\x41\1\0\0\0\0\0\0\0", 9, FB_ERR_MALFORMED);
    expect_timestamp_bytes("\x42\x01\x01", 3, FB_ERR_MALFORMED);
    expect_timestamp_bytes("\x45\1\0\0\0", 5, FB_ERR_MALFORMED);
    expect_timestamp_bytes("\x43\x44", 2, FB_ERR_MALFORMED);
    expect_timestamp_bytes("\x40\x01\x40\x01", 4, FB_ERR_MALFORMED);      /* twice */
    expect_timestamp_bytes("\x40\x01\x3a\x02{}", 6, FB_ERR_MALFORMED);    /* out of order */
    expect_timestamp_bytes("\x40\x01\x00", 3, FB_ERR_MALFORMED);          /* field 0 */
    expect_timestamp_bytes("\x40\x01\x5a\x01x", 5, FB_ERR_MALFORMED);     /* field 11 */
    expect_timestamp_bytes("\x40\x01\x82\x01\x01x", 6, FB_ERR_MALFORMED); /* field 16 */
    /* Ten bytes with the last 0x01 hold 64 bits, which is only out of range. */
    expect_timestamp_bytes("\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
                           FB_ERR_BAD_TIMESTAMP);
    expect_timestamp_bytes("\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, FB_ERR_MALFORMED);
    expect_timestamp_bytes("\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x01", 12,
                           FB_ERR_MALFORMED);

    protobuf_make m = protobuf_make_default();
    m.after = fb_span_of("\x58", 1);
    fb_envelope e;
    assert_int_equal(fb_envelope_decode_protobuf(protobuf_make_bytes(&m), &e, NULL),
                     FB_ERR_MALFORMED);
    m.after = (fb_span){NULL, 0};
    fb_span whole = protobuf_make_bytes(&m);
    for (size_t len = 0; len < whole.len; len++) {
        assert_int_equal(fb_envelope_decode_protobuf(fb_span_of(whole.p, len), &e, NULL),
                         FB_ERR_MALFORMED);
    }
    assert_int_equal(fb_envelope_decode_protobuf((fb_span){NULL, 0}, &e, NULL), FB_ERR_MALFORMED);
}

/* The first broken rule wins: from the last field to the first, one more is broken each time. */
/* MP-4-1 */
static void json_order(void **state)
{
    (void)state;
    static const struct {
        fb_envelope_field field;
        const char *value;
        fb_status reason;
    } broken[] = {
        {FB_ENVELOPE_CORRELATION, "\"\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_TIMESTAMP, "0", FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_PAYLOAD, "\"[]\"", FB_ERR_BAD_PAYLOAD},
        {FB_ENVELOPE_TYPE, "\"\"", FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TARGET, "\"\"", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_MODE, "\"\"", FB_ERR_BAD_MODE},
        {FB_ENVELOPE_SOURCE, "\"\"", FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SPACE, "\"\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "\"\"", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_SIGNATURE, "\"\"", FB_ERR_MALFORMED},
    };
    json_make m = json_make_default();
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        m.value[broken[i].field] = broken[i].value;
        expect_json(&m, broken[i].reason, broken[i].field);
    }
    m.after = "x";
    expect_json(&m, FB_ERR_MALFORMED, FB_ENVELOPE_NONE);
}

/* MP-4-1 */
static void protobuf_order(void **state)
{
    (void)state;
    static const struct {
        fb_envelope_field field;
        const char *value;
        fb_status reason;
    } broken[] = {
        {FB_ENVELOPE_CORRELATION, "x", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_TIMESTAMP, NULL, FB_ERR_BAD_TIMESTAMP},
        {FB_ENVELOPE_PAYLOAD, "[]", FB_ERR_BAD_PAYLOAD},
        {FB_ENVELOPE_TYPE, "x", FB_ERR_BAD_TYPE},
        {FB_ENVELOPE_TARGET, "x", FB_ERR_BAD_TARGET},
        {FB_ENVELOPE_MODE, NULL, FB_ERR_BAD_MODE},
        {FB_ENVELOPE_SOURCE, "x", FB_ERR_BAD_NODE_ID},
        {FB_ENVELOPE_SPACE, "x", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_ID, "x", FB_ERR_BAD_UUID},
        {FB_ENVELOPE_SIGNATURE, "x", FB_ERR_MALFORMED},
    };
    protobuf_make m = protobuf_make_default();
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        m.field[broken[i].field].value = UINT64_MAX;
        if (broken[i].value != NULL) protobuf_make_text(&m, broken[i].field, broken[i].value);
        expect_protobuf(&m, broken[i].reason, broken[i].field);
    }
}

static char long_text[FB_ENVELOPE_JSON_BYTES_MAX + 2];

/* A payload of exactly len bytes in a long string. */
static fb_span payload_of(size_t len)
{
    static char payload[FB_PAYLOAD_BYTES_MAX + 2];
    static const char head[] = "{\"object_id\":\"0195a3f0-9150-7898-abcd-000000000013\",\"a\":\"";
    memset(payload, 'x', sizeof payload);
    memcpy(payload, head, sizeof head - 1);
    memcpy(payload + len - 2, "\"}", 2);
    return fb_span_of(payload, len);
}

/* FM-5.1-8, MP-3-8, MP-4-11 */
static void sizes(void **state)
{
    (void)state;
    for (size_t extra = 0; extra < 2; extra++) {
        fb_span payload = payload_of(FB_PAYLOAD_BYTES_MAX + extra);
        fb_status reason = extra == 0 ? FB_OK : FB_ERR_BAD_PAYLOAD;
        fb_envelope_field field = extra == 0 ? FB_ENVELOPE_NONE : FB_ENVELOPE_PAYLOAD;
        json_make j = json_make_default();
        j.value[FB_ENVELOPE_PAYLOAD] = json_quoted(payload);
        expect_json(&j, reason, field);
        protobuf_make p = protobuf_make_default();
        p.field[FB_ENVELOPE_PAYLOAD].bytes = payload;
        expect_protobuf(&p, reason, field);
    }

    /* White space up to the limit of the text, and one more. Beyond it nothing is read. */
    json_make j = json_make_default();
    size_t bare = json_make_text(&j).len;
    memset(long_text, ' ', sizeof long_text);
    long_text[FB_ENVELOPE_JSON_BYTES_MAX - bare] = '\0';
    j.after = long_text;
    assert_int_equal(json_make_text(&j).len, FB_ENVELOPE_JSON_BYTES_MAX);
    expect_json(&j, FB_OK, FB_ENVELOPE_NONE);
    j.before = " ";
    expect_json(&j, FB_ERR_TOO_LARGE, FB_ENVELOPE_NONE);
    j.inside = "\xff";
    fb_envelope e;
    fb_envelope_fault fault;
    assert_int_equal(fb_envelope_decode_json(json_make_text(&j), &scratch, &e, &fault),
                     FB_ERR_TOO_LARGE);
    assert_int_equal(e.readable, 0);

    /* A protobuf of the greatest length is one with an unknown field, so malformed; one byte more
     * is too large before that is looked at. */
    protobuf_make p = protobuf_make_default();
    size_t len = protobuf_make_bytes(&p).len;
    p.after = fb_span_of(long_text, FB_ENVELOPE_BYTES_MAX - len);
    assert_int_equal(fb_envelope_decode_protobuf(protobuf_make_bytes(&p), &e, &fault),
                     FB_ERR_MALFORMED);
    p.after.len++;
    expect_protobuf(&p, FB_ERR_TOO_LARGE, FB_ENVELOPE_NONE);
    assert_int_equal(fb_envelope_decode_protobuf(protobuf_make_bytes(&p), &e, NULL),
                     FB_ERR_TOO_LARGE);
}

/* FM-5.1-6, FM-7.1-1, MP-4-9 */
static void topic_lengths(void **state)
{
    (void)state;
    char topic[140] = TOPIC, quoted[150];
    for (size_t len = FB_TOPIC_BYTES_MAX; len <= FB_TOPIC_BYTES_MAX + 1; len++) {
        memset(topic + strlen(TOPIC), 'a', len - strlen(TOPIC));
        topic[len] = '\0';
        fb_status reason = len == FB_TOPIC_BYTES_MAX ? FB_OK : FB_ERR_BAD_TARGET;
        fb_envelope_field field = reason == FB_OK ? FB_ENVELOPE_NONE : FB_ENVELOPE_TARGET;
        json_make j = json_make_default();
        snprintf(quoted, sizeof quoted, "\"%s\"", topic);
        j.value[FB_ENVELOPE_TARGET] = quoted;
        expect_json(&j, reason, field);
        snprintf(quoted, sizeof quoted, "\"\\u0070%s\"", topic + 1);
        expect_json(&j, reason, field);
        protobuf_make p = protobuf_make_default();
        protobuf_make_text(&p, FB_ENVELOPE_TARGET, topic);
        expect_protobuf(&p, reason, field);
    }
}

/* Every payload byte as a six-character escape still converts, and comes back. */
/* MP-3-9 */
static void the_longest_spelling_converts(void **state)
{
    (void)state;
    static char spelled[6 * FB_PAYLOAD_BYTES_MAX + 3];
    static uint8_t encoded[FB_ENVELOPE_JSON_BYTES_MAX];
    fb_span payload = payload_of(FB_PAYLOAD_BYTES_MAX);
    size_t n = 0;
    spelled[n++] = '"';
    for (size_t i = 0; i < payload.len; i++) {
        n += (size_t)sprintf(spelled + n, i % 2 ? "\\u%04x" : "\\u%04X", payload.p[i]);
    }
    spelled[n++] = '"';
    spelled[n] = '\0';
    json_make j = json_make_default();
    j.value[FB_ENVELOPE_PAYLOAD] = spelled;
    fb_envelope e, back;
    assert_int_equal(fb_envelope_decode_json(json_make_text(&j), &scratch, &e, NULL), FB_OK);
    assert_true(fb_span_equal(e.payload, payload));
    fb_writer w = fb_writer_of(encoded, FB_ENVELOPE_BYTES_MAX);
    assert_int_equal(fb_envelope_encode_protobuf(&e, &w), FB_OK);
    assert_int_equal(fb_envelope_decode_protobuf(fb_writer_span(&w), &back, NULL), FB_OK);
    assert_true(fb_span_equal(back.payload, payload));
}

static void encoders_fail_when_full(void **state)
{
    (void)state;
    json_make j = json_make_default();
    fb_envelope e;
    uint8_t out[1024];
    assert_int_equal(fb_envelope_decode_json(json_make_text(&j), &scratch, &e, NULL), FB_OK);
    fb_status (*const encoders[])(const fb_envelope *, fb_writer *) = {fb_envelope_encode_json,
                                                                       fb_envelope_encode_protobuf};
    for (size_t i = 0; i < 2; i++) {
        fb_writer w = fb_writer_of(out, sizeof out);
        assert_int_equal(encoders[i](&e, &w), FB_OK);
        size_t len = w.at;
        for (size_t cap = 0; cap <= len; cap++) {
            w = fb_writer_of(out, cap);
            assert_int_equal(encoders[i](&e, &w), cap == len ? FB_OK : FB_ERR_NO_SPACE);
        }
    }
}

/* What is left readable of a refused envelope. */
static void readable_after_refusal(void **state)
{
    (void)state;
    fb_envelope e;
    json_make j = json_make_default();
    j.value[FB_ENVELOPE_TYPE] = "\"foo\"";
    assert_int_equal(fb_envelope_decode_json(json_make_text(&j), &scratch, &e, NULL),
                     FB_ERR_BAD_TYPE);
    assert_true(fb_envelope_has(&e, FB_ENVELOPE_ID));
    assert_true(fb_envelope_has(&e, FB_ENVELOPE_TARGET));
    assert_false(fb_envelope_has(&e, FB_ENVELOPE_TYPE));
    assert_true(fb_envelope_has(&e, FB_ENVELOPE_TIMESTAMP));
    assert_false(fb_envelope_has(&e, FB_ENVELOPE_CORRELATION));

    fb_span text = json_make_text(&j);
    assert_int_equal(fb_envelope_decode_json(fb_span_of(text.p, 60), &scratch, &e, NULL),
                     FB_ERR_MALFORMED);
    assert_int_equal(e.readable, 1u << FB_ENVELOPE_ID);

    protobuf_make p = protobuf_make_default();
    fb_span bytes = protobuf_make_bytes(&p);
    assert_int_equal(fb_envelope_decode_protobuf(fb_span_of(bytes.p, 40), &e, NULL),
                     FB_ERR_MALFORMED);
    assert_int_equal(e.readable, 1u << FB_ENVELOPE_ID | 1u << FB_ENVELOPE_SPACE);
}

static void drafts(void **state)
{
    (void)state;
    fb_envelope e;
    json_make j = json_make_default();
    j.value[FB_ENVELOPE_SOURCE] = NULL;
    j.value[FB_ENVELOPE_SIGNATURE] = NULL;
    expect_json(&j, FB_ERR_MALFORMED, FB_ENVELOPE_SOURCE);
    assert_int_equal(fb_envelope_draft_json(json_make_text(&j), &scratch, &e, NULL), FB_OK);
    assert_false(fb_envelope_has(&e, FB_ENVELOPE_SOURCE));
    j.value[FB_ENVELOPE_SOURCE] = "\"" HEX16 "\"";
    assert_int_equal(fb_envelope_draft_json(json_make_text(&j), &scratch, &e, NULL), FB_OK);
    assert_true(fb_envelope_has(&e, FB_ENVELOPE_SOURCE));
    j.value[FB_ENVELOPE_SOURCE] = "\"x\"";
    assert_int_equal(fb_envelope_draft_json(json_make_text(&j), &scratch, &e, NULL),
                     FB_ERR_BAD_NODE_ID);
    j.value[FB_ENVELOPE_ID] = NULL;
    assert_int_equal(fb_envelope_draft_json(json_make_text(&j), &scratch, &e, NULL),
                     FB_ERR_MALFORMED);
    protobuf_make p = protobuf_make_default();
    p.field[FB_ENVELOPE_SOURCE].present = p.field[FB_ENVELOPE_SIGNATURE].present = false;
    assert_int_equal(fb_envelope_draft_protobuf(protobuf_make_bytes(&p), &e, NULL), FB_OK);
    p.field[FB_ENVELOPE_TYPE].present = false;
    assert_int_equal(fb_envelope_draft_protobuf(protobuf_make_bytes(&p), &e, NULL),
                     FB_ERR_MALFORMED);
}

/* fb_envelope_check applies the same rules to values put together by hand. */
static void checked_values(void **state)
{
    (void)state;
    json_make j = json_make_default();
    fb_envelope good, e;
    fb_envelope_fault fault;
    assert_int_equal(fb_envelope_decode_json(json_make_text(&j), &scratch, &good, NULL), FB_OK);
    e = good;
    assert_int_equal(fb_envelope_check(&e, &fault), FB_OK);
    assert_int_equal(e.readable, good.readable);
    assert_true(e.facts.has_object);
    e.timestamp = 0;
    assert_int_equal(fb_envelope_check(&e, &fault), FB_ERR_BAD_TIMESTAMP);
    e.payload = fb_span_text("[]");
    assert_int_equal(fb_envelope_check(&e, &fault), FB_ERR_BAD_PAYLOAD);
    e.type = (fb_message_type)4;
    assert_int_equal(fb_envelope_check(&e, &fault), FB_ERR_BAD_TYPE);
    e.topic = fb_span_text("x");
    assert_int_equal(fb_envelope_check(&e, &fault), FB_ERR_BAD_TARGET);
    e.mode = (fb_delivery_mode)0;
    assert_int_equal(fb_envelope_check(&e, &fault), FB_ERR_BAD_MODE);
    e.space.b[6] = 0;
    assert_int_equal(fb_envelope_check(&e, &fault), FB_ERR_BAD_UUID);
    assert_int_equal(fault.field, FB_ENVELOPE_SPACE);
}

/* FM-5.1-7, FM-5.2-1, FM-7.1-1, FM-7.1-2, MP-4-10, MP-6-20 */
static void names(void **state)
{
    (void)state;
    for (int i = FB_TYPE_SYNC; i <= FB_TYPE_CONFLICT; i++) {
        fb_message_type type = (fb_message_type)i;
        assert_int_equal(fb_message_type_of(fb_span_text(fb_message_type_name(type))), type);
    }
    for (int i = FB_TOPIC_DATABASE; i <= FB_TOPIC_STATE; i++) {
        fb_topic topic = (fb_topic)i;
        assert_int_equal(fb_topic_of(fb_span_text(fb_topic_name(topic))), topic);
        assert_true(fb_topic_is_well_formed(fb_span_text(fb_topic_name(topic))));
    }
    assert_int_equal(fb_topic_of(fb_span_text(TOPIC "other")), FB_TOPIC_FOREIGN);
    assert_string_equal(fb_message_type_name((fb_message_type)9), "");
    assert_string_equal(fb_topic_name((fb_topic)9), "");
    assert_string_equal(fb_envelope_field_name((fb_envelope_field)11), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_accepted),
        cmocka_unit_test(json_values),
        cmocka_unit_test(json_form),
        cmocka_unit_test(protobuf_values),
        cmocka_unit_test(protobuf_form),
        cmocka_unit_test(json_order),
        cmocka_unit_test(protobuf_order),
        cmocka_unit_test(sizes),
        cmocka_unit_test(topic_lengths),
        cmocka_unit_test(the_longest_spelling_converts),
        cmocka_unit_test(encoders_fail_when_full),
        cmocka_unit_test(readable_after_refusal),
        cmocka_unit_test(drafts),
        cmocka_unit_test(checked_values),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
