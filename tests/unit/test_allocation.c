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
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/keys/provider_sodium.h"
#include "io/loop.h"
#include "io/net/carrier_tcp.h"
#include "io/net/listener.h"
#include "io/recorder.h"
#include "io/store/lmdb.h"
#include "protocol/core/node.h"
#include "protocol/database/area/vector.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/batch/mark.h"
#include "protocol/database/compare/repair.h"
#include "protocol/database/record/record.h"
#include "protocol/database/tree/tree.h"
#include "protocol/envelope/envelope.h"
#include "protocol/envelope/json.h"
#include "protocol/link/external.h"
#include "protocol/space/invite.h"
#include "protocol/space/statement.h"
#include "sim/schedule/schedule.h"

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

/* Opens with the first, the second … allocation failing, until it asks for no more, or up to the
 * last one that may fail. */
static void sweep_up_to(fb_status (*open)(void), void (*close)(void), unsigned least, unsigned last)
{
    unsigned count = 0;
    for (unsigned at = 1; at <= last; at++) {
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

static void sweep(fb_status (*open)(void), void (*close)(void), unsigned least)
{
    sweep_up_to(open, close, least, UINT_MAX);
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
    char why[256] = "";
    fb_lmdb_options options = {.directory = directory, .notify = nothing};
    fb_status status = fb_lmdb_open(&options, &store, why, sizeof why);
    assert_true((status == FB_OK) == (why[0] == 0));
    return status;
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

/* ---- The loop, its carrier, whoever listens ---- */

static uv_loop_t uv;
static fb_loop *loop;
static uint64_t identity_key, link_key;
static unsigned gone;

static void count_gone(void *user)
{
    (void)user;
    gone++;
}

static void happened(void *user, const fb_loop_event *event)
{
    (void)user;
    (void)event;
}

static fb_status open_loop(void)
{
    char why[256] = "";
    fb_loop_options options = {
        .uv = &uv,
        .node = fb_options_small(),
        .store = {.directory = directory},
        .happened = happened,
    };
    options.node.provider = fb_sodium_provider(sodium);
    options.node.identity_key = identity_key;
    options.node.link_key = link_key;
    fb_status status = fb_loop_open(&options, &loop, why, sizeof why);
    bool counted = counting;
    counting = false;
    if (status != FB_OK) {
        assert_null(loop);
        assert_string_not_equal(why, "");
        uv_run(&uv, UV_RUN_DEFAULT); /* lets go of its handles */
    }
    counting = counted;
    return status;
}

static void close_loop(void)
{
    gone = 0;
    fb_loop_stop(loop, count_gone, NULL);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(gone, 1);
}

static void the_loop(void **state)
{
    (void)state;
    fb_b32 seed = {{1}};
    strcpy(directory, "/tmp/fb-allocation-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(uv_loop_init(&uv), 0);
    assert_int_equal(open_sodium(), FB_OK);
    assert_int_equal(fb_sodium_add_signing(sodium, &seed, &identity_key), FB_OK);
    assert_int_equal(fb_sodium_add_dh(sodium, &seed, &link_key), FB_OK);
    /* Behind these the node lives. From there on memory that runs out ends the process, as a power
     * cut would, and the store is whole. */
    sweep_up_to(open_loop, close_loop, 6, 6);
    close_sodium();
    assert_int_equal(uv_loop_close(&uv), 0);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

static fb_carrier *carrier;

static fb_status open_carrier(void)
{
    static const fb_carrier_handlers none;
    return fb_carrier_create(&uv, &none, 4, &carrier);
}

static void close_carrier(void)
{
    gone = 0;
    fb_carrier_stop(carrier, count_gone, NULL);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(gone, 1);
}

static fb_listener *listener;

static void accepted(void *user, int fd, const fb_sockaddr *from)
{
    (void)user;
    (void)from;
    close(fd);
}

static fb_status open_listener(void)
{
    char bound[128], why[256];
    return fb_listener_open(&uv, "127.0.0.1:0", accepted, NULL, &listener, bound, sizeof bound, why,
                            sizeof why);
}

static void close_listener(void)
{
    gone = 0;
    fb_listener_close(listener, count_gone);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(gone, 1);
}

static void carriers_and_listeners(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_init(&uv), 0);
    sweep(open_carrier, close_carrier, 1);
    sweep(open_listener, close_listener, 1);
    assert_int_equal(uv_loop_close(&uv), 0);
}

/* ---- A recorder, a schedule ---- */

static fb_recorder *recorder;

static fb_status open_recorder(void)
{
    char why[256];
    fb_recorder_options options = {
        .path = "/tmp/fb-allocation-none", .bytes_max = FB_RECORDER_BYTES_MIN, .program = "test"};
    return fb_recorder_open(&options, &recorder, why, sizeof why);
}

static void close_recorder(void)
{
    fb_recorder_close(recorder);
}

static fb_sim_plan plan;
static char schedule[1 << 16];
static size_t schedule_len;

static fb_status open_plan(void)
{
    fb_sim_plan_error error = {.text = ""};
    if (fb_sim_plan_parse(schedule, schedule_len, &plan, &error)) return FB_OK;
    assert_string_not_equal(error.text, "");
    return FB_ERR_NO_MEMORY;
}

static void close_plan(void)
{
    fb_sim_plan_free(&plan);
}

static void a_recorder_and_a_schedule(void **state)
{
    (void)state;
    sweep(open_recorder, close_recorder, 2);
    FILE *file = fopen(FB_SOURCE_DIR "/fuzz/corpus/schedule/everything", "rb");
    assert_non_null(file);
    schedule_len = fread(schedule, 1, sizeof schedule, file);
    fclose(file);
    sweep(open_plan, close_plan, 3);
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
    static fb_mark mark;
    (void)fb_mark_read(in, &mark);
    fb_record record;
    (void)fb_record_decode(in, &record);
    (void)fb_peer_state_is_valid(in);
    fb_life life;
    (void)fb_life_decode(in, &life);
    static fb_field_write fields[32];
    uint32_t count = 0;
    fb_reader r = fb_reader_of(in);
    while (count < 32 && fb_reader_left(&r) > 0 && !r.failed) {
        fields[count].name = fb_read_span16(&r);
        fields[count].act = fb_read_u8(&r) == 1 ? FB_ACT_UNSET : FB_ACT_SET;
        fields[count++].value = fb_read_span16(&r);
    }
    fb_statement statement;
    if (!r.failed) (void)fb_statement_decode(fields, count, &statement);
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
        "envelope_json", "envelope_protobuf", "json_scan", "batch", "invite", "frames",
        "stored",        "statement"};
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
        cmocka_unit_test(the_loop),
        cmocka_unit_test(carriers_and_listeners),
        cmocka_unit_test(a_recorder_and_a_schedule),
        cmocka_unit_test(a_node_is_one_allocation),
        cmocka_unit_test(readers_never_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
