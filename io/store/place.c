/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/store/check.h"
#include "io/store/fault.h"

#define LEAF_BYTES 32u /* the longest name in the directory, or of one beside it, fits */

/* The directory's length was looked at. */
static void file_of(const char *directory, const char *leaf, char out[FB_LMDB_PATH_MAX])
{
    snprintf(out, FB_LMDB_PATH_MAX, "%s/%s", directory, leaf);
}

static fb_status failed(char *why, size_t why_len, const char *path, int error)
{
    snprintf(why, why_len, "%s: %s", path, strerror(error));
    return FB_ERR_STORE_FAILED;
}

static fb_status lock_take(const char *directory, int *lock_fd, char *why, size_t why_len)
{
    char path[FB_LMDB_PATH_MAX];
    file_of(directory, "owner.lock", path);
    *lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*lock_fd < 0) return failed(why, why_len, path, errno);
    if (flock(*lock_fd, LOCK_EX | LOCK_NB) == 0) return FB_OK;
    if (errno != EWOULDBLOCK) return failed(why, why_len, path, errno);
    snprintf(why, why_len, "%s is in use by another process", directory);
    return FB_ERR_STORE_LOCKED;
}

/* Names in a directory are durable once it is. */
static int directory_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* The store's names, and that of its directory. At every start: those that are seen may be ones
 * that an earlier process made and nobody synced. */
fb_status fb_store_place_sync(const char *directory, char *why, size_t why_len)
{
    char above[FB_LMDB_PATH_MAX];
    file_of(directory, "..", above);
    int error = directory_sync(directory);
    if (error == 0) {
        error = directory_sync(above);
        /* Not ours to read, so not ours to make either. */
        if (error == EACCES) error = 0;
    }
    /* A file system that does not sync directories promises nothing that could be waited for. */
    return error == 0 || error == EINVAL ? FB_OK : failed(why, why_len, directory, error);
}

/* A new directory beside the store's: DIRECTORY.damaged-1, or the next that is free. */
static int aside_make(const char *directory, char out[FB_LMDB_PATH_MAX])
{
    for (unsigned n = 1; n < 10000; n++) {
        snprintf(out, FB_LMDB_PATH_MAX, "%s.damaged-%u", directory, n);
        if (mkdir(out, 0700) == 0) return 0;
        if (errno != EEXIST) return errno;
    }
    return EEXIST;
}

/* The lock is held throughout, so no other process finds the gap. */
static int move_aside(const char *directory, char aside[FB_LMDB_PATH_MAX])
{
    char from[FB_LMDB_PATH_MAX], to[FB_LMDB_PATH_MAX + LEAF_BYTES];
    int error = aside_make(directory, aside);
    if (error != 0) return error;
    file_of(directory, "data.mdb", from);
    snprintf(to, sizeof to, "%s/data.mdb", aside);
    if (rename(from, to) != 0) {
        error = errno;
        rmdir(aside);
        return error;
    }
    file_of(directory, "lock.mdb", from);
    if (unlink(from) != 0 && errno != ENOENT) return errno;
    error = directory_sync(aside);
    return error != 0 ? error : directory_sync(directory);
}

static fb_status data_check(const char *directory, const struct stat *st, bool whole,
                            fb_lmdb_opening *out, char *why, size_t why_len)
{
    fb_store_report report = {0};
    if (S_ISREG(st->st_mode)) {
        FB_TRY(fb_store_check(directory, whole, &report, why, why_len));
    } else {
        snprintf(report.what, sizeof report.what, "it is no file");
    }
    out->found = report.sound ? FB_LMDB_FOUND_SOUND : FB_LMDB_FOUND_DAMAGED;
    out->entries_checked = report.entries;
    out->entries_damaged = report.damaged;
    if (report.sound) return FB_OK;
    snprintf(out->damage, sizeof out->damage, "%s", report.what);
    int error = move_aside(directory, out->aside);
    if (error == 0) return FB_OK;
    snprintf(why, why_len, "%s/data.mdb is damaged: %s; it cannot be moved aside: %s", directory,
             report.what, strerror(error));
    return FB_ERR_STORE_DAMAGED;
}

static fb_status data_look(const char *directory, fb_lmdb_opening *out, char *why, size_t why_len)
{
    char data[FB_LMDB_PATH_MAX], suspect[FB_LMDB_PATH_MAX];
    struct stat st = {0};
    file_of(directory, "data.mdb", data);
    file_of(directory, FB_STORE_SUSPECT, suspect);
    out->found = FB_LMDB_FOUND_NOTHING;
    if (stat(data, &st) != 0) return errno == ENOENT ? FB_OK : failed(why, why_len, data, errno);
    if (S_ISREG(st.st_mode) && st.st_size == 0) return FB_OK;
    bool is_suspect = access(suspect, F_OK) == 0;
    bool whole = is_suspect || (uint64_t)st.st_size <= FB_LMDB_CHECK_WHOLE;
    FB_TRY(data_check(directory, &st, whole, out, why, why_len));
    if (is_suspect) unlink(suspect);
    return FB_OK;
}

fb_status fb_store_place_take(const char *directory, int *lock_fd, fb_lmdb_opening *out, char *why,
                              size_t why_len)
{
    if (strlen(directory) + LEAF_BYTES > FB_LMDB_PATH_MAX) {
        return failed(why, why_len, directory, ENAMETOOLONG);
    }
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        return failed(why, why_len, directory, errno);
    }
    FB_TRY(lock_take(directory, lock_fd, why, why_len));
    return data_look(directory, out, why, why_len);
}
