/* SPDX-License-Identifier: Apache-2.0 */
/* Files that whoever writes them cannot read: frames encrypted to a public key, one after the
 * other.
 *
 *     "faberio-record-1" (16)  'S'  public key (32)  sealed key (80)  stream header (24)
 *     then frames: u32 length, and so many bytes of one secretstream message
 *
 * The stream's key is drawn for each file and sealed to the X25519 key of whoever may read it. A
 * frame is whole or not there, so a file that ends anywhere can be read up to its last whole frame;
 * no frame can be changed, moved, left out or put before another unnoticed. With 'P' in the place
 * of 'S' the rest of the file stands there as it is. */
#ifndef FB_IO_FILES_SEALED_FILE_H
#define FB_IO_FILES_SEALED_FILE_H

#include <sodium.h>
#include <stdio.h>

#include "protocol/base/error.h"
#include "protocol/base/types.h"

#define FB_SEALED_MAGIC       "faberio-record-1"
#define FB_SEALED_FRAME_MAX   (1u << 22)
#define FB_SEALED_FILE_MAX    (UINT64_C(1) << 32) /* that can be opened */
#define FB_SEALED_FRAME_EXTRA (4 + crypto_secretstream_xchacha20poly1305_ABYTES)

typedef struct fb_sealed_writer {
    int fd;
    uint64_t bytes; /* in the file */
    uint8_t *frame; /* room for one */
    crypto_secretstream_xchacha20poly1305_state state;
} fb_sealed_writer;

/* Makes a new file, 0600; never writes over one. False with errno. */
bool fb_sealed_create(fb_sealed_writer *w, const char *path, const fb_b32 *reader_key);
/* One frame of at most FB_SEALED_FRAME_MAX bytes, in the hands of the system when it returns: it
 * outlives this process, not a power cut. False with errno; nothing more can be written then. */
bool fb_sealed_write(fb_sealed_writer *w, fb_span plain, bool last);
void fb_sealed_close(fb_sealed_writer *w);

typedef struct fb_sealed_content {
    uint8_t *bytes; /* the caller's to free */
    size_t len;
    bool sealed;
    bool whole; /* it has its last frame */
} fb_sealed_content;

/* All that can be read of a file. `secret` may be NULL for one that is not sealed.
 * FB_ERR_NOT_FOUND, FB_ERR_KEY (another key), FB_ERR_MALFORMED, FB_ERR_NO_MEMORY,
 * FB_ERR_STORE_FAILED; `why` gets a sentence with the place. */
fb_status fb_sealed_read(const char *path, const fb_b32 *secret, fb_sealed_content *out, char *why,
                         size_t why_len);

#endif
