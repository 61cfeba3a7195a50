/* SPDX-License-Identifier: Apache-2.0 */
/* Signalling and calls between real nodes: the whole core, memory stores, links without faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/base/cursor.h"
#include "protocol/messaging/messaging.h"
#include "protocol/space/space.h"
#include "tests/unit/net.h"

#define SECOND_NS UINT64_C(1000000000)

static test_net *net;
static fb_id space;

static const test_reply *ask(uint32_t i, fb_verb verb, const fb_writer *w)
{
    return test_net_reply(net, test_net_ask(net, i, verb, 0, fb_writer_span(w)));
}

static void join(uint32_t i)
{
    uint8_t bytes[1024];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u32(&w, 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text(test_net_address(0)));
    const test_reply *invite = ask(0, FB_VERB_SPACE_INVITE, &w);
    assert_int_equal(invite->status, FB_OK);
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_bytes(&w, invite->bytes, invite->len);
    fb_write_span16(&w, fb_span_text(test_net_address(i)));
    uint64_t request = test_net_ask(net, i, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w));
    test_net_run(net, SECOND_NS);
    assert_true(test_net_reply(net, request)->done);
    assert_int_equal(test_net_reply(net, request)->status, FB_OK);
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, fb_node_self(test_net_node(net, i)));
    fb_write_u8(&w, FB_ROLE_WRITER);
    assert_int_equal(ask(0, FB_VERB_SPACE_APPROVE, &w)->status, FB_OK);
    test_net_run(net, 4 * SECOND_NS);
}

static int setup(void **state)
{
    (void)state;
    net = test_net_new(3, NULL);
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&w, fb_span_text("home"));
    const test_reply *created = ask(0, FB_VERB_SPACE_CREATE, &w);
    assert_int_equal(created->status, FB_OK);
    memcpy(space.b, created->bytes, 16);
    join(1);
    join(2);
    test_net_run(net, 20 * SECOND_NS);
    test_net_clear_facts(net);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_net_free(net);
    return 0;
}

static const fb_id record = {{1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 7}};

static fb_status put(uint32_t i, const char *value)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, fb_span_text("notes"));
    fb_write_id(&w, record);
    fb_write_u8(&w, 2);
    fb_write_u8(&w, 0);
    fb_write_id(&w, (fb_id){{0}});
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text("text"));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_text(value));
    return ask(i, FB_VERB_RECORD_PUT, &w)->status;
}

static bool holds(uint32_t i, const char *value)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, fb_span_text("notes"));
    fb_write_id(&w, record);
    const test_reply *reply = ask(i, FB_VERB_RECORD_GET, &w);
    if (reply->status != FB_OK) return false;
    size_t len = strlen(value);
    return reply->len > len && memcmp(reply->bytes + reply->len - len, value, len) == 0;
}

static fb_status publish(uint32_t i, uint16_t count)
{
    uint8_t bytes[4096];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u16(&w, count);
    for (uint16_t k = 0; k < count; k++) {
        fb_id area = {{1, 0x91, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, (uint8_t)i}};
        fb_store_be(area.b + 14, k, 2);
        fb_write_id(&w, area);
    }
    return ask(i, FB_VERB_PUBLISH, &w)->status;
}

/* FM-3.6-2, FM-4.1-2, FM-4.1-7, FM-4.1-9, FM-5.2-7 */
static void a_write_is_announced_and_fetched(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        char value[] = "\"0\"";
        value[1] = (char)('1' + i);
        assert_int_equal(put(i, value), FB_OK);
        /* No time passes: nothing waits for a heartbeat. */
        for (uint32_t k = 0; k < 3; k++) assert_true(holds(k, value));
    }
    assert_true(test_net_facts(net, 1, FB_FACT_DELIVERED) >= 2);
    assert_int_equal(test_net_facts(net, 1, FB_FACT_REFUSED), 0);
    test_net_run(net, 60 * SECOND_NS);
    test_net_clear_facts(net);
    test_net_run(net, 60 * SECOND_NS);
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(test_net_facts(net, k, FB_FACT_SENT), 0);
        assert_int_equal(test_net_facts(net, k, FB_FACT_SEALED), 0);
    }
}

/* FM-4.1-1, FM-6.2-1, FM-7.3-2, MP-6-16 */
static void published_ids_reach_every_peer_once(void **state)
{
    (void)state;
    assert_int_equal(publish(0, 20), FB_OK);
    for (uint32_t k = 1; k < 3; k++) {
        assert_int_equal(test_net_facts(net, k, FB_FACT_DELIVERED), 20);
        assert_int_equal(test_net_facts(net, k, FB_FACT_REFUSED), 0);
    }
    assert_int_equal(test_net_facts(net, 0, FB_FACT_SENT), 40);
    assert_true(test_net_facts(net, 1, FB_FACT_ACKED) > 0);
}

/* MP-5-11, MP-6-6 */
static void nothing_is_acknowledged_before_it_is_durable(void **state)
{
    (void)state;
    test_net_pause_store(net, 1, true);
    assert_int_equal(publish(0, 5), FB_OK);
    assert_int_equal(test_net_facts(net, 1, FB_FACT_DELIVERED), 5);
    assert_int_equal(test_net_facts(net, 1, FB_FACT_ACKED), 0);
    assert_int_equal(test_net_facts(net, 2, FB_FACT_DELIVERED), 5);
    test_net_pause_store(net, 1, false);
    test_net_settle(net);
    assert_true(test_net_facts(net, 1, FB_FACT_ACKED) > 0);
}

/* FM-8.1-1 */
static void what_a_failed_write_set_recorded_comes_again(void **state)
{
    (void)state;
    test_net_pause_store(net, 1, true);
    test_net_fail_write(net, 1);
    assert_int_equal(publish(0, 5), FB_OK);
    test_net_pause_store(net, 1, false);
    test_net_run(net, 40 * SECOND_NS); /* node 1 starts again, links open again */
    assert_int_equal(test_net_last_end(net, 1), FB_ERR_STORE_FAILED);
    assert_int_equal(test_net_facts(net, 1, FB_FACT_DELIVERED), 10);
    assert_int_equal(test_net_facts(net, 0, FB_FACT_RESENT), 5);
}

/* MP-5-13 */
static void a_restart_remembers_what_was_acknowledged(void **state)
{
    (void)state;
    fb_node *node = test_net_node(net, 1);
    assert_int_equal(publish(0, 5), FB_OK);
    uint32_t member =
        fb_member_find(node, fb_space_find(node, space), fb_node_self(test_net_node(net, 0)));
    int64_t floor_ms;
    uint32_t ids, ids_after = 0;
    assert_true(fb_message_record_of(node, member, &floor_ms, &ids));
    assert_true(ids >= 5);
    test_net_restart(net, 1);
    test_net_run(net, 40 * SECOND_NS);
    member = fb_member_find(node, fb_space_find(node, space), fb_node_self(test_net_node(net, 0)));
    assert_true(fb_message_record_of(node, member, &floor_ms, &ids_after));
    assert_int_equal(ids_after, ids);
}

/* FM-8.3-3, FM-8.3-4, MP-6-9 */
static void a_partition_heals(void **state)
{
    (void)state;
    test_net_cut(net, 0, 1, true);
    test_net_cut(net, 0, 2, true);
    assert_int_equal(put(0, "\"alone\""), FB_OK);
    assert_false(holds(1, "\"alone\""));
    test_net_cut(net, 0, 1, false);
    test_net_cut(net, 0, 2, false);
    test_net_run(net, 60 * SECOND_NS);
    assert_true(holds(1, "\"alone\""));
    assert_true(holds(2, "\"alone\""));
}

/* MP-7-27 */
static void an_external_carrier_serves_as_well(void **state)
{
    (void)state;
    test_net_cut(net, 0, 1, true);
    test_net_cut(net, 1, 2, true);
    test_net_carrier(net, 0, 1, space);
    test_net_run(net, 10 * SECOND_NS);
    test_net_clear_facts(net);
    assert_int_equal(put(0, "\"carried\""), FB_OK);
    test_net_run(net, SECOND_NS);
    assert_true(holds(1, "\"carried\""));
    assert_int_equal(publish(1, 20), FB_OK);
    test_net_run(net, SECOND_NS);
    assert_int_equal(test_net_facts(net, 0, FB_FACT_REFUSED), 0);
    assert_true(test_net_facts(net, 0, FB_FACT_DELIVERED) >= 20);
    assert_int_equal(test_net_facts(net, 1, FB_FACT_RESENT), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_write_is_announced_and_fetched),
        TEST(published_ids_reach_every_peer_once),
        TEST(nothing_is_acknowledged_before_it_is_durable),
        TEST(what_a_failed_write_set_recorded_comes_again),
        TEST(a_restart_remembers_what_was_acknowledged),
        TEST(a_partition_heals),
        TEST(an_external_carrier_serves_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
