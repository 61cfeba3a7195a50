/* SPDX-License-Identifier: Apache-2.0 */
/* Finding: by ids or from one id to another. No filter is built from anything but ids. What another
 * program put beside our documents is passed over. */
#include <stdlib.h>

#include "io/mongo/client.h"
#include "io/mongo/document.h"

#define IDS_AT_ONCE 1000u

static fb_status walk(fb_documents *documents, const char *name, const bson_t *filter,
                      bson_t *options, fb_documents_found found, void *user, char *why,
                      size_t why_len)
{
    mongoc_client_t *client;
    mongoc_collection_t *collection = fb_mongo_collection(documents, name, &client);
    BCON_APPEND(options, "readConcern", "{", "level", BCON_UTF8("majority"), "}", "maxTimeMS",
                BCON_INT64(documents->timeout_ms));
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, filter, options, NULL);
    const bson_t *one;
    bson_error_t error;
    fb_status status = FB_OK;
    bool go_on = true;
    while (go_on && mongoc_cursor_next(cursor, &one)) {
        fb_document document;
        fb_document_value *values;
        fb_status read = fb_mongo_document_read(one, &document, &values);
        if (read == FB_OK) {
            document.collection = name;
            go_on = found(user, &document);
        } else if (read != FB_ERR_NOT_FOUND && read != FB_ERR_BAD_UUID) {
            snprintf(why, why_len, "a document of %s does not follow its format", name);
            status = FB_ERR_STORE_DAMAGED;
        }
        free(values);
    }
    if (mongoc_cursor_error(cursor, &error)) {
        fb_mongo_say(why, why_len, "MongoDB does not answer", &error);
        status = FB_ERR_UNREACHABLE;
    }
    mongoc_cursor_destroy(cursor);
    fb_mongo_collection_done(documents, collection, client);
    return status;
}

fb_status fb_mongo_get(fb_documents *documents, const char *collection, const fb_id *ids,
                       size_t count, fb_documents_found found, void *user, char *why,
                       size_t why_len)
{
    fb_status worst = FB_OK;
    for (size_t at = 0; at < count; at += IDS_AT_ONCE) {
        bson_t filter = BSON_INITIALIZER, options = BSON_INITIALIZER, within, array;
        bson_append_document_begin(&filter, "_id", -1, &within);
        bson_append_array_begin(&within, "$in", -1, &array);
        for (size_t i = at; i < count && i < at + IDS_AT_ONCE; i++) {
            char buffer[16];
            const char *index;
            bson_uint32_to_string((uint32_t)(i - at), &index, buffer, sizeof buffer);
            fb_mongo_append_id(&array, index, ids[i]);
        }
        bson_append_array_end(&within, &array);
        bson_append_document_end(&filter, &within);
        fb_status status =
            walk(documents, collection, &filter, &options, found, user, why, why_len);
        bson_destroy(&filter);
        bson_destroy(&options);
        if (status == FB_ERR_UNREACHABLE) return status;
        if (status != FB_OK) worst = status;
    }
    return worst;
}

fb_status fb_mongo_range(fb_documents *documents, const char *collection, fb_id low, fb_id high,
                         bool descending, uint32_t limit, fb_documents_found found, void *user,
                         char *why, size_t why_len)
{
    bson_t filter = BSON_INITIALIZER, options = BSON_INITIALIZER, within;
    bson_append_document_begin(&filter, "_id", -1, &within);
    fb_mongo_append_id(&within, "$gte", low);
    if (!fb_id_is_zero(high)) fb_mongo_append_id(&within, "$lt", high);
    bson_append_document_end(&filter, &within);
    BCON_APPEND(&options, "sort", "{", "_id", BCON_INT32(descending ? -1 : 1), "}", "limit",
                BCON_INT64(limit));
    fb_status status = walk(documents, collection, &filter, &options, found, user, why, why_len);
    bson_destroy(&filter);
    bson_destroy(&options);
    return status;
}
