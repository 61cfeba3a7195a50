/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/entropy.h"
#include "io/files/new_file.h"
#include "io/keys/file.h"
#include "protocol/base/hex.h"

bool fb_home_open(const char *path, fb_home *out, char *why, size_t why_len)
{
    char here[FB_HOME_PATH_MAX] = "";
    if (path[0] != '/' && getcwd(here, sizeof here - 1) == NULL) {
        snprintf(why, why_len, "the current directory: %s", strerror(errno));
        return false;
    }
    int len = path[0] == '/' ? snprintf(out->path, sizeof out->path, "%s", path)
                             : snprintf(out->path, sizeof out->path, "%s/%s", here, path);
    if (len < 0 || (size_t)len >= sizeof out->path || path[0] == 0) {
        snprintf(why, why_len, "%s: not a usable path for a node's directory", path);
        return false;
    }
    return true;
}

void fb_home_file(const fb_home *home, const char *leaf, char *out)
{
    snprintf(out, FB_HOME_PATH_MAX, "%s/%s", home->path, leaf);
}

static fb_status failed(const char *path, char *why, size_t why_len)
{
    snprintf(why, why_len, "%s: %s", path, strerror(errno));
    return FB_ERR_STORE_FAILED;
}

/* mkdir -p with 0700 for what is made. */
static fb_status directories(const char *path, char *why, size_t why_len)
{
    char part[FB_HOME_PATH_MAX];
    for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        size_t len = slash != NULL ? (size_t)(slash - path) : strlen(path);
        memcpy(part, path, len);
        part[len] = 0;
        if (mkdir(part, 0700) != 0 && errno != EEXIST) return failed(part, why, why_len);
        if (slash == NULL) return FB_OK;
    }
}

/* Writes a small file so that it is there whole or not at all, also after a power cut. */
static fb_status file_write(const fb_home *home, const char *leaf, const char *text, char *why,
                            size_t why_len)
{
    char path[FB_HOME_PATH_MAX], temporary[FB_HOME_PATH_MAX];
    char hidden[64];
    snprintf(hidden, sizeof hidden, ".%s.%ld", leaf, (long)getpid());
    fb_home_file(home, leaf, path);
    fb_home_file(home, hidden, temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return failed(temporary, why, why_len);
    int error = fb_write_all(fd, text, strlen(text));
    if (error == 0 && fsync(fd) != 0) error = errno;
    if (close(fd) != 0 && error == 0) error = errno;
    if (error == 0 && rename(temporary, path) != 0) error = errno;
    if (error != 0) {
        unlink(temporary);
    } else {
        error = fb_directory_sync(home->path);
    }
    errno = error;
    return error == 0 ? FB_OK : failed(path, why, why_len);
}

/* What stands in a file of a public key. */
static void public_line(const uint8_t key[32], char out[66])
{
    fb_hex_text(key, 32, out);
    strcpy(out + 64, "\n");
}

static fb_status key_make(const fb_home *home, const char *leaf, fb_key_kind kind, char *why,
                          size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_key_file_error error = {""};
    fb_b32 secret;
    fb_home_file(home, leaf, path);
    fb_status status = fb_key_file_read(path, kind, &secret, &error);
    if (status == FB_ERR_NOT_FOUND) status = fb_key_file_generate(path, kind, &secret, &error);
    sodium_memzero(&secret, sizeof secret);
    if (status != FB_OK) snprintf(why, why_len, "%s: %s", path, error.text);
    return status;
}

/* Is it what recovery_make writes? A wrong one would outrank every key of this node and belong to
 * nobody. */
static fb_status recovery_check(const char *path, char *why, size_t why_len)
{
    char text[66];
    uint8_t key[32];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        snprintf(why, why_len, "%s is missing; faberio init makes what is missing", path);
        return FB_ERR_NOT_FOUND;
    }
    if (fd < 0) return failed(path, why, why_len);
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n = is_file ? read(fd, text, sizeof text) : -1;
    close(fd);
    if (n == 65 && text[64] == '\n') n = 64;
    if (n == 64 && fb_hex_parse(fb_span_of(text, 64), key, sizeof key) &&
        crypto_core_ed25519_is_valid_point(key) == 1) {
        return FB_OK;
    }
    snprintf(why, why_len,
             "%s: not a public recovery key (64 hexadecimal digits); put the right one back, or "
             "remove it and faberio init makes and shows a new one",
             path);
    return FB_ERR_KEY;
}

/* Who may write in the directory may put another key, store or socket there. */
static fb_status home_check(const fb_home *home, char *why, size_t why_len)
{
    struct stat st;
    if (stat(home->path, &st) != 0) {
        return errno == ENOENT ? FB_OK : failed(home->path, why, why_len); /* others say so */
    }
    if (st.st_uid != geteuid() && geteuid() != 0) {
        snprintf(why, why_len, "%s: belongs to another user", home->path);
        return FB_ERR_NOT_AUTHORISED;
    }
    if ((st.st_mode & 022) != 0) {
        snprintf(why, why_len, "%s: others may write in it; chmod 700 it", home->path);
        return FB_ERR_NOT_AUTHORISED;
    }
    return FB_OK;
}

static fb_status recovery_make(const fb_home *home, bool (*show)(void *user, const char *recovery),
                               void *user, char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_home_file(home, "recovery.pub", path);
    fb_status status = recovery_check(path, why, why_len);
    if (status != FB_ERR_NOT_FOUND) return status;
    unsigned char seed[32], public_key[32], secret_key[64];
    fb_entropy(seed, sizeof seed);
    crypto_sign_seed_keypair(public_key, secret_key, seed);
    char digits[65], line[66];
    fb_hex_text(seed, sizeof seed, digits);
    public_line(public_key, line);
    /* Shown first: a key that nobody has seen must not be the one that counts. */
    bool shown = show(user, digits);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret_key, sizeof secret_key);
    sodium_memzero(digits, sizeof digits);
    if (!shown) {
        snprintf(why, why_len, "the recovery key could not be printed");
        return FB_ERR_STORE_FAILED;
    }
    return file_write(home, "recovery.pub", line, why, why_len);
}

static fb_status record_key_read(const char *path, fb_b32 *out, char *why, size_t why_len)
{
    char text[66];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        snprintf(why, why_len, "%s is missing; faberio init makes what is missing", path);
        return FB_ERR_NOT_FOUND;
    }
    if (fd < 0) return failed(path, why, why_len);
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n == 65 && text[64] == '\n') n = 64;
    if (n == 64 && fb_hex_parse(fb_span_of(text, 64), out->b, sizeof out->b)) return FB_OK;
    snprintf(why, why_len, "%s: not 64 hexadecimal digits; remove it and faberio init makes it",
             path);
    return FB_ERR_KEY;
}

fb_status fb_home_record_key(const fb_home *home, fb_b32 *out, char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_home_file(home, "record.pub", path);
    return record_key_read(path, out, why, why_len);
}

/* Where the public half is and the other one is not, somebody keeps that elsewhere. */
static fb_status record_key_make(const fb_home *home, char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX], line[66];
    fb_b32 secret, public_key;
    fb_key_file_error error = {""};
    fb_status status = fb_home_record_key(home, &public_key, why, why_len);
    if (status != FB_ERR_NOT_FOUND) return status;
    FB_TRY(key_make(home, "record.key", FB_KEY_X25519, why, why_len));
    fb_home_file(home, "record.key", path);
    status = fb_key_file_read(path, FB_KEY_X25519, &secret, &error);
    if (status != FB_OK) {
        snprintf(why, why_len, "%s: %s", path, error.text);
        return status;
    }
    crypto_scalarmult_base(public_key.b, secret.b);
    sodium_memzero(&secret, sizeof secret);
    public_line(public_key.b, line);
    return file_write(home, "record.pub", line, why, why_len);
}

/* Makes the directory; several that make keys in it wait for each other. */
static fb_status home_lock(const fb_home *home, int *lock, char *why, size_t why_len)
{
    FB_TRY(directories(home->path, why, why_len));
    FB_TRY(home_check(home, why, why_len));
    *lock = open(home->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock >= 0 && flock(*lock, LOCK_EX) == 0) return FB_OK;
    fb_status status = failed(home->path, why, why_len);
    if (*lock >= 0) close(*lock);
    return status;
}

fb_status fb_home_init(const fb_home *home, bool (*show)(void *user, const char *recovery),
                       void *user, char *why, size_t why_len)
{
    int lock;
    FB_TRY(home_lock(home, &lock, why, why_len));
    fb_status status = fb_sodium_self_test();
    if (status != FB_OK) snprintf(why, why_len, "%s", fb_error_text(status));
    if (status == FB_OK) status = key_make(home, "node.key", FB_KEY_ED25519, why, why_len);
    if (status == FB_OK) status = key_make(home, "link.key", FB_KEY_X25519, why, why_len);
    if (status == FB_OK) status = record_key_make(home, why, why_len);
    if (status == FB_OK) status = recovery_make(home, show, user, why, why_len);
    close(lock);
    return status;
}

static fb_status key_load(const fb_home *home, const char *leaf, fb_key_kind kind, fb_b32 *secret,
                          char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_key_file_error error = {""};
    fb_home_file(home, leaf, path);
    fb_status status = fb_key_file_read(path, kind, secret, &error);
    if (status == FB_ERR_NOT_FOUND) {
        snprintf(why, why_len, "no node in %s; faberio init makes one", home->path);
    } else if (status != FB_OK) {
        snprintf(why, why_len, "%s: %s", path, error.text);
    }
    return status;
}

fb_status fb_home_load(const fb_home *home, fb_home_keys *out, char *why, size_t why_len)
{
    memset(out, 0, sizeof *out);
    FB_TRY(home_check(home, why, why_len));
    /* Two static keys, and an ephemeral one for each handshake under way. */
    fb_status status = fb_sodium_create(2048, &out->sodium);
    if (status != FB_OK) {
        snprintf(why, why_len, "%s", fb_error_text(status));
        return status;
    }
    fb_b32 secret;
    status = key_load(home, "node.key", FB_KEY_ED25519, &secret, why, why_len);
    if (status == FB_OK) status = fb_sodium_add_signing(out->sodium, &secret, &out->identity_key);
    if (status == FB_OK) status = key_load(home, "link.key", FB_KEY_X25519, &secret, why, why_len);
    if (status == FB_OK) status = fb_sodium_add_dh(out->sodium, &secret, &out->link_key);
    char path[FB_HOME_PATH_MAX];
    fb_home_file(home, "recovery.pub", path);
    if (status == FB_OK) status = recovery_check(path, why, why_len);
    if (status == FB_OK) status = record_key_read(path, &out->recovery_pub, why, why_len);
    sodium_memzero(&secret, sizeof secret);
    const fb_provider *provider = fb_sodium_provider(out->sodium);
    if (status == FB_OK) {
        status = provider->public_key(provider->user, out->identity_key, &out->public_key);
    }
    if (status != FB_OK) {
        fb_home_unload(out);
        return status;
    }
    out->node_id = fb_node_id_of(provider, &out->public_key);
    fb_fingerprint(provider, &out->public_key, out->fingerprint);
    return FB_OK;
}

void fb_home_unload(fb_home_keys *keys)
{
    fb_sodium_destroy(keys->sodium);
    keys->sodium = NULL;
}

fb_status fb_home_secrets(const fb_home *home, fb_backup *out, char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_key_file_error error = {""};
    memset(out, 0, sizeof *out);
    FB_TRY(key_load(home, "node.key", FB_KEY_ED25519, &out->node_key, why, why_len));
    FB_TRY(key_load(home, "link.key", FB_KEY_X25519, &out->link_key, why, why_len));
    fb_home_file(home, "recovery.pub", path);
    FB_TRY(recovery_check(path, why, why_len));
    FB_TRY(record_key_read(path, &out->recovery_pub, why, why_len)); /* the same form */
    fb_home_file(home, "record.key", path);
    fb_status status = fb_key_file_read(path, FB_KEY_X25519, &out->record_key, &error);
    out->has_record_key = status == FB_OK;
    if (status == FB_OK || status == FB_ERR_NOT_FOUND) return FB_OK;
    snprintf(why, why_len, "%s: %s", path, error.text);
    return status;
}

/* Of a restore that was cut off there may be files already; those of another node stay. */
static fb_status key_is_other(const fb_home *home, const char *leaf, const fb_b32 *secret,
                              char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_b32 there;
    fb_home_file(home, leaf, path);
    fb_status status = fb_key_file_read(path, FB_KEY_X25519, &there, NULL);
    if (status == FB_ERR_NOT_FOUND) return FB_OK;
    bool same = status == FB_OK && sodium_memcmp(there.b, secret->b, sizeof there.b) == 0;
    sodium_memzero(&there, sizeof there);
    if (same) return FB_OK;
    snprintf(why, why_len, "%s: there is another key already", path);
    return FB_ERR_EXISTS;
}

static fb_status restore_check(const fb_home *home, const fb_backup *keys, char *why,
                               size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    struct stat st;
    fb_b32 there;
    fb_home_file(home, "node.key", path);
    if (lstat(path, &st) == 0) {
        snprintf(why, why_len, "%s: there is a node already", home->path);
        return FB_ERR_EXISTS;
    }
    FB_TRY(key_is_other(home, "link.key", &keys->link_key, why, why_len));
    if (keys->has_record_key) {
        FB_TRY(key_is_other(home, "record.key", &keys->record_key, why, why_len));
    }
    fb_home_file(home, "recovery.pub", path);
    fb_status status = record_key_read(path, &there, why, why_len); /* the same form */
    if (status == FB_ERR_NOT_FOUND) return FB_OK;
    if (status == FB_OK && memcmp(there.b, keys->recovery_pub.b, sizeof there.b) == 0) return FB_OK;
    snprintf(why, why_len, "%s: there is another recovery key already", path);
    return FB_ERR_EXISTS;
}

static fb_status key_put(const fb_home *home, const char *leaf, fb_key_kind kind,
                         const fb_b32 *secret, char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_key_file_error error = {""};
    fb_home_file(home, leaf, path);
    fb_status status = fb_key_file_write(path, kind, secret, &error);
    if (status == FB_ERR_EXISTS) return FB_OK; /* the same, it was looked at */
    if (status != FB_OK) snprintf(why, why_len, "%s: %s", path, error.text);
    return status;
}

fb_status fb_home_restore(const fb_home *home, const fb_backup *keys, char *why, size_t why_len)
{
    char line[66];
    int lock;
    FB_TRY(home_lock(home, &lock, why, why_len));
    public_line(keys->recovery_pub.b, line);
    fb_status status = restore_check(home, keys, why, why_len);
    if (status == FB_OK) status = file_write(home, "recovery.pub", line, why, why_len);
    if (status == FB_OK) {
        status = key_put(home, "link.key", FB_KEY_X25519, &keys->link_key, why, why_len);
    }
    if (status == FB_OK && keys->has_record_key) {
        status = key_put(home, "record.key", FB_KEY_X25519, &keys->record_key, why, why_len);
    }
    if (status == FB_OK) status = record_key_make(home, why, why_len);
    /* Last: with it the directory is a node's. */
    if (status == FB_OK) {
        status = key_put(home, "node.key", FB_KEY_ED25519, &keys->node_key, why, why_len);
    }
    close(lock);
    return status;
}

/* An abstract name belongs to a process of this machine (of this network namespace, more precisely)
 * and goes with it, whatever ends it. */
bool fb_home_claim(const fb_home_keys *keys, int *fd, char *why, size_t why_len)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char id[33];
    fb_hex_text(keys->node_id.b, sizeof keys->node_id.b, id);
    int len = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "faberio-node-%s", id);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0) return true;
    if (bind(*fd, (struct sockaddr *)&name, size) == 0) {
        listen(*fd, 64);
        return true;
    }
    struct ucred holder = {0};
    socklen_t holder_len = sizeof holder;
    /* Who holds it may let nobody in: that must not keep this one from going on. */
    int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int other = errno == EADDRINUSE ? socket(AF_UNIX, kind, 0) : -1;
    bool held = other >= 0 && connect(other, (struct sockaddr *)&name, size) == 0 &&
                getsockopt(other, SOL_SOCKET, SO_PEERCRED, &holder, &holder_len) == 0 &&
                /* Who else took the name may not keep this node from running. */
                (holder.uid == geteuid() || holder.uid == 0);
    if (other >= 0) close(other);
    close(*fd);
    *fd = -1;
    if (held) {
        snprintf(
            why, why_len,
            "the node %s runs already on this machine, from another directory (process %ld): two "
            "under one key work against each other",
            id, (long)holder.pid);
    }
    return !held;
}

/* Reads the token, when there is one and it is only the owner's. */
static fb_status token_read(const char *path, char out[65], char *why, size_t why_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno == ENOENT ? FB_ERR_NOT_FOUND : failed(path, why, why_len);
    struct stat st;
    char text[66] = "";
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n = is_file ? read(fd, text, 65) : -1;
    close(fd);
    if (is_file && st.st_uid != geteuid() && geteuid() != 0) {
        snprintf(why, why_len, "%s: belongs to another user; remove it to get a new one", path);
        return FB_ERR_NOT_AUTHORISED;
    }
    uint8_t bytes[32];
    if (n < 64 || !fb_hex_parse(fb_span_of(text, 64), bytes, 32)) {
        snprintf(why, why_len, "%s: not 64 hexadecimal digits; remove it to get a new one", path);
        return FB_ERR_KEY;
    }
    if ((st.st_mode & 077) != 0) {
        snprintf(why, why_len, "%s: readable by others; chmod 600, or remove it", path);
        return FB_ERR_NOT_AUTHORISED;
    }
    memcpy(out, text, 64);
    out[64] = 0;
    return FB_OK;
}

fb_status fb_home_token(const fb_home *home, char out[65], char *why, size_t why_len)
{
    char path[FB_HOME_PATH_MAX];
    fb_home_file(home, "api.token", path);
    fb_status status = token_read(path, out, why, why_len);
    if (status != FB_ERR_NOT_FOUND) return status;
    uint8_t bytes[32];
    char line[66];
    fb_entropy(bytes, sizeof bytes);
    fb_hex_text(bytes, sizeof bytes, out);
    public_line(bytes, line);
    return file_write(home, "api.token", line, why, why_len);
}

void fb_home_claim_asked(int fd)
{
    int other = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (other >= 0) close(other);
}

bool fb_home_had_store(const fb_home *home)
{
    char path[FB_HOME_PATH_MAX];
    fb_home_file(home, "store.made", path);
    return access(path, F_OK) == 0;
}

fb_status fb_home_mark_store(const fb_home *home, char *why, size_t why_len)
{
    return file_write(home, "store.made",
                      "A store was made here. Without this file a node that finds none takes it "
                      "for its first start.\n",
                      why, why_len);
}

static int is_aside(const struct dirent *entry)
{
    return strncmp(entry->d_name, "store.damaged-", 14) == 0;
}

void fb_home_aside(const fb_home *home, void (*each)(void *user, const char *name), void *user)
{
    struct dirent **found = NULL;
    int count = scandir(home->path, &found, is_aside, versionsort);
    for (int i = 0; i < count; i++) {
        each(user, found[i]->d_name);
        free(found[i]);
    }
    if (count >= 0) free(found);
}

/* Through a descriptor of the directory the name is short however long the path is. The descriptor
 * is the caller's to close; -1 with errno. */
static int socket_address(const fb_home *home, const char *leaf, struct sockaddr_un *out)
{
    int directory = open(home->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", directory, leaf);
    return directory;
}

/* Closes the directory, and the socket as well when it is of no use. */
static int socket_done(int directory, int fd, int rc)
{
    int error = errno;
    close(directory);
    if (rc != 0 && fd >= 0) close(fd);
    errno = error;
    return rc == 0 ? fd : -1;
}

int fb_home_listen(const fb_home *home, const char *leaf, int backlog)
{
    struct sockaddr_un address;
    int directory = socket_address(home, leaf, &address);
    if (directory < 0) return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = -1;
    if (fd >= 0) {
        /* What is left of an earlier run is a socket; anything else is not ours to remove. */
        struct stat st;
        bool is_socket =
            fstatat(directory, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
        if (is_socket) unlinkat(directory, leaf, 0);
        mode_t mask = umask(0177);
        rc = bind(fd, (struct sockaddr *)&address, sizeof address);
        umask(mask);
        if (rc == 0) rc = listen(fd, backlog);
    }
    return socket_done(directory, fd, rc);
}

int fb_home_connect(const fb_home *home, const char *leaf, unsigned long long seconds)
{
    struct sockaddr_un address;
    int directory = socket_address(home, leaf, &address);
    if (directory < 0) return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval wait = {.tv_sec = (time_t)seconds};
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
              setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) == 0;
    int rc = ok ? connect(fd, (struct sockaddr *)&address, sizeof address) : -1;
    return socket_done(directory, fd, rc);
}
