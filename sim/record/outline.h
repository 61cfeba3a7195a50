/* SPDX-License-Identifier: Apache-2.0 */
/* What happened to recorded nodes, as a schedule (docs/SCHEDULES.md): what they were asked, when
 * their processes were down, which of them could not reach each other, whose clock was set.
 *
 * It is the shape of an incident and not the incident: identities, delays and what was in the
 * stores before are the simulator's own. Records, fields and elements are numbered as they are met,
 * and share numbers when there are more than the simulator has; values keep their lengths. What
 * could not be taken over is counted, and said in comments behind the schedule. */
#ifndef FB_SIM_RECORD_OUTLINE_H
#define FB_SIM_RECORD_OUTLINE_H

#include <stdio.h>

#include "protocol/core/effect.h"
#include "protocol/core/event.h"

/* Two nodes that have been linked are apart when no connection is there for so long. */
#define FB_SIM_OUTLINE_APART_NS UINT64_C(1000000000)

typedef struct fb_sim_outline fb_sim_outline;

/* NULL without memory. */
fb_sim_outline *fb_sim_outline_create(void);
void fb_sim_outline_free(fb_sim_outline *outline);

/* In the order of time, which never goes back; nodes by their numbers (below 64). An event whose
 * bytes are not known (of a redacted recording) has NULL for them. */
void fb_sim_outline_event(fb_sim_outline *outline, uint32_t node, uint64_t now_ns,
                          const fb_event *event);
/* What a node answered: in it are the ids of new records. */
void fb_sim_outline_reply(fb_sim_outline *outline, uint32_t node, const fb_effect *reply);
/* The process of a node is gone: its file is over. */
void fb_sim_outline_down(fb_sim_outline *outline, uint32_t node, uint64_t now_ns);
/* A connection between two of them is there, or is not any more. */
void fb_sim_outline_linked(fb_sim_outline *outline, uint32_t a, uint32_t b, uint64_t now_ns,
                           bool there);

/* The whole of it. NULL, or why there is none. */
const char *fb_sim_outline_write(fb_sim_outline *outline, FILE *out);

#endif
