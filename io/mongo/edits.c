/* SPDX-License-Identifier: Apache-2.0 */
/* What another program did to a document: its fields against those that it should show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/documents/elements.h"
#include "io/mongo/client.h"
#include "io/mongo/document.h"
#include "io/mongo/json.h"
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

/* The same type and bytes. */
static bool is_same(const bson_iter_t *a, const bson_iter_t *b)
{
    size_t a_key = bson_iter_key_len(a) + 2u, b_key = bson_iter_key_len(b) + 2u;
    size_t a_len = a->next_off - a->off, b_len = b->next_off - b->off;
    return bson_iter_type(a) == bson_iter_type(b) && a_len - a_key == b_len - b_key &&
           memcmp(a->raw + a->off + a_key, b->raw + b->off + b_key, a_len - a_key) == 0;
}

/* An element that the field has already keeps the spelling that it has there: a set knows its
 * elements by their texts. False: no memory. */
static bool write_element(FILE *to, const json_t *element, const json_t *should, fb_span spelt)
{
    fb_span text;
    for (size_t i = 0; fb_element_next(&spelt, &text); i++) {
        if (!fb_mongo_json_same(element, json_array_get(should, i))) continue;
        return fwrite(text.p, 1, text.len, to) == text.len;
    }
    char *own = fb_mongo_json_text(element);
    bool written = own != NULL && fputs(own, to) >= 0;
    free(own);
    return written;
}

/* The text of a value where `should`, with the text `spelt`, was: NULL without memory. */
static char *text_of(const json_t *is, const json_t *should, fb_span spelt)
{
    if (!json_is_array(is) || !json_is_array(should)) return fb_mongo_json_text(is);
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL) return NULL;
    bool written = fputc('[', to) != EOF;
    for (size_t i = 0; written && i < json_array_size(is); i++) {
        if (i > 0) written = fputc(',', to) != EOF;
        written = written && write_element(to, json_array_get(is, i), should, spelt);
    }
    written = written && fputc(']', to) != EOF;
    if (fclose(to) == 0 && written) return text;
    free(text);
    return NULL;
}

static size_t place_of(const comparing *c, fb_span name)
{
    size_t at = 0;
    while (at < c->count && !fb_span_equal(c->fields[at].name, name)) at++;
    return at;
}

/* Of a field that is there and should be: tells of it unless both are equal. */
static bool compare_with(comparing *c, const bson_iter_t *is, const json_t *value, fb_span name,
                         fb_span spelt, fb_status *status)
{
    bson_t document = BSON_INITIALIZER;
    bson_iter_t at;
    bool made = fb_mongo_append(&document, name, true, spelt) && bson_iter_init(&at, &document) &&
                bson_iter_next(&at);
    bool go_on = true;
    if (!made || !is_same(is, &at)) {
        json_t *should = made ? fb_mongo_json(&at) : NULL;
        if (should == NULL || !fb_mongo_json_same(value, should)) {
            char *text = text_of(value, should, spelt);
            if (text == NULL) *status = FB_ERR_NO_MEMORY;
            go_on = text != NULL && c->differs(c->user, name, fb_span_text(text));
            free(text);
        }
        json_decref(should);
    }
    bson_destroy(&document);
    return go_on;
}

/* One field that the document has. False: it cannot be a record's, or enough was told. */
static bool compare(comparing *c, const bson_iter_t *is, fb_span name, fb_status *status)
{
    size_t place = place_of(c, name);
    fb_span spelt = {NULL, 0};
    if (place < c->count) {
        c->met[place] = true;
        spelt = c->fields[place].json;
    }
    json_t *value = fb_mongo_json(is);
    if (value == NULL) {
        /* Ours is such a one as well when it is shown as its own text. */
        snprintf(c->why, c->why_len, "field %.60s has a value that no JSON text says",
                 bson_iter_key(is));
        *status = FB_ERR_VALUE_MALFORMED;
        return false;
    }
    bool go_on;
    if (place < c->count) {
        go_on = compare_with(c, is, value, name, spelt, status);
    } else {
        char *text = fb_mongo_json_text(value);
        if (text == NULL) *status = FB_ERR_NO_MEMORY;
        go_on = text != NULL && c->differs(c->user, name, fb_span_text(text));
        free(text);
    }
    json_decref(value);
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
