/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of `sim step`: for people, or one JSON object a line. */
#ifndef FB_SIM_STEP_ANSWER_H
#define FB_SIM_STEP_ANSWER_H

#include "sim/step/session.h"
#include "sim/view/out.h"

typedef struct fb_sim_answer {
    fb_sim_out *out;
    bool json;
    bool first; /* no member was written yet */
} fb_sim_answer;

/* An object begins and ends; in text nothing is written. */
void fb_sim_answer_begin(fb_sim_answer *a, const char *command);
void fb_sim_answer_end(fb_sim_answer *a);

/* Members of JSON; in text nothing is written. */
void fb_sim_answer_string(fb_sim_answer *a, const char *name, const char *value);
void fb_sim_answer_number(fb_sim_answer *a, const char *name, uint64_t value);
void fb_sim_answer_bool(fb_sim_answer *a, const char *name, bool value);
/* A list of objects: open, then for each `item` and its members, then close. */
void fb_sim_answer_open(fb_sim_answer *a, const char *name);
void fb_sim_answer_item(fb_sim_answer *a, bool first);
void fb_sim_answer_item_end(fb_sim_answer *a);
void fb_sim_answer_close(fb_sim_answer *a);

/* A line of text; in JSON nothing is written. */
void fb_sim_answer_line(fb_sim_answer *a, const char *format, ...);

/* Where the session stands. */
void fb_sim_answer_where(fb_sim_answer *a, const fb_sim_session *session);
/* A step with what happened in it: a line, or the members of an item. */
void fb_sim_answer_moment(fb_sim_answer *a, const fb_sim_world *world, uint64_t step);

/* The name of a time: seconds with nine places. */
void fb_sim_time_text(uint64_t ns, char out[32]);

#endif
