/* SPDX-License-Identifier: Apache-2.0 */
/* Joining over real links: what an invite, an approval and a shown statement do to them. */
#define FB_TEST_REAL_LINKS
#include "tests/unit/space_stand_in.h"

#define SECOND UINT64_C(1000000000)

/* The state of a node's link to another, or FB_LINK_FREE. */
static fb_link_state link_between(test_net *net, uint32_t i, uint32_t j)
{
    const fb_node *node = test_net_node(net, i);
    fb_link_state state = FB_LINK_FREE;
    for (uint32_t l = 0; l < fb_link_capacity(node); l++) {
        const fb_link_info *info = fb_link_at(node, l);
        if (info->state == FB_LINK_FREE || !fb_id_equal(info->peer, id_at(net, j))) continue;
        if (state != FB_LINK_OPEN) state = info->state;
    }
    return state;
}

static void check_open(test_net *net, uint32_t i, uint32_t j, bool open)
{
    assert_int_equal(link_between(net, i, j) == FB_LINK_OPEN, open);
    assert_int_equal(link_between(net, j, i) == FB_LINK_OPEN, open);
}

static uint64_t join_with(test_net *net, uint32_t i, const uint8_t *bytes, size_t len)
{
    return join(net, i, fb_span_of(bytes, len), test_net_address(i));
}

/* MP-7-16, FI-2-4 */
static void approval_opens_the_waiting_link(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    uint64_t asked = join_with(net, 1, bytes, len);
    test_net_run(net, SECOND);
    const test_reply *reply = test_net_reply(net, asked);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(reply->bytes[16], FB_MEMBER_PENDING);
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_PENDING);

    /* It stays as it is, far beyond the 30 s of a stranger. */
    test_net_run(net, 100 * SECOND);
    assert_int_equal(link_between(net, 0, 1), FB_LINK_PENDING);
    check_open(net, 0, 1, false);
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_WRITER), FB_OK);
    test_net_settle(net);
    check_open(net, 0, 1, true);
    apply_all(net, 1);
    assert_int_equal(fb_space_own_status(test_net_node(net, 1), 0), FB_MEMBER_APPROVED);

    for (uint32_t i = 0; i < 2; i++) {
        test_net_restart(net, i);
        test_net_run(net, 40 * SECOND);
        check_open(net, 0, 1, true);
    }
    test_net_free(net);
}

static void a_join_goes_on_after_restarts(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    /* The inviter cannot be reached at first, and the joiner stops meanwhile. */
    test_net_cut(net, 1, 0, true);
    uint64_t asked = join_with(net, 1, bytes, len);
    test_net_run(net, 5 * SECOND);
    assert_false(test_net_reply(net, asked)->done);
    test_net_restart(net, 1);
    test_net_run(net, SECOND);
    test_net_cut(net, 1, 0, false);
    test_net_run(net, 40 * SECOND);
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_PENDING);
    /* Asked again, it is answered with what there is. */
    asked = join_with(net, 1, bytes, len);
    assert_true(test_net_reply(net, asked)->done);
    assert_int_equal(test_net_reply(net, asked)->bytes[16], FB_MEMBER_PENDING);
    for (uint32_t i = 0; i < 2; i++) {
        test_net_restart(net, i);
        test_net_run(net, 40 * SECOND);
        assert_int_equal(status_of(net, 0, 1), FB_MEMBER_PENDING);
        assert_int_equal(link_between(net, 0, 1), FB_LINK_PENDING);
    }
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_READER), FB_OK);
    test_net_settle(net);
    check_open(net, 0, 1, true);
    test_net_free(net);
}

/* Approved while it is away: the next link is full from its binding on. */
static void approval_waits_for_who_is_away(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    join_with(net, 1, bytes, len);
    test_net_run(net, SECOND);
    test_net_cut(net, 0, 1, true);
    test_net_cut(net, 1, 0, true);
    test_net_run(net, SECOND);
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_WRITER), FB_OK);
    test_net_run(net, SECOND);
    check_open(net, 0, 1, false);
    test_net_cut(net, 0, 1, false);
    test_net_cut(net, 1, 0, false);
    test_net_run(net, 40 * SECOND);
    check_open(net, 0, 1, true);
    test_net_free(net);
}

/* 1 and 2 join through 0, which is gone when 1 first meets 2: 2 has not heard of 1. */
/* MP-7-17 */
static void members_meet_without_who_let_them_in(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(3, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 2, 0, bytes);
    for (uint32_t i = 2; i >= 1; i--) {
        join_with(net, i, bytes, len);
        test_net_run(net, SECOND);
        if (i == 1) {
            test_net_cut(net, 1, 2, true);
            test_net_cut(net, 2, 1, true);
        }
        assert_int_equal(approve(net, 0, space, id_at(net, i), FB_ROLE_WRITER), FB_OK);
        test_net_settle(net);
        apply_all(net, i);
        test_net_settle(net);
    }
    /* 1 knows where 2 is; 2 knows nothing of 1. */
    apply_all(net, 1);
    test_net_run(net, SECOND);
    assert_int_equal(status_of(net, 2, 1), FB_MEMBER_NONE);
    assert_int_equal(status_of(net, 1, 2), FB_MEMBER_APPROVED);
    for (uint32_t i = 1; i <= 2; i++) {
        test_net_cut(net, 0, i, true);
        test_net_cut(net, i, 0, true);
    }
    test_net_cut(net, 1, 2, false);
    test_net_cut(net, 2, 1, false);
    test_net_run(net, 60 * SECOND);
    assert_int_equal(status_of(net, 2, 1), FB_MEMBER_APPROVED);
    check_open(net, 1, 2, true);
    test_net_free(net);
}

static void a_stranger_stays_one(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    /* Right but for one bit of the secret. */
    fb_invite forged;
    assert_int_equal(fb_invite_read(fb_span_of(bytes, len), &forged), FB_OK);
    forged.secret.b[5] ^= 1;
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_invite_write(&forged, &w);
    uint64_t asked = join_with(net, 1, bytes, len);
    test_net_run(net, 100 * SECOND);
    assert_false(test_net_reply(net, asked)->done);
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_NONE);
    check_open(net, 0, 1, false);
    /* It was never told who is there. */
    const fb_node *node = test_net_node(net, 1);
    for (uint32_t l = 0; l < fb_link_capacity(node); l++) {
        assert_true(fb_id_is_zero(fb_link_at(node, l)->peer));
    }
    test_net_free(net);
}

static fb_status leave(test_net *net, uint32_t i, fb_id space)
{
    uint64_t asked = test_net_ask(net, i, FB_VERB_SPACE_LEAVE, 0, fb_span_of(space.b, 16));
    test_net_settle(net);
    const test_reply *reply = test_net_reply(net, asked);
    assert_true(reply->done);
    return reply->status;
}

static uint32_t spaces_at(test_net *net, uint32_t i)
{
    const fb_node *node = test_net_node(net, i);
    uint32_t count = 0;
    for (uint32_t s = 0; s < fb_space_capacity(node); s++) count += fb_space_exists(node, s);
    return count;
}

/* A request that nobody has taken is given up as if it had never been, and can be made again: at
 * once, and after a restart. */
static void a_join_that_nobody_took_is_given_up(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    for (uint32_t round = 0; round < 2; round++) {
        test_net_cut(net, 1, 0, true);
        uint64_t asked = join_with(net, 1, bytes, len);
        test_net_run(net, 5 * SECOND);
        assert_false(test_net_reply(net, asked)->done);
        assert_int_equal(spaces_at(net, 1), 1);
        assert_int_equal(leave(net, 1, space), FB_OK);
        assert_int_equal(test_net_reply(net, asked)->status, FB_ERR_CANCELLED);
        assert_int_equal(spaces_at(net, 1), 0);
        assert_int_equal(leave(net, 1, space), FB_ERR_NOT_FOUND);
        test_net_cut(net, 1, 0, false);
        test_net_run(net, 100 * SECOND);
        assert_int_equal(status_of(net, 0, 1), FB_MEMBER_NONE);
        if (round == 0) test_net_restart(net, 1);
        test_net_run(net, SECOND);
        assert_int_equal(spaces_at(net, 1), 0);
    }
    uint64_t asked = join_with(net, 1, bytes, len);
    test_net_run(net, SECOND);
    assert_true(test_net_reply(net, asked)->done);
    assert_int_equal(test_net_reply(net, asked)->bytes[16], FB_MEMBER_PENDING);
    assert_int_equal(leave(net, 1, space), FB_ERR_CONFLICT);
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_WRITER), FB_OK);
    test_net_settle(net);
    apply_all(net, 1);
    check_open(net, 0, 1, true);
    for (uint32_t i = 0; i < 2; i++) {
        if (i == 0) assert_int_equal(leave(net, i, space), FB_ERR_CONFLICT);
        test_net_restart(net, i);
        test_net_run(net, 40 * SECOND);
        assert_int_equal(spaces_at(net, i), 1);
        check_open(net, 0, 1, true);
    }
    test_net_free(net);
}

/* The number that a space had in store keys is not another's later. */
static void a_space_that_was_given_up_keeps_its_number(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    fb_id space = create(net, 0, "home");
    size_t len = invite(net, 0, space, 1, 0, bytes);
    test_net_cut(net, 1, 0, true);
    join_with(net, 1, bytes, len);
    test_net_settle(net);
    uint32_t local = fb_space_local(test_net_node(net, 1), 0);
    assert_int_equal(leave(net, 1, space), FB_OK);
    test_net_restart(net, 1);
    test_net_run(net, SECOND);
    create(net, 1, "other");
    assert_true(fb_space_local(test_net_node(net, 1), 0) > local);
    test_net_restart(net, 1);
    test_net_run(net, SECOND);
    assert_int_equal(spaces_at(net, 1), 1);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(approval_opens_the_waiting_link),
        cmocka_unit_test(a_join_goes_on_after_restarts),
        cmocka_unit_test(approval_waits_for_who_is_away),
        cmocka_unit_test(members_meet_without_who_let_them_in),
        cmocka_unit_test(a_stranger_stays_one),
        cmocka_unit_test(a_join_that_nobody_took_is_given_up),
        cmocka_unit_test(a_space_that_was_given_up_keeps_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
