/* SPDX-License-Identifier: Apache-2.0 */
/* What the swarm draws for a round: which faults are on, their windows and parameters. */
#include "sim/schedule/player.h"
#include "sim/schedule/recorder.h"
#include "sim/schedule/schedule.h"
#include "sim/weather/byzantine.h"
#include "sim/weather/weather.h"
#include "sim/workload/let_in.h"
#include "sim/workload/workload.h"
#include "sim/world/world.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* Draws of one round: entity is the fault, occurrence the round and a place in it. */
typedef fb_sim_dice dice;

static uint64_t roll(dice *d, uint64_t low, uint64_t high)
{
    return fb_sim_between(d->seed, d->stream, d->entity, d->occurrence++, low, high);
}

/* Powers of two apart: small values are as likely as large ones. */
static uint64_t roll_scale(dice *d, uint64_t low, uint64_t high)
{
    uint64_t doublings = 0;
    while (low << (doublings + 1) <= high) doublings++;
    uint64_t value = low << roll(d, 0, doublings);
    return roll(d, value, value * 2 < high ? value * 2 : high);
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
        w->q = roll_scale(d, 1, 8);
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
        w->q = roll(d, 1, 15);
        break;
    case FB_SIM_FAULT_NONTRANSITIVE:
    case FB_SIM_FAULT_CLONE:
    case FB_SIM_FAULT_ONEWAY:
    case FB_SIM_FAULT_ADDRESS_REUSE:
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
    case FB_SIM_FAULT_SUSPEND_COUNTED:
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
    case FB_SIM_FAULT_QUEUE:
        w->p = roll_scale(d, 20 * 1024, 256 * 1024);
        w->q = roll(d, 1, 2);
        break;
    case FB_SIM_FAULT_CRASH_AT:
        w->p = roll(d, 1, FB_SIM_CRASH_AT_KINDS);
        w->q = roll_scale(d, 1, 64);
        break;
    case FB_SIM_FAULT_POWER_FAIL:
        w->p = roll_scale(d, 1 * SECOND, 20 * SECOND);
        break;
    case FB_SIM_FAULT_RESTART_LATE:
        w->p = roll_scale(d, 5 * SECOND, 120 * SECOND);
        break;
    case FB_SIM_FAULT_SLOW:
        w->p = roll_scale(d, MS / 20, 3 * MS);
        break;
    case FB_SIM_FAULT_CLOCK_COARSE:
        w->p = roll_scale(d, 1 * MS, 1000 * MS);
        break;
    case FB_SIM_FAULT_CLOCK_BACKWARDS:
        w->p = roll_scale(d, 2, 64);
        w->q = roll_scale(d, 1 * MS, 1000 * MS);
        break;
    case FB_SIM_FAULT_JUMP_YEAR:
        w->p = roll(d, 1, 10) * 365 * 86400;
        break;
    case FB_SIM_FAULT_MEMBER_RACE:
        w->p = roll_scale(d, 100 * MS, 5000 * MS);
        break;
    case FB_SIM_FAULT_RENAME:
    case FB_SIM_FAULT_ROLES:
        if (w->b == w->a) w->b = (w->a + 1) % nodes;
        w->p = roll_scale(d, 100 * MS, 5000 * MS);
        break;
    case FB_SIM_FAULT_REVOKE:
    case FB_SIM_FAULT_LEAVE:
    case FB_SIM_FAULT_RECOVER:
        if (w->b == w->a) w->b = (w->a + 1) % nodes;
        w->p = roll_scale(d, 300 * MS, 8 * SECOND);
        break;
    case FB_SIM_FAULT_HOT_KEY:
        w->p = roll(d, 1, FB_SIM_RECORDS);
        break;
    case FB_SIM_FAULT_GIANT_VALUES:
        w->p = roll_scale(d, 24 * 1024, FB_SIM_PAD_MAX);
        break;
    case FB_SIM_FAULT_RETRY_STORM:
        w->p = roll_scale(d, 50 * MS, 2000 * MS);
        w->q = roll_scale(d, 8, FB_SIM_SCHEDULE_COUNT_MAX);
        break;
    case FB_SIM_FAULT_DOC_SLOW:
        w->p = roll_scale(d, 1 * MS, 500 * MS);
        break;
    case FB_SIM_FAULT_DOC_LOST:
    case FB_SIM_FAULT_DOC_PART:
    case FB_SIM_FAULT_DOC_TWICE:
        w->p = roll_scale(d, 2, 32);
        break;
    case FB_SIM_FAULT_DOC_LATE:
    case FB_SIM_FAULT_DOC_FAILOVER:
        w->p = roll_scale(d, 2, 16);
        break;
    case FB_SIM_FAULT_CANCEL:
    case FB_SIM_FAULT_CLIENT_VANISH:
        w->p = roll_scale(d, MS / 10, 200 * MS);
        break;
    default:
        break;
    }
    w->mask = roll(d, 0, 1); /* a sign, where one is needed */
    /* The window of profile 5 step 6 looks back further than ahead. */
    if (w->fault == FB_SIM_FAULT_OFFSET && w->mask == 0) w->p = w->p / 3 + 1;
}

/* One member of a round may be Byzantine: anybody, or where there is one a reader, who may do
 * least. */
static uint32_t traitor_of(const fb_sim_world *world, uint64_t round)
{
    uint32_t nodes = world->config.nodes;
    uint32_t first =
        (uint32_t)fb_draw_below(world->seed, FB_SIM_STREAM_BYZANTINE, UINT32_MAX, round, nodes);
    if (fb_draw_below(world->seed, FB_SIM_STREAM_BYZANTINE, UINT32_MAX - 2, round, 2) == 0) {
        return first;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        if (fb_sim_is_reader(world, (first + i) % nodes)) return (first + i) % nodes;
    }
    return first;
}

/* Who believes a member that may write, and lies, ends the run, for nothing can be demanded any
 * more. So such a one seldom lies of what is gone; a reader, whom nobody may believe, as often as
 * drawn. */
static bool is_spared(const fb_sim_world *world, uint32_t fault, uint32_t traitor, uint64_t round)
{
    return fault == FB_SIM_FAULT_GONE && !fb_sim_faults_have(&world->config.only, fault) &&
           fb_sim_may_write(world, traitor, world->nodes[traitor].id) &&
           fb_draw_below(world->seed, FB_SIM_STREAM_BYZANTINE, UINT32_MAX - 1, round, 8) != 0;
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
    uint32_t traitor = traitor_of(world, round);
    /* Under a number that no fault will have: a longer catalogue must not move it. */
    bool calm = fb_draw_below(world->seed, FB_SIM_STREAM_SWARM, UINT32_MAX, round, 16) == 0;
    for (uint32_t fault = 0; fault < FB_SIM_FAULTS; fault++) {
        weather->on[fault] = !calm && fb_draw_below(world->seed, FB_SIM_STREAM_SWARM, fault, round,
                                                    16) < fb_sim_fault_rows[fault].share_of_16;
        if (world->config.plain) weather->on[fault] = fb_sim_fault_rows[fault].share_of_16 != 0;
        if (!fb_sim_faults_none(&world->config.only)) {
            weather->on[fault] = fb_sim_faults_have(&world->config.only, fault);
        }
        if (fb_sim_faults_have(&world->config.without, fault)) weather->on[fault] = false;
        if (fb_sim_fault_is_byzantine(fault) && !fb_sim_byzantine_possible(world))
            weather->on[fault] = false;
        if (fb_sim_fault_is_of_documents(fault) && world->config.documents == 0) {
            weather->on[fault] = false;
        }
        if (weather->on[fault] && is_spared(world, fault, traitor, round)) {
            weather->on[fault] = false;
        }
        if (!weather->on[fault]) continue;
        dice d = {world->seed, FB_SIM_STREAM_WEATHER, fault, round << 20};
        uint64_t windows = roll(&d, 1, fb_sim_fault_is_of_paths(fault) ? 4 : 3);
        if (fault == FB_SIM_FAULT_FORGET || fault == FB_SIM_FAULT_ROLLBACK ||
            fault == FB_SIM_FAULT_CLONE) {
            windows = 1;
        }
        for (uint64_t i = 0; i < windows; i++) {
            d.occurrence = (round << 20) + ((i + 1) << 8);
            fb_sim_window window = {.fault = (uint8_t)fault, .key = (uint32_t)i + 1};
            fb_sim_window *w = &window;
            w->start_ns = start_ns + roll(&d, 0, length * 3 / 4);
            w->end_ns = fb_min_u64(w->start_ns + roll_scale(&d, 1 * SECOND, 40 * SECOND), end_ns);
            w->a = (uint32_t)roll(&d, 0, world->config.nodes - 1);
            w->b = (uint32_t)roll(&d, 0, world->config.nodes - 1);
            if (fb_sim_fault_is_byzantine(fault)) w->a = traitor;
            while (fb_sim_fault_is_of_documents(fault) && world->nodes[w->a].documents == NULL) {
                w->a = (w->a + 1) % world->config.nodes;
            }
            parameters(world, &d, w);
            if (w->end_ns > end_ns) w->end_ns = end_ns;
            if (fb_sim_weather_add(world, w) && world->recorder != NULL) {
                fb_sim_recorder_window(world, w);
            }
        }
    }
}
