/* SPDX-License-Identifier: Apache-2.0 */
/* The store's directory before the database is opened: who owns it, and what is in it. */
#ifndef FB_IO_STORE_PLACE_H
#define FB_IO_STORE_PLACE_H

#include "io/store/lmdb.h"

/* Makes the directory when it is missing, takes its lock (*lock_fd, kept until that is closed), and
 * checks what is there; what is damaged is moved aside. FB_ERR_STORE_LOCKED, FB_ERR_STORE_DAMAGED
 * (it cannot be moved aside), FB_ERR_STORE_FAILED; `why` gets a sentence. */
fb_status fb_store_place_take(const char *directory, int *lock_fd, fb_lmdb_opening *out, char *why,
                              size_t why_len);

/* Makes the names of the store's files, and of its directory, durable; once the files are there,
 * and before anything is promised. FB_ERR_STORE_FAILED; `why` gets a sentence. */
fb_status fb_store_place_sync(const char *directory, char *why, size_t why_len);

#endif
