/* SPDX-License-Identifier: Apache-2.0 */
#include "io/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/hex.h"

#define LABEL          "faberio-key-1 "
#define LINE_MAX_BYTES 96

static const char *kind_name(fb_key_kind kind)
{
    return kind == FB_KEY_ED25519 ? "ed25519" : "x25519";
}

static fb_status fail(fb_key_file_error *error, fb_status status, const char *what, int number)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s%s%s", what, number != 0 ? ": " : "",
                 number != 0 ? strerror(number) : "");
    }
    return status;
}

static fb_status parse(fb_span text, fb_key_kind kind, fb_b32 *out, fb_key_file_error *error)
{
    if (text.len > 0 && text.p[text.len - 1] == '\n') text.len--;
    fb_span label = fb_span_text(LABEL);
    if (text.len < label.len || memcmp(text.p, label.p, label.len) != 0) {
        return fail(error, FB_ERR_KEY, "not a key file of version 1", 0);
    }
    text = fb_span_of(text.p + label.len, text.len - label.len);
    fb_span name = fb_span_text(kind_name(kind));
    if (text.len < name.len + 1 || memcmp(text.p, name.p, name.len) != 0 ||
        text.p[name.len] != ' ') {
        return fail(error, FB_ERR_KEY, "holds a key of another kind", 0);
    }
    text = fb_span_of(text.p + name.len + 1, text.len - name.len - 1);
    if (!fb_hex_parse(text, out->b, sizeof out->b)) {
        return fail(error, FB_ERR_KEY, "the key is not 64 lowercase hex digits", 0);
    }
    return FB_OK;
}

static fb_status read_open(int fd, fb_key_kind kind, fb_b32 *out, fb_key_file_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return fail(error, FB_ERR_STORE_FAILED, "cannot look at it", errno);
    if (!S_ISREG(st.st_mode)) return fail(error, FB_ERR_KEY, "not a regular file", 0);
    if ((st.st_mode & 077) != 0) {
        return fail(error, FB_ERR_NOT_AUTHORISED, "others than the owner have access; chmod 600 it",
                    0);
    }
    uint8_t bytes[LINE_MAX_BYTES];
    size_t len = 0;
    while (len < sizeof bytes) {
        ssize_t n = read(fd, bytes + len, sizeof bytes - len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            int number = errno;
            sodium_memzero(bytes, sizeof bytes);
            return fail(error, FB_ERR_STORE_FAILED, "cannot read it", number);
        }
        if (n == 0) break;
        len += (size_t)n;
    }
    fb_status status = parse(fb_span_of(bytes, len), kind, out, error);
    sodium_memzero(bytes, sizeof bytes);
    return status;
}

fb_status fb_key_file_read(const char *path, fb_key_kind kind, fb_b32 *out,
                           fb_key_file_error *error)
{
    if (error != NULL) error->text[0] = '\0';
    /* O_NONBLOCK: a FIFO in the file's place must not hang the program. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        fb_status status = errno == ENOENT || errno == ENOTDIR ? FB_ERR_NOT_FOUND
                           : errno == EACCES                   ? FB_ERR_NOT_AUTHORISED
                                                               : FB_ERR_STORE_FAILED;
        return fail(error, status, "cannot open it", errno);
    }
    fb_status status = read_open(fd, kind, out, error);
    close(fd);
    return status;
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

/* A new name is durable once its directory is. */
static int sync_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int number = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return number;
}

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        bytes += n;
        len -= (size_t)n;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

/* A file that gets its name when all of it is there: whoever is killed before leaves no half of a
 * key in the key's place. Where the file system has no files without a name, *hidden gets one. */
static int temporary_open(const char *directory, const char *path, char hidden[PATH_MAX])
{
    hidden[0] = '\0';
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
    if (snprintf(hidden, PATH_MAX, "%s.%ld", path, (long)getpid()) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
}

static int temporary_name(int fd, const char *hidden, const char *path)
{
    char unnamed[64];
    snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", fd);
    const char *from = hidden[0] != '\0' ? hidden : unnamed;
    return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

fb_status fb_key_file_write(const char *path, fb_key_kind kind, const fb_b32 *secret,
                            fb_key_file_error *error)
{
    char directory[PATH_MAX], hidden[PATH_MAX];
    if (error != NULL) error->text[0] = '\0';
    struct stat st;
    if (lstat(path, &st) == 0) return fail(error, FB_ERR_EXISTS, "cannot create it", EEXIST);
    int fd = -1, number = ENAMETOOLONG;
    if (directory_of(path, directory)) {
        fd = temporary_open(directory, path, hidden);
        number = errno;
    }
    if (fd < 0) return fail(error, FB_ERR_STORE_FAILED, "cannot create it", number);
    char line[LINE_MAX_BYTES];
    char hex[65] = {0};
    fb_hex_format(secret->b, sizeof secret->b, hex);
    int len = snprintf(line, sizeof line, LABEL "%s %s\n", kind_name(kind), hex);
    /* The umask may have taken more away than wanted, never less than 0600 gives. */
    number = fchmod(fd, 0600) == 0 ? write_all(fd, line, (size_t)len) : errno;
    sodium_memzero(line, sizeof line);
    sodium_memzero(hex, sizeof hex);
    bool named = false;
    if (number == 0) {
        number = temporary_name(fd, hidden, path);
        named = number == 0;
    }
    if (hidden[0] != '\0') unlink(hidden);
    if (close(fd) != 0 && number == 0) number = errno;
    if (number == 0) number = sync_directory(directory);
    if (number == 0) return FB_OK;
    if (named) unlink(path);
    return fail(error, number == EEXIST ? FB_ERR_EXISTS : FB_ERR_STORE_FAILED,
                number == EEXIST ? "cannot create it" : "cannot write it", number);
}

fb_status fb_key_file_generate(const char *path, fb_key_kind kind, fb_b32 *out,
                               fb_key_file_error *error)
{
    if (sodium_init() < 0) return fail(error, FB_ERR_CRYPTO, "libsodium does not start", 0);
    randombytes_buf(out->b, sizeof out->b);
    fb_status status = fb_key_file_write(path, kind, out, error);
    if (status != FB_OK) sodium_memzero(out, sizeof *out);
    return status;
}
