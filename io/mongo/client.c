/* SPDX-License-Identifier: Apache-2.0 */
#include "io/mongo/client.h"

#include <stdio.h>

void fb_mongo_say(char *why, size_t why_len, const char *what, const bson_error_t *error)
{
    snprintf(why, why_len, "%s: %s", what, error->message);
    /* What a server says goes into one line of a log. */
    for (char *p = why; *p != 0; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f) *p = ' ';
    }
}

mongoc_collection_t *fb_mongo_collection(fb_documents *documents, const char *name,
                                         mongoc_client_t **client)
{
    *client = mongoc_client_pool_pop(documents->pool);
    return mongoc_client_get_collection(*client, documents->database, name);
}

void fb_mongo_collection_done(fb_documents *documents, mongoc_collection_t *collection,
                              mongoc_client_t *client)
{
    mongoc_collection_destroy(collection);
    mongoc_client_pool_push(documents->pool, client);
}
