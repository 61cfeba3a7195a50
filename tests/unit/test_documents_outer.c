/* SPDX-License-Identifier: Apache-2.0 */
/* What another program did to a document: which change of this node it becomes, and what is left of
 * it where the document is another one by then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "io/documents/outer.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/core/request.h"
#include "protocol/database/record/column.h"
#include "protocol/database/record/record.h"

enum { ACT_SET = 1, ACT_UNSET = 2, ACT_ADD = 3, ACT_INSERT = 4, ACT_REMOVE = 5 };

/* What the server's side finds different, and what it says when no record can be so. */
static fb_document_field differing[4];
static size_t differing_count;
static fb_status verdict;

static fb_status edits(fb_span whole, const fb_document_field *fields, size_t count,
                       fb_documents_differs differs, void *user, char *why, size_t why_len)
{
    (void)whole;
    (void)fields;
    (void)count;
    for (size_t i = 0; i < differing_count; i++) {
        assert_true(differs(user, differing[i].name, differing[i].json));
    }
    if (verdict != FB_OK) snprintf(why, why_len, "no record can be so");
    return verdict;
}

static const fb_documents_ops ops = {.edits = edits};

static void differ(const char *name, const char *json)
{
    differing[differing_count++] = (fb_document_field){fb_span_text(name), fb_span_text(json)};
}

/* A living record with n = 1, a counter of 3 and the set of "red"; its fingerprint is `print`. */
static uint8_t bytes[2048];

static void column_write(fb_writer *state, fb_writer *values, fb_span name, uint64_t seq,
                         const char *value)
{
    static const uint8_t zeros[FB_DOT_BYTES];
    fb_write_span16(state, name);
    fb_write_u16(state, 1);
    fb_write_bytes(state, zeros, FB_DOT_BYTES - 8);
    fb_write_u64(state, seq);
    fb_write_u64(state, seq);
    fb_write_bytes(state, zeros, 16);
    fb_write_u16(state, 0);
    fb_write_u8(values, 1);
    fb_write_span16(values, fb_span_text(value));
}

static fb_document document_of(uint8_t print, const char *n)
{
    uint8_t state[1024], values[512], name[FB_COLUMN_NAME_BYTES_MAX];
    static const uint8_t zeros[FB_DOT_BYTES];
    fb_writer s = fb_writer_of(state, sizeof state), v = fb_writer_of(values, sizeof values);
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&s, 1);
    fb_write_bytes(&s, zeros, FB_DOT_BYTES - 1);
    fb_write_u8(&s, 1);
    fb_write_u64(&s, 1);
    fb_write_u16(&s, 0);
    fb_write_u16(&s, 0);
    fb_write_u16(&s, 3);
    column_write(&s, &v, fb_column_counter(name, fb_span_text("count")), 2, "3");
    column_write(&s, &v, fb_span_text("n"), 3, n);
    column_write(&s, &v, fb_column_element(name, fb_span_text("tags"), fb_span_text("\"red\"")), 4,
                 "\"red\"");
    fb_write_u8(&w, FB_RECORD_VERSION);
    for (unsigned i = 0; i < 16; i++) fb_write_u8(&w, print);
    fb_write_u16(&w, 0);
    fb_write_span32(&w, fb_writer_span(&s));
    fb_write_span(&w, fb_writer_span(&v));
    assert_false(s.failed || v.failed || w.failed);
    return (fb_document){.collection = "notes",
                         .id = {{1}},
                         .record = fb_writer_span(&w),
                         .horizon = INT64_MAX,
                         .edited = true,
                         .whole = fb_span_text("whole")};
}

static fb_outer *seen(const fb_document *document, const fb_document *before)
{
    const fb_document_event change = {FB_DOCUMENT_SEEN, "notes", document->id,
                                      document,         before,  {NULL, 0}};
    return fb_outer_make(&ops, &change);
}

static int begin(void **state)
{
    (void)state;
    differing_count = 0;
    verdict = FB_OK;
    return 0;
}

/* The change of a request: its condition and first byte of the etag, then its acts in one text. */
static void change_read(fb_reader *r, char *out, size_t len)
{
    fb_read_bytes(r, 16 + 1 + 16 + 16);
    assert_int_equal(fb_read_u8(r), 2);
    uint8_t condition = fb_read_u8(r);
    fb_span etag = fb_read_bytes(r, 16);
    assert_false(r->failed);
    size_t at = (size_t)snprintf(out, len, "%u/%u", condition, etag.p[0]);
    for (unsigned left = fb_read_u16(r); left > 0; left--) {
        fb_span name = fb_read_span16(r);
        uint8_t act = fb_read_u8(r);
        fb_span value = fb_read_span32(r);
        assert_false(r->failed);
        at += (size_t)snprintf(out + at, len - at, " %.*s:%u:%.*s", (int)name.len,
                               (const char *)name.p, act, (int)value.len, (const char *)value.p);
        assert_true(at < len);
    }
}

static void asks(fb_outer *outer, const char *wanted)
{
    char text[512];
    uint32_t verb;
    fb_reader r = fb_reader_of(fb_outer_request(outer, &verb));
    assert_int_equal(verb, FB_VERB_RECORD_PUT);
    change_read(&r, text, sizeof text);
    assert_true(fb_reader_done(&r));
    assert_string_equal(text, wanted);
}

static void a_field_alone_is_changed_where_the_record_is_what_the_program_saw(void **state)
{
    (void)state;
    fb_document document = document_of(7, "1");
    differ("n", "2");
    differ("count", "10");
    differ("other", "true");
    fb_outer *outer = seen(&document, NULL);
    assert_int_equal(outer->kind, FB_OUTER_EDIT);
    asks(outer, "1/7 n:1:2 count:3:7 other:1:true");
    fb_outer_free(outer);
    /* A field that is gone, and a counter that is none any more. */
    differing_count = 0;
    differ("n", "");
    differ("count", "\"many\"");
    outer = seen(&document, NULL);
    asks(outer, "1/7 n:2: count:1:\"many\"");
    fb_outer_free(outer);
}

static void what_is_as_it_should_be_needs_nothing(void **state)
{
    (void)state;
    fb_document document = document_of(7, "1");
    assert_null(seen(&document, NULL));
    /* Of an earlier start it is looked at all the same. */
    document.edited = false;
    fb_outer *outer = seen(&document, NULL);
    assert_int_equal(outer->kind, FB_OUTER_STALE);
    fb_outer_free(outer);
}

static void a_set_gets_the_elements_that_came_and_went_one_with_each_change(void **state)
{
    (void)state;
    fb_document document = document_of(7, "1");
    char text[512];
    uint32_t verb;
    differ("tags", "[\"a,]\\\"b\",{\"c\":[1,2]}]");
    differ("n", "5");
    fb_outer *outer = seen(&document, NULL);
    fb_reader r = fb_reader_of(fb_outer_request(outer, &verb));
    assert_int_equal(verb, FB_VERB_RECORD_BATCH);
    static const char *const wanted[] = {"1/7 tags:5:\"red\" n:1:5", "0/0 tags:4:\"a,]\\\"b\"",
                                         "0/0 tags:4:{\"c\":[1,2]}"};
    assert_int_equal(fb_read_u16(&r), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fb_read_u8(&r), FB_VERB_RECORD_PUT);
        change_read(&r, text, sizeof text);
        assert_string_equal(text, wanted[i]);
    }
    assert_true(fb_reader_done(&r));
    fb_outer_free(outer);
    /* All of them are gone. */
    differing_count = 0;
    differ("tags", "[]");
    outer = seen(&document, NULL);
    asks(outer, "1/7 tags:5:\"red\"");
    fb_outer_free(outer);
}

/* No request says so much; and whoever looks through it again and again does nothing else. */
static void a_set_of_too_many_new_elements_is_left_alone(void **state)
{
    (void)state;
    static char array[16 * 70000];
    fb_document document = document_of(7, "1");
    for (size_t count = FB_WRITE_ITEMS_MAX - 1; count <= 70000; count += 69936) {
        size_t at = 0;
        for (size_t i = 0; i < count; i++) {
            at += (size_t)sprintf(array + at, "%c%zu", i == 0 ? '[' : ',', i);
        }
        memcpy(array + at, "]", 2);
        differing_count = 0;
        differ("tags", array);
        fb_outer *outer = seen(&document, NULL);
        bool fits = count < FB_WRITE_ITEMS_MAX;
        uint32_t verb = 0;
        assert_int_equal(outer->kind, fits ? FB_OUTER_EDIT : FB_OUTER_LEFT);
        if (fits) fb_outer_request(outer, &verb);
        assert_int_equal(verb, fits ? FB_VERB_RECORD_BATCH : 0);
        fb_outer_free(outer);
    }
}

static void a_document_that_is_new_becomes_a_record_where_none_is(void **state)
{
    (void)state;
    fb_document document = {.collection = "notes", .id = {{1}}, .edited = true};
    differ("n", "1");
    fb_outer *outer = seen(&document, NULL);
    asks(outer, "2/0 n:1:1");
    fb_outer_free(outer);
    verdict = FB_ERR_VALUE_MALFORMED;
    outer = seen(&document, NULL);
    assert_int_equal(outer->kind, FB_OUTER_LEFT);
    assert_string_equal(outer->why, "no record can be so");
    fb_outer_free(outer);
}

static void a_document_without_what_is_ours_is_put_back_first(void **state)
{
    (void)state;
    fb_document before = document_of(7, "1");
    fb_document document = {.collection = "notes", .id = {{1}}, .edited = true};
    differ("n", "2");
    fb_outer *outer = seen(&document, &before);
    assert_true(fb_span_equal(outer->restore, fb_span_text("whole")));
    asks(outer, "1/7 n:1:2");
    /* A server that will not have it: it stays as the other program left it. */
    fb_outer_not_restored(outer, "refused");
    assert_int_equal(outer->kind, FB_OUTER_LEFT);
    assert_string_equal(outer->why, "refused");
    fb_outer_free(outer);
}

static void a_removal_is_one_of_the_record_that_was_seen(void **state)
{
    (void)state;
    fb_document before = document_of(7, "1");
    fb_document_event change = {FB_DOCUMENT_GONE, "notes", before.id, NULL, &before, {NULL, 0}};
    uint32_t verb;
    before.edited = false;
    fb_outer *outer = fb_outer_make(&ops, &change);
    assert_int_equal(outer->kind, FB_OUTER_DELETE);
    assert_true(outer->look);
    fb_span request = fb_outer_request(outer, &verb);
    assert_int_equal(verb, FB_VERB_RECORD_DELETE);
    assert_int_equal(request.p[16 + 1 + 16 + 16], 1);
    assert_int_equal(request.p[request.len - 1], 7);
    fb_outer_not_restored(outer, "refused");
    assert_int_equal(outer->kind, FB_OUTER_LOST);
    fb_outer_free(outer);
    change.before = NULL;
    outer = fb_outer_make(&ops, &change);
    assert_int_equal(outer->kind, FB_OUTER_LOST);
    fb_outer_free(outer);
}

static void of_a_record_that_was_written_since_the_untouched_fields_are_taken(void **state)
{
    (void)state;
    fb_document document = document_of(7, "1");
    differ("n", "2");
    differ("other", "true");
    fb_outer *outer = seen(&document, NULL);
    /* The node wrote n; what the document shows is what it should. */
    fb_document now = document_of(8, "9");
    now.edited = false;
    fb_outer_rebase(outer, &ops, &now);
    assert_true(outer->overwrote);
    asks(outer, "1/8 other:1:true");
    fb_outer_free(outer);
    /* It wrote something else. */
    document = document_of(7, "1");
    outer = seen(&document, NULL);
    now = document_of(8, "1");
    now.edited = false;
    fb_outer_rebase(outer, &ops, &now);
    assert_false(outer->overwrote);
    asks(outer, "1/8 n:1:2 other:1:true");
    fb_outer_free(outer);
}

/* A document that was made and is gone again must not become a record without fields. */
static void of_a_document_that_is_gone_nothing_is_made(void **state)
{
    (void)state;
    fb_document document = {.collection = "notes", .id = {{1}}, .edited = true};
    differ("n", "1");
    fb_outer *outer = seen(&document, NULL);
    assert_false(outer->has_base);
    fb_outer_rebase(outer, &ops, NULL);
    assert_true(outer->overwrote);
    /* The store forwards what has fields, or no base. */
    assert_int_equal(outer->field_count, 0);
    assert_true(outer->has_base);
    fb_outer_free(outer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        TEST(a_field_alone_is_changed_where_the_record_is_what_the_program_saw),
        TEST(what_is_as_it_should_be_needs_nothing),
        TEST(a_set_gets_the_elements_that_came_and_went_one_with_each_change),
        TEST(a_set_of_too_many_new_elements_is_left_alone),
        TEST(a_document_that_is_new_becomes_a_record_where_none_is),
        TEST(a_document_without_what_is_ours_is_put_back_first),
        TEST(a_removal_is_one_of_the_record_that_was_seen),
        TEST(of_a_record_that_was_written_since_the_untouched_fields_are_taken),
        TEST(of_a_document_that_is_gone_nothing_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
