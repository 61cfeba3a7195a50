/* SPDX-License-Identifier: Apache-2.0 */
/* Steps 2 to 8 of receiving (profile 5) on their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/envelope/receive.h"

#define NOW    INT64_C(1718000000000)
#define PAST   INT64_C(900000)
#define FUTURE INT64_C(300000)

static const fb_id a = {{1}}, b = {{2}}, c = {{3}};

static fb_envelope from_a(void)
{
    return (fb_envelope){.space = {{9}}, .source = a, .timestamp = (uint64_t)NOW};
}

/* FM-3.1-3, FM-9-3, FM-11-4, FM-11-10, MP-5-2, MP-5-3, MP-5-4 */
static void space_and_origin(void **state)
{
    (void)state;
    fb_envelope e = from_a();
    assert_int_equal(fb_receive_space(&e, (fb_id){{9}}), FB_OK);
    assert_int_equal(fb_receive_space(&e, (fb_id){{8}}), FB_ERR_WRONG_SPACE);
    assert_int_equal(fb_receive_origin(&e, a, b), FB_OK);
    assert_int_equal(fb_receive_origin(&e, c, b), FB_ERR_NOT_ORIGIN);
    /* One's own id is never a sender, also when the peer claims it. */
    assert_int_equal(fb_receive_origin(&e, a, a), FB_ERR_NOT_ORIGIN);
}

/* MP-5-5 */
static void membership(void **state)
{
    (void)state;
    assert_int_equal(fb_receive_sender(true, false), FB_OK);
    assert_int_equal(fb_receive_sender(false, false), FB_ERR_UNKNOWN_SENDER);
    assert_int_equal(fb_receive_sender(false, true), FB_ERR_REVOKED);
    assert_int_equal(fb_receive_sender(true, true), FB_ERR_REVOKED);
}

static fb_status at(int64_t timestamp, int64_t now, int64_t floor, bool *by_floor)
{
    fb_envelope e = from_a();
    e.timestamp = (uint64_t)timestamp;
    fb_receive_window w = {now, PAST, FUTURE, floor};
    return fb_receive_time(&e, &w, by_floor);
}

/* MP-5-8 */
static void time_window(void **state)
{
    (void)state;
    bool by_floor = true;
    assert_int_equal(at(NOW - PAST, NOW, 0, &by_floor), FB_OK);
    assert_false(by_floor);
    assert_int_equal(at(NOW - PAST - 1, NOW, 0, &by_floor), FB_ERR_STALE);
    assert_false(by_floor);
    assert_int_equal(at(NOW + FUTURE, NOW, 0, NULL), FB_OK);
    assert_int_equal(at(NOW + FUTURE + 1, NOW, 0, NULL), FB_ERR_FROM_FUTURE);
    /* The floor itself is refused, and told from the window. */
    assert_int_equal(at(NOW, NOW, NOW - 1, &by_floor), FB_OK);
    assert_int_equal(at(NOW, NOW, NOW, &by_floor), FB_ERR_STALE);
    assert_true(by_floor);
    assert_int_equal(at(NOW - PAST - 1, NOW, NOW, &by_floor), FB_ERR_STALE);
    assert_false(by_floor);
    assert_int_equal(at(NOW + FUTURE + 1, NOW, INT64_MAX, &by_floor), FB_ERR_FROM_FUTURE);
    /* Clocks that are anything. */
    assert_int_equal(at(1, 0, 0, NULL), FB_OK);
    assert_int_equal(at(1, -FUTURE, 0, NULL), FB_ERR_FROM_FUTURE);
    assert_int_equal(at(1, 1 - FUTURE, 0, NULL), FB_OK);
    assert_int_equal(at(1, INT64_MIN, 0, NULL), FB_ERR_FROM_FUTURE);
    assert_int_equal(at(FB_TIMESTAMP_MS_MAX, INT64_MAX, 0, NULL), FB_ERR_STALE);
    fb_envelope e = from_a();
    fb_receive_window all = {NOW, INT64_MAX, INT64_MAX, 0};
    assert_int_equal(fb_receive_time(&e, &all, NULL), FB_OK);
}

/* FM-5.1-9 */
static void wall_clock_to_milliseconds(void **state)
{
    (void)state;
    assert_int_equal(fb_receive_now_ms(1999), 1);
    assert_int_equal(fb_receive_now_ms(0), 0);
    assert_int_equal(fb_receive_now_ms(-1), -1);
    assert_int_equal(fb_receive_now_ms(-1000), -1);
    assert_int_equal(fb_receive_now_ms(-1001), -2);
    assert_true(fb_receive_now_ms(INT64_MIN) < 0);
}

/* FM-3.2-1, FM-6.1-1, FM-7.1-3, FM-7.2-2, FM-7.3-3, MP-5-9 */
static void addressing(void **state)
{
    (void)state;
    fb_envelope e = from_a();
    e.mode = FB_DELIVERY_UNICAST;
    e.target_node = b;
    assert_int_equal(fb_receive_address(&e, b, false), FB_OK);
    assert_int_equal(fb_receive_address(&e, c, true), FB_ERR_WRONG_TARGET);
    e.mode = FB_DELIVERY_TOPIC;
    assert_int_equal(fb_receive_address(&e, b, true), FB_OK);
    assert_int_equal(fb_receive_address(&e, b, false), FB_ERR_NOT_SUBSCRIBED);
}

/* MP-5-14 */
static void floors(void **state)
{
    (void)state;
    fb_receive_window w = {NOW, PAST, FUTURE, 0};
    assert_int_equal(fb_receive_floor(&w, NOW), NOW - PAST - FUTURE);
    assert_int_equal(fb_receive_floor(&w, NOW - PAST - FUTURE - 5), NOW - PAST - FUTURE - 5);
    w.floor_ms = NOW;
    assert_int_equal(fb_receive_floor(&w, NOW), NOW); /* never lower */
    assert_int_equal(fb_receive_floor_reset(&w), NOW - PAST - 1);
    /* A receiver whose clock stepped back keeps refusing what it may have forgotten. */
    w = (fb_receive_window){NOW - 10 * PAST, PAST, FUTURE, NOW - PAST - FUTURE};
    assert_int_equal(fb_receive_floor(&w, NOW), NOW - PAST - FUTURE);
    w = (fb_receive_window){INT64_MIN, PAST, FUTURE, 0};
    assert_int_equal(fb_receive_floor(&w, NOW), 0);
    assert_int_equal(fb_receive_floor_reset(&w), INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(space_and_origin), cmocka_unit_test(membership),
        cmocka_unit_test(time_window),      cmocka_unit_test(wall_clock_to_milliseconds),
        cmocka_unit_test(addressing),       cmocka_unit_test(floors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
