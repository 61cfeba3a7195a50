/* SPDX-License-Identifier: Apache-2.0 */
#include "io/files/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/cursor.h"

#define KEY_BYTES    crypto_secretstream_xchacha20poly1305_KEYBYTES
#define SEALED_BYTES (KEY_BYTES + crypto_box_SEALBYTES)
#define STREAM_BYTES crypto_secretstream_xchacha20poly1305_HEADERBYTES
#define MAGIC_BYTES  (sizeof FB_SEALED_MAGIC - 1)
#define HEAD_BYTES   (MAGIC_BYTES + 1 + 32 + SEALED_BYTES + STREAM_BYTES)

static bool write_all(int fd, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

bool fb_sealed_create(fb_sealed_writer *w, const char *path, const fb_b32 *reader_key)
{
    uint8_t head[HEAD_BYTES], key[KEY_BYTES];
    memset(w, 0, sizeof *w);
    w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (w->fd < 0) return false;
    w->frame = malloc(FB_SEALED_FRAME_MAX + FB_SEALED_FRAME_EXTRA);
    uint8_t *at = head;
    memcpy(at, FB_SEALED_MAGIC, MAGIC_BYTES);
    at += MAGIC_BYTES;
    *at++ = 'S';
    memcpy(at, reader_key->b, 32);
    at += 32;
    crypto_secretstream_xchacha20poly1305_keygen(key);
    bool ok = crypto_box_seal(at, key, sizeof key, reader_key->b) == 0;
    at += SEALED_BYTES;
    ok = ok && crypto_secretstream_xchacha20poly1305_init_push(&w->state, at, key) == 0;
    sodium_memzero(key, sizeof key);
    if (!ok) errno = EINVAL;
    if (ok && w->frame == NULL) ok = false;
    ok = ok && write_all(w->fd, head, sizeof head);
    w->bytes = sizeof head;
    if (ok) return true;
    int error = errno;
    fb_sealed_close(w);
    unlink(path);
    errno = error;
    return false;
}

bool fb_sealed_write(fb_sealed_writer *w, fb_span plain, bool last)
{
    if (plain.len > FB_SEALED_FRAME_MAX) {
        errno = EMSGSIZE;
        return false;
    }
    size_t sealed = plain.len + crypto_secretstream_xchacha20poly1305_ABYTES;
    uint8_t tag = last ? crypto_secretstream_xchacha20poly1305_TAG_FINAL
                       : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
    fb_store_be(w->frame, sealed, 4);
    crypto_secretstream_xchacha20poly1305_push(&w->state, w->frame + 4, NULL, plain.p, plain.len,
                                               NULL, 0, tag);
    w->bytes += sealed + 4;
    return write_all(w->fd, w->frame, sealed + 4);
}

void fb_sealed_close(fb_sealed_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
    free(w->frame);
    w->frame = NULL;
    sodium_memzero(&w->state, sizeof w->state);
}

/* Reading. */

static fb_status file_read(const char *path, fb_sealed_content *out, char *why, size_t why_len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        fb_status status = errno == ENOENT ? FB_ERR_NOT_FOUND : FB_ERR_STORE_FAILED;
        snprintf(why, why_len, "%s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    fb_status status = FB_OK;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FB_SEALED_FILE_MAX) {
        snprintf(why, why_len, "%s: not a recording's file", path);
        status = FB_ERR_MALFORMED;
    } else if ((out->bytes = malloc((size_t)st.st_size + 1)) == NULL) {
        snprintf(why, why_len, "%s: no memory for %lld bytes", path, (long long)st.st_size);
        status = FB_ERR_NO_MEMORY;
    }
    while (status == FB_OK && out->len < (size_t)st.st_size) {
        ssize_t n = read(fd, out->bytes + out->len, (size_t)st.st_size - out->len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            snprintf(why, why_len, "%s: %s", path, strerror(errno));
            status = FB_ERR_STORE_FAILED;
        }
        if (n <= 0) break; /* it is being written, or was cut meanwhile */
        out->len += (size_t)n;
    }
    close(fd);
    return status;
}

static fb_status unseal(const fb_b32 *secret, fb_reader *r, size_t *plain_len,
                        fb_sealed_content *out, const char *path, char *why, size_t why_len)
{
    crypto_secretstream_xchacha20poly1305_state state;
    uint8_t key[KEY_BYTES], mine[32];
    fb_span reader_key = fb_read_bytes(r, 32);
    fb_span sealed = fb_read_bytes(r, SEALED_BYTES);
    fb_span stream = fb_read_bytes(r, STREAM_BYTES);
    if (r->failed) {
        snprintf(why, why_len, "%s: ends within its first %u bytes", path, (unsigned)HEAD_BYTES);
        return FB_ERR_MALFORMED;
    }
    if (secret == NULL) {
        snprintf(why, why_len, "%s: it is sealed, and no key was given", path);
        return FB_ERR_KEY;
    }
    crypto_scalarmult_base(mine, secret->b);
    bool ok = memcmp(mine, reader_key.p, 32) == 0 &&
              crypto_box_seal_open(key, sealed.p, sealed.len, mine, secret->b) == 0;
    ok = ok && crypto_secretstream_xchacha20poly1305_init_pull(&state, stream.p, key) == 0;
    sodium_memzero(key, sizeof key);
    if (!ok) {
        snprintf(why, why_len, "%s: it was made for another key", path);
        return FB_ERR_KEY;
    }
    /* Shorter than what is sealed. Not in its place: streams are opened by many blocks at once. */
    uint8_t *plain = malloc(out->len + 1);
    if (plain == NULL) {
        snprintf(why, why_len, "%s: no memory for %zu bytes", path, out->len);
        return FB_ERR_NO_MEMORY;
    }
    uint64_t frames = 0;
    fb_status status = FB_OK;
    while (status == FB_OK && !out->whole) {
        fb_reader next = *r;
        size_t at = r->at;
        uint32_t len = fb_read_u32(&next);
        bool fits = !next.failed && len >= crypto_secretstream_xchacha20poly1305_ABYTES &&
                    len <= FB_SEALED_FRAME_MAX + FB_SEALED_FRAME_EXTRA;
        fb_span frame = fits ? fb_read_bytes(&next, len) : (fb_span){NULL, 0};
        if (next.failed) break; /* whoever wrote it ended here */
        unsigned long long got = 0;
        uint8_t tag = 0;
        if (!fits ||
            crypto_secretstream_xchacha20poly1305_pull(&state, plain + *plain_len, &got, &tag,
                                                       frame.p, frame.len, NULL, 0) != 0) {
            snprintf(why, why_len, "%s: damaged at byte %zu, in frame %llu", path, at,
                     (unsigned long long)frames + 1);
            status = FB_ERR_MALFORMED;
            break;
        }
        *plain_len += (size_t)got;
        out->whole = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
        frames++;
        *r = next;
    }
    if (out->whole && !fb_reader_done(r)) {
        snprintf(why, why_len, "%s: bytes after its end, from byte %zu", path, r->at);
        status = FB_ERR_MALFORMED;
    }
    sodium_memzero(&state, sizeof state);
    free(out->bytes);
    out->bytes = plain;
    return status;
}

fb_status fb_sealed_read(const char *path, const fb_b32 *secret, fb_sealed_content *out, char *why,
                         size_t why_len)
{
    memset(out, 0, sizeof *out);
    size_t plain_len = 0;
    fb_status status = file_read(path, out, why, why_len);
    if (status == FB_OK) {
        fb_reader r = fb_reader_of(fb_span_of(out->bytes, out->len));
        fb_span magic = fb_read_bytes(&r, MAGIC_BYTES);
        uint8_t kind = fb_read_u8(&r);
        if (r.failed || memcmp(magic.p, FB_SEALED_MAGIC, MAGIC_BYTES) != 0 ||
            (kind != 'S' && kind != 'P')) {
            snprintf(why, why_len, "%s: not a recording (it does not begin with %s)", path,
                     FB_SEALED_MAGIC);
            status = FB_ERR_MALFORMED;
        } else if (kind == 'S') {
            out->sealed = true;
            status = unseal(secret, &r, &plain_len, out, path, why, why_len);
            out->len = plain_len;
        } else {
            out->whole = true;
            out->len -= r.at;
            memmove(out->bytes, out->bytes + r.at, out->len);
        }
    }
    if (status != FB_OK) {
        free(out->bytes);
        out->bytes = NULL;
        out->len = 0;
    }
    return status;
}
