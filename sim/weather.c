/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/weather.h"

#include <stdio.h>

#include "protocol/base/assert.h"
#include "sim/byzantine.h"
#include "sim/checks.h"
#include "sim/schedule/player.h"
#include "sim/schedule/recorder.h"
#include "sim/timeline.h"
#include "sim/workload.h"
#include "sim/world.h"

#define MS       UINT64_C(1000000)
#define SECOND   UINT64_C(1000000000)
#define US_PER_S INT64_C(1000000)

void fb_sim_weather_init(fb_sim_world *world, fb_arena *arena)
{
    world->weather = fb_arena_take(arena, 1, sizeof *world->weather);
}

/* Draws of one round: entity is the fault, occurrence the round and a place in it. */
typedef struct dice {
    fb_seed seed;
    uint64_t entity;
    uint64_t occurrence;
} dice;

static uint64_t roll(dice *d, uint64_t low, uint64_t high)
{
    return fb_sim_between(d->seed, FB_SIM_STREAM_WEATHER, d->entity, d->occurrence++, low, high);
}

/* Powers of two apart: small values are as likely as large ones. */
static uint64_t roll_scale(dice *d, uint64_t low, uint64_t high)
{
    uint64_t doublings = 0;
    while (low << (doublings + 1) <= high) doublings++;
    uint64_t value = low << roll(d, 0, doublings);
    return roll(d, value, value * 2 < high ? value * 2 : high);
}

static bool about_paths(uint32_t fault)
{
    return fault <= FB_SIM_FAULT_HALF_OPEN ||
           (fault >= FB_SIM_FAULT_LOSS && fault <= FB_SIM_FAULT_STALE_SESSION);
}

static bool is_byzantine(uint32_t fault)
{
    return fault >= FB_SIM_FAULT_FORGE && fault <= FB_SIM_FAULT_GARBAGE;
}

/* Groups by node, written out. */
static void groups(dice *d, fb_sim_window *w, uint64_t count)
{
    uint64_t key = roll(d, 0, UINT64_MAX - 1);
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t group = fb_draw_below(d->seed, FB_SIM_STREAM_WEATHER, key, i, count);
        w->q |= (group & 1) << i;
        w->mask |= (group >> 1) << i;
    }
}

/* What is particular to a window of this fault. */
static void parameters(const fb_sim_world *world, dice *d, fb_sim_window *w)
{
    uint32_t nodes = world->config.nodes;
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_DELAY:
        w->p = roll_scale(d, 1 * MS, 80 * MS);
        break;
    case FB_SIM_FAULT_RATE:
        w->p = roll_scale(d, 4096, 65536);
        break;
    case FB_SIM_FAULT_SEGMENT:
        w->p = roll(d, 1, 16);
        break;
    case FB_SIM_FAULT_CORRUPT:
        w->p = roll_scale(d, 8, 256);
        break;
    case FB_SIM_FAULT_TRUNCATE:
        w->p = roll_scale(d, 32, 512);
        break;
    case FB_SIM_FAULT_CUT:
        w->p = roll_scale(d, 16, 512);
        break;
    case FB_SIM_FAULT_REPLAY:
        w->p = roll_scale(d, 200 * MS, 5000 * MS);
        break;
    case FB_SIM_FAULT_LOSS:
        w->p = roll_scale(d, 3, 64);
        break;
    case FB_SIM_FAULT_DUP:
        w->p = roll_scale(d, 3, 64);
        w->q = roll(d, 1, 3);
        break;
    case FB_SIM_FAULT_REORDER:
        w->p = roll_scale(d, 2, 32);
        w->q = roll_scale(d, 1 * MS, 400 * MS);
        break;
    case FB_SIM_FAULT_STALE_SESSION:
        w->p = roll_scale(d, 8, 128);
        break;
    case FB_SIM_FAULT_SPLIT:
        groups(d, w, roll(d, 2, 3));
        return;
    case FB_SIM_FAULT_BRIDGE:
        groups(d, w, 2);
        return;
    case FB_SIM_FAULT_FLAP:
        w->p = roll_scale(d, 200 * MS, 5000 * MS);
        break;
    case FB_SIM_FAULT_NONTRANSITIVE:
    case FB_SIM_FAULT_ONEWAY:
        if (w->b == w->a) w->b = (w->a + 1) % nodes;
        break;
    case FB_SIM_FAULT_CRASH:
        w->p = roll_scale(d, 300 * MS, 20 * SECOND);
        break;
    case FB_SIM_FAULT_PAUSE:
        w->end_ns = fb_min_u64(w->end_ns, w->start_ns + roll_scale(d, 100 * MS, 30 * SECOND));
        break;
    case FB_SIM_FAULT_READ_LATE:
        w->p = roll_scale(d, 1 * MS, 200 * MS);
        break;
    case FB_SIM_FAULT_WRITE_LATE:
        w->p = roll_scale(d, 1 * MS, 300 * MS);
        break;
    case FB_SIM_FAULT_READ_FAIL:
        w->p = roll_scale(d, 64, 4096);
        break;
    case FB_SIM_FAULT_WRITE_FAIL:
        w->p = roll_scale(d, 32, 1024);
        break;
    case FB_SIM_FAULT_OFFSET:
        w->p = roll_scale(d, 1, 14 * 60);
        break;
    case FB_SIM_FAULT_OFFSET_FAR:
        w->p = roll_scale(d, 16 * 60, UINT64_C(40) * 365 * 86400);
        break;
    case FB_SIM_FAULT_DRIFT:
        w->p = roll_scale(d, 1, FB_SIM_CLOCK_PPM_MAX);
        break;
    case FB_SIM_FAULT_CLOCK_STEP:
        w->p = roll_scale(d, 1, 3600);
        break;
    case FB_SIM_FAULT_SUSPEND:
        w->p = roll_scale(d, 60, 6 * 3600);
        w->end_ns = fb_min_u64(w->end_ns, w->start_ns + roll_scale(d, 100 * MS, 10 * SECOND));
        break;
    case FB_SIM_FAULT_BEFORE_1970:
        w->p = roll_scale(d, 1, UINT64_C(30) * 365 * 86400);
        break;
    case FB_SIM_FAULT_EPOCH_EDGE:
        w->p = roll_scale(d, 60, 86400);
        break;
    case FB_SIM_FAULT_FORGE:
    case FB_SIM_FAULT_STALE:
    case FB_SIM_FAULT_FUTURE:
    case FB_SIM_FAULT_FOREIGN:
    case FB_SIM_FAULT_MISADDRESS:
    case FB_SIM_FAULT_OVERSIZE:
    case FB_SIM_FAULT_FLOOD:
    case FB_SIM_FAULT_GARBAGE:
        w->p = roll_scale(d, 50 * MS, 2000 * MS);
        break;
    case FB_SIM_FAULT_TIMER_EARLY:
        w->p = roll(d, 1, 8);
        break;
    case FB_SIM_FAULT_TIMER_LATE:
        w->p = roll_scale(d, 1 * MS, 1000 * MS);
        break;
    case FB_SIM_FAULT_TIMER_BURST:
        w->p = roll_scale(d, 1, 32);
        break;
    case FB_SIM_FAULT_TIMER_STARVE:
        w->end_ns = fb_min_u64(w->end_ns, w->start_ns + roll_scale(d, 100 * MS, 10 * SECOND));
        break;
    case FB_SIM_FAULT_TIMER_COALESCE:
        w->p = roll_scale(d, 2 * MS, 1000 * MS);
        break;
    default:
        break;
    }
    w->mask = roll(d, 0, 1); /* a sign, where one is needed */
    /* The window of profile 5 step 6 looks back further than ahead. */
    if (w->fault == FB_SIM_FAULT_OFFSET && w->mask == 0) w->p = w->p / 3 + 1;
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

void fb_sim_weather_draw(fb_sim_world *world, uint64_t round, uint64_t start_ns, uint64_t end_ns)
{
    fb_sim_weather_begin(world, round);
    if (world->player != NULL) {
        fb_sim_player_weather(world, start_ns);
        return;
    }
    fb_sim_weather *weather = world->weather;
    uint64_t length = end_ns - start_ns;
    /* One member of a round may be Byzantine. */
    uint32_t traitor = (uint32_t)fb_draw_below(world->seed, FB_SIM_STREAM_BYZANTINE, UINT32_MAX,
                                               round, world->config.nodes);
    /* Under a number that no fault will have: a longer catalogue must not move it. */
    bool calm = fb_draw_below(world->seed, FB_SIM_STREAM_SWARM, UINT32_MAX, round, 16) == 0;
    for (uint32_t fault = 0; fault < FB_SIM_FAULTS; fault++) {
        weather->on[fault] = !calm && fb_draw_below(world->seed, FB_SIM_STREAM_SWARM, fault, round,
                                                    16) < fb_sim_fault_rows[fault].share_of_16;
        if (world->config.only != 0) {
            weather->on[fault] = (world->config.only >> fault & 1) != 0;
        }
        if ((world->config.without >> fault & 1) != 0) weather->on[fault] = false;
        if (is_byzantine(fault) && !fb_sim_byzantine_possible(world)) weather->on[fault] = false;
        if (!weather->on[fault]) continue;
        dice d = {world->seed, fault, round << 20};
        uint64_t windows = roll(&d, 1, about_paths(fault) ? 4 : 3);
        if (fault == FB_SIM_FAULT_FORGET || fault == FB_SIM_FAULT_ROLLBACK) windows = 1;
        for (uint64_t i = 0; i < windows; i++) {
            d.occurrence = (round << 20) + ((i + 1) << 8);
            fb_sim_window window = {.fault = (uint8_t)fault, .key = (uint32_t)i + 1};
            fb_sim_window *w = &window;
            w->start_ns = start_ns + roll(&d, 0, length * 3 / 4);
            w->end_ns = fb_min_u64(w->start_ns + roll_scale(&d, 1 * SECOND, 40 * SECOND), end_ns);
            w->a = (uint32_t)roll(&d, 0, world->config.nodes - 1);
            w->b = (uint32_t)roll(&d, 0, world->config.nodes - 1);
            if (is_byzantine(fault)) w->a = traitor;
            /* Somebody has to be left who can invite. */
            if (fault == FB_SIM_FAULT_FORGET && w->a == 0) w->a = world->config.nodes - 1;
            parameters(world, &d, w);
            if (w->end_ns > end_ns) w->end_ns = end_ns;
            if (fb_sim_weather_add(world, w) && world->recorder != NULL) {
                fb_sim_recorder_window(world, w);
            }
        }
    }
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
        break;
    case FB_SIM_FAULT_RATE:
        more_often(&path->rate, w->p);
        break;
    case FB_SIM_FAULT_SEGMENT:
        path->segment_of_16 = (uint16_t)fb_max_u64(path->segment_of_16, w->p);
        break;
    case FB_SIM_FAULT_CORRUPT:
        more_often(&path->corrupt_of, w->p);
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
    if (about_paths(w->fault)) {
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
            .in_order = world->weather->count == 0,
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
    return fault >= FB_SIM_FAULT_TIMER_EARLY && fault <= FB_SIM_FAULT_TIMER_COALESCE;
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

static bool about_clocks(uint32_t fault)
{
    return fault >= FB_SIM_FAULT_OFFSET && fault <= FB_SIM_FAULT_EPOCH_EDGE &&
           fault != FB_SIM_FAULT_SUSPEND;
}

/* Processes. */

static bool is_open(const fb_sim_weather *weather, uint32_t fault)
{
    for (uint32_t i = 0; i < weather->count; i++) {
        if (weather->windows[i].fault == fault && weather->windows[i].active) return true;
    }
    return false;
}

void fb_sim_weather_crash(fb_sim_world *world, uint32_t node)
{
    const fb_sim_weather *weather = world->weather;
    uint64_t occurrence = world->nodes[node].boots;
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_RESTART, node, occurrence);
    uint64_t after = fb_sim_exponential(bits, 1 * SECOND) + 1 * MS;
    if (is_open(weather, FB_SIM_FAULT_RESTART_SAME_TICK) && (bits >> 60) < 4) {
        after = 0;
        world->fired[FB_SIM_FAULT_RESTART_SAME_TICK]++;
    }
    world->fired[FB_SIM_FAULT_CRASH]++;
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
    case FB_SIM_FAULT_CRASH:
        /* At one of the next effects, whichever step has it. */
        if (fb_sim_is_up(world, w->a)) {
            world->nodes[w->a].crash_in =
                fb_draw_below(world->seed, FB_SIM_STREAM_CRASH, w->a,
                              (weather->round << 32) + ((uint64_t)w->key << 24) + w->acts, 24);
        }
        break;
    default:
        fb_sim_byzantine_act(world, w);
        break;
    }
    act_again(world, w, w->p);
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
        fb_sim_pause(world, w->a, w->end_ns);
        world->fired[w->fault]++;
        break;
    case FB_SIM_FAULT_ROLLBACK:
        if (node->core != NULL) fb_sim_backup(world, w->a);
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
    case FB_SIM_FAULT_SUSPEND:
        fb_sim_clock_slept(&node->clock,
                           w->start_ns > node->clock.base_true_ns ? w->start_ns
                                                                  : node->clock.base_true_ns,
                           world->now_ns);
        fb_sim_clock_step(&node->clock, world->now_ns, (int64_t)w->p * US_PER_S);
        break;
    case FB_SIM_FAULT_ROLLBACK:
        if (!node->has_backup) break;
        fb_sim_crash(world, w->a, 100 * MS);
        fb_sim_store_copy(&node->store, &node->backup);
        fb_sim_store_clear(&node->backup);
        node->has_backup = false;
        fb_sim_rolled_back(world, w->a);
        world->fired[w->fault]++;
        break;
    case FB_SIM_FAULT_FORGET:
        fb_sim_crash(world, w->a, 100 * MS);
        fb_sim_store_clear(&node->store);
        node->forgot = true;
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
    if (about_paths(w->fault) ||
        (w->fault >= FB_SIM_FAULT_ISOLATE && w->fault <= FB_SIM_FAULT_NONTRANSITIVE)) {
        if (begins && w->fault != FB_SIM_FAULT_FLAP && !about_paths(w->fault)) {
            world->fired[w->fault]++;
        }
        if (begins && w->fault == FB_SIM_FAULT_DELAY) world->fired[w->fault]++;
        paths_renew(world);
    }
    disks_renew(world);
    if (about_ticks(w->fault)) ticks_renew(world);
    if (about_clocks(w->fault)) {
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
    bool acts = w->fault == FB_SIM_FAULT_REPLAY || w->fault == FB_SIM_FAULT_FLAP ||
                w->fault == FB_SIM_FAULT_CRASH || is_byzantine(w->fault);
    if (is_byzantine(w->fault)) fb_sim_byzantine_set(world, w, begins);
    if (begins && acts) act_again(world, w, w->p);
}

bool fb_sim_weather_is_byzantine(const fb_sim_world *world, uint32_t node)
{
    return world->traitor == node;
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
    }
    disks_renew(world);
    ticks_renew(world);
    paths_renew(world);
}

void fb_sim_window_text(const fb_sim_world *world, const fb_sim_window *w, char *out, size_t cap)
{
    (void)world;
    const char *name = fb_sim_fault_rows[w->fault].name;
    const char *verb = w->active ? "begins" : "ends";
    if (w->fault == FB_SIM_FAULT_SPLIT || w->fault == FB_SIM_FAULT_RING) {
        snprintf(out, cap, "%s %s", name, verb);
    } else if ((about_paths(w->fault) && w->a != w->b) || w->fault == FB_SIM_FAULT_ONEWAY ||
               w->fault == FB_SIM_FAULT_NONTRANSITIVE) {
        snprintf(out, cap, "%s %s %s%s%s", name, verb, fb_sim_name(w->a),
                 w->fault == FB_SIM_FAULT_ONEWAY ? "->" : "-", fb_sim_name(w->b));
    } else {
        snprintf(out, cap, "%s %s at %s", name, verb, fb_sim_name(w->a));
    }
}
