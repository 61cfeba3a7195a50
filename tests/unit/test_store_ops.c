/* SPDX-License-Identifier: Apache-2.0 */
/* Read, then execute: operations against a memory store, with the overlay compared to a naive twin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/store/store.h"
#include "tests/unit/net.h"

enum { VERB_ADD = 60, VERB_SCAN = 61, VERB_TWO_ROUNDS = 62 };

/* Adds one to the number under a key and answers with what it became. */
typedef struct add_context {
    uint32_t request;
    uint8_t key;
} add_context;

static uint64_t number_of(fb_span value)
{
    fb_reader r = fb_reader_of(value);
    return fb_read_u64(&r);
}

static void add_run(fb_node *node, fb_op *op)
{
    add_context *context = fb_op_context(op);
    if (fb_op_status(op) != FB_OK) {
        fb_reply(node, context->request, fb_op_status(op), (fb_span){NULL, 0});
        return;
    }
    fb_read_entry entry;
    uint64_t number = fb_op_value(node, op, 0, &entry) ? number_of(entry.value) : 0;
    uint8_t key[2] = {'z', context->key}, value[8];
    fb_store_be(value, number + 1, 8);
    fb_put(node, fb_span_of(key, 2), fb_span_of(value, 8));
    fb_reply_held(node, context->request, FB_OK, fb_w_building(node), fb_span_of(value, 8));
}

static void add_verb(fb_node *node, fb_request request, fb_span arguments)
{
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, add_run, 24, 1);
    if (op == NULL) {
        fb_reply(node, request.index, FB_ERR_BUSY, (fb_span){NULL, 0});
        return;
    }
    add_context *context = fb_op_context(op);
    *context = (add_context){request.index, arguments.p[0]};
    uint8_t key[2] = {'z', arguments.p[0]};
    fb_op_read_key(op, fb_span_of(key, 2), 8);
    fb_op_issue(node, op);
}

/* Answers with the keys and numbers of a range; arguments: first, beyond, items, descending. */
static void scan_run(fb_node *node, fb_op *op)
{
    uint32_t *request = fb_op_context(op);
    uint8_t bytes[4096];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u8(&w, fb_op_range_whole(node, op, 0));
    for (uint32_t i = 0; i < fb_op_range_count(node, op, 0); i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        fb_write_u8(&w, entry.key.p[1]);
        fb_write_u64(&w, number_of(entry.value));
    }
    fb_reply(node, *request, FB_OK, fb_writer_span(&w));
}

static void scan_verb(fb_node *node, fb_request request, fb_span a)
{
    fb_op *op = fb_op_begin(node, a.p[4] ? FB_OP_WRITER : FB_OP_READER, scan_run, 0, 0);
    *(uint32_t *)fb_op_context(op) = request.index;
    uint8_t low[2] = {'z', a.p[0]}, high[2] = {'z', a.p[1]};
    fb_op_read_range(op, fb_span_of(low, 2), fb_span_of(high, 2), 8, a.p[2], 1u << 16, a.p[3] != 0);
    fb_op_issue(node, op);
}

/* Reads key 1, then key 2, then shows both: the first is laid over anew. */
static void two_rounds_run(fb_node *node, fb_op *op)
{
    uint32_t *request = fb_op_context(op);
    if (fb_op_round(op) == 1) {
        uint8_t key[2] = {'z', 2};
        fb_op_read_key(op, fb_span_of(key, 2), 8);
        fb_op_issue(node, op);
        return;
    }
    uint8_t bytes[16] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        fb_read_entry entry;
        if (fb_op_value(node, op, i, &entry)) memcpy(bytes + 8 * i, entry.value.p, 8);
    }
    fb_reply(node, *request, fb_op_status(op), fb_span_of(bytes, sizeof bytes));
}

static void two_rounds_verb(fb_node *node, fb_request request, fb_span a)
{
    (void)a;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, two_rounds_run, 0, 0);
    *(uint32_t *)fb_op_context(op) = request.index;
    uint8_t key[2] = {'z', 1};
    fb_op_read_key(op, fb_span_of(key, 2), 8);
    fb_op_issue(node, op);
}

static test_net *one_node(void)
{
    test_net *net = test_net_new(1, NULL);
    fb_node *node = test_net_node(net, 0);
    assert_true(fb_node_is_running(node));
    fb_verb_register(node, (fb_verb)VERB_ADD, add_verb);
    fb_verb_register(node, (fb_verb)VERB_SCAN, scan_verb);
    fb_verb_register(node, (fb_verb)VERB_TWO_ROUNDS, two_rounds_verb);
    return net;
}

static uint64_t ask_add(test_net *net, uint8_t key)
{
    return test_net_ask(net, 0, (fb_verb)VERB_ADD, 0, fb_span_of(&key, 1));
}

static void a_write_is_answered_when_durable(void **state)
{
    (void)state;
    test_net *net = one_node();
    uint64_t first = ask_add(net, 1);
    assert_true(test_net_reply(net, first)->done);
    assert_int_equal(number_of(fb_span_of(test_net_reply(net, first)->bytes, 8)), 1);
    test_net_pause_store(net, 0, true);
    uint64_t second = ask_add(net, 1);
    assert_false(test_net_reply(net, second)->done);
    test_net_pause_store(net, 0, false);
    test_net_settle(net);
    assert_int_equal(number_of(fb_span_of(test_net_reply(net, second)->bytes, 8)), 2);
    test_net_free(net);
}

/* Many increments with the store answering late in every possible grouping: none is lost. */
static void nothing_is_lost_in_the_overlay(void **state)
{
    (void)state;
    test_net *net = one_node();
    uint64_t asked[12];
    uint64_t total = 0;
    for (uint32_t round = 0; round < 40; round++) {
        test_net_pause_store(net, 0, true);
        uint32_t count = 1 + round % 11;
        for (uint32_t i = 0; i < count; i++) asked[i] = ask_add(net, (uint8_t)(i % 3));
        test_net_pause_store(net, 0, false);
        test_net_settle(net);
        for (uint32_t i = 0; i < count; i++) {
            const test_reply *reply = test_net_reply(net, asked[i]);
            assert_true(reply->done);
            if (reply->status == FB_OK) total++;
        }
    }
    uint8_t a[5] = {0, 255, 100, 0, 0};
    uint64_t scan = test_net_ask(net, 0, (fb_verb)VERB_SCAN, 0, fb_span_of(a, 5));
    const test_reply *reply = test_net_reply(net, scan);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    assert_int_equal(fb_read_u8(&r), 1);
    uint64_t sum = 0;
    while (fb_reader_left(&r) > 0) {
        fb_read_u8(&r);
        sum += fb_read_u64(&r);
    }
    assert_int_equal(sum, total);
    assert_true(total > 200);
    test_net_free(net);
}

static void ranges_merge_with_what_is_unfinished(void **state)
{
    (void)state;
    test_net *net = one_node();
    for (uint8_t k = 10; k < 20; k += 2) ask_add(net, k); /* stored: 10 12 14 16 18 */
    fb_node *node = test_net_node(net, 0);
    test_net_pause_store(net, 0, true);
    uint64_t held[2] = {ask_add(net, 11), ask_add(net, 14)};
    uint8_t up[5] = {10, 19, 100, 0, 1}, down[5] = {10, 19, 100, 1, 1}, few[5] = {10, 19, 3, 0, 1};
    uint8_t durable[5] = {10, 19, 100, 0, 0};
    (void)node;
    /* The two adds have read nothing yet; let the reads be answered and their set stay in flight.
     */
    test_net_pause_store(net, 0, false);
    test_net_settle(net);
    assert_true(test_net_reply(net, held[0])->done && test_net_reply(net, held[1])->done);
    static const struct {
        size_t keys;
        uint8_t first;
    } expected[] = {{6, 10}, {6, 18}, {3, 10}, {6, 10}};
    const uint8_t *asks[] = {up, down, few, durable};
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t scan = test_net_ask(net, 0, (fb_verb)VERB_SCAN, 0, fb_span_of(asks[i], 5));
        const test_reply *reply = test_net_reply(net, scan);
        assert_true(reply->done);
        assert_int_equal((reply->len - 1) / 9, expected[i].keys);
        assert_int_equal(reply->bytes[1], expected[i].first);
        assert_int_equal(reply->bytes[0], i == 2 ? 0 : 1);
    }
    test_net_free(net);
}

static void earlier_rounds_stay_readable(void **state)
{
    (void)state;
    test_net *net = one_node();
    ask_add(net, 1);
    ask_add(net, 2);
    ask_add(net, 2);
    uint64_t request = test_net_ask(net, 0, (fb_verb)VERB_TWO_ROUNDS, 0, (fb_span){NULL, 0});
    const test_reply *reply = test_net_reply(net, request);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(number_of(fb_span_of(reply->bytes, 8)), 1);
    assert_int_equal(number_of(fb_span_of(reply->bytes + 8, 8)), 2);
    test_net_free(net);
}

static void a_failed_write_ends_the_incarnation(void **state)
{
    (void)state;
    test_net *net = one_node();
    fb_node *node = test_net_node(net, 0);
    ask_add(net, 1);
    test_net_fail_write(net, 0);
    uint64_t lost = ask_add(net, 1);
    assert_true(test_net_reply(net, lost)->done);
    assert_int_equal(test_net_reply(net, lost)->status, FB_ERR_AGAIN);
    assert_true(fb_node_is_running(node)); /* started again from the store */
    uint64_t again = ask_add(net, 1);
    assert_int_equal(number_of(fb_span_of(test_net_reply(net, again)->bytes, 8)), 2);
    test_net_free(net);
}

static void identifiers_rise_across_restarts(void **state)
{
    (void)state;
    test_net *net = one_node();
    fb_id before = {{0}};
    fb_span key, value;
    for (uint32_t life = 0; life < 3; life++) {
        bool found = false;
        for (size_t at = 0; test_net_stored(net, 0, at, &key, &value); at++) {
            if (key.p[0] != 'M' || key.p[1] != 3) continue;
            fb_id mark;
            memcpy(mark.b, value.p, 16);
            assert_true(fb_id_compare(mark, before) > 0);
            before = mark;
            found = true;
        }
        assert_true(found);
        test_net_restart(net, 0);
    }
    test_net_free(net);
}

static void a_newer_store_is_refused(void **state)
{
    (void)state;
    test_net *net = one_node();
    fb_node *node = test_net_node(net, 0);
    uint8_t key[2] = {'M', 1}, value[4] = {0, 0, 0, 99};
    test_net_store_put(net, 0, fb_span_of(key, 2), fb_span_of(value, 4));
    test_net_restart(net, 0);
    assert_int_equal(test_net_last_end(net, 0), FB_ERR_VERSION_NEWER);
    assert_false(fb_node_is_running(node));
    test_net_free(net);
}

static void digests_follow_the_events(void **state)
{
    (void)state;
    test_net *a = one_node(), *b = one_node();
    for (uint8_t i = 0; i < 50; i++) {
        ask_add(a, i);
        ask_add(b, i);
        fb_hash128 x = fb_node_digest(test_net_node(a, 0)), y = fb_node_digest(test_net_node(b, 0));
        assert_true(x.lo == y.lo && x.hi == y.hi);
    }
    ask_add(a, 1);
    fb_hash128 x = fb_node_digest(test_net_node(a, 0)), y = fb_node_digest(test_net_node(b, 0));
    assert_true(x.lo != y.lo);
    test_net_free(a);
    test_net_free(b);
}

/* What a driver says of a range, as keys and with what it says of the whole. */
typedef struct told_range {
    const char *what;
    uint8_t flags;
    uint8_t whole;
    uint32_t count;
    const char *keys[3];
    uint32_t value_len, given;
    bool good;
} told_range;

static bool range_is_believed(const told_range *t, bool one_byte_more)
{
    uint8_t asked[64], answer[256];
    fb_writer items = fb_writer_of(asked, sizeof asked), w = fb_writer_of(answer, sizeof answer);
    fb_read_item item = {FB_READ_RANGE,     t->flags,         8, 3, 1u << 16,
                         fb_span_text("b"), fb_span_text("y")};
    fb_read_item_write(&items, &item);
    fb_op op = {.round = 1, .block = asked, .block_cap = sizeof asked};
    op.rounds[0] = (fb_op_round_bytes){.items = 1, .set_at = 0, .set_len = (uint32_t)items.at};
    fb_write_u8(&w, t->whole);
    fb_write_u32(&w, t->count);
    for (uint32_t i = 0; i < 3 && t->keys[i] != NULL; i++) {
        fb_read_entry entry = {fb_span_text(t->keys[i]), t->value_len, {answer, t->given}};
        fb_read_entry_write(&w, &entry);
    }
    if (one_byte_more) fb_write_u8(&w, 0);
    return fb_merge_check(&op, fb_writer_span(&w));
}

static void what_a_driver_says_of_a_range_is_checked(void **state)
{
    (void)state;
    static const told_range told[] = {
        {"in order", 0, 1, 3, {"b", "c", "x"}, 8, 8, true},
        {"nothing, and that is all", 0, 1, 0, {NULL}, 0, 0, true},
        {"stopped by a bound", 0, 0, 2, {"b", "c"}, 8, 8, true},
        {"from the end", FB_READ_DESCENDING, 1, 3, {"x", "c", "b"}, 8, 8, true},
        {"of longer values their beginning", 0, 1, 1, {"c"}, 100, 8, true},
        {"out of order", 0, 1, 3, {"b", "x", "c"}, 8, 8, false},
        {"one key twice", 0, 1, 2, {"c", "c"}, 8, 8, false},
        {"from the end, out of order", FB_READ_DESCENDING, 1, 2, {"c", "x"}, 8, 8, false},
        {"before the first", 0, 1, 1, {"a"}, 8, 8, false},
        {"the first beyond", 0, 1, 1, {"y"}, 8, 8, false},
        {"more than was asked for", 0, 1, 4, {"b", "c", "d"}, 8, 8, false},
        {"fewer than it says", 0, 1, 3, {"b", "c"}, 8, 8, false},
        {"stopped before the first", 0, 0, 0, {NULL}, 0, 0, false},
        {"neither whole nor stopped", 0, 2, 1, {"c"}, 8, 8, false},
        {"more of a value than it has", 0, 1, 1, {"c"}, 4, 8, false},
    };
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (range_is_believed(&told[i], false) != told[i].good) fail_msg("%s", told[i].what);
        assert_false(range_is_believed(&told[i], true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_is_answered_when_durable),
        cmocka_unit_test(nothing_is_lost_in_the_overlay),
        cmocka_unit_test(ranges_merge_with_what_is_unfinished),
        cmocka_unit_test(earlier_rounds_stay_readable),
        cmocka_unit_test(a_failed_write_ends_the_incarnation),
        cmocka_unit_test(identifiers_rise_across_restarts),
        cmocka_unit_test(a_newer_store_is_refused),
        cmocka_unit_test(digests_follow_the_events),
        cmocka_unit_test(what_a_driver_says_of_a_range_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
