/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, in words: the one text that the running timeline and all views show. */
#ifndef FB_SIM_VIEW_NOTE_H
#define FB_SIM_VIEW_NOTE_H

#include "sim/view/record.h"

#define FB_SIM_NOTE_TEXT_MAX 700u

/* A fact of the core as a note of this node. */
fb_sim_note fb_sim_note_of_fact(const fb_sim_world *world, uint32_t node, const fb_effect *fact);

/* False when it is not worth a line. glyph is what stands in the node's column. */
bool fb_sim_note_text(const fb_sim_world *world, const fb_sim_note *note, const char **glyph,
                      char out[FB_SIM_NOTE_TEXT_MAX]);

/* A word for filters: "sent", "applied", "weather". Never NULL. */
const char *fb_sim_note_name(uint8_t kind);

/* The event of a step: "bytes", "tick". Never NULL. */
const char *fb_sim_event_name(uint8_t kind);
/* In words, from whom it came where that is known. */
void fb_sim_moment_text(const fb_sim_world *world, const fb_sim_moment *moment,
                        char out[FB_SIM_NOTE_TEXT_MAX]);

/* A band of the weather in a few words: "oneway A->B". */
void fb_sim_band_text(const fb_sim_world *world, const fb_sim_band *band, char *out, size_t cap);

#endif
