/* SPDX-License-Identifier: Apache-2.0 */
/* What another program did to a document: its fields against those that it should show. */
#include <stdlib.h>
#include <string.h>

#include "io/mongo/client.h"
#include "io/mongo/document.h"
#include "io/mongo/value.h"

typedef struct comparing {
    const bson_t *whole;
    const fb_document_field *fields;
    bool *met; /* of the fields: the document has it */
    size_t count;
    fb_documents_differs differs;
    void *user;
    char *why;
    size_t why_len;
} comparing;

/* The same type and bytes; or what is another type and the same text, as a program leaves a number
 * that it read and wrote again. */
static bool is_same(const bson_iter_t *a, const bson_iter_t *b, const char *text)
{
    size_t a_key = bson_iter_key_len(a) + 2u, b_key = bson_iter_key_len(b) + 2u;
    size_t a_len = a->next_off - a->off, b_len = b->next_off - b->off;
    if (bson_iter_type(a) == bson_iter_type(b) && a_len - a_key == b_len - b_key &&
        memcmp(a->raw + a->off + a_key, b->raw + b->off + b_key, a_len - a_key) == 0) {
        return true;
    }
    char *other = fb_mongo_text(b);
    bool same = other != NULL && strcmp(text, other) == 0;
    free(other);
    return same;
}

static size_t place_of(const comparing *c, fb_span name)
{
    size_t at = 0;
    while (at < c->count && !fb_span_equal(c->fields[at].name, name)) at++;
    return at;
}

/* One field that the document has. False: it cannot be a record's, or enough was told. */
static bool compare(comparing *c, const bson_iter_t *is, fb_span name, fb_status *status)
{
    size_t place = place_of(c, name);
    if (place < c->count) c->met[place] = true;
    char *text = fb_mongo_text(is);
    if (text == NULL) {
        /* Ours is such a one as well when it is shown as its own text. */
        snprintf(c->why, c->why_len, "field %.60s has a value that no JSON text says",
                 bson_iter_key(is));
        *status = FB_ERR_VALUE_MALFORMED;
        return false;
    }
    bool same = false;
    if (place < c->count) {
        bson_t should = BSON_INITIALIZER;
        bson_iter_t at;
        same = fb_mongo_append(&should, name, true, c->fields[place].json) &&
               bson_iter_init(&at, &should) && bson_iter_next(&at) && is_same(is, &at, text);
        bson_destroy(&should);
    }
    bool go_on = same || c->differs(c->user, name, fb_span_of(text, strlen(text)));
    free(text);
    return go_on;
}

fb_status fb_mongo_edits(fb_span whole, const fb_document_field *fields, size_t count,
                         fb_documents_differs differs, void *user, char *why, size_t why_len)
{
    bson_t document;
    bson_iter_t at;
    comparing c = {.fields = fields,
                   .count = count,
                   .differs = differs,
                   .user = user,
                   .why = why,
                   .why_len = why_len,
                   .met = calloc(count + 1, sizeof *c.met)};
    fb_status status = c.met == NULL ? FB_ERR_NO_MEMORY : FB_OK;
    bool go_on = status == FB_OK && bson_init_static(&document, whole.p, whole.len) &&
                 bson_iter_init(&at, &document);
    while (go_on && bson_iter_next(&at)) {
        const char *key = bson_iter_key(&at);
        if (strcmp(key, "_id") == 0 || strcmp(key, FB_MONGO_META) == 0) continue;
        char *name = malloc(bson_iter_key_len(&at) + 1u);
        if (name == NULL) {
            status = FB_ERR_NO_MEMORY;
            break;
        }
        go_on = compare(&c, &at, fb_span_of(name, fb_mongo_name(key, name)), &status);
        free(name);
    }
    for (size_t i = 0; go_on && status == FB_OK && i < count; i++) {
        if (!c.met[i]) go_on = differs(user, fields[i].name, (fb_span){NULL, 0});
    }
    free(c.met);
    return status;
}

/* Inserts it; where one is that has nothing of ours, takes its place. */
fb_status fb_mongo_restore(fb_documents *documents, const char *name, fb_id id, fb_span whole,
                           char *why, size_t why_len)
{
    mongoc_client_t *client;
    mongoc_collection_t *collection = fb_mongo_collection(documents, name, &client);
    bson_t document, filter = BSON_INITIALIZER, options = BSON_INITIALIZER, concern;
    bson_error_t error = {.message = "it cannot be read"};
    fb_mongo_append_id(&filter, "_id", id);
    BCON_APPEND(&filter, FB_MONGO_META, "{", "$exists", BCON_BOOL(false), "}");
    bson_append_bool(&options, "upsert", -1, true);
    bson_append_document_begin(&options, "writeConcern", -1, &concern);
    bson_append_utf8(&concern, "w", -1, "majority", -1);
    bson_append_bool(&concern, "j", -1, true);
    bson_append_int32(&concern, "wtimeout", -1, documents->timeout_ms);
    bson_append_document_end(&options, &concern);
    bool readable = bson_init_static(&document, whole.p, whole.len);
    bool done = readable && mongoc_collection_replace_one(collection, &filter, &document, &options,
                                                          NULL, &error);
    bson_destroy(&options);
    bson_destroy(&filter);
    fb_mongo_collection_done(documents, collection, client);
    bool doubled = error.code == FB_MONGO_DUPLICATE_KEY;
    if (done || (doubled && fb_mongo_is_of_id(error.message))) return FB_OK;
    fb_mongo_say(why, why_len, "MongoDB does not take a document back", &error);
    fb_document_outcome outcome;
    bool never =
        error.domain == MONGOC_ERROR_SERVER && fb_mongo_is_for_good((int32_t)error.code, &outcome);
    return never || doubled || !readable ? FB_ERR_VALUE_MALFORMED : FB_ERR_UNREACHABLE;
}
