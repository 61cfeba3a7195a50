/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim bench`: steps a second without faults, and what a step is made of. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "protocol/base/assert.h"
#include "sim/main_sim.h"
#include "sim/run.h"
#include "sim/workload/bench.h"
#include "sim/workload/director.h"

#define MILLION UINT64_C(1000000)

/* In which records that were written everywhere have arrived everywhere. */
#define SETTLE_NS (UINT64_C(120) * 1000 * MILLION)

typedef struct bench_args {
    bool messages, records, fast;
    bool stored; /* the messages profile begins with the records in the stores */
    uint32_t nodes, degree, record_count;
    uint64_t events;
    uint64_t window; /* steps that are measured before, between and after */
} bench_args;

static int usage_error(const char *what)
{
    fprintf(stderr, "faberio sim bench: %s\n", what);
    return FB_SIM_EXIT_USAGE;
}

static uint64_t rate(uint64_t steps, uint64_t ns)
{
    return ns == 0 ? 0 : steps * 1000 * MILLION / ns;
}

/* The processor's name, for people: a rate means nothing without it. */
static void print_processor(void)
{
    char line[256], *name = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "model name", 10) == 0 && (name = strchr(line, ':')) != NULL) break;
    }
    if (file != NULL) fclose(file);
    printf("processor %s", name == NULL ? " unknown\n" : name + 1);
}

/* What the queue alone costs: entries that do nothing, as many under way as a run has. */
static uint64_t bare_rate(fb_sim_world *world)
{
    static fb_sim_entry entries[4096];
    fb_sim_queue queue;
    fb_sim_queue_init(&queue, entries, 4096);
    fb_sim_entry entry;
    for (uint32_t i = 0; i < 64; i++) fb_sim_queue_push(&queue, i, 1 + i % 5, FB_SIM_AT_TICK, i, 0);
    uint64_t began = fb_sim_processor_ns();
    for (uint64_t i = 0; i < MILLION; i++) {
        FB_ASSERT(fb_sim_queue_pop(&queue, &entry));
        uint64_t gap = 1 + (fb_draw(world->seed, FB_SIM_STREAM_RUN, 9, i) & 0xffff);
        fb_sim_queue_push(&queue, entry.time_ns + gap, fb_sim_entry_node(&entry), FB_SIM_AT_TICK,
                          entry.ref, 0);
    }
    return rate(MILLION, fb_sim_processor_ns() - began);
}

/* Runs until `steps` more; the rate over them. Never inlined, so that a profiler can begin here. */
__attribute__((noinline)) static uint64_t measure(fb_sim_world *world, uint64_t steps)
{
    uint64_t from = world->steps;
    uint64_t began = fb_sim_processor_ns();
    while (world->steps < from + steps && fb_sim_world_next(world)) {
    }
    return rate(world->steps - from, fb_sim_processor_ns() - began);
}

/* Places for links that pass: who joins, who replaces another. */
#define JOINING 5u

/* Many nodes in little memory: tables for what one of them meets, stores for the records asked for.
 */
static void sizes_of_many(const bench_args *args, fb_sim_config *config)
{
    uint32_t links = args->degree == 0 ? args->nodes : args->degree + JOINING;
    fb_sizes *sizes = &config->sizes;
    sizes->links = links;
    sizes->spaces = sizes->applications = sizes->invites = 1;
    sizes->members = args->nodes + 1;
    sizes->areas = 3;
    sizes->vector_entries = args->nodes + 8;
    /* Of so many members nothing is folded (FB_CUT_MEMBERS_MAX). */
    config->timing.report_ns = UINT64_C(90000000000000);
    sizes->addresses = 10;
    sizes->operations = 7;
    sizes->operation_bytes = 8 * 1024;
    sizes->requests = 6;
    sizes->calls = 4;
    sizes->call_bytes = 2 * 1024 + 512;
    sizes->envelopes = 12;
    sizes->seen_ids = 12;
    sizes->write_set_bytes = 8 * 1024;
    sizes->write_set_entries = 80;
    config->store_items = 16 * links + 7 * (args->record_count + args->nodes) / 2;
    config->connections = 64 + args->nodes * links;
}

static void sizes_for(const bench_args *args, fb_sim_config *config, bool records)
{
    config->nodes = args->nodes;
    config->degree = args->degree;
    config->faults = false;
    config->fast = args->fast;
    config->carriers_of_16 = 0;
    config->quiet = true;
    config->events = UINT64_MAX;
    /* More than an honest node would send: the bucket is not what is measured. */
    config->timing.rate_per_s = 1000000;
    config->timing.rate_burst = 1000000;
    /* A simulated run says what it holds every few seconds, to meet what follows from it often. */
    config->timing.report_ns = fb_options_default().timing.report_ns;
    config->connections =
        64 + 2 * args->nodes * (args->degree == 0 ? args->nodes : args->degree + 4);
    if (config->connections > 32768) config->connections = 32768;
    if (args->nodes > 16) sizes_of_many(args, config);
    if (records && args->nodes <= 8) {
        config->store_items = 1u << 20;
        config->blob_bytes = UINT64_C(2) << 30;
    }
}

/* The records asked for, written by all nodes in turn and applied by every other one. */
static void store_records(const bench_args *args, fb_sim_world *world)
{
    fb_sim_bench *bench = world->bench, messages = *bench;
    uint32_t nodes = args->nodes;
    bench->profile = FB_SIM_BENCH_RECORDS;
    bench->interval_ns = 100 * MILLION;
    bench->left = (args->record_count + nodes - 1) / nodes;
    uint64_t count = bench->left * nodes, changes = count * (nodes - 1);
    uint64_t wanted = world->applied + changes;
    uint64_t until_ns = world->now_ns + SETTLE_NS;
    fb_sim_bench_start(world);
    while (world->applied < wanted && world->now_ns < until_ns && fb_sim_world_next(world)) {
    }
    printf("stored: %llu records on each of %u nodes, %llu changes of others applied of %llu\n",
           (unsigned long long)count, (unsigned)nodes,
           (unsigned long long)(changes + world->applied - wanted), (unsigned long long)changes);
    memset(bench->turns, 0, nodes * sizeof *bench->turns);
    *bench = messages;
}

static int bench_one(const bench_args *args, fb_sim_bench_profile profile, uint64_t *steps_per_s)
{
    bool records = profile == FB_SIM_BENCH_RECORDS;
    fb_sim_config config = fb_sim_config_default();
    config.second = 0;
    config.documents = 0;
    sizes_for(args, &config, records);
    fb_sim_world *world = fb_sim_world_create(&config);
    if (world == NULL) return usage_error("the machine has no memory for it");
    fb_sim_fail_set((fb_sim_current){.seed = config.seed_text, .steps = &world->steps});
    fb_sim_bench bench = {
        .profile = profile,
        .records = args->record_count,
        /* Messages: one at a time, so rarely that nothing coalesces; heartbeats are a part of it.
         * Records: so often that answers carry more than one batch and a seventh of the steps apply
         * a change. */
        .interval_ns = records ? MILLION * 5 / 4 : 1000 * MILLION,
        .per_turn = 1,
        .turns = calloc(config.nodes, sizeof *bench.turns),
        .left = UINT64_MAX,
    };
    FB_ASSERT(bench.turns != NULL);
    world->director->bench = true;
    fb_sim_director_start(world);
    while (world->director->phase != FB_SIM_PHASE_BENCH && fb_sim_world_next(world)) {
    }
    world->bench = &bench;
    if (!records && args->stored && !world->stop) store_records(args, world);
    if (!world->stop) fb_sim_bench_start(world);
    size_t before = mallinfo2().uordblks;
    uint64_t steps = world->steps, ticks = world->ticks;
    /* A full window of seen ids, so that the state has its size, then what is asked for. */
    uint64_t first = measure(world, args->window);
    uint64_t early = measure(world, args->window);
    uint64_t ticked = world->ticks - ticks, accepted = world->accepting, applied = world->applying;
    uint64_t began = fb_sim_processor_ns(), from = world->steps;
    measure(world, args->events);
    *steps_per_s = rate(world->steps - from, fb_sim_processor_ns() - began);
    uint64_t late = measure(world, args->window);
    accepted = world->accepting - accepted;
    applied = world->applying - applied;
    ticked = world->ticks - ticks - ticked;
    uint64_t measured = world->steps - from == 0 ? 1 : world->steps - from;
    size_t after = mallinfo2().uordblks;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fb_sim_verdict verdict = {.result = world->result,
                              .check = world->check,
                              .events = world->steps,
                              .events_per_s = *steps_per_s,
                              .hash = fb_sim_trace_hash(&world->trace)};
    printf("%s: %u nodes%s\n", records ? "records" : "messages", (unsigned)config.nodes,
           config.fast ? ", checks and digests every 65536 steps" : "");
    printf("  steps a second       %9llu (bare event loop %llu)\n",
           (unsigned long long)*steps_per_s, (unsigned long long)bare_rate(world));
    printf("  first, second, last window  %llu, %llu, %llu\n", (unsigned long long)first,
           (unsigned long long)early, (unsigned long long)late);
    printf("  of 1000 steps        %llu accept messages, %llu apply changes, %llu are ticks\n",
           (unsigned long long)(accepted * 1000 / measured),
           (unsigned long long)(applied * 1000 / measured),
           (unsigned long long)(ticked * 1000 / measured));
    printf("  memory               %zu KiB in the world, %zu KiB a node, %ld KiB resident\n",
           world->arena.cap / 1024, world->instance_bytes / 1024, usage.ru_maxrss);
    printf("  allocated after start %zd bytes; steps of the set-up %llu; requests refused %llu\n",
           (ssize_t)(after - before), (unsigned long long)steps, (unsigned long long)bench.failed);
    if (world->result != FB_SIM_PASS) printf("  FAILED %s: %s\n", world->check, world->detail);
    fb_sim_print_verdict(&config, &verdict);
    int exit_code = fb_sim_result_exit(world->result);
    free(bench.turns);
    fb_sim_fail_set((fb_sim_current){0});
    fb_sim_world_destroy(world);
    return exit_code;
}

static bool parse(int argc, char **argv, bench_args *args, const char **wrong)
{
    for (int i = 2; i < argc; i++) {
        uint64_t number;
        *wrong = argv[i];
        if (strcmp(argv[i], "messages") == 0) {
            args->records = false;
        } else if (strcmp(argv[i], "records") == 0) {
            args->messages = false;
        } else if (strcmp(argv[i], "--stored") == 0) {
            args->stored = true;
        } else if (strcmp(argv[i], "--fast") == 0) {
            args->fast = true;
        } else if (strcmp(argv[i], "all") != 0) {
            if (i + 1 == argc || !fb_sim_parse_number(argv[i + 1], &number)) return false;
            const char *flag = argv[i++];
            if (strcmp(flag, "--nodes") == 0 && number >= 2 && number <= FB_SIM_NODES_MAX) {
                args->nodes = (uint32_t)number;
            } else if (strcmp(flag, "--degree") == 0 && number <= FB_SIM_NODES_MAX) {
                args->degree = (uint32_t)number;
            } else if (strcmp(flag, "--events") == 0) {
                args->events = number;
            } else if (strcmp(flag, "--window") == 0 && number != 0) {
                args->window = number;
            } else if (strcmp(flag, "--records") == 0 && number >= 1 && number <= MILLION) {
                args->record_count = (uint32_t)number;
            } else {
                return false;
            }
        }
    }
    return args->messages || args->records;
}

int fb_sim_bench_main(int argc, char **argv)
{
    bench_args args = {
        .messages = true,
        .records = true,
        .nodes = 5,
        .record_count = 1000,
        .events = 2 * MILLION,
        .window = MILLION,
    };
    const char *wrong = "";
    if (!parse(argc, argv, &args, &wrong)) return usage_error(wrong);
    print_processor();
    int exit_code = 0;
    uint64_t steps_per_s;
    if (args.messages) exit_code = bench_one(&args, FB_SIM_BENCH_MESSAGES, &steps_per_s);
    if (args.records && exit_code == 0) {
        exit_code = bench_one(&args, FB_SIM_BENCH_RECORDS, &steps_per_s);
    }
    return exit_code;
}
