/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/store/check.h"
#include "io/store/lmdb_env.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"

typedef struct fixture {
    char directory[64];
    char data[96];
    long page_bytes;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    strcpy(f->directory, "/tmp/fb-check-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->data, sizeof f->data, "%s/data.mdb", f->directory);
    f->page_bytes = sysconf(_SC_PAGESIZE);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    char lock[96];
    snprintf(lock, sizeof lock, "%s/lock.mdb", f->directory);
    unlink(f->data);
    unlink(lock);
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

/* A store with so many entries, keys 'a' and a number; `wrong` of them with another checksum. */
static void fill(fixture *f, uint32_t entries, uint32_t value_bytes, uint32_t wrong)
{
    fb_lmdb_env e = {.directory = f->directory, .map_bytes = 1u << 28, .map_bytes_max = 1u << 28};
    fb_error error = FB_OK;
    char why[256];
    assert_int_equal(fb_lmdb_env_open(&e, why, sizeof why, &error), 0);
    assert_true(e.made);
    MDB_txn *txn;
    assert_int_equal(mdb_txn_begin(e.env, NULL, 0, &txn), 0);
    uint8_t *bytes = calloc(1, FB_LMDB_SUM_BYTES + value_bytes);
    for (uint32_t i = 0; i < entries; i++) {
        uint8_t key[5] = {'a'};
        fb_store_be(key + 1, i, 4);
        uint64_t sum =
            fb_xxh64(bytes + FB_LMDB_SUM_BYTES, value_bytes, fb_xxh64(key, sizeof key, 0));
        fb_store_be(bytes, i < wrong ? sum + 1 : sum, FB_LMDB_SUM_BYTES);
        MDB_val k = {sizeof key, key}, v = {FB_LMDB_SUM_BYTES + value_bytes, bytes};
        assert_int_equal(mdb_put(txn, e.data, &k, &v, 0), 0);
    }
    free(bytes);
    assert_int_equal(mdb_txn_commit(txn), 0);
    fb_lmdb_env_free(&e);
}

static fb_store_report checked(fixture *f, bool whole)
{
    fb_store_report report;
    char why[256] = "";
    assert_int_equal(fb_store_check(f->directory, whole, &report, why, sizeof why), FB_OK);
    return report;
}

static void a_whole_check_sees_every_entry(void **state)
{
    fixture *f = *state;
    fill(f, 3000, 10, 7);
    fb_store_report report = checked(f, true);
    assert_true(report.sound);
    assert_int_equal(report.entries, 3000);
    assert_int_equal(report.damaged, 7);
}

static void an_empty_store_is_sound(void **state)
{
    fixture *f = *state;
    fill(f, 0, 0, 0);
    fb_store_report report = checked(f, true);
    assert_true(report.sound);
    assert_int_equal(report.entries, 0);
}

static void a_sample_is_bounded_and_spread(void **state)
{
    fixture *f = *state;
    fill(f, 200000, 16, 0);
    fb_store_report report = checked(f, false);
    assert_true(report.sound);
    assert_in_range(report.entries, 200, FB_STORE_SAMPLE_ENTRIES);
    assert_int_equal(report.damaged, 0);
}

static void large_values_bound_a_sample_as_well(void **state)
{
    fixture *f = *state;
    fill(f, 1500, 60000, 0);
    fb_store_report report = checked(f, false);
    assert_true(report.sound);
    assert_in_range(report.entries * 60000, 1, FB_STORE_SAMPLE_BYTES + 64 * 60000);
}

static void a_file_that_is_cut_is_not_sound(void **state)
{
    fixture *f = *state;
    fill(f, 20000, 100, 0);
    struct stat st;
    assert_int_equal(stat(f->data, &st), 0);
    assert_int_equal(truncate(f->data, st.st_size - f->page_bytes), 0);
    for (int whole = 0; whole < 2; whole++) {
        fb_store_report report = checked(f, whole != 0);
        assert_false(report.sound);
        assert_true(report.what[0] != 0);
    }
}

static void pages_of_noise_end_the_child_only(void **state)
{
    fixture *f = *state;
    static const uint8_t bytes[] = {0x00, 0x5a, 0x7f, 0xff};
    for (size_t i = 0; i < sizeof bytes; i++) {
        fill(f, 2000, 100, 0);
        int fd = open(f->data, O_RDWR);
        struct stat st;
        assert_int_equal(fstat(fd, &st), 0);
        uint8_t *page = malloc((size_t)f->page_bytes);
        memset(page, bytes[i], (size_t)f->page_bytes);
        for (long at = 2 * f->page_bytes; at < st.st_size; at += f->page_bytes) {
            assert_int_equal(pwrite(fd, page, (size_t)f->page_bytes, at), f->page_bytes);
        }
        free(page);
        close(fd);
        fb_store_report report = checked(f, true);
        assert_false(report.sound);
        assert_true(report.what[0] != 0);
        unlink(f->data);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_whole_check_sees_every_entry),  TEST(an_empty_store_is_sound),
        TEST(a_sample_is_bounded_and_spread),  TEST(large_values_bound_a_sample_as_well),
        TEST(a_file_that_is_cut_is_not_sound), TEST(pages_of_noise_end_the_child_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
