/* SPDX-License-Identifier: Apache-2.0 */
#include "io/clock.h"

#include <time.h>

#include "protocol/base/assert.h"

uint64_t fb_clock_mono_ns(void)
{
    struct timespec t;
    FB_ASSERT(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t fb_clock_wall_us(void)
{
    struct timespec t;
    FB_ASSERT(clock_gettime(CLOCK_REALTIME, &t) == 0);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

uint64_t fb_clock_awake_or_not_ms(void)
{
    struct timespec t;
#ifdef CLOCK_BOOTTIME
    FB_ASSERT(clock_gettime(CLOCK_BOOTTIME, &t) == 0);
#else
    FB_ASSERT(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
#endif
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
