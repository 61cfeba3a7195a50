/* SPDX-License-Identifier: Apache-2.0 */
/* The toy log's files: entries, superblock, the log written anew. */
#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"
#include "sim/disk/toy_log.h"

#define ENTRY_MAGIC 0x46424c45u
#define HEAD_MAGIC  0x46424c48u
#define SUPER_MAGIC 0x46424c53u
#define SUPER_BYTES 60u
#define HEAD_BYTES  36u

uint64_t log_entry_sum(const toy_log *log, const uint8_t *bytes, uint32_t payload)
{
    uint64_t seed = 0;
    if (log->defect != FB_DISK_DEFECT_HEADER_UNCOVERED) {
        seed = fb_xxh64(bytes, LOG_HEADER - 8, 0);
    }
    return fb_xxh64(bytes + LOG_HEADER, payload, seed);
}

static fb_disk_status read_some(const toy_log *log, uint32_t handle, uint32_t at, void *out,
                                uint32_t len, uint32_t *done)
{
    if (log->defect == FB_DISK_DEFECT_SHORT_READ) {
        return fb_disk_read(log->disk, handle, at, out, len, done);
    }
    return fb_disk_read_all(log->disk, handle, at, out, len, done);
}

log_read log_entry_read(const toy_log *log, uint32_t handle, uint32_t sector, log_entry *out,
                        uint8_t *bytes)
{
    uint32_t done, at = sector * LOG_SECTOR;
    memset(out, 0, sizeof *out);
    if (read_some(log, handle, at, bytes, LOG_SECTOR, &done) != FB_DISK_OK) return LOG_READ_ERROR;
    if (done == 0) return LOG_READ_END;
    if (done < LOG_SECTOR) return LOG_READ_BAD;
    fb_reader r = fb_reader_of(fb_span_of(bytes, LOG_SECTOR));
    uint32_t magic = fb_read_u32(&r);
    *out = (log_entry){.len = fb_read_u32(&r), .sector = sector};
    if (magic != ENTRY_MAGIC || out->len > LOG_PAYLOAD) return LOG_READ_BAD;
    out->seq = fb_read_u64(&r);
    out->epoch = fb_read_u64(&r);
    out->incarnation = fb_read_u64(&r);
    out->synced = fb_read_u64(&r);
    out->parent = fb_read_u64(&r);
    out->sum = fb_read_u64(&r);
    out->sectors = (LOG_HEADER + out->len + LOG_SECTOR - 1) / LOG_SECTOR;
    uint32_t rest = (out->sectors - 1) * LOG_SECTOR;
    if (rest != 0) {
        fb_disk_status status =
            read_some(log, handle, at + LOG_SECTOR, bytes + LOG_SECTOR, rest, &done);
        if (status != FB_DISK_OK) return LOG_READ_ERROR;
        if (done < rest) return LOG_READ_BAD;
    }
    out->content = fb_xxh64(bytes + LOG_HEADER, out->len, 0);
    return out->sum == log_entry_sum(log, bytes, out->len) ? LOG_READ_GOOD : LOG_READ_BAD;
}

static fb_disk_status temp_open(const toy_log *log, const char *name, uint32_t *handle)
{
    if (log->defect == FB_DISK_DEFECT_TEMP_EMPTIED) {
        return fb_disk_open(log->disk, name, FB_DISK_CREATE | FB_DISK_EMPTY, handle);
    }
    return fb_disk_open_new(log->disk, name, handle);
}

/* A small file: temp, sync, rename, directory sync. */
static fb_disk_status file_replace(toy_log *log, const char *temp, const char *name,
                                   const uint8_t *bytes, uint32_t len)
{
    fb_disk *disk = log->disk;
    uint32_t handle;
    fb_disk_status status = temp_open(log, temp, &handle);
    if (status != FB_DISK_OK) return status;
    status = fb_disk_write_all(disk, handle, 0, bytes, len);
    if (status == FB_DISK_OK) status = fb_disk_sync(disk, handle, 0);
    fb_disk_close(disk, handle);
    if (status == FB_DISK_OK) status = fb_disk_rename(disk, temp, name);
    if (status != FB_DISK_OK || log->defect == FB_DISK_DEFECT_SUPER_UNNAMED) return status;
    return fb_disk_sync_directory(disk);
}

/* The defect: there is one, and it is written where it stands. */
static fb_disk_status super_overwrite(toy_log *log, const uint8_t *bytes)
{
    uint32_t handle;
    fb_disk_status status = fb_disk_open(log->disk, "super.a", FB_DISK_CREATE, &handle);
    if (status != FB_DISK_OK) return status;
    status = fb_disk_write_all(log->disk, handle, 0, bytes, SUPER_BYTES);
    if (status == FB_DISK_OK) status = fb_disk_sync(log->disk, handle, 0);
    fb_disk_close(log->disk, handle);
    return status == FB_DISK_OK ? fb_disk_sync_directory(log->disk) : status;
}

fb_disk_status log_super_write(toy_log *log)
{
    uint8_t bytes[SUPER_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u32(&w, SUPER_MAGIC);
    fb_write_u64(&w, log->number + 1);
    fb_write_u64(&w, log->incarnation);
    fb_write_u64(&w, log->epoch);
    fb_write_u64(&w, log->from);
    fb_write_u64(&w, log->mark);
    fb_write_u64(&w, 0);
    fb_write_u64(&w, fb_xxh64(bytes, w.at, 0));
    FB_ASSERT(!w.failed && w.at == SUPER_BYTES);
    fb_disk_status status =
        log->defect == FB_DISK_DEFECT_SUPER_IN_PLACE
            ? super_overwrite(log, bytes)
            : file_replace(log, "super.tmp", log->next_is_b ? "super.b" : "super.a", bytes,
                           sizeof bytes);
    if (status != FB_DISK_OK) return status;
    log->number++;
    log->next_is_b = !log->next_is_b;
    return FB_DISK_OK;
}

static fb_disk_status rewrite_head(const toy_log *log, uint32_t handle, uint64_t base)
{
    uint64_t epoch = base == log->base ? log->base_epoch : log->entries[base % LOG_RING].epoch;
    uint8_t head[LOG_SECTOR] = {0};
    fb_writer w = fb_writer_of(head, sizeof head);
    fb_write_u32(&w, HEAD_MAGIC);
    fb_write_u64(&w, base);
    fb_write_u64(&w, log_sum_before(log, base + 1));
    fb_write_u64(&w, epoch);
    fb_write_u64(&w, fb_xxh64(head, HEAD_BYTES - 8, 0));
    FB_ASSERT(!w.failed && w.at == HEAD_BYTES);
    return fb_disk_write_all(log->disk, handle, 0, head, sizeof head);
}

fb_disk_status log_rewrite(toy_log *log, uint64_t base, bool *renamed)
{
    uint32_t handle, end = 1;
    uint8_t bytes[LOG_ENTRY];
    *renamed = false;
    fb_disk_status status = temp_open(log, "log.tmp", &handle);
    if (status != FB_DISK_OK) return status;
    status = rewrite_head(log, handle, base);
    for (uint64_t seq = base + 1; seq <= log->head && status == FB_DISK_OK; seq++) {
        const log_entry *e = log_at(log, seq);
        log_entry again;
        /* What was sound when it was written or opened is looked at again before it moves. */
        log_read read = log_entry_read(log, log->handle, e->sector, &again, bytes);
        if (read != LOG_READ_GOOD || again.sum != e->sum) {
            status = FB_DISK_EIO;
            break;
        }
        uint32_t len = e->sectors * LOG_SECTOR;
        status = fb_disk_write_all(log->disk, handle, end * LOG_SECTOR, bytes, len);
        end += e->sectors;
    }
    if (status == FB_DISK_OK) {
        bool trusts = log->defect == FB_DISK_DEFECT_SYNC_OF_ANOTHER && base != 0;
        status = trusts ? log_super_write(log) : fb_disk_sync(log->disk, handle, 0);
    }
    if (status == FB_DISK_OK) {
        status = fb_disk_rename(log->disk, "log.tmp", "log");
        *renamed = true;
    }
    if (status == FB_DISK_OK) status = fb_disk_sync_directory(log->disk);
    if (status != FB_DISK_OK) {
        fb_disk_close(log->disk, handle);
        return status;
    }
    fb_disk_close(log->disk, log->handle);
    log->handle = handle;
    log->base_epoch = base == log->base ? log->base_epoch : log_at(log, base)->epoch;
    log->base_sum = log_sum_before(log, base + 1);
    log->base = base;
    log->end = 1;
    for (uint64_t seq = base + 1; seq <= log->head; seq++) {
        log_at(log, seq)->sector = log->end;
        log->end += log_at(log, seq)->sectors;
    }
    return FB_DISK_OK;
}

/* Opening: the pieces. */

typedef enum piece {
    PIECE_GOOD,
    PIECE_NONE, /* never written */
    PIECE_DAMAGED,
    PIECE_ERROR,
} piece;

static piece super_read(toy_log *log, const char *name, toy_log *out)
{
    uint32_t handle, done;
    uint8_t bytes[LOG_SECTOR];
    fb_disk_status status = fb_disk_open(log->disk, name, 0, &handle);
    if (status == FB_DISK_ENOENT) return PIECE_NONE;
    if (status != FB_DISK_OK) return PIECE_ERROR;
    status = fb_disk_read_all(log->disk, handle, 0, bytes, sizeof bytes, &done);
    fb_disk_close(log->disk, handle);
    if (status != FB_DISK_OK) return PIECE_ERROR;
    if (done == 0) return PIECE_NONE;
    fb_reader r = fb_reader_of(fb_span_of(bytes, done));
    uint32_t magic = fb_read_u32(&r);
    out->number = fb_read_u64(&r);
    out->incarnation = fb_read_u64(&r);
    out->epoch = fb_read_u64(&r);
    out->from = fb_read_u64(&r);
    out->mark = fb_read_u64(&r);
    fb_read_u64(&r);
    uint64_t sum = fb_read_u64(&r);
    bool right =
        fb_reader_done(&r) && magic == SUPER_MAGIC && sum == fb_xxh64(bytes, SUPER_BYTES - 8, 0);
    return right ? PIECE_GOOD : PIECE_DAMAGED;
}

/* The newer of the two copies. */
static piece super_load(toy_log *log)
{
    static toy_log copies[2];
    piece a = super_read(log, "super.a", &copies[0]);
    if (a == PIECE_ERROR || a == PIECE_DAMAGED) return a;
    piece b = super_read(log, "super.b", &copies[1]);
    if (b == PIECE_ERROR || b == PIECE_DAMAGED) return b;
    if (a == PIECE_NONE && b == PIECE_NONE) return PIECE_NONE;
    bool second = a == PIECE_NONE || (b == PIECE_GOOD && copies[1].number > copies[0].number);
    const toy_log *newer = &copies[second];
    log->number = newer->number;
    log->epoch = newer->epoch;
    log->from = newer->from;
    log->mark = newer->mark;
    log->next_is_b = !second;
    if (log->defect == FB_DISK_DEFECT_COUNTED_INCARNATION) {
        log->incarnation = newer->incarnation + 1;
    }
    return PIECE_GOOD;
}

static piece head_load(toy_log *log)
{
    uint32_t done;
    uint8_t bytes[LOG_SECTOR];
    fb_disk_status status = fb_disk_open(log->disk, "log", 0, &log->handle);
    if (status == FB_DISK_ENOENT) return PIECE_NONE;
    if (status != FB_DISK_OK) return PIECE_ERROR;
    status = fb_disk_read_all(log->disk, log->handle, 0, bytes, sizeof bytes, &done);
    if (status != FB_DISK_OK) return PIECE_ERROR;
    fb_reader r = fb_reader_of(fb_span_of(bytes, done));
    uint32_t magic = fb_read_u32(&r);
    log->base = fb_read_u64(&r);
    log->base_sum = fb_read_u64(&r);
    log->base_epoch = fb_read_u64(&r);
    uint64_t sum = fb_read_u64(&r);
    bool right = !r.failed && magic == HEAD_MAGIC && sum == fb_xxh64(bytes, HEAD_BYTES - 8, 0);
    return right ? PIECE_GOOD : PIECE_DAMAGED;
}

static bool epoch_fits(const toy_log *log, const log_entry *e)
{
    return log->defect == FB_DISK_DEFECT_NO_EPOCH || e->seq < log->from || e->epoch >= log->epoch;
}

/* Follows the entries to the first place that is not the next one. */
static piece entries_load(toy_log *log, log_entry *stop)
{
    uint8_t bytes[LOG_ENTRY];
    bool places = log->defect == FB_DISK_DEFECT_NO_SEQUENCE;
    uint64_t epoch = log->base_epoch;
    log->head = log->base;
    log->end = 1;
    for (;;) {
        log_entry e;
        uint64_t seq = log->head + 1;
        log_read read = log_entry_read(log, log->handle, log->end, &e, bytes);
        if (read == LOG_READ_ERROR && log->defect != FB_DISK_DEFECT_READ_ERROR_IS_END) {
            return PIECE_ERROR;
        }
        *stop = read == LOG_READ_BAD ? e : (log_entry){0};
        if (read != LOG_READ_GOOD) return PIECE_GOOD;
        if (!places && (e.seq != seq || e.parent != log_sum_before(log, seq))) return PIECE_GOOD;
        if (!epoch_fits(log, &e)) return PIECE_GOOD;
        if (e.epoch < epoch && log->defect != FB_DISK_DEFECT_NO_EPOCH) return PIECE_GOOD;
        /* More than the ring holds was never written. */
        if (log->head - log->base + 1 >= LOG_RING) return PIECE_DAMAGED;
        epoch = e.epoch;
        *log_at(log, seq) = e;
        log->head = seq;
        log->end += e.sectors;
    }
}

/* Does anything say that what should follow the last entry was acknowledged? */
static piece tail_look(const toy_log *log)
{
    uint8_t bytes[LOG_ENTRY];
    const uint64_t missing = log->head + 1;
    if (log->defect == FB_DISK_DEFECT_CHECKSUM_IS_END) return PIECE_GOOD;
    if (log->mark >= missing && log->defect != FB_DISK_DEFECT_MARK_IGNORED) return PIECE_DAMAGED;
    uint32_t sectors = fb_disk_size(log->disk, log->handle) / LOG_SECTOR;
    for (uint32_t s = log->end; s < sectors; s++) {
        log_entry e;
        log_read read = log_entry_read(log, log->handle, s, &e, bytes);
        if (read == LOG_READ_ERROR) return PIECE_ERROR;
        if (read != LOG_READ_GOOD || !epoch_fits(log, &e) || e.seq < missing) continue;
        bool vouches = e.synced >= missing;
        if (log->defect == FB_DISK_DEFECT_HOLE_IS_DAMAGE) vouches = e.seq > missing;
        if (vouches) return PIECE_DAMAGED;
    }
    return PIECE_GOOD;
}

/* What was read may be in the cache alone, and count as clean there after a sync that failed: what
 * the mark does not vouch for is written again, then synced. */
static fb_disk_status tail_make_durable(toy_log *log)
{
    uint8_t bytes[LOG_ENTRY];
    if (log->defect == FB_DISK_DEFECT_EXPOSES_CACHE) return FB_DISK_OK;
    uint64_t seq = log->mark > log->base ? log->mark + 1 : log->base + 1;
    if (log->defect == FB_DISK_DEFECT_CACHE_BELIEVED) seq = log->head + 1;
    for (; seq <= log->head; seq++) {
        const log_entry *e = log_at(log, seq);
        log_entry again;
        log_read read = log_entry_read(log, log->handle, e->sector, &again, bytes);
        if (read != LOG_READ_GOOD) return FB_DISK_EIO;
        fb_disk_status status = fb_disk_write_all(log->disk, log->handle, e->sector * LOG_SECTOR,
                                                  bytes, e->sectors * LOG_SECTOR);
        if (status != FB_DISK_OK) return status;
    }
    return fb_disk_sync(log->disk, log->handle, 0);
}

/* The defect: empties the log and writes it anew where it stands. */
static fb_disk_status recover_in_place(toy_log *log)
{
    static uint8_t all[LOG_RING * LOG_SECTOR];
    uint32_t len = (log->end - 1) * LOG_SECTOR, done;
    FB_ASSERT(len <= sizeof all);
    fb_disk_status status = fb_disk_read_all(log->disk, log->handle, LOG_SECTOR, all, len, &done);
    if (status == FB_DISK_OK) status = fb_disk_truncate(log->disk, log->handle, LOG_SECTOR);
    if (status != FB_DISK_OK) return status;
    return fb_disk_write_all(log->disk, log->handle, LOG_SECTOR, all, len);
}

static fb_disk_status tail_cut(toy_log *log, const log_entry *stop)
{
    uint32_t size = fb_disk_size(log->disk, log->handle), end = log->end * LOG_SECTOR;
    if (log->defect == FB_DISK_DEFECT_TORN_LENGTH && stop->sectors != 0) {
        log->end += stop->sectors;
        return FB_DISK_OK;
    }
    if (size <= end) return FB_DISK_OK;
    if (log->defect == FB_DISK_DEFECT_RECOVERS_IN_PLACE) return recover_in_place(log);
    return fb_disk_truncate(log->disk, log->handle, end);
}

static fb_disk_result result_of(toy_log *log, piece p)
{
    log->damaged = p == PIECE_DAMAGED;
    return p == PIECE_GOOD ? FB_DISK_DONE : log->damaged ? FB_DISK_DAMAGED : FB_DISK_FAILED;
}

fb_disk_result log_open(void *toy, fb_disk *disk, uint64_t incarnation, fb_disk_defect defect)
{
    toy_log *log = toy;
    memset(log, 0, sizeof *log);
    log->disk = disk;
    log->defect = defect;
    log->incarnation = incarnation;
    log->from = 1;
    piece super = super_load(log);
    if (super == PIECE_ERROR || super == PIECE_DAMAGED) return result_of(log, super);
    piece head = head_load(log);
    if (head == PIECE_NONE && super == PIECE_NONE) {
        /* The log is first there, then the superblock that says so. */
        bool renamed;
        log->handle = FB_DISK_HANDLES;
        if (log_rewrite(log, 0, &renamed) != FB_DISK_OK) return FB_DISK_FAILED;
    } else if (head != PIECE_GOOD) {
        return result_of(log, head == PIECE_NONE ? PIECE_DAMAGED : head);
    }
    log_entry stop;
    piece entries = entries_load(log, &stop);
    /* An entry is newer than the superblock that allowed it: that is an old copy. */
    uint64_t epoch = log->head == log->base ? log->base_epoch : log_at(log, log->head)->epoch;
    bool old = epoch > log->epoch || (super == PIECE_NONE && log->head != 0);
    if (entries == PIECE_GOOD && old) entries = PIECE_DAMAGED;
    if (entries == PIECE_GOOD) entries = tail_look(log);
    if (entries != PIECE_GOOD) return result_of(log, entries);
    fb_disk_status status = tail_cut(log, &stop);
    if (status == FB_DISK_OK) status = tail_make_durable(log);
    /* A fresh incarnation is on disk before the first entry that bears it. */
    log->mark = log->synced = log->head;
    if (status == FB_DISK_OK) status = log_super_write(log);
    return status == FB_DISK_OK ? FB_DISK_DONE : FB_DISK_FAILED;
}
