/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim/checks.h"
#include "sim/main_sim.h"
#include "sim/mutants.h"
#include "sim/run.h"

static const char *const limits[] = {
    "sectors: the store is a map, a write set is applied whole or not at all; torn sectors, rot "
    "and "
    "misdirected writes come with the logs of later planes",
    "threads: a node is one state machine and its driver one loop; races inside a real driver are "
    "for the end-to-end tests",
    "real cryptography: keyed hashes stand in for it; golden vectors and the end-to-end tests use "
    "the shipped provider",
    "operating system limits: descriptors, memory pressure and full disks",
    "routing: a path is a pair of nodes; there is no shared bottleneck and no address translation",
    "TLS and datagrams: streams and whole frames are all there is",
    "versions: one version of the protocol in a run",
    "two machines with one identity at once",
    "a full disk: write sets fail, but for no lasting reason",
};

static void closing(uint64_t count)
{
    printf("{\"result\":\"pass\",\"seed\":null,\"events\":0,\"hash\":null,\"check\":null,"
           "\"stall\":null,\"schedule\":null,\"events_per_s\":0,\"rows\":%llu}\n",
           (unsigned long long)count);
}

/* Counters over a few runs of the default profile. */
static int count_over(const char *seeds, uint64_t fired[FB_SIM_FAULTS])
{
    char first[32];
    const char *dots = strstr(seeds, "..");
    uint64_t a, b;
    if (dots == NULL || (size_t)(dots - seeds) >= sizeof first) return FB_SIM_EXIT_USAGE;
    memcpy(first, seeds, (size_t)(dots - seeds));
    first[dots - seeds] = 0;
    if (!fb_sim_parse_number(first, &a) || !fb_sim_parse_number(dots + 2, &b) || b < a) {
        return FB_SIM_EXIT_USAGE;
    }
    for (uint64_t seed = a; seed <= b; seed++) {
        fb_sim_config config = fb_sim_config_default();
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
        fb_sim_parse_seed(text, &config);
        fb_sim_verdict verdict;
        if (!fb_sim_run(&config, &verdict)) fb_sim_fail_resource("memory of this machine");
        for (uint32_t i = 0; i < FB_SIM_FAULTS; i++) fired[i] += verdict.fired[i];
        if (verdict.result != FB_SIM_PASS) {
            fb_sim_print_verdict(&config, &verdict);
            return fb_sim_result_exit(verdict.result);
        }
    }
    return 0;
}

int fb_sim_catalogue_main(const char *verb, int argc, char **argv)
{
    const char *seeds = NULL;
    if (argc == 4 && strcmp(argv[2], "--seeds") == 0) {
        seeds = argv[3];
    } else if (argc != 2) {
        fprintf(stderr, "usage: faberio sim %s%s\n", verb,
                strcmp(verb, "faults") == 0 ? " [--seeds A..B]" : "");
        return FB_SIM_EXIT_USAGE;
    }
    if (seeds != NULL && strcmp(verb, "faults") != 0) {
        fprintf(stderr, "faberio sim %s: only `faults` counts over seeds\n", verb);
        return FB_SIM_EXIT_USAGE;
    }
    if (strcmp(verb, "faults") == 0) {
        uint64_t fired[FB_SIM_FAULTS] = {0};
        if (seeds != NULL) {
            int code = count_over(seeds, fired);
            if (code == FB_SIM_EXIT_USAGE) fprintf(stderr, "--seeds is A..B\n");
            if (code != 0) return code;
        }
        for (uint32_t i = 0; i < FB_SIM_FAULTS; i++) {
            const fb_sim_fault_row *row = &fb_sim_fault_rows[i];
            if (seeds != NULL) printf("%10llu  ", (unsigned long long)fired[i]);
            printf("%-18s %-30s on in %2u of 16 rounds: %s\n", row->name, row->parameters,
                   (unsigned)row->share_of_16, row->text);
        }
        closing(FB_SIM_FAULTS);
    } else if (strcmp(verb, "checks") == 0) {
        uint64_t count = 0;
        for (; fb_sim_check_list[count] != NULL; count++) {
            const fb_sim_check *check = fb_sim_check_list[count];
            printf("%-24s %-34s %-26s %s\n", check->id, check->musts, check->cost, check->text);
        }
        closing(count);
    } else if (strcmp(verb, "mutants") == 0) {
        for (int i = 1; i < fb_sim_mutant_count; i++) {
            const fb_sim_mutant_row *row = &fb_sim_mutant_rows[i];
            printf("%-28s %-24s %s; found by %s\n", row->name, row->place, row->text, row->check);
        }
        closing((uint64_t)fb_sim_mutant_count - 1);
    } else {
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) printf("%s\n", limits[i]);
        closing(sizeof limits / sizeof limits[0]);
    }
    return 0;
}
