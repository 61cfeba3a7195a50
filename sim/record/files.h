/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of recordings are meant: a file, or all that `faberio run --record PATH` made. */
#ifndef FB_SIM_RECORD_FILES_H
#define FB_SIM_RECORD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/record/main_record.h"

typedef struct fb_sim_record_files {
    char *paths[FB_SIM_RECORDINGS_MAX];
    uint32_t count;
} fb_sim_record_files;

/* A file of this name, else PATH.NNNNNN in the order of their numbers. False with a sentence. */
bool fb_sim_record_files_add(fb_sim_record_files *files, const char *path, char *why,
                             size_t why_len);
void fb_sim_record_files_free(fb_sim_record_files *files);

#endif
