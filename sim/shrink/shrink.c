/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/shrink/shrink.h"

#include <signal.h>

#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/schedule/verbs.h"
#include "sim/usage.h"

#define SECOND UINT64_C(1000000000)

/* Other seeds are tried while that takes no longer. A failure that hangs on a coincidence would
 * otherwise forbid every change. */
#define SEEDS_NS (150 * UINT64_C(1000000))

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

bool fb_sim_shrink_is_over(const fb_sim_shrinker *s)
{
    return interrupted != 0 || fb_sim_real_ns() >= s->options.deadline_ns;
}

static bool same_failure(const fb_sim_shrinker *s, const fb_sim_report *report)
{
    return report->result == s->report.result && strcmp(report->check, s->report.check) == 0;
}

static void expect(fb_sim_plan *plan, const fb_sim_report *report)
{
    plan->expect = FB_SIM_EXPECT_VIOLATES;
    snprintf(plan->check, sizeof plan->check, "%s", report->check);
    /* A process that crashed has no hash. */
    plan->has_hash = report->result != FB_SIM_CRASHED && report->result != FB_SIM_RESOURCE;
    plan->hash = report->hash;
}

static void progress(fb_sim_shrinker *s)
{
    uint64_t now = fb_sim_real_ns();
    if (now < s->saved_ns + SECOND) return;
    s->saved_ns = now;
    if (s->options.path != NULL) fb_sim_plan_save(s->options.path, &s->best);
    if (!s->options.verbose) return;
    fprintf(stderr, "shrink: %u lines after %u runs, %llu.%llu s\n",
            (unsigned)fb_sim_plan_size(&s->best), (unsigned)s->runs,
            (unsigned long long)((now - s->began_ns) / SECOND),
            (unsigned long long)((now - s->began_ns) / (SECOND / 10) % 10));
}

static void take(fb_sim_shrinker *s, fb_sim_plan *candidate, const fb_sim_report *report)
{
    fb_sim_plan_free(&s->best);
    s->best = *candidate;
    s->report = *report;
    s->improved = true;
    expect(&s->best, report);
    progress(s);
}

bool fb_sim_shrink_try(fb_sim_shrinker *s, fb_sim_plan *candidate)
{
    for (uint32_t seed = 0; seed <= s->other_seeds; seed++) {
        if (fb_sim_shrink_is_over(s)) break;
        if (seed > 1 && s->run_ns * seed > SEEDS_NS) break;
        if (seed != 0) {
            char text[sizeof candidate->seed_text];
            snprintf(text, sizeof text, "%u", (unsigned)seed);
            if (strcmp(text, s->best.seed_text) == 0) continue;
            memcpy(candidate->seed_text, text, sizeof text);
        }
        fb_sim_report report;
        s->runs++;
        uint64_t before = fb_sim_real_ns();
        fb_sim_apart_play(candidate, false, s->limit, &report);
        s->run_ns = (s->run_ns * 7 + (fb_sim_real_ns() - before)) / 8;
        if (!same_failure(s, &report)) continue;
        take(s, candidate, &report);
        return true;
    }
    fb_sim_plan_free(candidate);
    return false;
}

bool fb_sim_shrink(const fb_sim_plan *plan, const fb_sim_shrink_options *options,
                   fb_sim_shrinker *s)
{
    *s = (fb_sim_shrinker){.options = *options, .limit = UINT64_MAX};
    s->began_ns = s->saved_ns = fb_sim_real_ns();
    fb_sim_apart_play(plan, false, UINT64_MAX, &s->report);
    s->runs = 1;
    bool other =
        plan->expect == FB_SIM_EXPECT_VIOLATES && strcmp(plan->check, s->report.check) != 0;
    if (s->report.result == FB_SIM_PASS || other) return false;
    if (!fb_sim_plan_copy(&s->best, plan)) fb_sim_fail_resource("memory of this machine");
    expect(&s->best, &s->report);
    s->limit = s->report.events * 2 + 20000;
    s->run_ns = fb_sim_real_ns() - s->began_ns;
    s->other_seeds = 1;
    fb_sim_shrink_rounds(s);
    fb_sim_shrink_classes(s);
    fb_sim_shrink_thin(s);
    s->other_seeds = 3;
    fb_sim_shrink_rounds(s);
    fb_sim_shrink_classes(s);
    fb_sim_shrink_sizes(s);
    fb_sim_shrink_thin(s);
    fb_sim_shrink_join(s);
    fb_sim_shrink_series(s);
    fb_sim_shrink_lines(s);
    /* What one pass took away may have been what another needed: until none helps. */
    for (int again = 0; again < 8; again++) {
        s->improved = false;
        fb_sim_shrink_rounds(s);
        fb_sim_shrink_nodes(s);
        fb_sim_shrink_header(s);
        fb_sim_shrink_join(s);
        fb_sim_shrink_series(s);
        fb_sim_shrink_lines(s);
        fb_sim_shrink_times(s);
        fb_sim_shrink_values(s);
        if (!s->improved || fb_sim_shrink_is_over(s)) break;
    }
    fb_sim_plan sorted;
    if (s->best.line_count < 2000 && fb_sim_plan_copy(&sorted, &s->best)) {
        fb_sim_plan_sort(&sorted);
        s->other_seeds = 0;
        fb_sim_shrink_try(s, &sorted);
    }
    return true;
}

int fb_sim_shrink_main(int argc, char **argv)
{
    const char *path = NULL, *out = NULL;
    uint64_t for_ns = 600 * SECOND;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            out = argv[++i];
        } else if (strcmp(argv[i], "--for") == 0 && i + 1 < argc) {
            if (!fb_sim_parse_time(argv[++i], &for_ns)) {
                return fb_sim_misused("shrink", "not a time", argv[i]);
            }
        } else if (argv[i][0] == '-' || path != NULL) {
            return fb_sim_misused("shrink", "not understood", argv[i]);
        } else {
            path = argv[i];
        }
    }
    if (path == NULL || out == NULL) {
        return fb_sim_misused("shrink", "FILE and -o OUT are needed", NULL);
    }
    if (strcmp(path, out) == 0) return fb_sim_refuse("the original is not written over", out);
    fb_sim_plan plan;
    if (!fb_sim_plan_load(path, &plan)) return FB_SIM_EXIT_USAGE;
    if (plan.bug[0] != 0) {
        int code = fb_sim_mutant_switch(argc, argv, plan.bug);
        if (code >= 0) return code;
    }
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    fb_sim_shrink_options options = {out, fb_sim_real_ns() + for_ns, true};
    fb_sim_shrinker s;
    bool good = fb_sim_shrink(&plan, &options, &s);
    fb_sim_config config;
    fb_sim_plan_config(&plan, &config);
    fb_sim_verdict verdict;
    fb_sim_verdict_of(&s.report, &verdict);
    int code = fb_sim_result_exit(verdict.result);
    if (!good) {
        char why[256];
        fb_sim_outcome_of(&plan, &verdict, why, sizeof why);
        fb_sim_refuse(verdict.result == FB_SIM_PASS ? "it does not fail" : why, path);
        code = verdict.result == FB_SIM_PASS ? FB_SIM_EXIT_ORACLE : code;
    } else if (!fb_sim_plan_save(out, &s.best)) {
        fb_sim_refuse("cannot write the schedule", out);
        code = FB_SIM_EXIT_RESOURCE;
    } else {
        verdict.schedule = out;
        fb_sim_plan_print(&s.best, stdout);
        fprintf(stderr, "shrunk %u lines to %u, %llu events to check %s, in %u runs, %llu s\n",
                (unsigned)fb_sim_plan_size(&plan), (unsigned)fb_sim_plan_size(&s.best),
                (unsigned long long)s.report.events, s.report.check, (unsigned)s.runs,
                (unsigned long long)((fb_sim_real_ns() - s.began_ns) / SECOND));
        fb_sim_print_replay(out);
        fb_sim_plan_free(&s.best);
    }
    fb_sim_plan_free(&plan);
    fb_sim_print_verdict(&config, &verdict);
    return code;
}
