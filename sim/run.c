/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/run.h"

#include <stdio.h>
#include <time.h>

#include "sim/checkers/checks.h"
#include "sim/schedule/player.h"
#include "sim/schedule/recorder.h"
#include "sim/schedule/verbs.h"
#include "sim/workload/director.h"

uint64_t fb_sim_processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t fb_sim_real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

const char *fb_sim_result_name(fb_sim_result result)
{
    static const char *const names[] = {"pass",           "safety",   "liveness", "crash",
                                        "nondeterminism", "resource", "oracle"};
    return names[result];
}

int fb_sim_result_exit(fb_sim_result result)
{
    static const int codes[] = {FB_SIM_EXIT_PASS,  FB_SIM_EXIT_SAFETY,         FB_SIM_EXIT_LIVENESS,
                                FB_SIM_EXIT_CRASH, FB_SIM_EXIT_NONDETERMINISM, FB_SIM_EXIT_RESOURCE,
                                FB_SIM_EXIT_ORACLE};
    return codes[result];
}

/* The process ends within the run: what was recorded so far is the schedule of it. */
static void ending(void *of, const char *check)
{
    fb_sim_world *world = of;
    if (world->recorder == NULL || world->config.record_path == NULL) return;
    fb_sim_violated(world, FB_SIM_CRASHED, check, "the process ends");
    if (fb_sim_recorder_end(world))
        fb_sim_plan_save(world->config.record_path, world->config.record);
}

bool fb_sim_run(const fb_sim_config *config, fb_sim_verdict *out)
{
    *out = (fb_sim_verdict){.result = FB_SIM_PASS};
    fb_sim_world *world = fb_sim_world_create(config);
    if (world == NULL) return false;
    fb_sim_fail_set((fb_sim_current){config->seed_text, &world->steps, ending, world});
    uint64_t began = fb_sim_processor_ns();
    fb_sim_director_start(world);
    while (fb_sim_world_next(world)) {
    }
    out->stopped = !world->stop && config->stop_at_step < config->events;
    if (world->recorder != NULL) out->recorded = fb_sim_recorder_end(world);
    if (world->player != NULL) {
        out->unreached = fb_sim_player_unreached(world, &out->unreached_first);
    }
    uint64_t took = fb_sim_processor_ns() - began;
    out->result = world->result;
    out->check = world->check;
    out->stall = world->stall;
    memcpy(out->detail, world->detail, sizeof out->detail);
    out->events = world->steps;
    out->events_per_s = took == 0 ? 0 : world->steps * 1000000 / (took / 1000 + 1);
    out->rounds = world->director->round;
    out->sim_ns = world->now_ns;
    out->hash = fb_sim_trace_hash(&world->trace);
    memcpy(out->fired, world->fired, sizeof out->fired);
    fb_sim_checks_seen(world, out->seen);
    if (out->result != FB_SIM_PASS && !config->quiet) {
        fprintf(stderr, "FAIL %s %s at event %llu, t=%llu.%03llu s, round %llu: %s\n",
                fb_sim_result_name(out->result), out->check, (unsigned long long)out->events,
                (unsigned long long)(world->now_ns / UINT64_C(1000000000)),
                (unsigned long long)(world->now_ns / 1000000 % 1000),
                (unsigned long long)out->rounds, out->detail);
    }
    fb_sim_fail_set((fb_sim_current){0});
    fb_sim_world_destroy(world);
    return true;
}

void fb_sim_print_json_text(const char *text)
{
    if (text == NULL) {
        printf("null");
        return;
    }
    putchar('"');
    for (; *text != 0; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            printf("\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7f) {
            printf("\\u%04x", (unsigned)byte);
        } else {
            putchar(byte);
        }
    }
    putchar('"');
}

void fb_sim_print_verdict(const fb_sim_config *config, const fb_sim_verdict *verdict)
{
    char hash[33];
    fb_sim_trace_text(verdict->hash, hash);
    printf("{\"result\":\"%s\",\"seed\":\"%s\",\"events\":%llu,\"hash\":\"%s\",\"check\":",
           fb_sim_result_name(verdict->result), config->seed_text,
           (unsigned long long)verdict->events, hash);
    if (verdict->check == NULL) {
        printf("null");
    } else {
        printf("\"%s\"", verdict->check);
    }
    printf(",\"stall\":");
    fb_sim_print_json_text(verdict->stall);
    printf(",\"schedule\":");
    fb_sim_print_json_text(verdict->schedule);
    printf(",\"events_per_s\":%llu}\n", (unsigned long long)verdict->events_per_s);
    fflush(stdout);
}
