/* SPDX-License-Identifier: Apache-2.0 */
/* The payload's rules (profile 4), each through both encodings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "protocol/envelope/json.h"
#include "tests/unit/envelope_make.h"

#define UUID   "0195a3f0-9150-7898-abcd-000000000013"
#define OBJECT "\"object_id\":\"" UUID "\""

static fb_envelope_scratch scratch;
static char text[2 * FB_PAYLOAD_BYTES_MAX];

static void expect(fb_message_type type, fb_span payload, bool good)
{
    fb_status reason = good ? FB_OK : FB_ERR_BAD_PAYLOAD;
    fb_envelope e;
    fb_envelope_fault fault;
    protobuf_make p = protobuf_make_default();
    protobuf_make_text(&p, FB_ENVELOPE_TYPE, fb_message_type_name(type));
    p.field[FB_ENVELOPE_PAYLOAD].bytes = payload;
    fb_status status = fb_envelope_decode_protobuf(protobuf_make_bytes(&p), &e, &fault);
    if (status != reason) {
        fail_msg("protobuf %.*s: %s (%s)", (int)(payload.len < 200 ? payload.len : 200),
                 (const char *)payload.p, fb_error_name(status), fault.detail);
    }

    char quoted_type[64];
    snprintf(quoted_type, sizeof quoted_type, "\"%s\"", fb_message_type_name(type));
    json_make j = json_make_default();
    j.value[FB_ENVELOPE_TYPE] = quoted_type;
    j.value[FB_ENVELOPE_PAYLOAD] = json_quoted(payload);
    /* Bytes that JSON cannot carry at all are malformed there, wherever they stand. */
    static const fb_json_rules rules = {2, 2, false, false, 0};
    fb_json_fault carried =
        fb_json_scan(fb_span_text(j.value[FB_ENVELOPE_PAYLOAD]), &rules, NULL, 0, NULL);
    if (carried != FB_JSON_NONE) reason = FB_ERR_MALFORMED;
    status = fb_envelope_decode_json(json_make_text(&j), &scratch, &e, &fault);
    if (status != reason) {
        fail_msg("json %.*s: %s (%s)", (int)(payload.len < 200 ? payload.len : 200),
                 (const char *)payload.p, fb_error_name(status), fault.detail);
    }
}

static void changed(const char *payload, bool good)
{
    expect(FB_TYPE_CHANGED, fb_span_text(payload), good);
    expect(FB_TYPE_CONFLICT, fb_span_text(payload), good);
}

static void sync(const char *payload, bool good)
{
    expect(FB_TYPE_SYNC, fb_span_text(payload), good);
}

/* FM-5.1-8, MP-4-4, MP-4-12 */
static void one_object(void **state)
{
    (void)state;
    changed("{" OBJECT "}", true);
    changed(" \t\r\n{ " OBJECT " } ", true);
    changed("[]", false);
    changed("1", false);
    changed("\"" UUID "\"", false);
    changed("null", false);
    changed(" ", false);
    changed("{" OBJECT "}{}", false);
    changed("{" OBJECT "},", false);
    changed("{" OBJECT ",}", false);
    changed("{" OBJECT "", false);
    changed("\xef\xbb\xbf{" OBJECT "}", false);
    changed("{" OBJECT ",\"a\":\"\xef\xbb\xbf\"}", true);
    changed("{" OBJECT ",\"a\":\"\xef\xbf\xbf\xf4\x8f\xbf\xbf\"}", true);
    changed("{" OBJECT ",a:1}", false);
    changed("{" OBJECT ",'a':1}", false);
    changed("{" OBJECT ",\"a\":1 /**/}", false);
    changed("{" OBJECT ",\"a\" 1}", false);
    changed("{" OBJECT "\v}", false);
}

/* MP-4-4, MP-4-11, MP-4-15 */
static void characters(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\xff",
        "\x80",
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf5\x80\x80\x80",
        "\xf4\x90\x80\x80",
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\\ud800",
        "\\udc00",
        "\\ud800x",
        "\\ud800\\u0041",
        "\\udc00\\ud800",
        "\\ud83d\\ud83d",
        "\\u0000",
        "\\x41",
        "\\u12",
        "\\u12g4",
        "\\",
        "\x01",
        "\n",
        "\\U0041",
    };
    static const char *const good[] = {
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "\\ud83d\\ude00",
        "\\uD83D\\uDE00",
        "\\uffff",
        "\\\"\\\\\\/\\b\\f\\n\\r\\t",
        "\x7f",
        "\\u0001",
        "\\u007f",
    };
    /* At each distance from the end of a word of eight bytes. */
    for (size_t pad = 0; pad < 9; pad++) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            snprintf(text, sizeof text, "{" OBJECT ",\"a\":\"%.*s%s\"}", (int)pad, "xxxxxxxxx",
                     bad[i]);
            changed(text, false);
            snprintf(text, sizeof text, "{" OBJECT ",\"%.*s%sx\":1}", (int)pad, "xxxxxxxxx",
                     bad[i]);
            changed(text, false);
        }
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
            snprintf(text, sizeof text, "{" OBJECT ",\"a\":\"%.*s%s\"}", (int)pad, "xxxxxxxxx",
                     good[i]);
            changed(text, true);
            snprintf(text, sizeof text, "{" OBJECT ",\"%.*s%s\":[]}", (int)pad, "xxxxxxxxx",
                     good[i]);
            changed(text, true);
        }
    }
    uint8_t zero[] = "{" OBJECT ",\"a\":\"_\"}";
    zero[sizeof zero - 4] = 0;
    expect(FB_TYPE_CHANGED, fb_span_of(zero, sizeof zero - 1), false);
}

/* MP-4-16 */
static void numbers(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",   "-0",   "1",      "-12",     "0.5",
        "1e5", "1E+5", "1.5e-9", "1e99999", "123456789012345678901234567890"};
    static const char *const bad[] = {"00",  "01",       "-",         "+1",   ".5",
                                      "1.",  "1e",       "1e+",       "1.e5", "0x1",
                                      "NaN", "Infinity", "-Infinity", "1 2",  "--1"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(text, sizeof text, "{" OBJECT ",\"a\":%s}", good[i]);
        changed(text, true);
        snprintf(text, sizeof text, "{" OBJECT ",\"a\":[%s,%s]}", good[i], good[i]);
        changed(text, true);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "{" OBJECT ",\"a\":%s}", bad[i]);
        changed(text, false);
    }
    static const char *const words[] = {"tru", "truee", "True", "nul", "fals", "undefined", ""};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        snprintf(text, sizeof text, "{" OBJECT ",\"a\":%s}", words[i]);
        changed(text, false);
    }
    changed("{" OBJECT ",\"a\":[true,false,null]}", true);
}

/* The payload object is depth 1; arrays and objects count, empty ones too. */
/* MP-4-13 */
static void depth(void **state)
{
    (void)state;
    for (int levels = 14; levels <= 16; levels++) {
        for (int object = 0; object < 2; object++) {
            size_t n = (size_t)sprintf(text, "{" OBJECT ",\"a\":");
            for (int i = 0; i < levels; i++) {
                bool last = i == levels - 1;
                n += (size_t)sprintf(text + n, "%s", !object ? "[" : last ? "{" : "{\"a\":");
            }
            for (int i = 0; i < levels; i++) n += (size_t)sprintf(text + n, object ? "}" : "]");
            sprintf(text + n, "}");
            changed(text, levels <= 15);
        }
    }
    /* Siblings do not add up. */
    size_t n = (size_t)sprintf(text, "{" OBJECT ",\"a\":[");
    for (int i = 0; i < 100; i++) n += (size_t)sprintf(text + n, "[[]],");
    sprintf(text + n, "{}]}");
    changed(text, true);
    /* Far beyond any stack. */
    n = (size_t)sprintf(text, "{" OBJECT ",\"a\":");
    memset(text + n, '[', 40000);
    text[n + 40000] = '\0';
    changed(text, false);
}

static size_t members_of(char *out, int count, const char *first)
{
    size_t n = (size_t)sprintf(out, "{%s", first);
    bool comma = first[0] != '\0';
    for (int i = 0; i < count; i++, comma = true) {
        n += (size_t)sprintf(out + n, "%s\"m%d\":0", comma ? "," : "", i);
    }
    return n + (size_t)sprintf(out + n, "}");
}

/* MP-4-14 */
static void member_counts(void **state)
{
    (void)state;
    members_of(text, 255, OBJECT);
    changed(text, true);
    members_of(text, 256, OBJECT);
    changed(text, false);
    for (int count = 256; count <= 257; count++) {
        size_t n = (size_t)sprintf(text, "{" OBJECT ",\"a\":[");
        for (int k = 0; k < 8; k++) {
            n += members_of(text + n, count, "");
            text[n++] = ',';
        }
        sprintf(text + n, "0]}");
        changed(text, count == 256);
    }
    /* Many in all, few in each; open ones inside each other hold as many as they may. */
    size_t n = (size_t)sprintf(text, "{" OBJECT ",");
    for (int level = 0; level < 14; level++) {
        for (int i = 0; i < 200; i++) n += (size_t)sprintf(text + n, "\"%x\":0,", i);
        n += (size_t)sprintf(text + n, "\"z\":{");
    }
    n += (size_t)sprintf(text + n, "\"a\":[]");
    for (int level = 0; level < 15; level++) n += (size_t)sprintf(text + n, "}");
    assert_true(n < FB_PAYLOAD_BYTES_MAX);
    changed(text, true);
}

/* MP-4-14 */
static void duplicates(void **state)
{
    (void)state;
    changed("{" OBJECT "," OBJECT "}", false);
    changed("{" OBJECT ",\"a\":1,\"a\":1}", false);
    changed("{" OBJECT ",\"a\":1,\"\\u0061\":1}", false);
    changed("{" OBJECT ",\"\\u00e9\":1,\"\xc3\xa9\":1}", false);
    changed("{" OBJECT ",\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":1}", false);
    changed("{" OBJECT ",\"\\/\":1,\"/\":1}", false);
    changed("{" OBJECT ",\"\":1,\"\":1}", false);
    changed("{" OBJECT ",\"a\":1,\"A\":1}", true);
    changed("{" OBJECT ",\"e\xcc\x81\":1,\"\xc3\xa9\":1}", true); /* no normalisation */
    changed("{" OBJECT ",\"a\":{\"a\":{\"a\":{}}}}", true);
    changed("{" OBJECT ",\"a\":[{\"a\":1},{\"a\":1}]}", true);
    changed("{" OBJECT ",\"x\":[[[{\"a\":1,\"b\":2,\"a\":3}]]]}", false);
    changed("{\"\\u006fbject_id\":\"" UUID "\"," OBJECT "}", false);
    changed("{" OBJECT ",\"a\":{\"b\":1},\"b\":1}", true);
    changed("{" OBJECT ",\"a\":1,\"b\":{\"c\":1},\"a\":1}", false);
    /* One duplicate among many, at each size around the ways of looking for it. */
    for (int count = 2; count <= 250; count += count < 24 ? 1 : 37) {
        for (int twice = 0; twice < count; twice += 1 + count / 7) {
            size_t n = members_of(text, count, OBJECT);
            changed(text, true);
            sprintf(text + n - 1, ",\"\\u006d%d\":1}", twice);
            changed(text, false);
        }
    }
}

/* FM-5.3-2, MP-4-17, MP-4-19 */
static void object_id(void **state)
{
    (void)state;
    changed("{}", false);
    changed("{\"object_id\":null}", false);
    changed("{\"object_id\":1}", false);
    changed("{\"object_id\":[\"" UUID "\"]}", false);
    changed("{\"object_id\":\"\"}", false);
    changed("{\"object_id\":\"0195A3F0-9150-7898-ABCD-000000000013\"}", false);
    changed("{\"object_id\":\"0195a3f0-9150-4898-abcd-000000000013\"}", false);
    changed("{\"object_id\":\"0195a3f0-9150-7898-cbcd-000000000013\"}", false);
    changed("{\"object_id\":\"" UUID " \"}", false);
    changed("{\"object\\u005fid\":\"0195a3f0\\u002d9150-7898-abcd-000000000013\"}", true);
    changed("{\"a\":{" OBJECT "}}", false);
    changed("{" OBJECT ",\"a\":{\"object_id\":null}}", true);
    changed("{" OBJECT ",\"scope\":\"all\"}", true); /* looked at in sync only */
    changed("{" OBJECT ",\"scope\":7}", true);
    changed("{\"scope\":\"all\"}", false);
}

/* FM-5.2-2, MP-4-18 */
static void sync_scope(void **state)
{
    (void)state;
    sync("{" OBJECT "}", true);
    sync("{\"scope\":\"database\"}", true);
    sync("{\"scope\":\"file\"}", true);
    sync("{\"scope\":\"all\"}", true);
    sync("{\"sc\\u006fpe\":\"\\u0061ll\"}", true);
    sync("{\"scope\":\"all\",\"more\":[1]}", true);
    sync("{\"scope\":\"state\"}", false);
    sync("{\"scope\":\"ALL\"}", false);
    sync("{\"scope\":\"\"}", false);
    sync("{\"scope\":null}", false);
    sync("{\"scope\":[\"all\"]}", false);
    sync("{}", false);
    sync("{" OBJECT ",\"scope\":\"all\"}", false);
    sync("{" OBJECT ",\"scope\":null}", false);
    sync("{\"object_id\":null,\"scope\":\"all\"}", false);
    sync("{\"a\":{\"scope\":\"all\"}}", false);
}

/* FM-5.3-1, MP-4-20 */
static void facts(void **state)
{
    (void)state;
    static const struct {
        const char *payload;
        bool has_batch;
        uint64_t incarnation, batch;
    } cases[] = {
        {"{" OBJECT ",\"incarnation\":\"00000000000000ff\",\"batch\":12}", true, 255, 12},
        {"{" OBJECT ",\"incarnation\":\"ffffffffffffffff\",\"batch\":18446744073709551615}", true,
         UINT64_MAX, UINT64_MAX},
        {"{" OBJECT ",\"incarnation\":\"00000000000000ff\",\"batch\":18446744073709551616}", false,
         0, 0},
        {"{" OBJECT ",\"incarnation\":\"00000000000000ff\",\"batch\":0}", false, 0, 0},
        {"{" OBJECT ",\"incarnation\":\"00000000000000ff\",\"batch\":-1}", false, 0, 0},
        {"{" OBJECT ",\"incarnation\":\"00000000000000ff\",\"batch\":1.0}", false, 0, 0},
        {"{" OBJECT ",\"incarnation\":\"00000000000000ff\",\"batch\":\"1\"}", false, 0, 0},
        {"{" OBJECT ",\"incarnation\":\"00000000000000FF\",\"batch\":1}", false, 0, 0},
        {"{" OBJECT ",\"incarnation\":\"ff\",\"batch\":1}", false, 0, 0},
        {"{" OBJECT ",\"incarnation\":255,\"batch\":1}", false, 0, 0},
        {"{" OBJECT ",\"batch\":1}", false, 0, 0},
        {"{" OBJECT ",\"incarnation\":\"00000000000000ff\"}", false, 0, 0},
    };
    fb_payload_facts f;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            fb_payload_check(fb_span_text(cases[i].payload), FB_TYPE_CHANGED, &f, NULL), FB_OK);
        assert_true(f.has_object);
        assert_int_equal(f.object.b[15], 0x13);
        assert_int_equal(f.has_batch, cases[i].has_batch);
        assert_true(f.incarnation == cases[i].incarnation && f.batch == cases[i].batch);
    }
    assert_int_equal(fb_payload_check(fb_span_text("{\"scope\":\"file\"}"), FB_TYPE_SYNC, &f, NULL),
                     FB_OK);
    assert_int_equal(f.scope, FB_SCOPE_FILE);
    assert_false(f.has_object);
    /* A type that is not known leaves the general rules. */
    assert_int_equal(fb_payload_check(fb_span_text("{}"), (fb_message_type)0, &f, NULL), FB_OK);
    const char *detail = NULL;
    assert_int_equal(
        fb_payload_check(fb_span_text("{\"object_id\":1}"), (fb_message_type)0, &f, &detail),
        FB_ERR_BAD_PAYLOAD);
    assert_non_null(detail);
}

/* FM-5.3-1 */
static void builders_and_checker_agree(void **state)
{
    (void)state;
    uint8_t out[FB_PAYLOAD_BUILT_MAX];
    fb_id object = {{1, 2, 3, 4, 5, 6, 0x7a, 8, 0x9b, 10, 11, 12, 13, 14, 15, 255}};
    fb_payload_facts f;
    static const uint64_t numbers[] = {0, 1, 9, 10, UINT64_C(1) << 53, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        size_t len = fb_payload_object(object, ~numbers[i], numbers[i], out);
        assert_true(len > 0 && len < sizeof out);
        assert_int_equal(fb_payload_check(fb_span_of(out, len), FB_TYPE_CHANGED, &f, NULL), FB_OK);
        assert_true(fb_id_equal(f.object, object));
        assert_int_equal(f.has_batch, numbers[i] != 0);
        if (f.has_batch) assert_true(f.batch == numbers[i] && f.incarnation == ~numbers[i]);
    }
    for (int i = FB_SCOPE_DATABASE; i <= FB_SCOPE_ALL; i++) {
        size_t len = fb_payload_scope((fb_scope)i, out);
        assert_int_equal(fb_payload_check(fb_span_of(out, len), FB_TYPE_SYNC, &f, NULL), FB_OK);
        assert_int_equal(f.scope, i);
    }
    assert_string_equal(fb_scope_name((fb_scope)4), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_object),    cmocka_unit_test(characters),
        cmocka_unit_test(numbers),       cmocka_unit_test(depth),
        cmocka_unit_test(member_counts), cmocka_unit_test(duplicates),
        cmocka_unit_test(object_id),     cmocka_unit_test(sync_scope),
        cmocka_unit_test(facts),         cmocka_unit_test(builders_and_checker_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
