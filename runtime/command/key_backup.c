/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/key_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/files/new_file.h"
#include "io/keys/backup.h"
#include "protocol/base/hex.h"
#include "runtime/command/cli.h"
#include "runtime/home.h"
#include "runtime/text.h"

typedef struct words {
    const char *verb, *file, *home, *passphrase, *recovery;
    bool original_is_gone;
} words;

static int usage(const words *w, const char *what)
{
    fprintf(stderr, "faberio key %s: %s\nfaberio key --help says more.\n", w->verb, what);
    return FB_EXIT_USAGE;
}

static int failed(const words *w, fb_exit code, const char *path, const char *why)
{
    fprintf(stderr, "faberio key %s: ", w->verb);
    fb_cli_put_visible(path);
    fprintf(stderr, ": %s\n", why);
    return code;
}

/* The first line of a file, or of standard input: secrets are never words of a command line, which
 * everybody on the machine can see. */
static bool line_read(const char *path, char *out, size_t max, size_t *len)
{
    bool input = strcmp(path, "-") == 0;
    int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return false;
    size_t at = 0;
    ssize_t n = 1;
    while (at < max && n > 0 && memchr(out, '\n', at) == NULL) {
        n = read(fd, out + at, max - at);
        if (n > 0) at += (size_t)n;
    }
    if (!input) close(fd);
    const char *end = memchr(out, '\n', at);
    *len = end != NULL ? (size_t)(end - out) : at;
    if (*len > 0 && out[*len - 1] == '\r') --*len;
    return n >= 0;
}

static const char *value_of(int argc, char **argv, int *at, const char *name)
{
    if (strcmp(argv[*at], name) != 0 || *at + 1 >= argc) return NULL;
    return argv[++*at];
}

/* An exit code, or -1. */
static int words_read(words *w, int argc, char **argv)
{
    bool restore = strcmp(argv[1], "restore") == 0;
    w->verb = argv[1];
    for (int i = 2; i < argc; i++) {
        const char *value;
        if (strcmp(argv[i], "--json") == 0) continue; /* it is JSON already */
        if ((value = value_of(argc, argv, &i, "--home")) != NULL) {
            w->home = value;
        } else if ((value = value_of(argc, argv, &i, "--passphrase-file")) != NULL) {
            w->passphrase = value;
        } else if (restore && (value = value_of(argc, argv, &i, "--recovery-file")) != NULL) {
            w->recovery = value;
        } else if (restore && strcmp(argv[i], "--original-is-gone") == 0) {
            w->original_is_gone = true;
        } else if (argv[i][0] != '-' && w->file == NULL) {
            w->file = argv[i];
        } else {
            return usage(w, restore
                                ? "restore takes one FILE, --home DIR, --passphrase-file FILE or "
                                  "--recovery-file FILE, --original-is-gone"
                                : "backup takes one OUT, --home DIR and --passphrase-file FILE");
        }
    }
    return w->file == NULL ? usage(w, "no file") : -1;
}

static bool home_of(const words *w, fb_home *out, char *why, size_t why_len)
{
    static fb_cli cli;
    const char *path = w->home;
    if (path == NULL) {
        if (!fb_cli_settings(&cli, &cli.settings, why, why_len)) return false;
        path = fb_settings_get(&cli.settings, FB_SET_HOME);
    }
    return fb_home_open(path, out, why, why_len);
}

static int show(const words *w, const fb_home *home, const fb_b32 *node_key)
{
    fb_sodium *sodium;
    fb_key_handle key;
    fb_b32 public_key;
    char fingerprint[FB_FINGERPRINT_BYTES];
    if (fb_sodium_create(1, &sodium) != FB_OK) {
        return failed(w, FB_EXIT_FAILED, w->file, "libsodium does not start");
    }
    const fb_provider *provider = fb_sodium_provider(sodium);
    fb_sodium_add_signing(sodium, node_key, &key);
    provider->public_key(provider->user, key, &public_key);
    fb_id id = fb_node_id_of(provider, &public_key);
    fb_fingerprint(provider, &public_key, fingerprint);
    fb_sodium_destroy(sodium);
    fb_text text = {0};
    fb_json_open(&text, NULL, '{');
    fb_json_hex(&text, "node_id", id.b, sizeof id.b);
    fb_json_member(&text, "fingerprint", fingerprint);
    fb_json_member(&text, "home", home->path);
    fb_json_member(&text, "file", w->file);
    fb_json_close(&text, '}');
    puts(fb_text_string(&text));
    fb_text_free(&text);
    return fflush(stdout) == 0 ? FB_EXIT_OK : FB_EXIT_FAILED;
}

/* Passphrase into `room`. An exit code, or -1; without a file *out stays as it is. */
static int passphrase_read(const words *w, char room[FB_BACKUP_PASSPHRASE_MAX + 1], fb_span *out)
{
    size_t len;
    if (w->passphrase == NULL) return -1;
    if (!line_read(w->passphrase, room, FB_BACKUP_PASSPHRASE_MAX + 1, &len)) {
        return failed(w, FB_EXIT_FAILED, w->passphrase, strerror(errno));
    }
    if (len < FB_BACKUP_PASSPHRASE_MIN || len > FB_BACKUP_PASSPHRASE_MAX) {
        return usage(w, "a passphrase has 8 to 1,024 bytes");
    }
    *out = fb_span_of(room, len);
    return -1;
}

/* All of it, on the disk, or nothing: 0, or what errno would say. */
static int file_write(const char *path, const uint8_t *bytes, size_t len)
{
    fb_new_file file;
    int error = fb_new_file_open(&file, path);
    if (error != 0) return error;
    error = fb_write_all(file.fd, bytes, len);
    if (error == 0) return fb_new_file_keep(&file);
    fb_new_file_drop(&file);
    return error;
}

int fb_cmd_key_backup(int argc, char **argv)
{
    words w = {0};
    char why[FB_HOME_PATH_MAX + 256] = "", room[FB_BACKUP_PASSPHRASE_MAX + 1];
    fb_home home;
    fb_backup backup;
    fb_span passphrase = {NULL, 0};
    uint8_t sealed[FB_BACKUP_BYTES_MAX];
    size_t len = 0;
    int code = words_read(&w, argc, argv);
    if (code < 0) code = passphrase_read(&w, room, &passphrase);
    if (code >= 0) return code;
    if (!home_of(&w, &home, why, sizeof why)) return fb_cli_fail(FB_EXIT_USAGE, "%s", why);
    if (fb_home_secrets(&home, &backup, why, sizeof why) != FB_OK) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    }
    backup.made_us = fb_clock_wall_us();
    fb_status status = fb_backup_seal(&backup, passphrase, sealed, &len);
    sodium_memzero(room, sizeof room);
    int error = status == FB_OK ? file_write(w.file, sealed, len) : 0;
    if (status != FB_OK) {
        code = failed(&w, FB_EXIT_FAILED, w.file, fb_error_text(status));
    } else if (error != 0) {
        code = failed(&w, FB_EXIT_FAILED, w.file, strerror(error));
    } else {
        code = show(&w, &home, &backup.node_key);
        if (code == FB_EXIT_OK) {
            fputs(passphrase.p != NULL
                      ? "It opens with the passphrase alone.\n"
                      : "It opens with the recovery key alone, which init showed once.\n",
                  stderr);
        }
    }
    sodium_memzero(&backup, sizeof backup);
    return code;
}

static int backup_open(const words *w, fb_backup *out)
{
    uint8_t sealed[FB_BACKUP_BYTES_MAX + 1];
    char room[FB_BACKUP_PASSPHRASE_MAX + 1];
    fb_span passphrase = {NULL, 0};
    fb_b32 recovery;
    size_t len;
    int fd = open(w->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t n = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && n < sizeof sealed) { /* a pipe gives it in parts */
        got = read(fd, sealed + n, sizeof sealed - n);
        if (got > 0) n += (size_t)got;
    }
    int error = errno;
    if (fd >= 0) close(fd);
    if (got < 0) return failed(w, FB_EXIT_FAILED, w->file, strerror(error));
    int code = passphrase_read(w, room, &passphrase);
    if (code >= 0) return code;
    if (w->recovery != NULL) {
        char digits[80];
        if (!line_read(w->recovery, digits, sizeof digits, &len)) {
            return failed(w, FB_EXIT_FAILED, w->recovery, strerror(errno));
        }
        if (!fb_hex_parse(fb_span_of(digits, len), recovery.b, sizeof recovery.b)) {
            return failed(w, FB_EXIT_FAILED, w->recovery,
                          "not a recovery key (64 hexadecimal digits)");
        }
        sodium_memzero(digits, sizeof digits);
    }
    fb_status status = fb_backup_open(fb_span_of(sealed, n), passphrase,
                                      w->recovery != NULL ? &recovery : NULL, out);
    sodium_memzero(room, sizeof room);
    sodium_memzero(&recovery, sizeof recovery);
    switch (status) {
    case FB_OK:
        return -1;
    case FB_ERR_ARGUMENT:
        return usage(w, fb_backup_wants_passphrase(fb_span_of(sealed, n))
                            ? "this backup opens with a passphrase: --passphrase-file FILE"
                            : "this backup opens with the recovery key: --recovery-file FILE");
    case FB_ERR_KEY:
        return failed(w, FB_EXIT_NOT_AUTHORISED, w->file,
                      "it does not open with that, or it was changed");
    case FB_ERR_MALFORMED:
        return failed(w, FB_EXIT_FAILED, w->file, "not a backup of keys, or not all of one");
    default:
        return failed(w, FB_EXIT_FAILED, w->file, fb_error_text(status));
    }
}

int fb_cmd_key_restore(int argc, char **argv)
{
    words w = {0};
    char why[FB_HOME_PATH_MAX + 256] = "";
    fb_home home;
    fb_backup backup;
    int code = words_read(&w, argc, argv);
    if (code >= 0) return code;
    if (w.passphrase != NULL && w.recovery != NULL) {
        return usage(&w, "either --passphrase-file or --recovery-file");
    }
    if (!home_of(&w, &home, why, sizeof why)) return fb_cli_fail(FB_EXIT_USAGE, "%s", why);
    code = backup_open(&w, &backup);
    if (code >= 0) return code;
    if (!w.original_is_gone) {
        sodium_memzero(&backup, sizeof backup);
        return failed(
            &w, FB_EXIT_CONFLICT, w.file,
            "two nodes under one key work against each other; when the one that these keys "
            "are from never runs again, say --original-is-gone");
    }
    fb_status status = fb_home_restore(&home, &backup, why, sizeof why);
    if (status == FB_OK) {
        code = show(&w, &home, &backup.node_key);
    } else {
        fb_exit how = status == FB_ERR_EXISTS ? FB_EXIT_CONFLICT : FB_EXIT_FAILED;
        code = fb_cli_fail(how, "%s", why);
    }
    sodium_memzero(&backup, sizeof backup);
    return code;
}
