/* SPDX-License-Identifier: Apache-2.0 */
/* What is folded from statements, in any order, and who may sign them. */
#include "tests/unit/space_stand_in.h"

/* Delivers changes in the given order, again and again until all are taken (as fetch does), and
 * tells what came out. False when the rest is refused for good. */
static bool deliver(test_net *net, uint32_t i, const fb_span *changes, const uint32_t *order,
                    uint32_t count)
{
    uint32_t left = count;
    bool taken[4] = {false};
    for (uint32_t round = 0; round < count && left > 0; round++) {
        for (uint32_t n = 0; n < count; n++) {
            if (taken[order[n]]) continue;
            fb_status status = apply(net, i, changes[order[n]]);
            if (status == FB_OK) {
                taken[order[n]] = true;
                left--;
            } else {
                assert_int_equal(status, FB_ERR_BATCH_POLICY);
            }
        }
    }
    return left == 0;
}

/* The next permutation in lexicographic order. */
static bool permute(uint32_t *order, uint32_t count)
{
    uint32_t i = count - 1;
    while (i > 0 && order[i - 1] >= order[i]) i--;
    if (i == 0) return false;
    uint32_t j = count - 1;
    while (order[j] <= order[i - 1]) j--;
    uint32_t t = order[i - 1];
    order[i - 1] = order[j];
    order[j] = t;
    for (uint32_t a = i, b = count - 1; a < b; a++, b--) {
        t = order[a];
        order[a] = order[b];
        order[b] = t;
    }
    return true;
}

static fb_status right_of(const fb_node *node, fb_b32 author)
{
    const fb_signed batch = {.author = author,
                             .signer = fb_node_id_of(node->options.provider, &author),
                             .claim = FB_CLAIM_FIRST,
                             .incarnation = 1,
                             .number = 1};
    return fb_space_check_author(node, 0, &batch);
}

static void statements_fold_to_one_result_in_any_order(void **state)
{
    (void)state;
    uint32_t orders = 0;
    for (uint32_t order[4] = {0, 1, 2, 3}, more = 1; more != 0; orders++) {
        forget_all();
        test_net *net = test_net_new(4, NULL);
        fb_id space = create(net, 0, "home");
        uint8_t b[4][2048];
        /* 0 makes 1 an admin, 1 makes 2 a reader, 0 makes 2 a writer, 2 says where it is twice
         * (the later one by stamp is the lesser in delivery half of the time). */
        const fb_span changes[4] = {
            statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 1), FB_ROLE_ADMIN, "", 10,
                      b[0]),
            statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 2), FB_ROLE_READER, "", 30,
                      b[1]),
            statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 2), FB_ROLE_WRITER, "", 20,
                      b[2]),
            statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 1), FB_ROLE_NONE, "one:1",
                      40, b[3]),
        };
        assert_true(deliver(net, 0, changes, order, 4));
        assert_int_equal(status_of(net, 0, 1), FB_MEMBER_APPROVED);
        assert_int_equal(role_of(net, 0, 1), FB_ROLE_ADMIN);
        assert_int_equal(status_of(net, 0, 2), FB_MEMBER_APPROVED);
        assert_int_equal(role_of(net, 0, 2), FB_ROLE_WRITER);
        assert_int_equal(status_of(net, 0, 3), FB_MEMBER_NONE);
        assert_true(dials(test_net_node(net, 0), "one:1"));

        /* Once more, repeated: nothing changes. And after a restart. */
        assert_true(deliver(net, 0, changes, order, 4));
        test_net_restart(net, 0);
        test_net_settle(net);
        assert_int_equal(role_of(net, 0, 1), FB_ROLE_ADMIN);
        assert_int_equal(role_of(net, 0, 2), FB_ROLE_WRITER);
        test_net_free(net);
        more = permute(order, 4);
    }
    assert_int_equal(orders, 24);
}

/* The creator (0) admits 1 and 2 as admins, 2 after 1. What is then stated about 3 at once by both:
 * the senior's removal counts; a grant with the next number outranks it; a grant that had not seen
 * it does not. */
static void what_counts_of_a_member_is_the_same_in_any_order(void **state)
{
    (void)state;
    static const struct {
        bool again;
        fb_role role;
        fb_member_status status;
    } cases[] = {{false, FB_ROLE_READER, FB_MEMBER_APPROVED},
                 {true, FB_ROLE_WRITER, FB_MEMBER_APPROVED}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        for (uint32_t order[4] = {0, 1, 2, 3}, more = 1; more != 0; more = permute(order, 4)) {
            forget_all();
            test_net *net = test_net_new(4, NULL);
            fb_id space = create(net, 0, "home");
            uint8_t first[3][2048], b[4][2048];
            for (uint32_t i = 1; i < 4; i++) {
                fb_role role = i == 3 ? FB_ROLE_WRITER : FB_ROLE_ADMIN;
                assert_int_equal(apply(net, 0,
                                       statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, i),
                                                 role, "", i, first[i - 1])),
                                 FB_OK);
            }
            const fb_b32 of = key_at(net, 3);
            const fb_span changes[4] = {
                statement(net, space, 2, FB_STATEMENT_STANDING, of, FB_ROLE_NONE, "2", 20, b[0]),
                statement(net, space, 1, FB_STATEMENT_STANDING, of, FB_ROLE_READER, "2", 10, b[1]),
                statement(net, space, 1, FB_STATEMENT_MEMBER, of, FB_ROLE_ADMIN, "", 11, b[2]),
                cases[k].again ? statement(net, space, 0, FB_STATEMENT_STANDING, of, FB_ROLE_WRITER,
                                           "3", 30, b[3])
                               : statement(net, space, 0, FB_STATEMENT_MEMBER, of, FB_ROLE_READER,
                                           "", 30, b[3]),
            };
            assert_true(deliver(net, 0, changes, order, 4));
            assert_int_equal(status_of(net, 0, 3), cases[k].status);
            assert_int_equal(role_of(net, 0, 3), cases[k].role);
            test_net_restart(net, 0);
            test_net_settle(net);
            assert_int_equal(status_of(net, 0, 3), cases[k].status);
            assert_int_equal(role_of(net, 0, 3), cases[k].role);
            test_net_free(net);
        }
    }
}

/* A cut names what stays of each life; what it does not name, and what goes on, is above it. */
static void a_batch_is_judged_by_the_cut(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t b[3][2048];
    const fb_b32 of = key_at(net, 1);
    assert_int_equal(
        apply(net, 0,
              statement(net, space, 0, FB_STATEMENT_MEMBER, of, FB_ROLE_WRITER, "", 1, b[0])),
        FB_OK);
    /* Area 11..., one life: incarnation 7 up to batch 5. */
    static const char text[] = "211111111111171118111111111111111"
                               "0001"
                               "0000000000000007"
                               "0000000000000005"
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    assert_int_equal(
        apply(net, 0,
              statement(net, space, 0, FB_STATEMENT_STANDING, of, FB_ROLE_READER, text, 2, b[1])),
        FB_OK);
    test_net_restart(net, 0);
    test_net_settle(net);
    const fb_node *node = test_net_node(net, 0);
    fb_signed batch = {.author = of,
                       .signer = fb_node_id_of(node->options.provider, &of),
                       .claim = FB_CLAIM_FIRST,
                       .incarnation = 7,
                       .number = 5};
    memset(batch.area.b, 0x11, 16);
    batch.area.b[6] = 0x71;
    batch.area.b[8] = 0x81;
    uint8_t hash[32];
    memset(hash, 0xaa, sizeof hash);
    batch.hash = hash;
    assert_int_equal(fb_space_check_author(node, 0, &batch), FB_OK);
    batch.number = 6;
    assert_int_equal(fb_space_check_author(node, 0, &batch), FB_ERR_BATCH_CUT);
    batch.number = 5;
    hash[0] = 0; /* another batch with the number of the last one */
    assert_int_equal(fb_space_check_author(node, 0, &batch), FB_ERR_BATCH_CUT);
    hash[0] = 0xaa;
    batch.incarnation = 8;
    batch.number = 1;
    assert_int_equal(fb_space_check_author(node, 0, &batch), FB_ERR_BATCH_CUT);
    batch.incarnation = 7;
    batch.area.b[0] = 0x12;
    assert_int_equal(fb_space_check_author(node, 0, &batch), FB_ERR_BATCH_CUT);
    /* A statement that nobody made: it may come. */
    batch.claim = FB_CLAIM(3, 0);
    assert_int_equal(fb_space_check_author(node, 0, &batch), FB_ERR_BATCH_EPOCH);
    assert_int_equal(fb_space_limit(node, 0, id_at(net, 1), batch.area, false, 7), 0);
    test_net_free(net);
}

static void the_latest_address_counts_in_any_order(void **state)
{
    (void)state;
    for (uint32_t order[3] = {0, 1, 2}, more = 1; more != 0;) {
        forget_all();
        test_net *net = test_net_new(2, NULL);
        fb_id space = create(net, 0, "home");
        uint8_t b[4][2048];
        assert_int_equal(apply(net, 0,
                               statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 1),
                                         FB_ROLE_READER, "", 1, b[3])),
                         FB_OK);
        static const char *const places[3] = {"a:1", "b:2", "c:3"};
        fb_span changes[3];
        for (int i = 0; i < 3; i++) {
            changes[i] = statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 1),
                                   FB_ROLE_NONE, places[i], 10 + i, b[i]);
        }
        assert_true(deliver(net, 0, changes, order, 3));
        assert_true(dials(test_net_node(net, 0), "c:3"));
        assert_false(dials(test_net_node(net, 0), "a:1"));
        assert_false(dials(test_net_node(net, 0), "b:2"));
        test_net_free(net);
        more = permute(order, 3);
    }
}

static void few_links(fb_options *options)
{
    options->sizes.links = 8; /* a quarter of them is for dialling members */
}

/* All nodes in the order of their ids; where node 0 stands among them. */
static uint32_t nodes_by_id(test_net *net, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        while (at > 0 && fb_id_compare(id_at(net, order[at - 1]), id_at(net, i)) > 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    uint32_t own = 0;
    while (order[own] != 0) own++;
    return own;
}

static void a_node_dials_the_next_ones_in_the_ring(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(6, few_links);
    fb_id space = create(net, 0, "home");
    uint32_t order[6];
    uint32_t own = nodes_by_id(net, order, 6);
    uint8_t b[2048];
    /* From the farthest to the nearest: each new one takes the place of the farthest dialled. */
    for (uint32_t step = 5; step >= 1; step--) {
        uint32_t i = order[(own + step) % 6];
        assert_int_equal(apply(net, 0,
                               statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, i),
                                         FB_ROLE_WRITER, "", step, b)),
                         FB_OK);
        assert_int_equal(apply(net, 0,
                               statement(net, space, i, FB_STATEMENT_ADDRESS, key_at(net, i),
                                         FB_ROLE_NONE, test_net_address(i), step, b)),
                         FB_OK);
        for (uint32_t other = step; other <= 5; other++) {
            uint32_t j = order[(own + other) % 6];
            assert_int_equal(dials(test_net_node(net, 0), test_net_address(j)), other < step + 2);
        }
    }
    test_net_free(net);
}

static void few_members(fb_options *options)
{
    options->sizes.members = 3;
}

static void members_have_their_places_before_who_asks(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(5, few_members);
    fb_id space = create(net, 0, "home");
    uint8_t b[2048];
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 1),
                                     FB_ROLE_WRITER, "", 1, b)),
                     FB_OK);
    /* The last place is for one who asks, until a member needs it. */
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 2, 0, bytes);
    for (uint8_t i = 2; i <= 3; i++) {
        join(net, i, fb_span_of(bytes, len), NULL);
        connect(net, i, 0, 0, i, i);
        carry_all(net, i, 0, 0, i);
    }
    assert_int_equal(status_of(net, 0, 2), FB_MEMBER_PENDING);
    assert_int_equal(status_of(net, 0, 3), FB_MEMBER_NONE);
    assert_int_equal(of(test_net_node(net, 0))->closed[3], FB_ERR_LINK_TOO_MANY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 4),
                                     FB_ROLE_READER, "", 2, b)),
                     FB_OK);
    assert_int_equal(status_of(net, 0, 2), FB_MEMBER_NONE);
    assert_int_equal(status_of(net, 0, 4), FB_MEMBER_APPROVED);
    /* Now it is full: nothing is stored of one more, and what is known may still change. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 2),
                                     FB_ROLE_READER, "", 3, b)),
                     FB_ERR_LIMIT);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 4),
                                     FB_ROLE_WRITER, "", 4, b)),
                     FB_OK);
    test_net_restart(net, 0);
    test_net_settle(net);
    assert_int_equal(role_of(net, 0, 4), FB_ROLE_WRITER);
    assert_int_equal(status_of(net, 0, 2), FB_MEMBER_NONE);
    test_net_free(net);
}

/* Anybody may state again what the recovery key signed: were each of these kept, one reader would
 * fill the table of statements, and nobody could be put out any more. */
static void what_the_recovery_key_signed_is_kept_once(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(3, few_members);
    fb_id space = create(net, 0, "home");
    uint8_t secret[64], b[2048];
    fb_space_at(test_net_node(net, 0), 0)->recovery = recovery_key(secret);
    for (uint32_t i = 1; i <= 2; i++) {
        assert_int_equal(apply(net, 0,
                               statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, i),
                                         FB_ROLE_READER, "", i, b)),
                         FB_OK);
    }
    for (int64_t stamp = 10; stamp < 30; stamp++) {
        assert_int_equal(apply(net, 0,
                               statement(net, space, 2, FB_STATEMENT_RECOVERY, key_at(net, 1),
                                         FB_ROLE_NONE, "31", stamp, b)),
                         FB_OK);
    }
    assert_int_equal(role_of(net, 0, 1), FB_ROLE_ADMIN);
    /* Another turn is another statement. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 2, FB_STATEMENT_RECOVERY, key_at(net, 1),
                                     FB_ROLE_NONE, "32", 30, b)),
                     FB_OK);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_STANDING, key_at(net, 2),
                                     FB_ROLE_NONE, "2", 40, b)),
                     FB_OK);
    assert_int_equal(status_of(net, 0, 2), FB_MEMBER_REVOKED);
    test_net_restart(net, 0);
    test_net_settle(net);
    assert_int_equal(role_of(net, 0, 1), FB_ROLE_ADMIN);
    assert_int_equal(status_of(net, 0, 2), FB_MEMBER_REVOKED);
    test_net_free(net);
}

/* MP-1-6, MP-6-14 */
static void who_has_no_right_states_nothing(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(3, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t b[2048];
    /* A stranger approves itself, or says where it is. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 1),
                                     FB_ROLE_ADMIN, "", 1, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 1),
                                     FB_ROLE_NONE, "a:1", 1, b)),
                     FB_ERR_BATCH_POLICY);
    /* A writer approves nobody, and speaks only of its own address. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 1),
                                     FB_ROLE_WRITER, "", 2, b)),
                     FB_OK);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 2),
                                     FB_ROLE_READER, "", 3, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 1),
                                     FB_ROLE_ADMIN, "", 3, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 0),
                                     FB_ROLE_NONE, "a:1", 3, b)),
                     FB_ERR_BATCH_POLICY);
    /* The root is the creator's, about the creator. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_SPACE, key_at(net, 1),
                                     FB_ROLE_NONE, "mine", 4, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_SPACE, key_at(net, 0),
                                     FB_ROLE_NONE, "mine", 4, b)),
                     FB_ERR_BATCH_POLICY);
    /* In a record that is not the one of its key. */
    fb_span odd =
        statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 2), FB_ROLE_READER, "", 5, b);
    b[32 + 15] ^= 1;
    assert_int_equal(apply(net, 0, odd), FB_ERR_STATEMENT);
    /* Keys of small order, and what is no point at all (EXPECTATIONS: refuse at enrolment). */
    fb_b32 small = {{1}};
    assert_int_equal(
        apply(net, 0,
              statement(net, space, 0, FB_STATEMENT_MEMBER, small, FB_ROLE_READER, "", 6, b)),
        FB_ERR_KEY);
    fb_b32 zero = {{0}};
    assert_int_equal(
        apply(net, 0,
              statement(net, space, 0, FB_STATEMENT_MEMBER, zero, FB_ROLE_READER, "", 6, b)),
        FB_ERR_KEY);

    const fb_node *node = test_net_node(net, 0);
    assert_int_equal(right_of(node, key_at(net, 0)), FB_OK);
    assert_int_equal(right_of(node, key_at(net, 1)), FB_OK);
    assert_int_equal(right_of(node, key_at(net, 2)), FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 2),
                                     FB_ROLE_READER, "", 7, b)),
                     FB_OK);
    assert_int_equal(right_of(node, key_at(net, 2)), FB_ERR_BATCH_POLICY);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_fold_to_one_result_in_any_order),
        cmocka_unit_test(what_counts_of_a_member_is_the_same_in_any_order),
        cmocka_unit_test(a_batch_is_judged_by_the_cut),
        cmocka_unit_test(the_latest_address_counts_in_any_order),
        cmocka_unit_test(a_node_dials_the_next_ones_in_the_ring),
        cmocka_unit_test(members_have_their_places_before_who_asks),
        cmocka_unit_test(what_the_recovery_key_signed_is_kept_once),
        cmocka_unit_test(who_has_no_right_states_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
