/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <lmdb.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/store/lmdb.h"
#include "io/store/lmdb_env.h"
#include "io/store/snapshot.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"

typedef struct fixture {
    char directory[64];
    sem_t ready;
    fb_lmdb *store;
    uint64_t incarnation;
} fixture;

static void notify(void *user)
{
    sem_post(&((fixture *)user)->ready);
}

static fb_lmdb_completion *await(fixture *f)
{
    for (;;) {
        fb_lmdb_completion *c = fb_lmdb_take(f->store);
        if (c != NULL) return c;
        while (sem_wait(&f->ready) != 0) {
        }
    }
}

static fb_status open_store(fixture *f, size_t map_min, size_t map_max, char *why, size_t why_len)
{
    fb_lmdb_options options = {
        .directory = f->directory,
        .map_bytes_min = map_min,
        .map_bytes_max = map_max,
        .notify = notify,
        .user = f,
    };
    return fb_lmdb_open(&options, &f->store, why, why_len);
}

static fb_error begin(fixture *f, uint64_t incarnation)
{
    fb_lmdb_begin(f->store, incarnation);
    f->incarnation = incarnation;
    for (;;) {
        fb_lmdb_completion *c = await(f);
        fb_lmdb_kind kind = c->kind;
        fb_error error = c->error;
        uint64_t named = c->incarnation;
        fb_lmdb_completion_free(c);
        if (kind == FB_LMDB_BEGUN) {
            assert_int_equal(named, incarnation);
            return error;
        }
    }
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    strcpy(f->directory, "/tmp/fb-store-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    sem_init(&f->ready, 0, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    fb_lmdb_close(f->store);
    sem_destroy(&f->ready);
    static const char *const names[] = {"data.mdb", "lock.mdb", "owner.lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", f->directory, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

static void put(fb_writer *w, uint8_t kind, const char *key, fb_span value)
{
    size_t at = w->at;
    fb_write_u8(w, kind);
    fb_write_u8(w, 0);
    fb_write_u16(w, (uint16_t)strlen(key));
    fb_write_u32(w, (uint32_t)value.len);
    fb_write_bytes(w, key, strlen(key));
    fb_write_span(w, value);
    while ((w->at - at) % 8 != 0) fb_write_u8(w, 0);
    assert_false(w->failed);
}

static void write_text(fixture *f, uint64_t w, const char *key, const char *value)
{
    uint8_t room[2048];
    fb_writer set = fb_writer_of(room, sizeof room);
    put(&set, FB_WRITE_PUT, key, fb_span_text(value));
    fb_lmdb_write(f->store, f->incarnation, w, fb_writer_span(&set));
}

static void await_written(fixture *f, uint64_t w)
{
    uint64_t seen = 0;
    while (seen < w) {
        fb_lmdb_completion *c = await(f);
        assert_int_equal(c->kind, FB_LMDB_WRITE);
        assert_int_equal(c->error, FB_OK);
        assert_int_equal(c->incarnation, f->incarnation);
        assert_true(c->w > seen);
        seen = c->w;
        fb_lmdb_completion_free(c);
    }
    assert_int_equal(seen, w);
}

static fb_lmdb_completion *read_items(fixture *f, const fb_read_item *items, size_t count)
{
    static uint64_t operation;
    uint8_t room[4096];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_u16(&w, (uint16_t)count);
    for (size_t i = 0; i < count; i++) fb_read_item_write(&w, &items[i]);
    fb_lmdb_read(f->store, ++operation, fb_writer_span(&w));
    fb_lmdb_completion *c = await(f);
    assert_int_equal(c->kind, FB_LMDB_READ);
    assert_int_equal(c->operation, operation);
    return c;
}

static fb_read_item key_item(const char *key)
{
    return (fb_read_item){FB_READ_KEY, 0, UINT32_MAX, 1, UINT32_MAX, fb_span_text(key), {NULL, 0}};
}

static fb_read_item range_item(const char *low, const char *high, uint8_t flags, uint32_t items)
{
    return (fb_read_item){
        FB_READ_RANGE, flags, UINT32_MAX, items, UINT32_MAX, fb_span_text(low), fb_span_text(high)};
}

/* "key=value,key=value" of the next item, with a '+' behind it when it was not given whole. */
static void expect_item(fb_reader *r, const char *expected)
{
    char text[512] = "";
    bool whole = fb_read_u8(r) == 1;
    uint32_t entries = fb_read_u32(r);
    for (uint32_t i = 0; i < entries; i++) {
        fb_read_entry e = fb_read_entry_next(r);
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%.*s=%.*s", i > 0 ? "," : "", (int)e.key.len,
                 (const char *)e.key.p, (int)e.value.len, (const char *)e.value.p);
    }
    if (!whole) strcat(text, "+");
    assert_false(r->failed);
    assert_string_equal(text, expected);
}

/* Reads on the caller's thread while write sets are committed by the other one: what is read is the
 * state of the write set that is named with it, whenever the commit ends. */
static void near_reads_name_the_state_they_show(void **state)
{
    fixture *f = *state;
    enum { SHOWN = 50 };
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 7), FB_OK);
    uint8_t room[64];
    fb_writer set = fb_writer_of(room, sizeof room);
    fb_read_item item = key_item("n");
    fb_write_u16(&set, 1);
    fb_read_item_write(&set, &item);
    uint64_t given = 0, shown = 0, while_writing = 0;
    while (while_writing < SHOWN) {
        char text[24];
        snprintf(text, sizeof text, "%d", (int)++given);
        write_text(f, given, "n", text);
        fb_lmdb_near near;
        if (!fb_lmdb_read_near(f->store, 7, fb_writer_span(&set), &near)) continue;
        assert_in_range(near.w, shown, given);
        shown = near.w;
        if (shown < given) while_writing++;
        char expected[32] = "";
        if (shown > 0) snprintf(expected, sizeof expected, "n=%d", (int)shown);
        fb_reader r = fb_reader_of(near.bytes);
        assert_int_equal(fb_read_u64(&r), 7);
        expect_item(&r, expected);
        assert_false(fb_lmdb_read_near(f->store, 8, fb_writer_span(&set), &near));
    }
    fb_lmdb_stats stats;
    fb_lmdb_stats_get(f->store, &stats);
    assert_true(stats.near_reads >= while_writing);
    await_written(f, given);
}

static void reads_keys_and_ranges(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 7), FB_OK);
    uint8_t room[1024];
    fb_writer set = fb_writer_of(room, sizeof room);
    put(&set, FB_WRITE_PUT, "a", fb_span_text("1"));
    put(&set, FB_WRITE_PUT, "b", fb_span_text("2"));
    put(&set, FB_WRITE_PUT, "ba", fb_span_text("3"));
    put(&set, FB_WRITE_PUT, "c", fb_span_text(""));
    put(&set, FB_WRITE_PUT, "d", fb_span_text("gone"));
    fb_lmdb_write(f->store, 7, 1, fb_writer_span(&set));
    set = fb_writer_of(room, sizeof room);
    put(&set, FB_WRITE_DELETE, "d", fb_span_text(""));
    put(&set, FB_WRITE_DELETE, "absent", fb_span_text(""));
    put(&set, FB_WRITE_PUT, "c", fb_span_text("44444"));
    fb_lmdb_write(f->store, 7, 2, fb_writer_span(&set));
    await_written(f, 2);

    fb_read_item items[] = {
        key_item("b"),
        key_item("d"),
        range_item("", "", 0, 100),
        range_item("b", "c", 0, 100),
        range_item("b", "c", FB_READ_DESCENDING, 100),
        range_item("", "", FB_READ_DESCENDING, 2),
        range_item("bb", "zz", FB_READ_DESCENDING, 1),
        range_item("x", "", 0, 1),
        range_item("", "", 0, 4),
        range_item("", "", 0, 100),
    };
    items[2].value_bytes = 2;
    items[9].bytes = 1;
    fb_lmdb_completion *c = read_items(f, items, sizeof items / sizeof items[0]);
    assert_int_equal(c->error, FB_OK);
    assert_int_equal(c->w, 2);
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    assert_int_equal(fb_read_u64(&r), 7);
    expect_item(&r, "b=2");
    expect_item(&r, "");
    expect_item(&r, "a=1,b=2,ba=3,c=44");
    expect_item(&r, "b=2,ba=3");
    expect_item(&r, "ba=3,b=2");
    expect_item(&r, "c=44444,ba=3+");
    expect_item(&r, "c=44444");
    expect_item(&r, "");
    expect_item(&r, "a=1,b=2,ba=3,c=44444");
    expect_item(&r, "a=1+");
    assert_true(fb_reader_done(&r));
    fb_lmdb_completion_free(c);
}

static void what_was_acknowledged_is_there_after_a_new_open(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    for (uint64_t w = 1; w <= 200; w++) {
        char key[16];
        snprintf(key, sizeof key, "k%03u", (unsigned)w);
        write_text(f, w, key, "v");
    }
    await_written(f, 200);
    fb_lmdb_stats stats;
    fb_lmdb_stats_get(f->store, &stats);
    assert_int_equal(stats.write_sets, 200);
    assert_int_equal(stats.entries, 200);
    assert_true(stats.commits <= stats.write_sets);
    fb_lmdb_close(f->store);

    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 2), FB_OK);
    fb_read_item item = range_item("", "", 0, 1000);
    fb_lmdb_completion *c = read_items(f, &item, 1);
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    assert_int_equal(fb_read_u64(&r), 2);
    assert_int_equal(fb_read_u8(&r), 1);
    assert_int_equal(fb_read_u32(&r), 200);
    assert_int_equal(c->w, 0);
    fb_lmdb_completion_free(c);
}

static void the_map_grows_until_its_bound(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 64 << 10, 4 << 20, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    static uint8_t value[65536], room[sizeof value + 64];
    memset(value, 'x', sizeof value);
    uint64_t w = 0, durable = 0;
    fb_error error = FB_OK;
    while (error == FB_OK && w < 100) {
        char key[16];
        snprintf(key, sizeof key, "k%03u", (unsigned)++w);
        fb_writer set = fb_writer_of(room, sizeof room);
        put(&set, FB_WRITE_PUT, key, fb_span_of(value, sizeof value));
        fb_lmdb_write(f->store, 1, w, fb_writer_span(&set));
        fb_lmdb_completion *c = await(f);
        error = c->error;
        if (error == FB_OK) durable = w;
        fb_lmdb_completion_free(c);
    }
    assert_int_equal(error, FB_ERR_STORE_FAILED);
    assert_true(durable > 32); /* 64 KiB grew to 4 MiB */
    fb_lmdb_stats stats;
    fb_lmdb_stats_get(f->store, &stats);
    assert_int_equal(stats.map_bytes, 4 << 20);
    assert_int_equal(stats.entries, durable);
}

static void after_a_failure_everything_later_fails_until_begin(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    write_text(f, 1, "before", "1");
    await_written(f, 1);

    /* The file may not grow: the database's write fails as on a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, none;
    getrlimit(RLIMIT_FSIZE, &old);
    none = old;
    none.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &none);
    write_text(f, 2, "lost", "2");
    fb_lmdb_completion *c = await(f);
    assert_int_equal(c->kind, FB_LMDB_WRITE);
    assert_int_equal(c->error, FB_ERR_STORE_FAILED);
    assert_int_equal(c->w, 2);
    assert_true(strlen(c->detail) > 0);
    fb_lmdb_completion_free(c);
    setrlimit(RLIMIT_FSIZE, &old);

    write_text(f, 3, "later", "3");
    c = await(f);
    assert_int_equal(c->error, FB_ERR_STORE_FAILED);
    assert_int_equal(c->w, 3);
    fb_lmdb_completion_free(c);

    assert_int_equal(begin(f, 2), FB_OK);
    write_text(f, 1, "again", "4");
    await_written(f, 1);
    fb_read_item item = range_item("", "", 0, 10);
    c = read_items(f, &item, 1);
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    fb_read_u64(&r);
    expect_item(&r, "again=4,before=1");
    fb_lmdb_completion_free(c);
}

static void sets_of_an_old_incarnation_are_never_applied(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    assert_int_equal(begin(f, 2), FB_OK);
    f->incarnation = 1;
    write_text(f, 1, "old", "1");
    f->incarnation = 2;
    write_text(f, 1, "new", "2");
    await_written(f, 1);
    fb_read_item item = range_item("", "", 0, 10);
    fb_lmdb_completion *c = read_items(f, &item, 1);
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    fb_read_u64(&r);
    expect_item(&r, "new=2");
    fb_lmdb_completion_free(c);
}

/* Opens the closed store's data with LMDB alone and hands one value to `change`. */
static void tamper(fixture *f, const char *database, const char *key, const void *value, size_t len)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 2), 0);
    assert_int_equal(mdb_env_open(env, f->directory, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, database, 0, &dbi), 0);
    MDB_val k = {strlen(key), (void *)(uintptr_t)key};
    MDB_val v = {len, (void *)(uintptr_t)value};
    assert_int_equal(mdb_put(txn, dbi, &k, &v, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void a_damaged_value_fails_its_read(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    write_text(f, 1, "a", "fine");
    write_text(f, 2, "b", "fine");
    await_written(f, 2);
    fb_lmdb_close(f->store);
    tamper(f, "data", "b", "12345678fine", 12);

    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 2), FB_OK);
    fb_read_item item = key_item("a");
    fb_lmdb_completion *c = read_items(f, &item, 1);
    assert_int_equal(c->error, FB_OK);
    fb_lmdb_completion_free(c);
    item = range_item("", "", 0, 10);
    item.value_bytes = 0; /* damage is found even when no byte of it was asked for */
    c = read_items(f, &item, 1);
    assert_int_equal(c->error, FB_ERR_STORE_DAMAGED);
    assert_non_null(strstr(c->detail, "checksum"));
    assert_int_equal(c->len, 8);
    fb_lmdb_completion_free(c);
    fb_lmdb_stats stats;
    fb_lmdb_stats_get(f->store, &stats);
    assert_int_equal(stats.damaged, 1);
}

static void a_store_of_another_format_is_refused(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    fb_lmdb_close(f->store);
    for (uint32_t i = 0; i < 2; i++) {
        const uint8_t format[4] = {0, 0, 0, i == 0 ? FB_LMDB_FORMAT + 1 : FB_LMDB_FORMAT - 1};
        tamper(f, "meta", "format", (const char *)format, sizeof format);
        char why[512];
        fb_error error = i == 0 ? FB_ERR_VERSION_NEWER : FB_ERR_VERSION_OLDER;
        assert_int_equal(open_store(f, 0, 0, why, sizeof why), error);
        assert_null(f->store);
        assert_non_null(strstr(why, i == 0 ? "newer program" : "older program"));
        assert_non_null(strstr(why, f->directory));
    }
}

static void a_second_process_is_kept_out(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    pid_t child = fork();
    if (child == 0) {
        fixture other = {0};
        strcpy(other.directory, f->directory);
        char why[256];
        fb_status status = open_store(&other, 0, 0, why, sizeof why);
        _exit(status == FB_ERR_STORE_LOCKED && strstr(why, "another process") != NULL ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

/* The directory that damage was moved to, gone again when this returns. */
static void expect_aside(const fixture *f, unsigned number)
{
    char directory[96], path[128];
    snprintf(directory, sizeof directory, "%s.damaged-%u", f->directory, number);
    snprintf(path, sizeof path, "%s/data.mdb", directory);
    const fb_lmdb_opening *opening = fb_lmdb_opening_of(f->store);
    assert_int_equal(opening->found, FB_LMDB_FOUND_DAMAGED);
    assert_true(strlen(opening->damage) > 0);
    assert_string_equal(opening->aside, directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void expect_empty(fixture *f)
{
    assert_int_equal(begin(f, 1), FB_OK);
    fb_read_item item = range_item("", "", 0, 10);
    fb_lmdb_completion *c = read_items(f, &item, 1);
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    fb_read_u64(&r);
    expect_item(&r, "");
    fb_lmdb_completion_free(c);
}

static void a_file_that_is_no_database_is_moved_aside(void **state)
{
    fixture *f = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/data.mdb", f->directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 10000; i++) fputs("no database ", file);
    fclose(file);
    char why[256];
    assert_int_equal(open_store(f, 0, 0, why, sizeof why), FB_OK);
    expect_empty(f);
    expect_aside(f, 1);
}

static void a_store_whose_format_is_no_number_is_moved_aside(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(fb_lmdb_opening_of(f->store)->found, FB_LMDB_FOUND_NOTHING);
    fb_lmdb_close(f->store);
    tamper(f, "meta", "format", "?", 1);
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    expect_empty(f);
    expect_aside(f, 1);
}

/* The file is cut while the store runs: whoever reads it says so and ends, and the next to open it
 * looks at all of it. */
static void a_page_that_cannot_be_read_ends_the_process_with_a_word(void **state)
{
    fixture *f = *state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        fixture other = {0};
        strcpy(other.directory, f->directory);
        sem_init(&other.ready, 0, 0);
        dup2(ends[1], STDERR_FILENO);
        char path[128];
        snprintf(path, sizeof path, "%s/data.mdb", f->directory);
        if (open_store(&other, 0, 0, NULL, 0) != FB_OK || begin(&other, 1) != FB_OK) _exit(2);
        write_text(&other, 1, "a", "1");
        await_written(&other, 1);
        if (truncate(path, 0) != 0) _exit(2);
        fb_read_item item = key_item("a");
        read_items(&other, &item, 1);
        _exit(2);
    }
    close(ends[1]);
    char said[512] = "";
    size_t len = 0;
    ssize_t n;
    while ((n = read(ends[0], said + len, sizeof said - 1 - len)) > 0) len += (size_t)n;
    close(ends[0]);
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 1);
    assert_non_null(strstr(said, f->directory));
    char suspect[128];
    snprintf(suspect, sizeof suspect, "%s/suspect", f->directory);
    assert_int_equal(access(suspect, F_OK), 0);
    unlink(suspect);
}

/* Pages that make no tree: a read fails, and the next to open it looks at all of it. */
static void a_tree_that_cannot_be_followed_is_looked_at_next_time(void **state)
{
    fixture *f = *state;
    pid_t child = fork();
    if (child == 0) {
        fixture other = {0};
        strcpy(other.directory, f->directory);
        sem_init(&other.ready, 0, 0);
        if (open_store(&other, 0, 0, NULL, 0) != FB_OK || begin(&other, 1) != FB_OK) _exit(2);
        write_text(&other, 1, "a", "1");
        await_written(&other, 1);
        char path[128];
        snprintf(path, sizeof path, "%s/data.mdb", f->directory);
        /* LMDB's pages say at their byte 10 what they are: here neither branch nor leaf. */
        int fd = open(path, O_RDWR);
        for (long page = 2; page < 7; page++) {
            static const uint8_t flags[2] = {4, 0};
            if (pwrite(fd, flags, sizeof flags, page * sysconf(_SC_PAGESIZE) + 10) < 0) _exit(2);
        }
        fb_read_item item = key_item("a");
        fb_lmdb_completion *c = read_items(&other, &item, 1);
        _exit(c->error == FB_ERR_STORE_DAMAGED ? 1 : 2);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 1);
    char suspect[128];
    snprintf(suspect, sizeof suspect, "%s/suspect", f->directory);
    assert_int_equal(access(suspect, F_OK), 0);
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_not_equal(access(suspect, F_OK), 0);
    expect_empty(f);
    expect_aside(f, 1);
}

static void a_removed_file_takes_no_write_and_is_not_made_anew(void **state)
{
    fixture *f = *state;
    char path[128], elsewhere[128];
    snprintf(path, sizeof path, "%s/data.mdb", f->directory);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f->directory);
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    write_text(f, 1, "a", "1");
    await_written(f, 1);
    assert_int_equal(rename(path, elsewhere), 0);
    write_text(f, 2, "b", "2");
    fb_lmdb_completion *c = await(f);
    assert_int_equal(c->error, FB_ERR_STORE_FAILED);
    assert_non_null(strstr(c->detail, "removed"));
    fb_lmdb_completion_free(c);
    assert_int_equal(begin(f, 2), FB_ERR_STORE_FAILED);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(rename(elsewhere, path), 0);
    assert_int_equal(begin(f, 3), FB_OK);
    fb_read_item item = range_item("", "", 0, 10);
    c = read_items(f, &item, 1);
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    fb_read_u64(&r);
    expect_item(&r, "a=1");
    fb_lmdb_completion_free(c);
}

/* Another process that reads, and says so by a byte; it never ends by itself. */
static pid_t reader_begin(const fixture *f)
{
    int told[2];
    char byte;
    assert_int_equal(pipe(told), 0);
    pid_t reader = fork();
    assert_true(reader >= 0);
    if (reader == 0) {
        fb_store_snapshot *snapshot;
        char why[256];
        if (fb_store_snapshot_open(f->directory, &snapshot, why, sizeof why) != FB_OK) _exit(1);
        if (write(told[1], "r", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    return reader;
}

static void who_was_killed_while_reading_keeps_no_room(void **state)
{
    fixture *f = *state;
    char value[1024];
    fb_lmdb_stats before, after;
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    write_text(f, 1, "a", "1");
    await_written(f, 1);
    pid_t reader = reader_begin(f);
    kill(reader, SIGKILL);
    assert_int_equal(waitpid(reader, NULL, 0), reader);
    fb_lmdb_stats_get(f->store, &before);
    for (uint64_t w = 2; w < 6 * FB_LMDB_READERS_EVERY; w++) {
        write_text(f, w, "a", value + w % 128);
        await_written(f, w);
    }
    fb_lmdb_stats_get(f->store, &after);
    /* Each commit takes a few pages anew for as long as that reader counts. */
    assert_true(after.used_bytes - before.used_bytes < UINT64_C(4096) * 8 * FB_LMDB_READERS_EVERY);
}

static void a_malformed_set_fails_whole(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_store(f, 0, 0, NULL, 0), FB_OK);
    assert_int_equal(begin(f, 1), FB_OK);
    uint8_t room[256];
    fb_writer set = fb_writer_of(room, sizeof room);
    put(&set, FB_WRITE_PUT, "a", fb_span_text("1"));
    put(&set, 9, "b", fb_span_text("2"));
    fb_lmdb_write(f->store, 1, 1, fb_writer_span(&set));
    fb_lmdb_completion *c = await(f);
    assert_int_equal(c->error, FB_ERR_STORE_FAILED);
    fb_lmdb_completion_free(c);
    assert_int_equal(begin(f, 2), FB_OK);
    fb_read_item item = range_item("", "", 0, 10);
    c = read_items(f, &item, 1);
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    fb_read_u64(&r);
    expect_item(&r, "");
    fb_lmdb_completion_free(c);

    fb_lmdb_read(f->store, 99, fb_span_of("\0\3\1", 3));
    c = await(f);
    assert_int_equal(c->operation, 99);
    assert_int_equal(c->error, FB_ERR_STORE_FAILED);
    fb_lmdb_completion_free(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(near_reads_name_the_state_they_show),
        TEST(reads_keys_and_ranges),
        TEST(what_was_acknowledged_is_there_after_a_new_open),
        TEST(the_map_grows_until_its_bound),
        TEST(after_a_failure_everything_later_fails_until_begin),
        TEST(sets_of_an_old_incarnation_are_never_applied),
        TEST(a_damaged_value_fails_its_read),
        TEST(a_store_of_another_format_is_refused),
        TEST(a_second_process_is_kept_out),
        TEST(a_file_that_is_no_database_is_moved_aside),
        TEST(a_store_whose_format_is_no_number_is_moved_aside),
        TEST(a_page_that_cannot_be_read_ends_the_process_with_a_word),
        TEST(a_tree_that_cannot_be_followed_is_looked_at_next_time),
        TEST(a_removed_file_takes_no_write_and_is_not_made_anew),
        TEST(who_was_killed_while_reading_keeps_no_room),
        TEST(a_malformed_set_fails_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
