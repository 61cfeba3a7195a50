/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions that somebody changes by hand, to see what would have come of it. */
#ifndef FB_SIM_STEP_DECISION_H
#define FB_SIM_STEP_DECISION_H

#include "sim/network/network.h"
#include "sim/world/queue.h"

typedef struct fb_sim_world fb_sim_world;

typedef enum fb_sim_decision_kind {
    FB_SIM_DECISION_DROP,      /* what arrives next is lost: a frame; a stream breaks there */
    FB_SIM_DECISION_DELAY,     /* what arrives next arrives by so much later */
    FB_SIM_DECISION_DUPLICATE, /* the frame that arrives next arrives twice */
    FB_SIM_DECISION_CRASH,     /* a process ends, and boots again after so long */
    FB_SIM_DECISION_PAUSE,     /* a process does nothing for so long */
    FB_SIM_DECISIONS
} fb_sim_decision_kind;

typedef struct fb_sim_decision {
    uint64_t turn; /* of the run, before which it is taken */
    uint64_t ns;   /* how long, or later; of a duplicate: after the first */
    uint32_t node; /* of CRASH and PAUSE; of the others the receiver, UINT32_MAX for any */
    uint8_t kind;  /* fb_sim_decision_kind */
} fb_sim_decision;

const char *fb_sim_decision_name(uint8_t kind);

/* Does it now. NULL when it was done, else why it cannot be. */
const char *fb_sim_decide(fb_sim_world *world, const fb_sim_decision *decision);

/* True when the entry brings bytes or a frame to a node that will take them. */
bool fb_sim_entry_arrives(const fb_sim_world *world, const fb_sim_entry *entry);

#endif
