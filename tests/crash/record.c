/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/record.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "protocol/base/assert.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static recording now; /* guarded by it, like the rest */
static bool on, lies, no_names;
static char data[4096], directory_of[4096], above[4096];

static void add(event_kind kind, uint64_t at, const void *bytes, size_t len, bool forced)
{
    if (now.count == now.cap) {
        now.cap = now.cap == 0 ? 1024 : 2 * now.cap;
        now.events = realloc(now.events, now.cap * sizeof *now.events);
        FB_ASSERT(now.events != NULL);
    }
    uint8_t *copy = NULL;
    if (len != 0) {
        copy = malloc(len);
        FB_ASSERT(copy != NULL);
        memcpy(copy, bytes, len);
    }
    now.events[now.count++] = (event){kind, forced, at, len, copy};
}

static bool is_path(int fd, const char *path)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

void record_begin(const char *directory, bool sync_lies, bool names_lie)
{
    pthread_mutex_lock(&mutex);
    memset(&now, 0, sizeof now);
    snprintf(directory_of, sizeof directory_of, "%s", directory);
    snprintf(data, sizeof data, "%s/data.mdb", directory);
    snprintf(above, sizeof above, "%s/..", directory);
    on = true;
    lies = sync_lies;
    no_names = names_lie;
    pthread_mutex_unlock(&mutex);
}

recording record_end(void)
{
    pthread_mutex_lock(&mutex);
    on = false;
    recording r = now;
    memset(&now, 0, sizeof now);
    pthread_mutex_unlock(&mutex);
    return r;
}

void recording_free(recording *r)
{
    for (size_t i = 0; i < r->count; i++) free((void *)(uintptr_t)r->events[i].bytes);
    free(r->events);
    memset(r, 0, sizeof *r);
}

void record_note(event_kind kind, uint64_t at)
{
    pthread_mutex_lock(&mutex);
    if (on) add(kind, at, NULL, 0, false);
    pthread_mutex_unlock(&mutex);
}

static void written(int fd, const void *bytes, size_t len, off_t at)
{
    pthread_mutex_lock(&mutex);
    if (on && is_path(fd, data)) {
        bool forced = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
        add(EVENT_WRITE, (uint64_t)at, bytes, len, forced);
    }
    pthread_mutex_unlock(&mutex);
}

/* The calls. A call that a crash interrupts may have happened in part: it is kept before it is
 * made, except where its outcome is needed. */

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, len, at);
    if (n > 0) written(fd, bytes, (size_t)n, at);
    return n;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t n = syscall(SYS_writev, fd, parts, count);
    if (n <= 0 || at < 0) return n;
    uint8_t *all = malloc((size_t)n);
    FB_ASSERT(all != NULL);
    size_t got = 0;
    for (int i = 0; i < count && got < (size_t)n; i++) {
        size_t len = parts[i].iov_len;
        if (len > (size_t)n - got) len = (size_t)n - got;
        memcpy(all + got, parts[i].iov_base, len);
        got += len;
    }
    written(fd, all, got, at);
    free(all);
    return n;
}

int ftruncate(int fd, off_t len)
{
    int rc = (int)syscall(SYS_ftruncate, fd, len);
    pthread_mutex_lock(&mutex);
    if (rc == 0 && on && is_path(fd, data)) add(EVENT_TRUNCATE, (uint64_t)len, NULL, 0, false);
    pthread_mutex_unlock(&mutex);
    return rc;
}

static int synced(int fd, long number)
{
    pthread_mutex_lock(&mutex);
    bool kept = on, lying = false;
    if (kept && is_path(fd, data)) {
        lying = lies;
        if (!lies) add(EVENT_SYNC, 0, NULL, 0, false);
    } else if (kept && is_path(fd, directory_of)) {
        if (!no_names) add(EVENT_NAME_SYNC, 0, NULL, 0, false);
    } else if (kept && is_path(fd, above)) {
        if (!no_names) add(EVENT_NAME_SYNC, 1, NULL, 0, false);
    }
    pthread_mutex_unlock(&mutex);
    return !kept || lying ? 0 : (int)syscall(number, fd);
}

int fdatasync(int fd)
{
    return synced(fd, SYS_fdatasync);
}

int fsync(int fd)
{
    return synced(fd, SYS_fsync);
}

int msync(void *at, size_t len, int flags)
{
    return (int)syscall(SYS_msync, at, len, flags);
}

void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && (protection & PROT_WRITE) != 0 && (flags & MAP_SHARED) != 0) {
        int before = errno;
        pthread_mutex_lock(&mutex);
        if (on && is_path(fd, data)) now.mapped_writable = true;
        pthread_mutex_unlock(&mutex);
        errno = before;
    }
    long p = syscall(SYS_mmap, at, len, protection, flags, fd, offset);
    return p == -1 ? MAP_FAILED : (void *)p;
}
