/* SPDX-License-Identifier: Apache-2.0 */
/* Finding: by ids or from one id to another. No filter is built from anything but ids. What another
 * program put beside our documents is passed over. */
#include <stdlib.h>

#include "io/mongo/client.h"
#include "io/mongo/document.h"

#define IDS_AT_ONCE 1000u

/* What a walk came across. */
typedef struct walked {
    uint32_t limit;    /* rows that were asked for; 0: all */
    uint32_t rows;     /* that the server gave */
    uint32_t told;     /* of those, documents that are ours */
    bool stopped;      /* who is told has enough */
    bson_value_t last; /* _id of the row that reached the limit; to be destroyed */
} walked;

static fb_status walk(fb_documents *documents, const char *name, const bson_t *filter,
                      bson_t *options, fb_documents_found found, void *user, walked *way, char *why,
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
    while (!way->stopped && mongoc_cursor_next(cursor, &one)) {
        bson_iter_t id;
        if (++way->rows == way->limit && bson_iter_init_find(&id, one, "_id")) {
            bson_value_copy(bson_iter_value(&id), &way->last);
        }
        fb_document document;
        fb_document_value *values;
        fb_status read = fb_mongo_document_read(one, &document, &values);
        if (read == FB_OK) {
            document.collection = name;
            way->told++;
            way->stopped = !found(user, &document);
        } else if (read == FB_ERR_NO_MEMORY) {
            snprintf(why, why_len, "no memory for a document of %s", name);
            status = FB_ERR_UNREACHABLE; /* it is there, and is asked for again */
            way->stopped = true;
        } else if (read != FB_ERR_NOT_FOUND && read != FB_ERR_BAD_UUID) {
            bool newer = read == FB_ERR_VERSION_NEWER;
            snprintf(why, why_len, "a document of %s %s", name,
                     newer ? "was written by a newer program" : "does not follow its format");
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
        walked way = {.limit = 0};
        fb_status status =
            walk(documents, collection, &filter, &options, found, user, &way, why, why_len);
        bson_destroy(&filter);
        bson_destroy(&options);
        if (status == FB_ERR_UNREACHABLE) return status;
        if (status != FB_OK) worst = status;
    }
    return worst;
}

/* One question: documents from low or, when there is one, behind the row that came last. */
static fb_status range_once(fb_documents *documents, const char *collection, fb_id low, fb_id high,
                            bool descending, const bson_value_t *behind, fb_documents_found found,
                            void *user, walked *way, char *why, size_t why_len)
{
    bson_t filter = BSON_INITIALIZER, options = BSON_INITIALIZER, within;
    bool up = behind != NULL && !descending, down = behind != NULL && descending;
    bson_append_document_begin(&filter, "_id", -1, &within);
    if (up) bson_append_value(&within, "$gt", -1, behind);
    if (!up) fb_mongo_append_id(&within, "$gte", low);
    if (down) bson_append_value(&within, "$lt", -1, behind);
    if (!down && !fb_id_is_zero(high)) fb_mongo_append_id(&within, "$lt", high);
    bson_append_document_end(&filter, &within);
    BCON_APPEND(&options, "sort", "{", "_id", BCON_INT32(descending ? -1 : 1), "}", "limit",
                BCON_INT64(way->limit));
    fb_status status =
        walk(documents, collection, &filter, &options, found, user, way, why, why_len);
    bson_destroy(&filter);
    bson_destroy(&options);
    return status;
}

/* Rows that are no documents of ours do not count: it goes on until so many were told, or none is
 * left, so that fewer mean the end. */
fb_status fb_mongo_range(fb_documents *documents, const char *collection, fb_id low, fb_id high,
                         bool descending, uint32_t limit, fb_documents_found found, void *user,
                         char *why, size_t why_len)
{
    bson_value_t behind = {.value_type = BSON_TYPE_EOD};
    uint32_t told = 0;
    for (;;) {
        walked way = {.limit = limit - told, .last = {.value_type = BSON_TYPE_EOD}};
        bool first = behind.value_type == BSON_TYPE_EOD;
        fb_status status = range_once(documents, collection, low, high, descending,
                                      first ? NULL : &behind, found, user, &way, why, why_len);
        if (!first) bson_value_destroy(&behind);
        behind = way.last;
        told += way.told;
        bool over = way.stopped || way.rows < way.limit || told == limit;
        if (status == FB_OK && !over && behind.value_type != BSON_TYPE_EOD) continue;
        if (behind.value_type != BSON_TYPE_EOD) bson_value_destroy(&behind);
        return status;
    }
}
