/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a space out of the store of a node that does not run. */
#ifndef FB_IO_STORE_FORGET_H
#define FB_IO_STORE_FORGET_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

typedef struct fb_forget_options {
    const char *directory;
    fb_id owner; /* whose store it is, and its key */
    fb_b32 public_key;
    const char *name; /* the space; NULL: by its id */
    fb_id id;
} fb_forget_options;

typedef struct fb_forget_stats {
    fb_id space;
    uint64_t entries; /* of the store, that are gone */
} fb_forget_stats;

/* All that the store holds of the space goes, but for its number, so that what else names it never
 * means another one. Interrupted, it goes on when it is called again, and the node may run in
 * between: it does not know the space any more. Who only asked to be a member is none: nobody waits
 * for it. FB_ERR_NOT_FOUND; FB_ERR_CONFLICT: the node is a member beside others, or several spaces
 * have the name; FB_ERR_UNSUPPORTED: records are kept in a document store; FB_ERR_STORE_LOCKED: the
 * node runs; FB_ERR_STORE_FAILED and what opening may say. `why` gets a sentence, if there is more
 * to say. */
fb_status fb_store_forget(const fb_forget_options *options, fb_forget_stats *stats, char *why,
                          size_t why_len);

#endif
