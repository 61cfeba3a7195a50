/* SPDX-License-Identifier: Apache-2.0 */
/* A recording without what was said: made while the whole one is replayed, as facts and states come
 * from there. What is left can be told again step by step, held next to others and judged by
 * checks; it cannot be executed, because nothing can be computed from a hash. */
#ifndef FB_SIM_RECORD_REDACT_H
#define FB_SIM_RECORD_REDACT_H

#include <stdio.h>

#include "sim/record/replay.h"

typedef struct fb_sim_redaction {
    FILE *file;
    fb_recording_hash hash;
    void *user;
    fb_writer items; /* of one step */
    bool failed;
} fb_sim_redaction;

/* False with errno: the file is there already, or cannot be made. */
bool fb_sim_redact_begin(fb_sim_redaction *out, const char *path, const fb_sim_replay *replay,
                         fb_recording_hash hash, void *user);
/* After each step. */
void fb_sim_redact_step(fb_sim_redaction *redaction, const fb_sim_replay *replay);
/* False with errno: it is not whole, and was removed. */
bool fb_sim_redact_end(fb_sim_redaction *redaction, const fb_sim_replay *replay);

#endif
