/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim/checkers/checks.h"
#include "sim/disk/main_disk.h"
#include "sim/main_sim.h"
#include "sim/mutants.h"
#include "sim/run.h"
#include "sim/usage.h"

static const char *const limits[] = {
    "sectors of the store of a run: it is a map, a write set is applied whole or not at all; what "
    "sectors do is shown on toys (`faberio sim disk`) and on recorded writes of the real store "
    "(tests/crash)",
    "the disk of `faberio sim disk`: one directory; names are kept in order among themselves; a "
    "sector is torn once, at an eighth; a page that counts as clean after a failed sync stays in "
    "the cache; no mapped files",
    "a lost write of a superblock's newest copy before anything was written under it: two copies "
    "in "
    "turn cannot tell",
    "threads: a node is one state machine and its driver one loop; races inside a real driver are "
    "for the end-to-end tests",
    "real cryptography: keyed hashes stand in for it; golden vectors and the end-to-end tests use "
    "the shipped provider",
    "operating system limits: descriptors, memory pressure and full disks",
    "routing: a path is a pair of nodes; there is no shared bottleneck and no address translation",
    "TLS and datagrams: streams and whole frames are all there is",
    "versions: one version of the protocol in a run",
    "a full disk: write sets fail, but for no lasting reason",
    "documents: other programs that change them, a dropped database, and a disk that is older than "
    "the documents are for the end-to-end tests",
};

static void closing(uint64_t count, fb_sim_result result)
{
    printf("{\"result\":\"%s\",\"seed\":null,\"events\":0,\"hash\":null,\"check\":null,"
           "\"stall\":null,\"schedule\":null,\"events_per_s\":0,\"rows\":%llu}\n",
           fb_sim_result_name(result), (unsigned long long)count);
}

typedef struct counters {
    uint64_t fired[FB_SIM_FAULTS];
    uint64_t mattered[FB_SIM_FAULTS]; /* runs that were another one without it */
    uint64_t seen[FB_SIM_CHECKS_MAX];
} counters;

typedef struct counting {
    uint64_t first, last; /* seeds */
    uint64_t events;
    bool matter;
} counting;

static void run_one(uint64_t seed, uint64_t events, const fb_sim_fault_set *without,
                    fb_sim_verdict *verdict)
{
    fb_sim_config config = fb_sim_config_default();
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    fb_sim_parse_seed(text, &config);
    config.events = events;
    /* So many of few runs that what happens to documents happens in some. */
    if (seed % 2 == 0) config.documents = 1;
    if (without != NULL) config.without = *without;
    config.quiet = without != NULL;
    if (!fb_sim_run(&config, verdict)) fb_sim_fail_resource("memory of this machine");
    if (verdict->result != FB_SIM_PASS && without == NULL) fb_sim_print_verdict(&config, verdict);
}

/* Over a few runs of the default profile. A fault matters when the run without it is another one:
 * the hash covers each node's digest at each step, and no other draw moves. A run that fails is
 * told of, and counts up to there; the others are made all the same. */
static fb_sim_result count_over(const counting *what, counters *out)
{
    fb_sim_result first = FB_SIM_PASS;
    for (uint64_t seed = what->first; seed <= what->last; seed++) {
        fb_sim_verdict verdict, other;
        run_one(seed, what->events, NULL, &verdict);
        if (first == FB_SIM_PASS) first = verdict.result;
        for (uint32_t i = 0; i < 64; i++) out->seen[i] += verdict.seen[i];
        for (uint32_t i = 0; i < FB_SIM_FAULTS; i++) {
            out->fired[i] += verdict.fired[i];
            if (!what->matter || verdict.fired[i] == 0) continue;
            fb_sim_fault_set without = {{0}};
            fb_sim_faults_add(&without, i);
            run_one(seed, what->events, &without, &other);
            bool same = other.hash.lo == verdict.hash.lo && other.hash.hi == verdict.hash.hi;
            out->mattered[i] += same ? 0 : 1;
        }
    }
    return first;
}

static bool seeds_of(const char *text, counting *out)
{
    char first[32];
    const char *dots = strstr(text, "..");
    if (dots == NULL || (size_t)(dots - text) >= sizeof first) return false;
    memcpy(first, text, (size_t)(dots - text));
    first[dots - text] = 0;
    return fb_sim_parse_number(first, &out->first) && fb_sim_parse_number(dots + 2, &out->last) &&
           out->last >= out->first && out->first != 0;
}

/* Columns as wide as their widest word. */
static int widest(const char *text, int width)
{
    int len = (int)strlen(text);
    return len > width ? len : width;
}

static uint64_t print_faults(const counting *what, const counters *c)
{
    int names = 0, parameters = 0, families = 0;
    for (uint32_t i = 0; i < FB_SIM_FAULTS; i++) {
        names = widest(fb_sim_fault_rows[i].name, names);
        families = widest(fb_sim_family_names[fb_sim_fault_rows[i].family], families);
        parameters = widest(fb_sim_fault_rows[i].parameters, parameters);
    }
    if (what->first != 0) {
        printf("%10s  %s%-*s  %-*s  %-*s  %s\n", "fired", what->matter ? "mattered  " : "", names,
               "fault", families, "family", parameters, "parameters", "what happens");
    }
    for (uint32_t i = 0; i < FB_SIM_FAULTS; i++) {
        const fb_sim_fault_row *row = &fb_sim_fault_rows[i];
        if (what->first != 0) printf("%10llu  ", (unsigned long long)c->fired[i]);
        if (what->matter) printf("%8llu  ", (unsigned long long)c->mattered[i]);
        printf("%-*s  %-*s  %-*s  on in %2u of 16 rounds: %s\n", names, row->name, families,
               fb_sim_family_names[row->family], parameters, row->parameters,
               (unsigned)row->share_of_16, row->text);
    }
    return FB_SIM_FAULTS + fb_sim_disk_print_faults();
}

static uint64_t print_checks(const counting *what, const counters *c)
{
    int ids = 0, costs = 0;
    uint64_t count = 0;
    for (; fb_sim_check_list[count] != NULL; count++) {
        ids = widest(fb_sim_check_list[count]->id, ids);
        costs = widest(fb_sim_check_list[count]->cost, costs);
    }
    for (uint64_t i = 0; i < count; i++) {
        const fb_sim_check *check = fb_sim_check_list[i];
        if (what->first != 0) printf("%12llu  ", (unsigned long long)c->seen[i]);
        printf("%-*s  %-*s  %s [%s]\n", ids, check->id, costs, check->cost, check->text,
               check->musts);
    }
    return count;
}

/* One object a line. No text of the list needs an escape. */
static uint64_t print_checks_json(const counting *what, const counters *c)
{
    uint64_t count = 0;
    for (; fb_sim_check_list[count] != NULL; count++) {
        const fb_sim_check *check = fb_sim_check_list[count];
        printf("{\"check\":\"%s\",\"cost\":\"%s\",\"text\":\"%s\",\"requirements\":[", check->id,
               check->cost, check->text);
        const char *separator = "";
        for (const char *at = check->musts; *at != 0; separator = ",") {
            int len = (int)strcspn(at, ",");
            printf("%s\"%.*s\"", separator, len, at);
            at += len;
            at += strspn(at, ", ");
        }
        printf("],\"looked\":");
        if (what->first != 0) {
            printf("%llu}\n", (unsigned long long)c->seen[count]);
        } else {
            printf("null}\n");
        }
    }
    return count;
}

int fb_sim_catalogue_main(int argc, char **argv)
{
    const char *verb = argv[1];
    bool faults = strcmp(verb, "faults") == 0, checks = strcmp(verb, "checks") == 0;
    bool json = false;
    counting what = {.events = fb_sim_config_default().events};
    counters c = {{0}, {0}, {0}};
    for (int i = 2; i < argc; i++) {
        bool value = i + 1 < argc;
        if ((faults || checks) && value && strcmp(argv[i], "--seeds") == 0) {
            if (!seeds_of(argv[++i], &what))
                return fb_sim_misused(verb, "no such flag, or not its value", argv[i]);
        } else if ((faults || checks) && value && strcmp(argv[i], "--events") == 0) {
            if (!fb_sim_parse_number(argv[++i], &what.events))
                return fb_sim_misused(verb, "no such flag, or not its value", argv[i]);
        } else if (faults && strcmp(argv[i], "--matter") == 0) {
            what.matter = true;
        } else if (checks && strcmp(argv[i], "--json") == 0) {
            json = true;
        } else {
            return fb_sim_misused(verb, "no such flag, or not its value", argv[i]);
        }
    }
    fb_sim_result result = FB_SIM_PASS;
    if (what.first != 0) {
        result = count_over(&what, &c);
    } else if (what.matter) {
        return fb_sim_misused(verb, "seeds are needed", "--matter");
    }
    if (faults) {
        closing(print_faults(&what, &c), result);
    } else if (checks) {
        closing(json ? print_checks_json(&what, &c) : print_checks(&what, &c), result);
    } else if (strcmp(verb, "mutants") == 0) {
        for (int i = 1; i < fb_sim_mutant_count; i++) {
            const fb_sim_mutant_row *row = &fb_sim_mutant_rows[i];
            printf("%-28s %-24s %s; found by %s\n", row->name, row->place, row->text, row->check);
        }
        closing((uint64_t)fb_sim_mutant_count - 1, result);
    } else {
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) printf("%s\n", limits[i]);
        closing(sizeof limits / sizeof limits[0], result);
    }
    return fb_sim_result_exit(result);
}
