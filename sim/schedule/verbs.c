/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule/verbs.h"

#include <limits.h>
#include <unistd.h>

#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/usage.h"

bool fb_sim_plan_load(const char *path, fb_sim_plan *out)
{
    fb_sim_plan_error error;
    if (fb_sim_plan_read(path, out, &error)) return true;
    char text[256];
    if (error.line == 0) {
        snprintf(text, sizeof text, "%s", error.text);
    } else {
        snprintf(text, sizeof text, "line %u, column %u: %s", (unsigned)error.line,
                 (unsigned)error.column, error.text);
    }
    fb_sim_refuse(text, path);
    return false;
}

bool fb_sim_plan_save(const char *path, const fb_sim_plan *plan)
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof temporary) return false;
    FILE *out = fopen(temporary, "wb");
    if (out == NULL) return false;
    fb_sim_plan_print(plan, out);
    bool good = fflush(out) == 0 && ferror(out) == 0 && fsync(fileno(out)) == 0;
    good = fclose(out) == 0 && good;
    good = good && rename(temporary, path) == 0;
    if (!good) unlink(temporary);
    return good;
}

void fb_sim_print_replay(const char *path)
{
    fprintf(stderr, "replay: %s replay %s\n", fb_sim_command, path);
}

int fb_sim_record_run(fb_sim_config *config, const char *bug, const char *path)
{
    fb_sim_plan plan;
    fb_sim_plan_init(&plan);
    fb_sim_plan_from_config(&plan, config, bug);
    config->record = &plan;
    config->record_path = path;
    fb_sim_verdict verdict;
    if (!fb_sim_run(config, &verdict)) fb_sim_fail_resource("memory of this machine");
    verdict.schedule = path;
    int code = fb_sim_result_exit(verdict.result);
    if (!verdict.recorded || !fb_sim_plan_save(path, &plan)) {
        fb_sim_refuse(verdict.recorded ? "cannot write the schedule" : "too long for a schedule",
                      path);
        verdict.schedule = NULL;
        code = FB_SIM_EXIT_RESOURCE;
    } else if (verdict.result != FB_SIM_PASS) {
        fb_sim_print_replay(path);
    }
    fb_sim_plan_free(&plan);
    fb_sim_print_verdict(config, &verdict);
    return code;
}

static bool same_hash(fb_hash128 a, fb_hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

fb_sim_outcome fb_sim_outcome_of(const fb_sim_plan *plan, const fb_sim_verdict *verdict, char *why,
                                 size_t cap)
{
    bool passed = verdict->result == FB_SIM_PASS;
    const char *check = verdict->check == NULL ? "none" : verdict->check;
    if (plan->expect == FB_SIM_EXPECT_VIOLATES) {
        if (passed) {
            snprintf(why, cap, "it no longer violates %s", plan->check);
            return FB_SIM_OUTCOME_STALE;
        }
        if (strcmp(check, plan->check) != 0) {
            snprintf(why, cap, "it violates %s, not %s", check, plan->check);
            return FB_SIM_OUTCOME_FAILED;
        }
    } else if (!passed) {
        snprintf(why, cap, "it violates %s", check);
        return FB_SIM_OUTCOME_FAILED;
    }
    if (verdict->unreached != 0) {
        char line[128];
        fb_sim_plan_line_text(plan, &plan->lines[verdict->unreached_first], line, sizeof line);
        snprintf(why, cap, "%u lines did not happen, the first: %.100s",
                 (unsigned)verdict->unreached, line);
        return FB_SIM_OUTCOME_STALE;
    }
    if (plan->has_hash && !same_hash(plan->hash, verdict->hash)) {
        char expected[33], is[33];
        fb_sim_trace_text(plan->hash, expected);
        fb_sim_trace_text(verdict->hash, is);
        snprintf(why, cap, "its hash is %s, not %s", is, expected);
        return FB_SIM_OUTCOME_STALE;
    }
    snprintf(why, cap, "as expected");
    return FB_SIM_OUTCOME_PASSED;
}

int fb_sim_replay_main(int argc, char **argv)
{
    const char *path = NULL;
    bool timeline = false, sound = false;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--timeline") == 0) {
            timeline = true;
        } else if (strcmp(argv[i], "--sound") == 0) {
            sound = true;
        } else if (argv[i][0] == '-' || path != NULL) {
            return fb_sim_misused("replay", "not understood", argv[i]);
        } else {
            path = argv[i];
        }
    }
    if (path == NULL) return fb_sim_misused("replay", "no schedule", NULL);
    fb_sim_plan plan;
    if (!fb_sim_plan_load(path, &plan)) return FB_SIM_EXIT_USAGE;
    if (plan.bug[0] != 0 && !sound) {
        int code = fb_sim_mutant_switch(argc, argv, plan.bug);
        if (code >= 0) {
            fb_sim_plan_free(&plan);
            return code;
        }
    }
    fb_sim_config config;
    fb_sim_plan_config(&plan, &config);
    config.timeline = timeline;
    fb_sim_verdict verdict;
    if (!fb_sim_run(&config, &verdict)) fb_sim_fail_resource("memory of this machine");
    verdict.schedule = path;
    char why[256];
    bool expects = plan.expect != FB_SIM_EXPECT_NOTHING && !(sound && plan.bug[0] != 0);
    if (expects && fb_sim_outcome_of(&plan, &verdict, why, sizeof why) != FB_SIM_OUTCOME_PASSED) {
        fprintf(stderr, "not what the schedule expects: %s\n", why);
    }
    if (verdict.result != FB_SIM_PASS) fb_sim_print_replay(path);
    fb_sim_plan_free(&plan);
    fb_sim_print_verdict(&config, &verdict);
    return fb_sim_result_exit(verdict.result);
}
