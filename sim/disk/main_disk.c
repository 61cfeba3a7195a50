/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/disk/main_disk.h"

#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/cursor.h"
#include "sim/disk/explore.h"
#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/usage.h"
#include "sim/world/fail.h"

static const fb_disk_toy *const toys[] = {&fb_disk_toy_log, &fb_disk_toy_blob};
#define TOYS (sizeof toys / sizeof toys[0])

#define OPERATIONS        22u /* of the script: every kind of them, and a restart */
#define OPERATIONS_DEFECT 22u

typedef struct wanted {
    uint64_t seed;
    uint64_t operations;
    uint64_t calls; /* 0: each fault for itself */
    const fb_disk_toy *toy;
    int fault;  /* -1: all */
    int defect; /* 0: sound toys; -1: all defects */
} wanted;

static bool text_is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int fault_of(const char *name)
{
    for (int i = 0; i < FB_DISK_FAULTS; i++) {
        if (text_is(fb_disk_fault_rows[i].name, name)) return i;
    }
    return -1;
}

static int defect_of(const char *name)
{
    for (int i = 1; i < FB_DISK_DEFECTS; i++) {
        if (text_is(fb_disk_defect_rows[i].name, name)) return i;
    }
    return 0;
}

static bool read_flag(const char *flag, const char *value, wanted *w)
{
    if (text_is(flag, "--seed")) return fb_sim_parse_number(value, &w->seed);
    if (text_is(flag, "--operations")) {
        return fb_sim_parse_number(value, &w->operations) && w->operations >= 4 &&
               w->operations <= 100000;
    }
    if (text_is(flag, "--calls")) {
        return fb_sim_parse_number(value, &w->calls) && w->calls >= 1 &&
               w->calls <= FB_DISK_CALLS_MAX;
    }
    if (text_is(flag, "--fault")) return (w->fault = fault_of(value)) >= 0;
    if (text_is(flag, "--defect")) return (w->defect = defect_of(value)) > 0;
    for (size_t i = 0; i < TOYS && text_is(flag, "--toy"); i++) {
        if (text_is(toys[i]->name, value)) w->toy = toys[i];
    }
    return text_is(flag, "--toy") && w->toy != NULL;
}

static void print_wrong(const fb_disk_report *r)
{
    printf("  %s: at call %" PRIu64, r->wrong, r->wrong_call);
    if (r->wrong_choice == UINT64_MAX) {
        printf(", the process alone ended");
    } else {
        printf(", outcome %" PRIu64, r->wrong_choice);
    }
    printf("%s\n", r->wrong_nested ? " of a crash inside the recovery" : "");
}

static int closing(const wanted *w, const fb_disk_report *sum, const char *check)
{
    printf("{\"result\":\"%s\",\"seed\":\"%" PRIu64 "\",\"events\":%" PRIu64
           ",\"hash\":\"%016" PRIx64 "%016" PRIx64
           "\",\"check\":%s%s%s,\"stall\":null,\"schedule\":null,\"events_per_s\":0,"
           "\"crash_points\":%" PRIu64 ",\"outcomes\":%" PRIu64 ",\"nested_crash_points\":%" PRIu64
           ",\"nested_outcomes\":%" PRIu64 ",\"drawn\":%" PRIu64 ",\"nested_drawn\":%" PRIu64 "}\n",
           check == NULL ? "pass" : "safety", w->seed, sum->recoveries, sum->hash.hi, sum->hash.lo,
           check == NULL ? "" : "\"", check == NULL ? "null" : check, check == NULL ? "" : "\"",
           sum->calls, sum->outcomes, sum->nested_calls, sum->nested_outcomes, sum->drawn,
           sum->nested_drawn);
    return check == NULL ? FB_SIM_EXIT_PASS : FB_SIM_EXIT_SAFETY;
}

static void sum_up(fb_disk_report *sum, const fb_disk_report *r)
{
    uint8_t bytes[32];
    fb_store_be(bytes, sum->hash.hi, 8);
    fb_store_be(bytes + 8, sum->hash.lo, 8);
    fb_store_be(bytes + 16, r->hash.hi, 8);
    fb_store_be(bytes + 24, r->hash.lo, 8);
    sum->hash = fb_xxh128(bytes, sizeof bytes, 0);
    for (int f = 0; f < FB_DISK_FAULTS; f++) sum->fired[f] += r->fired[f];
    sum->calls += r->calls;
    sum->outcomes += r->outcomes;
    sum->recoveries += r->recoveries;
    sum->nested_calls += r->nested_calls;
    sum->nested_outcomes += r->nested_outcomes;
    sum->drawn += r->drawn;
    sum->nested_drawn += r->nested_drawn;
}

static void print_head(void)
{
    printf("%-5s %-21s %7s %9s %9s %9s %9s %6s %9s %9s\n", "toy", "fault", "points", "outcomes",
           "judged", "nested", "outcomes", "drawn", "fired", "mattered");
}

static void print_row(const char *toy, const char *fault, const fb_disk_report *r, uint64_t fired,
                      uint64_t mattered)
{
    printf("%-5s %-21s %7" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %6" PRIu64
           " %9" PRIu64 " %9" PRIu64 "\n",
           toy, fault, r->calls, r->outcomes, r->recoveries, r->nested_calls, r->nested_outcomes,
           r->drawn, fired, mattered);
}

/* Each toy as it is under each fault: nothing may be found. */
static int sound_main(fb_disk_explorer *x, const wanted *w)
{
    fb_disk_report sum = {0};
    const char *check = NULL;
    print_head();
    for (size_t t = 0; t < TOYS; t++) {
        if (w->toy != NULL && w->toy != toys[t]) continue;
        for (int f = 0; f < FB_DISK_FAULTS; f++) {
            if (w->fault >= 0 && w->fault != f) continue;
            fb_disk_report r = {0};
            fb_disk_explore(x, toys[t], FB_DISK_SOUND, (fb_disk_fault)f, (uint32_t)w->operations,
                            &r);
            print_row(toys[t]->name, fb_disk_fault_rows[f].name, &r, r.fired[f], r.mattered[f]);
            sum_up(&sum, &r);
            if (r.wrong == NULL) continue;
            print_wrong(&r);
            check = "disk-toy-is-sound";
        }
    }
    bool all = w->toy == NULL && w->fault < 0 && check == NULL;
    for (int f = 0; all && f < FB_DISK_FAULTS; f++) {
        if (sum.fired[f] != 0) continue;
        printf("%s never fired\n", fb_disk_fault_rows[f].name);
        check = "disk-faults-fire";
    }
    return closing(w, &sum, check);
}

/* All faults of a crash at once, over a long script. */
static int crashes_main(fb_disk_explorer *x, const wanted *w)
{
    fb_disk_report sum = {0};
    const char *check = NULL;
    print_head();
    for (size_t t = 0; t < TOYS; t++) {
        if (w->toy != NULL && w->toy != toys[t]) continue;
        if (w->defect != 0 && fb_disk_defect_rows[w->defect].toy != toys[t]) continue;
        fb_disk_report r = {0};
        fb_disk_explore_crashes(x, toys[t], (fb_disk_defect)w->defect, w->calls, &r);
        sum_up(&sum, &r);
        for (int f = 0; f < FB_DISK_FAULTS; f++) {
            if ((FB_DISK_FAULTS_OF_CRASH >> f & 1) == 0) continue;
            print_row(toys[t]->name, fb_disk_fault_rows[f].name, &r, r.fired[f], r.mattered[f]);
        }
        if (r.wrong == NULL) continue;
        print_wrong(&r);
        check = "disk-crash-at-every-call";
    }
    return closing(w, &sum, check);
}

/* Each defect under each fault: found where it is to be, and nowhere else. */
static bool defect_row(fb_disk_explorer *x, const wanted *w, int defect, fb_disk_report *sum)
{
    const fb_disk_defect_row *row = &fb_disk_defect_rows[defect];
    bool right = true;
    printf("%-5s %-20s", row->toy->name, row->name);
    for (int f = 0; f < FB_DISK_FAULTS; f++) {
        if (w->fault >= 0 && w->fault != f) continue;
        fb_disk_report r = {0};
        fb_disk_explore(x, row->toy, (fb_disk_defect)defect, (fb_disk_fault)f, OPERATIONS_DEFECT,
                        &r);
        sum_up(sum, &r);
        bool wanted_here = (fb_disk_fault_set((fb_disk_fault)f) & row->by) != 0;
        bool here = r.wrong != NULL;
        right = right && here == wanted_here;
        if (here != wanted_here) printf(" %s%s", here ? "+" : "-", fb_disk_fault_rows[f].name);
        if (here && wanted_here) printf(" %s", fb_disk_fault_rows[f].name);
        if (w->defect > 0 && here) {
            fputc('\n', stdout);
            print_wrong(&r);
        }
    }
    printf("%s\n", right ? "" : "   <- wrong");
    return right;
}

/* Each fault has a defect that it alone shows. */
static bool faults_are_needed(void)
{
    bool right = true;
    for (int f = 0; f < FB_DISK_FAULTS; f++) {
        bool has = false;
        for (int d = 1; d < FB_DISK_DEFECTS && !has; d++) {
            has = fb_disk_defect_rows[d].by == UINT64_C(1) << f;
        }
        if (!has) printf("%s: no defect that it alone shows\n", fb_disk_fault_rows[f].name);
        right = right && has;
    }
    return right;
}

static int defects_main(fb_disk_explorer *x, const wanted *w)
{
    fb_disk_report sum = {0};
    bool right = w->fault >= 0 || faults_are_needed();
    for (int d = 1; d < FB_DISK_DEFECTS; d++) {
        if (w->defect > 0 && w->defect != d) continue;
        right = defect_row(x, w, d, &sum) && right;
    }
    return closing(w, &sum, right ? NULL : "disk-defects-are-found");
}

int fb_sim_disk_main(int argc, char **argv)
{
    wanted w = {.seed = 1, .operations = OPERATIONS, .fault = -1};
    for (int i = 2; i < argc; i++) {
        if (text_is(argv[i], "--defects")) {
            w.defect = -1;
            continue;
        }
        if (i + 1 == argc || !read_flag(argv[i], argv[i + 1], &w)) {
            return fb_sim_misused("disk", "no such flag, or not its value", argv[i]);
        }
        i++;
    }
    fb_disk_explorer *x = fb_disk_explorer_create(w.seed);
    if (x == NULL) fb_sim_fail_resource("memory of this machine");
    int code = w.calls != 0    ? crashes_main(x, &w)
               : w.defect != 0 ? defects_main(x, &w)
                               : sound_main(x, &w);
    fb_disk_explorer_destroy(x);
    return code;
}

unsigned fb_sim_disk_print_faults(void)
{
    for (unsigned i = 0; i < FB_DISK_FAULTS; i++) {
        const fb_disk_fault_row *row = &fb_disk_fault_rows[i];
        printf("disk: %-21s %s: %s\n", row->name, row->text, row->parameters);
    }
    return FB_DISK_FAULTS;
}
