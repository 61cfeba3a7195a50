/* SPDX-License-Identifier: Apache-2.0 */
/* Private keys on disk: one line of text,
 *
 *     faberio-key-1 KIND HEX
 *
 * where KIND is ed25519 or x25519 and HEX the 32 secret bytes. The file belongs to its owner alone:
 * one that the group or others may read, write or run is refused. */
#ifndef FB_IO_KEYS_FILE_H
#define FB_IO_KEYS_FILE_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

typedef enum fb_key_kind {
    FB_KEY_ED25519 = 1,
    FB_KEY_X25519 = 2,
} fb_key_kind;

/* What went wrong, as one sentence without the path; empty after FB_OK. */
typedef struct fb_key_file_error {
    char text[160];
} fb_key_file_error;

/* Reads a key; the caller wipes *out. FB_ERR_NOT_FOUND; FB_ERR_NOT_AUTHORISED (permissions too open
 * or not readable); FB_ERR_KEY (not a regular file, not this format, another kind);
 * FB_ERR_STORE_FAILED (input/output error). error may be NULL. */
fb_status fb_key_file_read(const char *path, fb_key_kind kind, fb_b32 *out,
                           fb_key_file_error *error);

/* Writes a new file with mode 0600, synced with its directory. Never overwrites: FB_ERR_EXISTS.
 * FB_ERR_STORE_FAILED; then no file is left behind. error may be NULL. */
fb_status fb_key_file_write(const char *path, fb_key_kind kind, const fb_b32 *secret,
                            fb_key_file_error *error);

/* Draws 32 secret bytes and writes them; *out gets a copy that the caller wipes. */
fb_status fb_key_file_generate(const char *path, fb_key_kind kind, fb_b32 *out,
                               fb_key_file_error *error);

#endif
