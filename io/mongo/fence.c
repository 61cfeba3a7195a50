/* SPDX-License-Identifier: Apache-2.0 */
/* The fence: one document for each node, which says how many times it has started. Who raised it
 * last is the only one whose documents win. */
#include <stdio.h>

#include "io/mongo/client.h"
#include "protocol/base/hex.h"

#define FENCE_COLLECTION "faberio.fence"

static void concerns(const fb_documents *documents, bson_t *options)
{
    bson_t concern;
    bson_append_document_begin(options, "writeConcern", -1, &concern);
    bson_append_utf8(&concern, "w", -1, "majority", -1);
    bson_append_bool(&concern, "j", -1, true);
    bson_append_int32(&concern, "wtimeout", -1, documents->timeout_ms);
    bson_append_document_end(options, &concern);
}

static int64_t number_in(const bson_t *reply, const char *path)
{
    bson_iter_t at, value;
    if (!bson_iter_init(&at, reply) || !bson_iter_find_descendant(&at, path, &value) ||
        !BSON_ITER_HOLDS_INT64(&value)) {
        return 0;
    }
    return bson_iter_int64(&value);
}

/* *start: the number after the update, 0 where there is none; *known: the greatest number of a
 * start that it had been told before. False: it is not known whether it was carried out. */
static bool update_fence(fb_documents *documents, bson_t *update, bool makes, int64_t *start,
                         int64_t *known, bson_error_t *error)
{
    char owner[33];
    fb_hex_text(documents->owner.b, sizeof documents->owner.b, owner);
    bson_t *command = BCON_NEW("findAndModify", BCON_UTF8(FENCE_COLLECTION), "query", "{", "_id",
                               BCON_UTF8(owner), "}", "update", BCON_ARRAY(update), "upsert",
                               BCON_BOOL(makes), "new", BCON_BOOL(true));
    bson_t options = BSON_INITIALIZER, reply;
    concerns(documents, &options);
    mongoc_client_t *client = mongoc_client_pool_pop(documents->pool);
    bool done = mongoc_client_write_command_with_opts(client, documents->database, command,
                                                      &options, &reply, error);
    *start = done ? number_in(&reply, "value.start") : 0;
    *known = done ? number_in(&reply, "value.before") : 0;
    /* That there is none is said, and not taken from an answer that says nothing. */
    bson_iter_t value;
    done = done && (*start > 0 ||
                    (bson_iter_init_find(&value, &reply, "value") && BSON_ITER_HOLDS_NULL(&value)));
    mongoc_client_pool_push(documents->pool, client);
    bson_destroy(&reply);
    bson_destroy(&options);
    bson_destroy(command);
    return done;
}

fb_status fb_mongo_fence(fb_documents *documents, uint64_t *number, bool *older, char *why,
                         size_t why_len)
{
    bson_error_t error = {.message = "it gave no number"};
    /* One above both what stands there and what the caller knows: the greater of two updates. A
     * fence that is new, or older than the caller knows, cannot tell of all starts that there were
     * before the database was dropped or set back; it begins at the server's time in milliseconds,
     * which is beyond them, as no two starts are so near each other. What stood there is told by
     * the first of a process's tries that is carried out, though its answer may be lost. */
    bson_t *update = BCON_NEW(
        "0", "{", "$set", "{", "start", "{", "$max", "[", BCON_INT64((int64_t)*number + 1), "{",
        "$add", "[", "{", "$ifNull", "[", "$start", BCON_INT64(0), "]", "}", BCON_INT64(1), "]",
        "}", "{", "$cond", "[", "{", "$lt", "[", "{", "$ifNull", "[", "$start", BCON_INT64(0), "]",
        "}", BCON_INT64(*number == 0 ? 1 : (int64_t)*number), "]", "}", "{", "$toLong", "$$NOW",
        "}", BCON_INT64(0), "]", "}", "]", "}", "by", BCON_OID(&documents->process), "before", "{",
        "$cond", "[", "{", "$eq", "[", "$by", BCON_OID(&documents->process), "]", "}", "$before",
        "{", "$ifNull", "[", "$start", BCON_INT64(0), "]", "}", "]", "}", "}", "}");
    int64_t known, start;
    bool done = update_fence(documents, update, true, &start, &known, &error);
    bson_destroy(update);
    if (!done || start <= 0) {
        fb_mongo_say(why, why_len, "MongoDB takes no start", &error);
        return FB_ERR_UNREACHABLE;
    }
    *older = known < (int64_t)*number;
    documents->start = start;
    *number = (uint64_t)start;
    return FB_OK;
}

/* It changes something each time, as a server answers at once where nothing is written. */
fb_status fb_mongo_confirm(fb_documents *documents, uint64_t *number, char *why, size_t why_len)
{
    bson_error_t error = {.message = "it gave no number"};
    bson_t *update =
        BCON_NEW("0", "{", "$set", "{", "confirmed", "{", "$add", "[", "{", "$ifNull", "[",
                 "$confirmed", BCON_INT64(0), "]", "}", BCON_INT64(1), "]", "}", "}", "}");
    int64_t known, start;
    bool done = update_fence(documents, update, false, &start, &known, &error);
    bson_destroy(update);
    if (!done) {
        fb_mongo_say(why, why_len, "MongoDB does not confirm the start", &error);
        return FB_ERR_UNREACHABLE;
    }
    *number = (uint64_t)start;
    /* The next one that is raised is not a repetition of the one that is gone. */
    if (start == 0) bson_oid_init(&documents->process, NULL);
    return FB_OK;
}
