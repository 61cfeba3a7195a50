/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule/recorder.h"

#include <stdlib.h>

#include "sim/schedule/schedule.h"
#include "sim/workload/director.h"

void fb_sim_recorder_init(fb_sim_world *world, fb_arena *arena)
{
    if (world->config.record == NULL) return;
    fb_sim_recorder *recorder = fb_arena_take(arena, 1, sizeof *recorder);
    if (arena->base == NULL) return;
    world->recorder = recorder;
    recorder->schedule = world->config.record;
    recorder->schedule->second = world->config.second;
    recorder->schedule->documents = world->config.documents;
    /* As the director waits when nobody plays. */
    recorder->schedule->setup_ns = recorder->schedule->settle_ns = FB_SIM_DIRECTOR_QUIET_NS;
}

void fb_sim_recorder_round(fb_sim_world *world)
{
    fb_sim_recorder *recorder = world->recorder;
    fb_sim_plan_round *round = fb_sim_plan_round_add(recorder->schedule);
    recorder->start_ns = world->now_ns;
    recorder->first = recorder->schedule->line_count;
    recorder->overflow = recorder->overflow || round == NULL;
    if (round == NULL) return;
    round->number = world->director->round;
    round->length_ns = world->director->phase_until_ns - world->now_ns;
}

static fb_sim_line *line_add(fb_sim_recorder *recorder)
{
    fb_sim_line *line = fb_sim_plan_line_add(recorder->schedule);
    if (line == NULL) recorder->overflow = true;
    return line;
}

void fb_sim_recorder_window(fb_sim_world *world, const fb_sim_window *w)
{
    fb_sim_line *line = line_add(world->recorder);
    if (line == NULL) return;
    line->kind = FB_SIM_LINE_WINDOW;
    line->at_ns = w->start_ns - world->recorder->start_ns;
    line->until_ns = w->end_ns - world->recorder->start_ns;
    line->fault = w->fault;
    line->key = w->key;
    line->a = w->a;
    line->b = w->b;
    line->p = w->p;
    line->q = w->q;
    line->mask = w->mask;
    fb_sim_window_normalise(world->recorder->schedule, line);
}

void fb_sim_recorder_op(fb_sim_world *world, uint32_t node, uint32_t client, const fb_sim_op *op)
{
    fb_sim_line *line = line_add(world->recorder);
    if (line == NULL) return;
    line->kind = FB_SIM_LINE_OP;
    line->at_ns = world->now_ns - world->recorder->start_ns;
    line->within_ns = FB_SIM_SCHEDULE_WITHIN_NS;
    line->a = line->b = node;
    line->client = client;
    line->op = *op;
    fb_sim_op_normalise(&line->op);
}

void fb_sim_recorder_heal(fb_sim_world *world)
{
    fb_sim_recorder *recorder = world->recorder;
    fb_sim_plan *schedule = recorder->schedule;
    if (schedule->round_count == 0) return;
    fb_sim_plan_round *round = &schedule->rounds[schedule->round_count - 1];
    round->length_ns = world->now_ns - recorder->start_ns;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (!world->held_apart[i]) round->core |= UINT64_C(1) << (i % 64);
    }
    uint64_t all =
        world->config.nodes >= 64 ? UINT64_MAX : (UINT64_C(1) << world->config.nodes) - 1;
    if (round->core == all) round->core = 0;
}

/* Windows that would begin after the end of their round, or of the run, never did. */
static void lines_prune(fb_sim_plan *schedule, uint64_t last_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < schedule->line_count; i++) {
        fb_sim_line line = schedule->lines[i];
        uint64_t end = schedule->rounds[line.round].length_ns;
        if (line.round + 1 == schedule->round_count && last_ns < end) end = last_ns;
        if (line.kind == FB_SIM_LINE_WINDOW && line.at_ns > end) continue;
        schedule->lines[kept++] = line;
    }
    schedule->line_count = kept;
}

/* Of one round: windows stand first, as they were drawn, then operations in the order of time. Both
 * together in the order of time; what begins at one moment stays as it was. */
static void round_sort(fb_sim_line *lines, uint32_t count)
{
    fb_sim_line windows[FB_SIM_WINDOWS_MAX];
    uint32_t held = 0, to = 0;
    for (uint32_t i = 0; i < count && lines[i].kind == FB_SIM_LINE_WINDOW; i++) {
        uint32_t at = held++;
        for (; at > 0 && windows[at - 1].at_ns > lines[i].at_ns; at--)
            windows[at] = windows[at - 1];
        windows[at] = lines[i];
    }
    uint32_t window = 0;
    for (uint32_t op = held; op < count || window < held; to++) {
        bool first = op == count || (window < held && windows[window].at_ns <= lines[op].at_ns);
        lines[to] = first ? windows[window++] : lines[op++];
    }
}

static void lines_sort(fb_sim_plan *schedule)
{
    uint32_t from = 0;
    while (from < schedule->line_count) {
        uint32_t to = from;
        while (to < schedule->line_count &&
               schedule->lines[to].round == schedule->lines[from].round)
            to++;
        round_sort(schedule->lines + from, to - from);
        from = to;
    }
}

bool fb_sim_recorder_end(fb_sim_world *world)
{
    fb_sim_recorder *recorder = world->recorder;
    fb_sim_plan *schedule = recorder->schedule;
    lines_prune(schedule, world->now_ns - recorder->start_ns);
    lines_sort(schedule);
    if (world->steps == world->config.events) schedule->steps = world->steps;
    schedule->has_hash = true;
    schedule->hash = fb_sim_trace_hash(&world->trace);
    schedule->expect = FB_SIM_EXPECT_PASS;
    if (world->result != FB_SIM_PASS) {
        schedule->expect = FB_SIM_EXPECT_VIOLATES;
        snprintf(schedule->check, sizeof schedule->check, "%s", world->check);
    }
    return !recorder->overflow;
}
