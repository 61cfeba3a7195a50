/* SPDX-License-Identifier: Apache-2.0 */
/* The toy log at work, and what must be true of it. */
#include "sim/disk/toy_log.h"

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"

#define ENTRY_MAGIC 0x46424c45u
#define PATIENCE_NS UINT64_C(100000000)

typedef enum under_way {
    NOTHING,
    APPENDING, /* entries head+1 .. head+count with the contents first .. */
    CUTTING,   /* to keep, epoch is the next one */
    DRAINING,  /* up to keep */
} under_way;

/* What was acknowledged. Without padding, as it is hashed by bytes. */
typedef struct log_model {
    uint64_t base, head, epoch;
    uint64_t mark;    /* entries up to it are vouched for by the superblock */
    uint64_t numbers; /* of contents used */
    uint64_t content[LOG_RING];
    uint64_t epoch_of[LOG_RING];
    uint64_t incarnation_of[LOG_RING];
    uint64_t doing; /* under_way */
    uint64_t first, count, keep, incarnation;
} log_model;

/* Some fit into the sector of their header. */
static uint32_t payload_of(uint64_t number, uint8_t *bytes)
{
    uint32_t most = number * UINT64_C(0x9e3779b97f4a7c15) >> 62 == 0 ? LOG_PAYLOAD : 64;
    return fb_disk_content(number, 8, most, bytes);
}

static uint64_t content_hash(uint64_t number)
{
    uint8_t bytes[FB_DISK_CONTENT_MAX];
    return fb_xxh64(bytes, payload_of(number, bytes), 0);
}

/* Appending. */

static uint32_t entry_build(const toy_log *log, uint64_t number, log_entry *e, uint8_t *bytes)
{
    uint8_t payload[FB_DISK_CONTENT_MAX];
    *e = (log_entry){.seq = log->head + 1,
                     .epoch = log->epoch,
                     .incarnation = log->incarnation,
                     .synced = log->synced,
                     .parent = log_sum_before(log, log->head + 1),
                     .len = payload_of(number, payload),
                     .sector = log->end};
    memset(bytes, 0, LOG_ENTRY);
    fb_writer w = fb_writer_of(bytes, LOG_ENTRY);
    fb_write_u32(&w, ENTRY_MAGIC);
    fb_write_u32(&w, e->len);
    fb_write_u64(&w, e->seq);
    fb_write_u64(&w, e->epoch);
    fb_write_u64(&w, e->incarnation);
    fb_write_u64(&w, e->synced);
    fb_write_u64(&w, e->parent);
    memcpy(bytes + LOG_HEADER, payload, e->len);
    e->content = fb_xxh64(payload, e->len, 0);
    e->sum = log_entry_sum(log, bytes, e->len);
    fb_write_u64(&w, e->sum);
    FB_ASSERT(!w.failed && w.at == LOG_HEADER);
    e->sectors = (LOG_HEADER + e->len + LOG_SECTOR - 1) / LOG_SECTOR;
    return e->sectors * LOG_SECTOR;
}

static fb_disk_status put(const toy_log *log, uint32_t at, const uint8_t *bytes, uint32_t len)
{
    fb_disk_status status;
    if (log->defect == FB_DISK_DEFECT_SHORT_WRITE) {
        uint32_t done;
        status = fb_disk_write(log->disk, log->handle, at, bytes, len, &done);
    } else {
        status = fb_disk_write_all(log->disk, log->handle, at, bytes, len);
    }
    bool ignored = log->defect == FB_DISK_DEFECT_WRITE_ERROR_IGNORED && status == FB_DISK_EIO;
    return ignored ? FB_DISK_OK : status;
}

/* The rest first, then the sector with the header: a header stands in front of something. */
static fb_disk_status entry_write(toy_log *log, uint64_t number)
{
    uint8_t bytes[LOG_ENTRY];
    log_entry e;
    uint32_t len = entry_build(log, number, &e, bytes), at = log->end * LOG_SECTOR;
    fb_disk_status status = FB_DISK_OK;
    if (len > LOG_SECTOR) {
        status = put(log, at + LOG_SECTOR, bytes + LOG_SECTOR, len - LOG_SECTOR);
    }
    if (status == FB_DISK_OK) status = put(log, at, bytes, LOG_SECTOR);
    if (status != FB_DISK_OK) return status;
    *log_at(log, e.seq) = e;
    log->head = e.seq;
    log->end += e.sectors;
    return FB_DISK_OK;
}

/* Takes back what a full disk did not let be written. */
static fb_disk_result refuse(toy_log *log, uint64_t head, uint32_t end)
{
    bool half = log->defect == FB_DISK_DEFECT_HALF_ENTRY;
    if (half) end = fb_disk_size(log->disk, log->handle) / LOG_SECTOR;
    log->head = head;
    log->end = end;
    if (half) return FB_DISK_REFUSED;
    if (fb_disk_size(log->disk, log->handle) > end * LOG_SECTOR &&
        fb_disk_truncate(log->disk, log->handle, end * LOG_SECTOR) != FB_DISK_OK) {
        return FB_DISK_FAILED;
    }
    /* Otherwise a crash could bring back an entry of which the caller was told that it is not. */
    return fb_disk_sync(log->disk, log->handle, 0) == FB_DISK_OK ? FB_DISK_REFUSED : FB_DISK_FAILED;
}

static fb_disk_result append(toy_log *log, uint64_t first, uint64_t count)
{
    uint64_t head = log->head;
    uint32_t end = log->end;
    for (uint64_t i = 0; i < count; i++) {
        fb_disk_status status = entry_write(log, first + i);
        if (status == FB_DISK_ENOSPC) return refuse(log, head, end);
        if (status != FB_DISK_OK) return FB_DISK_FAILED;
    }
    if (log->defect == FB_DISK_DEFECT_NO_SYNC) {
        log->synced = log->head;
        return FB_DISK_DONE;
    }
    bool hasty = log->defect == FB_DISK_DEFECT_LATE_IS_DONE;
    fb_disk_status status = fb_disk_sync(log->disk, log->handle, hasty ? PATIENCE_NS : 0);
    if (status == FB_DISK_EIO && log->defect == FB_DISK_DEFECT_SYNC_AGAIN) {
        status = fb_disk_sync(log->disk, log->handle, 0);
    }
    if (status == FB_DISK_EIO && log->defect == FB_DISK_DEFECT_REFUSED_BUT_KEPT) {
        return FB_DISK_REFUSED;
    }
    if (status == FB_DISK_EIO) return FB_DISK_FAILED;
    log->synced = log->head;
    return FB_DISK_DONE;
}

/* The other operations. */

static fb_disk_result checkpoint(toy_log *log)
{
    log->mark = log->synced;
    return log_super_write(log) == FB_DISK_OK ? FB_DISK_DONE : FB_DISK_FAILED;
}

/* A new epoch begins behind `keep`: first its number is durable, then what it takes away goes, then
 * it may be told. */
static fb_disk_result cut(toy_log *log, uint64_t keep, uint64_t epoch)
{
    log->epoch = epoch;
    log->from = keep + 1;
    if (log->mark > keep) log->mark = keep;
    if (log_super_write(log) != FB_DISK_OK) return FB_DISK_FAILED;
    if (keep < log->head) log->end = log_at(log, keep + 1)->sector;
    log->head = log->synced = keep;
    if (fb_disk_truncate(log->disk, log->handle, log->end * LOG_SECTOR) != FB_DISK_OK ||
        fb_disk_sync(log->disk, log->handle, 0) != FB_DISK_OK) {
        return FB_DISK_FAILED;
    }
    return FB_DISK_DONE;
}

static fb_disk_result drain(toy_log *log, uint64_t base)
{
    bool renamed;
    fb_disk_status status = log_rewrite(log, base, &renamed);
    if (status == FB_DISK_OK) return FB_DISK_DONE;
    return status == FB_DISK_ENOSPC && !renamed ? FB_DISK_REFUSED : FB_DISK_FAILED;
}

/* The script: 16 operations, over and over. */

static fb_disk_result do_append(toy_log *log, log_model *m, uint64_t count,
                                fb_disk_history *history)
{
    m->doing = APPENDING;
    m->first = m->numbers;
    m->incarnation = log->incarnation;
    m->count = count;
    m->numbers += count;
    fb_disk_result result = append(log, m->first, count);
    if (result != FB_DISK_DONE) return result;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t seq = ++m->head;
        m->content[seq % LOG_RING] = content_hash(m->first + i);
        m->epoch_of[seq % LOG_RING] = m->epoch;
        m->incarnation_of[seq % LOG_RING] = m->incarnation;
        if (history != NULL) {
            uint64_t identity[3] = {log->incarnation, m->epoch, seq};
            uint8_t bytes[24];
            for (unsigned k = 0; k < 3; k++) fb_store_be(bytes + 8 * k, identity[k], 8);
            fb_disk_history_add(history, fb_xxh64(bytes, sizeof bytes, 0),
                                m->content[seq % LOG_RING]);
        }
    }
    return result;
}

static fb_disk_result log_step(void *toy, void *model, uint32_t n, fb_disk_history *history)
{
    toy_log *log = toy;
    log_model *m = model;
    uint32_t op = n % FB_DISK_OPS;
    fb_disk_result result;
    if (op == FB_DISK_OP_CHECKPOINT) {
        result = checkpoint(log);
        if (result == FB_DISK_DONE) m->mark = m->head;
    } else if (op == 8 && m->head >= m->base + 3) {
        m->doing = CUTTING;
        m->keep = m->head - 1 - n / FB_DISK_OPS % 2;
        result = cut(log, m->keep, m->epoch + 1);
        if (result == FB_DISK_DONE) {
            m->epoch++;
            m->head = m->keep;
            if (m->mark > m->head) m->mark = m->head;
        }
    } else if (op == 13 && m->head >= m->base + 6) {
        m->doing = DRAINING;
        m->keep = m->head - 4;
        result = drain(log, m->keep);
        if (result == FB_DISK_DONE) m->base = m->keep;
    } else {
        result = do_append(log, m, 1 + n % 3, history);
    }
    if (result == FB_DISK_DONE || result == FB_DISK_REFUSED) m->doing = NOTHING;
    return result;
}

/* Judging. */

static const char *judge_entries(const toy_log *log, const log_model *m)
{
    for (uint64_t seq = log->base + 1; seq <= log->head; seq++) {
        const log_entry *e = &log->entries[seq % LOG_RING];
        bool acked = seq <= m->head;
        uint64_t content =
            acked ? m->content[seq % LOG_RING] : content_hash(m->first + (seq - m->head - 1));
        uint64_t epoch = acked ? m->epoch_of[seq % LOG_RING] : m->epoch;
        uint64_t incarnation = acked ? m->incarnation_of[seq % LOG_RING] : m->incarnation;
        if (e->content != content) return "an entry has the content of another one";
        if (e->epoch != epoch) return "an entry has the epoch of another one";
        if (e->incarnation != incarnation) return "an entry has the incarnation of another one";
    }
    return NULL;
}

static void adopt(const toy_log *log, log_model *m)
{
    for (uint64_t seq = m->head + 1; seq <= log->head; seq++) {
        m->content[seq % LOG_RING] = log->entries[seq % LOG_RING].content;
        m->epoch_of[seq % LOG_RING] = log->entries[seq % LOG_RING].epoch;
        m->incarnation_of[seq % LOG_RING] = log->entries[seq % LOG_RING].incarnation;
    }
    m->base = log->base;
    m->head = log->head;
    m->epoch = log->epoch;
    if (m->mark > m->head) m->mark = m->head;
    m->doing = NOTHING;
}

static const char *log_judge(const void *toy, void *model, bool damage)
{
    const toy_log *log = toy;
    log_model *m = model;
    if (log->damaged) return damage ? NULL : "it says that it is damaged, and only a crash was";
    uint64_t low = damage ? m->mark : m->head, high = m->head, epoch = m->epoch;
    if (m->doing == APPENDING) high = m->head + m->count;
    if (m->doing == CUTTING) {
        if (low > m->keep) low = m->keep;
        epoch = m->epoch + 1;
    }
    bool drained = m->doing == DRAINING && log->base == m->keep;
    if (log->base != m->base && !drained) return "the log begins at another entry";
    if (log->head < low) return "an acknowledged entry is gone, and it does not say so";
    if (log->head > high) return "there is an entry that nobody wrote, or that was cut";
    bool halfway = m->doing == CUTTING && log->head != m->head && log->head != m->keep;
    if (halfway && !damage) return "a part of a cut was done";
    if ((log->epoch < m->epoch && !damage) || log->epoch > epoch) return "the epoch is another one";
    if (halfway) return NULL;
    const char *wrong = judge_entries(log, m);
    if (wrong == NULL) adopt(log, m);
    return wrong;
}

static uint64_t log_digest(const void *toy)
{
    const toy_log *log = toy;
    if (log->damaged) return 1;
    uint64_t sum = log->base * 31 + log->head * 7 + log->epoch;
    for (uint64_t seq = log->base + 1; seq <= log->head; seq++) {
        const log_entry *e = &log->entries[seq % LOG_RING];
        uint8_t bytes[16];
        fb_store_be(bytes, e->content, 8);
        fb_store_be(bytes + 8, e->epoch, 8);
        sum = fb_xxh64(bytes, sizeof bytes, sum);
    }
    return sum;
}

static void log_diverge(void *model)
{
    ((log_model *)model)->numbers += 1u << 20;
}

const fb_disk_toy fb_disk_toy_log = {
    "log",    sizeof(toy_log), sizeof(log_model), log_open,
    log_step, log_judge,       log_digest,        log_diverge,
};
