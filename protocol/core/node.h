/* SPDX-License-Identifier: Apache-2.0 */
/* A node: the pure state machine that both drivers feed.
 *
 * One instance is one node. It does no I/O, reads no clock, starts no thread, has no global and
 * draws no system randomness. docs/DRIVER-CONTRACT.md is the contract of whoever calls this. */
#ifndef FB_CORE_NODE_H
#define FB_CORE_NODE_H

#include "protocol/base/alloc.h"
#include "protocol/base/error.h"
#include "protocol/base/hash.h"
#include "protocol/core/effect.h"
#include "protocol/core/event.h"
#include "protocol/core/observe.h"
#include "protocol/core/options.h"

typedef struct fb_node fb_node;

/* Creates an instance that waits for FB_EV_START. All memory is allocated here, once.
 * options is copied; its provider must outlive the node.
 * FB_ERR_NO_MEMORY: *out is NULL. FB_ERR_ARGUMENT: an option is out of its range. */
fb_status fb_node_create(const fb_options *options, fb_node **out);

/* Releases everything. NULL is allowed. Not from within a step. */
void fb_node_destroy(fb_node *node);

/* Takes one event and writes all its effects to `out` (what was there is overwritten).
 *
 * FB_OK: the effects are to be carried out in order before the next event.
 * FB_ERR_TIME_BACKWARDS, FB_ERR_EVENT_UNKNOWN, FB_ERR_EVENT_MALFORMED, FB_ERR_NO_SPACE: the
 * driver's mistake, nothing changed, no effects.
 * Whatever a peer, a store or a user did wrong is no error of step: it ends in counters, replies,
 * observations and, where the contract says so, a closed link or FB_FX_NEED_START. */
fb_status fb_node_step(fb_node *node, const fb_event *event, fb_effects *out);

/* mono_ns at which the node wants a TICK, FB_NEVER for none. Not later than the last event's
 * mono_ns when something waits for nothing but another call. */
uint64_t fb_node_deadline(const fb_node *node);

/* The incremental digest of the whole state. Two nodes that were fed the same events have the same
 * digest on every machine. */
fb_hash128 fb_node_digest(fb_node *node);

/* True between a START whose loading is complete and the end of that incarnation. */
bool fb_node_is_running(const fb_node *node);

/* Since the last START (fb_counter, observe.h). */
uint64_t fb_node_counter(const fb_node *node, fb_counter counter);

/* This node's id, as derived from its identity key. */
fb_id fb_node_self(const fb_node *node);

/* Bytes the instance occupies (one allocation). */
size_t fb_node_bytes(const fb_node *node);

#endif
