/* SPDX-License-Identifier: Apache-2.0 */
/* A node's directory:
 *
 *     node.key       Ed25519 identity (0600)          store/     the database
 *     link.key       X25519 Noise static key (0600)   api.sock   while the node runs (0600)
 *     recovery.pub   public recovery key, hex         api.token  the operator's token for the
 *     record.key     opens recordings (0600)                     loopback port (0600)
 *     record.pub     seals them, hex                store.made   there was a store once
 *     store.damaged-N/  a store that was moved aside
 */
#ifndef FB_RUNTIME_HOME_H
#define FB_RUNTIME_HOME_H

#include "io/keys/backup.h"
#include "io/keys/provider_sodium.h"
#include "protocol/identity/identity.h"

#define FB_HOME_PATH_MAX 4096

typedef struct fb_home {
    char path[FB_HOME_PATH_MAX - 96]; /* absolute */
} fb_home;

/* Who this node is, with its private keys inside the provider. */
typedef struct fb_home_keys {
    fb_sodium *sodium;
    fb_key_handle identity_key;
    fb_key_handle link_key;
    fb_b32 public_key;
    fb_b32 recovery_pub; /* of the spaces that this node makes */
    fb_id node_id;
    char fingerprint[FB_FINGERPRINT_BYTES];
} fb_home_keys;

/* Makes `path` absolute. False with a sentence in why. */
bool fb_home_open(const char *path, fb_home *out, char *why, size_t why_len);

/* PATH/leaf into out, of FB_HOME_PATH_MAX bytes. */
void fb_home_file(const fb_home *home, const char *leaf, char *out);

/* Creates what is missing: the directory (0700), both keys, the key of recordings unless its public
 * half is there (the other one may have been taken away), the recovery key. When the recovery key
 * is made, `show` gets its secret half as 64 hex digits, once; only after it returned true is the
 * public half stored. Several at once wait for each other. Nothing that exists is changed.
 * FB_ERR_STORE_FAILED, or what key_file.h says; why gets a sentence. */
fb_status fb_home_init(const fb_home *home, bool (*show)(void *user, const char *recovery),
                       void *user, char *why, size_t why_len);

/* Loads the keys. FB_ERR_NOT_FOUND when there is no node yet. */
fb_status fb_home_load(const fb_home *home, fb_home_keys *out, char *why, size_t why_len);
void fb_home_unload(fb_home_keys *keys);

/* All of a node's keys, for a backup; the caller wipes them. */
fb_status fb_home_secrets(const fb_home *home, fb_backup *out, char *why, size_t why_len);

/* Makes the directory of a node out of its keys. FB_ERR_EXISTS: something of a node is in it
 * already, which stays as it is; a restore that was cut off may be begun again. */
fb_status fb_home_restore(const fb_home *home, const fb_backup *keys, char *why, size_t why_len);

/* Two processes under one key in two directories of one machine: says so before anything is sent.
 * The descriptor is kept for as long as the node runs; -1: another one runs (why says which
 * process), or nobody can tell. */
bool fb_home_claim(const fb_home_keys *keys, int *fd, char *why, size_t why_len);

/* Whenever that descriptor is readable: who asked has its answer, and makes room for the next. */
void fb_home_claim_asked(int fd);

/* The public key that recordings are sealed to. FB_ERR_NOT_FOUND: faberio init makes one. */
fb_status fb_home_record_key(const fb_home *home, fb_b32 *out, char *why, size_t why_len);

/* The operator's token, made on first use: 64 hex digits and a terminating zero. */
fb_status fb_home_token(const fb_home *home, char out[65], char *why, size_t why_len);

/* Was a store made in this directory before? Kept outside of the store, so that one that vanished
 * is told from a first start. */
bool fb_home_had_store(const fb_home *home);
fb_status fb_home_mark_store(const fb_home *home, char *why, size_t why_len);

/* The directories of stores that were moved aside, in the order of their numbers: calls `each` with
 * the name of one after the other. */
void fb_home_aside(const fb_home *home, void (*each)(void *user, const char *name), void *user);

/* A stream socket that listens at PATH/leaf; -1 with errno. Paths that are too long for a socket
 * address work too, as below. */
int fb_home_listen(const fb_home *home, const char *leaf, int backlog);

/* One that is connected to it. Connecting, and then each sending and receiving, fails with EAGAIN
 * when the other side says nothing for `seconds`. */
int fb_home_connect(const fb_home *home, const char *leaf, unsigned long long seconds);

#endif
