/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/main_sim.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/disk/main_disk.h"
#include "sim/flags.h"
#include "sim/hunt/hunt.h"
#include "sim/record/main_record.h"
#include "sim/run.h"
#include "sim/schedule/verbs.h"
#include "sim/shrink/shrink.h"
#include "sim/step/diff.h"
#include "sim/step/step.h"
#include "sim/usage.h"
#include "sim/vectors/vectors.h"
#include "sim/view/view.h"
#include "sim/weather/weather.h"
#include "sim/workload/director.h"
#include "sim/workload/workload.h"

void fb_sim_round_line(fb_sim_world *world)
{
    if (world->config.quiet || (world->director->round != 1 && !world->config.verbose)) return;
    char faults[1024];
    char operations[128] = "";
    fb_sim_weather_text(world, faults, sizeof faults);
    if (!world->config.faults) snprintf(faults, sizeof faults, "none");
    size_t used = 0;
    for (uint32_t op = 0; op < FB_SIM_OPS; op++) {
        if (!world->workload->on[op]) continue;
        int n = snprintf(operations + used, sizeof operations - used, " %s",
                         fb_sim_operation_names[op]);
        if (n > 0) used += (size_t)n;
    }
    printf("seed %s nodes %u round %llu: operations%s; think %llu ms; faults %s\n",
           world->config.seed_text, (unsigned)world->config.nodes,
           (unsigned long long)world->director->round, operations,
           (unsigned long long)(world->workload->think_ns / 1000000), faults);
}

/* The words that make the same run. */
static void again(int argc, char **argv)
{
    fprintf(stderr, "again: %s run", fb_sim_command);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--timeline") == 0 || strcmp(argv[i], "--verbose") == 0) continue;
        fprintf(stderr, " %s", argv[i]);
    }
    fputc('\n', stderr);
}

static int run_main(int argc, char **argv)
{
    fb_sim_config config = fb_sim_config_default();
    const char *mutant = NULL;
    const char *schedule = NULL;
    bool force = false;
    for (int i = 2; i < argc; i++) {
        const char *flag = argv[i];
        if (strcmp(flag, "--timeline") == 0) {
            config.timeline = true;
        } else if (strcmp(flag, "--verbose") == 0) {
            config.verbose = true;
        } else if (strcmp(flag, "--force") == 0) {
            force = true;
        } else if (strcmp(flag, "--schedule") == 0) {
            if (i + 1 == argc) return fb_sim_misused("run", "a flag without its value", flag);
            schedule = argv[++i];
        } else {
            fb_sim_flag read = fb_sim_flag_read(argc, argv, &i, &config, &mutant);
            if (read == FB_SIM_FLAG_UNKNOWN)
                return fb_sim_misused("run", "no flag of this name", flag);
            if (read == FB_SIM_FLAG_REFUSED) return FB_SIM_EXIT_USAGE;
        }
    }
    if (mutant != NULL) {
        int code = fb_sim_mutant_switch(argc, argv, mutant);
        if (code >= 0) return code;
    }
    /* It may be one that somebody wrote, or shrank for an hour. */
    if (schedule != NULL && !force && access(schedule, F_OK) == 0) {
        return fb_sim_refuse("there is a file already (--force writes over it)", schedule);
    }
    fb_sim_verdict verdict;
    if (schedule != NULL) return fb_sim_record_run(&config, mutant, schedule);
    if (!fb_sim_run(&config, &verdict)) fb_sim_fail_resource("memory of this machine");
    if (verdict.result != FB_SIM_PASS) again(argc, argv);
    fb_sim_print_verdict(&config, &verdict);
    return fb_sim_result_exit(verdict.result);
}

/* A crash of the program under test is a verdict too. The handler only writes and leaves. */
static void crashed(int number)
{
    static const char line[] = "{\"result\":\"crash\",\"seed\":null,\"events\":0,\"hash\":null,"
                               "\"check\":\"signal\",\"stall\":null,\"schedule\":null,"
                               "\"events_per_s\":0}\n";
    signal(number, SIG_DFL);
    fb_sim_fail_tell("signal");
    ssize_t ignored = write(STDOUT_FILENO, line, sizeof line - 1);
    (void)ignored;
    _exit(FB_SIM_EXIT_CRASH);
}

/* `help`, `help VERB` or `VERB ... --help`: the verb that is asked about, "" for all; NULL for no
 * such question. */
static const char *asked_about(int argc, char **argv)
{
    if (strcmp(argv[1], "help") == 0) return argc > 2 ? argv[2] : "";
    if (strcmp(argv[1], "--help") == 0) return "";
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) return argv[1];
    }
    return NULL;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"run", run_main},
    {"replay", fb_sim_replay_main},
    {"hunt", fb_sim_hunt_main},
    {"shrink", fb_sim_shrink_main},
    {"test", fb_sim_test_main},
    {"diff", fb_sim_diff_main},
    {"step", fb_sim_step_main},
    {"record", fb_sim_record_plain_main},
    {"view", fb_sim_view_main},
    {"disk", fb_sim_disk_main},
    {"export", fb_sim_export_main},
    {"bench", fb_sim_bench_main},
    {"faults", fb_sim_catalogue_main},
    {"checks", fb_sim_catalogue_main},
    {"mutants", fb_sim_catalogue_main},
    {"limits", fb_sim_catalogue_main},
};

int fb_sim_main(int argc, char **argv)
{
    if (argc < 2) {
        fb_sim_refuse("a verb is missing", NULL);
        fb_sim_usage_all(stderr);
        return FB_SIM_EXIT_USAGE;
    }
    const char *about = asked_about(argc, argv);
    if (about != NULL && about[0] == 0) fb_sim_usage_all(stdout);
    if (about != NULL && (about[0] == 0 || fb_sim_usage(stdout, about))) return 0;
#ifndef __SANITIZE_ADDRESS__
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    signal(SIGFPE, crashed);
#else
    (void)crashed;
#endif
    const char *verb = about != NULL ? about : argv[1];
    for (size_t i = 0; about == NULL && i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, verb) == 0) return verbs[i].run(argc, argv);
    }
    fb_sim_refuse("no verb of this name", verb);
    fb_sim_usage_all(stderr);
    return FB_SIM_EXIT_USAGE;
}
