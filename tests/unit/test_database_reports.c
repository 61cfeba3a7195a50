/* SPDX-License-Identifier: Apache-2.0 */
/* What members say to hold, the passes that follow from it, and what comparing repairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "protocol/core/internal.h"
#include "protocol/database/state.h"
#include "protocol/space/cut.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

enum { A, B, C };

static uint32_t area_of(test_net *net, uint32_t i, fb_id space, const char *name)
{
    fb_id id = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text(name));
    return fb_area_find(test_net_node(net, i), id);
}

static const fb_space_areas *reports_of(test_net *net, uint32_t i, fb_id space)
{
    const fb_node *node = test_net_node(net, i);
    return &node->database->spaces[fb_space_find(node, space)];
}

static bool agree(test_net *net, fb_id space, const char *name)
{
    for (uint32_t turn = 0; turn < 60; turn++) {
        uint32_t a = area_of(net, A, space, name), b = area_of(net, B, space, name);
        if (a != FB_NONE && b != FB_NONE &&
            memcmp(fb_area_get(test_net_node(net, A), a)->root,
                   fb_area_get(test_net_node(net, B), b)->root, 16) == 0) {
            return true;
        }
        test_net_run(net, SECOND);
    }
    return false;
}

static void reports(fb_options *options)
{
    options->timing.report_ns = 300 * SECOND;
}

/* Nothing is folded, and nobody new may take rights away, before the first report: it does not wait
 * for a pause between writes that never comes. */
static void who_writes_all_the_time_reports(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, reports);
    fb_id space = test_net_create_space(net, A);
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(test_net_put(net, A, space, "notes", i, "1"), FB_OK);
        test_net_run(net, SECOND);
    }
    assert_true(reports_of(net, A, space)->has_reported);
    test_net_free(net);
}

static void many_heads(fb_options *options)
{
    options->sizes = fb_options_default().sizes;
    options->timing.report_ns = SECOND;
}

/* So many lives in an area, as of nodes that are not here. */
static void add_heads(test_net *net, fb_id space, const char *name, uint32_t count)
{
    uint32_t local = fb_area_get(test_net_node(net, A), area_of(net, A, space, name))->local;
    for (uint32_t k = 0; k < count; k++) {
        uint8_t key[FB_VECTOR_KEY_BYTES], value[FB_VECTOR_VALUE_BYTES] = {1};
        value[8] = value[16] = 1;
        fb_id peer = {{1}};
        fb_store_be(peer.b + 12, k, 4);
        test_net_store_put(net, A, fb_key_vector(key, false, local, peer, 7),
                           fb_span_of(value, sizeof value));
    }
}

/* Heads that come before it leave no room in a report: the statements stand in it all the same. */
static void a_report_names_the_statements_whatever_else_fits(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, many_heads);
    fb_id space = test_net_create_space(net, A);
    fb_id own = fb_area_id(space, FB_AREA_SPACE, (fb_span){NULL, 0});
    char names[2][16];
    for (uint32_t n = 0, found = 0; found < 2; n++) {
        snprintf(names[found], sizeof names[0], "n%u", n);
        fb_id id = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text(names[found]));
        if (fb_id_compare(id, own) < 0) found++;
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(test_net_put(net, A, space, names[i], 1, "1"), FB_OK);
        add_heads(net, space, names[i], 200);
    }
    test_net_restart(net, A);
    assert_int_equal(test_net_put(net, A, space, names[0], 2, "1"), FB_OK);
    test_net_run(net, 20 * SECOND);
    assert_true(reports_of(net, A, space)->has_reported);
    assert_true(reports_of(net, A, space)->settled);
    test_net_free(net);
}

/* A pass that has noted what a life replaced waits until that life is below the cut. When the life
 * is taken up by the next one there is nothing left to wait for: it begins to count anew. */
static void what_a_closed_life_replaced_is_not_dead_before_the_cut(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    assert_int_equal(test_net_put(net, B, space, "notes", 1, "1"), FB_OK);
    assert_true(agree(net, space, "notes"));
    const fb_node *node = test_net_node(net, A);
    fb_area *area = fb_area_get(node, area_of(net, A, space, "notes"));
    fb_vector *v = fb_vector_get(node, area->entries - 1);
    area->pass = 5; /* which ended now */
    v->marked = v->batch;
    test_net_restart(net, B);
    assert_int_equal(test_net_put(net, B, space, "notes", 2, "1"), FB_OK);
    assert_true(agree(net, space, "notes"));
    assert_int_equal(area->pass, 5);
    assert_int_equal(area->pass_from, 6);
    test_net_free(net);
}

static void real_sizes(fb_options *options)
{
    options->sizes = fb_options_default().sizes;
}

static void put_field(test_net *net, fb_id space, uint32_t field, const char *value)
{
    static const uint8_t no_etag[16];
    uint8_t bytes[512];
    char name[8];
    snprintf(name, sizeof name, "f%u", field);
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u8(&w, FB_AREA_COLLECTION);
    fb_write_span16(&w, fb_span_text("notes"));
    fb_write_id(&w, test_net_record_id(1));
    fb_write_u8(&w, 2); /* the other fields stay */
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, no_etag, sizeof no_etag);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text(name));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_text(value));
    assert_int_equal(test_net_answer(net, A, FB_VERB_RECORD_PUT, &w)->status, FB_OK);
}

static void delete_record(test_net *net, fb_id space)
{
    static const uint8_t no_condition[17];
    uint8_t bytes[128];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u8(&w, FB_AREA_COLLECTION);
    fb_write_span16(&w, fb_span_text("notes"));
    fb_write_id(&w, test_net_record_id(1));
    fb_write_bytes(&w, no_condition, sizeof no_condition);
    assert_int_equal(test_net_answer(net, A, FB_VERB_RECORD_DELETE, &w)->status, FB_OK);
}

static void often(fb_options *options)
{
    options->timing.report_ns = SECOND;
}

/* Is the batch with this number of what A wrote to "notes" in the store of a node? */
static bool has_batch(test_net *net, uint32_t i, fb_id space, uint64_t number)
{
    const fb_area *area = fb_area_get(test_net_node(net, i), area_of(net, i, space, "notes"));
    const fb_node *a = test_net_node(net, A);
    uint8_t wanted[FB_BATCH_KEY_BYTES];
    fb_key_batch(wanted, area->local, a->self, a->incarnation, number);
    fb_span key, value;
    for (size_t at = 0; test_net_stored(net, i, at, &key, &value); at++) {
        if (fb_span_equal(key, fb_span_of(wanted, sizeof wanted))) return true;
    }
    return false;
}

/* Of a deleted record nothing is left at anybody, and its batches go. A record that is in the tree
 * and not in the store was not deleted: its batch stays, for those who ask for it. */
static void what_is_deleted_is_folded_and_what_is_lost_is_not(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, often);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    assert_int_equal(test_net_put(net, A, space, "notes", 1, "1"), FB_OK);
    assert_int_equal(test_net_put(net, A, space, "notes", 2, "1"), FB_OK);
    assert_true(agree(net, space, "notes"));
    uint8_t key[FB_RECORD_KEY_BYTES];
    uint32_t local = fb_area_get(test_net_node(net, B), area_of(net, B, space, "notes"))->local;
    test_net_store_delete(net, B, fb_key_record(key, local, test_net_record_id(2)));
    delete_record(net, space);
    for (uint32_t i = 0; i < 150; i++) {
        assert_int_equal(test_net_put(net, A, space, "notes", 9, "2"), FB_OK);
        test_net_run(net, SECOND / 2);
    }
    assert_true(agree(net, space, "notes"));
    for (uint32_t i = A; i <= B; i++) {
        assert_false(has_batch(net, i, space, 1));
        assert_true(has_batch(net, i, space, 2));
        assert_false(has_batch(net, i, space, 3));
        const fb_node *node = test_net_node(net, i);
        assert_int_equal(fb_area_get(node, area_of(net, i, space, "notes"))->root_info.items, 2);
    }
    test_net_free(net);
}

#define DOUBTING 100u

static fb_status doubt_begin(fb_node *node, const fb_event *event)
{
    fb_doubt(node, (uint32_t)event->a, true);
    return FB_OK;
}

/* As if B had skipped what A wrote since. */
static void skip_to(test_net *net, fb_id space)
{
    fb_node *b = test_net_node(net, B);
    const fb_node *a = test_net_node(net, A);
    uint32_t index = area_of(net, B, space, "notes");
    const fb_area *there = fb_area_get(a, area_of(net, A, space, "notes"));
    fb_area *here = fb_area_get(b, index);
    const fb_vector *from = fb_vector_get(a, there->entries - 1);
    fb_vector *to = fb_vector_get(b, here->entries - 1);
    to->batch = to->durable_batch = from->durable_batch;
    to->last_seq = to->durable_seq = from->durable_seq;
    memcpy(to->hash, from->hash, sizeof to->hash);
    here->digest_known = b->database->spaces[here->space].digest_known = false;
    fb_event_register(b, (fb_event_kind)DOUBTING, doubt_begin);
    const fb_event doubt = {.kind = (fb_event_kind)DOUBTING, .a = index};
    assert_int_equal(test_net_event(net, B, doubt), FB_OK);
}

static void repair(uint32_t fields, const char *value, void (*sizes)(fb_options *))
{
    test_net *net = test_net_new(2, sizes);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    for (uint32_t i = 0; i < fields; i++) put_field(net, space, i, value);
    assert_true(agree(net, space, "notes"));
    test_net_cut(net, A, B, true);
    delete_record(net, space);
    test_net_run(net, 5 * SECOND);
    skip_to(net, space);
    test_net_cut(net, A, B, false);
    assert_true(agree(net, space, "notes"));
    test_net_run(net, 30 * SECOND);
    assert_false(fb_area_get(test_net_node(net, B), area_of(net, B, space, "notes"))->doubt);
    test_net_free(net);
}

/* More than one question holds. */
static void a_record_of_many_dots_is_repaired(void **state)
{
    (void)state;
    repair(FB_COMPARE_DOTS_MAX * 2 + 10, "1", real_sizes);
}

static void a_record_of_many_values_stored_apart_is_repaired(void **state)
{
    (void)state;
    char value[140];
    memset(value, '.', sizeof value);
    value[0] = value[138] = '"';
    value[139] = 0;
    repair(FB_COMPARE_DOTS_MAX - 6, value, real_sizes);
}

static void short_answers(fb_options *options)
{
    real_sizes(options);
    options->sizes.call_bytes = 4096;
}

/* What the peer has of a record is longer than an answer may be: it is asked about in parts. */
static void a_record_that_no_answer_holds_is_compared_in_parts(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, short_answers);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    for (uint32_t i = 0; i < 90; i++) put_field(net, space, i, "1");
    assert_true(agree(net, space, "notes"));
    test_net_cut(net, A, B, true);
    for (uint32_t i = 0; i < 30; i++) put_field(net, space, i, "2");
    test_net_run(net, 5 * SECOND);
    skip_to(net, space);
    test_net_cut(net, A, B, false);
    test_net_run(net, 60 * SECOND);
    /* What came with the batches that B skipped is nowhere; what they replaced is gone: 30 values
     * and when the record was put last. */
    assert_int_equal(fb_node_counter(test_net_node(net, B), FB_COUNTER_DOTS_DROPPED), 31);
    assert_false(fb_area_get(test_net_node(net, B), area_of(net, B, space, "notes"))->doubt);
    test_net_free(net);
}

/* Of a life of a node that is not here. */
static fb_vector *head_of_another(test_net *net, fb_id space, uint32_t i)
{
    fb_node *node = test_net_node(net, i);
    uint32_t entry = fb_vector_add(node, area_of(net, i, space, "notes"), (fb_id){{1}}, 7);
    assert_int_not_equal(entry, FB_NONE);
    fb_vector *v = fb_vector_get(node, entry);
    v->batch = v->durable_batch = 1;
    v->last_seq = v->durable_seq = 1;
    return v;
}

/* The peer takes in batches faster than they come here: each of its answers knows of more than is
 * here. They count all the same, a little later. */
static void who_is_always_ahead_is_compared_with(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, real_sizes);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    put_field(net, space, 1, "1");
    assert_true(agree(net, space, "notes"));
    test_net_cut(net, A, B, true);
    delete_record(net, space);
    test_net_run(net, 5 * SECOND);
    skip_to(net, space);
    test_net_cut(net, A, B, false);
    fb_vector *there = head_of_another(net, space, A), *here = head_of_another(net, space, B);
    uint32_t turns = 0;
    while (fb_area_get(test_net_node(net, B), area_of(net, B, space, "notes"))->doubt) {
        here->last_seq = here->durable_seq = there->durable_seq;
        there->last_seq = ++there->durable_seq;
        test_net_run(net, SECOND / 10);
        assert_true(++turns < 300);
    }
    assert_false(test_net_has(net, B, space, "notes", 1));
    test_net_free(net);
}

/* The peer has, or says to have, what never comes here. One comparison goes on at a time, and what
 * it waits for is waited for by everything else that is to be compared: so it waits a few pauses in
 * all, however many records differ. */
static void what_never_comes_holds_nothing_up_for_long(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, real_sizes);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    for (uint32_t i = 1; i <= 8; i++) {
        assert_int_equal(test_net_put(net, A, space, "notes", i, "1"), FB_OK);
    }
    assert_true(agree(net, space, "notes"));
    test_net_cut(net, A, B, true);
    for (uint32_t i = 1; i <= 8; i++) {
        assert_int_equal(test_net_put(net, A, space, "notes", i, "2"), FB_OK);
    }
    test_net_run(net, 5 * SECOND);
    skip_to(net, space);
    head_of_another(net, space, A);
    test_net_cut(net, A, B, false);
    const fb_node *b = test_net_node(net, B);
    const fb_compare *compare = b->database->compare;
    while (!compare->waiting) test_net_run(net, SECOND);
    uint64_t first = compare->serial;
    test_net_run(net, (FB_COMPARE_WAITS_MAX + 4) * b->options.timing.onward_ns);
    assert_true(compare->serial != first);
    assert_true(fb_area_get(b, area_of(net, B, space, "notes"))->doubt);
    test_net_free(net);
}

/* Half of a batch was taken back at A: B does not take that for replaced. */
static void who_takes_back_is_not_compared_with(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, real_sizes);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    put_field(net, space, 1, "1");
    assert_true(agree(net, space, "notes"));
    test_net_cut(net, A, B, true);
    delete_record(net, space);
    test_net_run(net, 5 * SECOND);
    skip_to(net, space);
    fb_area_get(test_net_node(net, A), area_of(net, A, space, "notes"))->mending = true;
    test_net_cut(net, A, B, false);
    test_net_run(net, 60 * SECOND);
    assert_true(test_net_has(net, B, space, "notes", 1));
    fb_area_get(test_net_node(net, A), area_of(net, A, space, "notes"))->mending = false;
    assert_true(agree(net, space, "notes"));
    test_net_free(net);
}

static void give_role(test_net *net, fb_id space, uint32_t i, fb_role role)
{
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, fb_node_self(test_net_node(net, i)));
    fb_write_u8(&w, (uint8_t)role);
    assert_int_equal(test_net_answer(net, A, FB_VERB_SPACE_ROLE, &w)->status, FB_OK);
}

static void assert_doubts(test_net *net, fb_id space, uint32_t doubts, uint32_t waiting)
{
    const fb_node *b = test_net_node(net, B);
    uint32_t count, of_them;
    fb_database_doubts(b, fb_space_find(b, space), &count, &of_them);
    assert_int_equal(count, doubts);
    assert_int_equal(of_them, waiting);
}

/* Nothing that a reader says makes anything go, true as it is. Who is linked to nobody else waits,
 * says so, and asks nobody meanwhile; it goes on when that one may write. */
static void who_may_not_write_takes_nothing_away(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, real_sizes);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    test_net_join(net, C, A, space, FB_ROLE_READER);
    put_field(net, space, 1, "1");
    assert_true(agree(net, space, "notes"));
    test_net_cut(net, A, B, true);
    test_net_cut(net, B, C, true);
    delete_record(net, space);
    test_net_run(net, 5 * SECOND);
    assert_false(test_net_has(net, C, space, "notes", 1));
    assert_doubts(net, space, 0, 0);
    skip_to(net, space);
    test_net_cut(net, B, C, false);
    test_net_run(net, 60 * SECOND);
    assert_true(test_net_has(net, B, space, "notes", 1));
    assert_doubts(net, space, 1, 1);
    assert_int_equal(test_net_facts(net, B, FB_FACT_REPAIRED), 0);
    assert_int_equal(test_net_facts(net, B, FB_FACT_COMPARED), 0);
    give_role(net, space, C, FB_ROLE_WRITER);
    assert_true(agree(net, space, "notes"));
    assert_false(test_net_has(net, B, space, "notes", 1));
    test_net_run(net, 5 * SECOND);
    assert_doubts(net, space, 0, 0);
    test_net_free(net);
}

/* A reader hid something once; by now all of it is here. What is fetched later is no doubt. */
static void what_was_hidden_is_forgotten_when_it_is_here(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    assert_int_equal(test_net_put(net, A, space, "notes", 1, "1"), FB_OK);
    assert_true(agree(net, space, "notes"));
    fb_area *area = fb_area_get(test_net_node(net, B), area_of(net, B, space, "notes"));
    area->hidden = true;
    assert_int_equal(test_net_put(net, A, space, "notes", 2, "1"), FB_OK);
    assert_true(agree(net, space, "notes"));
    assert_true(area->wants == 0 && !area->hidden);
    test_net_free(net);
}

/* Who has an older life of a node than it reported has not what it reported. */
#define CUTTING 100u

static fb_status cut_status;

static void cut_done(fb_node *node, uint64_t user, fb_status status, const fb_cut_text *text)
{
    (void)node;
    (void)user;
    (void)text;
    cut_status = status;
}

static fb_status cut_begin(fb_node *node, const fb_event *event)
{
    (void)event;
    fb_id peer = {{1}};
    return fb_database_cut(node, 0, peer, false, cut_done, 0);
}

static fb_status cut(test_net *net)
{
    fb_event_register(test_net_node(net, A), (fb_event_kind)CUTTING, cut_begin);
    cut_status = FB_ERR_AGAIN;
    assert_int_equal(test_net_event(net, A, (fb_event){.kind = (fb_event_kind)CUTTING}), FB_OK);
    test_net_settle(net);
    return cut_status;
}

/* The head of that life is one of an earlier life now. */
static void set_back(test_net *net, fb_span head)
{
    fb_span key, value;
    for (size_t at = 0; test_net_stored(net, A, at, &key, &value); at++) {
        if (!fb_span_equal(key, head)) continue;
        uint8_t *bytes = (uint8_t *)(uintptr_t)key.p;
        bytes[key.len - 1]--;
        return;
    }
    fail();
}

static void an_older_life_is_not_what_was_reported(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, many_heads);
    fb_id space = test_net_create_space(net, A);
    assert_int_equal(test_net_put(net, A, space, "notes", 1, "1"), FB_OK);
    add_heads(net, space, "notes", 1);
    test_net_restart(net, A);
    test_net_run(net, 20 * SECOND);
    assert_true(reports_of(net, A, space)->has_reported);
    assert_int_equal(cut(net), FB_OK);
    uint8_t key[FB_VECTOR_KEY_BYTES];
    uint32_t local = fb_area_get(test_net_node(net, A), area_of(net, A, space, "notes"))->local;
    set_back(net, fb_key_vector(key, false, local, (fb_id){{1}}, 7));
    test_net_restart(net, A);
    assert_int_equal(cut(net), FB_ERR_BEHIND);
    test_net_free(net);
}

/* What folded batches had replaced may live again when something was taken back. Who knows of
 * folded batches compares itself then, also when it crashes right behind that. */
static void what_was_merged_anew_is_doubted_also_after_a_crash(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    test_net_join(net, C, A, space, FB_ROLE_WRITER);
    test_net_run(net, 10 * SECOND);
    assert_int_equal(test_net_put(net, B, space, "notes", 1, "1"), FB_OK);
    test_net_run(net, 10 * SECOND);
    assert_true(test_net_has(net, C, space, "notes", 1));
    /* Batches were skipped at C once. */
    uint8_t key[FB_DOUBT_KEY_BYTES];
    static const uint8_t once = FB_DOUBT_ONCE;
    uint32_t local = fb_area_get(test_net_node(net, C), area_of(net, C, space, "notes"))->local;
    test_net_store_put(net, C, fb_key_doubt(key, local), fb_span_of(&once, 1));
    test_net_restart(net, C);
    test_net_run(net, 10 * SECOND);
    test_net_cut(net, A, B, true);
    test_net_cut(net, A, C, true);
    assert_int_equal(test_net_put(net, B, space, "notes", 2, "1"), FB_OK);
    test_net_run(net, 20 * SECOND);
    assert_true(test_net_has(net, C, space, "notes", 2));
    test_net_cut(net, B, C, true);
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, fb_node_self(test_net_node(net, B)));
    assert_int_equal(test_net_answer(net, A, FB_VERB_SPACE_REVOKE, &w)->status, FB_OK);
    assert_false(fb_area_get(test_net_node(net, C), area_of(net, C, space, "notes"))->doubt);
    test_net_cut(net, A, C, false);
    uint32_t turns = 0;
    while (fb_node_counter(test_net_node(net, C), FB_COUNTER_BATCHES_CUT) == 0) {
        test_net_run(net, SECOND / 2000);
        assert_true(++turns < 60 * 2000);
    }
    test_net_restart(net, C);
    assert_false(test_net_has(net, C, space, "notes", 2));
    assert_true(fb_area_get(test_net_node(net, C), area_of(net, C, space, "notes"))->doubt);
    test_net_free(net);
}

/* The reports are to be read and no operation is free; then the area of reports goes, of which
 * nothing was stored. Whoever asked is answered all the same. */
static fb_status cut_in_vain(fb_node *node, const fb_event *event)
{
    uint32_t space = (uint32_t)event->a;
    uint32_t named = fb_area_open(node, space, FB_AREA_REPORTS, (fb_span){NULL, 0});
    fb_area_pin(node, named);
    fb_op *ops[64];
    uint32_t count = 0;
    while ((ops[count] = fb_op_begin(node, FB_OP_READER, NULL, 0, 0)) != NULL) {
        assert_true(++count < 64);
    }
    fb_id peer = {{1}};
    assert_int_equal(fb_database_cut(node, space, peer, false, cut_done, 0), FB_OK);
    while (count > 0) fb_op_abandon(node, ops[--count]);
    fb_area_unpin(node, named);
    return FB_OK;
}

static void who_asks_for_a_promise_is_answered(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, A);
    fb_node *node = test_net_node(net, A);
    fb_event_register(node, (fb_event_kind)CUTTING, cut_in_vain);
    cut_status = FB_ERR_AGAIN;
    const fb_event begin = {.kind = (fb_event_kind)CUTTING, .a = fb_space_find(node, space)};
    assert_int_equal(test_net_event(net, A, begin), FB_OK);
    assert_int_equal(reports_of(net, A, space)->reports, 0);
    test_net_run(net, 60 * SECOND);
    assert_int_equal(cut_status, FB_OK);
    test_net_free(net);
}

/* So long that everybody is linked before such a gap is believed. */
static void slow_hearts(fb_options *options)
{
    reports(options);
    options->timing.heartbeat_ns = 30 * SECOND;
}

/* B says that batches of A are folded of which nobody has said to hold them: it has lost one. C
 * waits for somebody else. */
static void a_gap_that_is_not_below_the_reports_is_not_believed(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, slow_hearts);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    test_net_join(net, C, A, space, FB_ROLE_WRITER);
    test_net_run(net, 30 * SECOND);
    test_net_cut(net, A, C, true);
    test_net_cut(net, B, C, true);
    for (uint32_t i = 1; i <= 4; i++) {
        assert_int_equal(test_net_put(net, A, space, "notes", i, "1"), FB_OK);
    }
    assert_true(agree(net, space, "notes"));
    fb_node *b = test_net_node(net, B);
    const fb_area *area = fb_area_get(b, area_of(net, B, space, "notes"));
    const fb_vector *v = fb_vector_get(b, area->entries - 1);
    uint8_t key[FB_BATCH_KEY_BYTES];
    assert_int_equal(v->batch, 4);
    test_net_store_delete(net, B, fb_key_batch(key, area->local, v->node, v->incarnation, 2));
    test_net_clear_facts(net);
    test_net_cut(net, B, C, false);
    test_net_run(net, 60 * SECOND);
    assert_true(test_net_has(net, C, space, "notes", 1));
    assert_false(test_net_has(net, C, space, "notes", 3));
    assert_int_equal(test_net_facts(net, C, FB_FACT_SKIPPED), 0);
    test_net_cut(net, A, C, false);
    test_net_run(net, 60 * SECOND);
    for (uint32_t i = 1; i <= 4; i++) assert_true(test_net_has(net, C, space, "notes", i));
    assert_int_equal(test_net_facts(net, C, FB_FACT_SKIPPED), 0);
    /* Where nobody else comes it is believed in the end. */
    test_net_cut(net, A, C, true);
    test_net_cut(net, B, C, true);
    for (uint32_t i = 5; i <= 7; i++) {
        assert_int_equal(test_net_put(net, A, space, "notes", i, "1"), FB_OK);
    }
    assert_true(agree(net, space, "notes"));
    test_net_store_delete(net, B, fb_key_batch(key, area->local, v->node, v->incarnation, 6));
    test_net_cut(net, B, C, false);
    test_net_run(net, 300 * SECOND);
    assert_true(test_net_has(net, C, space, "notes", 7));
    assert_false(test_net_has(net, C, space, "notes", 6));
    assert_int_equal(test_net_facts(net, C, FB_FACT_SKIPPED), 1);
    test_net_free(net);
}

/* B says it of batches of A, and much later of batches of D: to have waited for the ones is no
 * reason to believe the others. */
static void each_gap_is_waited_for_anew(void **state)
{
    (void)state;
    enum { D = 3 };
    test_net *net = test_net_new(4, slow_hearts);
    fb_id space = test_net_create_space(net, A);
    for (uint32_t i = B; i <= D; i++) test_net_join(net, i, A, space, FB_ROLE_WRITER);
    test_net_run(net, 30 * SECOND);
    test_net_cut(net, A, C, true);
    test_net_cut(net, D, C, true);
    fb_node *b = test_net_node(net, B);
    uint8_t key[FB_BATCH_KEY_BYTES];
    static const uint32_t writers[] = {A, D};
    for (uint32_t k = 0; k < 2; k++) {
        test_net_cut(net, B, C, true);
        for (uint32_t i = 1; i <= 3; i++) {
            assert_int_equal(test_net_put(net, writers[k], space, "notes", 10 * k + i, "1"), FB_OK);
        }
        test_net_run(net, 10 * SECOND);
        const fb_area *area = fb_area_get(b, area_of(net, B, space, "notes"));
        fb_id writer = fb_node_self(test_net_node(net, writers[k]));
        const fb_vector *v = NULL;
        for (uint32_t at = area->entries; at != 0; at = fb_vector_get(b, at - 1)->next) {
            if (fb_id_equal(fb_vector_get(b, at - 1)->node, writer)) v = fb_vector_get(b, at - 1);
        }
        assert_int_equal(v->batch, 3);
        test_net_store_delete(net, B, fb_key_batch(key, area->local, writer, v->incarnation, 2));
        test_net_clear_facts(net);
        test_net_cut(net, B, C, false);
        test_net_run(net, 100 * SECOND);
        /* That of A, by then. */
        assert_int_equal(test_net_facts(net, C, FB_FACT_SKIPPED), k);
    }
    test_net_cut(net, D, C, false);
    test_net_run(net, 60 * SECOND);
    assert_true(test_net_has(net, C, space, "notes", 12));
    test_net_free(net);
}

typedef struct said {
    fb_status status;
    uint8_t state;
    uint64_t stamp, batches, all;
} said;

static said asked(test_net *net, uint32_t i, fb_id space, fb_id of, size_t extra)
{
    uint8_t bytes[40] = {0};
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, of);
    w.at += extra;
    const test_reply *reply = test_net_answer(net, i, FB_VERB_SPACE_REPORTED, &w);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    said s = {.status = reply->status};
    if (s.status != FB_OK) return s;
    s.state = fb_read_u8(&r);
    s.stamp = fb_read_u64(&r);
    s.batches = fb_read_u64(&r);
    s.all = fb_read_u64(&r);
    assert_true(fb_reader_done(&r));
    return s;
}

/* Whose report is missing, whose lacks something, and how much waits for it. */
static void who_holds_the_cut_back_is_told(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, often);
    fb_id space = test_net_create_space(net, A);
    fb_id a = fb_node_self(test_net_node(net, A)), b = fb_node_self(test_net_node(net, B));
    assert_int_equal(asked(net, A, space, b, 0).status, FB_ERR_NOT_FOUND);
    assert_int_equal(asked(net, A, b, a, 0).status, FB_ERR_NOT_FOUND);
    assert_int_equal(asked(net, A, space, a, 1).status, FB_ERR_REQUEST_MALFORMED);
    said s = asked(net, A, space, a, 0);
    assert_int_equal(s.state, FB_REPORT_NONE); /* it has said nothing yet */
    assert_int_equal(s.stamp, 0);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    assert_int_equal(test_net_put(net, A, space, "notes", 1, "1"), FB_OK);
    test_net_run(net, 30 * SECOND);
    s = asked(net, A, space, b, 0);
    assert_int_equal(s.state, FB_REPORT_KNOWN);
    assert_true(s.stamp > 0 && s.batches == 0 && s.all == 0);
    test_net_cut(net, A, B, true);
    test_net_cut(net, B, C, true);
    for (uint32_t i = 2; i <= 4; i++) {
        assert_int_equal(test_net_put(net, A, space, "notes", i, "1"), FB_OK);
    }
    test_net_run(net, 30 * SECOND);
    said later = asked(net, A, space, b, 0);
    assert_int_equal(later.state, FB_REPORT_KNOWN);
    assert_true(later.stamp == s.stamp && later.batches == 3 && later.all == 3);
    assert_true(asked(net, A, space, a, 0).batches == 0); /* nobody waits for A */
    /* A statement that B has not heard of. */
    test_net_join(net, C, A, space, FB_ROLE_READER);
    assert_int_equal(asked(net, A, space, b, 0).state, FB_REPORT_OLD);
    test_net_cut(net, A, B, false);
    test_net_cut(net, B, C, false);
    test_net_run(net, 60 * SECOND);
    s = asked(net, A, space, b, 0);
    assert_int_equal(s.state, FB_REPORT_KNOWN);
    assert_true(s.stamp > later.stamp && s.batches == 0 && s.all == 0);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_writes_all_the_time_reports),
        cmocka_unit_test(a_report_names_the_statements_whatever_else_fits),
        cmocka_unit_test(what_a_closed_life_replaced_is_not_dead_before_the_cut),
        cmocka_unit_test(what_is_deleted_is_folded_and_what_is_lost_is_not),
        cmocka_unit_test(a_record_of_many_dots_is_repaired),
        cmocka_unit_test(a_record_of_many_values_stored_apart_is_repaired),
        cmocka_unit_test(a_record_that_no_answer_holds_is_compared_in_parts),
        cmocka_unit_test(who_is_always_ahead_is_compared_with),
        cmocka_unit_test(what_never_comes_holds_nothing_up_for_long),
        cmocka_unit_test(who_takes_back_is_not_compared_with),
        cmocka_unit_test(who_may_not_write_takes_nothing_away),
        cmocka_unit_test(what_was_hidden_is_forgotten_when_it_is_here),
        cmocka_unit_test(an_older_life_is_not_what_was_reported),
        cmocka_unit_test(what_was_merged_anew_is_doubted_also_after_a_crash),
        cmocka_unit_test(who_asks_for_a_promise_is_answered),
        cmocka_unit_test(a_gap_that_is_not_below_the_reports_is_not_believed),
        cmocka_unit_test(each_gap_is_waited_for_anew),
        cmocka_unit_test(who_holds_the_cut_back_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
