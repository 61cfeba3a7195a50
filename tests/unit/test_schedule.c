/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: what is printed is read as the same, what is wrong is said with its place, and a run
 * that was written down is the same run when it is played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/main_sim.h"
#include "sim/run.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/verbs.h"

static char *printed(const fb_sim_plan *plan)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    fb_sim_plan_print(plan, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void parse_good(const char *text, fb_sim_plan *plan)
{
    fb_sim_plan_error error;
    if (!fb_sim_plan_parse(text, strlen(text), plan, &error)) {
        fail_msg("line %u column %u: %s", (unsigned)error.line, (unsigned)error.column, error.text);
    }
}

static void longest_line(const char *text)
{
    size_t column = 0;
    for (; *text != 0; text++) {
        column = *text == '\n' ? 0 : column + 1;
        assert_true(column <= FB_SIM_SCHEDULE_COLUMNS);
    }
}

static const char everything[] =
    "schedule 1 # of everything\n"
    "seed 0123456789abcdef0123456789abcdef01234567\n"
    "nodes 40\n"
    "bug acked-when-executed\n"
    "expect violates durable-before-acked\n"
    "hash 00112233445566778899aabbccddeeff\n"
    "setup 55s\n"
    "settle 250ms\n"
    "set carriers 8\n"
    "set delay-mean 1.5ms\n"
    "\n"
    "# the first one\n"
    "round 1 for 12s core A B n39\n"
    "  1ns A put r3 f0 f1=\"\" f2+512 #24\n"
    "  0.5s within 1h B/2 change r31 -f1 f3 #0\n"
    "  2ms n39 delete r0\n"
    "  2us A get r0\n"
    "  2s A list 255\n"
    "  2s A stranger r1 f0\n"
    "  1s..5s delay A mean 20ms\n"
    "  1s..5s delay A-B mean 20ms #4\n"
    "  1s..5s segment A 5/16\n"
    "  1s..5s rate A-n30 bytes 4096\n"
    "  1s..5s dup A 1/8 copies 2\n"
    "  1s..5s reorder A 1/8 by 40ms\n"
    "  1s..5s split A B C D E F G H I J K L M N O P Q R S T U V W X | n30 \\\n"
    "     n31 n32 n33 | Y Z\n"
    "  1s..5s bridge C of A B | D\n"
    "  1s..5s ring\n"
    "  1s..5s oneway A->B\n"
    "  1s..5s nontransitive A-C\n"
    "  1s..5s crash B every 300ms\n"
    "  1s..5s offset B by -30s\n"
    "  1s..5s offset-far B by +40m\n"
    "  1s..5s drift B ppm -300\n"
    "  1s..5s before-1970 B by 300d\n"
    "  1s..5s forge B every 50ms\n"
    "  drop A->B signal 3\n"
    "  drop A->B any 3 life 2\n"
    "  delay A->n26 call 2 by 400ms\n"
    "  cut B->A handshake 1\n"
    "  corrupt B->A heartbeat 1\n"
    "  dup B->A ack 4294967295\n"
    "  crash B at write 3\n"
    "  crash B at effect 2 life 2 down 5s\n"
    "  1s A put r3 f0+9 #24 times 200 every 100ms over 28\n"
    "  1s A delete r3 times 2 every 0.5s\n"
    "  1s A change r3 f1 #224 times 4096 every 1ns\n"
    "  1s A list 3 times 9 every 1m\n"
    "round 7 for 1h\n";

static void what_is_printed_is_read_as_the_same(void **state)
{
    (void)state;
    fb_sim_plan plan, again;
    parse_good(everything, &plan);
    assert_int_equal(plan.round_count, 2);
    assert_int_equal(plan.line_count, 35);
    assert_int_equal(fb_sim_plan_lines_alone(&plan), 35 + 199 + 1 + 4095 + 8);
    assert_int_equal(plan.rounds[0].core, 3 | UINT64_C(1) << 39);
    assert_int_equal(plan.lines[0].op.pad[2], 512);
    assert_int_equal(plan.lines[1].within_ns, UINT64_C(3600000000000));
    assert_int_equal(plan.lines[18].mask, 1);
    char *first = printed(&plan);
    longest_line(first);
    parse_good(first, &again);
    char *second = printed(&again);
    assert_string_equal(first, second);
    assert_int_equal(again.line_count, plan.line_count);
    for (uint32_t i = 0; i < plan.line_count; i++) {
        fb_sim_line a = plan.lines[i], b = again.lines[i];
        a.source = b.source = 0;
        assert_true(fb_sim_line_equal(&a, &b));
    }
    free(first);
    free(second);
    fb_sim_plan_free(&plan);
    fb_sim_plan_free(&again);
}

/* Every fault of the catalogue, with the parameters that the swarm drew for it. */
static void every_fault_can_be_written(void **state)
{
    (void)state;
    for (uint32_t fault = 0; fault < FB_SIM_FAULTS; fault++) {
        fb_sim_plan plan, again;
        fb_sim_plan_init(&plan);
        assert_non_null(fb_sim_plan_round_add(&plan));
        plan.rounds[0].number = 1;
        plan.rounds[0].length_ns = 1000000000;
        fb_sim_line *line = fb_sim_plan_line_add(&plan);
        assert_non_null(line);
        line->kind = FB_SIM_LINE_WINDOW;
        line->fault = fault;
        line->key = 1 + fault % 3;
        line->a = 1;
        line->b = 2;
        line->at_ns = 123456789;
        line->until_ns = 987654321;
        line->p = line->q = 5;
        line->mask = 1;
        fb_sim_window_normalise(&plan, line);
        char *first = printed(&plan);
        parse_good(first, &again);
        fb_sim_line read = again.lines[0];
        read.source = 0;
        if (!fb_sim_line_equal(&plan.lines[0], &read)) fail_msg("not the same: %s", first);
        free(first);
        fb_sim_plan_free(&plan);
        fb_sim_plan_free(&again);
    }
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t line, column;
    } wrong[] = {
        {"", 1, 1},
        {"# nothing\n", 1, 1},
        {"sched 1\n", 1, 1},
        {"schedule 2\n", 1, 10},
        {"schedule\n", 1, 9},
        {"schedule 1 1\n", 1, 12},
        {"schedule 1\nsed 1\n", 2, 1},
        {"schedule 1\nseed x\n", 2, 6},
        {"schedule 1\nseed 1\nseed 2\n", 3, 1},
        {"schedule 1\nnodes 1\n", 2, 7},
        {"schedule 1\nnodes 65\n", 2, 7},
        {"schedule 1\nnodes 99999999999999999999\n", 2, 7},
        {"schedule 1\nbug no-such-bug\n", 2, 5},
        {"schedule 1\nexpect maybe\n", 2, 8},
        {"schedule 1\nhash 0011\n", 2, 6},
        {"schedule 1\nset nothing 1\n", 2, 5},
        {"schedule 1\nset carriers 17\n", 2, 14},
        {"schedule 1\nset carriers 1\nset carriers 2\n", 3, 5},
        {"schedule 1\n1s A get r1\n", 2, 1},
        {"schedule 1\nround 1\n", 2, 8},
        {"schedule 1\nround 1 for 1s\nseed 2\n", 3, 1},
        {"schedule 1\nround 1 for 1s\nround 1 for 1s\n", 3, 1},
        {"schedule 1\nround 1 for 1s core F\n", 2, 21},
        {"schedule 1\nround 1 for 1s core A A\n", 2, 23},
        {"schedule 1\nround 1 for 1s\n  1 A get r1\n", 3, 3},
        {"schedule 1\nround 1 for 1s\n  1x A get r1\n", 3, 3},
        {"schedule 1\nround 1 for 1s\n  1.0000000001s A get r1\n", 3, 3},
        {"schedule 1\nround 1 for 1s\n  99999999h A get r1\n", 3, 3},
        {"schedule 1\nround 1 for 1s\n  1s F get r1\n", 3, 6},
        {"schedule 1\nround 1 for 1s\n  1s A/3 get r1\n", 3, 6},
        {"schedule 1\nround 1 for 1s\n  1s A take r1\n", 3, 8},
        {"schedule 1\nround 1 for 1s\n  1s A get r32\n", 3, 12},
        {"schedule 1\nround 1 for 1s\n  1s A put r1 f4\n", 3, 15},
        {"schedule 1\nround 1 for 1s\n  1s A put r1 -f1\n", 3, 15},
        {"schedule 1\nround 1 for 1s\n  1s A put r1 f1 f1\n", 3, 18},
        {"schedule 1\nround 1 for 1s\n  1s A put r1 f1+60001\n", 3, 15},
        {"schedule 1\nround 1 for 1s\n  2s..1s ring\n", 3, 3},
        {"schedule 1\nround 1 for 1s\n  1s A get r1 times 1 every 1s\n", 3, 21},
        {"schedule 1\nround 1 for 1s\n  1s A get r1 times 4097 every 1s\n", 3, 21},
        {"schedule 1\nround 1 for 1s\n  1s A get r1 times 2\n", 3, 22},
        {"schedule 1\nround 1 for 1s\n  1s A get r1 times 4000 every 1h\n", 3, 32},
        {"schedule 1\nround 1 for 1s\n  1s A get r9 times 9 every 1s over 1\n", 3, 37},
        {"schedule 1\nround 1 for 1s\n  1s A get r9 times 9 every 1s over 24\n", 3, 37},
        {"schedule 1\nround 1 for 1s\n  1s A list 3 times 9 every 1s over 2\n", 3, 32},
        {"schedule 1\nround 1 for 1s\n  1s A reported B times 9 every 1s over 2\n", 3, 36},
        {"schedule 1\nround 1 for 1s\n  1s A collections B times 9 every 1s over 2\n", 3, 39},
        {"schedule 1\nround 1 for 1s\n  1s..2s rain\n", 3, 10},
        {"schedule 1\ncalm\nround 1 for 1s\n  1s..2s ring\n", 4, 10},
        {"schedule 1\nround 1 for 1s\n  1s..2s delay A\n", 3, 17},
        {"schedule 1\nround 1 for 1s\n  1s..2s delay A mean 0s\n", 3, 23},
        {"schedule 1\nround 1 for 1s\n  1s..2s loss A-A 1/2\n", 3, 15},
        {"schedule 1\nround 1 for 1s\n  1s..2s loss A 2/3\n", 3, 17},
        {"schedule 1\nround 1 for 1s\n  1s..2s oneway A-B\n", 3, 17},
        {"schedule 1\nround 1 for 1s\n  1s..2s split A | B | C | D | E\n", 3, 30},
        {"schedule 1\nround 1 for 1s\n  1s..2s drift A ppm 3\n", 3, 22},
        {"schedule 1\nround 1 for 1s\n  1s..2s drift A ppm +1001\n", 3, 22},
        {"schedule 1\nround 1 for 1s\n  1s..2s ring #0\n", 3, 15},
        {"schedule 1\nround 1 for 1s\n  drop A-B signal 1\n", 3, 8},
        {"schedule 1\nround 1 for 1s\n  drop A->B letter 1\n", 3, 13},
        {"schedule 1\nround 1 for 1s\n  drop A->B signal 0\n", 3, 20},
        {"schedule 1\nround 1 for 1s\n  delay A->B signal 1\n", 3, 22},
        {"schedule 1\nround 1 for 1s\n  crash A at dawn 1\n", 3, 14},
        {"schedule 1\nround 1 for 1s\n  crash A at write 1 life 0\n", 3, 27},
        {"schedule 1\n"
         "#23456789 123456789 123456789 123456789 123456789 123456789 123456789 1234567890\n",
         2, 0},
        {"schedule 1\n"
         "# 3456789 123456789 123456789 123456789 123456789 123456789 123456789 1234567890x\n",
         2, 81},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        fb_sim_plan plan;
        fb_sim_plan_error error;
        bool good = fb_sim_plan_parse(wrong[i].text, strlen(wrong[i].text), &plan, &error);
        if (wrong[i].column == 0) continue;
        if (good || error.line != wrong[i].line || error.column != wrong[i].column) {
            fail_msg("%s: line %u column %u: %s", wrong[i].text, (unsigned)error.line,
                     (unsigned)error.column, error.text);
        }
        assert_int_equal(plan.line_count, 0);
        assert_null(plan.lines);
    }
}

static void bytes_of_the_file_are_not_echoed(void **state)
{
    (void)state;
    static const char text[] = "schedule 1\n\x1b[31m\x07\n";
    fb_sim_plan plan;
    fb_sim_plan_error error;
    assert_false(fb_sim_plan_parse(text, sizeof text - 1, &plan, &error));
    assert_null(strchr(error.text, 0x1b));
    assert_null(strchr(error.text, 0x07));
}

static fb_sim_verdict play(const fb_sim_plan *plan)
{
    fb_sim_config config;
    fb_sim_plan_config(plan, &config);
    config.quiet = true;
    fb_sim_verdict verdict;
    assert_true(fb_sim_run(&config, &verdict));
    return verdict;
}

static void a_recorded_run_is_the_same_when_played(void **state)
{
    (void)state;
    static const char *const seeds[] = {"1", "4", "11"};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        fb_sim_config config = fb_sim_config_default();
        assert_true(fb_sim_parse_seed(seeds[i], &config));
        config.events = 25000;
        config.quiet = true;
        config.carriers_of_16 = 8;
        fb_sim_plan plan, read;
        fb_sim_plan_init(&plan);
        fb_sim_plan_from_config(&plan, &config, NULL);
        config.record = &plan;
        fb_sim_verdict recorded, again;
        assert_true(fb_sim_run(&config, &recorded));
        assert_true(recorded.recorded);
        assert_true(plan.round_count > 0 && plan.line_count > 100);
        char *text = printed(&plan);
        longest_line(text);
        parse_good(text, &read);
        again = play(&read);
        assert_int_equal(again.result, recorded.result);
        assert_int_equal(again.events, recorded.events);
        assert_int_equal(again.hash.lo, recorded.hash.lo);
        assert_int_equal(again.hash.hi, recorded.hash.hi);
        assert_int_equal(again.unreached, 0);
        free(text);
        fb_sim_plan_free(&plan);
        fb_sim_plan_free(&read);
    }
}

static fb_sim_outcome outcome(const char *text, fb_sim_verdict *verdict)
{
    fb_sim_plan plan;
    char why[256];
    parse_good(text, &plan);
    *verdict = play(&plan);
    fb_sim_outcome is = fb_sim_outcome_of(&plan, verdict, why, sizeof why);
    if (is != FB_SIM_OUTCOME_PASSED) print_message("%s\n", why);
    fb_sim_plan_free(&plan);
    return is;
}

/* One line for many operations, and each of them on a line of its own, are the same run. */
static void a_series_is_its_operations(void **state)
{
    (void)state;
    static const char head[] = "schedule 1\nnodes 3\nround 1 for 5s\n";
    fb_sim_verdict verdict, alone;
    char text[4096];
    snprintf(text, sizeof text,
             "%s  0.5s A change r3 f0+700 #1 times 30 every 100ms over 7\n"
             "  0.55s A delete r3 times 5 every 600ms over 7\n"
             "  1s B/2 add r2 3 times 4 every 1s\n",
             head);
    assert_int_equal(outcome(text, &verdict), FB_SIM_OUTCOME_PASSED);
    int n = snprintf(text, sizeof text, "%s", head);
    for (int i = 0; i < 30; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "  %dms A change r%d f0+700 #%d\n",
                      500 + i * 100, 3 + i % 7, 1 + i);
    }
    for (int i = 0; i < 5; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "  %dms A delete r%d\n", 550 + i * 600,
                      3 + i);
    }
    for (int i = 1; i < 5; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "  %ds B/2 add r2 3\n", i);
    }
    assert_int_equal(outcome(text, &alone), FB_SIM_OUTCOME_PASSED);
    assert_true(verdict.hash.lo == alone.hash.lo && verdict.hash.hi == alone.hash.hi);
    assert_true(verdict.events == alone.events && verdict.events > 300);
    /* What is missed of it is its line's. */
    snprintf(text, sizeof text,
             "%s  1s A get r1\n  2s within 0s B get r1 times 3 every 1s\n"
             "  1s..5s pause B\n",
             head);
    fb_sim_plan plan;
    parse_good(text, &plan);
    plan.expect = FB_SIM_EXPECT_PASS;
    verdict = play(&plan);
    assert_int_equal(verdict.unreached, 3);
    assert_int_equal(verdict.unreached_first, 1);
    fb_sim_plan_free(&plan);
}

static void what_is_addressed_by_meaning_happens_or_is_stale(void **state)
{
    (void)state;
    fb_sim_verdict verdict;
    assert_int_equal(outcome("schedule 1\nnodes 3\nexpect pass\nset carriers 16\n"
                             "round 1 for 3s\n"
                             "  0.5s A put r1 f0 #1\n"
                             "  1s B change r1 f1 #2\n"
                             "  crash C at write 1 down 500ms\n"
                             "  drop A->B any 2\n"
                             "  delay B->A any 3 by 300ms\n"
                             "  dup A->C any 1\n",
                             &verdict),
                     FB_SIM_OUTCOME_PASSED);
    assert_int_equal(verdict.fired[FB_SIM_FAULT_CRASH], 1);
    static const char *const stale[] = {
        "  crash C at write 1 life 3\n",
        "  drop A->B interest 1000\n",
        "  0.5s within 0s B get r1\n  0.1s..1s pause B\n",
        "  4s A get r1\n",
    };
    for (size_t i = 0; i < sizeof stale / sizeof stale[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "schedule 1\nnodes 3\nexpect pass\nround 1 for 2s\n%s",
                 stale[i]);
        if (outcome(text, &verdict) != FB_SIM_OUTCOME_STALE) fail_msg("not stale: %s", stale[i]);
    }
    assert_int_equal(outcome("schedule 1\nnodes 2\nexpect violates converges\n", &verdict),
                     FB_SIM_OUTCOME_STALE);
    assert_int_equal(outcome("schedule 1\nnodes 2\nexpect pass\n"
                             "hash 00000000000000000000000000000000\n",
                             &verdict),
                     FB_SIM_OUTCOME_STALE);
}

/* Taking one line away leaves the draws of the others where they were: here, of two windows. */
static void a_line_taken_away_moves_no_other(void **state)
{
    (void)state;
    static const char head[] = "schedule 1\nnodes 3\nround 1 for 20s\n";
    static const char other[] = "  1s..19s crash C every 2s #2\n  2s A put r0 f0 #1\n";
    static const char kept[] = "  1s..19s flap B every 700ms\n";
    fb_sim_verdict verdict[2];
    char text[256];
    snprintf(text, sizeof text, "%s%s%s", head, other, kept);
    outcome(text, &verdict[0]);
    snprintf(text, sizeof text, "%s%s", head, kept);
    outcome(text, &verdict[1]);
    assert_true(verdict[0].fired[FB_SIM_FAULT_FLAP] > 10);
    assert_int_equal(verdict[0].fired[FB_SIM_FAULT_FLAP], verdict[1].fired[FB_SIM_FAULT_FLAP]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_read_as_the_same),
        cmocka_unit_test(every_fault_can_be_written),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(bytes_of_the_file_are_not_echoed),
        cmocka_unit_test(a_recorded_run_is_the_same_when_played),
        cmocka_unit_test(a_series_is_its_operations),
        cmocka_unit_test(what_is_addressed_by_meaning_happens_or_is_stale),
        cmocka_unit_test(a_line_taken_away_moves_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
