/* SPDX-License-Identifier: Apache-2.0 */
/* A space with a long life behind it: many lives of its nodes, and somebody who begins with
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/database/state.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_history_fits_an_empty_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
