/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim diff A B`: where two runs part. Each runs in a process of its own, so they may be of
 * two builds. First only the hash after every 2^16 steps is compared, while both run; then the
 * steps between the last equal hash and the first other one are, byte by byte, in a second run that
 * ends there: all in at most twice the time of one. */
#ifndef FB_SIM_STEP_DIFF_H
#define FB_SIM_STEP_DIFF_H

#include <stdbool.h>
#include <stdint.h>

#define FB_SIM_CHECKPOINT_STEPS 65536u

/* Arguments as of fb_sim_main; the exit code. */
int fb_sim_diff_main(int argc, char **argv);

/* What one side does (diff_side.c): its words stand from argv[at] on, and what is wanted of it on
 * standard output is either a line for each checkpoint, or every step of a stretch as bytes. */
int fb_sim_diff_side(int argc, char **argv, int at, bool checkpoints, uint64_t from, uint64_t to);

/* A step as it is written: these words, then the event's bytes, then each effect that is not a log
 * line as in an arena, without padding. */
enum fb_sim_diff_word {
    FB_SIM_DIFF_STEP,
    FB_SIM_DIFF_NODE,
    FB_SIM_DIFF_KIND,
    FB_SIM_DIFF_MONO,
    FB_SIM_DIFF_WALL,
    FB_SIM_DIFF_A,
    FB_SIM_DIFF_B,
    FB_SIM_DIFF_C,
    FB_SIM_DIFF_EVENT_BYTES,
    FB_SIM_DIFF_EFFECT_BYTES,
    FB_SIM_DIFF_DIGEST_LO,
    FB_SIM_DIFF_DIGEST_HI,
    FB_SIM_DIFF_WORDS
};

#endif
