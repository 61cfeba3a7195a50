/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of one deployment: its clients and this process's number. */
#ifndef FB_MONGO_CLIENT_H
#define FB_MONGO_CLIENT_H

#include <mongoc/mongoc.h>
#include <stdatomic.h>

#include "io/documents/documents.h"

#define FB_MONGO_DUPLICATE_KEY 11000

#define FB_MONGO_CLIENTS_MAX 4u /* connections at once to each server */

struct fb_documents {
    mongoc_client_pool_t *pool;
    char *database;
    fb_id owner;
    int32_t timeout_ms;
    bson_oid_t process;  /* drawn for this one */
    atomic_llong start;  /* that raised the fence; 0: none did yet */
    atomic_uint drops;   /* of collections, as the watch has seen them */
    unsigned made_after; /* so many of them; the writer's, as what follows */
    char **made;         /* collections that are known to be there */
    size_t made_count;
};

/* A sentence from the driver's error. */
void fb_mongo_say(char *why, size_t why_len, const char *what, const bson_error_t *error);

/* Borrowed until fb_mongo_collection_done. */
mongoc_collection_t *fb_mongo_collection(fb_documents *documents, const char *name,
                                         mongoc_client_t **client);
void fb_mongo_collection_done(fb_documents *documents, mongoc_collection_t *collection,
                              mongoc_client_t *client);

/* Makes it if it is not there, so that its changes are told with what was before them. */
void fb_mongo_make(fb_documents *documents, mongoc_client_t *client, const char *name);

void fb_mongo_made_forget(fb_documents *documents);

/* What a server says of one document for good: it is too large, or a rule of its collection's owner
 * is against it. Everything else may pass. */
bool fb_mongo_is_for_good(int32_t code, fb_document_outcome *outcome);
/* A duplicate key is that of the _id; else of an index that the collection's owner made, which is a
 * rule of theirs. */
bool fb_mongo_is_of_id(const char *message);

/* put.c, find.c, fence.c, edits.c, watch.c: documents.h says what they do. */
fb_status fb_mongo_fence(fb_documents *documents, uint64_t *number, bool *older, char *why,
                         size_t why_len);
fb_status fb_mongo_confirm(fb_documents *documents, uint64_t *number, char *why, size_t why_len);
fb_status fb_mongo_put(fb_documents *documents, const fb_document_change *changes, size_t count,
                       fb_document_outcome *outcomes, bool *durable, char *why, size_t why_len);
fb_status fb_mongo_get(fb_documents *documents, const char *collection, const fb_id *ids,
                       size_t count, fb_documents_found found, void *user, char *why,
                       size_t why_len);
fb_status fb_mongo_range(fb_documents *documents, const char *collection, fb_id low, fb_id high,
                         bool descending, uint32_t limit, fb_documents_found found, void *user,
                         char *why, size_t why_len);
fb_status fb_mongo_watch(fb_documents *documents, fb_span token, fb_documents_event_told changed,
                         void *user, char *why, size_t why_len);
fb_status fb_mongo_scan(fb_documents *documents, fb_documents_event_told changed, void *user,
                        char *why, size_t why_len);
fb_status fb_mongo_edits(fb_span whole, const fb_document_field *fields, size_t count,
                         fb_documents_differs differs, void *user, char *why, size_t why_len);
fb_status fb_mongo_restore(fb_documents *documents, const char *name, fb_id id, fb_span whole,
                           char *why, size_t why_len);

#endif
