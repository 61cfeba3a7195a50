/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated disk promises, and what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/disk/disk.h"

#define SECTOR 64u

static fb_disk *disk_of(uint64_t faults)
{
    const fb_disk_options options = {.seed = {7, 0},
                                     .sector_bytes = SECTOR,
                                     .files = 6,
                                     .file_sectors = 8,
                                     .pending = 32,
                                     .faults = faults};
    fb_disk *d = fb_disk_create(&options);
    assert_non_null(d);
    return d;
}

static uint32_t open_file(fb_disk *d, const char *name, unsigned flags)
{
    uint32_t handle = 0;
    assert_int_equal(fb_disk_open(d, name, flags, &handle), FB_DISK_OK);
    return handle;
}

static void fill(fb_disk *d, uint32_t handle, uint32_t sector, uint32_t count, uint8_t with)
{
    uint8_t bytes[4 * SECTOR];
    uint32_t done;
    memset(bytes, with, sizeof bytes);
    assert_int_equal(fb_disk_write(d, handle, sector * SECTOR, bytes, count * SECTOR, &done),
                     FB_DISK_OK);
    assert_int_equal(done, count * SECTOR);
}

/* The byte at a place, or -1 behind the end. */
static int byte_at(fb_disk *d, const char *name, uint32_t at)
{
    uint8_t byte;
    uint32_t handle, done;
    if (fb_disk_open(d, name, 0, &handle) != FB_DISK_OK) return -1;
    assert_int_equal(fb_disk_read(d, handle, at, &byte, 1, &done), FB_DISK_OK);
    fb_disk_close(d, handle);
    return done == 0 ? -1 : byte;
}

static void synced_survives(void **state)
{
    (void)state;
    fb_disk *d = disk_of(DISK_FAULT(LOSE_UNSYNCED));
    uint32_t h = open_file(d, "f", FB_DISK_CREATE);
    fill(d, h, 0, 1, 1);
    assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
    assert_int_equal(fb_disk_crash_choices(d), 1);
    fill(d, h, 0, 1, 2);
    fill(d, h, 1, 1, 3);
    assert_int_equal(fb_disk_crash_choices(d), 3);
    fb_disk *other = disk_of(DISK_FAULT(LOSE_UNSYNCED));
    static const int expected[3][2] = {{1, -1}, {2, -1}, {2, 3}};
    for (uint64_t choice = 0; choice < 3; choice++) {
        fb_disk_copy(other, d);
        fb_disk_crash(other, choice);
        assert_int_equal(byte_at(other, "f", 0), expected[choice][0]);
        assert_int_equal(byte_at(other, "f", SECTOR), expected[choice][1]);
    }
    /* The process alone: everything is there, and its handle is not. */
    fb_disk_restart(d);
    assert_int_equal(byte_at(d, "f", SECTOR), 3);
    assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_EIO);
    fb_disk_destroy(other);
    fb_disk_destroy(d);
}

static void a_sync_covers_what_it_should(void **state)
{
    (void)state;
    for (int reorder = 0; reorder < 2; reorder++) {
        fb_disk *d = disk_of(
            fb_disk_fault_set(reorder ? FB_DISK_FAULT_REORDER : FB_DISK_FAULT_LOSE_UNSYNCED));
        uint32_t a = open_file(d, "a", FB_DISK_CREATE), b = open_file(d, "b", FB_DISK_CREATE);
        fill(d, a, 0, 1, 1);
        fill(d, b, 0, 1, 2);
        assert_int_equal(fb_disk_sync(d, b, 0), FB_DISK_OK);
        fb_disk_crash(d, 0);
        assert_int_equal(byte_at(d, "a", 0), reorder ? -1 : 1);
        assert_int_equal(byte_at(d, "b", 0), 2);
        fb_disk_destroy(d);
    }
}

/* Every outcome of two writes that nothing orders, and of the sectors of one. */
static void outcomes_are_all_there(void **state)
{
    (void)state;
    fb_disk *d = disk_of(fb_disk_fault_set(FB_DISK_FAULT_REORDER));
    fb_disk *other = disk_of(0);
    uint32_t h = open_file(d, "f", FB_DISK_CREATE);
    fill(d, h, 0, 2, 1);
    assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
    fill(d, h, 0, 1, 2);
    fill(d, h, 1, 1, 3);
    unsigned seen = 0;
    assert_int_equal(fb_disk_crash_choices(d), 4);
    for (uint64_t choice = 0; choice < 4; choice++) {
        fb_disk_copy(other, d);
        fb_disk_crash(other, choice);
        int first = byte_at(other, "f", 0), second = byte_at(other, "f", SECTOR);
        seen |= 1u << ((first == 2) + 2 * (second == 3));
    }
    assert_int_equal(seen, 15);
    /* Two sectors of one call: 4 sets, and each of both torn at 7 places in each of them. */
    fb_disk_set_faults(d, DISK_FAULT(LOSE_UNSYNCED) | DISK_FAULT(REORDER) | DISK_FAULT(TEAR));
    assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
    fill(d, h, 0, 2, 4);
    assert_int_equal(fb_disk_crash_choices(d), 4 * (1 + 2 * FB_DISK_CUTS));
    unsigned torn = 0;
    for (uint64_t choice = 0; choice < fb_disk_crash_choices(d); choice++) {
        fb_disk_copy(other, d);
        fb_disk_crash(other, choice);
        for (uint32_t cut = 1; cut < 8; cut++) {
            uint32_t at = cut * SECTOR / 8;
            if (byte_at(other, "f", at - 1) == 4 && byte_at(other, "f", at) == 2) torn |= 1u << cut;
        }
    }
    assert_int_equal(torn, 0xfe);
    fb_disk_destroy(other);
    fb_disk_destroy(d);
}

static void names_need_the_directory(void **state)
{
    (void)state;
    fb_disk *d = disk_of(fb_disk_fault_set(FB_DISK_FAULT_RENAME_LOST));
    fb_disk *other = disk_of(0);
    uint32_t h = open_file(d, "f", FB_DISK_CREATE);
    assert_int_equal(fb_disk_sync_directory(d), FB_DISK_OK);
    fill(d, h, 0, 1, 1);
    assert_int_equal(fb_disk_rename(d, "f", "g"), FB_DISK_OK);
    assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
    assert_int_equal(fb_disk_crash_choices(d), 2);
    for (uint64_t choice = 0; choice < 2; choice++) {
        fb_disk_copy(other, d);
        fb_disk_crash(other, choice);
        assert_int_equal(byte_at(other, choice == 0 ? "f" : "g", 0), 1);
        assert_int_equal(byte_at(other, choice == 0 ? "g" : "f", 0), -1);
    }
    assert_int_equal(fb_disk_sync_directory(d), FB_DISK_OK);
    assert_int_equal(fb_disk_crash_choices(d), 1);
    fb_disk_destroy(other);
    fb_disk_destroy(d);
}

static void a_failed_sync_leaves_clean_pages(void **state)
{
    (void)state;
    for (int clean = 0; clean < 2; clean++) {
        fb_disk *d = disk_of(0);
        uint32_t h = open_file(d, "f", FB_DISK_CREATE);
        fill(d, h, 0, 1, 1);
        assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
        fill(d, h, 0, 1, 2);
        fb_disk_plan(d, clean ? FB_DISK_FAULT_SYNC_CLEAN : FB_DISK_FAULT_EIO_SYNC,
                     fb_disk_calls(d) + 1, 0);
        assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_EIO);
        assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
        assert_int_equal(byte_at(d, "f", 0), 2);
        fb_disk_crash(d, 0);
        assert_int_equal(byte_at(d, "f", 0), clean ? 1 : 2);
        fb_disk_destroy(d);
    }
}

static void a_write_goes_astray(void **state)
{
    (void)state;
    for (int stale = 0; stale < 2; stale++) {
        fb_disk *d = disk_of(0);
        uint32_t h = open_file(d, "f", FB_DISK_CREATE);
        fill(d, h, 0, 3, 1);
        assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
        fb_disk_plan(d, stale ? FB_DISK_FAULT_STALE : FB_DISK_FAULT_MISDIRECT, fb_disk_calls(d) + 1,
                     stale ? 0 : 3);
        fill(d, h, 0, 1, 2);
        assert_int_equal(byte_at(d, "f", 0), 2);
        assert_int_equal(fb_disk_sync(d, h, 0), FB_DISK_OK);
        fb_disk_crash(d, 0);
        assert_int_equal(byte_at(d, "f", 0), 1);
        assert_int_equal(byte_at(d, "f", 2 * SECTOR), stale ? 1 : 2);
        fb_disk_destroy(d);
    }
}

static void a_full_disk_takes_a_part(void **state)
{
    (void)state;
    const fb_disk_options options = {
        .sector_bytes = SECTOR, .files = 2, .file_sectors = 8, .pending = 32, .space_sectors = 3};
    fb_disk *d = fb_disk_create(&options);
    uint8_t bytes[4 * SECTOR] = {0};
    uint32_t h = open_file(d, "f", FB_DISK_CREATE), done;
    assert_int_equal(fb_disk_write(d, h, 0, bytes, sizeof bytes, &done), FB_DISK_ENOSPC);
    assert_int_equal(done, 2 * SECTOR);
    assert_int_equal(fb_disk_truncate(d, h, 0), FB_DISK_OK);
    assert_int_equal(fb_disk_write(d, h, 0, bytes, 3 * SECTOR, &done), FB_DISK_OK);
    /* What has space is written over without any. */
    assert_int_equal(fb_disk_write(d, h, 0, bytes, 3 * SECTOR, &done), FB_DISK_OK);
    assert_int_equal(fb_disk_fired(d, FB_DISK_FAULT_ENOSPC), 1);
    fb_disk_destroy(d);
}

/* A late sync is not there when power fails, and is there when its time has come. */
static void a_late_sync_comes_late(void **state)
{
    (void)state;
    fb_disk *d = disk_of(DISK_FAULT(LOSE_UNSYNCED));
    uint32_t h = open_file(d, "f", FB_DISK_CREATE);
    fill(d, h, 0, 1, 1);
    fb_disk_plan(d, FB_DISK_FAULT_LATENCY, fb_disk_calls(d) + 1, 0);
    assert_int_equal(fb_disk_sync(d, h, 1000), FB_DISK_LATE);
    assert_int_equal(fb_disk_crash_choices(d), 2);
    /* At most 10 s; a call that looks takes 10 us. */
    for (uint32_t i = 0; i < 1000001; i++) byte_at(d, "f", 0);
    assert_int_equal(fb_disk_crash_choices(d), 1);
    fb_disk_crash(d, 0);
    assert_int_equal(byte_at(d, "f", 0), 1);
    fb_disk_destroy(d);
}

/* The same seed makes the same disk, whatever was drawn for other calls. */
static void draws_are_keyed(void **state)
{
    (void)state;
    uint64_t digests[2];
    for (int i = 0; i < 2; i++) {
        fb_disk *d = disk_of(DISK_FAULT(LOSE_UNSYNCED) | DISK_FAULT(REORDER));
        uint32_t h = open_file(d, "f", FB_DISK_CREATE);
        for (uint8_t n = 0; n < 6; n++) fill(d, h, n, 1, n);
        fb_disk_crash_drawn(d, 3);
        digests[i] = fb_disk_digest(d);
        fb_disk_destroy(d);
    }
    assert_int_equal(digests[0], digests[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_survives),
        cmocka_unit_test(a_sync_covers_what_it_should),
        cmocka_unit_test(outcomes_are_all_there),
        cmocka_unit_test(names_need_the_directory),
        cmocka_unit_test(a_failed_sync_leaves_clean_pages),
        cmocka_unit_test(a_write_goes_astray),
        cmocka_unit_test(a_full_disk_takes_a_part),
        cmocka_unit_test(a_late_sync_comes_late),
        cmocka_unit_test(draws_are_keyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
