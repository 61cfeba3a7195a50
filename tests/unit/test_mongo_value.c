/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values as BSON values and back: every kind of value, names that a server would not take,
 * depth and size, and what counts as the same value when another program wrote it again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/mongo/client.h"
#include "io/mongo/document.h"
#include "io/mongo/json.h"
#include "io/mongo/value.h"
#include "protocol/base/draw.h"

static bson_iter_t first_of(const bson_t *document)
{
    bson_iter_t at;
    assert_true(bson_iter_init(&at, document) && bson_iter_next(&at));
    return at;
}

/* A server takes it: text is UTF-8, no name has a dot, begins with a dollar or is empty. */
static void assert_valid(const bson_t *document)
{
    const bson_validate_flags_t flags = BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL |
                                        BSON_VALIDATE_DOLLAR_KEYS | BSON_VALIDATE_DOT_KEYS;
    bson_error_t error;
    if (!bson_validate_with_error(document, flags, &error)) fail_msg("%s", error.message);
}

static void becomes(const char *json, bson_type_t type, const char *back)
{
    bson_t document = BSON_INITIALIZER;
    assert_true(fb_mongo_append(&document, fb_span_text("x"), true, fb_span_text(json)));
    assert_valid(&document);
    bson_iter_t at = first_of(&document);
    assert_int_equal(bson_iter_type(&at), type);
    json_t *value = fb_mongo_json(&at);
    char *text = fb_mongo_json_text(value);
    assert_string_equal(text, back);
    free(text);
    json_decref(value);
    bson_destroy(&document);
}

static void test_each_kind_of_value(void **state)
{
    (void)state;
    becomes("null", BSON_TYPE_NULL, "null");
    becomes("true", BSON_TYPE_BOOL, "true");
    becomes("false", BSON_TYPE_BOOL, "false");
    becomes("0", BSON_TYPE_INT64, "0");
    becomes("-1", BSON_TYPE_INT64, "-1");
    becomes("9007199254740993", BSON_TYPE_INT64, "9007199254740993");
    becomes("9223372036854775807", BSON_TYPE_INT64, "9223372036854775807");
    becomes("-9223372036854775808", BSON_TYPE_INT64, "-9223372036854775808");
    becomes("1.5", BSON_TYPE_DOUBLE, "1.5");
    becomes("0.1", BSON_TYPE_DOUBLE, "0.1");
    becomes("1e300", BSON_TYPE_DOUBLE, "1e300");
    becomes("\"\"", BSON_TYPE_UTF8, "\"\"");
    becomes("\"a\\u0000b\"", BSON_TYPE_UTF8, "\"a\\u0000b\"");
    becomes("\"\\ud83d\\ude00\"", BSON_TYPE_UTF8, "\"\xf0\x9f\x98\x80\"");
    becomes("[]", BSON_TYPE_ARRAY, "[]");
    becomes("{}", BSON_TYPE_DOCUMENT, "{}");
    becomes("[1,[2,{\"a\":[]}]]", BSON_TYPE_ARRAY, "[1,[2,{\"a\":[]}]]");
}

/* Beyond 64 bits it is a double, and no other integer beside it becomes one. */
static void test_integers_beyond_64_bits(void **state)
{
    (void)state;
    becomes("9223372036854775808", BSON_TYPE_DOUBLE, "9.223372036854776e18");
    becomes("-9223372036854775809", BSON_TYPE_DOUBLE, "-9.223372036854776e18");
    becomes("[9223372036854775808,9007199254740993]", BSON_TYPE_ARRAY,
            "[9.223372036854776e18,9007199254740993]");
    becomes("{\"99999999999999999999\":\"99999999999999999999\",\"x\":99999999999999999999}",
            BSON_TYPE_DOCUMENT, "{\"99999999999999999999\":\"99999999999999999999\",\"x\":1e20}");
    becomes("[\"\\\"99999999999999999999\",99999999999999999999]", BSON_TYPE_ARRAY,
            "[\"\\\"99999999999999999999\",1e20]");
    becomes("[0.99999999999999999999,99999999999999999999]", BSON_TYPE_ARRAY, "[1.0,1e20]");
    /* No BSON value is so large: its text is shown. */
    becomes("1e400", BSON_TYPE_UTF8, "\"1e400\"");
}

static void nested(char *out, unsigned depth)
{
    memset(out, '[', depth);
    out[depth] = '1';
    memset(out + depth + 1, ']', depth);
    out[2 * depth + 1] = 0;
}

static void test_depth(void **state)
{
    (void)state;
    char json[2 * FB_MONGO_DEPTH_MAX + 8], text[2 * FB_MONGO_DEPTH_MAX + 16];
    nested(json, FB_MONGO_DEPTH_MAX);
    becomes(json, BSON_TYPE_ARRAY, json);
    nested(json, FB_MONGO_DEPTH_MAX + 1);
    snprintf(text, sizeof text, "\"%s\"", json);
    becomes(json, BSON_TYPE_UTF8, text);
    /* Deeper than that by another program: no JSON text says it. */
    bson_t document = BSON_INITIALIZER, levels[FB_MONGO_DEPTH_MAX + 2];
    bson_t *at = &document;
    for (unsigned i = 0; i < FB_MONGO_DEPTH_MAX + 2; i++) {
        assert_true(bson_append_document_begin(at, "a", 1, &levels[i]));
        at = &levels[i];
    }
    for (unsigned i = FB_MONGO_DEPTH_MAX + 2; i-- > 0;) {
        assert_true(bson_append_document_end(i == 0 ? &document : &levels[i - 1], &levels[i]));
    }
    bson_iter_t one = first_of(&document);
    assert_null(fb_mongo_json(&one));
    bson_destroy(&document);
}

static void test_values_that_json_does_not_have(void **state)
{
    (void)state;
    bson_t document = BSON_INITIALIZER;
    bson_append_date_time(&document, "a", 1, 0);
    bson_append_double(&document, "b", 1, strtod("nan", NULL));
    bson_append_double(&document, "c", 1, strtod("inf", NULL));
    bson_append_binary(&document, "d", 1, BSON_SUBTYPE_BINARY, (const uint8_t *)"x", 1);
    bson_append_utf8(&document, "e", 1, "\xff", 1);
    bson_append_regex(&document, "f", 1, "(a+)+", "");
    bson_append_undefined(&document, "g", 1);
    bson_iter_t at;
    bson_iter_init(&at, &document);
    while (bson_iter_next(&at)) assert_null(fb_mongo_json(&at));
    bson_destroy(&document);
}

static void named(const char *name, bool top, const char *key)
{
    bson_t document = BSON_INITIALIZER;
    assert_true(fb_mongo_append(&document, fb_span_text(name), top, fb_span_text("1")));
    assert_valid(&document);
    bson_iter_t at = first_of(&document);
    assert_string_equal(bson_iter_key(&at), key);
    char back[64];
    size_t len = fb_mongo_name(key, back);
    assert_int_equal(len, strlen(name));
    assert_memory_equal(back, name, len);
    bson_destroy(&document);
}

static void test_names(void **state)
{
    (void)state;
    named("a.b", true, "a%2Eb");
    named("$set", true, "%24set");
    named("a$b", true, "a$b");
    named("100%", true, "100%25");
    named("%2E", true, "%252E");
    named("_id", true, "%5Fid");
    named("_faberio", true, "%5Ffaberio");
    named("_id", false, "_id");
    named("_idx", true, "_idx");
    named("", true, "");
    named("\xc3\xa9", true, "\xc3\xa9");
    bson_t document = BSON_INITIALIZER;
    assert_true(fb_mongo_append(&document, fb_span_of("a\0b", 3), true, fb_span_text("1")));
    bson_iter_t at = first_of(&document);
    assert_string_equal(bson_iter_key(&at), "a%00b");
    bson_destroy(&document);
    /* What is no escape of ours stands for itself. */
    char back[8];
    assert_int_equal(fb_mongo_name("%zz%4", back), 5);
}

/* Any value comes back: drawn values with every kind of name and number. */

typedef struct drawing {
    fb_seed seed;
    uint64_t count;
} drawing;

static uint64_t drawn(drawing *d, uint64_t below)
{
    return fb_draw(d->seed, 1, 2, d->count++) % below;
}

static void draw_text(drawing *d, char *out)
{
    static const char *const parts[] = {"a",   ".",        "$",  "%",  "%2E",
                                        "_id", "\xc3\xa9", "\"", "\\", "\xf0\x9f\x98\x80",
                                        "\n",  "_faberio", "0"};
    out[0] = 0;
    for (uint64_t left = drawn(d, 5); left > 0; left--) {
        strcat(out, parts[drawn(d, sizeof parts / sizeof parts[0])]);
    }
}

static json_t *draw_value(drawing *d, unsigned depth)
{
    char text[64];
    json_t *value;
    switch (drawn(d, depth > 5 ? 6 : 8)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(drawn(d, 2));
    case 2:
        return json_integer((json_int_t)fb_draw(d->seed, 1, 3, d->count++));
    case 3:
        return json_integer((json_int_t)drawn(d, 200) - 100);
    case 4:
        return json_real((double)(int64_t)fb_draw(d->seed, 1, 4, d->count++) /
                         (double)(1 + drawn(d, 1000000)));
    case 5:
        draw_text(d, text);
        return json_string(text);
    case 6:
        value = json_array();
        for (uint64_t left = drawn(d, 4); left > 0; left--) {
            json_array_append_new(value, draw_value(d, depth + 1));
        }
        return value;
    default:
        value = json_object();
        for (uint64_t left = drawn(d, 4); left > 0; left--) {
            draw_text(d, text);
            json_object_set_new(value, text, draw_value(d, depth + 1));
        }
        return value;
    }
}

static void test_any_value_comes_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        drawing d = {{seed, 0}, 0};
        json_t *value = draw_value(&d, 0);
        char *json = fb_mongo_json_text(value);
        bson_t document = BSON_INITIALIZER;
        assert_true(fb_mongo_append(&document, fb_span_text("x"), true, fb_span_text(json)));
        assert_valid(&document);
        bson_iter_t at = first_of(&document);
        json_t *back = fb_mongo_json(&at);
        if (back == NULL || !json_equal(back, value)) fail_msg("seed %d: %s", (int)seed, json);
        json_decref(back);
        bson_destroy(&document);
        free(json);
        json_decref(value);
    }
}

/* Sizes */

static void test_a_document_is_measured_as_it_is_sent(void **state)
{
    (void)state;
    /* "[1,1,...]": an element of 2 bytes of text takes at least 11 of a document. */
    size_t elements = 2000000, len = 2 * elements + 1;
    char *json = malloc(len);
    assert_non_null(json);
    for (size_t i = 0; i < len; i++) json[i] = i % 2 == 0 ? ',' : '1';
    json[0] = '[';
    json[len - 1] = ']';
    const fb_document_field field = {fb_span_text("x"), fb_span_of(json, len)};
    fb_document_change change = {.version = {1, 1}};
    change.document =
        (fb_document){.record = fb_span_text("r"), .fields = &field, .field_count = 1};
    bson_t document;
    assert_true(len < FB_MONGO_DOCUMENT_MAX);
    assert_false(fb_mongo_document_make(&change, &document));
    bson_destroy(&document);
    json[200000] = ']';
    const fb_document_field fits = {fb_span_text("x"), fb_span_of(json, 200001)};
    change.document.fields = &fits;
    assert_true(fb_mongo_document_make(&change, &document));
    assert_true(document.len <= FB_MONGO_DOCUMENT_MAX);
    bson_destroy(&document);
    free(json);
}

/* What another program wrote again */

static char told[256];

static bool differs(void *user, fb_span name, fb_span json)
{
    (void)user;
    size_t at = strlen(told);
    snprintf(told + at, sizeof told - at, "%s%.*s=%.*s", at == 0 ? "" : " ", (int)name.len,
             (const char *)name.p, (int)json.len, (const char *)json.p);
    return true;
}

static const char *edits_of(const bson_t *document, const char *shown)
{
    const fb_document_field field = {fb_span_text("x"), fb_span_text(shown)};
    char why[160] = "";
    told[0] = 0;
    fb_span whole = fb_span_of(bson_get_data(document), document->len);
    assert_int_equal(fb_mongo_edits(whole, &field, 1, differs, NULL, why, sizeof why), FB_OK);
    return told;
}

/* x: what the program wrote; NULL where that says the same as what was shown. */
static void rewritten(const char *x, const char *shown, const char *edit)
{
    bson_error_t error;
    bson_t *document = bson_new_from_json((const uint8_t *)x, -1, &error);
    if (document == NULL) fail_msg("%s", error.message);
    assert_string_equal(edits_of(document, shown), edit == NULL ? "" : edit);
    bson_destroy(document);
}

static void test_equal_values_are_no_edit(void **state)
{
    (void)state;
    rewritten("{\"x\":{\"$numberDouble\":\"5\"}}", "5", NULL);
    rewritten("{\"x\":{\"$numberInt\":\"5\"}}", "5", NULL);
    rewritten("{\"x\":{\"$numberLong\":\"5\"}}", "5.0", NULL);
    rewritten("{\"x\":{\"$numberDouble\":\"6\"}}", "5", "x=6.0");
    /* No double is that integer: the one next to it is what such a program makes of it. */
    rewritten("{\"x\":{\"$numberDouble\":\"9007199254740992\"}}", "9007199254740993", NULL);
    rewritten("{\"x\":{\"$numberLong\":\"9007199254740992\"}}", "9007199254740993",
              "x=9007199254740992");
    rewritten("{\"x\":{\"$numberDouble\":\"1.5\"}}", "1.50", NULL);
    rewritten("{\"x\":{\"a\":{\"$numberDouble\":\"1\"},\"b\":[2]}}", "{\"b\":[2.0],\"a\":1}", NULL);
    rewritten("{\"x\":{\"a\":1,\"b\":3}}", "{\"b\":2,\"a\":1}", "x={\"a\":1,\"b\":3}");
    rewritten("{\"x\":\"5\"}", "5", "x=\"5\"");
    rewritten("{\"x\":true}", "1", "x=true");
    rewritten("{\"x\":null}", "0", "x=null");
    rewritten("{}", "1", "x=");
    rewritten("{\"x\":[1]}", "[1,2]", "x=[1]");
}

/* Elements that stay keep their spelling, so a set is told of those alone that came or went. */
static void test_elements_keep_their_spelling(void **state)
{
    (void)state;
    rewritten("{\"x\":[{\"$numberDouble\":\"1.5\"},{\"$numberDouble\":\"2\"}]}", "[1.50,2]", NULL);
    rewritten("{\"x\":[{\"$numberDouble\":\"1.5\"},3]}", "[1.50,2]", "x=[1.50,3]");
    rewritten("{\"x\":[{\"$numberDouble\":\"2\"},{\"$numberDouble\":\"1.5\"},\"a]\"]}",
              "[1.50,2,\"\\u0061]\"]", "x=[2,1.50,\"\\u0061]\"]");
    rewritten("{\"x\":[]}", "[1.50]", "x=[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_of_value),
        cmocka_unit_test(test_integers_beyond_64_bits),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_values_that_json_does_not_have),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_any_value_comes_back),
        cmocka_unit_test(test_a_document_is_measured_as_it_is_sent),
        cmocka_unit_test(test_equal_values_are_no_edit),
        cmocka_unit_test(test_elements_keep_their_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
