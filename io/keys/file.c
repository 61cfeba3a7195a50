/* SPDX-License-Identifier: Apache-2.0 */
#include "io/keys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/new_file.h"
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

fb_status fb_key_file_write(const char *path, fb_key_kind kind, const fb_b32 *secret,
                            fb_key_file_error *error)
{
    fb_new_file file;
    if (error != NULL) error->text[0] = '\0';
    int number = fb_new_file_open(&file, path);
    if (number != 0) {
        return fail(error, number == EEXIST ? FB_ERR_EXISTS : FB_ERR_STORE_FAILED,
                    "cannot create it", number);
    }
    char line[LINE_MAX_BYTES];
    char hex[65];
    fb_hex_text(secret->b, sizeof secret->b, hex);
    int len = snprintf(line, sizeof line, LABEL "%s %s\n", kind_name(kind), hex);
    number = fb_write_all(file.fd, line, (size_t)len);
    sodium_memzero(line, sizeof line);
    sodium_memzero(hex, sizeof hex);
    if (number == 0) {
        number = fb_new_file_keep(&file);
    } else {
        fb_new_file_drop(&file);
    }
    if (number == 0) return FB_OK;
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
