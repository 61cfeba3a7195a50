/* SPDX-License-Identifier: Apache-2.0 */
/* The toy log: an append log with checksummed entries, numbered and of an epoch, cut at its end
 * when a leader says so, drained at its beginning.
 *
 * File `log`: one sector of head (magic, base: the entries up to it were drained; the checksum and
 * the epoch of the last of them), then entries, each from the beginning of a sector: a header of
 * 56 bytes and the payload. A header names the entry before by its checksum, and the last entry
 * that was durable when this one was written (`synced`).
 *
 * What stands behind a hole says what the hole is. An entry there whose `synced` reaches the hole
 * proves that what is missing was acknowledged: damage. Otherwise all of it is a tail that no sync
 * covered, and is cut. What is damaged is said, not repaired: a replica asks its peers.
 *
 * Files `super.a`, `super.b`, written in turn by temp file, sync, rename and directory sync: the
 * epoch, the first entry that has to be of it, the mark (how far the log is known to be durable)
 * and the incarnation. A copy that does not match its checksum is damage, as rename leaves none. */
#ifndef FB_SIM_DISK_TOY_LOG_H
#define FB_SIM_DISK_TOY_LOG_H

#include "sim/disk/toy.h"

#define LOG_SECTOR  128u
#define LOG_HEADER  56u
#define LOG_RING    128u /* entries held at once */
#define LOG_PAYLOAD 207u
#define LOG_ENTRY   (3 * LOG_SECTOR) /* the longest, padded */

typedef struct log_entry {
    uint64_t seq;
    uint64_t epoch;
    uint64_t incarnation;
    uint64_t synced;
    uint64_t parent; /* checksum of the entry before */
    uint64_t sum;
    uint64_t content; /* hash of the payload */
    uint32_t len;     /* of the payload */
    uint32_t sector;  /* where it begins */
    uint32_t sectors;
} log_entry;

typedef struct toy_log {
    fb_disk *disk;
    fb_disk_defect defect;
    bool damaged;
    uint32_t handle;
    uint64_t incarnation;
    uint64_t base; /* entries base+1 .. head are there */
    uint64_t head;
    uint64_t synced;
    uint64_t base_sum, base_epoch;
    uint32_t end; /* sector behind the last entry */
    /* The superblock. */
    uint64_t number; /* of the last one written */
    uint64_t epoch;
    uint64_t from; /* entries from this one on are of this epoch or a later one */
    uint64_t mark;
    bool next_is_b;
    log_entry entries[LOG_RING]; /* by sequence number */
} toy_log;

static inline log_entry *log_at(toy_log *log, uint64_t seq)
{
    return &log->entries[seq % LOG_RING];
}

static inline uint64_t log_sum_before(const toy_log *log, uint64_t seq)
{
    return seq == log->base + 1 ? log->base_sum : log->entries[(seq - 1) % LOG_RING].sum;
}

typedef enum log_read {
    LOG_READ_GOOD,
    LOG_READ_BAD,   /* no entry, or not whole */
    LOG_READ_END,   /* behind the end of the file */
    LOG_READ_ERROR, /* the disk failed */
} log_read;

/* The entry at a sector; `bytes` gets it as it stands, with room for LOG_ENTRY. */
log_read log_entry_read(const toy_log *log, uint32_t handle, uint32_t sector, log_entry *out,
                        uint8_t *bytes);
uint64_t log_entry_sum(const toy_log *log, const uint8_t *bytes, uint32_t payload);
/* Writes a file under its final name: temp file, sync, rename, directory sync. */
fb_disk_status log_super_write(toy_log *log);
/* Writes what is above `base` as a new log and takes its place. */
fb_disk_status log_rewrite(toy_log *log, uint64_t base, bool *renamed);
fb_disk_result log_open(void *toy, fb_disk *disk, uint64_t incarnation, fb_disk_defect defect);

#endif
