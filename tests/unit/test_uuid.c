/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"

#define T0_US INT64_C(1718000000000000)

static const fb_seed seed = {1, 2};

static fb_id next(fb_uuid_gen *gen, int64_t wall_us)
{
    fb_id id;
    assert_int_equal(fb_uuid_gen_next(gen, wall_us, &id), FB_OK);
    assert_true(fb_uuid_is_v7(id));
    return id;
}

static void text_form_is_exact(void **state)
{
    (void)state;
    static const char good[] = "0195a3f0-9000-7897-abcd-000000000010";
    fb_id id;
    assert_true(fb_uuid_parse_v7(fb_span_text(good), &id));
    assert_int_equal(id.b[0], 0x01);
    assert_int_equal(id.b[15], 0x10);
    assert_int_equal(fb_uuid_ms(id), 0x0195a3f09000);
    char text[FB_UUID_TEXT_LEN];
    fb_uuid_format(id, text);
    assert_memory_equal(text, good, sizeof text);

    static const char *const bad[] = {
        "",
        "0195a3f0-9000-7897-abcd-00000000001",
        "0195a3f0-9000-7897-abcd-0000000000100",
        "0195A3F0-9000-7897-ABCD-000000000010",
        "0195a3f0-9000-7897-abcd-00000000001g",
        "0195a3f0a9000-7897-abcd-000000000010",
        "0195a3f0-9000-7897-abcda000000000010",
        "{195a3f0-9000-7897-abcd-00000000001}",
        "0195a3f090007897abcd0000000000100000",
        " 195a3f0-9000-7897-abcd-000000000010",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(fb_uuid_parse(fb_span_text(bad[i]), &id));
    }
    assert_int_equal(id.b[15], 0x10);
}

/* FM-3.1-2, MP-1-3, FI-2-1 */
static void version_and_variant_are_checked(void **state)
{
    (void)state;
    fb_id id;
    assert_true(fb_uuid_parse(fb_span_text("0195a3f0-9000-4897-abcd-000000000010"), &id));
    assert_false(fb_uuid_parse_v7(fb_span_text("0195a3f0-9000-4897-abcd-000000000010"), &id));
    /* The draft's example ids with variant 110. */
    assert_false(fb_uuid_parse_v7(fb_span_text("0195a3f0-9050-7897-cdef-000000000005"), &id));
    assert_false(fb_uuid_parse_v7(fb_span_text("0195a3f0-9050-7897-7def-000000000005"), &id));
    assert_true(fb_uuid_parse_v7(fb_span_text("0195a3f0-9050-7897-8def-000000000005"), &id));
    assert_true(fb_uuid_parse_v7(fb_span_text("0195a3f0-9050-7897-bdef-000000000005"), &id));
}

/* MP-1-2 */
static void hex_takes_lowercase_only(void **state)
{
    (void)state;
    uint8_t out[2] = {9, 9};
    assert_true(fb_hex_parse(fb_span_text("0fa9"), out, 2));
    assert_int_equal(out[0], 0x0f);
    assert_int_equal(out[1], 0xa9);
    assert_false(fb_hex_parse(fb_span_text("0FA9"), out, 2));
    assert_false(fb_hex_parse(fb_span_text("0fa"), out, 2));
    assert_false(fb_hex_parse(fb_span_text("0fa9a"), out, 2));
    for (int c = 0; c < 256; c++) {
        bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        uint8_t text[2] = {'0', (uint8_t)c};
        assert_int_equal(fb_hex_parse(fb_span_of(text, 2), out, 1), digit);
    }
}

/* FM-5.1-2 */
static void ids_rise_within_one_millisecond(void **state)
{
    (void)state;
    fb_uuid_gen gen;
    fb_uuid_gen_init(&gen, seed, 7);
    fb_id last = next(&gen, T0_US);
    assert_int_equal(fb_uuid_ms(last), T0_US / 1000);
    /* The guard bit is the top bit of the counter. */
    assert_int_equal(last.b[6] & 0x08, 0);
    for (int i = 0; i < 100000; i++) {
        fb_id id = next(&gen, T0_US + i % 1000);
        assert_true(fb_id_compare(last, id) < 0);
        assert_int_equal(fb_uuid_ms(id), T0_US / 1000);
        last = id;
    }
    assert_int_equal(gen.behind, 0);
    assert_int_equal(gen.ran_ahead, 0);
}

static void ids_rise_when_the_clock_steps_back(void **state)
{
    (void)state;
    fb_uuid_gen gen;
    fb_uuid_gen_init(&gen, seed, 7);
    fb_id first = next(&gen, T0_US);
    fb_id second = next(&gen, T0_US - 3600 * INT64_C(1000000));
    assert_int_equal(fb_uuid_ms(second), T0_US / 1000);
    assert_true(fb_id_compare(first, second) < 0);
    assert_int_equal(gen.behind, 1);
    fb_id third = next(&gen, -1);
    assert_true(fb_id_compare(second, third) < 0);
    assert_int_equal(gen.behind, 2);
    fb_id fourth = next(&gen, T0_US + 1000);
    assert_int_equal(fb_uuid_ms(fourth), T0_US / 1000 + 1);
    assert_int_equal(gen.behind, 2);
}

/* FM-3.1-2 */
static void ids_rise_across_a_restart(void **state)
{
    (void)state;
    fb_uuid_gen gen;
    fb_uuid_gen_init(&gen, seed, 7);
    fb_id last = next(&gen, T0_US);
    for (int i = 0; i < 5; i++) last = next(&gen, T0_US);

    fb_uuid_gen again;
    fb_uuid_gen_init(&again, seed, 8);
    assert_int_equal(fb_uuid_gen_resume(&again, last), FB_OK);
    fb_id id = next(&again, T0_US - 5000000);
    assert_true(fb_id_compare(last, id) < 0);
    assert_int_equal(fb_uuid_ms(id), fb_uuid_ms(last));
    assert_int_equal(again.behind, 1);

    /* An older last value does not take the generator back. */
    assert_int_equal(fb_uuid_gen_resume(&again, last), FB_OK);
    assert_true(fb_id_compare(id, next(&again, T0_US - 5000000)) < 0);

    fb_id wrong = last;
    wrong.b[6] = 0x40;
    assert_int_equal(fb_uuid_gen_resume(&again, wrong), FB_ERR_BAD_UUID);
}

static void incarnations_draw_different_ids(void **state)
{
    (void)state;
    fb_uuid_gen a, b, c;
    fb_uuid_gen_init(&a, seed, 7);
    fb_uuid_gen_init(&b, seed, 8);
    fb_uuid_gen_init(&c, seed, 7);
    fb_id ida = next(&a, T0_US), idb = next(&b, T0_US), idc = next(&c, T0_US);
    assert_false(fb_id_equal(ida, idb));
    assert_true(fb_id_equal(ida, idc));
}

/* The greatest id of a millisecond: counter all ones. */
static fb_id full_counter(uint64_t ms)
{
    fb_id id;
    memset(id.b, 0xff, sizeof id.b);
    for (int i = 5; i >= 0; i--, ms >>= 8) id.b[i] = (uint8_t)ms;
    id.b[6] = 0x7f;
    id.b[8] = 0xbf;
    return id;
}

static void a_full_counter_moves_time_ahead(void **state)
{
    (void)state;
    fb_uuid_gen gen;
    fb_uuid_gen_init(&gen, seed, 7);
    fb_id last = full_counter(T0_US / 1000);
    assert_int_equal(fb_uuid_gen_resume(&gen, last), FB_OK);
    assert_int_equal(gen.counter, UINT32_MAX);
    fb_id id = next(&gen, T0_US);
    assert_true(fb_id_compare(last, id) < 0);
    assert_int_equal(fb_uuid_ms(id), T0_US / 1000 + 1);
    assert_int_equal(gen.ran_ahead, 1);
    assert_int_equal(id.b[6] & 0x08, 0);
    /* The clock catches up: one counter goes on. */
    fb_id after = next(&gen, T0_US + 1000);
    assert_true(fb_id_compare(id, after) < 0);
    assert_int_equal(fb_uuid_ms(after), T0_US / 1000 + 1);
    assert_int_equal(gen.ran_ahead, 1);
}

static void clocks_outside_the_range(void **state)
{
    (void)state;
    fb_uuid_gen gen;
    fb_uuid_gen_init(&gen, seed, 7);
    fb_id before = next(&gen, INT64_MIN);
    assert_int_equal(fb_uuid_ms(before), 0);
    assert_int_equal(gen.behind, 1);

    fb_id untouched = before;
    const int64_t end_us = (int64_t)(FB_UUID_MS_MAX * 1000 + 999);
    fb_uuid_gen copy = gen;
    assert_int_equal(fb_uuid_gen_next(&gen, end_us + 1, &untouched), FB_ERR_CLOCK);
    assert_int_equal(fb_uuid_gen_next(&gen, INT64_MAX, &untouched), FB_ERR_CLOCK);
    assert_true(fb_id_equal(before, untouched));
    assert_true(gen.count == copy.count && gen.last_ms == copy.last_ms &&
                gen.counter == copy.counter);

    assert_int_equal(fb_uuid_ms(next(&gen, end_us)), FB_UUID_MS_MAX);
    assert_int_equal(fb_uuid_gen_resume(&gen, full_counter(FB_UUID_MS_MAX)), FB_OK);
    assert_int_equal(fb_uuid_gen_next(&gen, end_us, &untouched), FB_ERR_CLOCK);
    assert_int_equal(fb_uuid_gen_next(&gen, T0_US, &untouched), FB_ERR_CLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_form_is_exact),
        cmocka_unit_test(version_and_variant_are_checked),
        cmocka_unit_test(hex_takes_lowercase_only),
        cmocka_unit_test(ids_rise_within_one_millisecond),
        cmocka_unit_test(ids_rise_when_the_clock_steps_back),
        cmocka_unit_test(ids_rise_across_a_restart),
        cmocka_unit_test(incarnations_draw_different_ids),
        cmocka_unit_test(a_full_counter_moves_time_ahead),
        cmocka_unit_test(clocks_outside_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
