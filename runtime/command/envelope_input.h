/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to `faberio envelope`: inputs one after another, never more than one envelope in
 * memory. */
#ifndef FB_RUNTIME_COMMAND_ENVELOPE_INPUT_H
#define FB_RUNTIME_COMMAND_ENVELOPE_INPUT_H

#include <stdint.h>
#include <stdio.h>

#include "runtime/command/envelope_args.h"

typedef struct fb_envelope_input {
    const char *file; /* its name for messages */
    uint64_t number;  /* line or frame, from 1; 0: the file is one envelope */
    fb_span bytes;    /* one byte longer than the limit stands for all that is too large */
    bool cut;         /* the file ended within a frame */
} fb_envelope_input;

typedef struct fb_envelope_inputs fb_envelope_inputs;

/* Makes sure first that every file can be opened, so that nothing is half-done. NULL after it said
 * which cannot. */
fb_envelope_inputs *fb_envelope_inputs_open(const fb_envelope_args *args);
void fb_envelope_inputs_close(fb_envelope_inputs *inputs);

/* 1: the next input, valid until the next call; 0: no more; -1: a file could not be read, which was
 * said. */
int fb_envelope_inputs_next(fb_envelope_inputs *inputs, fb_envelope_input *out);

#endif
