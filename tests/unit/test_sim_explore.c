/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations of schedules are schedules, and the same ones each time; the pool and the map. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/explore/explorer.h"
#include "sim/explore/mutate.h"
#include "sim/run.h"
#include "sim/weather/weather.h"

static const fb_seed seed = {7, 9};

static fb_sim_plan recorded(uint64_t of)
{
    fb_sim_config config = fb_sim_config_default();
    config.seed = (fb_seed){of, 0};
    snprintf(config.seed_text, sizeof config.seed_text, "%llu", (unsigned long long)of);
    config.nodes = 3;
    config.events = 3000;
    config.quiet = true;
    config.store_items = 1u << 12;
    config.blob_bytes = UINT64_C(64) << 20;
    fb_sim_plan plan;
    fb_sim_plan_init(&plan);
    fb_sim_plan_from_config(&plan, &config, NULL);
    config.record = &plan;
    fb_sim_verdict verdict;
    assert_true(fb_sim_run(&config, &verdict));
    assert_true(verdict.recorded);
    return plan;
}

static char *text_of(const fb_sim_plan *plan)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    fb_sim_plan_print(plan, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static char *made(const fb_sim_plan *plan, const fb_sim_plan *other, uint64_t number, bool ordered)
{
    fb_sim_plan copy;
    assert_true(fb_sim_plan_copy(&copy, plan));
    assert_true(fb_sim_mutate(&copy, other, seed, number));
    if (ordered) assert_true(fb_sim_prioritise(&copy, seed, number));
    assert_true(copy.round_count <= FB_SIM_MUTATED_ROUNDS || copy.round_count == plan->round_count);
    char *text = text_of(&copy);
    fb_sim_plan_free(&copy);
    return text;
}

static void mutations_are_schedules(void **state)
{
    (void)state;
    fb_sim_plan plan = recorded(1), other = recorded(2);
    char *before = NULL;
    uint32_t same = 0;
    for (uint64_t number = 0; number < 400; number++) {
        char *text = made(&plan, &other, number, number % 3 == 0);
        char *again = made(&plan, &other, number, number % 3 == 0);
        assert_string_equal(text, again);
        free(again);
        fb_sim_plan read;
        fb_sim_plan_error error;
        if (!fb_sim_plan_parse(text, strlen(text), &read, &error)) {
            fail_msg("number %u, line %u: %s", (unsigned)number, (unsigned)error.line, error.text);
        }
        /* What is expected of it was of another run. */
        assert_int_equal(read.expect, FB_SIM_EXPECT_NOTHING);
        char *printed = text_of(&read);
        assert_string_equal(text, printed);
        free(printed);
        fb_sim_plan_free(&read);
        same += before != NULL && strcmp(before, text) == 0;
        free(before);
        before = text;
    }
    free(before);
    assert_true(same < 8);
    fb_sim_plan_free(&plan);
    fb_sim_plan_free(&other);
}

static void no_round_has_too_many_windows(void **state)
{
    (void)state;
    fb_sim_plan plan = recorded(1);
    fb_sim_line window = {0};
    for (uint32_t i = 0; i < plan.line_count; i++) {
        if (plan.lines[i].kind == FB_SIM_LINE_WINDOW) window = plan.lines[i];
    }
    assert_int_equal(window.kind, FB_SIM_LINE_WINDOW);
    for (uint32_t i = 0; i < FB_SIM_WINDOWS_MAX; i++) {
        fb_sim_line *line = fb_sim_plan_line_add(&plan);
        assert_non_null(line);
        *line = window;
    }
    fb_sim_plan_sort(&plan);
    uint32_t all = plan.line_count, windows = 0;
    fb_sim_windows_limit(&plan);
    for (uint32_t i = 0; i < plan.line_count; i++) {
        windows += plan.lines[i].kind == FB_SIM_LINE_WINDOW && plan.lines[i].round == window.round;
    }
    assert_true(plan.line_count < all);
    assert_int_equal(windows, FB_SIM_WINDOWS_MAX);
    fb_sim_plan_free(&plan);
}

static void a_plan_without_rounds_gets_another_seed(void **state)
{
    (void)state;
    fb_sim_plan plan;
    fb_sim_plan_init(&plan);
    char *text = made(&plan, &plan, 1, true), *plain = text_of(&plan);
    assert_string_not_equal(text, plain);
    free(text);
    free(plain);
}

static void the_map_counts_what_is_new(void **state)
{
    (void)state;
    static fb_sim_seen all, one;
    memset(&all, 0, sizeof all);
    memset(&one, 0, sizeof one);
    one.bits[0] = 5;
    one.bits[FB_SIM_SEEN_BITS / 64 - 1] = UINT64_C(1) << 63;
    assert_int_equal(fb_sim_seen_add(&all, &one), 3);
    assert_int_equal(fb_sim_seen_add(&all, &one), 0);
    one.bits[0] = 7;
    assert_int_equal(fb_sim_seen_add(&all, &one), 1);
    assert_int_equal(fb_sim_seen_count(&all), 4);
}

/* Its run had so many steps and showed one trait. */
static void add(fb_sim_pool *pool, const fb_sim_plan *plan, uint64_t id, uint64_t steps,
                uint32_t trait)
{
    static fb_sim_seen seen;
    memset(&seen, 0, sizeof seen);
    seen.traits[trait / 64] = UINT64_C(1) << (trait % 64);
    fb_sim_plan copy;
    assert_true(fb_sim_plan_copy(&copy, plan));
    (void)fb_sim_pool_saw(pool, &seen);
    fb_sim_pool_add(pool, &copy, id, steps, &seen);
}

static uint32_t times(fb_sim_pool *pool, uint64_t id)
{
    uint32_t count = 0;
    for (uint64_t number = 0; number < 4000; number++) {
        count += pool->members[fb_sim_pool_pick(pool, seed, number)].id == id;
    }
    return count;
}

static bool holds(const fb_sim_pool *pool, uint64_t id)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->members[i].id == id) return true;
    }
    return false;
}

static void the_pool_keeps_who_pays(void **state)
{
    (void)state;
    char folder[] = "/tmp/faberio-pool-XXXXXX";
    assert_non_null(mkdtemp(folder));
    fb_sim_plan plan = recorded(3);
    fb_sim_pool pool;
    assert_true(fb_sim_pool_open(&pool, folder));
    assert_int_equal(fb_sim_pool_pick(&pool, seed, 1), UINT32_MAX);
    for (uint64_t id = 1; id <= FB_SIM_POOL_MAX; id++) add(&pool, &plan, id, 8000, 1);
    /* Tried in vain, it makes room; with success, it is picked more often than any other. */
    for (int i = 0; i < 20; i++) {
        fb_sim_pool_tried(&pool, 5, false);
        fb_sim_pool_tried(&pool, 9, true);
    }
    fb_sim_pool_tried(&pool, 7777, true);
    add(&pool, &plan, 1000, 1000000, 1);
    assert_int_equal(pool.count, FB_SIM_POOL_MAX);
    assert_false(holds(&pool, 5));
    assert_true(holds(&pool, 9) && holds(&pool, 1000));
    assert_true(times(&pool, 1000) < 30);
    fb_sim_pool_close(&pool);
    /* It outlives the process. */
    assert_true(fb_sim_pool_open(&pool, folder));
    assert_int_equal(pool.count, FB_SIM_POOL_MAX);
    assert_false(holds(&pool, 5));
    assert_true(holds(&pool, 1000));
    char *text = text_of(&plan), *kept = text_of(&pool.members[0].plan);
    assert_string_equal(text, kept);
    free(text);
    free(kept);
    for (uint32_t i = 0; i < pool.count; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%llu.sched", folder,
                 (unsigned long long)pool.members[i].id);
        assert_int_equal(unlink(path), 0);
    }
    fb_sim_pool_close(&pool);
    assert_int_equal(rmdir(folder), 0);
    fb_sim_plan_free(&plan);
}

/* What few have shown is worth more than what all have, and the same in fewer steps is worth more.
 */
static void the_pool_prefers_what_is_rare_and_short(void **state)
{
    (void)state;
    fb_sim_plan plan = recorded(3);
    fb_sim_pool pool;
    assert_true(fb_sim_pool_open(&pool, NULL));
    static fb_sim_seen seen;
    memset(&seen, 0, sizeof seen);
    seen.traits[0] = 6;
    assert_int_equal(fb_sim_pool_saw(&pool, &seen), 2);
    assert_int_equal(fb_sim_pool_saw(&pool, &seen), 0);
    for (uint64_t id = 1; id <= 10; id++) add(&pool, &plan, id, 8000, 1);
    add(&pool, &plan, 11, 8000, 2);
    add(&pool, &plan, 12, 2000, 1);
    assert_true(times(&pool, 11) > 2 * times(&pool, 1));
    assert_true(times(&pool, 12) > 2 * times(&pool, 2));
    fb_sim_pool_close(&pool);
    /* One that is too long loses its first rounds. */
    fb_sim_plan full = recorded(5);
    while (full.line_count <= FB_SIM_POOL_LINES_MAX) {
        fb_sim_line *line = fb_sim_plan_line_add(&full);
        assert_non_null(line);
        *line = full.lines[0];
    }
    fb_sim_plan_round *round = fb_sim_plan_round_add(&full);
    assert_non_null(round);
    *round = (fb_sim_plan_round){.number = 900, .length_ns = 1000000000};
    fb_sim_line *late = fb_sim_plan_line_add(&full);
    assert_non_null(late);
    *late = full.lines[0];
    late->round = full.round_count - 1;
    uint32_t rounds = full.round_count;
    assert_true(fb_sim_pool_open(&pool, NULL));
    fb_sim_pool_add(&pool, &full, 1, 100, &seen);
    assert_int_equal(pool.count, 1);
    assert_true(pool.members[0].plan.round_count < rounds);
    assert_true(pool.members[0].plan.line_count <= FB_SIM_POOL_LINES_MAX);
    const fb_sim_plan *kept = &pool.members[0].plan;
    assert_int_equal(kept->rounds[kept->round_count - 1].number, 900);
    assert_int_equal(kept->lines[kept->line_count - 1].round, kept->round_count - 1);
    fb_sim_pool_close(&pool);
    fb_sim_plan_free(&plan);
}

/* Drawn runs of a pool are of several lengths, and most of them without swarm. */
static void a_drawn_run_has_its_length(void **state)
{
    (void)state;
    static fb_sim_explorer e;
    uint32_t plain = 0, whole = 0, least = 0;
    e.how = FB_SIM_EXPLORE_POOL;
    for (uint64_t number = 0; number < 300; number++) {
        uint64_t events = fb_sim_explorer_events(&e, number, 40000);
        assert_true(events >= 10000 && events <= 40001);
        whole += events > 39000;
        least += events < 10002;
        plain += fb_sim_explorer_plain(&e, number);
    }
    assert_true(whole > 60 && least > 60 && plain > 150 && plain < 290);
    e.how = FB_SIM_EXPLORE_SWARM;
    assert_int_equal(fb_sim_explorer_events(&e, 1, 40000), 40000);
    assert_false(fb_sim_explorer_plain(&e, 1));
    e.how = FB_SIM_EXPLORE_RANDOM;
    assert_int_equal(fb_sim_explorer_events(&e, 1, 40000), 40000);
    assert_true(fb_sim_explorer_plain(&e, 1));
}

static void an_explorer_without_a_pool_draws(void **state)
{
    (void)state;
    static fb_sim_explorer e;
    fb_sim_explore how;
    assert_false(fb_sim_explore_read("", &how));
    assert_false(fb_sim_explore_read("pools", &how));
    assert_true(fb_sim_explore_read("priority", &how));
    assert_int_equal(how, FB_SIM_EXPLORE_PRIORITY);
    assert_true(fb_sim_explorer_open(&e, FB_SIM_EXPLORE_POOL, NULL));
    fb_sim_plan plan;
    uint64_t parent = 0;
    for (uint64_t number = 0; number < 50; number++) {
        assert_false(fb_sim_explorer_next(&e, number, &plan, &parent));
    }
    fb_sim_plan member = recorded(4);
    static fb_sim_seen seen;
    memset(&seen, 0, sizeof seen);
    seen.traits[7] = 9;
    fb_sim_pool_add(&e.pool, &member, 77, 3000, &seen);
    uint32_t played = 0;
    for (uint64_t number = 0; number < 64; number++) {
        if (!fb_sim_explorer_next(&e, number, &plan, &parent)) continue;
        assert_int_equal(parent, 77);
        fb_sim_plan_free(&plan);
        played++;
    }
    assert_true(played > 20 && played < 44);
    fb_sim_explorer_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutations_are_schedules),
        cmocka_unit_test(no_round_has_too_many_windows),
        cmocka_unit_test(a_plan_without_rounds_gets_another_seed),
        cmocka_unit_test(the_map_counts_what_is_new),
        cmocka_unit_test(the_pool_keeps_who_pays),
        cmocka_unit_test(the_pool_prefers_what_is_rare_and_short),
        cmocka_unit_test(a_drawn_run_has_its_length),
        cmocka_unit_test(an_explorer_without_a_pool_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
