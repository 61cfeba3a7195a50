/* SPDX-License-Identifier: Apache-2.0 */
/* What is recorded is a schedule, and playing it is the same run: with every fault of the
 * catalogue, whatever the swarm draws for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/run.h"
#include "sim/schedule/schedule.h"
#include "sim/workload/director.h"

static fb_sim_config config_of(uint64_t seed, uint32_t nodes, uint64_t events)
{
    fb_sim_config config = fb_sim_config_default();
    config.seed = (fb_seed){seed, 0};
    snprintf(config.seed_text, sizeof config.seed_text, "%llu", (unsigned long long)seed);
    config.nodes = nodes;
    config.events = events;
    config.quiet = true;
    config.store_items = 1u << 13;
    config.blob_bytes = UINT64_C(64) << 20;
    return config;
}

static void same_again(fb_sim_config config, const char *what)
{
    fb_sim_plan plan, read;
    fb_sim_plan_error error;
    fb_sim_verdict verdict, again;
    char *text = NULL;
    size_t len = 0;
    fb_sim_plan_init(&plan);
    fb_sim_plan_from_config(&plan, &config, NULL);
    config.record = &plan;
    assert_true(fb_sim_run(&config, &verdict));
    assert_true(verdict.recorded);
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    fb_sim_plan_print(&plan, out);
    assert_int_equal(fclose(out), 0);
    if (!fb_sim_plan_parse(text, len, &read, &error)) {
        fail_msg("%s, seed %s, line %u: %s", what, config.seed_text, (unsigned)error.line,
                 error.text);
    }
    fb_sim_config played;
    fb_sim_plan_config(&read, &played);
    played.quiet = true;
    assert_true(fb_sim_run(&played, &again));
    if (again.hash.lo != verdict.hash.lo || again.hash.hi != verdict.hash.hi) {
        fail_msg("%s, seed %s: %llu steps, played %llu", what, config.seed_text,
                 (unsigned long long)verdict.events, (unsigned long long)again.events);
    }
    free(text);
    fb_sim_plan_free(&plan);
    fb_sim_plan_free(&read);
}

static void with_each_fault(void **state)
{
    (void)state;
    for (uint32_t fault = 0; fault < FB_SIM_FAULTS; fault++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            fb_sim_config config = config_of(seed, 3, 1500);
            fb_sim_faults_add(&config.only, fault);
            same_again(config, fb_sim_fault_rows[fault].name);
        }
    }
}

static void as_the_swarm_draws(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) same_again(config_of(seed, 5, 6000), "swarm");
}

/* The steps are used up while a window is open: the heal ends it, here and when it is played. What
 * that leaves (a lost disk) is known before the core is chosen (seed 46). */
static void used_up_in_a_window(void **state)
{
    (void)state;
    for (uint64_t seed = 40; seed <= 50; seed++) {
        fb_sim_config config = config_of(seed, 3, 700);
        fb_sim_faults_add(&config.only, FB_SIM_FAULT_FORGET);
        same_again(config, "used up");
    }
}

/* Wherever that is: in the set-up, in a round, between the ticks of one burst. Played again, the
 * run ends there as well. */
static void as_many_steps_as_were_asked_for(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {1, 2, 77, 700, 1501, 4999};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            fb_sim_config config = config_of(seed, 3, lengths[i]);
            if (seed == 3) fb_sim_faults_add(&config.only, FB_SIM_FAULT_TIMER_BURST);
            fb_sim_verdict verdict;
            assert_true(fb_sim_run(&config, &verdict));
            assert_int_equal(verdict.result, FB_SIM_PASS);
            assert_int_equal(verdict.events, lengths[i]);
            assert_false(verdict.stopped);
            same_again(config, "so many steps");
        }
    }
}

/* Whoever turns a world by itself comes to the same end, and a limit before it stops the run. */
static void a_world_ends_with_its_last_step(void **state)
{
    (void)state;
    fb_sim_config config = config_of(5, 3, 2000);
    fb_sim_verdict verdict;
    fb_sim_world *world = fb_sim_world_create(&config);
    assert_non_null(world);
    fb_sim_director_start(world);
    while (fb_sim_world_next(world)) {
    }
    assert_int_equal(world->steps, 2000);
    fb_hash128 hash = fb_sim_trace_hash(&world->trace);
    fb_sim_world_destroy(world);
    assert_true(fb_sim_run(&config, &verdict));
    assert_true(verdict.hash.lo == hash.lo && verdict.hash.hi == hash.hi);
    config.stop_at_step = 1234;
    assert_true(fb_sim_run(&config, &verdict));
    assert_int_equal(verdict.events, 1234);
    assert_true(verdict.stopped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_steps_as_were_asked_for),
        cmocka_unit_test(a_world_ends_with_its_last_step),
        cmocka_unit_test(with_each_fault),
        cmocka_unit_test(as_the_swarm_draws),
        cmocka_unit_test(used_up_in_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
