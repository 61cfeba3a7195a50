/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/main_sim.h"

#include <signal.h>
#include <stdio.h>
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
#include "sim/vectors/vectors.h"
#include "sim/view/view.h"
#include "sim/weather/weather.h"
#include "sim/workload/director.h"
#include "sim/workload/workload.h"

static const char usage[] =
    "usage: faberio sim VERB\n"
    "  run [--seed S] [--nodes N] [--events N | --duration T] [--profile P] [--fast]\n"
    "      [--mutant M] [--only FAULT]... [--documents (A|none)]... [--timeline] [--verbose]\n"
    "      [--schedule OUT [--force]]\n"
    "                 one run; S is an integer or 40 hex digits; P: default, calm, dense;\n"
    "                 A: a node whose records are documents\n"
    "  replay FILE [--timeline] [--sound]\n"
    "                 plays a schedule; --sound: without its planted bug\n"
    "  test DIR|FILE...\n"
    "                 plays a corpus: each has to come to what it expects\n"
    "  hunt [--for T | --seeds A..B] [--jobs J] [--out DIR] [flags of run]\n"
    "                 many runs; failures become schedules in DIR, and lines of its ledger\n"
    "  shrink FILE -o OUT [--for T]\n"
    "                 a schedule that fails, as small as it gets: at most 10 minutes\n"
    "  view (FILE | --seed S ...) (--text | --html OUT | --perfetto OUT)\n"
    "                 pictures of a run\n"
    "  diff A B [flags of run]\n"
    "                 where two runs part: seeds, schedules, programs, flags\n"
    "  step (FILE | --seed S ...) [--json]\n"
    "                 walks through a run, forwards and back\n"
    "  export (FILE | --seed S ...) --vectors OUT [--node A]...\n"
    "                 conformance vectors of a run, for other implementations\n"
    "  record FILE... [--redact OUT]\n"
    "                 what real nodes recorded, replayed\n"
    "  bench [messages|records|all] [--nodes N] [--degree D] [--events N] [--window N]\n"
    "        [--stored] [--fast]\n"
    "                 speed without faults\n"
    "  disk [--calls N | --defects] [--toy log|blob] [--fault F]\n"
    "                 a log and a blob store on a disk that fails, crashed at every call\n"
    "  checks, faults, mutants, limits\n"
    "                 catalogues; `faults --seeds A..B` counts how often each fired\n"
    "The last line is one JSON object. Exit: 0 pass, 10 safety, 11 liveness, 12 crash,\n"
    "13 nondeterminism, 14 resource, 15 oracle doubt, 2 usage.\n";

static int refuse(const char *what, const char *which)
{
    fb_sim_refuse(what, which);
    fputs(usage, stderr);
    return FB_SIM_EXIT_USAGE;
}

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
            if (i + 1 == argc) return refuse("a flag without its value", flag);
            schedule = argv[++i];
        } else {
            fb_sim_flag read = fb_sim_flag_read(argc, argv, &i, &config, &mutant);
            if (read == FB_SIM_FLAG_UNKNOWN) return refuse("no flag of this name", flag);
            if (read == FB_SIM_FLAG_REFUSED) return FB_SIM_EXIT_USAGE;
        }
    }
    if (mutant != NULL) {
        int code = fb_sim_mutant_switch(argc, argv, mutant);
        if (code >= 0) return code;
    }
    /* It may be one that somebody wrote, or shrank for an hour. */
    if (schedule != NULL && !force && access(schedule, F_OK) == 0) {
        return refuse("there is a file already (--force writes over it)", schedule);
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

int fb_sim_main(int argc, char **argv)
{
    if (argc < 2) return refuse("a verb is missing", NULL);
    const char *verb = argv[1];
    if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
#ifndef __SANITIZE_ADDRESS__
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    signal(SIGFPE, crashed);
#else
    (void)crashed;
#endif
    if (strcmp(verb, "run") == 0) return run_main(argc, argv);
    if (strcmp(verb, "replay") == 0) return fb_sim_replay_main(argc, argv);
    if (strcmp(verb, "hunt") == 0) return fb_sim_hunt_main(argc, argv);
    if (strcmp(verb, "shrink") == 0) return fb_sim_shrink_main(argc, argv);
    if (strcmp(verb, "test") == 0) return fb_sim_test_main(argc, argv);
    if (strcmp(verb, "diff") == 0) return fb_sim_diff_main(argc, argv);
    if (strcmp(verb, "step") == 0) return fb_sim_step_main(argc, argv);
    if (strcmp(verb, "record") == 0) return fb_sim_record_plain_main(argc, argv);
    if (strcmp(verb, "view") == 0) return fb_sim_view_main(argc, argv);
    if (strcmp(verb, "disk") == 0) return fb_sim_disk_main(argc, argv);
    if (strcmp(verb, "export") == 0) return fb_sim_export_main(argc, argv);
    if (strcmp(verb, "bench") == 0) return fb_sim_bench_main(argc, argv);
    if (strcmp(verb, "faults") == 0 || strcmp(verb, "checks") == 0 ||
        strcmp(verb, "mutants") == 0 || strcmp(verb, "limits") == 0) {
        return fb_sim_catalogue_main(verb, argc, argv);
    }
    return refuse("no verb of this name", verb);
}
