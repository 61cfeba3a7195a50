/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON scanner on its own: against a naive twin, against names made to collide, and the
 * helpers for strings and white space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/draw.h"
#include "protocol/base/limits.h"
#include "protocol/envelope/json_names.h"

static const fb_seed seed = {11, 22};
static char text[400000];

static fb_json_fault scan(const char *json, size_t *at)
{
    static const fb_json_rules rules = {16, 256, false, false, 0};
    return fb_json_scan(fb_span_text(json), &rules, NULL, 0, at);
}

/* MP-3-3, MP-4-3 */
static void faults_are_named_and_placed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        fb_json_fault fault;
        size_t at;
    } cases[] = {
        {"", FB_JSON_EMPTY, 0},
        {"  ", FB_JSON_EMPTY, 2},
        {"\xef\xbb\xbf{}", FB_JSON_BOM, 0},
        {"{", FB_JSON_END, 1},
        {"{\"a\"", FB_JSON_END, 4},
        {"[1,", FB_JSON_END, 3},
        {"\"abc", FB_JSON_END, 4},
        {"tru", FB_JSON_END, 3},
        {"[1}", FB_JSON_SYNTAX, 2},
        {"{1:2}", FB_JSON_SYNTAX, 1},
        {"[,1]", FB_JSON_SYNTAX, 1},
        {"1 1", FB_JSON_TRAILING, 2},
        {"\"a\xff\"", FB_JSON_UTF8, 2},
        {"\"a\tb\"", FB_JSON_CONTROL, 2},
        {"\"a\\q\"", FB_JSON_ESCAPE, 2},
        {"\"a\\ud800\"", FB_JSON_SURROGATE, 2},
        {"\"a\\u0000\"", FB_JSON_NUL, 2},
        {"{\"a\":1,\"a\":2}", FB_JSON_DUPLICATE, 8},
        {"[[[[[[[[[[[[[[[[[", FB_JSON_DEPTH, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t at;
        fb_json_fault fault = scan(cases[i].text, &at);
        if (fault != cases[i].fault || at != cases[i].at) {
            fail_msg("%s: %s at %zu", cases[i].text, fb_json_fault_text(fault), at);
        }
    }
    assert_string_equal(fb_json_fault_text((fb_json_fault)99), "unknown");
}

static void field_values(void **state)
{
    (void)state;
    static const char *const good[] = {"1", "\"a\"", "null", " [ ] ", "{\"a\":[{}]}", "-1e5"};
    static const char *const bad[] = {"", "a", "{\"a\":1,\"a\":1}", "\"\\u0000\"", "1 2", "[1,]"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(fb_json_value_check(fb_span_text(good[i])), FB_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(fb_json_value_check(fb_span_text(bad[i])), FB_ERR_VALUE_MALFORMED);
    }
    for (size_t depth = FB_JSON_DEPTH_MAX; depth <= FB_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(fb_json_value_check(fb_span_of(text, 2 * depth)),
                         depth == FB_JSON_DEPTH_MAX ? FB_OK : FB_ERR_LIMIT);
    }
    /* Large objects are sorted to find a name twice. */
    for (unsigned count = FB_JSON_NAMES_MAX; count <= FB_JSON_NAMES_MAX + 1; count++) {
        size_t n = 0;
        for (unsigned i = 0; i < count; i++) {
            n += (size_t)sprintf(text + n, "%c\"%x\":1", i == 0 ? '{' : ',', i * 2654435761u);
        }
        n += (size_t)sprintf(text + n, "}");
        assert_int_equal(fb_json_value_check(fb_span_of(text, n)),
                         count == FB_JSON_NAMES_MAX ? FB_OK : FB_ERR_LIMIT);
    }
    size_t n = 0;
    for (unsigned i = 0; i < 3000; i++) {
        unsigned name = i == 2999 ? 1234 : i;
        n += (size_t)sprintf(text + n, "%c\"%x\":1", i == 0 ? '{' : ',', name);
    }
    n += (size_t)sprintf(text + n, "}");
    assert_int_equal(fb_json_value_check(fb_span_of(text, n)), FB_ERR_VALUE_MALFORMED);
}

static void watched_members(void **state)
{
    (void)state;
    static const fb_json_rules open = {16, 256, true, false, 0}, closed = {16, 256, true, true, 0};
    fb_json_watch watch[2] = {{.name = fb_span_text("a")}, {.name = fb_span_text("bb")}};
    fb_span in = fb_span_text("{\"x\":{\"a\":1},\"\\u0062b\" : [1, {\"a\":2}] ,\"a\":\"\\n\"}");
    assert_int_equal(fb_json_scan(in, &open, watch, 2, NULL), FB_JSON_NONE);
    assert_true(fb_span_equal(watch[0].value, fb_span_text("\"\\n\"")));
    assert_true(watch[0].escaped);
    assert_true(fb_span_equal(watch[1].value, fb_span_text("[1, {\"a\":2}]")));
    assert_int_equal(fb_json_scan(in, &closed, watch, 2, NULL), FB_JSON_UNKNOWN);
    assert_int_equal(
        fb_json_scan(fb_span_text("{\"bb\":1,\"a\":2,\"\\u0061\":3}"), &closed, watch, 2, NULL),
        FB_JSON_DUPLICATE);
    assert_true(fb_span_equal(watch[0].value, fb_span_text("2")));
    /* A value that is cut off does not count as read; a complete one before it does. */
    assert_int_equal(fb_json_scan(fb_span_text("{\"bb\":1,\"a\":[2"), &closed, watch, 2, NULL),
                     FB_JSON_END);
    assert_int_equal(watch[0].value.len, 0);
    assert_true(fb_span_equal(watch[1].value, fb_span_text("1")));
    assert_int_equal(fb_json_scan(fb_span_text("[]"), &open, watch, 2, NULL), FB_JSON_NOT_OBJECT);
    assert_int_equal(watch[1].value.len, 0);
}

/* A random object with short names, some escaped, and whether the twin finds one twice. */
static bool random_object(uint64_t round, size_t *len)
{
    static char names[64][8];
    uint64_t draws = 0;
#define DRAW(bound) fb_draw_below(seed, 1, round, draws++, bound)
    size_t count = (size_t)DRAW(60) + 1, n = 0;
    bool twice = false;
    unsigned alphabet = (unsigned)DRAW(20) + 2;
    for (size_t i = 0; i < count; i++) {
        size_t length = (size_t)DRAW(6);
        for (size_t k = 0; k < length; k++) names[i][k] = (char)('a' + DRAW(alphabet));
        names[i][length] = '\0';
        for (size_t k = 0; k < i; k++) twice |= strcmp(names[i], names[k]) == 0;
        text[n++] = i == 0 ? '{' : ',';
        text[n++] = '"';
        for (size_t k = 0; k < length; k++) {
            if (DRAW(5) == 0) {
                n += (size_t)sprintf(text + n, "\\u%04x", names[i][k]);
            } else {
                text[n++] = names[i][k];
            }
        }
        n += (size_t)sprintf(text + n, "\":%u", (unsigned)DRAW(9));
    }
#undef DRAW
    text[n++] = '}';
    *len = n;
    return twice;
}

/* MP-3-3 */
static void duplicates_as_a_naive_twin_finds_them(void **state)
{
    (void)state;
    size_t found = 0;
    for (uint64_t round = 0; round < 20000; round++) {
        size_t len;
        bool twice = random_object(round, &len);
        fb_status status = fb_json_value_check(fb_span_of(text, len));
        if ((status != FB_OK) != twice) fail_msg("%.*s", (int)len, text);
        found += twice;
    }
    assert_in_range(found, 1000, 19000);
}

/* Names of one hash cannot be had cheaply, but names whose hashes agree in the bits that choose the
 * place in the index can: they make the search long, and must not change what is found. */
static void crowded_names(void **state)
{
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        size_t n = 0;
        unsigned count = 0;
        char first[16] = "";
        for (unsigned i = 0; count < 250; i++) {
            char name[16];
            size_t length = (size_t)snprintf(name, sizeof name, "%x", i);
            if ((fb_json_name_hash_plain(fb_span_of(name, length)) & 0x1ff) != 7) continue;
            if (count == 0) memcpy(first, name, sizeof first);
            n += (size_t)sprintf(text + n, "%c\"%s\":1", count == 0 ? '{' : ',', name);
            count++;
        }
        if (twice) n += (size_t)sprintf(text + n, ",\"%s\":1", first);
        n += (size_t)sprintf(text + n, "}");
        assert_int_equal(fb_json_value_check(fb_span_of(text, n)),
                         twice ? FB_ERR_VALUE_MALFORMED : FB_OK);
    }
}

/* Names longer than a block of the hash, equal but for the last byte or the spelling. */
static void long_names(void **state)
{
    (void)state;
    for (size_t length = 60; length < 200; length += 3) {
        char name[256];
        memset(name, 'n', length);
        name[length] = '\0';
        sprintf(text, "{\"%sa\":1,\"%sb\":2,\"%s\":3}", name, name, name);
        assert_int_equal(fb_json_value_check(fb_span_text(text)), FB_OK);
        for (size_t at = 0; at < length; at += 7) {
            sprintf(text, "{\"%s\":1,\"%.*s\\u006e%s\":2}", name, (int)at, name, name + at + 1);
            assert_int_equal(fb_json_value_check(fb_span_text(text)), FB_ERR_VALUE_MALFORMED);
        }
    }
}

static void quoting_comes_back(void **state)
{
    (void)state;
    uint8_t raw[64], quoted[FB_JSON_QUOTED_MAX(64)], room[64];
    for (uint64_t round = 0; round < 5000; round++) {
        size_t len = (size_t)fb_draw_below(seed, 2, round, 0, sizeof raw + 1);
        for (size_t i = 0; i < len; i++) {
            raw[i] = (uint8_t)(1 + fb_draw_below(seed, 2, round, 1 + i, 0x7e));
        }
        size_t quoted_len;
        assert_true(fb_json_quote(fb_span_of(raw, len), quoted, sizeof quoted, &quoted_len));
        fb_json_watch value = {.value = {quoted, quoted_len}};
        assert_int_equal(fb_json_value_check(value.value), FB_OK);
        value.escaped = true;
        fb_span back;
        assert_true(fb_json_unquote(&value, room, sizeof room, &back));
        assert_true(fb_span_equal(back, fb_span_of(raw, len)));
        if (len > 0) assert_false(fb_json_unquote(&value, room, len - 1, &back));
        size_t short_len;
        for (size_t cap = 0; cap < quoted_len; cap++) {
            assert_false(fb_json_quote(fb_span_of(raw, len), quoted, cap, &short_len));
        }
    }
}

static void unescaping(void **state)
{
    (void)state;
    uint8_t room[64];
    fb_span out;
    fb_json_watch value = {
        .value = fb_span_text("\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\\/\\b\\f\\n\\r\\t\\\\\\\"z\""),
        .escaped = true};
    assert_true(fb_json_unquote(&value, room, sizeof room, &out));
    assert_true(
        fb_span_equal(out, fb_span_text("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\b\f\n\r\t\\\"z")));
    for (size_t cap = 0; cap < out.len; cap++) {
        assert_false(fb_json_unquote(&value, room, cap, &out));
    }
}

static void compacting(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {" { \"a\" : [ 1 , 2 ] ,\t\"b c\" : \"d \\\" e\\\\\" }\r\n",
         "{\"a\":[1,2],\"b c\":\"d \\\" e\\\\\"}"},
        {"1", "1"},
        {" \" \" ", "\" \""},
        {"\"\\\\\" ", "\"\\\\\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t out[64];
        size_t len;
        fb_span in = fb_span_text(cases[i][0]), expected = fb_span_text(cases[i][1]);
        assert_int_equal(fb_json_value_check(in), FB_OK);
        assert_int_equal(fb_json_compact(in, out, expected.len, &len), FB_OK);
        assert_true(fb_span_equal(fb_span_of(out, len), expected));
        assert_int_equal(fb_json_compact(in, out, expected.len - 1, &len), FB_ERR_NO_SPACE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named_and_placed),
        cmocka_unit_test(field_values),
        cmocka_unit_test(watched_members),
        cmocka_unit_test(duplicates_as_a_naive_twin_finds_them),
        cmocka_unit_test(crowded_names),
        cmocka_unit_test(long_names),
        cmocka_unit_test(quoting_comes_back),
        cmocka_unit_test(unescaping),
        cmocka_unit_test(compacting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
