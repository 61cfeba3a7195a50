/* SPDX-License-Identifier: Apache-2.0 */
/* Timers on mono_ns: a heap of embedded nodes. Those that are due fire in every step, in the order
 * (time, kind, index); fb_node_deadline is the top of the same heap, so what wakes the driver is
 * what fires. */
#ifndef FB_CORE_TIMER_H
#define FB_CORE_TIMER_H

#include "protocol/base/types.h"

typedef struct fb_node fb_node;

typedef enum fb_timer_kind {
    FB_TIMER_LINK,      /* index: link (handshake, pending, silence, age) */
    FB_TIMER_HEARTBEAT, /* index: link */
    FB_TIMER_RESEND,    /* index: link, external carrier: the hello */
    FB_TIMER_DIAL,      /* index: address */
    FB_TIMER_REPEAT,    /* index: link, external carrier: unacknowledged messages */
    FB_TIMER_REDELIVER, /* index: sender */
    FB_TIMER_CALL,      /* index: call */
    FB_TIMER_ONWARD,    /* index: area */
    FB_TIMER_COMPARE,   /* index: area */
    FB_TIMER_CONFLICT,  /* index: area */
    FB_TIMER_SPACE,     /* index: space */
    FB_TIMER_WANTED,    /* index: area */
    FB_TIMER_MEND,      /* index: 0 */
    FB_TIMER_REPORT,    /* index: space */
    FB_TIMER_CUT,       /* index: space */
    FB_TIMER_FOLD,      /* index: area */
    FB_TIMER_KINDS
} fb_timer_kind;

typedef struct fb_timer {
    uint64_t at_ns;
    uint32_t place; /* in the heap, plus one; 0 when not set */
    uint32_t index;
    uint16_t kind;
} fb_timer;

typedef void (*fb_timer_handler)(fb_node *node, uint32_t index);

/* From a plane's layout: who handles a kind, and how many timers of it can be set at once. */
void fb_timer_register(fb_node *node, fb_timer_kind kind, fb_timer_handler handler, uint32_t count);

/* Once per object, when it is made; also after START. */
static inline void fb_timer_init(fb_timer *timer, fb_timer_kind kind, uint32_t index)
{
    *timer = (fb_timer){FB_NEVER, 0, index, (uint16_t)kind};
}

/* Sets or moves; FB_NEVER clears. */
void fb_timer_set(fb_node *node, fb_timer *timer, uint64_t at_ns);
void fb_timer_clear(fb_node *node, fb_timer *timer);

static inline bool fb_timer_is_set(const fb_timer *timer)
{
    return timer->place != 0;
}

#endif
