/* SPDX-License-Identifier: Apache-2.0 */
/* One moment of a store, read by another process than the one that works with it: LMDB keeps what a
 * reader has begun to read, whatever is written meanwhile. */
#ifndef FB_IO_STORE_SNAPSHOT_H
#define FB_IO_STORE_SNAPSHOT_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

typedef struct fb_store_snapshot fb_store_snapshot;

/* directory: the store's, with a data.mdb. FB_ERR_NOT_FOUND: there is none; FB_ERR_VERSION_NEWER,
 * FB_ERR_VERSION_OLDER, FB_ERR_STORE_FAILED, FB_ERR_STORE_DAMAGED: `why` gets a sentence. */
fb_status fb_store_snapshot_open(const char *directory, fb_store_snapshot **out, char *why,
                                 size_t why_len);
void fb_store_snapshot_close(fb_store_snapshot *snapshot);

/* The value of a key, borrowed until the snapshot is closed. FB_ERR_NOT_FOUND;
 * FB_ERR_STORE_DAMAGED: it does not match its checksum; FB_ERR_STORE_FAILED. */
fb_status fb_store_snapshot_get(fb_store_snapshot *snapshot, fb_span key, fb_span *value);

/* The entries whose keys begin with `under`, in order: FB_ERR_NOT_FOUND after the last. *key is
 * empty where there is none: with FB_ERR_STORE_DAMAGED nothing can be read from there on, while
 * with a key it is that entry's value which is damaged. */
fb_status fb_store_snapshot_first(fb_store_snapshot *snapshot, fb_span under, fb_span *key,
                                  fb_span *value);
fb_status fb_store_snapshot_next(fb_store_snapshot *snapshot, fb_span *key, fb_span *value);

#endif
