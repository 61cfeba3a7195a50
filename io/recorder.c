/* SPDX-License-Identifier: Apache-2.0 */
#include "io/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/files/sealed_file.h"
#include "protocol/core/recording.h"

#define NUMBER_DIGITS 6
#define NUMBERS_MAX   999999u

struct fb_recorder {
    char path[FB_RECORDER_PATH_MAX];
    char file[FB_RECORDER_PATH_MAX + 16];
    char program[FB_RECORDING_PROGRAM_MAX];
    char failed[256];
    fb_b32 reader_key;
    uint64_t bytes_max;
    uint32_t number; /* of the newest file */
    uint64_t written, files;
    const fb_provider *inner;
    fb_provider provider;
    fb_sealed_writer out;
    bool open;
    uint64_t loaded; /* bytes of the file when the node had read its store */
    fb_writer items; /* not yet in the file */
};

static void give_up(fb_recorder *r)
{
    snprintf(r->failed, sizeof r->failed, "%s", strerror(errno));
    if (r->open) fb_sealed_close(&r->out);
    r->open = false;
}

static void flush(fb_recorder *r, bool last)
{
    if (!r->open) return;
    uint64_t before = r->out.bytes;
    fb_span items = fb_writer_span(&r->items);
    if (r->items.failed) errno = EMSGSIZE;
    if (r->items.failed || !fb_sealed_write(&r->out, items, last)) {
        give_up(r);
        return;
    }
    r->written += r->out.bytes - before;
    r->items.at = 0;
}

/* The provider that listens. Within a step nothing is written to the file: what a step needed of it
 * goes there with what came of it. */

static void note(fb_recorder *r, fb_recording_call call, uint32_t result, const void *bytes,
                 size_t len)
{
    if (r->open) fb_recording_write_output(&r->items, call, result, fb_span_of(bytes, len));
}

static fb_status on_public_key(void *user, fb_key_handle key, fb_b32 *out)
{
    fb_recorder *r = user;
    fb_status status = r->inner->public_key(r->inner->user, key, out);
    note(r, FB_CALL_PUBLIC_KEY, status, out->b, status == FB_OK ? sizeof out->b : 0);
    return status;
}

static fb_status on_sign(void *user, fb_key_handle key, const fb_span *parts, size_t count,
                         fb_b64 *out)
{
    fb_recorder *r = user;
    fb_status status = r->inner->sign(r->inner->user, key, parts, count, out);
    note(r, FB_CALL_SIGN, status, out->b, status == FB_OK ? sizeof out->b : 0);
    return status;
}

static bool on_verify(void *user, const fb_b32 *public_key, const fb_span *parts, size_t count,
                      const fb_b64 *signature)
{
    fb_recorder *r = user;
    bool valid = r->inner->verify(r->inner->user, public_key, parts, count, signature);
    note(r, FB_CALL_VERIFY, valid, NULL, 0);
    return valid;
}

static bool on_point_is_valid(void *user, const fb_b32 *public_key)
{
    fb_recorder *r = user;
    bool valid = r->inner->point_is_valid(r->inner->user, public_key);
    note(r, FB_CALL_POINT_IS_VALID, valid, NULL, 0);
    return valid;
}

static fb_status on_dh_public(void *user, fb_key_handle key, fb_b32 *out)
{
    fb_recorder *r = user;
    fb_status status = r->inner->dh_public(r->inner->user, key, out);
    note(r, FB_CALL_DH_PUBLIC, status, out->b, status == FB_OK ? sizeof out->b : 0);
    return status;
}

static fb_status on_dh_generate(void *user, fb_key_handle *out)
{
    fb_recorder *r = user;
    uint8_t handle[8];
    fb_status status = r->inner->dh_generate(r->inner->user, out);
    if (status == FB_OK) fb_store_be(handle, *out, sizeof handle);
    note(r, FB_CALL_DH_GENERATE, status, handle, status == FB_OK ? sizeof handle : 0);
    return status;
}

static void on_dh_release(void *user, fb_key_handle key)
{
    fb_recorder *r = user;
    r->inner->dh_release(r->inner->user, key);
}

static fb_status on_dh(void *user, fb_key_handle key, const fb_b32 *peer, fb_b32 *out)
{
    fb_recorder *r = user;
    fb_status status = r->inner->dh(r->inner->user, key, peer, out);
    note(r, FB_CALL_DH, status, out->b, status == FB_OK ? sizeof out->b : 0);
    return status;
}

static void on_sha256(void *user, const fb_span *parts, size_t count, fb_b32 *out)
{
    fb_recorder *r = user;
    r->inner->sha256(r->inner->user, parts, count, out);
    note(r, FB_CALL_SHA256, FB_OK, out->b, sizeof out->b);
}

static void on_blake2b(void *user, fb_span key, const fb_span *parts, size_t count, uint8_t *out,
                       size_t out_len)
{
    fb_recorder *r = user;
    r->inner->blake2b(r->inner->user, key, parts, count, out, out_len);
    note(r, FB_CALL_BLAKE2B, FB_OK, out, out_len);
}

static void on_aead_seal(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span plain,
                         uint8_t *out)
{
    fb_recorder *r = user;
    size_t len = plain.len + 16;
    r->inner->aead_seal(r->inner->user, key, nonce, ad, plain, out);
    note(r, FB_CALL_AEAD_SEAL, FB_OK, out, len);
}

static bool on_aead_open(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span sealed,
                         uint8_t *out)
{
    fb_recorder *r = user;
    size_t len = sealed.len;
    bool valid = r->inner->aead_open(r->inner->user, key, nonce, ad, sealed, out);
    note(r, FB_CALL_AEAD_OPEN, valid, out, valid ? len - 16 : 0);
    return valid;
}

static fb_status on_secret(void *user, uint8_t *out, size_t len)
{
    fb_recorder *r = user;
    fb_status status = r->inner->secret(r->inner->user, out, len);
    note(r, FB_CALL_SECRET, status, out, status == FB_OK ? len : 0);
    return status;
}

/* Files. */

static void file_of(const fb_recorder *r, uint32_t number, char out[FB_RECORDER_PATH_MAX + 16])
{
    snprintf(out, FB_RECORDER_PATH_MAX + 16, "%s.%0*u", r->path, NUMBER_DIGITS, number);
}

/* The number of a file that belongs to this path, or 0. */
static uint32_t number_of(const char *name, const char *leaf)
{
    size_t len = strlen(leaf);
    if (strncmp(name, leaf, len) != 0 || name[len] != '.') return 0;
    const char *digits = name + len + 1;
    if (strspn(digits, "0123456789") != NUMBER_DIGITS || digits[NUMBER_DIGITS] != 0) return 0;
    return (uint32_t)strtoul(digits, NULL, 10);
}

typedef struct shelf {
    uint32_t newest, oldest;
    uint64_t bytes;
} shelf;

static bool look(const fb_recorder *r, shelf *out)
{
    char directory[FB_RECORDER_PATH_MAX];
    snprintf(directory, sizeof directory, "%s", r->path);
    char *slash = strrchr(directory, '/');
    const char *leaf = strrchr(r->path, '/') != NULL ? strrchr(r->path, '/') + 1 : r->path;
    if (slash != NULL) slash[slash == directory ? 1 : 0] = 0;
    DIR *d = opendir(slash != NULL ? directory : ".");
    if (d == NULL) return false;
    *out = (shelf){0};
    const struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        struct stat st;
        uint32_t number = number_of(entry->d_name, leaf);
        if (number == 0 || fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        out->bytes += (uint64_t)st.st_size;
        if (number > out->newest) out->newest = number;
        if (out->oldest == 0 || number < out->oldest) out->oldest = number;
    }
    closedir(d);
    return true;
}

/* Room for another file of its share. */
static void remove_old(fb_recorder *r)
{
    char file[FB_RECORDER_PATH_MAX + 16];
    shelf s;
    while (look(r, &s) && s.oldest != 0 &&
           s.bytes > r->bytes_max - r->bytes_max / FB_RECORDER_FILES) {
        file_of(r, s.oldest, file);
        if (unlink(file) != 0) return;
    }
}

static bool file_begin(fb_recorder *r)
{
    shelf s;
    remove_old(r);
    if (!look(r, &s)) return false;
    if (s.newest > r->number) r->number = s.newest;
    if (r->number >= NUMBERS_MAX) {
        errno = EFBIG;
        return false;
    }
    file_of(r, ++r->number, r->file);
    if (!fb_sealed_create(&r->out, r->file, &r->reader_key)) return false;
    r->open = true;
    r->loaded = UINT64_MAX;
    r->files++;
    r->written += r->out.bytes;
    return true;
}

static void file_end(fb_recorder *r)
{
    if (!r->open) return;
    fb_recording_write_end(&r->items);
    flush(r, true);
    if (!r->open) return;
    fb_sealed_close(&r->out);
    r->open = false;
}

fb_status fb_recorder_open(const fb_recorder_options *options, fb_recorder **out, char *why,
                           size_t why_len)
{
    *out = NULL;
    if (options->path[0] == 0 || strlen(options->path) >= FB_RECORDER_PATH_MAX ||
        options->path[strlen(options->path) - 1] == '/' ||
        options->bytes_max < FB_RECORDER_BYTES_MIN) {
        snprintf(why, why_len, "%s: not a usable path for a recording", options->path);
        return FB_ERR_ARGUMENT;
    }
    if (sodium_init() < 0) return FB_ERR_CRYPTO;
    fb_recorder *r = calloc(1, sizeof *r);
    uint8_t *items = r != NULL ? malloc(FB_SEALED_FRAME_MAX) : NULL;
    if (items == NULL) {
        free(r);
        return FB_ERR_NO_MEMORY;
    }
    r->items = fb_writer_of(items, FB_SEALED_FRAME_MAX);
    snprintf(r->path, sizeof r->path, "%s", options->path);
    snprintf(r->program, sizeof r->program, "%s", options->program);
    r->reader_key = options->reader_key;
    r->bytes_max = options->bytes_max;
    r->out.fd = -1;
    *out = r;
    return FB_OK;
}

void fb_recorder_close(fb_recorder *recorder)
{
    if (recorder == NULL) return;
    file_end(recorder);
    free(recorder->items.p);
    free(recorder);
}

void fb_recorder_instance(fb_recorder *recorder, fb_options *options, fb_id node,
                          size_t effects_capacity)
{
    fb_recorder *r = recorder;
    if (r->inner == NULL) r->inner = options->provider;
    r->provider = (fb_provider){
        .user = r,
        .public_key = on_public_key,
        .sign = on_sign,
        .verify = on_verify,
        .point_is_valid = on_point_is_valid,
        .dh_public = on_dh_public,
        .dh_generate = on_dh_generate,
        .dh_release = on_dh_release,
        .dh = on_dh,
        .sha256 = on_sha256,
        .blake2b = on_blake2b,
        .aead_seal = on_aead_seal,
        .aead_open = on_aead_open,
        .secret = on_secret,
    };
    options->provider = &r->provider;
    options->observe = true;
    options->digest_every_step = true;
    file_end(r);
    r->items = fb_writer_of(r->items.p, r->items.cap);
    if (r->failed[0] == 0 && !file_begin(r)) give_up(r);
    if (!r->open) return;
    fb_recording_header header = {
        .node = node,
        .wall_us = fb_clock_wall_us(),
        .effects_capacity = effects_capacity,
        .options = *options,
    };
    snprintf(header.program, sizeof header.program, "%s", r->program);
    fb_recording_write_header(&r->items, &header);
}

void fb_recorder_event(fb_recorder *recorder, const fb_event *event)
{
    if (!recorder->open) return;
    fb_recording_write_event(&recorder->items, event);
    flush(recorder, false);
}

void fb_recorder_step(fb_recorder *recorder, fb_status status, const fb_effects *effects,
                      fb_hash128 digest)
{
    if (!recorder->open) return;
    fb_recording_write_step(&recorder->items, status, effects, digest);
    flush(recorder, false);
}

void fb_recorder_loaded(fb_recorder *recorder)
{
    if (recorder->loaded == UINT64_MAX) recorder->loaded = recorder->out.bytes;
}

/* What a start reads is no reason to start again. */
bool fb_recorder_is_full(const fb_recorder *recorder)
{
    return recorder->open && recorder->loaded != UINT64_MAX &&
           recorder->out.bytes - recorder->loaded >= recorder->bytes_max / FB_RECORDER_FILES;
}

void fb_recorder_stats_get(const fb_recorder *recorder, fb_recorder_stats *out)
{
    *out = (fb_recorder_stats){
        .file = recorder->open ? recorder->file : "",
        .failed = recorder->failed,
        .bytes = recorder->written,
        .files = recorder->files,
    };
}
