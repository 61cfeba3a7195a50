/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that are more than a value: counters and sets, alone, in parallel, beside plain values and
 * deletes, and what a peer may not send of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/database/database.h"
#include "protocol/database/dot.h"
#include "protocol/database/record/change.h"
#include "protocol/database/record/column.h"
#include "protocol/database/record/record.h"
#include "protocol/messaging/messaging.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

typedef struct act {
    const char *field;
    fb_field_act act;
    const char *value;
} act;

static void write_record(fb_writer *w, fb_id space, uint32_t record)
{
    fb_write_id(w, space);
    fb_write_u8(w, 1);
    fb_write_span16(w, fb_span_text("notes"));
    fb_write_id(w, test_net_record_id(record));
}

static fb_status put_mode(test_net *net, uint32_t i, fb_id space, uint32_t record, uint8_t mode,
                          act a)
{
    static const uint8_t zero[16];
    static uint8_t bytes[70000];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, record);
    fb_write_u8(&w, mode);
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, zero, 16);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text(a.field));
    fb_write_u8(&w, (uint8_t)(a.act + 1));
    fb_write_span32(&w, a.value == NULL ? fb_span_of(NULL, 0) : fb_span_text(a.value));
    return test_net_answer(net, i, FB_VERB_RECORD_PUT, &w)->status;
}

static fb_status put(test_net *net, uint32_t i, fb_id space, uint32_t record, act a)
{
    return put_mode(net, i, space, record, 2, a);
}

/* Plain fields numbered from..upto, all set or all taken away. */
static fb_status put_many(test_net *net, uint32_t i, fb_id space, uint8_t mode, fb_field_act what,
                          uint32_t from, uint32_t upto)
{
    static const uint8_t zero[16];
    static uint8_t bytes[70000];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, 1);
    fb_write_u8(&w, mode);
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, zero, 16);
    fb_write_u16(&w, (uint16_t)(upto - from));
    for (uint32_t n = from; n < upto; n++) {
        char name[8];
        int len = snprintf(name, sizeof name, "%u", (unsigned)n);
        fb_write_span16(&w, fb_span_of(name, (size_t)len));
        fb_write_u8(&w, (uint8_t)(what + 1));
        fb_write_span32(&w, what == FB_ACT_SET ? fb_span_text("1") : (fb_span){NULL, 0});
    }
    return test_net_answer(net, i, FB_VERB_RECORD_PUT, &w)->status;
}

/* Values of the field as shown, a space after each; "" when it is not there. */
static const char *shown(test_net *net, uint32_t i, fb_id space, uint32_t record, const char *name)
{
    static char text[70000];
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, record);
    const test_reply *reply = test_net_answer(net, i, FB_VERB_RECORD_GET, &w);
    size_t len = 0;
    text[0] = 0;
    if (reply->status == FB_ERR_NOT_FOUND) return text;
    assert_int_equal(reply->status, FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    fb_read_bytes(&r, 32);
    uint32_t fields = fb_read_u16(&r);
    for (uint32_t f = 0; f < fields; f++) {
        fb_span field = fb_read_span16(&r);
        uint32_t siblings = fb_read_u16(&r);
        for (uint32_t s = 0; s < siblings; s++) {
            fb_read_bytes(&r, FB_DOT_BYTES + 8);
            fb_span v = fb_read_span32(&r);
            if (!fb_span_equal(field, fb_span_text(name))) continue;
            memcpy(text + len, v.p, v.len);
            len += v.len;
            text[len++] = ' ';
            text[len] = 0;
        }
    }
    assert_true(fb_reader_done(&r));
    return text;
}

/* Elements stand in the order of their hashes: how many, and whether these are among them. */
static void check_set(test_net *net, uint32_t i, fb_id space, uint32_t record, uint32_t count,
                      const char *const *elements)
{
    const char *text = shown(net, i, space, record, "s");
    uint32_t commas = 0;
    for (const char *p = text; *p != 0; p++) commas += *p == ',';
    assert_int_equal(commas + 1, count);
    for (uint32_t k = 0; k < count; k++) assert_non_null(strstr(text, elements[k]));
}

static void root_of(test_net *net, uint32_t i, fb_id space, uint8_t out[16])
{
    fb_id area = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes"));
    const fb_node *node = test_net_node(net, i);
    fb_area_info info;
    for (uint32_t k = 0; k < fb_area_capacity(node); k++) {
        if (!fb_area_at(node, k, &info) || !fb_id_equal(info.id, area)) continue;
        memcpy(out, info.root, 16);
        return;
    }
    fail();
}

static void check_equal(test_net *net, fb_id space)
{
    uint8_t a[16], b[16];
    root_of(net, 0, space, a);
    root_of(net, 1, space, b);
    assert_memory_equal(a, b, 16);
}

static test_net *two(fb_id *space)
{
    test_net *net = test_net_new(2, NULL);
    *space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, *space, FB_ROLE_WRITER);
    test_net_run(net, 10 * SECOND);
    return net;
}

static void apart(test_net *net)
{
    test_net_cut(net, 0, 1, true);
}

static void together(test_net *net, fb_id space)
{
    test_net_cut(net, 0, 1, false);
    test_net_run(net, 60 * SECOND);
    check_equal(net, space);
}

static uint64_t conflicts_heard(const test_net *net, uint32_t i)
{
    const fb_node *node = test_net_node((test_net *)(uintptr_t)net, i);
    uint64_t sum = 0;
    for (uint32_t m = 0; m < fb_options_small().sizes.members; m++) {
        sum += fb_message_counts_of(node, m)->conflicts;
    }
    return sum;
}

/* MP-6-18 */
static void kinds_that_disagree_are_told(void **state)
{
    (void)state;
    static const struct {
        act before, a, b;
        bool told;
    } rows[] = {
        {{"f", FB_ACT_UNSET, NULL}, {"f", FB_ACT_ADD, "1"}, {"f", FB_ACT_SET, "\"x\""}, true},
        {{"f", FB_ACT_UNSET, NULL}, {"f", FB_ACT_INSERT, "1"}, {"f", FB_ACT_SET, "1"}, true},
        {{"f", FB_ACT_UNSET, NULL}, {"f", FB_ACT_ADD, "1"}, {"f", FB_ACT_INSERT, "1"}, true},
        {{"f", FB_ACT_UNSET, NULL}, {"f", FB_ACT_ADD, "1"}, {"f", FB_ACT_ADD, "2"}, false},
        {{"f", FB_ACT_UNSET, NULL}, {"f", FB_ACT_INSERT, "1"}, {"f", FB_ACT_INSERT, "2"}, false},
        /* An addition to an integer that is set anew at the same time: counted on from that. */
        {{"f", FB_ACT_SET, "5"}, {"f", FB_ACT_ADD, "1"}, {"f", FB_ACT_SET, "7"}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fb_id space;
        test_net *net = two(&space);
        assert_int_equal(put(net, 0, space, 1, (act){"g", FB_ACT_SET, "0"}), FB_OK);
        assert_int_equal(put(net, 0, space, 1, rows[i].before), FB_OK);
        apart(net);
        assert_int_equal(put(net, 0, space, 1, rows[i].a), FB_OK);
        assert_int_equal(put(net, 1, space, 1, rows[i].b), FB_OK);
        together(net, space);
        assert_int_equal(conflicts_heard(net, 0) + conflicts_heard(net, 1), rows[i].told ? 2 : 0);
        test_net_free(net);
    }
}

/* What two nodes wrote apart is larger than an answer: a list names it and goes on behind it. */
static void a_list_goes_on_behind_a_large_record(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    static char value[6000];
    memset(value, '1', sizeof value - 1);
    for (uint32_t record = 1; record <= 3; record++) {
        assert_int_equal(put(net, 0, space, record, (act){"small", FB_ACT_SET, "1"}), FB_OK);
    }
    apart(net);
    for (uint32_t i = 0; i < 8; i++) {
        const char name[] = {(char)('a' + i), 0};
        assert_int_equal(put(net, i % 2, space, 2, (act){name, FB_ACT_SET, value}), FB_OK);
    }
    together(net, space);
    uint8_t bytes[100];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, 2);
    assert_int_equal(test_net_answer(net, 0, FB_VERB_RECORD_GET, &w)->status, FB_ERR_LIMIT);
    uint32_t named = 0, large = 0;
    fb_id after = {{0}};
    for (bool whole = false; !whole;) {
        w = fb_writer_of(bytes, sizeof bytes);
        write_record(&w, space, 2);
        w.at -= 16;
        fb_write_id(&w, after);
        fb_write_u32(&w, 1);
        const test_reply *reply = test_net_answer(net, 0, FB_VERB_RECORD_LIST, &w);
        assert_int_equal(reply->status, FB_OK);
        fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
        whole = fb_read_u8(&r) == 1;
        uint16_t count = fb_read_u16(&r);
        if (count == 0) continue;
        after = fb_read_id(&r);
        named++;
        fb_read_bytes(&r, 16);
        if (fb_read_u16(&r) != UINT16_MAX) continue;
        large++;
        assert_true(fb_reader_done(&r));
        assert_true(fb_id_equal(after, test_net_record_id(2)));
    }
    assert_int_equal(named, 3);
    assert_int_equal(large, 1);
    /* What makes it smaller is taken. */
    for (uint32_t i = 0; i < 4; i++) {
        const char name[] = {(char)('a' + i), 0};
        assert_int_equal(put(net, 0, space, 2, (act){name, FB_ACT_UNSET, NULL}), FB_OK);
    }
    w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, 2);
    assert_int_equal(test_net_answer(net, 0, FB_VERB_RECORD_GET, &w)->status, FB_OK);
    test_net_free(net);
}

/* FI-2-8 */
static void additions_made_apart_are_all_there(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "5"}), FB_OK);
    assert_int_equal(put(net, 1, space, 1, (act){"c", FB_ACT_ADD, "-2"}), FB_OK);
    assert_string_equal(shown(net, 0, space, 1, "c"), "3 ");
    apart(net);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "10"}), FB_OK);
        assert_int_equal(put(net, 1, space, 1, (act){"c", FB_ACT_ADD, "100"}), FB_OK);
    }
    together(net, space);
    assert_string_equal(shown(net, 0, space, 1, "c"), "333 ");
    assert_string_equal(shown(net, 1, space, 1, "c"), "333 ");
    /* A new life of a node goes on beside its earlier share. */
    test_net_restart(net, 0);
    test_net_run(net, 60 * SECOND);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_OK);
    assert_string_equal(shown(net, 1, space, 1, "c"), "334 ");
    /* Set anew: what had been added is gone on both sides. */
    assert_int_equal(put(net, 1, space, 1, (act){"c", FB_ACT_SET, "7"}), FB_OK);
    assert_string_equal(shown(net, 0, space, 1, "c"), "7 ");
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_OK);
    assert_string_equal(shown(net, 1, space, 1, "c"), "8 ");
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_UNSET, NULL}), FB_OK);
    assert_string_equal(shown(net, 1, space, 1, "c"), "");
    test_net_free(net);
}

static void a_counter_counts_on_from_an_integer(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_SET, "40"}), FB_OK);
    apart(net);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_OK);
    assert_int_equal(put(net, 1, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_OK);
    together(net, space);
    assert_string_equal(shown(net, 0, space, 1, "c"), "42 ");
    /* Beside an addition somebody sets a text: the newest is shown, nothing is lost. */
    apart(net);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_OK);
    assert_int_equal(put(net, 1, space, 1, (act){"c", FB_ACT_SET, "\"x\""}), FB_OK);
    together(net, space);
    const char *text = shown(net, 0, space, 1, "c");
    assert_non_null(strstr(text, "\"x\" "));
    assert_int_equal(strlen(text), strlen("\"x\" 2 "));
    char copy[32];
    snprintf(copy, sizeof copy, "%s", text);
    assert_string_equal(shown(net, 1, space, 1, "c"), copy);
    test_net_free(net);
}

static void ends_of_the_range(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    const char most[] = "9223372036854775807", least[] = "-9223372036854775808";
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, most}), FB_OK);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_ERR_LIMIT);
    assert_int_equal(put(net, 1, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_OK);
    assert_string_equal(shown(net, 1, space, 1, "c"), "9223372036854775807 ");
    assert_int_equal(put(net, 1, space, 1, (act){"c", FB_ACT_ADD, "-3"}), FB_OK);
    assert_string_equal(shown(net, 0, space, 1, "c"), "9223372036854775805 ");
    assert_int_equal(put(net, 0, space, 2, (act){"c", FB_ACT_ADD, least}), FB_OK);
    assert_int_equal(put(net, 0, space, 2, (act){"c", FB_ACT_ADD, "-1"}), FB_ERR_LIMIT);
    assert_string_equal(shown(net, 1, space, 2, "c"), "-9223372036854775808 ");
    static const char *const wrong[] = {"1.0",
                                        "1e3",
                                        "\"1\"",
                                        "true",
                                        "null",
                                        "[1]",
                                        "-0",
                                        "9223372036854775808",
                                        "{}",
                                        "0.5",
                                        "-9223372036854775809"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, wrong[i]}),
                         FB_ERR_VALUE_MALFORMED);
    }
    test_net_free(net);
}

static void insertions_win_over_removals_that_had_not_seen_them(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_INSERT, "\"a\""}), FB_OK);
    assert_int_equal(put(net, 1, space, 1, (act){"s", FB_ACT_INSERT, "\"b\""}), FB_OK);
    check_set(net, 0, space, 1, 2, (const char *const[]){"\"a\"", "\"b\""});
    apart(net);
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_REMOVE, "\"a\""}), FB_OK);
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_REMOVE, "\"b\""}), FB_OK);
    assert_string_equal(shown(net, 0, space, 1, "s"), "");
    assert_int_equal(put(net, 1, space, 1, (act){"s", FB_ACT_INSERT, "\"a\""}), FB_OK);
    assert_int_equal(put(net, 1, space, 1, (act){"s", FB_ACT_INSERT, " { \"k\" : [ 1 ] } "}),
                     FB_OK);
    together(net, space);
    check_set(net, 0, space, 1, 2, (const char *const[]){"\"a\"", "{\"k\":[1]}"});
    check_set(net, 1, space, 1, 2, (const char *const[]){"\"a\"", "{\"k\":[1]}"});
    /* Both insert one element: it is there once. */
    apart(net);
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_INSERT, "7"}), FB_OK);
    assert_int_equal(put(net, 1, space, 1, (act){"s", FB_ACT_INSERT, "7"}), FB_OK);
    together(net, space);
    check_set(net, 0, space, 1, 3, (const char *const[]){"\"a\"", "{\"k\":[1]}", "7"});
    /* A delete takes away what it saw, and a value that is set as well. */
    apart(net);
    assert_int_equal(put_mode(net, 0, space, 1, 1, (act){"t", FB_ACT_SET, "1"}), FB_OK);
    assert_int_equal(put(net, 1, space, 1, (act){"s", FB_ACT_INSERT, "8"}), FB_OK);
    together(net, space);
    check_set(net, 1, space, 1, 1, (const char *const[]){"8"});
    assert_int_equal(put(net, 1, space, 1, (act){"s", FB_ACT_SET, "[]"}), FB_OK);
    assert_string_equal(shown(net, 0, space, 1, "s"), "[] ");
    test_net_free(net);
}

static void long_elements_are_stored_apart(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    static char text[2][3002];
    for (int i = 0; i < 2; i++) {
        memset(text[i], 'x' + i, sizeof text[i] - 1);
        text[i][0] = text[i][sizeof text[i] - 2] = '"';
        assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_INSERT, text[i]}), FB_OK);
    }
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_INSERT, "1"}), FB_OK);
    assert_int_equal(put(net, 0, space, 1, (act){"z", FB_ACT_SET, text[0]}), FB_OK);
    check_set(net, 1, space, 1, 3, (const char *const[]){text[0], text[1], "1"});
    assert_int_equal(put(net, 1, space, 1, (act){"s", FB_ACT_REMOVE, text[0]}), FB_OK);
    check_set(net, 0, space, 1, 2, (const char *const[]){text[1], "1"});
    test_net_free(net);
}

static fb_status get(test_net *net, uint32_t i, fb_id space, uint32_t record)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, record);
    return test_net_answer(net, i, FB_VERB_RECORD_GET, &w)->status;
}

static void names_of_collections_have_a_length(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    static char name[FB_COLLECTION_NAME_BYTES_MAX + 1];
    memset(name, 'n', sizeof name);
    for (size_t len = sizeof name - 1; len <= sizeof name; len++) {
        static uint8_t bytes[512];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_id(&w, space);
        fb_write_u8(&w, 1);
        fb_write_span16(&w, fb_span_of(name, len));
        fb_write_id(&w, test_net_record_id(1));
        fb_status status = test_net_answer(net, 0, FB_VERB_RECORD_GET, &w)->status;
        assert_int_equal(status, len == sizeof name ? FB_ERR_LIMIT : FB_ERR_NOT_FOUND);
    }
    test_net_free(net);
}

/* A record that no answer could hold could be read by nobody, nor what stands behind it in a list.
 */
static void a_record_fits_an_answer(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    static char text[3002];
    memset(text, 'x', sizeof text - 1);
    text[0] = text[sizeof text - 2] = '"';
    fb_status status = FB_OK;
    uint32_t count = 0;
    for (; status == FB_OK && count < 20; count++) {
        text[1] = (char)('a' + count);
        status = put(net, 0, space, 1, (act){"s", FB_ACT_INSERT, text});
        assert_int_equal(get(net, 0, space, 1), FB_OK);
    }
    assert_int_equal(status, FB_ERR_LIMIT);
    assert_in_range(count, 8, 12); /* of 32 KiB */
    assert_int_equal(put(net, 0, space, 1, (act){"a", FB_ACT_SET, text}), FB_ERR_LIMIT);
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_SET, text}), FB_OK);
    assert_int_equal(put(net, 0, space, 1, (act){"a", FB_ACT_SET, text}), FB_OK);
    /* What two write apart from each other is stored, and what makes it smaller is taken. */
    apart(net);
    for (uint32_t i = 0; i < 14; i++) {
        char name[] = {(char)('a' + i), 0};
        assert_int_equal(put(net, i / 7, space, 2, (act){name, FB_ACT_SET, text}), FB_OK);
    }
    together(net, space);
    assert_int_equal(get(net, 0, space, 2), FB_ERR_LIMIT);
    assert_int_equal(put(net, 0, space, 2, (act){"z", FB_ACT_SET, "1"}), FB_ERR_LIMIT);
    for (uint32_t i = 0; i < 7; i++) {
        char name[] = {(char)('a' + i), 0};
        assert_int_equal(put(net, 0, space, 2, (act){name, FB_ACT_UNSET, NULL}), FB_OK);
    }
    assert_int_equal(get(net, 0, space, 2), FB_OK);
    test_net_free(net);
}

static void large_sizes(fb_options *options)
{
    options->sizes = fb_options_default().sizes;
}

/* A record has no more columns than a change can name, so each can be replaced; one that writers
 * apart from each other made wider takes what makes it narrower. */
static void a_record_can_be_replaced(void **state)
{
    (void)state;
    enum { MODE_REPLACE = 1, MODE_CHANGE = 2, MOST = FB_RECORD_FIELDS_MAX };
    test_net *net = test_net_new(2, large_sizes);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    assert_int_equal(put_many(net, 0, space, MODE_CHANGE, FB_ACT_SET, 0, MOST + 1), FB_ERR_LIMIT);
    assert_int_equal(put_many(net, 0, space, MODE_CHANGE, FB_ACT_SET, 0, 200), FB_OK);
    assert_int_equal(put_many(net, 0, space, MODE_CHANGE, FB_ACT_SET, 200, MOST), FB_OK);
    const act more = {"more", FB_ACT_SET, "1"}, old = {"7", FB_ACT_SET, "2"};
    assert_int_equal(put(net, 0, space, 1, more), FB_ERR_LIMIT);
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_INSERT, "1"}), FB_ERR_LIMIT);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_ERR_LIMIT);
    assert_string_equal(shown(net, 0, space, 1, "more"), "");
    assert_int_equal(put(net, 0, space, 1, old), FB_OK);
    assert_int_equal(put_mode(net, 0, space, 1, MODE_REPLACE, old), FB_OK);
    assert_string_equal(shown(net, 0, space, 1, "200"), "");
    /* What is taken away and what comes are named both. */
    assert_int_equal(put_many(net, 0, space, MODE_REPLACE, FB_ACT_SET, 0, 200), FB_OK);
    assert_int_equal(put_many(net, 0, space, MODE_REPLACE, FB_ACT_SET, 200, 400), FB_ERR_LIMIT);
    assert_int_equal(put_many(net, 0, space, MODE_REPLACE, FB_ACT_SET, 200, 256), FB_OK);
    assert_int_equal(put_many(net, 0, space, MODE_REPLACE, FB_ACT_SET, 200, 400), FB_OK);
    together(net, space);
    apart(net);
    assert_int_equal(put_many(net, 0, space, MODE_CHANGE, FB_ACT_SET, 400, 456), FB_OK);
    assert_int_equal(put_many(net, 1, space, MODE_CHANGE, FB_ACT_SET, 0, 56), FB_OK);
    together(net, space);
    assert_int_equal(put(net, 1, space, 1, more), FB_ERR_LIMIT);
    assert_int_equal(put_mode(net, 1, space, 1, MODE_REPLACE, old), FB_ERR_LIMIT);
    assert_int_equal(put(net, 1, space, 1, old), FB_OK);
    assert_int_equal(put_many(net, 1, space, MODE_CHANGE, FB_ACT_UNSET, 200, 300), FB_OK);
    assert_int_equal(put_mode(net, 1, space, 1, MODE_REPLACE, old), FB_OK);
    together(net, space);
    check_equal(net, space);
    assert_string_equal(shown(net, 0, space, 1, "7"), "2 ");
    assert_string_equal(shown(net, 0, space, 1, "399"), "");
    test_net_free(net);
}

static void kinds_are_not_mixed(void **state)
{
    (void)state;
    fb_id space;
    test_net *net = two(&space);
    assert_int_equal(put(net, 0, space, 1, (act){"t", FB_ACT_SET, "\"text\""}), FB_OK);
    assert_int_equal(put(net, 0, space, 1, (act){"c", FB_ACT_ADD, "1"}), FB_OK);
    assert_int_equal(put(net, 0, space, 1, (act){"s", FB_ACT_INSERT, "1"}), FB_OK);
    static const struct {
        act a;
        fb_status status;
    } cases[] = {
        {{"t", FB_ACT_ADD, "1"}, FB_ERR_FIELD_KIND},
        {{"t", FB_ACT_INSERT, "1"}, FB_ERR_FIELD_KIND},
        {{"t", FB_ACT_REMOVE, "1"}, FB_ERR_FIELD_KIND},
        {{"c", FB_ACT_INSERT, "1"}, FB_ERR_FIELD_KIND},
        {{"c", FB_ACT_REMOVE, "1"}, FB_ERR_FIELD_KIND},
        {{"s", FB_ACT_ADD, "1"}, FB_ERR_FIELD_KIND},
        {{"s", FB_ACT_REMOVE, "2"}, FB_OK}, /* what is not there is removed already */
        {{"none", FB_ACT_REMOVE, "2"}, FB_OK},
        {{"t", FB_ACTS, "1"}, FB_ERR_REQUEST_MALFORMED},
        {{"t", FB_ACT_UNSET, "1"}, FB_ERR_REQUEST_MALFORMED},
        {{"t", FB_ACT_INSERT, "1,"}, FB_ERR_VALUE_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(put(net, 0, space, 1, cases[i].a), cases[i].status);
    }
    assert_string_equal(shown(net, 1, space, 1, "t"), "\"text\" ");
    assert_string_equal(shown(net, 1, space, 1, "c"), "1 ");
    assert_string_equal(shown(net, 1, space, 1, "s"), "[1] ");
    assert_string_equal(shown(net, 1, space, 1, "none"), "");
    test_net_free(net);
}

static void names_of_columns(void **state)
{
    (void)state;
    uint8_t room[FB_COLUMN_NAME_BYTES_MAX];
    fb_span counter = fb_column_counter(room, fb_span_text("n"));
    assert_true(fb_column_valid(counter, FB_FIELD_COUNTER));
    assert_false(fb_column_valid(counter, FB_FIELD_REGISTER));
    assert_false(fb_column_valid(counter, FB_FIELD_ELEMENT));
    assert_false(fb_column_valid(fb_span_of(counter.p, counter.len - 1), FB_FIELD_COUNTER));
    assert_true(fb_span_equal(fb_column_of(counter).field, fb_span_text("n")));
    assert_int_equal(fb_column_value_check(counter, fb_span_text("12")), FB_OK);
    assert_int_equal(fb_column_value_check(counter, fb_span_text("1.5")), FB_ERR_VALUE_MALFORMED);
    fb_span element = fb_column_element(room, fb_span_text("n"), fb_span_text("12"));
    assert_true(fb_column_valid(element, FB_FIELD_ELEMENT));
    assert_false(fb_column_valid(fb_span_of(element.p, element.len - 1), FB_FIELD_ELEMENT));
    assert_int_equal(fb_column_value_check(element, fb_span_text("12")), FB_OK);
    assert_int_equal(fb_column_value_check(element, fb_span_text("13")), FB_ERR_VALUE_MALFORMED);
    static const struct {
        const char *text;
        fb_status status;
    } texts[] = {{"[1,2]", FB_OK},
                 {"[1, 2]", FB_ERR_VALUE_MALFORMED},
                 {"12\n", FB_ERR_VALUE_MALFORMED},
                 {"\"a \\\" b\"", FB_OK},
                 {"[\"a\\\\\", 1]", FB_ERR_VALUE_MALFORMED}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fb_span text = fb_span_text(texts[i].text);
        element = fb_column_element(room, fb_span_text("n"), text);
        assert_int_equal(fb_column_value_check(element, text), texts[i].status);
    }
    assert_false(fb_column_valid(fb_span_of("", 0), FB_FIELD_REGISTER));
    assert_false(fb_column_valid(fb_span_of("\0\2", 2), FB_FIELD_COUNTER));
    assert_int_equal(fb_field_name_check(fb_span_of("a\0b", 3)), FB_ERR_REQUEST_MALFORMED);
    assert_int_equal(fb_field_name_check(fb_span_of("", 0)), FB_ERR_REQUEST_MALFORMED);
    assert_int_equal(fb_field_name_check(fb_span_of("\xc3", 1)), FB_ERR_REQUEST_MALFORMED);
    assert_int_equal(fb_field_name_check(fb_span_of("\xc3\xa9", 2)), FB_OK);
    char name[FB_FIELD_NAME_BYTES_MAX + 1];
    memset(name, 'n', sizeof name);
    assert_int_equal(fb_field_name_check(fb_span_of(name, sizeof name)), FB_ERR_LIMIT);
    fb_span whole = fb_span_of(name, FB_FIELD_NAME_BYTES_MAX);
    assert_int_equal(fb_field_name_check(whole), FB_OK);
    assert_int_equal(fb_column_element(room, whole, fb_span_text("1")).len, sizeof room);
}

static fb_status decode_change(fb_span name, uint8_t kind)
{
    static const uint8_t author[16];
    uint8_t bytes[512];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_change_write_head(&w, test_net_record_id(1), FB_CHANGE_WRITE, 1, FB_AUTHOR_OPERATOR, author);
    fb_write_u16(&w, 0);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, name);
    fb_write_u8(&w, kind);
    fb_write_u8(&w, FB_FIELD_UNSET);
    fb_write_u16(&w, 0);
    assert_false(w.failed);
    fb_change change;
    return fb_change_decode(fb_writer_span(&w), &change);
}

static fb_status decode_record(fb_span name)
{
    static const uint8_t fingerprint[16];
    uint8_t bytes[512];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u8(&w, FB_RECORD_VERSION);
    fb_write_bytes(&w, fingerprint, sizeof fingerprint);
    fb_write_u16(&w, 0);
    fb_write_u32(&w, (uint32_t)(8 + 2 + name.len + 4));
    for (int i = 0; i < 3; i++) fb_write_u16(&w, 0); /* existence, what is kept */
    fb_write_u16(&w, 1);
    fb_write_span16(&w, name);
    fb_write_u32(&w, 0); /* siblings, what is kept */
    assert_false(w.failed);
    fb_record record;
    return fb_record_decode(fb_writer_span(&w), &record);
}

/* From a peer, and in a store that is damaged or older than columns. */
static void names_that_are_no_columns(void **state)
{
    (void)state;
    char name[FB_COLUMN_NAME_BYTES_MAX];
    memset(name, 'n', sizeof name);
    fb_span longest = fb_span_of(name, FB_FIELD_NAME_BYTES_MAX);
    fb_span longer = fb_span_of(name, FB_FIELD_NAME_BYTES_MAX + 1);
    assert_int_equal(decode_change(longest, FB_FIELD_REGISTER), FB_OK);
    assert_int_equal(decode_change(longer, FB_FIELD_REGISTER), FB_ERR_LIMIT);
    assert_int_equal(decode_record(longest), FB_OK);
    name[longer.len] = 0;
    name[longer.len + 1] = FB_FIELD_COUNTER;
    fb_span counter = fb_span_of(name, longer.len + 2);
    assert_int_equal(decode_change(counter, FB_FIELD_COUNTER), FB_ERR_LIMIT);
    static const struct {
        const char *name;
        size_t len;
    } wrong[] = {{"\xff", 1},  {"a\xc3", 2},    {"\xed\xa0\x80", 3}, {"\xc0\xafz\0\2", 5},
                 {"", 0},      {"a\0", 2},      {"\0\2", 2},         {"a\0\1", 3},
                 {"a\0\4", 3}, {"a\0\377b", 4}, {"a\0\2b", 4},       {"a\0\3b", 4}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        fb_span span = fb_span_of(wrong[i].name, wrong[i].len);
        for (uint8_t kind = FB_FIELD_REGISTER; kind <= FB_FIELD_ELEMENT; kind++) {
            assert_int_equal(decode_change(span, kind), FB_ERR_BATCH_MALFORMED);
        }
        assert_int_equal(decode_record(span), FB_ERR_STORE_DAMAGED);
    }
}

static void sums_are_exact(void **state)
{
    (void)state;
    static const struct {
        int64_t part[4], whole;
    } cases[] = {
        {{1, -1, 2, -3}, -1},
        {{INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN}, -2},
        {{INT64_MAX, 1, -5, 3}, INT64_MAX - 1},
        {{INT64_MAX, 1, 0, 0}, INT64_MAX},
        {{INT64_MIN, -1, 0, 0}, INT64_MIN},
        {{INT64_MIN, INT64_MIN, INT64_MAX, 0}, INT64_MIN},
        {{-1, -4294967296, 4294967295, 0}, -2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fb_sum forwards = {0, 0}, backwards = {0, 0};
        for (int k = 0; k < 4; k++) {
            fb_sum_add(&forwards, cases[i].part[k]);
            fb_sum_add(&backwards, cases[i].part[3 - k]);
        }
        assert_true(fb_sum_value(&forwards) == cases[i].whole);
        assert_true(fb_sum_value(&backwards) == cases[i].whole);
        uint8_t text[FB_INTEGER_TEXT_MAX];
        int64_t back;
        size_t len = fb_integer_format(cases[i].whole, text);
        assert_true(fb_integer_parse(fb_span_of(text, len), &back));
        assert_true(back == cases[i].whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_that_disagree_are_told),
        cmocka_unit_test(a_list_goes_on_behind_a_large_record),
        cmocka_unit_test(additions_made_apart_are_all_there),
        cmocka_unit_test(a_counter_counts_on_from_an_integer),
        cmocka_unit_test(ends_of_the_range),
        cmocka_unit_test(insertions_win_over_removals_that_had_not_seen_them),
        cmocka_unit_test(long_elements_are_stored_apart),
        cmocka_unit_test(names_of_collections_have_a_length),
        cmocka_unit_test(a_record_fits_an_answer),
        cmocka_unit_test(a_record_can_be_replaced),
        cmocka_unit_test(kinds_are_not_mixed),
        cmocka_unit_test(names_of_columns),
        cmocka_unit_test(names_that_are_no_columns),
        cmocka_unit_test(sums_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
