/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at each allocation in turn: what is being opened is refused as a whole and
 * keeps nothing; after it the same succeeds. And readers of foreign bytes that never allocate: over
 * the corpora of the fuzz targets not once. The linker leads allocations here (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "io/keys/provider_sodium.h"
#include "io/store/lmdb.h"
#include "protocol/core/node.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/tree/tree.h"
#include "protocol/envelope/envelope.h"
#include "protocol/envelope/json.h"
#include "protocol/link/external.h"
#include "protocol/space/invite.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);

static bool counting;
static unsigned asked; /* since counting began */
static unsigned fails; /* the number of the one that fails, from 1; 0: none */

static bool refused(void)
{
    return counting && ++asked == fails;
}

void *__wrap_malloc(size_t size)
{
    return refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return refused() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
    return refused() ? NULL : __real_strdup(text);
}

/* Opens with the first, the second … allocation failing, until it asks for no more. */
static void sweep(fb_status (*open)(void), void (*close)(void), unsigned least)
{
    unsigned count = 0;
    for (unsigned at = 1;; at++) {
        counting = true;
        asked = 0;
        fails = at;
        fb_status status = open();
        counting = false;
        if (asked < at) {
            assert_int_equal(status, FB_OK);
            close();
            break;
        }
        count++;
        assert_int_equal(status, FB_ERR_NO_MEMORY);
        /* Whole again at once. */
        assert_int_equal(open(), FB_OK);
        close();
    }
    assert_in_range(count, least, 1000);
}

static fb_sodium *sodium;

static fb_status open_sodium(void)
{
    return fb_sodium_create(4, &sodium);
}

static void close_sodium(void)
{
    fb_sodium_destroy(sodium);
}

static void the_provider(void **state)
{
    (void)state;
    sweep(open_sodium, close_sodium, 2);
}

static char directory[64];
static fb_lmdb *store;

static void nothing(void *user)
{
    (void)user;
}

static fb_status open_store(void)
{
    char why[256];
    fb_lmdb_options options = {.directory = directory, .notify = nothing};
    return fb_lmdb_open(&options, &store, why, sizeof why);
}

static void close_store(void)
{
    fb_lmdb_close(store);
}

static void the_store(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/fb-allocation-XXXXXX");
    assert_non_null(mkdtemp(directory));
    sweep(open_store, close_store, 2);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

static unsigned given;

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    given++;
    return __real_calloc(1, bytes);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    given--;
    free(memory);
}

static void a_node_is_one_allocation(void **state)
{
    (void)state;
    assert_int_equal(open_sodium(), FB_OK);
    fb_options options = fb_options_small();
    options.provider = fb_sodium_provider(sodium);
    fb_b32 seed = {{1}};
    assert_int_equal(fb_sodium_add_signing(sodium, &seed, &options.identity_key), FB_OK);
    assert_int_equal(fb_sodium_add_dh(sodium, &seed, &options.link_key), FB_OK);
    options.allocator = (fb_allocator){NULL, allocate, release};
    fb_node *node;
    counting = true;
    asked = 0;
    fails = 0;
    assert_int_equal(fb_node_create(&options, &node), FB_OK);
    assert_int_equal(given, 1);
    fb_node_destroy(node);
    counting = false;
    assert_int_equal(given, 0);
    assert_int_equal(asked, 0);
    close_sodium();
}

static void read_as_everything(fb_span in)
{
    static fb_envelope_scratch scratch;
    static fb_change changes[FB_BATCH_CHANGES_MAX];
    static fb_tree_node tree;
    static uint8_t out[FB_ENVELOPE_JSON_BYTES_MAX];
    fb_envelope e;
    fb_preimage preimage;
    if (fb_envelope_decode_json(in, &scratch, &e, NULL) == FB_OK) {
        fb_writer w = fb_writer_of(out, sizeof out);
        (void)fb_envelope_encode_protobuf(&e, &w);
        fb_envelope_preimage(&e, &preimage);
    }
    if (fb_envelope_decode_protobuf(in, &e, NULL) == FB_OK) {
        fb_writer w = fb_writer_of(out, sizeof out);
        (void)fb_envelope_encode_json(&e, &w);
    }
    (void)fb_json_value_check(in);
    fb_batch batch;
    (void)fb_batch_decode(in, &batch, changes);
    fb_tree_root root;
    (void)fb_tree_decode(in, &tree, &root);
    fb_invite invite;
    (void)fb_invite_read(in, &invite);
    fb_invite_frame frame;
    (void)fb_invite_frame_read(in, &frame);
    fb_membership_frame membership;
    (void)fb_membership_frame_read(in, &membership);
    fb_external_frame external;
    (void)fb_external_read(in, &external);
}

static void readers_never_allocate(void **state)
{
    (void)state;
    static const char *const folders[] = {
        "envelope_json", "envelope_protobuf", "json_scan", "batch", "invite", "frames", "stored"};
    static uint8_t bytes[400000];
    unsigned files = 0;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/fuzz/corpus/%s", FB_SOURCE_DIR, folders[i]);
        DIR *folder = opendir(path);
        assert_non_null(folder);
        for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/fuzz/corpus/%s/%s", FB_SOURCE_DIR, folders[i],
                     entry->d_name);
            FILE *file = fopen(path, "rb");
            assert_non_null(file);
            size_t len = fread(bytes, 1, sizeof bytes, file);
            fclose(file);
            counting = true;
            asked = 0;
            fails = 0;
            read_as_everything(fb_span_of(bytes, len));
            counting = false;
            assert_int_equal(asked, 0);
            files++;
        }
        closedir(folder);
    }
    assert_in_range(files, 200, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_provider),
        cmocka_unit_test(the_store),
        cmocka_unit_test(a_node_is_one_allocation),
        cmocka_unit_test(readers_never_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
