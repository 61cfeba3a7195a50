/* SPDX-License-Identifier: Apache-2.0 */
/* A member that lies about what it has, or signs more than its share: it delays nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/database/state.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)
#define LIE    100u /* an event of this test's own: a frame of version vectors from a link */

enum { VICTIM, LIAR, HONEST, NODES };

static test_net *net;
static fb_id space;

static fb_status take_frame(fb_node *node, const fb_event *event)
{
    const fb_channel *vectors = node->controls[FB_CONTROL_VECTORS];
    return vectors->frame(node, (uint32_t)event->a, fb_span_of(event->bytes, event->len));
}

static void begin(void (*tweak)(fb_options *options))
{
    net = test_net_new(NODES, tweak);
    space = test_net_create_space(net, HONEST);
    test_net_join(net, LIAR, HONEST, space, FB_ROLE_WRITER);
    test_net_join(net, VICTIM, HONEST, space, FB_ROLE_WRITER);
    test_net_run(net, 20 * SECOND);
    assert_int_not_equal(test_net_link(net, VICTIM, LIAR), FB_NONE);
    fb_event_register(test_net_node(net, VICTIM), (fb_event_kind)LIE, take_frame);
}

static fb_id id_of(uint32_t i)
{
    return fb_node_self(test_net_node(net, i));
}

/* The liar's link says that there is a batch. */
static fb_status claim_status(const char *collection, fb_id author, uint64_t incarnation,
                              uint64_t batch)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_span name = fb_span_text(collection);
    fb_write_u8(&w, FB_CONTROL_VECTORS);
    fb_write_u8(&w, 2);
    fb_write_id(&w, fb_area_id(space, FB_AREA_COLLECTION, name));
    fb_write_u8(&w, FB_AREA_COLLECTION);
    fb_write_span16(&w, name);
    fb_write_u16(&w, 1);
    fb_write_id(&w, author);
    fb_write_u64(&w, incarnation);
    fb_write_u64(&w, batch);
    fb_write_u64(&w, batch);
    fb_event event = {
        .kind = LIE, .a = test_net_link(net, VICTIM, LIAR), .len = (uint32_t)w.at, .bytes = bytes};
    return test_net_event(net, VICTIM, event);
}

static void claim(const char *collection, fb_id author, uint64_t incarnation, uint64_t batch)
{
    assert_int_equal(claim_status(collection, author, incarnation, batch), FB_OK);
}

static uint64_t counted(fb_counter counter)
{
    return fb_node_counter(test_net_node(net, VICTIM), counter);
}

static uint64_t incarnation_of(uint32_t i)
{
    return test_net_node(net, i)->incarnation;
}

/* A batch number that nobody reaches neither hides what comes nor puts it off. */
static void a_huge_number_hides_nothing(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(test_net_put(net, HONEST, space, "notes", 1, "1"), FB_OK);
    test_net_run(net, 10 * SECOND);
    for (uint32_t i = 0; i < 3; i++) {
        test_net_pause_store(net, LIAR, true); /* it answers nothing for now */
        claim("notes", id_of(HONEST), incarnation_of(HONEST), (UINT64_C(1) << 62) + i);
        assert_int_equal(test_net_put(net, HONEST, space, "notes", 2 + i, "1"), FB_OK);
        test_net_run(net, 5 * SECOND);
        assert_true(test_net_has(net, VICTIM, space, "notes", 2 + i));
        test_net_pause_store(net, LIAR, false);
        test_net_run(net, 100 * SECOND);
        assert_int_equal(test_net_put(net, HONEST, space, "notes", 20 + i, "1"), FB_OK);
        assert_true(test_net_has(net, VICTIM, space, "notes", 20 + i)); /* at once */
    }
    test_net_free(net);
}

/* What a claimer answers and does not have is no claim any more. */
static void an_empty_claim_is_dropped(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(test_net_put(net, HONEST, space, "notes", 1, "1"), FB_OK);
    test_net_run(net, 10 * SECOND);
    assert_int_equal(counted(FB_COUNTER_CLAIMS_DROPPED), 0);
    /* Numbers that no batch has are no claim. */
    claim("notes", id_of(HONEST), incarnation_of(HONEST), UINT64_MAX);
    claim("notes", id_of(HONEST), 0, 7);
    test_net_settle(net);
    assert_int_equal(counted(FB_COUNTER_CLAIMS_DROPPED), 0);
    claim("notes", id_of(HONEST), incarnation_of(HONEST), 1000);
    test_net_settle(net);
    assert_int_equal(counted(FB_COUNTER_CLAIMS_DROPPED), 1);
    uint32_t area = fb_area_find(test_net_node(net, VICTIM),
                                 fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes")));
    assert_int_equal(fb_area_get(test_net_node(net, VICTIM), area)->wants, 0);
    test_net_free(net);
}

/* A life that was taken up is no head, so what is here of it comes again: that is no answer. */
static void a_claim_that_only_old_batches_answer_is_dropped(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(test_net_put(net, HONEST, space, "notes", 1, "1"), FB_OK);
    uint64_t before = incarnation_of(HONEST);
    test_net_run(net, 10 * SECOND);
    test_net_restart(net, HONEST);
    test_net_run(net, 10 * SECOND);
    assert_int_equal(test_net_put(net, HONEST, space, "notes", 2, "1"), FB_OK);
    test_net_run(net, 10 * SECOND);
    assert_true(test_net_has(net, VICTIM, space, "notes", 2));
    assert_int_equal(counted(FB_COUNTER_CLAIMS_DROPPED), 0);
    uint32_t area = fb_area_find(test_net_node(net, VICTIM),
                                 fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes")));
    claim("notes", id_of(HONEST), before, 1000);
    test_net_settle(net);
    assert_int_equal(counted(FB_COUNTER_CLAIMS_DROPPED), 1);
    assert_int_equal(fb_area_get(test_net_node(net, VICTIM), area)->wants, 0);
    test_net_free(net);
}

/* While a call asks for one life of a node, another one is claimed: it comes next. */
static void another_life_is_asked_for_after_the_call(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(test_net_put(net, LIAR, space, "notes", 1, "1"), FB_OK);
    test_net_run(net, 10 * SECOND);
    test_net_pause_store(net, LIAR, true);
    const struct fb_database *db = test_net_node(net, VICTIM)->database;
    uint64_t before = db->serial;
    claim("notes", id_of(LIAR), 77, 1);
    test_net_settle(net);
    claim("notes", id_of(LIAR), 78, 1);
    test_net_settle(net);
    test_net_pause_store(net, LIAR, false);
    test_net_settle(net);
    assert_int_equal(db->serial, before + 2); /* a call for each */
    assert_int_equal(counted(FB_COUNTER_CLAIMS_DROPPED), 2);
    assert_int_equal(db->claims[test_net_link(net, VICTIM, LIAR)], 0);
    test_net_free(net);
}

static void few_claims(fb_options *options)
{
    options->sizes.areas = 32;
    options->sizes.vector_entries = 100;
}

static void the_claims_of_one_leave_room_for_others(void **state)
{
    (void)state;
    begin(few_claims);
    const struct fb_database *db = test_net_node(net, VICTIM)->database;
    uint32_t link = test_net_link(net, VICTIM, LIAR);
    test_net_pause_store(net, LIAR, true);
    char name[] = "aa";
    for (uint32_t author = 0; author < NODES; author++) {
        for (uint32_t i = 0; i < 40; i++) {
            name[0] = (char)('a' + i % 20);
            name[1] = (char)('a' + i / 20);
            claim(name, id_of(author), 5, UINT64_C(1) << 60);
        }
    }
    assert_true(db->claims[link] > 32);
    assert_true(db->claims[link] <= db->claim_share + (db->claim_slack + 1) / 2);
    assert_int_equal(db->named[link], 16);
    assert_true(counted(FB_COUNTER_AREAS_REFUSED) > 0);
    test_net_settle(net);
    assert_int_equal(test_net_put(net, HONEST, space, "new", 1, "1"), FB_OK);
    test_net_run(net, 5 * SECOND);
    assert_true(test_net_has(net, VICTIM, space, "new", 1));
    /* And with the link everything of it goes. */
    test_net_cut(net, VICTIM, LIAR, true);
    test_net_run(net, 400 * SECOND);
    assert_int_equal(db->claims[link], 0);
    assert_int_equal(db->claim_slack_used, 0);
    assert_int_equal(db->named[link], 0);
    assert_int_equal(db->area_count, 2);
    test_net_free(net);
}

/* Puts a first batch of a life that never was into the liar's store: a record of the life's number
 * with this column, or with none. */
static void sign_life(uint64_t incarnation, uint32_t local, fb_span column, fb_span set_to)
{
    fb_node *node = test_net_node(net, LIAR);
    static const uint8_t author[16];
    uint8_t item[256], leaf[32], bytes[1024], hash[32];
    fb_writer c = fb_writer_of(item, sizeof item);
    fb_change_write_head(&c, test_net_record_id((uint32_t)incarnation), FB_CHANGE_WRITE, 1,
                         FB_AUTHOR_OPERATOR, author);
    fb_write_u16(&c, 0);
    fb_write_u16(&c, column.len != 0 ? 1 : 0);
    if (column.len != 0) {
        fb_change_write_field(&c, column, FB_FIELD_SET);
        fb_write_u16(&c, 0);
        fb_change_write_value(&c, author, set_to);
    }
    fb_change change;
    assert_int_equal(fb_change_decode(fb_writer_span(&c), &change), FB_OK);
    fb_change_leaf(&change, (fb_dot){node->self, incarnation, 1}, leaf);
    fb_batch batch = {.space = space,
                      .area = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes")),
                      .author = node->self_key,
                      .incarnation = incarnation,
                      .number = 1,
                      .first_seq = 1,
                      .count = 1};
    fb_batch_root(leaf, 1, batch.root);
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    assert_int_equal(
        fb_batch_seal(&w, &batch, node->options.provider, node->options.identity_key, hash), FB_OK);
    fb_write_span32(&w, fb_writer_span(&c));
    uint8_t key[FB_BATCH_KEY_BYTES], value[FB_VECTOR_VALUE_BYTES];
    test_net_store_put(net, LIAR, fb_key_batch(key, local, node->self, incarnation, 1),
                       fb_writer_span(&w));
    w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, 1);
    fb_write_u64(&w, 1);
    fb_write_u64(&w, 1);
    fb_write_bytes(&w, hash, 32);
    fb_write_u64(&w, 0);
    fb_write_u64(&w, 0);
    test_net_store_put(net, LIAR, fb_key_vector(key, false, local, node->self, incarnation),
                       fb_writer_span(&w));
}

static void few_entries(fb_options *options)
{
    options->sizes.vector_entries = 48;
}

static void many_lives_fill_half_of_the_table(void **state)
{
    (void)state;
    begin(few_entries);
    assert_int_equal(test_net_put(net, LIAR, space, "notes", 1, "1"), FB_OK);
    test_net_run(net, 10 * SECOND);
    fb_node *node = test_net_node(net, LIAR);
    uint32_t area =
        fb_area_find(node, fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes")));
    test_net_cut(net, LIAR, HONEST, true); /* for the victim alone */
    const fb_span none = {NULL, 0};
    for (uint64_t i = 0; i < 40; i++) {
        sign_life(5000 + i, fb_area_get(node, area)->local, none, none);
    }
    test_net_restart(net, LIAR);
    test_net_run(net, 300 * SECOND);
    assert_true(counted(FB_COUNTER_LIVES_REFUSED) > 0);
    const fb_node *victim = test_net_node(net, VICTIM);
    uint32_t lives = 0;
    for (uint32_t i = 0; i < 48; i++) {
        const fb_vector *v = fb_vector_get(victim, i);
        lives += v->used && fb_id_equal(v->node, node->self);
    }
    assert_int_equal(lives, 24);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(test_net_put(net, HONEST, space, names[i], 1, "1"), FB_OK);
        assert_int_equal(test_net_put(net, VICTIM, space, names[i], 2, "1"), FB_OK);
        test_net_run(net, 10 * SECOND);
        assert_true(test_net_has(net, VICTIM, space, names[i], 1));
        assert_true(test_net_has(net, HONEST, space, names[i], 2));
    }
    test_net_free(net);
}

/* A collection that no tool could show or ask for: nothing of it is kept, and the link ends. */
static void collections_have_names_of_utf8(void **state)
{
    (void)state;
    static const char *const wrong[] = {"\xff", "a\xc3", "\xed\xa0\x80"};
    begin(NULL);
    const struct fb_database *db = test_net_node(net, VICTIM)->database;
    claim("\xc3\xa9", id_of(LIAR), 77, 1);
    uint32_t areas = db->area_count;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(claim_status(wrong[i], id_of(LIAR), 77, 1), FB_ERR_LINK_RECORD);
    }
    assert_int_equal(db->area_count, areas);
    test_net_free(net);
}

/* What is signed well is taken when its values are those of their columns. */
static void values_of_another_kind_are_refused(void **state)
{
    (void)state;
    static const struct {
        fb_field_kind kind;
        const char *named, *value; /* of an element: that the name is of */
        bool taken;
    } cases[] = {
        {FB_FIELD_REGISTER, NULL, "\"x\"", true},
        {FB_FIELD_REGISTER, NULL, "x", false},
        {FB_FIELD_COUNTER, NULL, "-12", true},
        {FB_FIELD_COUNTER, NULL, "1.5", false},
        {FB_FIELD_COUNTER, NULL, "\"1\"", false},
        {FB_FIELD_COUNTER, NULL, "12345678901234567890", false},
        {FB_FIELD_ELEMENT, "[1]", "[1]", true},
        {FB_FIELD_ELEMENT, "[1]", "[2]", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(NULL);
        assert_int_equal(test_net_put(net, LIAR, space, "notes", 1, "1"), FB_OK);
        test_net_run(net, 10 * SECOND);
        fb_node *node = test_net_node(net, LIAR);
        uint32_t area =
            fb_area_find(node, fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes")));
        uint8_t room[FB_COLUMN_NAME_BYTES_MAX];
        fb_span name = fb_span_text("f");
        if (cases[i].kind == FB_FIELD_COUNTER) name = fb_column_counter(room, name);
        if (cases[i].kind == FB_FIELD_ELEMENT) {
            name = fb_column_element(room, name, fb_span_text(cases[i].named));
        }
        sign_life(5000, fb_area_get(node, area)->local, name, fb_span_text(cases[i].value));
        test_net_restart(net, LIAR);
        test_net_run(net, 60 * SECOND);
        assert_int_equal(test_net_has(net, VICTIM, space, "notes", 5000), cases[i].taken);
        test_net_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_huge_number_hides_nothing),
        cmocka_unit_test(an_empty_claim_is_dropped),
        cmocka_unit_test(a_claim_that_only_old_batches_answer_is_dropped),
        cmocka_unit_test(another_life_is_asked_for_after_the_call),
        cmocka_unit_test(the_claims_of_one_leave_room_for_others),
        cmocka_unit_test(many_lives_fill_half_of_the_table),
        cmocka_unit_test(collections_have_names_of_utf8),
        cmocka_unit_test(values_of_another_kind_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
