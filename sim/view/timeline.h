/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the simulator have to tell: each tale becomes a note (view/note.h), is printed
 * as a line with a column for each node, and kept by the record of the run, whichever there is. */
#ifndef FB_SIM_VIEW_TIMELINE_H
#define FB_SIM_VIEW_TIMELINE_H

#include "protocol/base/alloc.h"
#include "protocol/core/effect.h"
#include "sim/weather/weather.h"
#include "sim/workload/workload.h"

typedef struct fb_sim_world fb_sim_world;

void fb_sim_timeline_init(fb_sim_world *world, fb_arena *arena);

void fb_sim_timeline_fact(fb_sim_world *world, uint32_t node, const fb_effect *fact);
void fb_sim_timeline_weather(fb_sim_world *world, const fb_sim_window *window);
void fb_sim_timeline_phase(fb_sim_world *world);
void fb_sim_timeline_crash(fb_sim_world *world, uint32_t node);
void fb_sim_timeline_request(fb_sim_world *world, uint32_t node, const fb_sim_client *client);
void fb_sim_timeline_reply(fb_sim_world *world, uint32_t node, const fb_sim_client *client,
                           const fb_effect *reply);

#endif
