/* SPDX-License-Identifier: Apache-2.0 */
/* What the local store's thread does with what other programs did to documents, while its store
 * cannot be read: nothing is forgotten, and the watch's place is not stored meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/document_store/store.h"
#include "protocol/database/database.h"
#include "protocol/database/keys.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

#define SPACE 7u
#define NOTES 1u

static fb_status not_there(char *why, size_t why_len)
{
    if (why_len > 0) why[0] = 0;
    return FB_ERR_UNREACHABLE;
}

static fb_status fence(fb_documents *documents, uint64_t *number, bool *older, char *why,
                       size_t why_len)
{
    (void)documents;
    (void)number;
    (void)older;
    return not_there(why, why_len);
}

static fb_status scan(fb_documents *documents, fb_documents_event_told changed, void *user,
                      char *why, size_t why_len)
{
    (void)documents;
    (void)changed;
    (void)user;
    return not_there(why, why_len);
}

static fb_status watch(fb_documents *documents, fb_span token, fb_documents_event_told changed,
                       void *user, char *why, size_t why_len)
{
    (void)token;
    return scan(documents, changed, user, why, why_len);
}

static const fb_documents_ops away = {
    .interface = FB_DOCUMENTS_INTERFACE, .fence = fence, .watch = watch, .scan = scan};

static void outer_came(void *user, fb_outer *outer)
{
    (void)user;
    fb_outer_free(outer);
    fail();
}

static const fb_worker_ops callbacks = {.outer = outer_came};

static void entry(fb_writer *w, fb_span key, fb_span value)
{
    size_t end = w->at + fb_write_entry_bytes(key.len, value.len);
    fb_write_u8(w, FB_WRITE_PUT);
    fb_write_u8(w, 0);
    fb_write_u16(w, (uint16_t)key.len);
    fb_write_u32(w, (uint32_t)value.len);
    fb_write_span(w, key);
    fb_write_span(w, value);
    while (w->at < end) fb_write_u8(w, 0);
}

/* A space with one collection. */
static void fill(fb_lmdb_env *env)
{
    static const uint8_t space_key[] = {FB_TAG_SPACE, 0, 0, 0, SPACE, 0}, space[17] = {1};
    uint8_t bytes[512], key[FB_AREA_KEY_BYTES], area[64];
    fb_writer v = fb_writer_of(area, sizeof area), w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u8(&v, 1);
    fb_write_u32(&v, SPACE);
    fb_write_u8(&v, FB_AREA_COLLECTION);
    fb_write_span16(&v, fb_span_text("notes"));
    entry(&w, fb_span_of(space_key, sizeof space_key), fb_span_of(space, sizeof space));
    entry(&w, fb_key_area(key, NOTES), fb_writer_span(&v));
    fb_span set = fb_writer_span(&w);
    assert_int_equal(fb_lmdb_env_write(env, &set, 1), 0);
}

static fb_outer *dropped(void)
{
    const fb_document_event event = {.kind = FB_DOCUMENT_DROPPED, .collection = ""};
    return fb_outer_make(&away, &event);
}

static void a_drop_is_not_forgotten_while_the_store_cannot_be_read(void **state)
{
    (void)state;
    char directory[] = "/tmp/faberio-documents-XXXXXX", why[128];
    fb_error error = FB_OK;
    fb_store_documents *sd = NULL;
    bool forward;
    assert_non_null(mkdtemp(directory));
    fb_lmdb_env env = {.directory = directory, .map_bytes = 1 << 20, .map_bytes_max = 1 << 24};
    assert_int_equal(fb_lmdb_env_open(&env, why, sizeof why, &error), 0);
    fill(&env);
    assert_int_equal(fb_store_documents_open(&env, &away, NULL, &callbacks, &sd), 0);
    assert_false(fb_store_documents_wants_remaking(sd));
    fb_lmdb_env_close(&env);
    fb_outer *first = dropped(), *second = dropped();
    assert_int_not_equal(fb_store_documents_outer(sd, first, &forward), 0);
    assert_false(forward);
    assert_int_not_equal(fb_store_documents_outer(sd, second, &forward), 0);
    uint64_t again_ms = fb_store_documents_again_at(sd);
    assert_int_not_equal(again_ms, UINT64_MAX);
    assert_null(fb_store_documents_outer_due(sd, again_ms - 1));
    /* In the order in which they came; where it still fails, once more. */
    assert_ptr_equal(fb_store_documents_outer_due(sd, again_ms), first);
    assert_int_not_equal(fb_store_documents_outer(sd, first, &forward), 0);
    again_ms = fb_store_documents_again_at(sd);
    assert_int_equal(fb_lmdb_env_open(&env, why, sizeof why, &error), 0);
    assert_ptr_equal(fb_store_documents_outer_due(sd, again_ms), second);
    assert_int_equal(fb_store_documents_outer(sd, second, &forward), 0);
    assert_true(forward);
    assert_true(fb_store_documents_wants_remaking(sd));
    fb_store_documents_outer_done(sd, second);
    /* What is kept when the store is closed is freed: the stream tells it again. */
    fb_store_documents_stop(sd);
    fb_store_documents_free(sd);
    fb_lmdb_env_free(&env);
    char file[sizeof directory + 16];
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", directory, names[i]);
        unlink(file);
    }
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drop_is_not_forgotten_while_the_store_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
