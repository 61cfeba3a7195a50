/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim test`: every schedule of a corpus has to come to what it expects. One with a planted
 * bug is played twice: with the bug it violates its check, without it passes. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/schedule/apart.h"
#include "sim/schedule/verbs.h"
#include "sim/usage.h"

#define DEPTH_MAX 16

/* A schedule of a corpus that has not ended after so many steps is none for a corpus. */
#define STEPS_MAX 4000000u

typedef struct corpus {
    char **paths;
    uint32_t count, cap;
    bool broken; /* something could not be read */
} corpus;

static void add(corpus *c, const char *path)
{
    if (c->count == c->cap) {
        uint32_t cap = c->cap == 0 ? 64 : c->cap * 2;
        char **paths = realloc(c->paths, cap * sizeof *paths);
        if (paths == NULL) fb_sim_fail_resource("memory of this machine");
        c->paths = paths;
        c->cap = cap;
    }
    c->paths[c->count] = strdup(path);
    if (c->paths[c->count++] == NULL) fb_sim_fail_resource("memory of this machine");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_schedule(const char *name)
{
    size_t len = strlen(name);
    return len > 6 && strcmp(name + len - 6, ".sched") == 0;
}

/* Files by name, folders in their place among them. */
static void collect(corpus *c, const char *path, int depth)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        fb_sim_refuse("cannot be read", path);
        c->broken = true;
        return;
    }
    if (!S_ISDIR(info.st_mode)) {
        if (depth == 0 || is_schedule(path)) add(c, path);
        return;
    }
    struct dirent **entries;
    int count = depth > DEPTH_MAX ? -1 : scandir(path, &entries, not_hidden, by_name);
    if (count < 0) {
        fb_sim_refuse("cannot be read", path);
        c->broken = true;
        return;
    }
    for (int i = 0; i < count; i++) {
        char child[PATH_MAX];
        int n = snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
        if (n > 0 && (size_t)n < sizeof child) collect(c, child, depth + 1);
        free(entries[i]);
    }
    free(entries);
}

typedef struct tally {
    uint32_t outcomes[3];
    uint64_t events;
    uint64_t began_ns;
    fb_sim_outcome worst; /* of the schedule that is played */
    /* The first that failed, or else the first that is stale. */
    fb_sim_result result;
    char check[40];
    const char *path; /* NULL: none */
} tally;

static void worse(tally *t, const char *path, fb_sim_outcome outcome, const char *why,
                  fb_sim_result result, const char *check)
{
    bool failed = outcome == FB_SIM_OUTCOME_FAILED;
    fprintf(stderr, "%s: %s: %s\n", failed ? "failed" : "stale", path, why);
    if (failed) fb_sim_print_replay(path);
    bool had_failed = t->path != NULL && t->result != FB_SIM_ORACLE;
    if (t->path != NULL && (had_failed || !failed)) return;
    t->path = path;
    t->result = failed ? result : FB_SIM_ORACLE;
    snprintf(t->check, sizeof t->check, "%s", check);
}

/* One run of a schedule: as it says, or without its planted bug. */
static void play(tally *t, const char *path, const fb_sim_plan *plan, bool sound)
{
    fb_sim_report report;
    fb_sim_verdict verdict;
    char why[256];
    fb_sim_apart_play(plan, sound, STEPS_MAX, &report);
    fb_sim_verdict_of(&report, &verdict);
    t->events += report.events;
    fb_sim_outcome outcome = FB_SIM_OUTCOME_PASSED;
    if (!report.ended) {
        outcome = FB_SIM_OUTCOME_FAILED;
        snprintf(why, sizeof why, "it does not end within %u steps", STEPS_MAX);
        report.result = FB_SIM_RESOURCE;
    } else if (!sound) {
        outcome = fb_sim_outcome_of(plan, &verdict, why, sizeof why);
    } else if (report.result != FB_SIM_PASS) {
        outcome = FB_SIM_OUTCOME_FAILED;
        snprintf(why, sizeof why, "without its planted bug it violates %s", report.check);
    }
    if (outcome != FB_SIM_OUTCOME_PASSED) {
        worse(t, path, outcome, why, report.result, report.check);
    }
    t->worst = outcome > t->worst ? outcome : t->worst;
}

static void closing(const tally *t)
{
    bool good = t->path == NULL;
    printf("{\"result\":\"%s\",\"seed\":null,\"events\":%llu,\"hash\":null,\"check\":",
           fb_sim_result_name(good ? FB_SIM_PASS : t->result), (unsigned long long)t->events);
    fb_sim_print_json_text(t->check[0] == 0 ? NULL : t->check);
    printf(",\"stall\":null,\"schedule\":");
    fb_sim_print_json_text(t->path);
    uint64_t took_ms = (fb_sim_real_ns() - t->began_ns) / 1000000;
    printf(",\"events_per_s\":%llu,\"passed\":%u,\"failed\":%u,\"stale\":%u}\n",
           (unsigned long long)(t->events * 1000 / (took_ms + 1)), t->outcomes[0], t->outcomes[1],
           t->outcomes[2]);
    fflush(stdout);
}

int fb_sim_test_main(int argc, char **argv)
{
    corpus c = {0};
    bool sound = false;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--sound") == 0) {
            sound = true;
        } else if (argv[i][0] == '-') {
            return fb_sim_misused("test", "no flag of this name", argv[i]);
        } else {
            collect(&c, argv[i], 0);
        }
    }
    if (c.broken) return FB_SIM_EXIT_USAGE;
    /* Nothing to test is no success. */
    if (c.count == 0) return fb_sim_refuse("no schedule (*.sched) to test", NULL);
    fb_sim_plan *plans = calloc(c.count, sizeof *plans);
    if (plans == NULL) fb_sim_fail_resource("memory of this machine");
    const char *bug = NULL;
    for (uint32_t i = 0; i < c.count; i++) {
        c.broken = !fb_sim_plan_load(c.paths[i], &plans[i]) || c.broken;
        if (bug == NULL && plans[i].bug[0] != 0) bug = plans[i].bug;
    }
    if (c.broken) return FB_SIM_EXIT_USAGE;
    if (bug != NULL && !sound) {
        int code = fb_sim_mutant_switch(argc, argv, bug);
        if (code >= 0) return code;
    }
    tally t = {.began_ns = fb_sim_real_ns()};
    for (uint32_t i = 0; i < c.count; i++) {
        t.worst = FB_SIM_OUTCOME_PASSED;
        if (!sound) play(&t, c.paths[i], &plans[i], false);
        if (sound || plans[i].bug[0] != 0) play(&t, c.paths[i], &plans[i], true);
        t.outcomes[t.worst]++;
        fb_sim_plan_free(&plans[i]);
    }
    free(plans);
    closing(&t);
    for (uint32_t i = 0; i < c.count; i++) free(c.paths[i]);
    free(c.paths);
    return t.path == NULL ? FB_SIM_EXIT_PASS : fb_sim_result_exit(t.result);
}
