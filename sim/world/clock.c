/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/clock.h"

#include "protocol/base/assert.h"

/* x + floor(x * ppm / 10^6): never decreases in x, as |ppm| is far below 10^6. */
static uint64_t scaled(uint64_t x, int32_t ppm)
{
    if (ppm == 0) return x;
    FB_ASSERT(x < UINT64_C(1) << 53);
    uint64_t product = x * (uint64_t)(ppm < 0 ? -ppm : ppm);
    if (ppm > 0) return x + product / 1000000;
    return x - (product + 999999) / 1000000;
}

void fb_sim_clock_init(fb_sim_clock *clock, uint64_t true_ns, uint64_t mono_ns, int64_t wall_us,
                       int32_t ppm)
{
    FB_ASSERT(ppm >= -FB_SIM_CLOCK_PPM_MAX && ppm <= FB_SIM_CLOCK_PPM_MAX);
    *clock = (fb_sim_clock){.base_true_ns = true_ns,
                            .base_mono_ns = mono_ns,
                            .base_wall_us = wall_us,
                            .ppm = ppm,
                            .wall_set_ns = true_ns};
}

/* However finely they are read. */
static uint64_t exact_mono(const fb_sim_clock *clock, uint64_t true_ns)
{
    return clock->base_mono_ns + scaled(true_ns - clock->base_true_ns, clock->ppm);
}

static int64_t exact_wall(const fb_sim_clock *clock, uint64_t true_ns)
{
    if (clock->wall_frozen) return clock->base_wall_us;
    return clock->base_wall_us +
           (int64_t)(scaled(true_ns - clock->base_true_ns, clock->ppm) / 1000);
}

uint64_t fb_sim_clock_mono(const fb_sim_clock *clock, uint64_t true_ns)
{
    uint64_t mono = exact_mono(clock, true_ns);
    if (clock->grain_ns == 0) return mono;
    mono -= mono % clock->grain_ns;
    return mono > clock->mono_least_ns ? mono : clock->mono_least_ns;
}

int64_t fb_sim_clock_wall(const fb_sim_clock *clock, uint64_t true_ns)
{
    int64_t wall = exact_wall(clock, true_ns);
    int64_t grain = (int64_t)(clock->grain_ns / 1000);
    if (grain <= 1) return wall;
    int64_t over = wall % grain;
    return wall - (over < 0 ? over + grain : over);
}

uint64_t fb_sim_clock_when(const fb_sim_clock *clock, uint64_t now_ns, uint64_t mono_ns)
{
    if (mono_ns == FB_NEVER) return FB_NEVER;
    if (mono_ns <= fb_sim_clock_mono(clock, now_ns)) return now_ns;
    uint64_t now_mono = exact_mono(clock, now_ns);
    /* It is shown with the next step. */
    if (clock->grain_ns != 0 && mono_ns % clock->grain_ns != 0) {
        mono_ns = fb_add_sat_u64(mono_ns, clock->grain_ns - mono_ns % clock->grain_ns);
    }
    uint64_t ahead = mono_ns - now_mono;
    /* Nobody waits for years: the world's time ends long before. */
    if (ahead > UINT64_C(1) << 52) return FB_NEVER;
    if (clock->ppm == 0) return now_ns + ahead;
    /* From below, then forward by what is missing: the rest shrinks a thousandfold each time. */
    uint64_t at = now_ns + ahead - ahead / 1000 - 1;
    for (;;) {
        uint64_t shows = exact_mono(clock, at);
        if (shows >= mono_ns) break;
        uint64_t missing = mono_ns - shows;
        uint64_t forward = missing - missing / 1000;
        at += forward == 0 ? 1 : forward;
    }
    return at;
}

void fb_sim_clock_rebase(fb_sim_clock *clock, uint64_t now_ns)
{
    uint64_t mono = exact_mono(clock, now_ns);
    int64_t wall = exact_wall(clock, now_ns);
    clock->base_true_ns = now_ns;
    clock->base_mono_ns = mono;
    clock->base_wall_us = wall;
}

void fb_sim_clock_rate(fb_sim_clock *clock, uint64_t now_ns, int32_t ppm)
{
    FB_ASSERT(ppm >= -FB_SIM_CLOCK_PPM_MAX && ppm <= FB_SIM_CLOCK_PPM_MAX);
    fb_sim_clock_rebase(clock, now_ns);
    clock->ppm = ppm;
}

void fb_sim_clock_step(fb_sim_clock *clock, uint64_t now_ns, int64_t by_us)
{
    fb_sim_clock_rebase(clock, now_ns);
    clock->base_wall_us += by_us;
    if (by_us != 0) clock->wall_set_ns = now_ns;
}

void fb_sim_clock_freeze(fb_sim_clock *clock, uint64_t now_ns, bool frozen)
{
    fb_sim_clock_rebase(clock, now_ns);
    if (clock->wall_frozen != frozen) clock->wall_set_ns = now_ns;
    clock->wall_frozen = frozen;
}

void fb_sim_clock_grain(fb_sim_clock *clock, uint64_t now_ns, uint64_t grain_ns)
{
    clock->mono_least_ns = fb_sim_clock_mono(clock, now_ns);
    clock->grain_ns = grain_ns;
    /* What was shown stays shown: the exact one is never behind it. */
}

void fb_sim_clock_jump(fb_sim_clock *clock, uint64_t now_ns, uint64_t by_s)
{
    fb_sim_clock_rebase(clock, now_ns);
    clock->wall_set_ns = now_ns;
    clock->base_mono_ns += by_s * UINT64_C(1000000000);
    clock->base_wall_us += (int64_t)(by_s * 1000000);
}

void fb_sim_clock_slept(fb_sim_clock *clock, uint64_t since_ns, uint64_t now_ns)
{
    uint64_t mono = exact_mono(clock, since_ns);
    fb_sim_clock_rebase(clock, now_ns);
    clock->base_mono_ns = mono;
    /* A grain that was set meanwhile was set by a time that did not pass; nothing was shown. */
    clock->mono_least_ns = fb_min_u64(clock->mono_least_ns, mono);
}
