/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks of DESIGN 2. */
#ifndef FB_IO_CLOCK_H
#define FB_IO_CLOCK_H

#include <stdint.h>

/* Nanoseconds that never decrease (CLOCK_MONOTONIC: it stands still while the machine sleeps). */
uint64_t fb_clock_mono_ns(void);

/* Microseconds since 1970, negative before; whatever the machine's clock says. */
int64_t fb_clock_wall_us(void);

/* Milliseconds of a clock that goes on while the machine sleeps: for what others may do meanwhile.
 */
uint64_t fb_clock_awake_or_not_ms(void);

#endif
