/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a node that does not run, from its local store into documents and back. It goes on
 * where it ended, whatever ended it: what was moved is moved, and a node may run in between with
 * the document store as its setting. Everything is read back and compared before the place that it
 * came from is given up. */
#ifndef FB_IO_DOCUMENT_STORE_MIGRATE_H
#define FB_IO_DOCUMENT_STORE_MIGRATE_H

#include "io/documents/documents.h"

#define FB_MIGRATE_RECORDS     256u /* at once */
#define FB_MIGRATE_BYTES       (4u << 20)
#define FB_MIGRATE_PATIENCE_MS 10000u /* for a server that does not answer */

typedef struct fb_migrate_options {
    const char *directory; /* the local store's */
    fb_id owner;
    const fb_documents_ops *ops;
    fb_documents *documents;
    bool to_local;
    void (*progress)(void *user, uint64_t records); /* may be NULL */
    void *user;
} fb_migrate_options;

typedef struct fb_migrate_stats {
    uint64_t records; /* moved, and found again as they were */
    uint64_t values;  /* of them, stored apart */
    uint64_t stayed;  /* records that no document can hold: they stay in the local store */
} fb_migrate_stats;

/* FB_ERR_STORE_LOCKED: the node runs. FB_ERR_UNREACHABLE: the server does not answer; again later.
 * FB_ERR_CONFLICT: other programs changed documents, and the node has not taken that up yet.
 * FB_ERR_STORE_DAMAGED: what was read back is not what was there. `why` gets a sentence. */
fb_status fb_store_migrate(const fb_migrate_options *options, fb_migrate_stats *stats, char *why,
                           size_t why_len);

#endif
