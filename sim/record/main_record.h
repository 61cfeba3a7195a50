/* SPDX-License-Identifier: Apache-2.0 */
/* `faberio sim record`: recordings of real nodes, replayed, told and taken apart. */
#ifndef FB_SIM_RECORD_MAIN_RECORD_H
#define FB_SIM_RECORD_MAIN_RECORD_H

#include "protocol/core/recording.h"

#define FB_SIM_RECORDINGS_MAX 256u /* files at once */

/* The plain items of one file, the caller's to free; `whole`: it was written to its end. */
typedef struct fb_sim_recorded {
    uint8_t *bytes;
    size_t len;
    bool whole;
} fb_sim_recorded;

typedef struct fb_sim_record_io {
    void *user;
    /* False with a sentence in why, that names the file and the place in it. */
    bool (*read)(void *user, const char *path, fb_sim_recorded *out, char *why, size_t why_len);
    /* Hashes of what a redacted recording leaves out; NULL: none can be made here. */
    fb_recording_hash hash;
} fb_sim_record_io;

/* argv[1] is "record". Keys are the caller's affair: the simulator opens nothing that is sealed. */
int fb_sim_record_main(int argc, char **argv, const fb_sim_record_io *io);

/* The same for files that are not sealed. */
int fb_sim_record_plain_main(int argc, char **argv);

#endif
