/* SPDX-License-Identifier: Apache-2.0 */
/* The document store in MongoDB, as a module that is loaded when it is used
 * (io/document_store/load.h).
 */
#include "io/document_store/load.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/mongo/client.h"

static void quiet(mongoc_log_level_t level, const char *domain, const char *message, void *user)
{
    (void)level;
    (void)domain;
    (void)message;
    (void)user;
}

static void begin(void)
{
    /* It would write to the node's standard error, at its own start, too; what matters comes back
     * as errors. */
    mongoc_log_set_handler(quiet, NULL);
    mongoc_init();
}

static void set_default(mongoc_uri_t *uri, const char *option, int32_t value)
{
    if (!mongoc_uri_has_option(uri, option)) {
        mongoc_uri_set_option_as_int32(uri, option, value);
    }
}

/* The driver repeats what it does not understand. */
static bool may_hold_secrets(const char *uri)
{
    return strpbrk(uri, "@?") != NULL;
}

static mongoc_uri_t *uri_of(const fb_documents_options *options, char *why, size_t why_len)
{
    bson_error_t error;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(options->uri, &error);
    if (uri == NULL && may_hold_secrets(options->uri)) {
        snprintf(why, why_len,
                 "not an address of MongoDB: name, password and values of options must be "
                 "percent-encoded");
        return NULL;
    }
    if (uri == NULL) {
        fb_mongo_say(why, why_len, "not an address of MongoDB", &error);
        return NULL;
    }
    if (mongoc_uri_get_database(uri) == NULL) {
        snprintf(why, why_len, "the address names no database: mongodb://HOST/DATABASE");
        mongoc_uri_destroy(uri);
        return NULL;
    }
    int32_t ms = (int32_t)options->timeout_ms;
    set_default(uri, MONGOC_URI_CONNECTTIMEOUTMS, ms);
    set_default(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, ms);
    set_default(uri, MONGOC_URI_SOCKETTIMEOUTMS, 2 * ms);
    /* A repeated bulk is told from the first one by its guards alone. */
    mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYWRITES, false);
    /* A secondary may not have yet what this process has had confirmed. */
    mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    mongoc_uri_set_read_prefs_t(uri, primary);
    mongoc_read_prefs_destroy(primary);
    mongoc_uri_set_appname(uri, "faberio");
    return uri;
}

static fb_status open_documents(const fb_documents_options *options, fb_documents **out, char *why,
                                size_t why_len)
{
    *out = NULL;
    mongoc_uri_t *uri = uri_of(options, why, why_len);
    if (uri == NULL) return FB_ERR_REQUEST_MALFORMED;
    fb_documents *documents = calloc(1, sizeof *documents);
    if (documents != NULL) documents->database = strdup(mongoc_uri_get_database(uri));
    if (documents == NULL || documents->database == NULL) {
        mongoc_uri_destroy(uri);
        free(documents);
        return FB_ERR_NO_MEMORY;
    }
    bson_error_t error;
    documents->pool = mongoc_client_pool_new_with_error(uri, &error);
    mongoc_uri_destroy(uri);
    if (documents->pool == NULL) {
        if (may_hold_secrets(options->uri)) {
            snprintf(error.message, sizeof error.message, "what the address asks for is not there");
        }
        fb_mongo_say(why, why_len, "MongoDB's clients cannot be made", &error);
        free(documents->database);
        free(documents);
        return FB_ERR_REQUEST_MALFORMED;
    }
    mongoc_client_pool_max_size(documents->pool, FB_MONGO_CLIENTS_MAX);
    mongoc_client_pool_set_error_api(documents->pool, MONGOC_ERROR_API_VERSION_2);
    bson_oid_init(&documents->process, NULL);
    documents->owner = options->owner;
    documents->timeout_ms = (int32_t)options->timeout_ms;
    *out = documents;
    return FB_OK;
}

static void close_documents(fb_documents *documents)
{
    mongoc_client_pool_destroy(documents->pool);
    fb_mongo_made_forget(documents);
    free(documents->made);
    free(documents->database);
    free(documents);
}

const fb_documents_ops *fb_documents_module(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    static const fb_documents_ops ops = {.interface = FB_DOCUMENTS_INTERFACE,
                                         .open = open_documents,
                                         .close = close_documents,
                                         .fence = fb_mongo_fence,
                                         .confirm = fb_mongo_confirm,
                                         .put = fb_mongo_put,
                                         .get = fb_mongo_get,
                                         .range = fb_mongo_range,
                                         .watch = fb_mongo_watch,
                                         .scan = fb_mongo_scan,
                                         .edits = fb_mongo_edits,
                                         .restore = fb_mongo_restore};
    return &ops;
}
