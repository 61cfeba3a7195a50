/* SPDX-License-Identifier: Apache-2.0 */
/* The defects that the toy node can be given. */
#ifndef FB_SIM_TOYS_TOY_H
#define FB_SIM_TOYS_TOY_H

typedef enum fb_toy_defect {
    FB_TOY_SOUND,
    FB_TOY_NO_CHECKSUM,     /* believes every byte of the network */
    FB_TOY_WHOLE_MESSAGES,  /* expects a message in one piece */
    FB_TOY_NO_REDIAL,       /* a lost connection is lost for ever */
    FB_TOY_NO_PATIENCE,     /* does not notice that a peer is silent */
    FB_TOY_SENDS_ONCE,      /* tells a new link nothing of before */
    FB_TOY_REPLIES_EARLY,   /* answers before the write set is durable */
    FB_TOY_FORGETS_COUNTER, /* numbers changes by the wall clock */
    FB_TOY_NEVER_RESTARTS,  /* ignores a failed write set */
    FB_TOY_READS_UNWRITTEN, /* sends a byte that nobody wrote */
    FB_TOY_COUNTS_TICKS,    /* takes the number of its ticks for the time that passed */
    FB_TOY_DEFECTS
} fb_toy_defect;

extern fb_toy_defect fb_toy_defect_now;

#endif
