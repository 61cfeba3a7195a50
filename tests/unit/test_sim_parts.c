/* SPDX-License-Identifier: Apache-2.0 */
/* Queue, clock, draws, trace and provider of the simulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/world/clock.h"
#include "sim/world/memo.h"
#include "sim/world/provider_fast.h"
#include "sim/world/queue.h"
#include "sim/world/random.h"
#include "sim/world/trace.h"

static void entries_come_in_the_written_order(void **state)
{
    (void)state;
    static fb_sim_entry memory[4096];
    fb_sim_queue queue;
    fb_sim_queue_init(&queue, memory, 4096);
    fb_seed seed = {3, 3};
    uint64_t last_time = 0, last_order = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t bits = fb_draw(seed, 1, 0, i);
        fb_sim_entry entry;
        /* Few different times, so that ties are the rule. */
        fb_sim_queue_push(&queue, last_time + (bits & 7), (uint32_t)(bits >> 8 & 7),
                          (uint32_t)(bits >> 16 & 3), i, 0);
        if (queue.count < 4000 && (bits >> 40 & 7) < 4) continue;
        assert_true(fb_sim_queue_pop(&queue, &entry));
        assert_true(entry.time_ns >= last_time);
        if (entry.time_ns == last_time && i > 5000) {
            /* Later pushes at this very time may come before: only sequence is sure. */
            assert_true(entry.order != last_order);
        }
        last_time = entry.time_ns;
        last_order = entry.order;
    }
    fb_sim_entry before;
    assert_true(fb_sim_queue_pop(&queue, &before));
    fb_sim_entry entry;
    while (fb_sim_queue_pop(&queue, &entry)) {
        assert_true(before.time_ns < entry.time_ns ||
                    (before.time_ns == entry.time_ns && before.order < entry.order));
        before = entry;
    }
    assert_int_equal(queue.count, 0);
}

static void a_deadline_is_met_by_every_clock(void **state)
{
    (void)state;
    fb_seed seed = {5, 5};
    for (uint64_t i = 0; i < 5000; i++) {
        fb_sim_clock clock;
        int32_t ppm = (int32_t)fb_sim_between(seed, 1, 0, i, 0, 2000) - 1000;
        fb_sim_clock_init(&clock, 1000, fb_draw_below(seed, 2, 0, i, UINT64_C(1) << 40),
                          -INT64_C(5000000), ppm);
        uint64_t now = 1000 + fb_draw_below(seed, 3, 0, i, UINT64_C(1) << 50);
        uint64_t mono = fb_sim_clock_mono(&clock, now);
        uint64_t wanted = mono + fb_draw_below(seed, 4, 0, i, UINT64_C(1) << (i % 48));
        uint64_t at = fb_sim_clock_when(&clock, now, wanted);
        assert_true(at >= now);
        assert_true(fb_sim_clock_mono(&clock, at) >= wanted);
        if (at > now + 2) assert_true(fb_sim_clock_mono(&clock, at - 2) < wanted);
    }
}

static void the_monotonic_clock_never_decreases(void **state)
{
    (void)state;
    fb_seed seed = {6, 6};
    fb_sim_clock clock;
    fb_sim_clock_init(&clock, 0, 77, 0, 0);
    uint64_t now = 0, last = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = fb_draw(seed, 1, 0, i);
        uint64_t before = now;
        now += bits % 5000;
        if ((bits >> 32 & 31) == 0) fb_sim_clock_rate(&clock, now, (int32_t)(bits % 2001) - 1000);
        if ((bits >> 37 & 31) == 0) fb_sim_clock_step(&clock, now, -(int64_t)(bits % 100000));
        if ((bits >> 42 & 31) == 0) fb_sim_clock_freeze(&clock, now, (bits & 1) != 0);
        if ((bits >> 47 & 31) == 0 && before >= clock.base_true_ns) {
            fb_sim_clock_slept(&clock, before, now);
        }
        uint64_t mono = fb_sim_clock_mono(&clock, now);
        assert_true(mono >= last);
        last = mono;
    }
}

static void exponential_draws_have_their_mean(void **state)
{
    (void)state;
    fb_seed seed = {8, 8};
    uint64_t sum = 0, most = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t v = fb_sim_exponential(fb_draw(seed, 1, 0, i), 1000000);
        sum += v;
        if (v > most) most = v;
    }
    assert_in_range(sum / 200000, 990000, 1020000);
    assert_in_range(most, 5000000, 6300000);
}

static void log_lines_are_outside_the_trace(void **state)
{
    (void)state;
    uint64_t memory[64] = {0};
    fb_effects effects = {(uint8_t *)memory, sizeof memory, 0, 0};
    fb_event event = {.kind = FB_EV_TICK, .mono_ns = 5};
    fb_effect *fx = (fb_effect *)(void *)memory;
    *fx = (fb_effect){.kind = FB_FX_OBSERVE, .len = 0, .a = 1, .b = 2, .c = 3};
    effects.used = sizeof *fx;
    static fb_sim_trace one, two, three;
    fb_sim_trace_step(&one, 0, &event, &effects, (fb_hash128){1, 2});
    fx[1] = (fb_effect){.kind = FB_FX_LOG, .len = 0, .a = 1};
    effects.used = 2 * sizeof *fx;
    fb_sim_trace_step(&two, 0, &event, &effects, (fb_hash128){1, 2});
    fb_hash128 plain = fb_sim_trace_hash(&one), logged = fb_sim_trace_hash(&two);
    assert_true(plain.lo == logged.lo && plain.hi == logged.hi);
    fx[1].kind = FB_FX_CLOSE;
    fb_sim_trace_step(&three, 0, &event, &effects, (fb_hash128){1, 2});
    assert_true(plain.lo != fb_sim_trace_hash(&three).lo);
    char text[33];
    fb_sim_trace_text((fb_hash128){0xab, UINT64_C(0xf000000000000001)}, text);
    assert_string_equal(text, "f00000000000000100000000000000ab");
}

static void nothing_is_forged_without_a_handle(void **state)
{
    (void)state;
    static uint8_t scratch[FB_SIM_PROVIDER_TEXT_MAX];
    static fb_sim_provider a, b;
    fb_sim_provider_init(&a, (fb_seed){1, 1}, (fb_seed){1, 2}, scratch);
    fb_sim_provider_init(&b, (fb_seed){2, 1}, (fb_seed){2, 2}, scratch);
    fb_span parts[2] = {fb_span_text("label"), fb_span_text("message")};
    fb_b64 signature;
    assert_int_equal(a.table.sign(&a, FB_SIM_KEY_IDENTITY, parts, 2, &signature), FB_OK);
    assert_true(b.table.verify(&b, &a.public_key, parts, 2, &signature));
    assert_false(b.table.verify(&b, &b.public_key, parts, 2, &signature));
    for (size_t bit = 0; bit < 512; bit++) {
        signature.b[bit / 8] ^= (uint8_t)(1u << (bit & 7));
        assert_false(b.table.verify(&b, &a.public_key, parts, 2, &signature));
        signature.b[bit / 8] ^= (uint8_t)(1u << (bit & 7));
    }
    fb_span joined = fb_span_text("labelmessage");
    assert_true(b.table.verify(&b, &a.public_key, &joined, 1, &signature));
    fb_b32 random = {{9}};
    assert_false(a.table.point_is_valid(&a, &random));
    assert_true(a.table.point_is_valid(&a, &b.public_key));

    fb_key_handle ephemeral;
    fb_b32 pa, pb, sa, sb, zero = {{0}};
    assert_int_equal(a.table.dh_generate(&a, &ephemeral), FB_OK);
    assert_int_equal(a.table.dh_public(&a, ephemeral, &pa), FB_OK);
    assert_int_equal(b.table.dh_public(&b, FB_SIM_KEY_LINK, &pb), FB_OK);
    assert_int_equal(a.table.dh(&a, ephemeral, &pb, &sa), FB_OK);
    assert_int_equal(b.table.dh(&b, FB_SIM_KEY_LINK, &pa, &sb), FB_OK);
    assert_true(fb_b32_equal(sa, sb));
    assert_int_equal(a.table.dh(&a, ephemeral, &zero, &sa), FB_ERR_KEY);

    uint8_t sealed[64], opened[64];
    fb_span plain = fb_span_text("thirty-two bytes of plain text..");
    a.table.aead_seal(&a, &sb, 5, fb_span_text("ad"), plain, sealed);
    fb_span box = fb_span_of(sealed, plain.len + 16);
    assert_true(a.table.aead_open(&a, &sb, 5, fb_span_text("ad"), box, opened));
    assert_memory_equal(opened, plain.p, plain.len);
    assert_false(a.table.aead_open(&a, &sb, 6, fb_span_text("ad"), box, opened));
    assert_false(a.table.aead_open(&a, &sb, 5, fb_span_text("da"), box, opened));
    assert_false(a.table.aead_open(&a, &pa, 5, fb_span_text("ad"), box, opened));
    for (size_t i = 0; i < box.len; i++) {
        sealed[i] ^= 0x10;
        assert_false(a.table.aead_open(&a, &sb, 5, fb_span_text("ad"), box, opened));
        sealed[i] ^= 0x10;
    }
}

/* While it grows nothing is forgotten, and it stays within what few keys need. */
static void a_memo_grows_with_its_keys(void **state)
{
    (void)state;
    static uint8_t memory[256 * 1024] __attribute__((aligned(16)));
    fb_arena arena = {memory, 0, sizeof memory};
    fb_sim_memo memo;
    fb_sim_memo_init(&memo, &arena, 2048, 2);
    for (uint64_t i = 1; i <= 1024; i++) {
        uint64_t *values = fb_sim_memo_at(&memo, i * 977);
        assert_true(values[0] == 0 && values[1] == 0);
        values[0] = i;
        values[1] = ~i;
        for (uint64_t k = 1 + i / 2; k <= i; k++) {
            const uint64_t *known = fb_sim_memo_find(&memo, k * 977);
            assert_non_null(known);
            assert_true(known[0] == k && known[1] == ~k);
        }
        if (i == 16) assert_true(memo.masks[memo.young] < 64);
    }
    assert_int_equal(memo.turns, 0);
    fb_sim_memo_zero(&memo, 1);
    assert_true(fb_sim_memo_find(&memo, 977)[0] == 1 && fb_sim_memo_find(&memo, 977)[1] == 0);
    fb_sim_memo_clear(&memo);
    for (uint64_t i = 1; i <= 1024; i++) assert_null(fb_sim_memo_find(&memo, i * 977));
}

static void a_memo_keeps_its_last_quarter(void **state)
{
    (void)state;
    static uint8_t memory[64 * 1024] __attribute__((aligned(16)));
    fb_arena arena = {memory, 0, sizeof memory};
    fb_sim_memo memo;
    fb_sim_memo_init(&memo, &arena, 1024, 1);
    for (uint64_t i = 1; i <= 10000; i++) {
        fb_sim_memo_put(&memo, i, i * 3);
        uint64_t oldest = i > 512 ? i - 511 : 1;
        const uint64_t *value = fb_sim_memo_find(&memo, oldest);
        assert_non_null(value);
        assert_true(*value == oldest * 3);
    }
    assert_null(fb_sim_memo_find(&memo, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_in_the_written_order),
        cmocka_unit_test(a_deadline_is_met_by_every_clock),
        cmocka_unit_test(the_monotonic_clock_never_decreases),
        cmocka_unit_test(exponential_draws_have_their_mean),
        cmocka_unit_test(log_lines_are_outside_the_trace),
        cmocka_unit_test(nothing_is_forged_without_a_handle),
        cmocka_unit_test(a_memo_grows_with_its_keys),
        cmocka_unit_test(a_memo_keeps_its_last_quarter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
