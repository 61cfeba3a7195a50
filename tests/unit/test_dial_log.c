/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "runtime/daemon/dial_log.h"

#define SECOND UINT64_C(1000000000)

static fb_dial_log dials;

static bool tells(uint64_t now_ns, const char *address, fb_error error, uint64_t *failures)
{
    return fb_dial_log_tells(&dials, now_ns, fb_span_text(address), error, failures);
}

static void a_dead_address_is_told_ever_more_rarely(void **state)
{
    (void)state;
    memset(&dials, 0, sizeof dials);
    uint64_t failures, lines = 0, told = 0;
    assert_true(tells(0, "h:1", FB_ERR_UNREACHABLE, &failures));
    assert_int_equal(failures, 1);
    for (uint64_t s = 1; s < 86400; s++) {
        if (!tells(s * SECOND, "h:1", FB_ERR_UNREACHABLE, &failures)) continue;
        lines++;
        told += failures;
    }
    assert_in_range(lines, 8, 12);
    assert_in_range(told, 40000, 86400);
    /* After a day the lines are a day apart. */
    uint64_t last = 0, longest = 0;
    for (uint64_t s = 86400; s < 10 * 86400; s += 60) {
        if (!tells(s * SECOND, "h:1", FB_ERR_UNREACHABLE, &failures)) continue;
        if (last != 0 && s - last > longest) longest = s - last;
        last = s;
    }
    assert_in_range(longest, 86400, 86400 + 60);
}

static void what_changes_is_told_at_once(void **state)
{
    (void)state;
    memset(&dials, 0, sizeof dials);
    uint64_t failures;
    assert_true(tells(0, "h:1", FB_ERR_UNREACHABLE, &failures));
    assert_false(tells(1, "h:1", FB_ERR_UNREACHABLE, &failures));
    assert_true(tells(2, "h:2", FB_ERR_UNREACHABLE, &failures));
    assert_true(tells(3, "h:1", FB_ERR_NOT_FOUND, &failures));
    assert_int_equal(failures, 1);
    assert_true(tells(4, "h:1", FB_OK, &failures));
    assert_true(tells(5, "h:1", FB_OK, &failures));
    assert_true(tells(6, "h:1", FB_ERR_NOT_FOUND, &failures));
    assert_false(tells(7, "h:1", FB_ERR_NOT_FOUND, &failures));
}

static void the_table_is_bounded(void **state)
{
    (void)state;
    memset(&dials, 0, sizeof dials);
    uint64_t failures;
    char address[32];
    for (unsigned i = 0; i < 3 * FB_DIAL_LOG_ADDRESSES; i++) {
        snprintf(address, sizeof address, "h:%u", i);
        assert_true(tells(i, address, FB_ERR_UNREACHABLE, &failures));
    }
    /* The newest are known still. */
    assert_false(tells(0, address, FB_ERR_UNREACHABLE, &failures));
    assert_true(tells(0, "h:0", FB_ERR_UNREACHABLE, &failures));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_address_is_told_ever_more_rarely),
        cmocka_unit_test(what_changes_is_told_at_once),
        cmocka_unit_test(the_table_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
