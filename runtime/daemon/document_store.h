/* SPDX-License-Identifier: Apache-2.0 */
/* The setting `store`: local, or the address of a MongoDB that keeps the records of collections. */
#ifndef FB_RUNTIME_DAEMON_DOCUMENT_STORE_H
#define FB_RUNTIME_DAEMON_DOCUMENT_STORE_H

#include "io/documents/documents.h"

/* Of each call to the server, unless the address says otherwise. */
#define FB_DOCUMENT_STORE_TIMEOUT_MS 5000u

typedef struct fb_document_store {
    const fb_documents_ops *ops; /* NULL: everything is in the local store */
    fb_documents *documents;
} fb_document_store;

/* The setting asks for MongoDB; and names a database there. */
bool fb_document_store_is_mongodb(const char *setting);
bool fb_document_store_names_database(const char *setting);

/* The same address without what may be secret in it: the part between "//" and "@", and the values
 * of options that are not known to be harmless. */
void fb_document_store_hide(const char *setting, char *out, size_t len);

/* Loads what is needed and looks at the address; no server is asked. False with a sentence. */
bool fb_document_store_open(const char *setting, fb_id owner, fb_document_store *out, char *why,
                            size_t why_len);
void fb_document_store_close(fb_document_store *store);

#endif
