/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks of one simulated node as functions of the world's true time.
 *
 * Both run on one oscillator with a rate error. The monotonic one never decreases within an
 * instance and may begin anywhere at a boot; the wall clock can be stepped, frozen, and set
 * anywhere (DESIGN 2: two clocks). */
#ifndef FB_SIM_WORLD_CLOCK_H
#define FB_SIM_WORLD_CLOCK_H

#include "protocol/base/types.h"

/* Beyond this the products of the rate error could overflow. */
#define FB_SIM_CLOCK_PPM_MAX 1000

typedef struct fb_sim_clock {
    uint64_t base_true_ns; /* where this piece of the clock's line begins */
    uint64_t base_mono_ns;
    int64_t base_wall_us;
    int32_t ppm; /* rate error, parts per million; positive runs fast */
    bool wall_frozen;
    uint64_t wall_set_ns;   /* true time at which the wall clock last jumped, froze or ran again */
    uint64_t grain_ns;      /* both are read in steps of so much; 0: finely */
    uint64_t mono_least_ns; /* was shown before the steps began */
} fb_sim_clock;

void fb_sim_clock_init(fb_sim_clock *clock, uint64_t true_ns, uint64_t mono_ns, int64_t wall_us,
                       int32_t ppm);

uint64_t fb_sim_clock_mono(const fb_sim_clock *clock, uint64_t true_ns);
int64_t fb_sim_clock_wall(const fb_sim_clock *clock, uint64_t true_ns);

/* The earliest true time, not before now, at which the monotonic clock shows at least mono_ns. */
uint64_t fb_sim_clock_when(const fb_sim_clock *clock, uint64_t now_ns, uint64_t mono_ns);

/* Changes of the line from now on. */
void fb_sim_clock_rate(fb_sim_clock *clock, uint64_t now_ns, int32_t ppm);
void fb_sim_clock_step(fb_sim_clock *clock, uint64_t now_ns, int64_t by_us);
void fb_sim_clock_freeze(fb_sim_clock *clock, uint64_t now_ns, bool frozen);
/* The machine slept until now: the monotonic clock did not count that time, the wall clock did. */
void fb_sim_clock_slept(fb_sim_clock *clock, uint64_t since_ns, uint64_t now_ns);
/* From now on both clocks are read in steps; 0: finely again. */
void fb_sim_clock_grain(fb_sim_clock *clock, uint64_t now_ns, uint64_t grain_ns);
/* The machine slept, and both clocks counted more than that. */
void fb_sim_clock_jump(fb_sim_clock *clock, uint64_t now_ns, uint64_t by_s);
/* Keeps the products small; called now and then. */
void fb_sim_clock_rebase(fb_sim_clock *clock, uint64_t now_ns);

#endif
