/* SPDX-License-Identifier: Apache-2.0 */
/* Putting: for each collection one bulk of guarded replacements of whole documents.
 *
 * The guard is in the update and not in its filter, which names the _id alone: so the server finds
 * the document by the shortest way it has, where any other filter costs it a plan, twice the time
 * of all the rest. A document that is there and not older is replaced by itself, which changes
 * nothing; that not all of a bulk were changed is all that the answer says, and then all of them
 * are looked at. What follows from an answer is documents/handing.h's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/mongo/client.h"
#include "io/mongo/document.h"

#define NAMESPACE_EXISTS 48

typedef struct putting {
    fb_documents *documents;
    const fb_document_change *changes;
    fb_document_outcome *outcomes;
    char *why;
    size_t why_len;
    size_t *places;              /* of the operations of the bulk: which change */
    size_t operations, removals; /* those go first */
    bson_t upsert;               /* the option */
    bson_t present;              /* a condition, and the number within it */
    bson_iter_t number;
} putting;

/* {_id, and a version older than this one}: for what is removed, or marked in its place; a document
 * without a version is another program's then and stays. What is ours begins with v, s and n, and
 * documents compare field by field: one comparison stands for three. */
static void guard(bson_t *selector, int64_t start, int64_t number)
{
    BCON_APPEND(selector, FB_MONGO_META, "{", "$lt", "{", "v", BCON_INT32(FB_MONGO_VERSION), "s",
                BCON_INT64(start), "n", BCON_INT64(number), "}", "}");
}

/* What stands there is ours and not older: of the two, the one that is false as a rule comes first.
 * Made once for a bulk; only the number differs. */
static bool present_make(putting *p, int64_t start)
{
    bson_iter_t at;
    bson_init(&p->present);
    BCON_APPEND(&p->present, "$and", "[", "{", "$gte", "[", BCON_UTF8("$" FB_MONGO_META), "{",
                "$literal", "{", "v", BCON_INT32(FB_MONGO_VERSION), "s", BCON_INT64(start), "n",
                BCON_INT64(0), "}", "}", "]", "}", "{", "$eq", "[", "{", "$type",
                BCON_UTF8("$" FB_MONGO_META), "}", BCON_UTF8("object"), "]", "}", "]");
    return bson_iter_init(&at, &p->present) &&
           bson_iter_find_descendant(&at, "$and.0.$gte.1.$literal.n", &p->number);
}

/* The update that leaves a document where that holds, and makes it this one otherwise, also where
 * there is none. Nothing of the document is taken for an expression. */
static bool guarded(putting *p, bson_t *update, const bson_t *whole, int64_t number)
{
    bson_t stage, with, choice, literal;
    bson_iter_overwrite_int64(&p->number, number);
    bool fits = bson_append_document_begin(update, "0", 1, &stage) &&
                bson_append_document_begin(&stage, "$replaceWith", 12, &with) &&
                bson_append_array_begin(&with, "$cond", 5, &choice);
    if (!fits) return false;
    fits = bson_append_document(&choice, "0", 1, &p->present) &&
           bson_append_utf8(&choice, "1", 1, "$$ROOT", 6) &&
           bson_append_document_begin(&choice, "2", 1, &literal) &&
           bson_append_document(&literal, "$literal", 8, whole) &&
           bson_append_document_end(&choice, &literal);
    return bson_append_array_end(&with, &choice) && bson_append_document_end(&stage, &with) &&
           bson_append_document_end(update, &stage) && fits;
}

static bool is_removal(const fb_document_change *change)
{
    return change->document.record.len == 0 && !change->marks;
}

static void add(putting *p, mongoc_bulk_operation_t *bulk, size_t place)
{
    const fb_document_change *change = &p->changes[place];
    int64_t start = (int64_t)change->version.start, number = (int64_t)change->version.number;
    bool removes = is_removal(change);
    bson_t selector = BSON_INITIALIZER, update = BSON_INITIALIZER, whole;
    bson_error_t error;
    bool added = true, fits = true;
    fb_mongo_append_id(&selector, "_id", change->document.id);
    if (removes) {
        guard(&selector, start, number);
        added = mongoc_bulk_operation_remove_one_with_opts(bulk, &selector, NULL, &error);
    } else {
        fits = fb_mongo_document_make(change, &whole);
        if (change->marks) {
            guard(&selector, start, number);
            added = !fits || mongoc_bulk_operation_replace_one_with_opts(bulk, &selector, &whole,
                                                                         &p->upsert, &error);
        } else {
            fits = fits && guarded(p, &update, &whole, number);
            added = !fits || mongoc_bulk_operation_update_one_with_opts(bulk, &selector, &update,
                                                                        &p->upsert, &error);
        }
        bson_destroy(&whole);
    }
    bson_destroy(&selector);
    bson_destroy(&update);
    if (!fits) {
        p->outcomes[place] = FB_DOCUMENT_TOO_LARGE;
    } else if (!added) {
        fb_mongo_say(p->why, p->why_len, "a document cannot be sent", &error);
        p->outcomes[place] = FB_DOCUMENT_REFUSED;
    } else {
        p->outcomes[place] = FB_DOCUMENT_KEPT;
        p->places[p->operations++] = place;
        if (removes) p->removals++;
    }
}

bool fb_mongo_is_for_good(int32_t code, fb_document_outcome *outcome)
{
    switch (code) {
    case 10334: /* BSONObjectTooLarge */
    case 17419: /* too large after the update */
    case 17420:
        *outcome = FB_DOCUMENT_TOO_LARGE;
        return true;
    case 121: /* DocumentValidationFailure */
    case 2:   /* BadValue */
    case 66:  /* ImmutableField: of a sharded collection */
        *outcome = FB_DOCUMENT_REFUSED;
        return true;
    default:
        return false;
    }
}

/* Names of ours have no space, so the first "index: " is the server's own. */
bool fb_mongo_is_of_id(const char *message)
{
    static const char named[] = "index: ";
    const char *index = message == NULL ? NULL : strstr(message, named);
    return index == NULL || strncmp(index + strlen(named), "_id_ ", 5) == 0;
}

static int64_t count_in(const bson_t *reply, const char *key)
{
    bson_iter_t at;
    return bson_iter_init_find(&at, reply, key) ? bson_iter_as_int64(&at) : 0;
}

/* Each replacement that is done finds a document or makes one. */
static int64_t replaced_in(const bson_t *reply)
{
    return count_in(reply, "nMatched") + count_in(reply, "nUpserted");
}

/* Fewer were changed than were put and not refused: some document was there already, or a newer
 * one. Which is looked at. */
static void judge_changed(putting *p, const bson_t *reply, int64_t refused)
{
    int64_t changed = count_in(reply, "nModified") + count_in(reply, "nUpserted") + refused;
    if (changed >= (int64_t)(p->operations - p->removals)) return;
    for (size_t i = p->removals; i < p->operations; i++) {
        fb_document_outcome *outcome = &p->outcomes[p->places[i]];
        if (*outcome == FB_DOCUMENT_KEPT) *outcome = FB_DOCUMENT_PRESENT;
    }
}

/* What the server says of each operation that failed, and of how lasting the others are. False: it
 * is no answer to the whole bulk. A bulk is several commands, and those behind one that fails are
 * not sent; so each replacement must be accounted for: it matched, was inserted or has an error. */
static bool judge(putting *p, const bson_t *reply, bool *durable)
{
    bson_iter_t at, errors, one;
    bool any = false;
    int64_t replaced = replaced_in(reply), refused = 0;
    /* A write concern that was not satisfied leaves open whether the rest lasts. */
    *durable =
        !(bson_iter_init_find(&at, reply, "writeConcernErrors") && BSON_ITER_HOLDS_ARRAY(&at) &&
          bson_iter_recurse(&at, &errors) && bson_iter_next(&errors));
    if (!bson_iter_init_find(&at, reply, "writeErrors") || !BSON_ITER_HOLDS_ARRAY(&at)) {
        return false;
    }
    bson_iter_recurse(&at, &errors);
    while (bson_iter_next(&errors)) {
        int32_t code = 0;
        int64_t index = -1;
        const char *message = NULL;
        if (!bson_iter_recurse(&errors, &one)) continue;
        while (bson_iter_next(&one)) {
            if (strcmp(bson_iter_key(&one), "code") == 0) code = (int32_t)bson_iter_as_int64(&one);
            if (strcmp(bson_iter_key(&one), "index") == 0) index = bson_iter_as_int64(&one);
            bool says = strcmp(bson_iter_key(&one), "errmsg") == 0 && BSON_ITER_HOLDS_UTF8(&one);
            if (says) message = bson_iter_utf8(&one, NULL);
        }
        if (index < 0 || (size_t)index >= p->operations) return false;
        any = true;
        if ((size_t)index >= p->removals) refused++;
        fb_document_outcome *outcome = &p->outcomes[p->places[index]];
        if (code == FB_MONGO_DUPLICATE_KEY) {
            *outcome = fb_mongo_is_of_id(message) ? FB_DOCUMENT_PRESENT : FB_DOCUMENT_REFUSED;
        } else if (!fb_mongo_is_for_good(code, outcome)) {
            *outcome = FB_DOCUMENT_OPEN;
        }
    }
    judge_changed(p, reply, refused);
    return any && replaced + refused == (int64_t)(p->operations - p->removals);
}

void fb_mongo_made_forget(fb_documents *documents)
{
    for (size_t i = 0; i < documents->made_count; i++) free(documents->made[i]);
    documents->made_count = 0;
}

/* Once for each collection: made for the images of documents before a change, or, where it is
 * there, told to have them. A server that cannot do that, or does not let this user, goes without.
 */
void fb_mongo_make(fb_documents *documents, mongoc_client_t *client, const char *name)
{
    /* One that was dropped is made again. */
    unsigned drops = atomic_load(&documents->drops);
    if (drops != documents->made_after) fb_mongo_made_forget(documents);
    documents->made_after = drops;
    for (size_t i = 0; i < documents->made_count; i++) {
        if (strcmp(documents->made[i], name) == 0) return;
    }
    static const char *const verbs[] = {"create", "collMod"};
    bson_error_t error = {.code = 0};
    bool done = false, again = true;
    for (size_t i = 0; again && !done && i < 2; i++) {
        bson_t *command = BCON_NEW(verbs[i], BCON_UTF8(name), "changeStreamPreAndPostImages", "{",
                                   "enabled", BCON_BOOL(true), "}");
        done = mongoc_client_write_command_with_opts(client, documents->database, command, NULL,
                                                     NULL, &error);
        again = error.code == NAMESPACE_EXISTS;
        bson_destroy(command);
    }
    /* An error of the link says nothing about the collection: it is asked for again. */
    if (!done && error.domain != MONGOC_ERROR_SERVER) return;
    char **made = realloc(documents->made, (documents->made_count + 1) * sizeof *made);
    if (made == NULL) return;
    documents->made = made;
    made[documents->made_count] = strdup(name);
    if (made[documents->made_count] != NULL) documents->made_count++;
}

static fb_status execute(putting *p, size_t count, bool *durable)
{
    mongoc_client_t *client;
    mongoc_collection_t *collection =
        fb_mongo_collection(p->documents, p->changes[0].document.collection, &client);
    fb_mongo_make(p->documents, client, p->changes[0].document.collection);
    mongoc_write_concern_t *concern = mongoc_write_concern_new();
    mongoc_write_concern_set_wmajority(concern, p->documents->timeout_ms);
    mongoc_write_concern_set_journal(concern, true);
    bson_t options = BSON_INITIALIZER, reply = BSON_INITIALIZER;
    /* No document is named twice, so one that fails holds up no other. */
    bson_append_bool(&options, "ordered", -1, false);
    mongoc_write_concern_append(concern, &options);
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(collection, &options);
    for (size_t i = 0; i < count; i++) {
        if (is_removal(&p->changes[i])) add(p, bulk, i);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_removal(&p->changes[i])) add(p, bulk, i);
    }
    bson_error_t error;
    fb_status status = FB_OK;
    *durable = true;
    if (p->operations != 0) {
        bson_destroy(&reply);
        if (mongoc_bulk_operation_execute(bulk, &reply, &error) == 0) {
            fb_mongo_say(p->why, p->why_len, "MongoDB did not take documents", &error);
            if (!judge(p, &reply, durable)) status = FB_ERR_UNREACHABLE;
        } else if (replaced_in(&reply) != (int64_t)(p->operations - p->removals)) {
            /* Nothing failed, and not everything was done: it answers something else. */
            snprintf(p->why, p->why_len, "MongoDB answers another question");
            status = FB_ERR_UNREACHABLE;
        } else {
            judge_changed(p, &reply, 0);
        }
    }
    bson_destroy(&reply);
    bson_destroy(&options);
    mongoc_bulk_operation_destroy(bulk);
    mongoc_write_concern_destroy(concern);
    fb_mongo_collection_done(p->documents, collection, client);
    return status;
}

/* What stands where a document was not taken. OPEN: it is gone, or older, or another program's that
 * was put there meanwhile; the next try meets it as it is. REFUSED: its _faberio is not as this
 * program writes it, so the guard does not tell what is older. */
static fb_document_outcome outcome_of(const bson_t *there, fb_document_version ours)
{
    static const char *const names[] = {"v", "s", "n"};
    int64_t numbers[3];
    bson_iter_t at, meta;
    if (!bson_iter_init_find(&at, there, FB_MONGO_META) || !BSON_ITER_HOLDS_DOCUMENT(&at)) {
        return FB_DOCUMENT_OPEN;
    }
    bson_iter_recurse(&at, &meta);
    for (size_t i = 0; i < 3; i++) {
        if (!bson_iter_next(&meta) || strcmp(bson_iter_key(&meta), names[i]) != 0 ||
            !BSON_ITER_HOLDS_NUMBER(&meta)) {
            return FB_DOCUMENT_REFUSED;
        }
        numbers[i] = bson_iter_as_int64(&meta);
    }
    int64_t start = (int64_t)ours.start, number = (int64_t)ours.number;
    if (numbers[1] > start) return FB_DOCUMENT_NEWER;
    if (numbers[0] != FB_MONGO_VERSION) return FB_DOCUMENT_REFUSED;
    return numbers[1] == start && numbers[2] >= number ? FB_DOCUMENT_PRESENT : FB_DOCUMENT_OPEN;
}

static void look_at_one(putting *p, size_t count, const bson_t *there)
{
    fb_id id;
    if (!fb_mongo_id_read(there, &id)) return;
    for (size_t i = 0; i < count; i++) {
        if (!fb_id_equal(p->changes[i].document.id, id)) continue;
        p->outcomes[i] = outcome_of(there, p->changes[i].version);
        if (p->outcomes[i] != FB_DOCUMENT_REFUSED) continue;
        snprintf(p->why, p->why_len, "a document's _faberio was changed by another program");
    }
}

/* Some documents were not older than ours: of this start, as an earlier try left them, or of a
 * later one, whose process has taken this one's place. What is said to be there is looked at. */
static fb_status look_at_present(putting *p, size_t count)
{
    mongoc_client_t *client;
    bson_t filter = BSON_INITIALIZER, options = BSON_INITIALIZER, ids, within;
    char buffer[16];
    uint32_t present = 0;
    bson_append_document_begin(&filter, "_id", -1, &within);
    bson_append_array_begin(&within, "$in", -1, &ids);
    for (size_t i = 0; i < count; i++) {
        if (p->outcomes[i] != FB_DOCUMENT_PRESENT) continue;
        const char *index;
        bson_uint32_to_string(present++, &index, buffer, sizeof buffer);
        fb_mongo_append_id(&ids, index, p->changes[i].document.id);
        p->outcomes[i] = FB_DOCUMENT_OPEN;
    }
    bson_append_array_end(&within, &ids);
    bson_append_document_end(&filter, &within);
    bson_append_int64(&options, "maxTimeMS", -1, p->documents->timeout_ms);
    fb_status status = FB_OK;
    if (present != 0) {
        mongoc_collection_t *collection =
            fb_mongo_collection(p->documents, p->changes[0].document.collection, &client);
        mongoc_cursor_t *cursor =
            mongoc_collection_find_with_opts(collection, &filter, &options, NULL);
        const bson_t *there;
        bson_error_t error;
        while (mongoc_cursor_next(cursor, &there)) look_at_one(p, count, there);
        if (mongoc_cursor_error(cursor, &error)) {
            fb_mongo_say(p->why, p->why_len, "MongoDB does not say what is there", &error);
            status = FB_ERR_UNREACHABLE;
        }
        mongoc_cursor_destroy(cursor);
        fb_mongo_collection_done(p->documents, collection, client);
    }
    bson_destroy(&options);
    bson_destroy(&filter);
    return status;
}

fb_status fb_mongo_put(fb_documents *documents, const fb_document_change *changes, size_t count,
                       fb_document_outcome *outcomes, bool *durable, char *why, size_t why_len)
{
    putting p = {.documents = documents,
                 .changes = changes,
                 .outcomes = outcomes,
                 .why = why,
                 .why_len = why_len,
                 .places = calloc(count + 1, sizeof *p.places)};
    if (p.places == NULL) return FB_ERR_NO_MEMORY;
    bson_init(&p.upsert);
    bson_append_bool(&p.upsert, "upsert", -1, true);
    fb_status status = present_make(&p, (int64_t)changes[0].version.start)
                           ? execute(&p, count, durable)
                           : FB_ERR_NO_MEMORY;
    bson_destroy(&p.present);
    bson_destroy(&p.upsert);
    if (status == FB_OK) status = look_at_present(&p, count);
    free(p.places);
    return status;
}
