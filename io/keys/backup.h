/* SPDX-License-Identifier: Apache-2.0 */
/* A node's keys in one file that is of no use without a passphrase or the recovery key:
 *
 *     "faberio-backup-1"  'P'  u64 operations  u64 memory  salt (16)  nonce (24)  secretbox
 *     "faberio-backup-1"  'R'  sealed box to the recovery key (its X25519 form)
 *
 * In the box: u8 version 1, node key (32), link key (32), public recovery key (32), u8 1 and the
 * key of recordings (32) or u8 0 and zeros, i64 microseconds since 1970 when it was made. */
#ifndef FB_IO_KEYS_BACKUP_H
#define FB_IO_KEYS_BACKUP_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

#define FB_BACKUP_PASSPHRASE_MIN 8u
#define FB_BACKUP_PASSPHRASE_MAX 1024u
#define FB_BACKUP_BYTES_MAX      512u
/* What a file may ask of whoever opens it: more would be somebody's joke. */
#define FB_BACKUP_OPERATIONS_MAX 16u
#define FB_BACKUP_MEMORY_MAX     (UINT64_C(1) << 30)

typedef struct fb_backup {
    fb_b32 node_key;
    fb_b32 link_key;
    fb_b32 recovery_pub;
    bool has_record_key;
    fb_b32 record_key;
    int64_t made_us;
} fb_backup;

/* Into out, of FB_BACKUP_BYTES_MAX bytes. passphrase.p NULL: for the recovery key that the backup
 * names. FB_ERR_ARGUMENT (a passphrase of another length), FB_ERR_KEY, FB_ERR_NO_MEMORY. */
fb_status fb_backup_seal(const fb_backup *backup, fb_span passphrase, uint8_t *out, size_t *len);

/* Opens one with its passphrase, or with the secret recovery key. FB_ERR_MALFORMED: no backup, or
 * cut or changed in its head; FB_ERR_ARGUMENT: it takes the other one of the two; FB_ERR_KEY: it
 * does not open; FB_ERR_VERSION_NEWER; FB_ERR_NO_MEMORY. */
fb_status fb_backup_open(fb_span sealed, fb_span passphrase, const fb_b32 *recovery,
                         fb_backup *out);

/* Is it opened by a passphrase? False also for what is no backup. */
bool fb_backup_wants_passphrase(fb_span sealed);

#endif
