/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fb_write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return ENOSPC;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int fb_directory_sync(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int number = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return number;
}

/* The directory that a path is in. False: it is too long. */
static bool directory_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (len >= PATH_MAX) return false;
    memcpy(out, path, len);
    out[len] = '\0';
    if (len == 0) strcpy(out, slash == NULL ? "." : "/");
    return true;
}

int fb_new_file_open(fb_new_file *file, const char *path)
{
    struct stat st;
    file->fd = -1;
    file->hidden[0] = '\0';
    if (strlen(path) >= sizeof file->path || !directory_of(path, file->directory)) {
        return ENAMETOOLONG;
    }
    strcpy(file->path, path);
    if (lstat(path, &st) == 0) return EEXIST;
    if (errno != ENOENT) return errno;
    file->fd = open(file->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (file->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        /* A file system without files that have no name. */
        int len = snprintf(file->hidden, sizeof file->hidden, "%s.%ld", path, (long)getpid());
        if (len < 0 || (size_t)len >= sizeof file->hidden) {
            file->hidden[0] = '\0';
            return ENAMETOOLONG;
        }
        file->fd = open(file->hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
    }
    int number = file->fd < 0 ? errno : 0;
    if (number != 0) file->hidden[0] = '\0'; /* somebody else's, if it is there */
    /* The umask may have taken more away than wanted, never less than 0600 gives. */
    if (number == 0 && fchmod(file->fd, 0600) != 0) number = errno;
    if (number != 0) fb_new_file_drop(file);
    return number;
}

/* Some file systems know no second names, others no renaming that keeps what is there. */
static int name_hidden(const fb_new_file *file)
{
    if (renameat2(AT_FDCWD, file->hidden, AT_FDCWD, file->path, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    return link(file->hidden, file->path) == 0 ? 0 : errno;
}

static int name_give(const fb_new_file *file)
{
    if (file->hidden[0] != '\0') return name_hidden(file);
    char unnamed[64];
    snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", file->fd);
    return linkat(AT_FDCWD, unnamed, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

int fb_new_file_keep(fb_new_file *file)
{
    int number = fsync(file->fd) == 0 ? 0 : errno;
    if (number == 0) number = name_give(file);
    bool named = number == 0;
    if (close(file->fd) != 0 && number == 0) number = errno;
    file->fd = -1;
    if (number == 0) number = fb_directory_sync(file->directory);
    if (number != 0 && named) unlink(file->path);
    fb_new_file_drop(file);
    return number;
}

void fb_new_file_drop(fb_new_file *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
    if (file->hidden[0] != '\0') unlink(file->hidden); /* its other name, where it has one */
    file->hidden[0] = '\0';
}
