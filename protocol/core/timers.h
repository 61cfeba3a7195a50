/* SPDX-License-Identifier: Apache-2.0 */
/* What the step needs of the timers; planes use timer.h. */
#ifndef FB_CORE_TIMERS_H
#define FB_CORE_TIMERS_H

#include "protocol/core/internal.h"

/* After every plane has registered. */
void fb_timers_layout(fb_node *node, fb_arena *arena);
void fb_timers_reset(fb_node *node);
/* Calls the handlers of all timers due at mono_ns, in order. */
void fb_timers_fire(fb_node *node);
uint64_t fb_timers_next(const fb_node *node);

#endif
