/* SPDX-License-Identifier: Apache-2.0 */
/* Whole nodes: five join one space, meet each other, and hold the same members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/link/link.h"
#include "protocol/space/invite.h"
#include "protocol/space/table.h"
#include "protocol/store/ops.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

static uint8_t argument_bytes[4096];

static fb_writer arguments(void)
{
    return fb_writer_of(argument_bytes, sizeof argument_bytes);
}

static const test_reply *ask(test_net *net, uint32_t i, fb_verb verb, const fb_writer *w)
{
    return test_net_reply(net, test_net_ask(net, i, verb, 0, fb_writer_span(w)));
}

static fb_id id_at(test_net *net, uint32_t i)
{
    return test_net_node(net, i)->self;
}

static fb_id create(test_net *net, uint32_t i)
{
    fb_writer w = arguments();
    fb_write_span16(&w, fb_span_text("home"));
    const test_reply *reply = ask(net, i, FB_VERB_SPACE_CREATE, &w);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    fb_id id;
    memcpy(id.b, reply->bytes, 16);
    return id;
}

/* `via` invites, `i` joins and is approved by `via`. */
static void join(test_net *net, fb_id space, uint32_t via, uint32_t i, fb_role role)
{
    fb_writer w = arguments();
    fb_write_id(&w, space);
    fb_write_u32(&w, 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text(test_net_address(via)));
    const test_reply *reply = ask(net, via, FB_VERB_SPACE_INVITE, &w);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    uint8_t asked[1024];
    size_t asked_len = reply->len;
    memcpy(asked, reply->bytes, asked_len);

    w = arguments();
    fb_write_bytes(&w, asked, asked_len);
    fb_write_span16(&w, fb_span_text(test_net_address(i)));
    uint64_t request = test_net_ask(net, i, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w));
    test_net_run(net, SECOND);
    reply = test_net_reply(net, request);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(reply->bytes[16], FB_MEMBER_PENDING);

    w = arguments();
    fb_write_id(&w, space);
    fb_write_id(&w, id_at(net, i));
    fb_write_u8(&w, (uint8_t)role);
    reply = ask(net, via, FB_VERB_SPACE_APPROVE, &w);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
}

static bool linked(test_net *net, uint32_t i, uint32_t j)
{
    const fb_node *node = test_net_node(net, i);
    uint32_t member = fb_member_find(node, 0, id_at(net, j));
    return member != FB_NONE && fb_link_to(node, 0, member) != FB_NONE;
}

static void check_members(test_net *net, uint32_t count, const fb_role *roles)
{
    for (uint32_t i = 0; i < count; i++) {
        const fb_node *node = test_net_node(net, i);
        assert_int_equal(fb_space_own_status(node, 0), FB_MEMBER_APPROVED);
        uint32_t seen = 0;
        for (uint32_t m = fb_member_first(node, 0); m != FB_NONE; m = fb_member_next(node, m)) {
            seen++;
        }
        assert_int_equal(seen, count);
        for (uint32_t j = 0; j < count; j++) {
            uint32_t member = fb_member_find(node, 0, id_at(net, j));
            assert_true(member != FB_NONE);
            assert_int_equal(fb_member_status_of(node, member), FB_MEMBER_APPROVED);
            assert_int_equal(fb_member_role(node, member), roles[j]);
        }
    }
}

/* Every node's own area has the same fingerprint. */
static void check_roots(test_net *net, uint32_t count)
{
    fb_area_info first;
    for (uint32_t i = 0; i < count; i++) {
        fb_area_info info;
        bool found = false;
        for (uint32_t a = 0; a < fb_area_capacity(test_net_node(net, i)) && !found; a++) {
            found = fb_area_at(test_net_node(net, i), a, &info) && info.kind == FB_AREA_SPACE;
        }
        assert_true(found);
        if (i == 0) first = info;
        assert_memory_equal(info.root, first.root, sizeof first.root);
        assert_int_equal(info.records, first.records);
    }
}

static void five_join_and_meet_each_other(void **state)
{
    (void)state;
    test_net *net = test_net_new(5, NULL);
    fb_id space = create(net, 0);
    static const fb_role roles[5] = {FB_ROLE_ADMIN, FB_ROLE_WRITER, FB_ROLE_ADMIN, FB_ROLE_READER,
                                     FB_ROLE_WRITER};
    for (uint32_t i = 1; i < 5; i++) join(net, space, 0, i, roles[i]);
    test_net_run(net, 40 * SECOND);
    check_members(net, 5, roles);
    check_roots(net, 5);
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t j = 0; j < 5; j++) {
            if (i != j) assert_true(linked(net, i, j));
        }
    }
    for (uint32_t i = 0; i < 5; i++) test_net_restart(net, i);
    test_net_run(net, 60 * SECOND);
    check_members(net, 5, roles);
    check_roots(net, 5);
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t j = 0; j < 5; j++) {
            if (i != j) assert_true(linked(net, i, j));
        }
    }
    test_net_free(net);
}

/* 0 makes 1 an admin, who lets 2 in, who lets 3 in: each right rests on the one before. */
static void admins_let_others_in(void **state)
{
    (void)state;
    test_net *net = test_net_new(4, NULL);
    fb_id space = create(net, 0);
    static const fb_role roles[4] = {FB_ROLE_ADMIN, FB_ROLE_ADMIN, FB_ROLE_ADMIN, FB_ROLE_READER};
    for (uint32_t i = 1; i < 4; i++) {
        join(net, space, i - 1, i, roles[i]);
        test_net_run(net, 10 * SECOND);
        assert_int_equal(fb_space_own_status(test_net_node(net, i), 0), FB_MEMBER_APPROVED);
    }
    test_net_run(net, 40 * SECOND);
    check_members(net, 4, roles);
    check_roots(net, 4);
    test_net_free(net);
}

static void cut(test_net *net, uint32_t i, uint32_t j, bool off)
{
    test_net_cut(net, i, j, off);
    test_net_cut(net, j, i, off);
}

/* 1 is let in while 2 is away, and 0 is gone when the two meet: 2 believes the signed statement
 * that 1 shows on its pending link, then fetches the rest from it. */
static void a_signed_statement_lets_a_member_in(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = create(net, 0);
    static const fb_role roles[3] = {FB_ROLE_ADMIN, FB_ROLE_WRITER, FB_ROLE_WRITER};
    join(net, space, 0, 2, roles[2]);
    test_net_run(net, 10 * SECOND);
    cut(net, 0, 2, true);
    cut(net, 1, 2, true);
    join(net, space, 0, 1, roles[1]);
    test_net_run(net, 10 * SECOND);
    assert_int_equal(fb_space_own_status(test_net_node(net, 1), 0), FB_MEMBER_APPROVED);
    assert_int_equal(fb_member_find(test_net_node(net, 2), 0, id_at(net, 1)), FB_NONE);
    cut(net, 0, 1, true);
    cut(net, 1, 2, false);
    test_net_run(net, 60 * SECOND);
    assert_true(linked(net, 1, 2));
    assert_true(linked(net, 2, 1));
    check_members(net, 3, roles);
    check_roots(net, 3);
    test_net_restart(net, 2);
    test_net_settle(net);
    check_members(net, 3, roles);
    test_net_free(net);
}

/* Something is stated all the time, so that what was stated last is never durable. A list is told
 * all the same: as it was while it waited, once that is. */
static void a_list_does_not_wait_for_what_comes_after_it(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = create(net, 0);
    fb_node *node = test_net_node(net, 0);
    uint64_t w = fb_w_durable(node);
    node->spaces->told_w = w + 2;
    uint64_t asked = test_net_ask(net, 0, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0});
    while (fb_w_durable(node) < w + 2) {
        assert_false(test_net_reply(net, asked)->done);
        node->spaces->told_w = fb_w_durable(node) + 10;
        assert_int_equal(test_net_put(net, 0, space, "notes", 1, "1"), FB_OK);
    }
    assert_true(test_net_reply(net, asked)->done);
    assert_int_equal(test_net_reply(net, asked)->status, FB_OK);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_does_not_wait_for_what_comes_after_it),
        cmocka_unit_test(five_join_and_meet_each_other),
        cmocka_unit_test(admins_let_others_in),
        cmocka_unit_test(a_signed_statement_lets_a_member_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
