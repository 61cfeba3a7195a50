/* SPDX-License-Identifier: Apache-2.0 */
/* The driver with a real node, a real store and real sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/keys/provider_sodium.h"
#include "io/loop.h"
#include "protocol/base/cursor.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

typedef struct fixture {
    char directory[64];
    char store[80];
    uv_loop_t uv;
    fb_sodium *sodium;
    fb_loop *loop;
    char bound[64];
    bool stopped;
    int started, running, ended, store_failures, opened, read_only, writable, fatal;
    uint64_t incarnations[16];
    int replies;
    fb_error reply_error;
} fixture;

static void happened(void *user, const fb_loop_event *event)
{
    fixture *f = user;
    assert_non_null(event->detail);
    if (event->what == FB_LOOP_STARTED) f->incarnations[f->started++ % 16] = event->incarnation;
    if (event->what == FB_LOOP_RUNNING) f->running++;
    if (event->what == FB_LOOP_ENDED) f->ended++;
    if (event->what == FB_LOOP_STORE) f->store_failures++;
    if (event->what == FB_LOOP_OPENED) f->opened++;
    if (event->what == FB_LOOP_READ_ONLY) f->read_only++;
    if (event->what == FB_LOOP_WRITABLE) f->writable++;
    if (event->what == FB_LOOP_FATAL) f->fatal++;
}

static void stopped(void *user)
{
    ((fixture *)user)->stopped = true;
}

static void replied(void *user, fb_error error, bool more, fb_span answer)
{
    fixture *f = user;
    (void)answer;
    assert_false(more);
    f->replies++;
    f->reply_error = error;
}

static fb_status open_loop(fixture *f, char *why, size_t why_len)
{
    fb_loop_options options = {
        .uv = &f->uv,
        .node = fb_options_small(),
        .store = {.directory = f->store},
        .happened = happened,
        .user = f,
    };
    fb_b32 identity = {{1}}, link = {{2}};
    assert_int_equal(fb_sodium_create(256, &f->sodium), FB_OK);
    options.node.provider = fb_sodium_provider(f->sodium);
    assert_int_equal(fb_sodium_add_signing(f->sodium, &identity, &options.node.identity_key),
                     FB_OK);
    assert_int_equal(fb_sodium_add_dh(f->sodium, &link, &options.node.link_key), FB_OK);
    return fb_loop_open(&options, &f->loop, why, why_len);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    strcpy(f->directory, "/tmp/fb-loop-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->store, sizeof f->store, "%s/store", f->directory);
    uv_loop_init(&f->uv);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    if (f->loop != NULL && !f->stopped) fb_loop_stop(f->loop, stopped, f);
    uv_run(&f->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->uv), 0);
    fb_sodium_destroy(f->sodium);
    static const char *const names[] = {"data.mdb", "lock.mdb", "owner.lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", f->store, names[i]);
        unlink(path);
    }
    rmdir(f->store);
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

#define RUN_UNTIL(f, condition)                                                                    \
    while (!(condition)) uv_run(&(f)->uv, UV_RUN_ONCE)

static void a_node_starts_answers_and_stops(void **state)
{
    fixture *f = *state;
    char why[256];
    assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
    assert_int_equal(fb_loop_request(f->loop, FB_VERB_STATUS, 0, (fb_span){NULL, 0}, replied, f),
                     0); /* not started */
    RUN_UNTIL(f, f->running == 1);
    assert_int_equal(f->started, 1);
    uint64_t first = fb_loop_request(f->loop, FB_VERB_STATUS, 0, (fb_span){NULL, 0}, replied, f);
    uint64_t second = fb_loop_request(f->loop, (fb_verb)9999, 0, (fb_span){NULL, 0}, replied, f);
    assert_true(first != 0 && second > first);
    assert_int_equal(f->replies, 0); /* from the loop, never from within the call */
    RUN_UNTIL(f, f->replies == 2);
    assert_int_equal(f->reply_error, FB_ERR_UNSUPPORTED);
    uint64_t third = fb_loop_request(f->loop, FB_VERB_STATUS, 0, (fb_span){NULL, 0}, replied, f);
    fb_loop_cancel(f->loop, third);
    fb_loop_cancel(f->loop, third);
    fb_loop_credit(f->loop, third, 1);
    fb_loop_stats stats;
    fb_loop_stats_get(f->loop, &stats);
    assert_true(stats.running);
    assert_int_equal(stats.incarnation, f->incarnations[0]);
    assert_int_equal(stats.requests, 0);
    fb_loop_stop(f->loop, stopped, f);
    RUN_UNTIL(f, f->stopped);
    assert_int_equal(f->replies, 2);
    assert_int_equal(f->ended, 0);
}

static void every_start_has_a_fresh_incarnation(void **state)
{
    fixture *f = *state;
    char why[256];
    for (int i = 0; i < 3; i++) {
        f->stopped = false;
        assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
        RUN_UNTIL(f, f->running == i + 1);
        fb_loop_stop(f->loop, stopped, f);
        RUN_UNTIL(f, f->stopped);
        fb_sodium_destroy(f->sodium);
        f->sodium = NULL;
    }
    assert_true(f->incarnations[0] != f->incarnations[1]);
    assert_true(f->incarnations[1] != f->incarnations[2]);
    assert_true(f->incarnations[0] != f->incarnations[2]);
}

static bool runs(fixture *f)
{
    fb_loop_stats stats;
    fb_loop_stats_get(f->loop, &stats);
    return stats.running;
}

static void a_store_that_takes_no_writes_is_read_until_it_does(void **state)
{
    fixture *f = *state;
    char why[256];
    assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
    /* As a full disk: the first write set, which holds the incarnation, cannot be written. */
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, none;
    getrlimit(RLIMIT_FSIZE, &old);
    none = old;
    none.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &none);
    RUN_UNTIL(f, f->read_only == 1 && runs(f));
    /* The first failure ends an incarnation, whose callers were told; the second one stays. */
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->store_failures, 1);
    assert_true(f->incarnations[0] != f->incarnations[1]);
    fb_loop_stats stats;
    fb_loop_stats_get(f->loop, &stats);
    assert_true(stats.read_only && stats.store.held);
    assert_int_equal(stats.last_end, FB_ERR_STORE_FAILED);
    assert_non_null(fb_loop_refusal(f->loop, FB_VERB_SPACE_CREATE));
    assert_int_equal(
        fb_loop_request(f->loop, FB_VERB_SPACE_CREATE, 0, (fb_span){NULL, 0}, replied, f), 0);
    assert_true(fb_loop_request(f->loop, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, replied, f) !=
                0);
    RUN_UNTIL(f, f->replies == 1);
    assert_int_equal(f->reply_error, FB_OK);
    setrlimit(RLIMIT_FSIZE, &old);
    RUN_UNTIL(f, f->writable == 1);
    fb_loop_stats_get(f->loop, &stats);
    assert_true(stats.running && !stats.read_only && !stats.store.held);
    assert_null(fb_loop_refusal(f->loop, FB_VERB_SPACE_CREATE));
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->read_only, 1);
}

static void a_stop_does_not_wait_for_a_disk(void **state)
{
    fixture *f = *state;
    char why[256];
    assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, none;
    getrlimit(RLIMIT_FSIZE, &old);
    none = old;
    none.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &none);
    RUN_UNTIL(f, f->read_only == 1);
    fb_loop_stop(f->loop, stopped, f);
    RUN_UNTIL(f, f->stopped);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(f->writable, 0);
}

static void nobody_waits(void *user)
{
    (void)user;
}

/* As a program of a later version leaves its store. */
static void write_version(fixture *f, uint32_t version)
{
    fb_lmdb_options options = {.directory = f->store, .notify = nobody_waits};
    fb_lmdb *store;
    char why[256];
    uint8_t room[64];
    fb_writer set = fb_writer_of(room, sizeof room);
    fb_write_u8(&set, FB_WRITE_PUT);
    fb_write_u8(&set, 0);
    fb_write_u16(&set, 2);
    fb_write_u32(&set, 4);
    fb_write_u8(&set, FB_TAG_META);
    fb_write_u8(&set, 1);
    fb_write_u32(&set, version);
    fb_write_u16(&set, 0); /* an entry is a multiple of 8 */
    assert_int_equal(fb_lmdb_open(&options, &store, why, sizeof why), FB_OK);
    fb_lmdb_begin(store, 1);
    fb_lmdb_write(store, 1, 1, fb_writer_span(&set));
    fb_lmdb_close(store);
}

static void a_store_of_a_later_version_is_refused_once(void **state)
{
    fixture *f = *state;
    char why[256];
    write_version(f, FB_STORE_VERSION + 1);
    assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
    RUN_UNTIL(f, f->fatal == 1);
    fb_loop_stats stats;
    fb_loop_stats_get(f->loop, &stats);
    assert_int_equal(stats.last_end, FB_ERR_VERSION_NEWER);
    assert_false(stats.started);
    fb_loop_stop(f->loop, stopped, f);
    RUN_UNTIL(f, f->stopped);
    assert_int_equal(f->started, 1); /* it is not tried again */
    f->stopped = false;
    write_version(f, FB_STORE_VERSION);
    fb_sodium_destroy(f->sodium);
    assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
    RUN_UNTIL(f, f->running == 1);
}

static void two_drivers_do_not_share_a_store(void **state)
{
    fixture *f = *state;
    char why[256];
    assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
    fb_sodium *sodium = f->sodium;
    fb_loop *loop = f->loop;
    f->loop = NULL;
    assert_int_equal(open_loop(f, why, sizeof why), FB_ERR_STORE_LOCKED);
    assert_null(f->loop);
    assert_non_null(strstr(why, f->store));
    fb_sodium_destroy(f->sodium);
    f->sodium = sodium;
    f->loop = loop;
    RUN_UNTIL(f, f->running == 1);
}

static void strangers_may_connect_once_the_node_runs(void **state)
{
    fixture *f = *state;
    char why[256];
    assert_int_equal(open_loop(f, why, sizeof why), FB_OK);
    assert_int_equal(
        fb_loop_listen(f->loop, "127.0.0.1:0", f->bound, sizeof f->bound, why, sizeof why), FB_OK);
    struct sockaddr_in to;
    char *colon = strrchr(f->bound, ':');
    assert_int_equal(uv_ip4_addr("127.0.0.1", atoi(colon + 1), &to), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    RUN_UNTIL(f, f->opened == 1);
    assert_int_equal(f->started, 1); /* nobody is taken in before START */
    close(fd);
    fb_loop_stats stats;
    do {
        uv_run(&f->uv, UV_RUN_ONCE);
        fb_loop_stats_get(f->loop, &stats);
    } while (stats.carrier.links > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_node_starts_answers_and_stops),
        TEST(every_start_has_a_fresh_incarnation),
        TEST(a_store_that_takes_no_writes_is_read_until_it_does),
        TEST(a_stop_does_not_wait_for_a_disk),
        TEST(a_store_of_a_later_version_is_refused_once),
        TEST(two_drivers_do_not_share_a_store),
        TEST(strangers_may_connect_once_the_node_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
