/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of one collection on their way to the node, many a write set: each set is stored whole or
 * not at all, and what was not stored is said with the line to go on from. */
#ifndef FB_RUNTIME_COMMAND_IMPORT_SET_H
#define FB_RUNTIME_COMMAND_IMPORT_SET_H

#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/command/cli.h"
#include "runtime/text.h"

typedef struct fb_import_set {
    const fb_cli *cli;
    const char *name;   /* of the file, for people */
    const char *resume; /* the command that goes on, a format with the number of a line */
    bool leaves_out;    /* a change that the node refuses is named, and the rest goes on */
    unsigned long long left_out, left_out_line; /* lines, and the last of them */
    fb_text path;
    fb_text changes[FB_BATCH_CHANGES_MAX]; /* as the API takes them */
    fb_id ids[FB_BATCH_CHANGES_MAX];       /* zeros: a new one */
    unsigned long long lines[FB_BATCH_CHANGES_MAX];
    size_t count;
    size_t bytes;
    unsigned long long stored, sets; /* done */
} fb_import_set;

/* Where changes go from now on; nothing is gathered. */
void fb_import_into(fb_import_set *set, const char *space, const char *collection);
/* Takes the change over. What was gathered is written first when there is no room for it, or when
 * it is about a record that is in the set. */
fb_exit fb_import_add(fb_import_set *set, fb_text *change, const fb_id *id,
                      unsigned long long line);
fb_exit fb_import_flush(fb_import_set *set);
void fb_import_clear(fb_import_set *set);

#endif
