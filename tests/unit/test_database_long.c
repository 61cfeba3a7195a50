/* SPDX-License-Identifier: Apache-2.0 */
/* A space with a long life behind it: many lives of its nodes, and somebody who begins with
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "protocol/core/internal.h"
#include "protocol/database/state.h"
#include "protocol/space/cut.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

enum { A, B, NEWCOMER, NODES };

static uint64_t counted(test_net *net, uint32_t i, fb_counter counter)
{
    return fb_node_counter(test_net_node(net, i), counter);
}

static fb_status put_long(test_net *net, uint32_t i, fb_id space, uint32_t number)
{
    char value[104];
    memset(value, '.', sizeof value);
    value[0] = value[102] = '"';
    value[1] = (char)('a' + number % 26);
    value[2] = (char)('a' + number / 26);
    value[103] = 0;
    return test_net_put(net, i, space, "notes", 1, value);
}

static const fb_area *notes_of(test_net *net, uint32_t i, fb_id space)
{
    const fb_node *node = test_net_node(net, i);
    fb_id id = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes"));
    uint32_t area = fb_area_find(node, id);
    return area == FB_NONE ? NULL : fb_area_get(node, area);
}

static void agree(test_net *net, uint32_t i, uint32_t j, fb_id space)
{
    for (uint32_t turn = 0; turn < 100; turn++) {
        const fb_area *a = notes_of(net, i, space), *b = notes_of(net, j, space);
        if (a != NULL && b != NULL && memcmp(a->root, b->root, sizeof a->root) == 0) return;
        test_net_run(net, SECOND);
    }
    fail();
}

/* Two nodes write one record in turn, each in a new life every time, and each replaces the other's.
 * It has one value at any time; in the order of either signer alone it would have one of each life
 * of the other. */
static void a_long_history_fits_an_empty_node(void **state)
{
    (void)state;
    test_net *net = test_net_new(NODES, NULL);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    test_net_run(net, 20 * SECOND);
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(put_long(net, A, space, 2 * i), FB_OK);
        agree(net, A, B, space);
        assert_int_equal(put_long(net, B, space, 2 * i + 1), FB_OK);
        /* So that the chain of one signer is there long before the other's. */
        for (uint32_t k = 2; k < 8; k++) {
            assert_int_equal(test_net_put(net, B, space, "notes", k, "1"), FB_OK);
        }
        agree(net, A, B, space);
        test_net_restart(net, A);
        test_net_restart(net, B);
    }
    test_net_join(net, NEWCOMER, A, space, FB_ROLE_WRITER);
    agree(net, A, NEWCOMER, space);
    assert_true(counted(net, NEWCOMER, FB_COUNTER_BATCHES_EARLY) > 0);
    assert_int_equal(counted(net, NEWCOMER, FB_COUNTER_BATCHES_REFUSED), 0);
    assert_int_equal(notes_of(net, NEWCOMER, space)->wants, 0);
    test_net_free(net);
}

static fb_status put_field(test_net *net, uint32_t i, fb_id space, uint32_t record, char field)
{
    static const uint8_t no_etag[16];
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u8(&w, FB_AREA_COLLECTION);
    fb_write_span16(&w, fb_span_text("notes"));
    fb_write_id(&w, test_net_record_id(record));
    fb_write_u8(&w, 2); /* the other fields stay */
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, no_etag, sizeof no_etag);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_of(&field, 1));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_text("1"));
    return test_net_answer(net, i, FB_VERB_RECORD_PUT, &w)->status;
}

static void real_sizes(fb_options *options)
{
    options->sizes = fb_options_default().sizes;
}

/* A request of many changes, each of which replaces values of several lives: it is sealed in pieces
 * that every member can look up. */
static void one_request_over_many_lives(void **state)
{
    (void)state;
    enum { FIELDS = 13, RECORDS = 26, LIVES = FIELDS * RECORDS };
    test_net *net = test_net_new(2, real_sizes);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    for (uint32_t i = 0; i < LIVES; i++) {
        assert_int_equal(put_field(net, A, space, 1 + i / FIELDS, (char)('a' + i % FIELDS)), FB_OK);
        test_net_restart(net, A);
    }
    assert_int_equal(test_net_put(net, A, space, "notes", 1000, "1"), FB_OK);
    agree(net, A, B, space);
    static uint8_t bytes[RECORDS * 128];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&w, RECORDS);
    for (uint32_t i = 0; i < RECORDS; i++) {
        static const uint8_t no_condition[17];
        fb_write_u8(&w, FB_VERB_RECORD_DELETE);
        fb_write_id(&w, space);
        fb_write_u8(&w, 1);
        fb_write_span16(&w, fb_span_text("notes"));
        fb_write_id(&w, test_net_record_id(1 + i));
        fb_write_bytes(&w, no_condition, sizeof no_condition);
    }
    assert_int_equal(test_net_answer(net, B, FB_VERB_RECORD_BATCH, &w)->status, FB_OK);
    agree(net, A, B, space);
    assert_false(test_net_has(net, A, space, "notes", 1));
    assert_int_equal(counted(net, A, FB_COUNTER_BATCHES_REFUSED), 0);
    test_net_free(net);
}

/* One life of this node with no predecessor: as after a lost disk, in the eyes of its peers. */
static void forget_lives(test_net *net, uint32_t i, fb_id space, uint64_t first, uint32_t count)
{
    fb_node *node = test_net_node(net, i);
    uint32_t local = notes_of(net, i, space)->local;
    for (uint64_t k = 0; k < count; k++) {
        uint8_t key[FB_VECTOR_KEY_BYTES], value[FB_VECTOR_VALUE_BYTES] = {1};
        value[8] = value[16] = 1;
        test_net_store_put(net, i, fb_key_vector(key, false, local, node->self, first + k),
                           fb_span_of(value, sizeof value));
    }
}

/* Who lost its store so often that its peers keep no more lives of it is told so when it writes,
 * instead of writing what nobody takes. */
static void too_many_lives_are_refused_at_home(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, A);
    assert_int_equal(test_net_put(net, A, space, "notes", 1, "1"), FB_OK);
    forget_lives(net, A, space, 50000, FB_LIVES_IN_AREA_MAX - 1);
    test_net_restart(net, A);
    assert_int_equal(test_net_put(net, A, space, "notes", 2, "1"), FB_OK);
    forget_lives(net, A, space, 60000, 1);
    test_net_restart(net, A);
    assert_int_equal(test_net_put(net, A, space, "notes", 3, "1"), FB_ERR_BATCH_LIVES);
    assert_true(test_net_has(net, A, space, "notes", 2));
    test_net_free(net);
}

static void many_heads(fb_options *options)
{
    options->sizes.vector_entries = 2000;
}

/* The entries of this area, which are skipped. */
static uint32_t area_next(fb_reader *r, fb_id *id)
{
    *id = fb_read_id(r);
    fb_read_u8(r);
    fb_read_span16(r);
    fb_read_bytes(r, 16);
    uint32_t entries = fb_read_u32(r);
    if (entries != FB_AREA_TOO_LARGE) fb_read_bytes(r, (size_t)entries * 40);
    return entries;
}

static void an_area_with_more_writers_than_an_answer_holds_is_listed(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, many_heads);
    fb_id space = test_net_create_space(net, 0);
    assert_int_equal(test_net_put(net, 0, space, "notes", 1, "1"), FB_OK);
    assert_int_equal(test_net_put(net, 0, space, "other", 1, "1"), FB_OK);
    assert_int_equal(test_net_put(net, 0, space, "third", 1, "1"), FB_OK);
    fb_node *node = test_net_node(net, 0);
    fb_id notes = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes"));
    uint32_t large = fb_area_find(node, notes);
    for (uint32_t i = 1; i < 1700; i++) {
        uint32_t entry = fb_vector_add(node, large, test_net_record_id(i), 7);
        fb_vector_get(node, entry)->batch = 1;
    }
    fb_id after = {{0}};
    uint32_t seen = 0, without = 0;
    for (bool more = true; more;) {
        uint8_t bytes[34];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_id(&w, space);
        fb_write_u16(&w, UINT16_MAX);
        fb_write_id(&w, after);
        const test_reply *reply = test_net_answer(net, 0, FB_VERB_AREAS, &w);
        assert_int_equal(reply->status, FB_OK);
        fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
        uint16_t count = fb_read_u16(&r);
        more = count != 0;
        for (uint16_t i = 0; i < count; i++) {
            bool too_large = area_next(&r, &after) == FB_AREA_TOO_LARGE;
            assert_int_equal(too_large, fb_id_equal(after, notes));
            without += too_large;
            seen++;
        }
        assert_true(fb_reader_done(&r));
    }
    assert_int_equal(seen, 4); /* with the space's own */
    assert_int_equal(without, 1);
    test_net_free(net);
}

/* A cut while areas come and go of which nothing is stored. */
#define CUTTING 100u

typedef struct cut_seen {
    bool done;
    fb_status status;
    uint32_t areas, lives;
} cut_seen;

static cut_seen seen;
static char first_name[16], last_name[16];

static void cut_done(fb_node *node, uint64_t user, fb_status status, const fb_cut_text *text)
{
    (void)node;
    (void)user;
    seen = (cut_seen){true, status, text->areas, text->lives};
}

static fb_status cut_begin(fb_node *node, const fb_event *event)
{
    uint32_t space = (uint32_t)event->a;
    fb_id peer = fb_member_id(node, (uint32_t)event->b);
    uint32_t before = FB_NONE;
    if (event->c != 0) {
        before = fb_area_open(node, space, FB_AREA_COLLECTION, fb_span_text(first_name));
        fb_area_pin(node, before);
    }
    assert_int_equal(fb_database_cut(node, space, peer, false, cut_done, 0), FB_OK);
    if (event->c != 0) {
        fb_area_unpin(node, before);
        uint32_t after = fb_area_open(node, space, FB_AREA_COLLECTION, fb_span_text(last_name));
        assert_int_equal(after, before);
    }
    return FB_OK;
}

/* A name whose area comes before all others, and one that comes behind them. */
static void names_find(const fb_node *node, uint32_t space)
{
    const char *const taken[] = {"notes", "more"};
    fb_id id = fb_space_id(node, space), low, high;
    low = high = fb_area_id(id, FB_AREA_SPACE, (fb_span){NULL, 0});
    for (size_t i = 0; i < 2; i++) {
        fb_id other = fb_area_id(id, FB_AREA_COLLECTION, fb_span_text(taken[i]));
        if (fb_id_compare(other, low) < 0) low = other;
        if (fb_id_compare(other, high) > 0) high = other;
    }
    for (uint32_t n = 0; first_name[0] == 0 || last_name[0] == 0; n++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", n);
        fb_id area = fb_area_id(id, FB_AREA_COLLECTION, fb_span_text(name));
        if (fb_id_compare(area, low) < 0) strcpy(first_name, name);
        if (fb_id_compare(area, high) > 0) strcpy(last_name, name);
    }
}

static void a_cut_names_everything_while_areas_go(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id id = test_net_create_space(net, A);
    test_net_join(net, B, A, id, FB_ROLE_WRITER);
    test_net_run(net, 5 * SECOND);
    assert_int_equal(test_net_put(net, B, id, "notes", 1, "1"), FB_OK);
    assert_int_equal(test_net_put(net, B, id, "more", 1, "1"), FB_OK);
    agree(net, A, B, id);
    test_net_run(net, 5 * SECOND);
    fb_node *node = test_net_node(net, A);
    uint32_t space = fb_space_find(node, id);
    uint32_t member = fb_member_find(node, space, fb_node_self(test_net_node(net, B)));
    names_find(node, space);
    fb_event_register(node, (fb_event_kind)CUTTING, cut_begin);
    for (uint64_t goes = 0; goes < 2; goes++) {
        seen = (cut_seen){.done = false};
        const fb_event begin = {.kind = (fb_event_kind)CUTTING, .a = space, .b = member, .c = goes};
        assert_int_equal(test_net_event(net, A, begin), FB_OK);
        test_net_settle(net);
        assert_true(seen.done);
        assert_int_equal(seen.status, FB_OK);
        /* Of two collections and of the space itself. */
        assert_int_equal(seen.areas, 3);
        assert_int_equal(seen.lives, 3);
    }
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_history_fits_an_empty_node),
        cmocka_unit_test(one_request_over_many_lives),
        cmocka_unit_test(too_many_lives_are_refused_at_home),
        cmocka_unit_test(an_area_with_more_writers_than_an_answer_holds_is_listed),
        cmocka_unit_test(a_cut_names_everything_while_areas_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
