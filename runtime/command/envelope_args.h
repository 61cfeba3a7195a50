/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to `faberio envelope`: the command line. */
#ifndef FB_RUNTIME_COMMAND_ENVELOPE_ARGS_H
#define FB_RUNTIME_COMMAND_ENVELOPE_ARGS_H

#include <stdbool.h>

#include "protocol/base/types.h"

typedef enum fb_envelope_verb {
    FB_VERB_SIGN,
    FB_VERB_VERIFY,
    FB_VERB_CANONICAL,
    FB_VERB_CONVERT,
    FB_VERB_INSPECT,
} fb_envelope_verb;

typedef struct fb_envelope_args {
    fb_envelope_verb verb;
    const char *verb_name;
    bool from_protobuf;
    bool to_set;
    bool to_protobuf;
    bool lines;
    bool frames;
    bool hex;
    bool help;
    const char *key;
    const char *context;
    bool has_public_key;
    fb_b32 public_key;
    char **files;
    int file_count;
} fb_envelope_args;

/* Parses and checks the command line; files are moved to the front of argv. False after it said
 * on standard error what is wrong: a usage error. */
bool fb_envelope_args_parse(int argc, char **argv, fb_envelope_args *out);

void fb_envelope_help(void);

#endif
