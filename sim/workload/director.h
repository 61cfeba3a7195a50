/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a run: the cluster is set up through the local requests that a person would make,
 * then rounds follow. A round is a stretch of weather and work (safety), after which a core of
 * nodes is healed and has to converge within a bound computed from the timers (liveness), be quiet,
 * and pass the checks that look at the whole. */
#ifndef FB_SIM_WORKLOAD_DIRECTOR_H
#define FB_SIM_WORKLOAD_DIRECTOR_H

#include "protocol/base/alloc.h"
#include "protocol/core/effect.h"
#include "sim/world/world.h"

/* How long a core that agrees is watched: in a schedule this means as long as the timers say. */
#define FB_SIM_DIRECTOR_QUIET_NS UINT64_C(55000000000)

typedef enum fb_sim_phase {
    FB_SIM_PHASE_SETUP,
    FB_SIM_PHASE_CHAOS,
    FB_SIM_PHASE_HEAL,
    FB_SIM_PHASE_QUIET,
    FB_SIM_PHASE_BENCH,
    FB_SIM_PHASE_DONE,
} fb_sim_phase;

/* What the director asked of one node, and what came back. */
typedef struct fb_sim_asked {
    uint64_t request; /* 0: nothing is out */
    bool answered;
    uint32_t status;
    uint32_t len;
    uint8_t bytes[512];
    bool joining;
    uint64_t incarnation; /* that was asked */
    uint64_t areas_sum;   /* of an answer to AREAS, whatever its length */
    uint64_t progress;    /* setup: how far this node came */
} fb_sim_asked;

/* How others come into a space. */
typedef struct fb_sim_gate {
    uint8_t invite[512]; /* one for all who join */
    uint32_t invite_len;
    bool invite_void;    /* who made it lost its secret */
    uint8_t rescue[512]; /* then: one of a member that still knows the space */
    uint32_t rescue_len;
    uint32_t rescuer;   /* who was asked for it, from 1; 0: nobody is now */
    uint32_t approving; /* whom the creator was asked to approve */
} fb_sim_gate;

typedef struct fb_sim_director {
    fb_sim_phase phase;
    uint64_t round;
    uint64_t phase_since_ns;
    uint64_t phase_until_ns;
    uint32_t polls;
    uint64_t healed_ns;   /* when the running HEAL began */
    uint64_t stirred_ns;  /* the core's links or lives changed last */
    uint64_t *bound;      /* (space * nodes + from) * nodes + to: the link that is bound; 0: none */
    uint8_t *reached;     /* scratch, by node */
    uint64_t shut_ns;     /* somebody was shut out last; 0: never */
    uint64_t stranger_ns; /* somebody without a name was shut out for long last */
    bool healed_early;    /* since the steps are nearly used up */
    bool outs;            /* since all agreed last, somebody was put out, or left */
    uint64_t admitted_ns; /* then: when somebody was last let in again in this HEAL */
    uint32_t admits;      /* how often one was asked to */
    bool joins;           /* a member of the core lost its disk and joins again */
    bool behind;          /* since all agreed last, a disk was lost or set back */
    uint64_t caught_ns;   /* then: when a batch was applied last in this HEAL; 0: none was */
    uint64_t quiet_ns;    /* from here on only heartbeats are left */
    bool bench;
    uint32_t record;     /* that every node is asked for */
    uint32_t setting_up; /* this space, while the phase says so */
    fb_sim_gate spaces[FB_SIM_SPACES];
    fb_sim_asked *asked; /* space * nodes + node */
    char setup_stage[64];
} fb_sim_director;

void fb_sim_director_init(fb_sim_world *world, fb_arena *arena);
/* Puts the first turn into the queue. */
void fb_sim_director_start(fb_sim_world *world);
void fb_sim_at_script(fb_sim_world *world);
/* A node's store is an old one, or empty. */
void fb_sim_director_restored(fb_sim_world *world);
/* What was asked of a node last about a space; the asking itself forgets the answer before. */
fb_sim_asked *fb_sim_asked_of(const fb_sim_world *world, uint32_t space, uint32_t node);
void fb_sim_ask(fb_sim_world *world, uint32_t space, uint32_t node, fb_verb verb,
                fb_span arguments);
/* True when the reply was to the director. */
bool fb_sim_director_reply(fb_sim_world *world, uint32_t node, const fb_effect *reply);

/* One that is an admin of the space throughout, for the weather leaves it alone. */
bool fb_sim_stays_admin(const fb_sim_world *world, uint32_t space, uint32_t node);

/* Prints what the swarm drew for this round, on standard error or as asked. */
void fb_sim_round_line(fb_sim_world *world);

/* True when this request of the director is a `get` of a record, and of which. */
bool fb_sim_director_asked_record(const fb_sim_world *world, uint32_t node, uint64_t request,
                                  uint32_t *record);

/* Facts that the bounds below follow from. */
void fb_sim_director_fact(fb_sim_world *world, uint32_t node, const fb_effect *fact);

/* A node's incarnation ended, and its links with it. */
void fb_sim_director_over(fb_sim_world *world, uint32_t node);

/* When each pair of a healed core that has an address has its link at the latest. */
uint64_t fb_sim_linked_by_ns(const fb_sim_world *world);
/* When a healed core agrees at the latest, as far as it is known now. */
uint64_t fb_sim_agreed_by_ns(const fb_sim_world *world);

#endif
