/* SPDX-License-Identifier: Apache-2.0 */
/* A run that can be walked through in both directions.
 *
 * Its place is a number of turns: entries of the world's queue that happened. A turn may hold no
 * step, or several that one entry began. Going back restores the snapshot before and goes forward
 * from there; what was changed by hand happens again at its turn. */
#ifndef FB_SIM_STEP_SESSION_H
#define FB_SIM_STEP_SESSION_H

#include "sim/step/decision.h"
#include "sim/step/snapshot.h"

#define FB_SIM_DECISIONS_MAX 64u

/* Steps between snapshots near the place where one is, and how many of those lie there. */
#define FB_SIM_DENSE_STEPS 4096u
#define FB_SIM_DENSE       8u

typedef struct fb_sim_session {
    fb_sim_world *world;
    fb_sim_shelf shelf;
    uint64_t turn;
    uint64_t furthest; /* step that was reached once */
    bool over;         /* nothing is left to happen */
    fb_sim_decision decisions[FB_SIM_DECISIONS_MAX];
    uint32_t decision_count;
} fb_sim_session;

/* The world has a record and had no turn yet. False: no memory. */
bool fb_sim_session_init(fb_sim_session *session, fb_sim_world *world);
void fb_sim_session_free(fb_sim_session *session);

/* One turn. False when the run is over. */
bool fb_sim_session_turn(fb_sim_session *session);

/* Forward until the world has made so many steps, or the run is over. */
void fb_sim_session_forward(fb_sim_session *session, uint64_t step);
/* To the last place at which no more than so many steps were made; also back. */
void fb_sim_session_to(fb_sim_session *session, uint64_t step);
/* Forward to the first place at which so much time has passed. */
void fb_sim_session_to_time(fb_sim_session *session, uint64_t ns);
/* Forward until asked() says yes after a step, or the run is over. */
bool fb_sim_session_until(fb_sim_session *session, bool (*asked)(void *user, fb_sim_world *world),
                          void *user);
/* Back to exactly this turn. */
void fb_sim_session_to_turn(fb_sim_session *session, uint64_t turn);

/* Changes what happens next. NULL when it was done, else why not. The future is another one. */
const char *fb_sim_session_decide(fb_sim_session *session, fb_sim_decision decision);
/* Back to before the last such change, without it. False: there is none. */
bool fb_sim_session_undo(fb_sim_session *session);

/* The step of this node that last changed what the text says, looking back from here; 0: it is as
 * it was at the start. text() writes what is watched into a hash. */
uint64_t fb_sim_session_changed(fb_sim_session *session, uint32_t node,
                                uint64_t (*text)(void *user, fb_sim_world *world), void *user);

#endif
