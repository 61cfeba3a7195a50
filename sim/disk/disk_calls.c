/* SPDX-License-Identifier: Apache-2.0 */
/* What a program asks of the disk, and what goes wrong with it at once. */
#include "protocol/base/assert.h"
#include "sim/disk/disk.h"
#include "sim/disk/disk_internal.h"
#include "sim/world/fail.h"

#define CALL_NS UINT64_C(10000)
#define SYNC_NS UINT64_C(1000000)

/* A call begins: who watches sees what a crash would find. */
static void call_begin(fb_disk *d)
{
    d->calls++;
    d->now_ns += CALL_NS;
    for (uint32_t i = 0; i < FB_DISK_LATES; i++) {
        fb_disk_late *late = &d->lates[i];
        if (!late->used || late->due_ns > d->now_ns) continue;
        fb_disk_flush(d, late->inode, late->call);
        late->used = false;
    }
    if (d->at_call != NULL) d->at_call(d->user, d);
}

/* Does the fault strike this call, which is one that it can strike? */
static bool strikes(fb_disk *d, fb_disk_fault fault, uint64_t *argument)
{
    *argument = 0;
    bool yes = false;
    for (uint32_t i = 0; i < d->plan_count && !yes; i++) {
        if (d->plans[i].fault != fault || d->plans[i].call != d->calls) continue;
        *argument = d->plans[i].argument;
        yes = true;
    }
    if (!yes && fb_disk_has(d, fault) && d->options.one_in[fault] != 0) {
        yes = fb_draw_chance(d->options.seed, FB_SIM_STREAM_DISK_CALL, (uint64_t)fault, d->calls, 1,
                             d->options.one_in[fault]);
    }
    d->fired[fault] += yes;
    return yes;
}

static bool strikes_plain(fb_disk *d, fb_disk_fault fault)
{
    uint64_t argument;
    return strikes(d, fault, &argument);
}

static uint64_t drawn(const fb_disk *d, fb_disk_fault fault, uint64_t low, uint64_t high)
{
    return fb_sim_between(d->options.seed, FB_SIM_STREAM_DISK_VALUE, (uint64_t)fault, d->calls, low,
                          high);
}

static fb_disk_inode *inode_of(fb_disk *d, uint32_t handle)
{
    if (handle >= FB_DISK_HANDLES || !d->handles[handle].used) return NULL;
    return &d->inodes[d->handles[handle].inode];
}

static uint32_t part_new(fb_disk *d, fb_disk_part_kind kind, uint32_t inode)
{
    if (d->part_count == d->options.pending) fb_sim_fail_resource("writes that wait for a sync");
    d->parts[d->part_count] = (fb_disk_part){.kind = kind, .inode = inode, .call = d->calls};
    memset(fb_disk_image(d, d->part_count), 0, d->options.sector_bytes);
    return d->part_count++;
}

static void cached_set(fb_disk *d, uint32_t inode, uint32_t sector, bool there)
{
    size_t at = fb_disk_at(d, inode, sector);
    if (there && !d->cached[at]) {
        memset(fb_disk_bytes(d, d->cache, inode, sector), 0, d->options.sector_bytes);
        d->allocated++;
    }
    if (!there && d->cached[at]) d->allocated--;
    d->cached[at] = there;
}

/* Files and names. */

static fb_disk_entry *entry_seen(const fb_disk *d, const char *name)
{
    for (uint32_t i = 0; i < d->options.files; i++) {
        if (d->seen[i].name[0] != 0 && strncmp(d->seen[i].name, name, FB_DISK_NAME_BYTES) == 0) {
            return &d->seen[i];
        }
    }
    return NULL;
}

static bool inode_is_named(const fb_disk *d, uint32_t inode)
{
    for (uint32_t i = 0; i < d->options.files; i++) {
        if (d->seen[i].name[0] != 0 && d->seen[i].inode == inode) return true;
        if (d->kept[i].name[0] != 0 && d->kept[i].inode == inode) return true;
    }
    for (uint32_t i = 0; i < d->naming_count; i++) {
        if (d->namings[i].made[0] != 0 && d->namings[i].inode == inode) return true;
    }
    for (uint32_t i = 0; i < FB_DISK_HANDLES; i++) {
        if (d->handles[i].used && d->handles[i].inode == inode) return true;
    }
    return false;
}

/* A file that nothing names any more is given away as new; nothing of it is written later. */
static uint32_t inode_new(fb_disk *d)
{
    uint32_t inode = 0;
    while (inode < d->options.files && inode_is_named(d, inode)) inode++;
    if (inode == d->options.files) fb_sim_fail_resource("files of a disk");
    uint32_t left = 0;
    for (uint32_t i = 0; i < d->part_count; i++) {
        if (d->parts[i].inode == inode) continue;
        if (left != i) {
            d->parts[left] = d->parts[i];
            memcpy(fb_disk_image(d, left), fb_disk_image(d, i), d->options.sector_bytes);
        }
        left++;
    }
    d->part_count = left;
    for (uint32_t i = 0; i < FB_DISK_LATES; i++) {
        if (d->lates[i].inode == inode) d->lates[i].used = false;
    }
    for (uint32_t s = 0; s < d->inodes[inode].high; s++) {
        cached_set(d, inode, s, false);
        d->written[fb_disk_at(d, inode, s)] = false;
        memset(fb_disk_bytes(d, d->platter, inode, s), 0, d->options.sector_bytes);
    }
    d->inodes[inode] = (fb_disk_inode){0, 0, 0};
    return inode;
}

static void name_set(char out[FB_DISK_NAME_BYTES], const char *name)
{
    size_t len = strlen(name);
    FB_ASSERT(len > 0 && len < FB_DISK_NAME_BYTES);
    memset(out, 0, FB_DISK_NAME_BYTES);
    memcpy(out, name, len);
}

static void name_change(fb_disk *d, const char *made, const char *gone, uint32_t inode)
{
    fb_disk_naming naming;
    memset(&naming, 0, sizeof naming);
    naming.inode = inode;
    if (made != NULL) name_set(naming.made, made);
    if (gone != NULL) name_set(naming.gone, gone);
    fb_disk_name_apply(d, d->seen, &naming);
    if (!fb_disk_has(d, FB_DISK_FAULT_RENAME_LOST)) {
        fb_disk_name_apply(d, d->kept, &naming);
        return;
    }
    if (d->naming_count == d->options.pending) fb_sim_fail_resource("names that wait for a sync");
    d->namings[d->naming_count++] = naming;
}

static void shrink(fb_disk *d, uint32_t inode, uint32_t len)
{
    d->inodes[inode].size = len;
    for (uint32_t s = fb_disk_sectors_of(d, len); s < d->inodes[inode].high; s++) {
        cached_set(d, inode, s, false);
    }
    d->parts[part_new(d, FB_DISK_PART_SHRINK, inode)].size = len;
}

fb_disk_status fb_disk_open(fb_disk *d, const char *name, unsigned flags, uint32_t *handle)
{
    call_begin(d);
    uint32_t free_one = 0;
    while (free_one < FB_DISK_HANDLES && d->handles[free_one].used) free_one++;
    if (free_one == FB_DISK_HANDLES) fb_sim_fail_resource("handles of a disk");
    const fb_disk_entry *e = entry_seen(d, name);
    if (e == NULL && (flags & FB_DISK_CREATE) == 0) return FB_DISK_ENOENT;
    bool changes = e == NULL || ((flags & FB_DISK_EMPTY) != 0 && d->inodes[e->inode].size != 0);
    if (changes && strikes_plain(d, FB_DISK_FAULT_EIO_WRITE)) return FB_DISK_EIO;
    uint32_t inode = e == NULL ? inode_new(d) : e->inode;
    if (e == NULL) {
        name_change(d, name, NULL, inode);
    } else if (changes) {
        shrink(d, inode, 0);
    }
    d->handles[free_one] = (fb_disk_handle){true, inode};
    *handle = free_one;
    return FB_DISK_OK;
}

void fb_disk_close(fb_disk *d, uint32_t handle)
{
    if (handle < FB_DISK_HANDLES) d->handles[handle].used = false;
}

fb_disk_status fb_disk_rename(fb_disk *d, const char *from, const char *to)
{
    call_begin(d);
    const fb_disk_entry *e = entry_seen(d, from);
    if (e == NULL) return FB_DISK_ENOENT;
    if (strikes_plain(d, FB_DISK_FAULT_EIO_WRITE)) return FB_DISK_EIO;
    name_change(d, to, from, e->inode);
    return FB_DISK_OK;
}

fb_disk_status fb_disk_remove(fb_disk *d, const char *name)
{
    call_begin(d);
    const fb_disk_entry *e = entry_seen(d, name);
    if (e == NULL) return FB_DISK_ENOENT;
    if (strikes_plain(d, FB_DISK_FAULT_EIO_WRITE)) return FB_DISK_EIO;
    name_change(d, NULL, name, e->inode);
    return FB_DISK_OK;
}

fb_disk_status fb_disk_sync_directory(fb_disk *d)
{
    call_begin(d);
    d->now_ns += SYNC_NS;
    if (strikes_plain(d, FB_DISK_FAULT_EIO_SYNC)) return FB_DISK_EIO;
    for (uint32_t i = 0; i < d->naming_count; i++) fb_disk_name_apply(d, d->kept, &d->namings[i]);
    d->naming_count = 0;
    return FB_DISK_OK;
}

uint32_t fb_disk_size(const fb_disk *d, uint32_t handle)
{
    bool used = handle < FB_DISK_HANDLES && d->handles[handle].used;
    return used ? d->inodes[d->handles[handle].inode].size : 0;
}

/* Bytes. */

fb_disk_status fb_disk_read(fb_disk *d, uint32_t handle, uint32_t at, void *out, uint32_t len,
                            uint32_t *done)
{
    call_begin(d);
    *done = 0;
    const fb_disk_inode *inode = inode_of(d, handle);
    if (inode == NULL || strikes_plain(d, FB_DISK_FAULT_EIO_READ)) return FB_DISK_EIO;
    uint32_t left = at < inode->size ? inode->size - at : 0;
    if (len > left) len = left;
    if (len > 1 && strikes_plain(d, FB_DISK_FAULT_SHORT)) {
        len = (uint32_t)drawn(d, FB_DISK_FAULT_SHORT, 1, len - 1);
    }
    const uint32_t bytes = d->options.sector_bytes;
    for (uint32_t n = 0; n < len;) {
        uint32_t sector = (at + n) / bytes, from = (at + n) % bytes;
        uint32_t part = bytes - from < len - n ? bytes - from : len - n;
        uint32_t file = d->handles[handle].inode;
        if (d->cached[fb_disk_at(d, file, sector)]) {
            memcpy((uint8_t *)out + n, fb_disk_bytes(d, d->cache, file, sector) + from, part);
        } else {
            memset((uint8_t *)out + n, 0, part);
        }
        n += part;
    }
    *done = len;
    return FB_DISK_OK;
}

/* Sectors of the range that have no space yet. */
static uint32_t sectors_missing(const fb_disk *d, uint32_t file, uint32_t first, uint32_t behind)
{
    uint32_t missing = 0;
    for (uint32_t s = first; s < behind; s++) missing += !d->cached[fb_disk_at(d, file, s)];
    return missing;
}

/* How far a write lands from where it belongs; the whole of it goes astray, within its file. */
static bool misdirected(fb_disk *d, uint32_t file, uint32_t first, uint32_t count, uint32_t *to)
{
    uint64_t argument;
    uint32_t sectors = fb_disk_sectors_of(d, d->inodes[file].size);
    if (sectors < 2 || sectors < count || !strikes(d, FB_DISK_FAULT_MISDIRECT, &argument)) {
        return false;
    }
    uint64_t place =
        argument != 0 ? argument - 1 : drawn(d, FB_DISK_FAULT_MISDIRECT, 0, sectors - count);
    if (place == first || place + count > sectors) {
        d->fired[FB_DISK_FAULT_MISDIRECT]--;
        return false;
    }
    *to = (uint32_t)place;
    return true;
}

static void write_sectors(fb_disk *d, uint32_t file, uint32_t at, const uint8_t *from, uint32_t len)
{
    const uint32_t bytes = d->options.sector_bytes;
    fb_disk_inode *inode = &d->inodes[file];
    uint32_t first = at / bytes, count = (at + len - 1) / bytes - first + 1;
    uint32_t first_part = d->part_count;
    for (uint32_t n = 0; n < len;) {
        uint32_t sector = (at + n) / bytes, within = (at + n) % bytes;
        uint32_t part = bytes - within < len - n ? bytes - within : len - n;
        cached_set(d, file, sector, true);
        if (sector >= inode->high) inode->high = sector + 1;
        memcpy(fb_disk_bytes(d, d->cache, file, sector) + within, from + n, part);
        uint32_t number = part_new(d, FB_DISK_PART_DATA, file);
        d->parts[number].sector = sector;
        d->parts[number].landing = sector;
        memcpy(fb_disk_image(d, number), fb_disk_bytes(d, d->cache, file, sector), bytes);
        n += part;
    }
    if (at + len > inode->size) {
        inode->size = at + len;
        d->parts[part_new(d, FB_DISK_PART_GROW, file)].size = inode->size;
    }
    uint32_t to = FB_DISK_NONE;
    bool astray = misdirected(d, file, first, count, &to);
    if (!astray && !strikes_plain(d, FB_DISK_FAULT_STALE)) return;
    for (uint32_t i = 0; i < count; i++) {
        d->parts[first_part + i].landing = astray ? to + i : FB_DISK_NONE;
    }
}

fb_disk_status fb_disk_write(fb_disk *d, uint32_t handle, uint32_t at, const void *from,
                             uint32_t len, uint32_t *done)
{
    call_begin(d);
    *done = 0;
    if (inode_of(d, handle) == NULL || strikes_plain(d, FB_DISK_FAULT_EIO_WRITE)) {
        return FB_DISK_EIO;
    }
    if (len == 0) return FB_DISK_OK;
    const uint32_t bytes = d->options.sector_bytes;
    uint32_t file = d->handles[handle].inode;
    if (len > 1 && strikes_plain(d, FB_DISK_FAULT_SHORT)) {
        len = (uint32_t)drawn(d, FB_DISK_FAULT_SHORT, 1, len - 1);
    }
    uint64_t end = (uint64_t)at + len;
    if (end > (uint64_t)d->options.file_sectors * bytes) fb_sim_fail_resource("sectors of a file");
    uint32_t first = at / bytes, behind = fb_disk_sectors_of(d, (uint32_t)end);
    uint32_t missing = sectors_missing(d, file, first, behind);
    uint32_t space = d->options.space_sectors;
    bool full = space != 0 && d->allocated + missing > space;
    d->fired[FB_DISK_FAULT_ENOSPC] += full;
    if (missing != 0 && !full) full = strikes_plain(d, FB_DISK_FAULT_ENOSPC);
    if (full) {
        uint32_t fits = (behind - first) / 2;
        while (fits > 0 && space != 0 &&
               d->allocated + sectors_missing(d, file, first, first + fits) > space) {
            fits--;
        }
        len = fits == 0 ? 0 : (first + fits) * bytes - at;
    }
    if (len != 0) write_sectors(d, file, at, from, len);
    *done = len;
    if (d->at_call != NULL && fb_disk_has(d, FB_DISK_FAULT_TEAR) &&
        !fb_disk_has(d, FB_DISK_FAULT_LOSE_UNSYNCED)) {
        d->inside = true;
        d->at_call(d->user, d);
        d->inside = false;
    }
    return full ? FB_DISK_ENOSPC : FB_DISK_OK;
}

fb_disk_status fb_disk_truncate(fb_disk *d, uint32_t handle, uint32_t len)
{
    call_begin(d);
    fb_disk_inode *inode = inode_of(d, handle);
    if (inode == NULL || strikes_plain(d, FB_DISK_FAULT_EIO_WRITE)) return FB_DISK_EIO;
    /* Whole sectors are all that logs need. */
    FB_ASSERT(len <= inode->size && len % d->options.sector_bytes == 0);
    shrink(d, d->handles[handle].inode, len);
    return FB_DISK_OK;
}

/* The sync goes on by itself. When too many do, the oldest is waited for. */
static void late_add(fb_disk *d, uint32_t file, uint64_t due_ns)
{
    fb_disk_late *oldest = &d->lates[0];
    for (uint32_t i = 0; i < FB_DISK_LATES; i++) {
        if (!d->lates[i].used) {
            d->lates[i] = (fb_disk_late){true, file, d->calls, due_ns};
            return;
        }
        if (d->lates[i].due_ns < oldest->due_ns) oldest = &d->lates[i];
    }
    if (d->now_ns < oldest->due_ns) d->now_ns = oldest->due_ns;
    fb_disk_flush(d, oldest->inode, oldest->call);
    *oldest = (fb_disk_late){true, file, d->calls, due_ns};
}

fb_disk_status fb_disk_sync(fb_disk *d, uint32_t handle, uint64_t patience_ns)
{
    call_begin(d);
    if (inode_of(d, handle) == NULL) return FB_DISK_EIO;
    uint32_t file = d->handles[handle].inode;
    bool clean = strikes_plain(d, FB_DISK_FAULT_SYNC_CLEAN);
    for (uint32_t i = 0; clean && i < d->part_count; i++) {
        fb_disk_part *part = &d->parts[i];
        if (part->inode == file && part->kind == FB_DISK_PART_DATA) part->doomed = true;
    }
    if (clean || strikes_plain(d, FB_DISK_FAULT_EIO_SYNC)) return FB_DISK_EIO;
    uint64_t takes_ns = SYNC_NS;
    if (strikes_plain(d, FB_DISK_FAULT_LATENCY)) {
        takes_ns = UINT64_C(1000000) * drawn(d, FB_DISK_FAULT_LATENCY, 1000, 10000);
    }
    if (patience_ns != 0 && takes_ns > patience_ns) {
        late_add(d, file, d->now_ns + takes_ns);
        d->now_ns += patience_ns;
        return FB_DISK_LATE;
    }
    d->now_ns += takes_ns;
    fb_disk_flush(d, file, d->calls);
    return FB_DISK_OK;
}
