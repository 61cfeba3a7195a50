/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/hunt/hunt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/explore/explorer.h"
#include "sim/flags.h"
#include "sim/hunt/ledger.h"
#include "sim/main_sim.h"
#include "sim/schedule/verbs.h"
#include "sim/shrink/shrink.h"
#include "sim/usage.h"

#define SECOND   UINT64_C(1000000000)
#define JOBS_MAX 64u

/* So many failures of one check are shrunk; of the others only the number is told: a bug that every
 * run meets must not keep the machine from looking for the next one. */
#define SHRINKS_OF_ONE_CHECK 4u
#define CHECKS_MAX           64u
/* So many runs with fewer new abstract states than this and without a new failure: there is little
 * to be found this way. */
#define DRY_RUNS   300u
#define DRY_STATES 30u

typedef struct slot {
    bool busy, shrinks;
    bool plain;
    bool planned; /* plan is what it plays; else its seed draws */
    fb_sim_plan plan;
    uint64_t parent;    /* member of the pool that the plan was made of */
    fb_sim_seen *shown; /* shared with the child */
    fb_sim_apart apart;
    char seed[44];
    uint64_t number;
    uint64_t events;
    char full[PATH_MAX], small[PATH_MAX];
} slot;

typedef struct hunt {
    fb_sim_config config;
    const char *bug;
    fb_sim_ledger ledger;
    fb_sim_explorer explorer;
    bool first_only; /* the first failure ends it */
    uint32_t jobs;
    uint64_t next, last; /* seeds */
    uint64_t first;
    uint64_t until_ns;
    uint64_t shrink_ns;
    uint64_t runs, events, failures, unshrunk;
    uint64_t dry_since; /* runs when these DRY_RUNS began */
    uint32_t dry_states;
    uint64_t began_ns, told_ns, entered_ns;
    uint64_t entered_runs, entered_events, entered_first;
    slot slots[JOBS_MAX];
    struct {
        char check[40];
        uint32_t count;
    } checks[CHECKS_MAX];
    fb_sim_result result; /* of the first failure */
    char check[40], seed[44], schedule[PATH_MAX];
    bool dry;
} hunt;

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Children. */

static void run_one(void *of, int to)
{
    slot *s = ((void **)of)[1];
    hunt *h = ((void **)of)[0];
    fb_sim_config config = h->config;
    fb_sim_plan plan;
    fb_sim_plan_init(&plan);
    if (s->planned) {
        fb_sim_plan_config(&s->plan, &config);
        config.stop_at_step = fb_min_u64(config.stop_at_step, 2 * h->config.events);
    } else {
        fb_sim_parse_seed(s->seed, &config);
        config.plain = config.plain || s->plain;
        config.events = fb_sim_explorer_events(&h->explorer, s->number, config.events);
        fb_sim_plan_from_config(&plan, &config, h->bug);
        config.record = &plan;
        config.record_path = s->full;
    }
    config.seen = s->shown;
    config.quiet = true;
    fb_sim_verdict verdict;
    fb_sim_report report;
    if (!fb_sim_run(&config, &verdict)) fb_sim_fail_resource("memory of this machine");
    bool keep = verdict.result != FB_SIM_PASS;
    if (!keep && !s->planned) {
        keep = fb_sim_explorer_wants(&h->explorer, fb_sim_explorer_over(&h->explorer, s->shown));
    }
    if (keep && verdict.recorded) fb_sim_plan_save(s->full, &plan);
    fb_sim_report_of(&verdict, &report);
    fb_sim_apart_tell(to, &report);
}

static void shrink_seed(void *of, int to)
{
    slot *s = ((void **)of)[1];
    const hunt *h = ((void **)of)[0];
    fb_sim_plan plan;
    fb_sim_plan_error error;
    fb_sim_shrink_options options = {s->small, fb_sim_real_ns() + h->shrink_ns, false};
    fb_sim_shrinker shrinker;
    if (!fb_sim_plan_read(s->full, &plan, &error)) _exit(FB_SIM_EXIT_ORACLE);
    if (!fb_sim_shrink(&plan, &options, &shrinker)) _exit(FB_SIM_EXIT_ORACLE);
    if (!fb_sim_plan_save(s->small, &shrinker.best)) _exit(FB_SIM_EXIT_RESOURCE);
    fb_sim_apart_tell(to, &shrinker.report);
}

static void begin(hunt *h, slot *s, bool shrinks)
{
    void *both[2] = {h, s};
    s->shrinks = shrinks;
    s->busy = fb_sim_apart_fork(shrinks ? shrink_seed : run_one, both, &s->apart);
    if (!s->busy) fb_sim_fail_resource("processes");
}

static void begin_next(hunt *h, slot *s)
{
    s->number = h->next++;
    snprintf(s->seed, sizeof s->seed, "%llu", (unsigned long long)s->number);
    snprintf(s->full, sizeof s->full, "%s/.%s.full", h->ledger.folder, s->seed);
    snprintf(s->small, sizeof s->small, "%s/.%s.small", h->ledger.folder, s->seed);
    s->planned = fb_sim_explorer_next(&h->explorer, s->number, &s->plan, &s->parent);
    s->plain = fb_sim_explorer_plain(&h->explorer, s->number);
    if (s->planned && h->bug != NULL) snprintf(s->plan.bug, sizeof s->plan.bug, "%s", h->bug);
    memset(s->shown, 0, sizeof *s->shown);
    begin(h, s, false);
}

/* What came of them. */

static bool worth_shrinking(hunt *h, const char *check)
{
    for (uint32_t i = 0; i < CHECKS_MAX; i++) {
        if (h->checks[i].count == 0) {
            snprintf(h->checks[i].check, sizeof h->checks[i].check, "%s", check);
        }
        if (strcmp(h->checks[i].check, check) != 0) continue;
        return h->checks[i].count++ < SHRINKS_OF_ONE_CHECK;
    }
    return false;
}

static void remember_first(hunt *h, const slot *s, const fb_sim_report *report)
{
    if (h->result != FB_SIM_PASS) return;
    h->result = report->result;
    snprintf(h->check, sizeof h->check, "%s", report->check);
    snprintf(h->seed, sizeof h->seed, "%s", s->seed);
}

/* What it showed: a run that showed something new joins the pool. */
static uint32_t learn(hunt *h, slot *s, uint64_t steps, bool failed)
{
    uint32_t gained = fb_sim_explorer_over(&h->explorer, s->shown);
    fb_sim_plan plan;
    fb_sim_plan_error error;
    bool wanted = !failed && fb_sim_explorer_wants(&h->explorer, gained);
    if (s->planned) fb_sim_pool_tried(&h->explorer.pool, s->parent, failed || gained != 0);
    if (wanted && s->planned) {
        fb_sim_pool_add(&h->explorer.pool, &s->plan, s->number, steps, s->shown);
        s->planned = false;
    } else if (wanted && fb_sim_plan_read(s->full, &plan, &error)) {
        fb_sim_pool_add(&h->explorer.pool, &plan, s->number, steps, s->shown);
    }
    if (!failed) unlink(s->full);
    return gained;
}

/* A schedule that was made up fails: it is written down as it is. */
static void keep_failing(slot *s, const fb_sim_report *report)
{
    s->plan.expect = FB_SIM_EXPECT_VIOLATES;
    snprintf(s->plan.check, sizeof s->plan.check, "%s", report->check);
    fb_sim_plan_save(s->full, &s->plan);
}

static void run_over(hunt *h, slot *s, const fb_sim_report *report)
{
    bool failed = report->result != FB_SIM_PASS;
    h->runs++;
    h->events += report->events;
    s->events = report->events;
    h->dry_states += learn(h, s, report->events, failed);
    if (h->runs - h->dry_since >= DRY_RUNS) {
        h->dry = h->dry_states < DRY_STATES;
        h->dry_since = h->runs;
        h->dry_states = 0;
    }
    if (failed && s->planned) keep_failing(s, report);
    bool made_up = s->planned;
    if (s->planned) fb_sim_plan_free(&s->plan);
    s->planned = false;
    if (!failed) return;
    h->failures++;
    remember_first(h, s, report);
    fprintf(stderr, "FAIL %s %s %s %s event %llu: %s\n", fb_sim_result_name(report->result),
            report->check, made_up ? "run" : "seed", s->seed, (unsigned long long)report->events,
            report->detail);
    if (access(s->full, R_OK) != 0 || !worth_shrinking(h, report->check)) {
        h->unshrunk++;
        unlink(s->full);
        return;
    }
    begin(h, s, true);
}

static void shrink_over(hunt *h, slot *s, const fb_sim_report *report)
{
    fb_sim_plan plan;
    fb_sim_plan_error error;
    char path[PATH_MAX];
    (void)report;
    /* The best so far, should the shrinker itself have ended early; or the whole run. */
    bool good =
        fb_sim_plan_read(s->small, &plan, &error) || fb_sim_plan_read(s->full, &plan, &error);
    if (good) {
        bool news = fb_sim_ledger_failure(&h->ledger, &plan, s->seed, s->events, path, sizeof path);
        if (news) h->dry_states += DRY_STATES;
        if (h->schedule[0] == 0) snprintf(h->schedule, sizeof h->schedule, "%s", path);
        fprintf(stderr, "shrunk seed %s to %u lines%s\n", s->seed,
                (unsigned)fb_sim_plan_size(&plan), news ? "" : ", known already");
        fb_sim_print_replay(path);
        fb_sim_plan_free(&plan);
    } else {
        h->unshrunk++;
        fprintf(stderr, "seed %s does not fail when it is played again\n", s->seed);
    }
    unlink(s->full);
    unlink(s->small);
}

/* Seeds that all are over go into the ledger together. */
static void enter_runs(hunt *h, bool last)
{
    uint64_t now = fb_sim_real_ns();
    uint64_t below = h->next;
    for (uint32_t i = 0; i < h->jobs; i++) {
        if (h->slots[i].busy && h->slots[i].number < below) below = h->slots[i].number;
    }
    if (below <= h->entered_first || (!last && now < h->entered_ns + 30 * SECOND)) return;
    fb_sim_ledger_runs(&h->ledger, h->entered_first, below - 1, h->events - h->entered_events,
                       h->explorer.states);
    h->entered_first = below;
    h->entered_events = h->events;
    h->entered_ns = now;
}

static void tell(hunt *h)
{
    uint64_t now = fb_sim_real_ns();
    if (now < h->told_ns + 10 * SECOND) return;
    uint64_t ms = (now - h->began_ns) / 1000000 + 1;
    fprintf(stderr,
            "seeds %llu  events %llu  %llu k ev/s  states %u  failures %llu, %u of a kind\n",
            (unsigned long long)h->runs, (unsigned long long)h->events,
            (unsigned long long)(h->events / ms), (unsigned)h->explorer.states,
            (unsigned long long)h->failures, (unsigned)h->ledger.distinct);
    h->told_ns = now;
}

static bool may_begin(hunt *h)
{
    bool endless = h->last == UINT64_MAX && h->until_ns == FB_NEVER;
    if (h->first_only && h->failures != 0) return false;
    if (endless && h->dry) return false;
    return interrupted == 0 && h->next <= h->last && fb_sim_real_ns() < h->until_ns;
}

static void hunt_all(hunt *h)
{
    for (;;) {
        struct pollfd waiting[JOBS_MAX];
        uint32_t places[JOBS_MAX], count = 0;
        for (uint32_t i = 0; i < h->jobs; i++) {
            if (!h->slots[i].busy && may_begin(h)) begin_next(h, &h->slots[i]);
            if (!h->slots[i].busy) continue;
            places[count] = i;
            waiting[count++] = (struct pollfd){.fd = h->slots[i].apart.from, .events = POLLIN};
        }
        if (count == 0) return;
        if (poll(waiting, count, 1000) < 0 && errno != EINTR) fb_sim_fail_resource("poll");
        for (uint32_t k = 0; k < count; k++) {
            slot *s = &h->slots[places[k]];
            if (interrupted != 0) {
                fb_sim_apart_kill(&s->apart);
                s->busy = false;
                continue;
            }
            if (waiting[k].revents == 0) continue;
            fb_sim_report report;
            fb_sim_apart_end(&s->apart, &report);
            s->busy = false;
            if (s->shrinks) {
                shrink_over(h, s, &report);
            } else {
                run_over(h, s, &report);
            }
        }
        enter_runs(h, false);
        tell(h);
    }
}

/* Old failures come first: is each still one? */
static void again(void *user, const char *path)
{
    hunt *h = user;
    fb_sim_plan plan;
    fb_sim_plan_error error;
    fb_sim_report report;
    if (interrupted != 0 || !fb_sim_plan_read(path, &plan, &error)) return;
    const char *bug = h->bug == NULL ? "" : h->bug;
    if (strcmp(bug, plan.bug) == 0) {
        fb_sim_apart_play(&plan, false, UINT64_MAX, &report);
        bool fails = report.result != FB_SIM_PASS && strcmp(report.check, plan.check) == 0;
        fb_sim_ledger_again(&h->ledger, path, fails);
        if (fails) {
            h->failures++;
            if (h->result == FB_SIM_PASS) {
                h->result = report.result;
                snprintf(h->check, sizeof h->check, "%s", report.check);
                snprintf(h->seed, sizeof h->seed, "%s", plan.seed_text);
                snprintf(h->schedule, sizeof h->schedule, "%s", path);
            }
            fprintf(stderr, "still FAILS %s\n", plan.check);
            fb_sim_print_replay(path);
        } else {
            fprintf(stderr, "no longer fails by %s: %s\n", plan.check, path);
        }
    }
    fb_sim_plan_free(&plan);
}

static bool seeds_of(const char *text, uint64_t *first, uint64_t *last)
{
    char low[32];
    const char *dots = strstr(text, "..");
    if (dots == NULL || (size_t)(dots - text) >= sizeof low) return false;
    memcpy(low, text, (size_t)(dots - text));
    low[dots - text] = 0;
    return fb_sim_parse_number(low, first) && fb_sim_parse_number(dots + 2, last) &&
           *first <= *last && *last != UINT64_MAX;
}

static void closing(const hunt *h)
{
    uint64_t ms = (fb_sim_real_ns() - h->began_ns) / 1000000 + 1;
    printf("{\"result\":\"%s\",\"seed\":", fb_sim_result_name(h->result));
    fb_sim_print_json_text(h->seed[0] == 0 ? NULL : h->seed);
    printf(",\"events\":%llu,\"hash\":null,\"check\":", (unsigned long long)h->events);
    fb_sim_print_json_text(h->check[0] == 0 ? NULL : h->check);
    printf(",\"stall\":null,\"schedule\":");
    fb_sim_print_json_text(h->schedule[0] == 0 ? NULL : h->schedule);
    printf(",\"events_per_s\":%llu,\"runs\":%llu,\"failures\":%llu,\"distinct\":%u,"
           "\"unshrunk\":%llu,\"states\":%u,\"dry\":%s}\n",
           (unsigned long long)(h->events * 1000 / ms), (unsigned long long)h->runs,
           (unsigned long long)h->failures, (unsigned)h->ledger.distinct,
           (unsigned long long)h->unshrunk, (unsigned)h->explorer.states,
           h->dry ? "true" : "false");
    fflush(stdout);
}

int fb_sim_hunt_main(int argc, char **argv)
{
    const char *out = "build/hunt", *commit = "-", *mutant = NULL;
    hunt *h = calloc(1, sizeof *h);
    if (h == NULL) return FB_SIM_EXIT_RESOURCE;
    h->config = fb_sim_config_default();
    h->last = UINT64_MAX;
    h->until_ns = FB_NEVER;
    h->shrink_ns = 600 * SECOND;
    h->began_ns = h->told_ns = h->entered_ns = fb_sim_real_ns();
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    h->jobs = processors < 1 ? 1 : processors > (long)JOBS_MAX ? JOBS_MAX : (uint32_t)processors;
    uint64_t number;
    fb_sim_explore how = FB_SIM_EXPLORE_POOL;
    bool good = true, said = false;
    for (int i = 2; i < argc && good; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool ours = true;
        if (strcmp(argv[i], "--first") == 0) {
            h->first_only = true;
            continue;
        }
        if (value == NULL) {
            ours = false;
        } else if (strcmp(argv[i], "--for") == 0) {
            good = fb_sim_parse_time(value, &number);
            h->until_ns = fb_add_sat_u64(h->began_ns, number);
        } else if (strcmp(argv[i], "--seeds") == 0) {
            good = seeds_of(value, &h->first, &h->last);
        } else if (strcmp(argv[i], "--jobs") == 0) {
            good = fb_sim_parse_number(value, &number) && number >= 1 && number <= JOBS_MAX;
            h->jobs = (uint32_t)number;
        } else if (strcmp(argv[i], "--out") == 0) {
            out = value;
        } else if (strcmp(argv[i], "--explore") == 0) {
            good = fb_sim_explore_read(value, &how);
            said = true;
        } else if (strcmp(argv[i], "--commit") == 0) {
            commit = value;
            for (const char *p = value; *p != 0; p++) good = good && *p > ' ' && *p < 0x7f;
        } else if (strcmp(argv[i], "--shrink-for") == 0) {
            good = fb_sim_parse_time(value, &h->shrink_ns);
        } else {
            ours = false;
        }
        if (!good) fb_sim_misused("hunt", "not a value of this flag", value);
        if (ours) {
            i++;
            continue;
        }
        fb_sim_flag read = fb_sim_flag_read(argc, argv, &i, &h->config, &mutant);
        if (read == FB_SIM_FLAG_UNKNOWN) fb_sim_misused("hunt", "no flag of this name", argv[i]);
        good = good && read == FB_SIM_FLAG_TAKEN;
    }
    int code = good ? -1 : FB_SIM_EXIT_USAGE;
    if (code < 0 && mutant != NULL) code = fb_sim_mutant_switch(argc, argv, mutant);
    if (code < 0 && !fb_sim_ledger_open(&h->ledger, out, commit)) code = FB_SIM_EXIT_USAGE;
    char folder[PATH_MAX / 2];
    if (code < 0) {
        /* Seeds that are named are the seeds that are played. */
        if (!said && h->last != UINT64_MAX) how = FB_SIM_EXPLORE_SWARM;
        int n = snprintf(folder, sizeof folder, "%s/pool", out);
        if (n < 0 || (size_t)n >= sizeof folder ||
            !fb_sim_explorer_open(&h->explorer, how, folder)) {
            code = FB_SIM_EXIT_RESOURCE;
        }
    }
    for (uint32_t i = 0; code < 0 && i < h->jobs; i++) {
        h->slots[i].shown = mmap(NULL, sizeof *h->slots[i].shown, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (h->slots[i].shown == MAP_FAILED) code = FB_SIM_EXIT_RESOURCE;
    }
    if (code >= 0) {
        free(h);
        return code;
    }
    h->bug = mutant;
    /* Where an earlier hunt in this folder ended, unless seeds are named. */
    h->next = h->last == UINT64_MAX ? h->ledger.next_seed : h->first;
    h->first = h->entered_first = h->next;
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    fb_sim_ledger_each(&h->ledger, again, h);
    hunt_all(h);
    enter_runs(h, true);
    closing(h);
    code = fb_sim_result_exit(h->result);
    fb_sim_explorer_close(&h->explorer);
    free(h);
    return code;
}
