/* SPDX-License-Identifier: Apache-2.0 */
/* Changes by other programs: the change stream of the database, and a walk through all documents
 * where there is none or its place in it was lost.
 *
 * The stream asks for as much as the server can give, and for less where that is refused: documents
 * as they were before and after (6.0, for collections that were made for it); the document as it
 * is now; keys alone, for an event that is larger than a message may be. */
#include <stdlib.h>
#include <string.h>

#include "io/mongo/client.h"
#include "io/mongo/document.h"

#define AWAIT_MS     500
#define SCAN_AT_ONCE 200
#define SILENCE_US   1000000 /* at most, while there is nothing but events that are not told */

typedef enum watch_mode { WATCH_IMAGES, WATCH_LOOKUP, WATCH_KEYS } watch_mode;

typedef struct watching {
    fb_documents *documents;
    mongoc_client_t *client;
    fb_documents_event_told changed;
    void *user;
    char *why;
    size_t why_len;
    watch_mode mode;
    bson_t *token; /* the last one; NULL: none yet */
    bool over;     /* enough was told */
    int64_t told_us;
} watching;

static void keep_token(watching *w, const bson_t *token)
{
    if (token == NULL) return;
    bson_destroy(w->token);
    w->token = bson_copy(token);
}

static fb_span token_of(const watching *w)
{
    if (w->token == NULL) return (fb_span){NULL, 0};
    return fb_span_of(bson_get_data(w->token), w->token->len);
}

static void tell(watching *w, fb_document_event change)
{
    change.token = token_of(w);
    w->told_us = bson_get_monotonic_time();
    if (!w->changed(w->user, &change)) w->over = true;
}

static void tell_nothing(watching *w)
{
    tell(w, (fb_document_event){FB_DOCUMENT_NOTHING, "", {{0}}, NULL, NULL, {NULL, 0}});
}

/* Ours begin with a UUID and a dot. */
static bool is_ours(const char *collection)
{
    return strlen(collection) > 37 && collection[36] == '.';
}

static const char *text_at(const bson_t *event, const char *path)
{
    bson_iter_t at, found;
    uint32_t len;
    if (!bson_iter_init(&at, event) || !bson_iter_find_descendant(&at, path, &found) ||
        !BSON_ITER_HOLDS_UTF8(&found)) {
        return "";
    }
    return bson_iter_utf8(&found, &len);
}

static bool document_at(const bson_t *event, const char *key, bson_t *out)
{
    bson_iter_t at;
    const uint8_t *bytes;
    uint32_t len;
    if (!bson_iter_init_find(&at, event, key) || !BSON_ITER_HOLDS_DOCUMENT(&at)) return false;
    bson_iter_document(&at, &len, &bytes);
    return bson_init_static(out, bytes, len);
}

/* The document of an event as it is now; false: it is not there. */
static bool look_up(watching *w, const char *name, const bson_t *key, bson_t *out, bool *failed)
{
    mongoc_collection_t *collection =
        mongoc_client_get_collection(w->client, w->documents->database, name);
    bson_t options = BSON_INITIALIZER;
    BCON_APPEND(&options, "readConcern", "{", "level", BCON_UTF8("majority"), "}", "limit",
                BCON_INT64(1));
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, key, &options, NULL);
    const bson_t *one;
    bson_error_t error;
    bool found = mongoc_cursor_next(cursor, &one);
    if (found) bson_copy_to(one, out);
    *failed = mongoc_cursor_error(cursor, &error);
    if (*failed) fb_mongo_say(w->why, w->why_len, "MongoDB does not answer", &error);
    mongoc_cursor_destroy(cursor);
    bson_destroy(&options);
    mongoc_collection_destroy(collection);
    return found;
}

/* A document that stands there; nothing is told of what this process put. */
static void tell_seen(watching *w, const char *name, const bson_t *now, const fb_document *before,
                      bool inserted)
{
    fb_document document;
    fb_document_value *values;
    fb_status status = fb_mongo_document_read(now, &document, &values);
    fb_document_event change = {FB_DOCUMENT_SEEN, name, {{0}}, &document, before, {NULL, 0}};
    change.id = document.id;
    document.collection = name;
    if (status == FB_ERR_NOT_FOUND) { /* a mark */
        free(values);
        return;
    }
    if (status != FB_OK) change.kind = FB_DOCUMENT_ALIEN;
    bool stale = inserted && document.start != (uint64_t)w->documents->start;
    if (status != FB_OK || document.edited || stale) tell(w, change);
    free(values);
}

/* False: a look failed, and the event comes again. */
static bool tell_event(watching *w, const bson_t *event)
{
    const char *what = text_at(event, "operationType"), *name = text_at(event, "ns.coll");
    bson_t key, now, before, looked = BSON_INITIALIZER;
    if (strcmp(what, "drop") == 0 || strcmp(what, "rename") == 0 ||
        strcmp(what, "dropDatabase") == 0) {
        atomic_fetch_add(&w->documents->drops, 1);
        tell(w, (fb_document_event){FB_DOCUMENT_DROPPED, name, {{0}}, NULL, NULL, {NULL, 0}});
        return true;
    }
    bool removed = strcmp(what, "delete") == 0, failed = false;
    if (!is_ours(name) || !document_at(event, "documentKey", &key)) return true;
    fb_document as_it_was;
    fb_document_value *values = NULL;
    bool known = document_at(event, "fullDocumentBeforeChange", &before) &&
                 fb_mongo_document_read(&before, &as_it_was, &values) == FB_OK &&
                 as_it_was.record.len != 0;
    const fb_document *was = known ? &as_it_was : NULL;
    if (removed) {
        fb_document_event change = {FB_DOCUMENT_GONE, name, {{0}}, NULL, was, {NULL, 0}};
        if (fb_mongo_id_read(&key, &change.id)) tell(w, change);
    } else if (document_at(event, "fullDocument", &now)) {
        tell_seen(w, name, &now, was, strcmp(what, "insert") == 0);
    } else if (look_up(w, name, &key, &looked, &failed)) {
        tell_seen(w, name, &looked, was, true);
    }
    bson_destroy(&looked);
    free(values);
    return !failed;
}

static mongoc_change_stream_t *open_stream(const watching *w)
{
    bson_t options = BSON_INITIALIZER, *pipeline = bson_new();
    bson_append_int64(&options, "maxAwaitTimeMS", -1, AWAIT_MS);
    if (w->token != NULL) bson_append_document(&options, "resumeAfter", -1, w->token);
    if (w->mode == WATCH_KEYS) {
        bson_destroy(pipeline);
        pipeline = BCON_NEW("pipeline", "[", "{", "$project", "{", "operationType", BCON_INT32(1),
                            "ns", BCON_INT32(1), "documentKey", BCON_INT32(1), "}", "}", "]");
    } else if (w->mode == WATCH_IMAGES) {
        bson_append_utf8(&options, "fullDocument", -1, "whenAvailable", -1);
        bson_append_utf8(&options, "fullDocumentBeforeChange", -1, "whenAvailable", -1);
    } else {
        bson_append_utf8(&options, "fullDocument", -1, "updateLookup", -1);
    }
    mongoc_database_t *database = mongoc_client_get_database(w->client, w->documents->database);
    mongoc_read_concern_t *majority = mongoc_read_concern_new();
    mongoc_read_concern_set_level(majority, MONGOC_READ_CONCERN_LEVEL_MAJORITY);
    mongoc_database_set_read_concern(database, majority);
    mongoc_change_stream_t *stream = mongoc_database_watch(database, pipeline, &options);
    mongoc_read_concern_destroy(majority);
    mongoc_database_destroy(database);
    bson_destroy(pipeline);
    bson_destroy(&options);
    return stream;
}

/* What an error of the stream means. FB_OK: open it anew, as w->mode says now. */
static fb_status judge(watching *w, const bson_error_t *error)
{
    fb_mongo_say(w->why, w->why_len, "MongoDB tells no changes", error);
    if (error->domain != MONGOC_ERROR_SERVER) return FB_ERR_UNREACHABLE;
    switch (error->code) {
    case 40573: /* only on replica sets */
    case 40324: /* an unknown stage */
        return FB_ERR_UNSUPPORTED;
    case 2: /* BadValue */
    case 9: /* FailedToParse: it does not know images */
    case 40415:
        if (w->mode != WATCH_IMAGES) return FB_ERR_UNREACHABLE;
        w->mode = WATCH_LOOKUP;
        return FB_OK;
    case 10334: /* BSONObjectTooLarge */
    case 280:   /* ChangeStreamFatalError */
        if (w->mode == WATCH_KEYS || w->token == NULL) return FB_ERR_CURSOR_OLD;
        w->mode = WATCH_KEYS;
        return FB_OK;
    case 260: /* InvalidResumeToken */
    case 286: /* ChangeStreamHistoryLost */
    case 50811:
        return FB_ERR_CURSOR_OLD;
    default:
        return FB_ERR_UNREACHABLE;
    }
}

/* Until enough is told, the mode changes (FB_OK), or it fails. */
static fb_status follow(watching *w)
{
    mongoc_change_stream_t *stream = open_stream(w);
    const bson_t *event, *reply;
    bson_error_t error;
    fb_status status = FB_OK;
    bool again = false;
    while (!w->over && !again && status == FB_OK) {
        bool came = mongoc_change_stream_next(stream, &event);
        if (!came && mongoc_change_stream_error_document(stream, &error, &reply)) {
            status = judge(w, &error);
            break;
        }
        bool last = came && strcmp(text_at(event, "operationType"), "invalidate") == 0;
        if (came && !last) {
            /* Behind the event: what is told of it is told again unless this token is kept. */
            keep_token(w, mongoc_change_stream_get_resume_token(stream));
            if (!tell_event(w, event)) status = FB_ERR_UNREACHABLE;
            /* What this node writes itself, and what is none of its business, may come without end:
             * the place moves on with that as well, and whoever watches may want to end. */
            bool silent = bson_get_monotonic_time() - w->told_us > SILENCE_US;
            if (status == FB_OK && !w->over && silent) tell_nothing(w);
            /* The large one is over. */
            again = w->mode == WATCH_KEYS;
            if (again) w->mode = WATCH_IMAGES;
        } else if (last) {
            atomic_fetch_add(&w->documents->drops, 1);
            tell(w, (fb_document_event){FB_DOCUMENT_DROPPED, "", {{0}}, NULL, NULL, {NULL, 0}});
            status = FB_ERR_CURSOR_OLD;
        } else {
            keep_token(w, mongoc_change_stream_get_resume_token(stream));
            tell_nothing(w);
        }
    }
    mongoc_change_stream_destroy(stream);
    return status;
}

fb_status fb_mongo_watch(fb_documents *documents, fb_span token, fb_documents_event_told changed,
                         void *user, char *why, size_t why_len)
{
    watching w = {.documents = documents,
                  .changed = changed,
                  .user = user,
                  .why = why,
                  .why_len = why_len,
                  .mode = WATCH_IMAGES,
                  .told_us = bson_get_monotonic_time()};
    bson_t given;
    if (token.len != 0) {
        if (!bson_init_static(&given, token.p, token.len)) return FB_ERR_CURSOR_OLD;
        w.token = bson_copy(&given);
    }
    w.client = mongoc_client_pool_pop(documents->pool);
    fb_status status = FB_OK;
    while (status == FB_OK && !w.over) status = follow(&w);
    mongoc_client_pool_push(documents->pool, w.client);
    bson_destroy(w.token);
    return status;
}

/* Every document */

static fb_status scan_collection(watching *w, const char *name)
{
    mongoc_collection_t *collection =
        mongoc_client_get_collection(w->client, w->documents->database, name);
    bson_t filter = BSON_INITIALIZER, options = BSON_INITIALIZER;
    BCON_APPEND(&options, "batchSize", BCON_INT64(SCAN_AT_ONCE), "readConcern", "{", "level",
                BCON_UTF8("majority"), "}");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, &filter, &options, NULL);
    const bson_t *one;
    bson_error_t error;
    fb_status status = FB_OK;
    for (uint32_t count = 1; !w->over && mongoc_cursor_next(cursor, &one); count++) {
        tell_seen(w, name, one, NULL, true);
        if (count % SCAN_AT_ONCE == 0) {
            tell_nothing(w);
        }
    }
    if (mongoc_cursor_error(cursor, &error)) {
        fb_mongo_say(w->why, w->why_len, "MongoDB does not answer", &error);
        status = FB_ERR_UNREACHABLE;
    }
    mongoc_cursor_destroy(cursor);
    bson_destroy(&options);
    bson_destroy(&filter);
    mongoc_collection_destroy(collection);
    return status;
}

fb_status fb_mongo_scan(fb_documents *documents, fb_documents_event_told changed, void *user,
                        char *why, size_t why_len)
{
    watching w = {
        .documents = documents, .changed = changed, .user = user, .why = why, .why_len = why_len};
    w.client = mongoc_client_pool_pop(documents->pool);
    bson_error_t error;
    mongoc_database_t *database = mongoc_client_get_database(w.client, documents->database);
    char **names = mongoc_database_get_collection_names_with_opts(database, NULL, &error);
    fb_status status = names == NULL ? FB_ERR_UNREACHABLE : FB_OK;
    if (names == NULL) fb_mongo_say(why, why_len, "MongoDB does not answer", &error);
    for (size_t i = 0; status == FB_OK && !w.over && names[i] != NULL; i++) {
        if (is_ours(names[i])) status = scan_collection(&w, names[i]);
    }
    bson_strfreev(names);
    mongoc_database_destroy(database);
    mongoc_client_pool_push(documents->pool, w.client);
    return status;
}
