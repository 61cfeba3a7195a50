/* SPDX-License-Identifier: Apache-2.0 */
/* What the program writes and reads as text: JSON, times, invites, settings, command lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/api/doctor.h"
#include "runtime/api/request_codec.h"
#include "runtime/command/cli.h"
#include "runtime/json_in.h"
#include "runtime/settings.h"
#include "runtime/text.h"

static void peer_text_cannot_leave_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
        size_t len;
    } cases[] = {
        {"plain", "plain", 5},
        {"two words", "\"two words\"", 9},
        {"a=b", "\"a=b\"", 3},
        {"", "\"\"", 0},
        {"x\nlevel=error", "\"x\\nlevel=error\"", 13},
        {"\x1b[31m", "\"\\u001b[31m\"", 5},
        {"\xe2\x80\xae", "\\u202e", 3},
        {"\xff\xfe", "\\ufffd\\ufffd", 2},
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd", 3},
        {"\xc3\xbc", "\xc3\xbc", 2},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", 4},
        {"a\0b", "\"a\\u0000b\"", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fb_text text = {0};
        fb_log_value(&text, fb_span_of(cases[i].in, cases[i].len));
        assert_string_equal(fb_text_string(&text), cases[i].out);
        fb_text_free(&text);
    }
}

static void times_of_every_age(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {INT64_C(1718000000123456), "2024-06-10T06:13:20.123Z"},
        {INT64_C(951782400000000), "2000-02-29T00:00:00.000Z"},
        {INT64_C(-62135596800000000), "0001-01-01T00:00:00.000Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[FB_TIME_TEXT_BYTES];
        fb_time_format(cases[i].us, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void objects_keep_the_texts_of_their_values(void **state)
{
    (void)state;
    fb_json_object_in object;
    char why[160];
    const char *text =
        " { \"a\" : 1.10 , \"b\\u0062\":[ 1, {\"x\" : \"] , }\"} ],\n\"c\":\"a b\\\"\" "
        ",\"d\":-12,\"e\":null, \"f\" : { } }\n";
    assert_true(fb_json_object_read(fb_span_text(text), &object, why, sizeof why));
    static const char *const expected[][2] = {
        {"a", "1.10"},        {"bb", "[1,{\"x\":\"] , }\"}]"},
        {"c", "\"a b\\\"\""}, {"d", "-12"},
        {"e", "null"},        {"f", "{}"},
    };
    assert_int_equal(object.count, 6);
    for (size_t i = 0; i < object.count; i++) {
        assert_string_equal(fb_text_string(&object.members[i].name), expected[i][0]);
        assert_string_equal(fb_text_string(&object.members[i].value), expected[i][1]);
    }
    fb_json_object_free(&object);
    assert_true(fb_json_object_read(fb_span_text("{}"), &object, why, sizeof why));
    assert_int_equal(object.count, 0);
    fb_json_object_free(&object);

    fb_span array = fb_span_text("[{\"a\":[1,2]},\"x,]\",3]"), element;
    static const char *const elements[] = {"{\"a\":[1,2]}", "\"x,]\"", "3"};
    size_t at = 0, count = 0;
    while (fb_json_element_next(array, &at, &element)) {
        assert_true(fb_span_equal(element, fb_span_text(elements[count++])));
    }
    assert_int_equal(count, 3);
    at = 0;
    assert_false(fb_json_element_next(fb_span_text("[]"), &at, &element));
}

static void wrong_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "line 1"},
        {"[1]", "object is expected"},
        {"{\"a\":1,\"a\":2}", "duplicate"},
        {"{\"a\":{\"b\":1,\"b\":2}}", "duplicate"},
        {"{\"a\":1}x", "line 1, column 8"},
        {"{\n\"a\":01}", "line 2"},
        {"{\"a\":99999999999999999999}", "too big"},
        {"{\"a\":\"\\ud800\"}", "line 1"},
        {"{\"a\":\"\\u0000\"}", "line 1"},
        {"{\"a\":\"\xff\"}", "line 1"},
        {"{'a':1}", "line 1"},
        {"{\"a\":1,}", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fb_json_object_in object;
        char why[160] = "";
        assert_false(fb_json_object_read(fb_span_text(cases[i].text), &object, why, sizeof why));
        assert_non_null(strstr(why, cases[i].why));
    }
}

static void invites_are_text_and_back(void **state)
{
    (void)state;
    uint8_t bytes[300], back[512];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7);
    for (size_t len = 1; len <= sizeof bytes; len++) {
        fb_text text = {0};
        fb_text_put(&text, " ");
        fb_invite_text(fb_span_of(bytes, len), &text);
        fb_text_put(&text, "\n");
        size_t got = 0;
        assert_true(fb_invite_bytes(fb_span_of(text.p, text.len), back, sizeof back, &got));
        assert_int_equal(got, len);
        assert_memory_equal(back, bytes, len);
        fb_text_free(&text);
    }
    static const char *const wrong[] = {"",
                                        "fbinvite1.",
                                        "fbinvite1",
                                        "fbinvite2.AAAA",
                                        "fbinvite1.AA=A",
                                        "fbinvite1.AAAA trailing",
                                        "fbinvite1.A"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        size_t got = 0;
        bool ok = fb_invite_bytes(fb_span_text(wrong[i]), back, sizeof back, &got);
        assert_true(!ok || got == 0);
    }
}

static void records_become_json(void **state)
{
    (void)state;
    uint8_t room[512];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_id id = {{0x01, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80}};
    fb_write_id(&w, id);
    fb_write_id(&w, id);
    fb_write_u16(&w, 2);
    fb_write_span16(&w, fb_span_text("na\"me"));
    fb_write_u16(&w, 1);
    for (int i = 0; i < 2; i++) fb_write_id(&w, id); /* node; incarnation and sequence */
    fb_write_u64(&w, 5000);
    fb_write_span32(&w, fb_span_text("1.50"));
    fb_write_span16(&w, fb_span_text("t"));
    fb_write_u16(&w, 2);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 2; i++) fb_write_id(&w, id);
        fb_write_u64(&w, (uint64_t)-1000);
        fb_write_span32(&w, fb_span_text(k == 0 ? "\"x\"" : "[]"));
    }
    fb_text text = {0};
    fb_reader r = fb_reader_of(fb_writer_span(&w));
    assert_true(fb_json_record(&text, &r));
    assert_string_equal(
        fb_text_string(&text),
        "{\"id\":\"01900000-0000-7000-8000-000000000000\","
        "\"etag\":\"01900000000070008000000000000000\","
        "\"fields\":{\"na\\\"me\":1.50,\"t\":\"x\"},"
        "\"conflicts\":{\"t\":[{\"value\":[],\"node_id\":\"01900000000070008000000000000000\","
        "\"stamp\":\"1969-12-31T23:59:59.999Z\",\"stamp_ms\":-1}]}}");
    fb_text_free(&text);
    /* A shorter answer is found out, wherever it ends. */
    for (size_t len = 0; len < w.at; len++) {
        r = fb_reader_of(fb_span_of(room, len));
        assert_false(fb_json_record(&text, &r));
        fb_text_free(&text);
    }
}

typedef struct flags {
    const char *config;
    const char *listen;
} flags;

static const char *flag(const void *user, const char *name)
{
    const flags *f = user;
    if (strcmp(name, "config") == 0) return f->config;
    if (strcmp(name, "listen") == 0) return f->listen;
    return NULL;
}

static void settings_by_flag_environment_file_default(void **state)
{
    (void)state;
    char path[] = "/tmp/fb-settings-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    fputs("# comment\nlisten = 127.0.0.1:1\napi = 127.0.0.1:2\nlog-format=json\n", file);
    fclose(file);
    static fb_settings s;
    char why[1024];
    flags f = {path, NULL};
    setenv("FABERIO_API", "127.0.0.1:3", 1);
    assert_true(fb_settings_load(&s, flag, &f, why, sizeof why));
    assert_string_equal(fb_settings_get(&s, FB_SET_LISTEN), "127.0.0.1:1");
    char origin[64];
    snprintf(origin, sizeof origin, "%s:2", path);
    assert_string_equal(s.values[FB_SET_LISTEN].origin, origin);
    assert_string_equal(fb_settings_get(&s, FB_SET_API), "127.0.0.1:3");
    assert_string_equal(s.values[FB_SET_API].origin, "FABERIO_API");
    assert_string_equal(fb_settings_get(&s, FB_SET_STORE), "local");
    assert_string_equal(s.values[FB_SET_STORE].origin, "default");
    f.listen = "none";
    assert_true(fb_settings_load(&s, flag, &f, why, sizeof why));
    assert_string_equal(fb_settings_get(&s, FB_SET_LISTEN), "none");
    assert_string_equal(s.values[FB_SET_LISTEN].origin, "flag --listen");
    unsetenv("FABERIO_API");

    file = fopen(path, "w");
    fputs("listen = x\n\nlisen = y\n", file);
    fclose(file);
    assert_false(fb_settings_load(&s, flag, &f, why, sizeof why));
    assert_non_null(strstr(why, path));
    assert_non_null(strstr(why, ":3: no setting is called lisen"));
    file = fopen(path, "w");
    fputs("nonsense\n", file);
    fclose(file);
    assert_false(fb_settings_load(&s, flag, &f, why, sizeof why));
    assert_non_null(strstr(why, ":1: "));
    unlink(path);
    assert_false(fb_settings_load(&s, flag, &f, why, sizeof why));
    assert_non_null(strstr(why, path));
}

static void numbers_and_times_of_the_command_line(void **state)
{
    (void)state;
    unsigned long long n;
    assert_true(fb_text_number("18446744073709551615", UINT64_MAX, &n) && n == UINT64_MAX);
    assert_false(fb_text_number("18446744073709551616", UINT64_MAX, &n));
    assert_true(fb_text_number("0", 10, &n) && n == 0);
    assert_false(fb_text_number("11", 10, &n));
    assert_false(fb_text_number("5", 4, &n));
    assert_false(fb_text_number("", 10, &n));
    assert_false(fb_text_number("-1", 10, &n));
    assert_false(fb_text_number("1 ", 10, &n));
    assert_true(fb_cli_duration("90", &n) && n == 90);
    assert_true(fb_cli_duration("90s", &n) && n == 90);
    assert_true(fb_cli_duration("15m", &n) && n == 900);
    assert_true(fb_cli_duration("2h", &n) && n == 7200);
    assert_true(fb_cli_duration("7d", &n) && n == 604800);
    assert_false(fb_cli_duration("d", &n));
    assert_false(fb_cli_duration("", &n));
    assert_false(fb_cli_duration("1w", &n));
}

/* What a peer says of its clock is any number of 64 bits. */
static void clocks_that_differ(void **state)
{
    (void)state;
    static const struct {
        int64_t offset_us;
        fb_verdict verdict;
    } cases[] = {
        {0, FB_VERDICT_OK},
        {-9999999, FB_VERDICT_OK},
        {10000001, FB_VERDICT_WARNING},
        {-300000000, FB_VERDICT_WARNING},
        {-300000001, FB_VERDICT_FAILED},
        {INT64_MAX, FB_VERDICT_FAILED},
        {INT64_MIN, FB_VERDICT_FAILED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[128];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_u16(&w, 1);
        fb_write_id(&w, (fb_id){{1}});
        fb_write_id(&w, (fb_id){{2}});
        fb_write_span16(&w, fb_span_text("host:1"));
        fb_write_u8(&w, 4);
        fb_write_u32(&w, FB_OK);
        fb_write_u64(&w, (uint64_t)cases[i].offset_us);
        fb_write_u64(&w, 0);
        fb_write_u64(&w, 7);
        fb_text out = {0};
        fb_verdict worst = FB_VERDICT_OK;
        fb_doctor_spaces(&out, &worst, (fb_span){NULL, 0}, fb_writer_span(&w));
        fb_text_free(&out);
        assert_int_equal(worst, cases[i].verdict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer_text_cannot_leave_its_line),
        cmocka_unit_test(clocks_that_differ),
        cmocka_unit_test(times_of_every_age),
        cmocka_unit_test(objects_keep_the_texts_of_their_values),
        cmocka_unit_test(wrong_json_is_refused_with_its_place),
        cmocka_unit_test(invites_are_text_and_back),
        cmocka_unit_test(records_become_json),
        cmocka_unit_test(settings_by_flag_environment_file_default),
        cmocka_unit_test(numbers_and_times_of_the_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
