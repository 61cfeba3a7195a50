/* SPDX-License-Identifier: Apache-2.0 */
/* The trace hash of a run: every event, every effect byte but log lines, and the digest
 * of the node after each step, chained. It is the same number on every machine (DESIGN 5). */
#ifndef FB_SIM_TRACE_H
#define FB_SIM_TRACE_H

#include "protocol/base/hash.h"
#include "protocol/core/effect.h"
#include "protocol/core/event.h"

typedef struct fb_sim_trace {
    fb_hash128 hash;
    uint64_t steps;
} fb_sim_trace;

/* Adds one step of one node. `effects` may hold kinds outside the trace; they are left out. */
void fb_sim_trace_step(fb_sim_trace *trace, uint32_t node, const fb_event *event,
                       const fb_effects *effects, fb_hash128 digest);

/* 32 lowercase hex digits and a zero. */
void fb_sim_trace_text(fb_hash128 hash, char out[33]);

#endif
