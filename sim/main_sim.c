/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/main_sim.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/director.h"
#include "sim/mutants.h"
#include "sim/run.h"
#include "sim/weather.h"
#include "sim/workload.h"

static const char usage[] =
    "usage: faberio sim VERB\n"
    "  run [--seed S] [--nodes N] [--events N | --duration T] [--profile P] [--fast]\n"
    "      [--mutant M] [--only FAULT]... [--timeline] [--verbose]\n"
    "                 one run; S is an integer or 40 hex digits; P: default, calm, dense\n"
    "  bench [messages|records|all] [--nodes N] [--degree D] [--events N] [--fast]\n"
    "                 speed without faults\n"
    "  checks, faults, mutants, limits\n"
    "                 catalogues; `faults --seeds A..B` counts how often each fired\n"
    "The last line is one JSON object. Exit: 0 pass, 10 safety, 11 liveness, 12 crash,\n"
    "13 nondeterminism, 14 resource, 15 oracle doubt, 2 usage.\n";

static int refuse(const char *what, const char *which)
{
    fprintf(stderr, "faberio sim: %s%s", what, which == NULL ? "" : ": ");
    /* A word of the command line may hold anything: a terminal must not obey it. */
    for (; which != NULL && *which != 0; which++) {
        unsigned char byte = (unsigned char)*which;
        fprintf(stderr, byte < 0x20 || byte == 0x7f ? "\\x%02x" : "%c", byte);
    }
    fprintf(stderr, "\n%s", usage);
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

/* Another program of the same folder has the planted bugs in it. */
static int run_with_mutant(int argc, char **argv, const char *mutant)
{
#ifdef FB_PLANTED_BUGS
    (void)argc;
    (void)argv;
    fb_planted_bug = fb_sim_mutant_of(mutant);
    if (fb_planted_bug != 0) return -1;
    return refuse("no planted bug of this name (see `faberio sim mutants`)", mutant);
#else
    if (fb_sim_mutant_of(mutant) == 0) {
        return refuse("no planted bug of this name (see `faberio sim mutants`)", mutant);
    }
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 32);
    if (len <= 0) return refuse("cannot find the program's own folder", NULL);
    path[len] = 0;
    char *slash = strrchr(path, '/');
    if (slash == NULL) return refuse("cannot find the program's own folder", NULL);
    strcpy(slash + 1, "faberio-sim-mutants");
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    if (arguments == NULL) return FB_SIM_EXIT_RESOURCE;
    for (int i = 0; i < argc; i++) arguments[i] = argv[i];
    fflush(stdout);
    execv(path, arguments);
    fprintf(stderr, "faberio sim: cannot run %s, the program with the planted bugs\n", path);
    free(arguments);
    return FB_SIM_EXIT_USAGE;
#endif
}

static bool profile_of(const char *name, fb_sim_config *config)
{
    if (strcmp(name, "default") == 0) return true;
    if (strcmp(name, "calm") == 0) {
        config->faults = false;
        return true;
    }
    if (strcmp(name, "dense") == 0) {
        config->carriers_of_16 = 8;
        return true;
    }
    return false;
}

static int run_main(int argc, char **argv)
{
    fb_sim_config config = fb_sim_config_default();
    const char *mutant = NULL;
    uint64_t number;
    for (int i = 2; i < argc; i++) {
        const char *flag = argv[i];
        if (strcmp(flag, "--fast") == 0) {
            config.fast = true;
            config.checks = false;
            continue;
        }
        if (strcmp(flag, "--timeline") == 0) {
            config.timeline = true;
            continue;
        }
        if (strcmp(flag, "--verbose") == 0) {
            config.verbose = true;
            continue;
        }
        if (i + 1 == argc) return refuse("a flag without its value, or none of ours", flag);
        const char *value = argv[++i];
        if (strcmp(flag, "--seed") == 0) {
            if (!fb_sim_parse_seed(value, &config)) return refuse("not a seed", value);
        } else if (strcmp(flag, "--nodes") == 0) {
            if (!fb_sim_parse_number(value, &number) || number < 2 || number > 64) {
                return refuse("--nodes is 2 to 64", value);
            }
            config.nodes = (uint32_t)number;
            if (config.nodes + 8 > config.sizes.links) config.sizes.links = config.nodes + 8;
            if (config.nodes + 8 > config.sizes.addresses)
                config.sizes.addresses = config.nodes + 8;
            config.connections = 64 + config.nodes * config.nodes * 4;
            if (config.connections > 32768) config.connections = 32768;
        } else if (strcmp(flag, "--events") == 0) {
            if (!fb_sim_parse_number(value, &number)) return refuse("not a number", value);
            config.events = number;
        } else if (strcmp(flag, "--duration") == 0) {
            if (!fb_sim_parse_time(value, &number)) return refuse("not a time", value);
            config.duration_ns = number;
            config.events = UINT64_MAX;
        } else if (strcmp(flag, "--profile") == 0) {
            if (!profile_of(value, &config)) return refuse("no profile of this name", value);
        } else if (strcmp(flag, "--only") == 0) {
            uint32_t fault = 0;
            while (fault < FB_SIM_FAULTS && strcmp(value, fb_sim_fault_rows[fault].name) != 0) {
                fault++;
            }
            if (fault == FB_SIM_FAULTS) return refuse("no fault of this name", value);
            config.only |= UINT64_C(1) << fault;
        } else if (strcmp(flag, "--mutant") == 0) {
            mutant = value;
        } else {
            return refuse("no flag of this name", flag);
        }
    }
    if (mutant != NULL) {
        int code = run_with_mutant(argc, argv, mutant);
        if (code >= 0) return code;
    }
    fb_sim_verdict verdict;
    if (!fb_sim_run(&config, &verdict)) fb_sim_fail_resource("memory of this machine");
    if (verdict.result != FB_SIM_PASS) {
        fprintf(stderr, "again: faberio sim run --seed %s --nodes %u%s%s\n", config.seed_text,
                (unsigned)config.nodes, mutant == NULL ? "" : " --mutant ",
                mutant == NULL ? "" : mutant);
    }
    fb_sim_print_verdict(&config, &verdict);
    return fb_sim_result_exit(verdict.result);
}

/* A crash of the program under test is a verdict too. The handler only writes and leaves. */
static void crashed(int number)
{
    static const char line[] = "{\"result\":\"crash\",\"seed\":null,\"events\":0,\"hash\":null,"
                               "\"check\":\"signal\",\"stall\":null,\"schedule\":null,"
                               "\"events_per_s\":0}\n";
    (void)number;
    ssize_t ignored = write(STDOUT_FILENO, line, sizeof line - 1);
    (void)ignored;
    _exit(FB_SIM_EXIT_CRASH);
}

int fb_sim_main(int argc, char **argv)
{
    static const char *const later[] = {"hunt", "replay", "test", "shrink",
                                        "diff", "step",   "view", "record"};
    if (argc < 2) return refuse("a verb is missing", NULL);
    const char *verb = argv[1];
    if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (strcmp(verb, later[i]) == 0) return refuse("not built in this version", verb);
    }
#ifndef __SANITIZE_ADDRESS__
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    signal(SIGFPE, crashed);
#else
    (void)crashed;
#endif
    if (strcmp(verb, "run") == 0) return run_main(argc, argv);
    if (strcmp(verb, "bench") == 0) return fb_sim_bench_main(argc, argv);
    if (strcmp(verb, "faults") == 0 || strcmp(verb, "checks") == 0 ||
        strcmp(verb, "mutants") == 0 || strcmp(verb, "limits") == 0) {
        return fb_sim_catalogue_main(verb, argc, argv);
    }
    return refuse("no verb of this name", verb);
}
