/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of several nodes as one run: their steps in one order, with what was sent between
 * them, in a record that all views show (view/record.h).
 *
 * The order is that of each node's wall clock at the beginning of a file and its monotonic clock
 * from there, so clocks that are set change nothing. Where clocks were apart, what was sent comes
 * before it arrives: the two ends of a connection know each other by the dialler's first bytes,
 * which have a key in them that is drawn for each. Of redacted recordings bytes are not known, so
 * there the clocks alone decide.
 *
 * Facts of all of them go to the checks that judge histories (checks.h): what they find is the
 * world's result, as in a run. */
#ifndef FB_SIM_RECORD_MERGE_H
#define FB_SIM_RECORD_MERGE_H

#include "sim/record/outline.h"
#include "sim/record/replay.h"
#include "sim/world/world.h"

#define FB_SIM_MERGE_FILES_MAX 256u
#define FB_SIM_MERGE_NODES_MAX 64u

/* `outline`, unless it is NULL, hears of all of it.
 * A world that holds nothing but its record of the last `steps` steps, to be closed with
 * fb_sim_merge_close. The recordings stand in the order of their files. NULL with a sentence: no
 * memory, too many nodes, or *worst says what is wrong with file *which. */
fb_sim_world *fb_sim_merge(const fb_span *recordings, uint32_t count, uint64_t steps,
                           fb_sim_outline *outline, fb_sim_replayed *worst, uint32_t *which,
                           char *why, size_t why_len);
void fb_sim_merge_close(fb_sim_world *world);

#endif
