/* SPDX-License-Identifier: Apache-2.0 */
/* Loading what implements a document store: a shared object beside the program or in the directory
 * that it was installed for. A node that keeps everything in its local store loads nothing. */
#ifndef FB_IO_DOCUMENT_STORE_LOAD_H
#define FB_IO_DOCUMENT_STORE_LOAD_H

#include "io/documents/documents.h"

#define FB_DOCUMENTS_MONGO "faberio-mongo.so"

/* What the shared object gives under this name. */
__attribute__((visibility("default"))) const fb_documents_ops *fb_documents_module(void);
typedef const fb_documents_ops *(*fb_documents_module_of)(void);

/* It stays loaded. FB_ERR_UNSUPPORTED: this build has none, or one of another interface. */
fb_status fb_documents_load(const char *file, const fb_documents_ops **out, char *why,
                            size_t why_len);

#endif
