/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's address book on a whole node: PEER_ADD, PEER_FORGET, PEER_LIST, and restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "tests/unit/net.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

static const test_reply *ask(test_net *net, fb_verb verb, uint64_t principal, fb_span arguments)
{
    const test_reply *reply = test_net_reply(net, test_net_ask(net, 0, verb, principal, arguments));
    assert_true(reply->done);
    return reply;
}

static fb_id create(test_net *net)
{
    uint8_t bytes[16];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&w, fb_span_text("home"));
    const test_reply *reply = ask(net, FB_VERB_SPACE_CREATE, 0, fb_writer_span(&w));
    assert_int_equal(reply->status, FB_OK);
    fb_id id;
    memcpy(id.b, reply->bytes, 16);
    return id;
}

static fb_status change(test_net *net, fb_verb verb, uint64_t principal, fb_id space, fb_span text)
{
    uint8_t bytes[512];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_span16(&w, text);
    assert_false(w.failed);
    return ask(net, verb, principal, fb_writer_span(&w))->status;
}

typedef struct peer {
    fb_id space, node;
    fb_span address;
    uint8_t state;
    uint32_t last;
} peer;

/* Every line of the list has to be read to its end. */
static uint32_t list(test_net *net, peer *out, uint32_t most)
{
    const test_reply *reply = ask(net, FB_VERB_PEER_LIST, 0, (fb_span){NULL, 0});
    assert_int_equal(reply->status, FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    uint32_t count = fb_read_u16(&r);
    assert_true(count <= most);
    for (uint32_t i = 0; i < count; i++) {
        out[i].space = fb_read_id(&r);
        out[i].node = fb_read_id(&r);
        out[i].address = fb_read_span16(&r);
        out[i].state = fb_read_u8(&r);
        out[i].last = fb_read_u32(&r);
        fb_read_u64(&r);
        fb_read_u64(&r);
        fb_read_u64(&r);
    }
    assert_true(fb_reader_done(&r));
    return count;
}

static void addresses_survive_restarts(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net);
    peer p[8];
    assert_int_equal(list(net, p, 8), 0);
    fb_span far = fb_span_text("far.example:4711"), near = fb_span_text(test_net_address(1));
    assert_int_equal(change(net, FB_VERB_PEER_ADD, 0, space, far), FB_OK);
    assert_int_equal(change(net, FB_VERB_PEER_ADD, 0, space, far), FB_OK); /* said twice */
    assert_int_equal(change(net, FB_VERB_PEER_ADD, 0, space, near), FB_OK);
    test_net_run(net, SECOND);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(list(net, p, 8), 2);
        uint32_t n = fb_span_equal(p[0].address, near) ? 0 : 1;
        assert_true(fb_span_equal(p[n].address, near));
        assert_true(fb_span_equal(p[1 - n].address, far));
        assert_true(fb_id_equal(p[0].space, space));
        assert_true(fb_id_is_zero(p[0].node)); /* nobody answered yet */
        assert_int_equal(p[1 - n].last, FB_ERR_UNREACHABLE);
        assert_int_equal(p[n].last, FB_ERR_LINK_TAG); /* node 1 has no such space */
        test_net_restart(net, 0);
        test_net_run(net, SECOND);
    }
    assert_int_equal(change(net, FB_VERB_PEER_FORGET, 0, space, near), FB_OK);
    assert_int_equal(change(net, FB_VERB_PEER_FORGET, 0, space, near), FB_ERR_NOT_FOUND);
    assert_int_equal(list(net, p, 8), 1);
    test_net_restart(net, 0);
    test_net_run(net, SECOND);
    assert_int_equal(list(net, p, 8), 1);
    assert_true(fb_span_equal(p[0].address, far));
    test_net_free(net);
}

/* Node 1 joined through the address of node 0. */
static void a_forgotten_address_takes_its_link_along(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 1);
    test_net_join(net, 0, 1, space, FB_ROLE_WRITER);
    test_net_run(net, 5 * SECOND);
    fb_span inviter = fb_span_text(test_net_address(1));
    peer p[8];
    assert_int_equal(list(net, p, 8), 1);
    assert_int_equal(p[0].state, 4); /* open */
    assert_true(fb_span_equal(p[0].address, inviter));
    test_net_clear_facts(net);
    assert_int_equal(change(net, FB_VERB_PEER_FORGET, 0, space, inviter), FB_OK);
    test_net_run(net, SECOND);
    assert_int_equal(test_net_facts(net, 0, FB_FACT_LINK_ENDED), 1);
    test_net_free(net);
}

static void many_addresses_are_loaded(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = create(net);
    peer p[64];
    fb_status status = FB_OK;
    uint32_t count = 0;
    for (; status == FB_OK; count += status == FB_OK) {
        char text[FB_ADDRESS_BYTES_MAX + 1];
        memset(text, 'a' + (int)(count % 20), sizeof text);
        text[0] = (char)('A' + count % 26);
        text[1] = (char)('A' + count / 26);
        status = change(net, FB_VERB_PEER_ADD, 0, space, fb_span_of(text, FB_ADDRESS_BYTES_MAX));
    }
    assert_int_equal(status, FB_ERR_LIMIT); /* the book is full */
    assert_in_range(count, 8, 64);
    assert_int_equal(list(net, p, 64), count);
    test_net_restart(net, 0);
    test_net_run(net, SECOND);
    assert_int_equal(list(net, p, 64), count);
    test_net_free(net);
}

static void wrong_requests_change_nothing(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = create(net), other = {{1}};
    static const char longest[FB_ADDRESS_BYTES_MAX + 1] = {'x'};
    fb_span one = fb_span_text("a:1");
    assert_int_equal(change(net, FB_VERB_PEER_ADD, 0, other, one), FB_ERR_NOT_FOUND);
    assert_int_equal(change(net, FB_VERB_PEER_ADD, 0, space, fb_span_of(longest, sizeof longest)),
                     FB_ERR_LIMIT);
    assert_int_equal(change(net, FB_VERB_PEER_ADD, 0, space, (fb_span){NULL, 0}),
                     FB_ERR_REQUEST_MALFORMED);
    assert_int_equal(change(net, FB_VERB_PEER_ADD, 7, space, one), FB_ERR_NOT_AUTHORISED);
    assert_int_equal(change(net, FB_VERB_PEER_FORGET, 7, space, one), FB_ERR_NOT_AUTHORISED);
    assert_int_equal(ask(net, FB_VERB_PEER_LIST, 7, (fb_span){NULL, 0})->status,
                     FB_ERR_NOT_AUTHORISED);
    assert_int_equal(ask(net, FB_VERB_PEER_LIST, 0, one)->status, FB_ERR_REQUEST_MALFORMED);
    assert_int_equal(ask(net, FB_VERB_PEER_ADD, 0, one)->status, FB_ERR_REQUEST_MALFORMED);
    peer p[4];
    assert_int_equal(list(net, p, 4), 0);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_survive_restarts),
        cmocka_unit_test(a_forgotten_address_takes_its_link_along),
        cmocka_unit_test(many_addresses_are_loaded),
        cmocka_unit_test(wrong_requests_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
