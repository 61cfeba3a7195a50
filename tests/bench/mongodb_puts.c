/* SPDX-License-Identifier: Apache-2.0 */
/* What the document store costs over the driver: bulk writes and reads by id through
 * faberio-mongo.so, and through mongo-c-driver alone with the same documents in the same batches,
 * one after the other in turns. Argument: the address of a server with a database. Prints
 * lines of NAME VALUE. */
#include <mongoc/mongoc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/clock.h"
#include "io/document_store/load.h"
#include "protocol/base/assert.h"

#define BATCH  1000u
#define ROUNDS 12u
#define FINDS  1500u
#define FIELDS 4u

typedef struct measure {
    uint64_t wall_ns, cpu_ns;
} measure;

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static fb_id id_of(uint32_t n)
{
    fb_id id = {{1, 2, 3, 4, 5, 6, 0x70, 0, 0x80}};
    for (size_t i = 0; i < 4; i++) id.b[12 + i] = (uint8_t)(n >> (24 - 8 * i));
    return id;
}

static const uint8_t record[240] = {1};
static const char *const names[FIELDS] = {"title", "count", "tags", "text"};
static const char *const values[FIELDS] = {"\"a title of some length\"", "12345",
                                           "[\"red\",\"green\",\"blue\"]",
                                           "\"text text text text text text text text text text\""};

/* Ours */

static fb_document_field fields[FIELDS];

static void ours_put(const fb_documents_ops *ops, fb_documents *documents, uint32_t first,
                     uint64_t start, uint64_t number)
{
    static fb_document_change changes[BATCH];
    static fb_document_outcome outcomes[BATCH];
    char why[200] = "";
    bool durable = false;
    for (uint32_t i = 0; i < BATCH; i++) {
        changes[i] = (fb_document_change){.version = {start, number * BATCH + i}};
        changes[i].document = (fb_document){.collection = "ours",
                                            .id = id_of(first + i),
                                            .record = fb_span_of(record, sizeof record),
                                            .fields = fields,
                                            .field_count = FIELDS,
                                            .horizon = INT64_MAX};
    }
    fb_status status = ops->put(documents, changes, BATCH, outcomes, &durable, why, sizeof why);
    if (status != FB_OK || !durable) fprintf(stderr, "%s\n", why);
    FB_ASSERT(status == FB_OK && durable && outcomes[BATCH - 1] == FB_DOCUMENT_KEPT);
}

static bool found(void *user, const fb_document *document)
{
    *(uint64_t *)user += document->record.len;
    return true;
}

static void ours_get(const fb_documents_ops *ops, fb_documents *documents, uint32_t n)
{
    char why[200];
    uint64_t bytes = 0;
    fb_id id = id_of(n);
    FB_ASSERT(ops->get(documents, "ours", &id, 1, found, &bytes, why, sizeof why) == FB_OK);
    FB_ASSERT(bytes == sizeof record);
}

/* The driver's alone: what anybody would write who keeps such documents. */

static void bare_document(bson_t *out, uint32_t n, int64_t number)
{
    fb_id id = id_of(n);
    bson_init(out);
    bson_append_binary(out, "_id", -1, BSON_SUBTYPE_UUID, id.b, sizeof id.b);
    BCON_APPEND(out, "title", BCON_UTF8("a title of some length"), "count", BCON_INT64(12345),
                "tags", "[", BCON_UTF8("red"), BCON_UTF8("green"), BCON_UTF8("blue"), "]", "text",
                BCON_UTF8("text text text text text text text text text text"), "_faberio", "{",
                "v", BCON_INT32(1), "s", BCON_INT64(1), "n", BCON_INT64(number), "t",
                BCON_INT64(INT64_MAX), "h", BCON_INT64(1), "r",
                BCON_BIN(BSON_SUBTYPE_BINARY, record, sizeof record), "a", "[", "]", "}");
}

static void bare_put(mongoc_collection_t *collection, uint32_t first, int64_t number)
{
    bson_t options = BSON_INITIALIZER, reply, upsert = BSON_INITIALIZER, concern;
    bson_error_t error;
    bson_append_bool(&upsert, "upsert", -1, true);
    bson_append_bool(&options, "ordered", -1, false);
    bson_append_document_begin(&options, "writeConcern", -1, &concern);
    BCON_APPEND(&concern, "w", BCON_UTF8("majority"), "j", BCON_BOOL(true));
    bson_append_document_end(&options, &concern);
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(collection, &options);
    for (uint32_t i = 0; i < BATCH; i++) {
        bson_t document, selector = BSON_INITIALIZER;
        fb_id id = id_of(first + i);
        bson_append_binary(&selector, "_id", -1, BSON_SUBTYPE_UUID, id.b, sizeof id.b);
        bare_document(&document, first + i, number * BATCH + i);
        FB_ASSERT(mongoc_bulk_operation_replace_one_with_opts(bulk, &selector, &document, &upsert,
                                                              &error));
        bson_destroy(&document);
        bson_destroy(&selector);
    }
    FB_ASSERT(mongoc_bulk_operation_execute(bulk, &reply, &error) != 0);
    bson_destroy(&reply);
    bson_destroy(&options);
    bson_destroy(&upsert);
    mongoc_bulk_operation_destroy(bulk);
}

static void bare_get(mongoc_collection_t *collection, uint32_t n)
{
    bson_t filter = BSON_INITIALIZER, options = BSON_INITIALIZER;
    const bson_t *one;
    fb_id id = id_of(n);
    bson_append_binary(&filter, "_id", -1, BSON_SUBTYPE_UUID, id.b, sizeof id.b);
    BCON_APPEND(&options, "readConcern", "{", "level", BCON_UTF8("majority"), "}");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, &filter, &options, NULL);
    FB_ASSERT(mongoc_cursor_next(cursor, &one));
    mongoc_cursor_destroy(cursor);
    bson_destroy(&filter);
    bson_destroy(&options);
}

static void print(const char *name, const measure *ours, const measure *bare, uint64_t count)
{
    printf("%s_ours_per_s %llu\n", name,
           (unsigned long long)(count * 1000000000u / (ours->wall_ns + 1)));
    printf("%s_bare_per_s %llu\n", name,
           (unsigned long long)(count * 1000000000u / (bare->wall_ns + 1)));
    printf("%s_ratio_percent %llu\n", name,
           (unsigned long long)(100 * bare->wall_ns / (ours->wall_ns + 1)));
    printf("%s_ours_cpu_ns %llu\n", name, (unsigned long long)(ours->cpu_ns / count));
    printf("%s_bare_cpu_ns %llu\n", name, (unsigned long long)(bare->cpu_ns / count));
}

#define TIMED(into, call)                                                                          \
    do {                                                                                           \
        uint64_t wall_ = fb_clock_mono_ns();                                                       \
        uint64_t cpu_ = cpu_ns();                                                                  \
        call;                                                                                      \
        (into).cpu_ns += cpu_ns() - cpu_;                                                          \
        (into).wall_ns += fb_clock_mono_ns() - wall_;                                              \
    } while (0)

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    char why[200] = "";
    const fb_documents_ops *ops;
    fb_documents *documents;
    const fb_documents_options options = {argv[1], {{1}}, 20000};
    FB_ASSERT(fb_documents_load(FB_DOCUMENTS_MONGO, &ops, why, sizeof why) == FB_OK);
    FB_ASSERT(ops->open(&options, &documents, why, sizeof why) == FB_OK);
    uint64_t start = 0;
    bool older;
    FB_ASSERT(ops->fence(documents, &start, &older, why, sizeof why) == FB_OK);
    mongoc_uri_t *uri = mongoc_uri_new(argv[1]);
    mongoc_client_t *client = mongoc_client_new_from_uri(uri);
    mongoc_collection_t *bare =
        mongoc_client_get_collection(client, mongoc_uri_get_database(uri), "bare");
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = (fb_document_field){fb_span_text(names[i]), fb_span_text(values[i])};
    }
    measure made[2] = {{0, 0}}, replaced[2] = {{0, 0}}, read[2] = {{0, 0}};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        TIMED(made[0], ours_put(ops, documents, round * BATCH, start, round));
        TIMED(made[1], bare_put(bare, round * BATCH, round));
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        TIMED(replaced[0], ours_put(ops, documents, round * BATCH, start, ROUNDS + round));
        TIMED(replaced[1], bare_put(bare, round * BATCH, ROUNDS + round));
    }
    for (uint32_t i = 0; i < FINDS; i++) {
        TIMED(read[0], ours_get(ops, documents, i * 7 % (ROUNDS * BATCH)));
        TIMED(read[1], bare_get(bare, i * 7 % (ROUNDS * BATCH)));
    }
    print("made", &made[0], &made[1], (uint64_t)ROUNDS * BATCH);
    print("replaced", &replaced[0], &replaced[1], (uint64_t)ROUNDS * BATCH);
    print("read", &read[0], &read[1], FINDS);
    mongoc_collection_destroy(bare);
    mongoc_client_destroy(client);
    mongoc_uri_destroy(uri);
    ops->close(documents);
    return 0;
}
