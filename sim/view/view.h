/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a recorded run. */
#ifndef FB_SIM_VIEW_VIEW_H
#define FB_SIM_VIEW_VIEW_H

#include "sim/view/out.h"
#include "sim/view/record.h"

/* Which part of it. */
typedef struct fb_sim_span {
    uint64_t from, to; /* steps, both included; all are in the record */
    uint64_t *memory;  /* a number for each of them, scratch of the view */
    bool steps;        /* of the text: those too in which nothing happened worth a line */
    uint64_t nodes;    /* of the text: a bit for each node that is shown */
    const char *kind;  /* of the text: notes of this name only; NULL: all */
} fb_sim_span;

/* For a terminal: a line for each thing that happened, at most 100 columns. */
void fb_sim_view_text(const fb_sim_world *world, const fb_sim_span *span, fb_sim_out *out);

/* For Perfetto and Chrome (Trace Event Format, JSON). */
void fb_sim_view_perfetto(const fb_sim_world *world, const fb_sim_span *span, fb_sim_out *out);

/* One page that needs nothing else; with a second run next to the first unless that is NULL. */
void fb_sim_view_html(const fb_sim_world *world, const fb_sim_span *span,
                      const fb_sim_world *beside, const fb_sim_span *beside_span, fb_sim_out *out);

/* `faberio sim view`, arguments as of fb_sim_main. */
int fb_sim_view_main(int argc, char **argv);

#endif
