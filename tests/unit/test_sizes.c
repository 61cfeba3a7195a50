/* SPDX-License-Identifier: Apache-2.0 */
/* Every size at its least: nodes are made and work as far as they can, what has no room is refused
 * with a typed answer, and nothing asserts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/link/record.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)
#define NODES  3u

typedef struct least {
    const char *name;
    size_t at; /* in fb_sizes */
    uint32_t value;
} least;

#define LEAST(size, value)                                                                         \
    {                                                                                              \
#size, offsetof(fb_sizes, size), value                                                     \
    }
static const least sizes[] = {
    LEAST(spaces, 1),
    LEAST(members, 1),
    LEAST(areas, 1),
    LEAST(vector_entries, 1),
    LEAST(links, 1),
    LEAST(addresses, 1),
    LEAST(operations, 4),
    LEAST(operation_bytes, 4096),
    LEAST(write_set_bytes, 8192),
    LEAST(write_set_entries, 64),
    LEAST(requests, 1),
    LEAST(seen_ids, 1),
    LEAST(envelopes, 1),
    LEAST(calls, 2),
    LEAST(call_bytes, 1024),
    LEAST(link_bytes, FB_RECORD_WIRE_MAX),
    LEAST(frames, 1),
    LEAST(applications, 1),
    LEAST(invites, 1),
};
#define SIZES (sizeof sizes / sizeof sizes[0])

/* Index of the size that is at its least; or all of them, or all but those that a few members and
 * records need. */
enum { ALL = SIZES, ALL_BUT_TABLES };
static size_t chosen;
static uint64_t applied;

static void put_least(fb_options *options, size_t i)
{
    memcpy((uint8_t *)&options->sizes + sizes[i].at, &sizes[i].value, sizeof sizes[i].value);
}

static void tweak(fb_options *options)
{
    if (chosen < SIZES) {
        put_least(options, chosen);
        return;
    }
    for (size_t i = 0; i < SIZES; i++) put_least(options, i);
    if (chosen == ALL) return;
    options->sizes.members = 4;
    options->sizes.areas = 4;
    options->sizes.vector_entries = 16;
    options->sizes.links = 4;
}

static fb_status ask(test_net *net, uint32_t i, fb_verb verb, const fb_writer *w)
{
    assert_false(w->failed);
    uint64_t asked = test_net_ask(net, i, verb, 0, fb_writer_span(w));
    const test_reply *reply = test_net_reply(net, asked);
    if (reply->done) return reply->status;
    test_net_cancel(net, i, asked);
    return FB_ERR_CANCELLED;
}

/* As far as it goes. */
static void join(test_net *net, uint32_t i, fb_id space)
{
    uint8_t bytes[1024];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u32(&w, 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text(test_net_address(0)));
    uint64_t invited = test_net_ask(net, 0, FB_VERB_SPACE_INVITE, 0, fb_writer_span(&w));
    const test_reply *invite = test_net_reply(net, invited);
    if (!invite->done || invite->status != FB_OK) return;
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_bytes(&w, invite->bytes, invite->len);
    fb_write_span16(&w, fb_span_text(test_net_address(i)));
    uint64_t asked = test_net_ask(net, i, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w));
    test_net_run(net, 2 * SECOND);
    if (!test_net_reply(net, asked)->done) test_net_cancel(net, i, asked);
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, fb_node_self(test_net_node(net, i)));
    fb_write_u8(&w, FB_ROLE_WRITER);
    (void)ask(net, 0, FB_VERB_SPACE_APPROVE, &w);
    test_net_run(net, 10 * SECOND);
}

static void record_head(fb_writer *w, fb_id space, const char *collection)
{
    fb_write_id(w, space);
    fb_write_u8(w, 1);
    fb_write_span16(w, fb_span_text(collection));
}

/* One field of so many bytes. */
static fb_status put(test_net *net, uint32_t i, fb_id space, const char *collection,
                     uint32_t record, uint32_t len)
{
    static const uint8_t no_etag[16];
    static uint8_t bytes[60000], value[50000];
    memset(value, 'x', len);
    value[0] = value[len - 1] = '"';
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    record_head(&w, space, collection);
    fb_write_id(&w, test_net_record_id(record));
    fb_write_u8(&w, 2);
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, no_etag, 16);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text("t"));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_of(value, len));
    return ask(net, i, FB_VERB_RECORD_PUT, &w);
}

static void read_all(test_net *net, uint32_t i, fb_id space)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    record_head(&w, space, "notes");
    fb_write_id(&w, test_net_record_id(1));
    (void)ask(net, i, FB_VERB_RECORD_GET, &w);
    w = fb_writer_of(bytes, sizeof bytes);
    record_head(&w, space, "notes");
    fb_write_id(&w, (fb_id){{0}});
    fb_write_u32(&w, 100);
    (void)ask(net, i, FB_VERB_RECORD_LIST, &w);
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u64(&w, 0);
    fb_write_u64(&w, 0);
    uint64_t watch = test_net_ask(net, i, FB_VERB_RECORD_WATCH, 0, fb_writer_span(&w));
    if (test_net_reply(net, watch)->done) return;
    test_net_credit(net, i, watch, 20000);
    test_net_cancel(net, i, watch);
}

static void live(void)
{
    test_net *net = test_net_new(NODES, tweak);
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&w, fb_span_text("home"));
    uint64_t created = test_net_ask(net, 0, FB_VERB_SPACE_CREATE, 0, fb_writer_span(&w));
    const test_reply *reply = test_net_reply(net, created);
    assert_true(reply->done);
    if (reply->status == FB_OK) {
        fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
        fb_id space = fb_read_id(&r);
        for (uint32_t i = 1; i < NODES; i++) join(net, i, space);
        test_net_carrier(net, 1, 2, space);
        test_net_run(net, 10 * SECOND);
        static const uint32_t lengths[] = {3, 40, 400, 900, 2000, 4000, 9000, 20000, 49000};
        static const char *const collections[] = {"notes", "tasks", "more", "still more"};
        for (uint32_t k = 0; k < 36; k++) {
            (void)put(net, k % NODES, space, collections[k % 4], 1 + k % 5, lengths[k % 9]);
            if (k % 9 == 8) test_net_run(net, 5 * SECOND);
            if (k == 20) test_net_restart(net, 0);
            if (k == 24) test_net_fail_write(net, 1);
        }
        test_net_cut(net, 0, 1, true);
        for (uint32_t k = 0; k < 80; k++) (void)put(net, k % 2, space, "notes", 1 + k, 3);
        test_net_cut(net, 0, 1, false);
        test_net_run(net, 60 * SECOND);
        for (uint32_t i = 0; i < NODES; i++) read_all(net, i, space);
    }
    applied = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        applied += fb_node_counter(test_net_node(net, i), FB_COUNTER_CHANGES_APPLIED);
    }
    test_net_free(net);
}

static void each_size_at_its_least(void **state)
{
    (void)state;
    for (chosen = 0; chosen < SIZES; chosen++) {
        print_message("%s\n", sizes[chosen].name);
        live();
    }
}

static void all_sizes_at_their_least(void **state)
{
    (void)state;
    chosen = ALL;
    live();
}

static void small_tables_replicate_with_everything_else_at_its_least(void **state)
{
    (void)state;
    chosen = ALL_BUT_TABLES;
    live();
    assert_true(applied > 100);
}

static void *take(void *user, size_t bytes)
{
    *(size_t *)user = bytes;
    return NULL;
}

static void give(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)memory;
    (void)bytes;
}

/* Below the least: refused before memory is asked for. */
static void less_is_refused(void **state)
{
    (void)state;
    static const fb_provider provider;
    for (size_t i = 0; i < SIZES; i++) {
        size_t asked = 0;
        fb_options options = fb_options_small();
        options.provider = &provider;
        options.allocator = (fb_allocator){&asked, take, give};
        fb_node *node;
        put_least(&options, i);
        assert_int_equal(fb_node_create(&options, &node), FB_ERR_NO_MEMORY);
        assert_true(asked > 0);
        uint32_t less = sizes[i].value - 1;
        memcpy((uint8_t *)&options.sizes + sizes[i].at, &less, sizeof less);
        asked = 0;
        fb_status status = fb_node_create(&options, &node);
        /* Without addresses, frames, applications or invites, or a link's buffer, a node works. */
        bool may = status == FB_ERR_NO_MEMORY;
        assert_true(status == FB_ERR_ARGUMENT || may);
        assert_true(may == (asked > 0));
    }
}

static void *no_memory(void *user, size_t bytes)
{
    assert_true(bytes > 0);
    *(bool *)user = true;
    return NULL;
}

/* Whatever the sizes are, a node is measured or refused. */
static void no_size_is_without_a_bound(void **state)
{
    (void)state;
    bool asked = false;
    fb_options options = fb_options_small();
    fb_provider provider = {0};
    fb_node *node;
    options.provider = &provider;
    options.allocator = (fb_allocator){&asked, no_memory, NULL};
    options.sizes = fb_sizes_most;
    assert_int_equal(fb_node_create(&options, &node), FB_ERR_NO_MEMORY);
    for (size_t at = 0; at < sizeof options.sizes; at += sizeof(uint32_t)) {
        uint32_t most;
        options.sizes = fb_options_small().sizes;
        memcpy(&most, (const uint8_t *)&fb_sizes_most + at, sizeof most);
        assert_true(most > 0 && most < UINT32_MAX);
        memcpy((uint8_t *)&options.sizes + at, &most, sizeof most);
        asked = false;
        assert_int_equal(fb_node_create(&options, &node), FB_ERR_NO_MEMORY);
        assert_true(asked);
        const uint32_t beyond[] = {most + 1, UINT32_MAX};
        for (size_t i = 0; i < 2; i++) {
            memcpy((uint8_t *)&options.sizes + at, &beyond[i], sizeof most);
            assert_int_equal(fb_node_create(&options, &node), FB_ERR_ARGUMENT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_size_at_its_least),
        cmocka_unit_test(no_size_is_without_a_bound),
        cmocka_unit_test(all_sizes_at_their_least),
        cmocka_unit_test(small_tables_replicate_with_everything_else_at_its_least),
        cmocka_unit_test(less_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
