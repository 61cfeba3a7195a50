/* SPDX-License-Identifier: Apache-2.0 */
/* What a `get` may show, for the checks that compare its answer with the model. */
#ifndef FB_SIM_CHECKERS_READING_H
#define FB_SIM_CHECKERS_READING_H

#include "sim/checkers/acknowledged_survives.h"

typedef struct fb_sim_question {
    uint32_t node;
    uint32_t record;
    uint32_t asked_step;
    uint64_t asked_ns;
    bool exact; /* a quiet core was asked: nothing is under way */
} fb_sim_question;

typedef enum fb_sim_sight {
    FB_SIM_HIDDEN, /* stamped beyond the bounded future */
    FB_SIM_MAYBE,
    FB_SIM_VISIBLE,
} fb_sim_sight;

/* True when the reply answers a get, the model can see, and the answer is one: FB_OK or not found.
 */
bool fb_sim_question_of(fb_sim_world *world, uint32_t node, const fb_effect *reply,
                        fb_sim_question *out);

/* Of a value, by the clock of the node that was asked; near the bound nothing is said. */
fb_sim_sight fb_sim_sight_of(const fb_sim_world *world, const fb_sim_question *question,
                             const fb_sim_model_change *change);

/* It was on the node's disk before that step of the world. */
bool fb_sim_stored_before(const fb_sim_model_change *change, uint32_t node, uint32_t step);

#endif
