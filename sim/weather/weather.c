/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/weather/weather.h"

#include <stdio.h>

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "sim/checkers/checks.h"
#include "sim/documents/documents.h"
#include "sim/schedule/player.h"
#include "sim/schedule/recorder.h"
#include "sim/view/timeline.h"
#include "sim/weather/byzantine.h"
#include "sim/workload/director.h"
#include "sim/workload/let_in.h"
#include "sim/workload/workload.h"
#include "sim/world/world.h"

#define MS       UINT64_C(1000000)
#define SECOND   UINT64_C(1000000000)
#define US_PER_S INT64_C(1000000)

void fb_sim_weather_init(fb_sim_world *world, fb_arena *arena)
{
    world->weather = fb_arena_take(arena, 1, sizeof *world->weather);
}

void fb_sim_weather_begin(fb_sim_world *world, uint64_t round)
{
    fb_sim_weather *weather = world->weather;
    weather->round = round;
    weather->count = 0;
    weather->generation++;
    memset(weather->on, 0, sizeof weather->on);
}

bool fb_sim_weather_add(fb_sim_world *world, const fb_sim_window *window)
{
    fb_sim_weather *weather = world->weather;
    if (weather->count == FB_SIM_WINDOWS_MAX) return false;
    weather->on[window->fault] = true;
    weather->windows[weather->count] = *window;
    uint32_t ref = weather->generation << 8 | weather->count++;
    fb_sim_schedule_world(world, window->start_ns, FB_SIM_AT_WEATHER, ref, 1);
    fb_sim_schedule_world(world, window->end_ns, FB_SIM_AT_WEATHER, ref, 0);
    return true;
}

void fb_sim_weather_text(const fb_sim_world *world, char *out, size_t cap)
{
    const fb_sim_weather *weather = world->weather;
    size_t used = 0;
    out[0] = 0;
    for (uint32_t fault = 0; fault < FB_SIM_FAULTS; fault++) {
        if (!weather->on[fault]) continue;
        int n = snprintf(out + used, cap - used, "%s%s", used == 0 ? "" : " ",
                         fb_sim_fault_rows[fault].name);
        if (n < 0 || (size_t)n >= cap - used) return;
        used += (size_t)n;
    }
    if (used == 0) snprintf(out, cap, "calm");
}

/* Paths: the state of all is made anew from the windows that are open. */

static void both_ways(fb_sim_world *world, uint32_t a, uint32_t b)
{
    fb_sim_path_of(world, a, b)->blocked = true;
    fb_sim_path_of(world, b, a)->blocked = true;
}

static void split(fb_sim_world *world, const fb_sim_window *w, uint32_t bridge)
{
    uint32_t nodes = world->config.nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        for (uint32_t j = i + 1; j < nodes; j++) {
            if (i == bridge || j == bridge) continue;
            if (fb_sim_window_group(w, i) != fb_sim_window_group(w, j)) both_ways(world, i, j);
        }
    }
}

/* Of two windows at once the worse one counts, whichever came first. */
static void more_often(uint32_t *of, uint64_t p)
{
    if (*of == 0 || p < *of) *of = (uint32_t)p;
}

static void apply_to_path(fb_sim_path *path, const fb_sim_window *w)
{
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_DELAY:
        path->delay_mean_ns = fb_max_u64(path->delay_mean_ns, w->p);
        path->in_order = false;
        break;
    case FB_SIM_FAULT_RATE:
        more_often(&path->rate, w->p);
        break;
    case FB_SIM_FAULT_SEGMENT:
        path->segment_of_16 = (uint16_t)fb_max_u64(path->segment_of_16, w->p);
        break;
    case FB_SIM_FAULT_CORRUPT:
        more_often(&path->corrupt_of, w->p);
        path->corrupt_bits = (uint16_t)fb_max_u64(path->corrupt_bits, w->q);
        break;
    case FB_SIM_FAULT_QUEUE:
        more_often(&path->queue_cap, w->p);
        path->queue_old_go = w->q == 2;
        break;
    case FB_SIM_FAULT_TRUNCATE:
        more_often(&path->truncate_of, w->p);
        break;
    case FB_SIM_FAULT_CUT:
        more_often(&path->cut_of, w->p);
        break;
    case FB_SIM_FAULT_HALF_OPEN:
        path->half_open = true;
        break;
    case FB_SIM_FAULT_LOSS:
        more_often(&path->loss_of, w->p);
        break;
    case FB_SIM_FAULT_DUP:
        more_often(&path->dup_of, w->p);
        path->dup_copies = (uint16_t)fb_max_u64(path->dup_copies, w->q);
        break;
    case FB_SIM_FAULT_REORDER:
        more_often(&path->reorder_of, w->p);
        path->reorder_ns = fb_max_u64(path->reorder_ns, w->q);
        path->in_order = false;
        break;
    case FB_SIM_FAULT_STALE_SESSION:
        more_often(&path->stale_of, w->p);
        break;
    default:
        break;
    }
}

static void apply_to_paths(fb_sim_world *world, const fb_sim_window *w)
{
    uint32_t nodes = world->config.nodes;
    if (fb_sim_fault_is_of_paths(w->fault)) {
        /* Everything to and from one node, or one path alone when the two nodes differ. */
        for (uint32_t other = 0; other < nodes; other++) {
            if (w->b != w->a && other != w->b) continue;
            apply_to_path(fb_sim_path_of(world, w->a, other), w);
            apply_to_path(fb_sim_path_of(world, other, w->a), w);
        }
        return;
    }
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_ISOLATE:
        for (uint32_t i = 0; i < nodes; i++) {
            if (i != w->a) both_ways(world, w->a, i);
        }
        break;
    case FB_SIM_FAULT_FLAP:
        for (uint32_t i = 0; i < nodes && (w->acts & 1) != 0; i++) {
            if (i != w->a) both_ways(world, w->a, i);
        }
        break;
    case FB_SIM_FAULT_SPLIT:
        split(world, w, UINT32_MAX);
        break;
    case FB_SIM_FAULT_BRIDGE:
        split(world, w, w->a);
        break;
    case FB_SIM_FAULT_RING:
        for (uint32_t i = 0; i < nodes; i++) {
            for (uint32_t j = i + 2; j < nodes; j++) {
                if (i != 0 || j != nodes - 1) both_ways(world, i, j);
            }
        }
        break;
    case FB_SIM_FAULT_ONEWAY:
        fb_sim_path_of(world, w->a, w->b)->blocked = true;
        break;
    case FB_SIM_FAULT_NONTRANSITIVE:
        both_ways(world, w->a, w->b);
        break;
    default:
        break;
    }
}

static void paths_reset(fb_sim_world *world)
{
    uint32_t nodes = world->config.nodes;
    for (uint32_t i = 0; i < nodes * nodes; i++) {
        fb_sim_path *path = &world->network.paths[i];
        *path = (fb_sim_path){
            .delay_min_ns = world->config.delay_min_ns,
            .delay_mean_ns = world->config.delay_mean_ns,
            .delay_draws = path->delay_draws,
            .in_order = true,
            .sends = path->sends,
            .deliveries = path->deliveries,
            .dials = path->dials,
        };
    }
}

static void paths_renew(fb_sim_world *world)
{
    paths_reset(world);
    fb_sim_weather *weather = world->weather;
    for (uint32_t i = 0; i < weather->count; i++) {
        if (weather->windows[i].active) apply_to_paths(world, &weather->windows[i]);
    }
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (world->held_apart[i]) {
            for (uint32_t j = 0; j < world->config.nodes; j++) {
                if (i != j) both_ways(world, i, j);
            }
        }
    }
    for (uint32_t i = 0; i < world->config.nodes; i++) world->network.answers[i] = (uint16_t)i;
    for (uint32_t i = 0; i < weather->count; i++) {
        const fb_sim_window *w = &weather->windows[i];
        bool moved = w->active && w->fault == FB_SIM_FAULT_ADDRESS_REUSE;
        if (moved) world->network.answers[w->a] = (uint16_t)w->b;
    }
    fb_sim_network_unblocked(world);
}

void fb_sim_paths_renew(fb_sim_world *world)
{
    paths_renew(world);
}

/* Disks, like paths, are made anew. */
static void disks_renew(fb_sim_world *world)
{
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        fb_sim_disk *disk = &world->nodes[i].disk;
        disk->read_mean_ns = world->config.read_mean_ns;
        disk->write_mean_ns = world->config.write_mean_ns;
        disk->read_fail_of = disk->write_fail_of = 0;
        disk->loses_unsynced = false;
    }
    const fb_sim_weather *weather = world->weather;
    for (uint32_t i = 0; i < weather->count; i++) {
        const fb_sim_window *w = &weather->windows[i];
        if (!w->active) continue;
        fb_sim_disk *disk = &world->nodes[w->a].disk;
        if (w->fault == FB_SIM_FAULT_READ_LATE) {
            disk->read_mean_ns = fb_max_u64(disk->read_mean_ns, w->p);
        }
        if (w->fault == FB_SIM_FAULT_WRITE_LATE) {
            disk->write_mean_ns = fb_max_u64(disk->write_mean_ns, w->p);
        }
        if (w->fault == FB_SIM_FAULT_READ_FAIL) more_often(&disk->read_fail_of, w->p);
        if (w->fault == FB_SIM_FAULT_WRITE_FAIL) more_often(&disk->write_fail_of, w->p);
        if (w->fault == FB_SIM_FAULT_LOSE_UNSYNCED) disk->loses_unsynced = true;
    }
}

/* Ticks, too; those that wait are set anew. */
static void ticks_renew(fb_sim_world *world)
{
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        fb_sim_ticks *ticks = &world->nodes[i].ticks;
        *ticks = (fb_sim_ticks){.drawn = ticks->drawn};
    }
    const fb_sim_weather *weather = world->weather;
    for (uint32_t i = 0; i < weather->count; i++) {
        const fb_sim_window *w = &weather->windows[i];
        if (!w->active) continue;
        fb_sim_ticks *ticks = &world->nodes[w->a].ticks;
        if (w->fault == FB_SIM_FAULT_TIMER_EARLY) ticks->early_of_16 = (uint32_t)w->p;
        if (w->fault == FB_SIM_FAULT_TIMER_LATE) ticks->late_mean_ns = w->p;
        if (w->fault == FB_SIM_FAULT_TIMER_BURST) ticks->burst = (uint32_t)w->p;
        if (w->fault == FB_SIM_FAULT_TIMER_STARVE) {
            ticks->starved_until_ns = fb_max_u64(ticks->starved_until_ns, w->end_ns);
        }
        if (w->fault == FB_SIM_FAULT_TIMER_COALESCE) ticks->grid_ns = w->p;
    }
    for (uint32_t i = 0; i < world->config.nodes; i++) fb_sim_tick_again(world, i);
}

static bool about_ticks(uint32_t fault)
{
    return fb_sim_fault_rows[fault].family == FB_SIM_FAMILY_TIMERS;
}

/* What happens to a process at its steps and starts, and how its clocks read. */
static void processes_renew(fb_sim_world *world)
{
    const fb_sim_weather *weather = world->weather;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        fb_sim_node *node = &world->nodes[i];
        node->slow_ns = 0;
        node->crash_at_kind = 0;
        node->killed_in_recovery = false;
        node->wall_back_of = 0;
        uint64_t grain_ns = 0;
        for (uint32_t k = 0; k < weather->count; k++) {
            const fb_sim_window *w = &weather->windows[k];
            if (!w->active || w->a != i) continue;
            if (w->fault == FB_SIM_FAULT_SLOW) node->slow_ns = fb_max_u64(node->slow_ns, w->p);
            if (w->fault == FB_SIM_FAULT_KILL_RECOVERY) node->killed_in_recovery = true;
            if (w->fault == FB_SIM_FAULT_CLOCK_COARSE) grain_ns = fb_max_u64(grain_ns, w->p);
            if (w->fault == FB_SIM_FAULT_CRASH_AT) {
                node->crash_at_kind = (uint32_t)w->p;
                node->crash_at_nth = w->q;
            }
            if (w->fault == FB_SIM_FAULT_CLOCK_BACKWARDS) {
                node->wall_back_of = (uint32_t)w->p;
                node->wall_back_ns = w->q;
            }
        }
        if (grain_ns != node->clock.grain_ns) {
            fb_sim_clock_grain(&node->clock, world->now_ns, grain_ns);
            fb_sim_tick_again(world, i);
        }
    }
}

/* Clocks. */

static int64_t true_wall(const fb_sim_world *world)
{
    return FB_SIM_WALL_START_US + (int64_t)(world->now_ns / 1000);
}

static void clock_set(fb_sim_world *world, uint32_t node, int64_t wall_us)
{
    fb_sim_clock *clock = &world->nodes[node].clock;
    fb_sim_clock_step(clock, world->now_ns, wall_us - fb_sim_clock_wall(clock, world->now_ns));
}

static void clock_begin(fb_sim_world *world, const fb_sim_window *w)
{
    fb_sim_clock *clock = &world->nodes[w->a].clock;
    int64_t by = (int64_t)w->p * US_PER_S;
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_OFFSET:
    case FB_SIM_FAULT_OFFSET_FAR:
    case FB_SIM_FAULT_CLOCK_STEP:
    case FB_SIM_FAULT_JUMP_YEAR:
        clock_set(world, w->a, true_wall(world) + (w->mask ? -by : by));
        break;
    case FB_SIM_FAULT_DRIFT:
        fb_sim_clock_rate(clock, world->now_ns, w->mask ? -(int32_t)w->p : (int32_t)w->p);
        break;
    case FB_SIM_FAULT_CLOCK_FREEZE:
        fb_sim_clock_freeze(clock, world->now_ns, true);
        break;
    case FB_SIM_FAULT_BEFORE_1970:
        clock_set(world, w->a, -by);
        break;
    case FB_SIM_FAULT_EPOCH_EDGE:
        clock_set(world, w->a, (INT64_C(1) << 48) * 1000 - by);
        break;
    default:
        return;
    }
    world->fired[w->fault]++;
}

/* Somebody sets the clock: to within a second. */
static void clock_mend(fb_sim_world *world, uint32_t node)
{
    fb_sim_clock *clock = &world->nodes[node].clock;
    fb_sim_clock_freeze(clock, world->now_ns, false);
    fb_sim_clock_rate(clock, world->now_ns, 0);
    int64_t off = (int64_t)fb_draw_below(world->seed, FB_SIM_STREAM_CLOCK, node + (1u << 20),
                                         world->weather->round, 2000000) -
                  1000000;
    clock_set(world, node, true_wall(world) + off);
}

/* Who sleeps wakes with a clock of his own; how a clock reads is a matter of each reading. */
static bool sets_clocks(uint32_t fault)
{
    return fb_sim_fault_rows[fault].family == FB_SIM_FAMILY_CLOCK &&
           fault != FB_SIM_FAULT_SUSPEND && fault != FB_SIM_FAULT_SUSPEND_COUNTED &&
           fault != FB_SIM_FAULT_CLOCK_COARSE && fault != FB_SIM_FAULT_CLOCK_BACKWARDS;
}

/* Processes. */

static bool is_open(const fb_sim_weather *weather, uint32_t fault)
{
    for (uint32_t i = 0; i < weather->count; i++) {
        if (weather->windows[i].fault == fault && weather->windows[i].active) return true;
    }
    return false;
}

const fb_sim_window *fb_sim_weather_over(const fb_sim_world *world, uint32_t fault, uint32_t node)
{
    const fb_sim_weather *weather = world->weather;
    for (uint32_t i = 0; i < weather->count && weather->on[fault]; i++) {
        const fb_sim_window *w = &weather->windows[i];
        if (w->fault == fault && w->active && w->a == node) return w;
    }
    return NULL;
}

void fb_sim_weather_crash(fb_sim_world *world, uint32_t node, fb_sim_fault fault)
{
    const fb_sim_weather *weather = world->weather;
    uint64_t occurrence = world->nodes[node].boots;
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_RESTART, node, occurrence);
    uint64_t after = fb_sim_exponential(bits, 1 * SECOND) + 1 * MS;
    if (is_open(weather, FB_SIM_FAULT_RESTART_SAME_TICK) && (bits >> 60) < 4) {
        after = 0;
        world->fired[FB_SIM_FAULT_RESTART_SAME_TICK]++;
    }
    const fb_sim_window *late = fb_sim_weather_over(world, FB_SIM_FAULT_RESTART_LATE, node);
    if (late != NULL) {
        after = late->p;
        world->fired[FB_SIM_FAULT_RESTART_LATE]++;
    }
    world->fired[fault]++;
    if (world->timeline != NULL) fb_sim_timeline_crash(world, node);
    fb_sim_crash(world, node, after);
}

static void act_again(fb_sim_world *world, fb_sim_window *w, uint64_t mean_ns)
{
    fb_sim_weather *weather = world->weather;
    uint32_t index = (uint32_t)(w - weather->windows);
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_CRASH, ((uint64_t)w->fault << 32) + w->key,
                            (weather->round << 32) + w->acts);
    uint64_t at = world->now_ns + 1000 + fb_sim_exponential(bits, mean_ns);
    if (at < w->end_ns) {
        fb_sim_schedule_world(world, at, FB_SIM_AT_ACT, weather->generation << 8 | index, 0);
    }
}

/* Everybody makes one member an admin, all at once; who may not is refused. */
static void member_race(fb_sim_world *world, const fb_sim_window *w)
{
    uint8_t bytes[40];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&out, world->spaces[0]);
    fb_write_id(&out, world->nodes[w->a].id);
    fb_write_u8(&out, 1);
    for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
        const fb_sim_node *node = &world->nodes[i];
        if (node->core == NULL || !node->running || node->paused_until_ns > world->now_ns) continue;
        fb_sim_request(world, i, FB_VERB_SPACE_ROLE, 0, fb_writer_span(&out));
        world->fired[w->fault]++;
    }
}

/* Two members name the space, each after itself; who may not is refused. */
static void rename_space(fb_sim_world *world, const fb_sim_window *w)
{
    const uint32_t who[2] = {w->a, w->b};
    for (uint32_t i = 0; i < 2 && !world->stop; i++) {
        const fb_sim_node *node = &world->nodes[who[i]];
        if (node->core == NULL || !node->running || node->cloned ||
            node->paused_until_ns > world->now_ns) {
            continue; /* a clone speaks in another's name */
        }
        char name[48];
        uint8_t bytes[80];
        int n = snprintf(name, sizeof name, "by %u #%u.%llu", (unsigned)who[i], (unsigned)w->key,
                         (unsigned long long)w->acts);
        fb_writer out = fb_writer_of(bytes, sizeof bytes);
        fb_write_id(&out, world->spaces[0]);
        fb_write_span16(&out, fb_span_of(name, (size_t)n));
        fb_sim_request(world, who[i], FB_VERB_SPACE_RENAME, 0, fb_writer_span(&out));
        world->fired[w->fault]++;
    }
}

/* A gives B another role; two nodes of four stay what they are, so that somebody admits whoever
 * has to join again. */
static void change_role(fb_sim_world *world, const fb_sim_window *w)
{
    const fb_sim_node *node = &world->nodes[w->a];
    if (w->b % 4 < 2 || node->core == NULL || !node->running ||
        node->paused_until_ns > world->now_ns) {
        return;
    }
    /* What is left to state is kept for those who are out. */
    if (world->director->outs && !fb_sim_may_let_in(world, w->a)) return;
    uint8_t bytes[40];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&out, world->spaces[0]);
    fb_write_id(&out, world->nodes[w->b].id);
    fb_write_u8(&out, (uint8_t)(1 + (w->key + w->acts) % 3));
    fb_sim_request(world, w->a, FB_VERB_SPACE_ROLE, 0, fb_writer_span(&out));
    world->fired[w->fault]++;
}

/* B is put out by A, or leaves, and the next time A lets it in again: by turns, whatever came of it
 * (who may not is refused). Two nodes of four stay, as above; who is still out when the round is
 * healed is let in by the director, so nobody is put out when none of those could do that. */
static void put_out(fb_sim_world *world, const fb_sim_window *w)
{
    bool out = (w->acts & 1) != 0, leaves = out && w->fault == FB_SIM_FAULT_LEAVE;
    uint32_t by = leaves ? w->b : w->a;
    const fb_sim_node *node = &world->nodes[by];
    if (w->b % 4 < 2 || node->core == NULL || !node->running || node->cloned ||
        node->paused_until_ns > world->now_ns) {
        return;
    }
    bool any = false;
    for (uint32_t i = 0; i < world->config.nodes && out; i++) {
        any = any || (fb_sim_stays_admin(world, 0, i) && fb_sim_may_let_in(world, i));
    }
    if (out && !any) return;
    uint8_t bytes[40];
    fb_writer args = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&args, world->spaces[0]);
    if (!leaves) fb_write_id(&args, world->nodes[w->b].id);
    if (!out) fb_write_u8(&args, fb_sim_role_of(w->b));
    fb_verb verb = leaves ? FB_VERB_SPACE_LEAVE
                   : out  ? FB_VERB_SPACE_REVOKE
                          : FB_VERB_SPACE_APPROVE;
    if (out) world->director->outs = true;
    fb_sim_request(world, by, verb, 0, fb_writer_span(&args));
    world->fired[w->fault]++;
}

static bool acts(uint32_t fault)
{
    return fault == FB_SIM_FAULT_REPLAY || fault == FB_SIM_FAULT_FLAP ||
           fault == FB_SIM_FAULT_CRASH || fault == FB_SIM_FAULT_MEMBER_RACE ||
           fault == FB_SIM_FAULT_RENAME || fault == FB_SIM_FAULT_ROLES ||
           fault == FB_SIM_FAULT_REVOKE || fault == FB_SIM_FAULT_LEAVE ||
           fault == FB_SIM_FAULT_RECOVER || fault == FB_SIM_FAULT_POWER_FAIL ||
           fault == FB_SIM_FAULT_RETRY_STORM ||
           (fb_sim_fault_is_byzantine(fault) && fault != FB_SIM_FAULT_GONE);
}

static uint64_t act_mean(const fb_sim_window *w)
{
    if (w->fault != FB_SIM_FAULT_FLAP) return w->p;
    /* Its paths are down for q sixteenths of two periods, and up for the rest. */
    uint64_t share = (w->acts & 1) != 0 ? w->q : 16 - w->q;
    return w->p * share / 8 + 1;
}

void fb_sim_at_act(fb_sim_world *world, uint32_t ref, uint32_t stamp)
{
    (void)stamp;
    fb_sim_weather *weather = world->weather;
    if (ref >> 8 != (weather->generation & 0xffffff)) return;
    fb_sim_window *w = &weather->windows[ref & 0xff];
    if (!w->active) return;
    w->acts++;
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_REPLAY:
        fb_sim_network_replay(world);
        break;
    case FB_SIM_FAULT_FLAP:
        world->fired[FB_SIM_FAULT_FLAP]++;
        paths_renew(world);
        break;
    case FB_SIM_FAULT_MEMBER_RACE:
        member_race(world, w);
        break;
    case FB_SIM_FAULT_ROLES:
        change_role(world, w);
        break;
    case FB_SIM_FAULT_RENAME:
        rename_space(world, w);
        break;
    case FB_SIM_FAULT_REVOKE:
    case FB_SIM_FAULT_LEAVE:
        put_out(world, w);
        break;
    case FB_SIM_FAULT_RECOVER:
        if (!world->nodes[w->a].cloned && world->nodes[w->a].paused_until_ns <= world->now_ns &&
            fb_sim_recover(world, w->a, w->b, w->acts % 3 == 2)) {
            world->fired[w->fault]++;
        }
        break;
    case FB_SIM_FAULT_RETRY_STORM:
        fb_sim_workload_storm(world, w->a, (uint32_t)w->q);
        break;
    case FB_SIM_FAULT_POWER_FAIL:
        world->nodes[w->a].power_fails = true;
        break;
    case FB_SIM_FAULT_DOC_RIVAL:
        fb_sim_documents_rival(world, w->a);
        return;
    case FB_SIM_FAULT_CRASH:
        /* At one of the next effects, whichever step has it. */
        if (fb_sim_is_up(world, w->a)) {
            world->nodes[w->a].crash_fault = FB_SIM_FAULT_CRASH;
            world->nodes[w->a].crash_in =
                fb_draw_below(world->seed, FB_SIM_STREAM_CRASH, w->a,
                              (weather->round << 32) + ((uint64_t)w->key << 24) + w->acts, 24);
        }
        break;
    default:
        fb_sim_byzantine_act(world, w);
        break;
    }
    act_again(world, w, act_mean(w));
}

static void process_begin(fb_sim_world *world, fb_sim_window *w)
{
    fb_sim_node *node = &world->nodes[w->a];
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_PAUSE:
        fb_sim_pause(world, w->a, w->end_ns);
        world->fired[w->fault]++;
        break;
    case FB_SIM_FAULT_SUSPEND:
    case FB_SIM_FAULT_SUSPEND_COUNTED:
        fb_sim_pause(world, w->a, w->end_ns);
        world->fired[w->fault]++;
        break;
    case FB_SIM_FAULT_CLIENT_CUT:
        fb_sim_workload_vanish(world, w->a);
        world->fired[w->fault]++;
        break;
    case FB_SIM_FAULT_ROLLBACK:
        /* Documents that are newer than the disk are not what this is about. */
        if (node->core != NULL && !node->cloned && node->documents == NULL) {
            fb_sim_backup(world, w->a);
        }
        break;
    case FB_SIM_FAULT_CLONE:
        if (fb_sim_clone_begin(world, w->a, w->b)) world->fired[w->fault]++;
        break;
    default:
        break;
    }
}

static void process_end(fb_sim_world *world, fb_sim_window *w)
{
    fb_sim_node *node = &world->nodes[w->a];
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_CRASH:
        node->crash_in = FB_SIM_NO_CRASH;
        break;
    case FB_SIM_FAULT_POWER_FAIL:
        node->power_fails = false;
        break;
    case FB_SIM_FAULT_SUSPEND:
        fb_sim_clock_slept(&node->clock,
                           w->start_ns > node->clock.base_true_ns ? w->start_ns
                                                                  : node->clock.base_true_ns,
                           world->now_ns);
        fb_sim_clock_step(&node->clock, world->now_ns, (int64_t)w->p * US_PER_S);
        break;
    case FB_SIM_FAULT_SUSPEND_COUNTED:
        fb_sim_clock_jump(&node->clock, world->now_ns, w->p);
        break;
    case FB_SIM_FAULT_CLONE:
        if (world->nodes[w->b].cloned && world->nodes[w->b].clone_of == w->a) {
            fb_sim_clone_end(world, w->b);
        }
        break;
    case FB_SIM_FAULT_ROLLBACK:
        if (!node->has_backup || node->cloned) break;
        fb_sim_crash(world, w->a, 100 * MS);
        fb_sim_store_copy(&node->store, &node->backup);
        fb_sim_store_clear(&node->backup);
        node->has_backup = false;
        fb_sim_rolled_back(world, w->a);
        world->fired[w->fault]++;
        break;
    case FB_SIM_FAULT_FORGET:
        if (node->cloned) break; /* the copy is not its own to lose */
        fb_sim_crash(world, w->a, 100 * MS);
        fb_sim_store_clear(&node->store);
        if (node->documents != NULL) fb_sim_documents_forget(node->documents);
        node->forgot = true;
        for (uint32_t s = 0; s < fb_sim_space_count(world); s++) {
            if (fb_sim_is_member(world, s, w->a)) node->rejoins |= (uint8_t)(1u << s);
            if (w->a == fb_sim_creator(world, s)) world->director->spaces[s].invite_void = true;
        }
        fb_sim_forgot(world, w->a);
        world->fired[w->fault]++;
        break;
    default:
        break;
    }
}

void fb_sim_at_weather(fb_sim_world *world, uint32_t ref, bool begins)
{
    fb_sim_weather *weather = world->weather;
    if (ref >> 8 != (weather->generation & 0xffffff)) return;
    fb_sim_window *w = &weather->windows[ref & 0xff];
    if (w->active == begins) return;
    w->active = begins;
    if (world->timeline != NULL) fb_sim_timeline_weather(world, w);
    bool parts = fb_sim_fault_rows[w->fault].family == FB_SIM_FAMILY_PARTITION &&
                 w->fault != FB_SIM_FAULT_CLIENT_CUT;
    if (fb_sim_fault_is_of_paths(w->fault) || parts || w->fault == FB_SIM_FAULT_ADDRESS_REUSE) {
        if (begins && w->fault != FB_SIM_FAULT_FLAP && parts) world->fired[w->fault]++;
        if (begins && w->fault == FB_SIM_FAULT_DELAY) world->fired[w->fault]++;
        paths_renew(world);
    }
    disks_renew(world);
    if (about_ticks(w->fault)) ticks_renew(world);
    if (w->fault >= FB_SIM_FAULT_QUEUE) processes_renew(world);
    if (sets_clocks(w->fault)) {
        if (begins) {
            clock_begin(world, w);
        } else {
            clock_mend(world, w->a);
        }
    }
    if (begins) {
        process_begin(world, w);
    } else {
        process_end(world, w);
    }
    if (fb_sim_fault_is_byzantine(w->fault)) fb_sim_byzantine_set(world, w, begins);
    if (fb_sim_fault_is_of_documents(w->fault)) fb_sim_documents_weather(world, w);
    if (begins && w->fault == FB_SIM_FAULT_DOC_RIVAL) {
        fb_sim_schedule_world(world, world->now_ns + FB_HANDING_LEASE_OVER_MS * MS, FB_SIM_AT_ACT,
                              ref, 0);
    }
    if (begins && acts(w->fault)) act_again(world, w, act_mean(w));
}

bool fb_sim_weather_is_byzantine(const fb_sim_world *world, uint32_t node)
{
    return world->traitor == node;
}

void fb_sim_weather_end(fb_sim_world *world, fb_sim_fault fault)
{
    const fb_sim_weather *weather = world->weather;
    for (uint32_t i = 0; i < weather->count; i++) {
        if (weather->windows[i].fault != fault || !weather->windows[i].active) continue;
        fb_sim_at_weather(world, weather->generation << 8 | i, false);
    }
}

void fb_sim_weather_clear(fb_sim_world *world)
{
    fb_sim_weather *weather = world->weather;
    for (uint32_t i = 0; i < weather->count; i++) {
        if (weather->windows[i].active) {
            fb_sim_at_weather(world, weather->generation << 8 | i, false);
        }
    }
    weather->count = 0;
    weather->generation++;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        world->nodes[i].paused_until_ns = 0;
        world->nodes[i].crash_in = FB_SIM_NO_CRASH;
        if (world->config.faults) clock_mend(world, i);
        fb_sim_boot_soon(world, i);
    }
    disks_renew(world);
    ticks_renew(world);
    processes_renew(world);
    paths_renew(world);
}

void fb_sim_window_text(const fb_sim_world *world, const fb_sim_window *w, char *out, size_t cap)
{
    (void)world;
    const char *name = fb_sim_fault_rows[w->fault].name;
    const char *verb = w->active ? "begins" : "ends";
    bool arrow = w->fault == FB_SIM_FAULT_ONEWAY || w->fault == FB_SIM_FAULT_ADDRESS_REUSE ||
                 w->fault == FB_SIM_FAULT_CLONE;
    if (w->fault == FB_SIM_FAULT_SPLIT || w->fault == FB_SIM_FAULT_RING) {
        snprintf(out, cap, "%s %s", name, verb);
    } else if ((fb_sim_fault_is_of_paths(w->fault) && w->a != w->b) || arrow ||
               w->fault == FB_SIM_FAULT_NONTRANSITIVE) {
        snprintf(out, cap, "%s %s %s%s%s", name, verb, fb_sim_name(w->a), arrow ? "->" : "-",
                 fb_sim_name(w->b));
    } else {
        snprintf(out, cap, "%s %s at %s", name, verb, fb_sim_name(w->a));
    }
}
