/* SPDX-License-Identifier: Apache-2.0 */
/* Putting: for each collection one bulk of guarded replacements of whole documents. The guard lets
 * only an older document be replaced; where it does not, the upsert behind it meets the key that is
 * there, and that answer says that this document or a newer one is present. */
#include <stdlib.h>
#include <string.h>

#include "io/mongo/client.h"
#include "io/mongo/document.h"

#define DUPLICATE_KEY 11000

typedef struct putting {
    fb_documents *documents;
    const fb_document *to_put;
    fb_document_verdict *verdicts;
    char *why;
    size_t why_len;
    size_t *places; /* of the operations of the bulk: which document */
    size_t operations;
    bool *present; /* this document or a newer one was there */
} putting;

/* {_id, and a number older than this one}; a document without a number is nobody's newer one. */
static void guard(bson_t *selector, fb_id id, int64_t start, int64_t number, bool foreign)
{
    fb_mongo_append_id(selector, "_id", id);
    BCON_APPEND(selector, "$or", "[", "{", FB_MONGO_META ".s", "{", "$lt", BCON_INT64(start), "}",
                "}", "{", FB_MONGO_META ".s", BCON_INT64(start), FB_MONGO_META ".n", "{", "$lt",
                BCON_INT64(number), "}", "}", "{", FB_MONGO_META ".s", "{", "$exists",
                BCON_BOOL(false), "}", "_id", "{", "$exists", BCON_BOOL(foreign), "}", "}", "]");
}

static bool add(putting *p, mongoc_bulk_operation_t *bulk, size_t place)
{
    const fb_document *document = &p->to_put[place];
    int64_t number = atomic_fetch_add(&p->documents->numbers, 1) + 1;
    bson_t selector = BSON_INITIALIZER, whole, upsert = BSON_INITIALIZER;
    bson_error_t error;
    bool added;
    if (document->record.len == 0) {
        guard(&selector, document->id, p->documents->start, number, false);
        added = mongoc_bulk_operation_remove_one_with_opts(bulk, &selector, NULL, &error);
    } else if (!fb_mongo_document_make(document, p->documents->start, number, &whole)) {
        p->verdicts[place] = FB_DOCUMENT_TOO_LARGE;
        bson_destroy(&whole);
        bson_destroy(&selector);
        bson_destroy(&upsert);
        return true;
    } else {
        guard(&selector, document->id, p->documents->start, number, true);
        bson_append_bool(&upsert, "upsert", -1, true);
        added =
            mongoc_bulk_operation_replace_one_with_opts(bulk, &selector, &whole, &upsert, &error);
        bson_destroy(&whole);
    }
    bson_destroy(&selector);
    bson_destroy(&upsert);
    if (!added) {
        fb_mongo_say(p->why, p->why_len, "a document cannot be sent", &error);
        p->verdicts[place] = FB_DOCUMENT_REFUSED;
        return true;
    }
    p->verdicts[place] = FB_DOCUMENT_KEPT;
    p->places[p->operations++] = place;
    return true;
}

/* What a server says about one document for good: it is too large, or a rule of its collection's
 * owner is against it. Everything else may pass. */
static bool is_for_good(int32_t code, fb_document_verdict *verdict)
{
    switch (code) {
    case 10334: /* BSONObjectTooLarge */
    case 17419: /* too large after the update */
    case 17420:
        *verdict = FB_DOCUMENT_TOO_LARGE;
        return true;
    case 121: /* DocumentValidationFailure */
    case 2:   /* BadValue */
    case 66:  /* ImmutableField: of a sharded collection */
        *verdict = FB_DOCUMENT_REFUSED;
        return true;
    default:
        return false;
    }
}

/* Every operation that failed. False: some failed in a way that may pass. */
static bool judge(putting *p, const bson_t *reply)
{
    bson_iter_t at, errors, one;
    if (!bson_iter_init_find(&at, reply, "writeErrors") || !BSON_ITER_HOLDS_ARRAY(&at)) {
        return false;
    }
    bool all = true, any = false;
    bson_iter_recurse(&at, &errors);
    while (bson_iter_next(&errors)) {
        int32_t code = 0;
        int64_t index = -1;
        if (!bson_iter_recurse(&errors, &one)) continue;
        while (bson_iter_next(&one)) {
            if (strcmp(bson_iter_key(&one), "code") == 0) code = (int32_t)bson_iter_as_int64(&one);
            if (strcmp(bson_iter_key(&one), "index") == 0) index = bson_iter_as_int64(&one);
        }
        if (index < 0 || (size_t)index >= p->operations) return false;
        any = true;
        size_t place = p->places[index];
        if (code == DUPLICATE_KEY) {
            p->present[place] = true;
        } else if (!is_for_good(code, &p->verdicts[place])) {
            all = false;
        }
    }
    /* A write concern that was not satisfied leaves open whether the rest is durable. */
    bool concern = bson_iter_init_find(&at, reply, "writeConcernErrors") &&
                   BSON_ITER_HOLDS_ARRAY(&at) && bson_iter_recurse(&at, &errors) &&
                   bson_iter_next(&errors);
    return any && all && !concern;
}

static fb_status put_collection(putting *p, size_t first, size_t last)
{
    mongoc_client_t *client;
    mongoc_collection_t *collection =
        fb_mongo_collection(p->documents, p->to_put[first].collection, &client);
    mongoc_write_concern_t *concern = mongoc_write_concern_new();
    mongoc_write_concern_set_wmajority(concern, p->documents->timeout_ms);
    mongoc_write_concern_set_journal(concern, true);
    bson_t options = BSON_INITIALIZER, reply = BSON_INITIALIZER;
    /* No document is named twice, so one that fails holds up no other. */
    bson_append_bool(&options, "ordered", -1, false);
    mongoc_write_concern_append(concern, &options);
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(collection, &options);
    p->operations = 0;
    for (size_t i = first; i < last; i++) add(p, bulk, i);
    bson_error_t error;
    fb_status status = FB_OK;
    if (p->operations != 0) {
        bson_destroy(&reply);
        if (mongoc_bulk_operation_execute(bulk, &reply, &error) == 0 && !judge(p, &reply)) {
            fb_mongo_say(p->why, p->why_len, "MongoDB did not take documents", &error);
            status = FB_ERR_UNREACHABLE;
        }
    }
    bson_destroy(&reply);
    bson_destroy(&options);
    mongoc_bulk_operation_destroy(bulk);
    mongoc_write_concern_destroy(concern);
    fb_mongo_collection_done(p->documents, collection, client);
    return status;
}

/* Some document was not older than ours. Ours, as an earlier try left it; or of a later start,
 * whose process has taken this one's place. */
static fb_status look_at_present(putting *p, size_t first, size_t last)
{
    mongoc_client_t *client;
    mongoc_collection_t *collection = NULL;
    bson_t filter = BSON_INITIALIZER, ids, within;
    char buffer[16];
    uint32_t count = 0;
    bson_append_document_begin(&filter, "_id", -1, &within);
    bson_append_array_begin(&within, "$in", -1, &ids);
    for (size_t i = first; i < last; i++) {
        if (!p->present[i]) continue;
        const char *index;
        bson_uint32_to_string(count++, &index, buffer, sizeof buffer);
        fb_mongo_append_id(&ids, index, p->to_put[i].id);
    }
    bson_append_array_end(&within, &ids);
    bson_append_document_end(&filter, &within);
    BCON_APPEND(&filter, FB_MONGO_META ".s", "{", "$gt", BCON_INT64(p->documents->start), "}");
    fb_status status = FB_OK;
    if (count != 0) {
        bson_error_t error;
        bson_t options = BSON_INITIALIZER;
        bson_append_int64(&options, "limit", -1, 1);
        collection = fb_mongo_collection(p->documents, p->to_put[first].collection, &client);
        int64_t newer =
            mongoc_collection_count_documents(collection, &filter, &options, NULL, NULL, &error);
        bson_destroy(&options);
        if (newer < 0) {
            fb_mongo_say(p->why, p->why_len, "MongoDB does not say what is there", &error);
            status = FB_ERR_UNREACHABLE;
        } else if (newer > 0) {
            snprintf(p->why, p->why_len,
                     "documents of a later start are there: another process of this node writes to "
                     "this database");
            status = FB_ERR_STORE_LOCKED;
        }
        fb_mongo_collection_done(p->documents, collection, client);
    }
    bson_destroy(&filter);
    return status;
}

fb_status fb_mongo_put(fb_documents *documents, const fb_document *to_put, size_t count,
                       fb_document_verdict *verdicts, char *why, size_t why_len)
{
    putting p = {.documents = documents,
                 .to_put = to_put,
                 .verdicts = verdicts,
                 .why = why,
                 .why_len = why_len,
                 .places = calloc(count + 1, sizeof *p.places),
                 .present = calloc(count + 1, sizeof *p.present)};
    fb_status status = p.places == NULL || p.present == NULL ? FB_ERR_NO_MEMORY : FB_OK;
    for (size_t first = 0; status == FB_OK && first < count;) {
        size_t last = first + 1;
        while (last < count && strcmp(to_put[last].collection, to_put[first].collection) == 0) {
            last++;
        }
        status = put_collection(&p, first, last);
        if (status == FB_OK) status = look_at_present(&p, first, last);
        first = last;
    }
    free(p.places);
    free(p.present);
    return status;
}
