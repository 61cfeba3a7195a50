/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a run: every event, every effect but log lines, and the digest of the node after
 * each step, as one stream of bytes that is hashed block by block. The hash of what has happened so
 * far is the same number on every machine (DESIGN 5). */
#ifndef FB_SIM_WORLD_TRACE_H
#define FB_SIM_WORLD_TRACE_H

#include "protocol/base/hash.h"
#include "protocol/core/effect.h"
#include "protocol/core/event.h"

/* A block begins with the hash of the one before. Long enough that a hash costs little more than
 * its bytes, short enough to stay in the nearest cache. */
#define FB_SIM_TRACE_BLOCK 8192u

/* Zeros to begin with. */
typedef struct fb_sim_trace {
    uint64_t steps;
    size_t used;
    uint8_t block[FB_SIM_TRACE_BLOCK];
} fb_sim_trace;

/* Adds one step of one node. */
void fb_sim_trace_step(fb_sim_trace *trace, uint32_t node, const fb_event *event,
                       const fb_effects *effects, fb_hash128 digest);

/* Of all steps so far. */
fb_hash128 fb_sim_trace_hash(const fb_sim_trace *trace);

/* 32 lowercase hex digits and a zero. */
void fb_sim_trace_text(fb_hash128 hash, char out[33]);

#endif
