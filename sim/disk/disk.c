/* SPDX-License-Identifier: Apache-2.0 */
/* The disk's tables: making, copying, what is on the platter, damage at rest. */
#include "sim/disk/disk.h"

#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "sim/disk/disk_internal.h"

const fb_disk_fault_row fb_disk_fault_rows[FB_DISK_FAULTS] = {
#define X(id, name, parameters, text, needs) {name, parameters, text, needs},
#include "sim/disk/disk_faults.def"
#undef X
};

uint64_t fb_disk_fault_set(fb_disk_fault fault)
{
    return UINT64_C(1) << fault | fb_disk_fault_rows[fault].needs;
}

fb_disk *fb_disk_create(const fb_disk_options *options)
{
    const fb_disk_options *o = options;
    FB_ASSERT(o->sector_bytes >= 64 && (o->sector_bytes & (o->sector_bytes - 1)) == 0);
    FB_ASSERT(o->files > 0 && o->files <= 64 && o->file_sectors > 0 && o->pending > 0);
    fb_disk *d = calloc(1, sizeof *d);
    if (d == NULL) return NULL;
    d->options = *o;
    size_t sectors = (size_t)o->files * o->file_sectors;
    d->inodes = calloc(o->files, sizeof *d->inodes);
    d->seen = calloc(o->files, sizeof *d->seen);
    d->kept = calloc(o->files, sizeof *d->kept);
    d->parts = calloc(o->pending, sizeof *d->parts);
    d->images = calloc(o->pending, o->sector_bytes);
    d->namings = calloc(o->pending, sizeof *d->namings);
    d->cache = calloc(sectors, o->sector_bytes);
    d->platter = calloc(sectors, o->sector_bytes);
    d->cached = calloc(sectors, sizeof *d->cached);
    d->written = calloc(sectors, sizeof *d->written);
    if (d->inodes == NULL || d->seen == NULL || d->kept == NULL || d->parts == NULL ||
        d->images == NULL || d->namings == NULL || d->cache == NULL || d->platter == NULL ||
        d->cached == NULL || d->written == NULL) {
        fb_disk_destroy(d);
        return NULL;
    }
    return d;
}

void fb_disk_destroy(fb_disk *d)
{
    if (d == NULL) return;
    free(d->inodes);
    free(d->seen);
    free(d->kept);
    free(d->parts);
    free(d->images);
    free(d->namings);
    free(d->cache);
    free(d->platter);
    free(d->cached);
    free(d->written);
    free(d);
}

/* The scalars of one disk into another, which keeps its tables and its hook. */
static void head_copy(fb_disk *to, const fb_disk *from)
{
    to->options = from->options;
    to->inside = from->inside;
    to->calls = from->calls;
    to->now_ns = from->now_ns;
    to->part_count = from->part_count;
    to->naming_count = from->naming_count;
    to->plan_count = from->plan_count;
    to->allocated = from->allocated;
    memcpy(to->fired, from->fired, sizeof to->fired);
    memcpy(to->plans, from->plans, sizeof to->plans);
    memcpy(to->lates, from->lates, sizeof to->lates);
    memcpy(to->handles, from->handles, sizeof to->handles);
}

void fb_disk_copy(fb_disk *to, const fb_disk *from)
{
    const fb_disk_options *o = &from->options;
    FB_ASSERT(to->options.files == o->files && to->options.file_sectors == o->file_sectors &&
              to->options.sector_bytes == o->sector_bytes && to->options.pending == o->pending);
    head_copy(to, from);
    memcpy(to->inodes, from->inodes, o->files * sizeof *to->inodes);
    memcpy(to->seen, from->seen, o->files * sizeof *to->seen);
    memcpy(to->kept, from->kept, o->files * sizeof *to->kept);
    memcpy(to->parts, from->parts, from->part_count * sizeof *to->parts);
    memcpy(to->images, from->images, (size_t)from->part_count * o->sector_bytes);
    memcpy(to->namings, from->namings, from->naming_count * sizeof *to->namings);
    size_t all = (size_t)o->files * o->file_sectors;
    memcpy(to->cached, from->cached, all * sizeof *to->cached);
    memcpy(to->written, from->written, all * sizeof *to->written);
    for (uint32_t i = 0; i < o->files; i++) {
        size_t bytes = (size_t)from->inodes[i].high * o->sector_bytes;
        memcpy(fb_disk_bytes(to, to->cache, i, 0), fb_disk_bytes(from, from->cache, i, 0), bytes);
        memcpy(fb_disk_bytes(to, to->platter, i, 0), fb_disk_bytes(from, from->platter, i, 0),
               bytes);
    }
}

void fb_disk_clear(fb_disk *d)
{
    const fb_disk_options *o = &d->options;
    fb_disk empty = {.options = *o};
    head_copy(d, &empty);
    memset(d->inodes, 0, o->files * sizeof *d->inodes);
    memset(d->seen, 0, o->files * sizeof *d->seen);
    memset(d->kept, 0, o->files * sizeof *d->kept);
    size_t all = (size_t)o->files * o->file_sectors;
    memset(d->cached, 0, all * sizeof *d->cached);
    memset(d->written, 0, all * sizeof *d->written);
    memset(d->cache, 0, all * o->sector_bytes);
    memset(d->platter, 0, all * o->sector_bytes);
}

void fb_disk_set_faults(fb_disk *d, uint64_t faults)
{
    d->options.faults = faults;
}

void fb_disk_plan(fb_disk *d, fb_disk_fault fault, uint64_t call, uint64_t argument)
{
    FB_ASSERT(d->plan_count < FB_DISK_PLANS);
    d->plans[d->plan_count++] = (fb_disk_strike){fault, call, argument};
}

void fb_disk_plan_none(fb_disk *d)
{
    d->plan_count = 0;
}

void fb_disk_hook(fb_disk *d, void (*at_call)(void *user, fb_disk *disk), void *user)
{
    d->at_call = at_call;
    d->user = user;
}

bool fb_disk_inside(const fb_disk *d)
{
    return d->inside;
}

uint64_t fb_disk_calls(const fb_disk *d)
{
    return d->calls;
}

uint64_t fb_disk_fired(const fb_disk *d, fb_disk_fault fault)
{
    return d->fired[fault];
}

/* The platter. */

static void shrink_platter(fb_disk *d, uint32_t inode, uint32_t size)
{
    d->inodes[inode].durable = size;
    for (uint32_t s = fb_disk_sectors_of(d, size); s < d->inodes[inode].high; s++) {
        d->written[fb_disk_at(d, inode, s)] = false;
    }
}

void fb_disk_settle(fb_disk *d, uint32_t number, uint32_t bytes)
{
    const fb_disk_part *part = &d->parts[number];
    if (part->kind == FB_DISK_PART_SHRINK) {
        shrink_platter(d, part->inode, part->size);
    } else if (part->kind == FB_DISK_PART_GROW) {
        fb_disk_inode *inode = &d->inodes[part->inode];
        if (inode->durable < part->size) inode->durable = part->size;
    } else {
        /* A place that was meant to be written holds something, if only what was there. */
        d->written[fb_disk_at(d, part->inode, part->sector)] = true;
        if (part->landing == FB_DISK_NONE) return;
        size_t at = fb_disk_at(d, part->inode, part->landing);
        uint8_t *to = fb_disk_bytes(d, d->platter, part->inode, part->landing);
        if (!d->written[at]) memset(to, 0, d->options.sector_bytes);
        d->written[at] = true;
        memcpy(to, fb_disk_image(d, number), bytes);
    }
}

void fb_disk_flush(fb_disk *d, uint32_t inode, uint64_t call)
{
    bool alone = fb_disk_has(d, FB_DISK_FAULT_REORDER);
    uint32_t left = 0;
    for (uint32_t i = 0; i < d->part_count; i++) {
        const fb_disk_part *part = &d->parts[i];
        if (!part->doomed && part->call <= call && (!alone || part->inode == inode)) {
            fb_disk_settle(d, i, d->options.sector_bytes);
            continue;
        }
        if (left != i) {
            d->parts[left] = *part;
            memcpy(fb_disk_image(d, left), fb_disk_image(d, i), d->options.sector_bytes);
        }
        left++;
    }
    d->part_count = left;
}

static fb_disk_entry *entry_of(const fb_disk *d, fb_disk_entry *directory, const char *name)
{
    for (uint32_t i = 0; i < d->options.files; i++) {
        if (strncmp(directory[i].name, name, FB_DISK_NAME_BYTES) == 0) return &directory[i];
    }
    return NULL;
}

void fb_disk_name_apply(const fb_disk *d, fb_disk_entry *directory, const fb_disk_naming *naming)
{
    if (naming->gone[0] != 0) {
        fb_disk_entry *gone = entry_of(d, directory, naming->gone);
        if (gone != NULL) memset(gone, 0, sizeof *gone);
    }
    if (naming->made[0] == 0) return;
    fb_disk_entry *made = entry_of(d, directory, naming->made);
    if (made == NULL) made = entry_of(d, directory, "");
    FB_ASSERT(made != NULL);
    memcpy(made->name, naming->made, sizeof made->name);
    made->inode = naming->inode;
}

void fb_disk_handles_drop(fb_disk *d)
{
    d->inside = false;
    memset(d->handles, 0, sizeof d->handles);
}

void fb_disk_reload(fb_disk *d)
{
    const fb_disk_options *o = &d->options;
    d->part_count = 0;
    d->naming_count = 0;
    d->allocated = 0;
    memset(d->lates, 0, sizeof d->lates);
    fb_disk_handles_drop(d);
    memcpy(d->seen, d->kept, o->files * sizeof *d->seen);
    for (uint32_t i = 0; i < o->files; i++) {
        fb_disk_inode *inode = &d->inodes[i];
        inode->size = inode->durable;
        shrink_platter(d, i, inode->durable);
        for (uint32_t s = 0; s < inode->high; s++) {
            size_t at = fb_disk_at(d, i, s);
            d->cached[at] = d->written[at];
            d->allocated += d->written[at];
        }
        memcpy(fb_disk_bytes(d, d->cache, i, 0), fb_disk_bytes(d, d->platter, i, 0),
               (size_t)inode->high * o->sector_bytes);
    }
}

void fb_disk_restart(fb_disk *d)
{
    fb_disk_handles_drop(d);
}

/* Looking, and damage. */

const char *fb_disk_name(const fb_disk *d, uint32_t index)
{
    for (uint32_t i = 0; i < d->options.files; i++) {
        if (d->seen[i].name[0] != 0 && index-- == 0) return d->seen[i].name;
    }
    return NULL;
}

uint32_t fb_disk_sectors(const fb_disk *d, const char *name)
{
    const fb_disk_entry *e = entry_of(d, d->seen, name);
    return e == NULL ? 0 : fb_disk_sectors_of(d, d->inodes[e->inode].size);
}

bool fb_disk_rot(fb_disk *d, const char *name, uint32_t sector, uint32_t bit)
{
    const fb_disk_entry *e = entry_of(d, d->seen, name);
    if (e == NULL || sector >= fb_disk_sectors_of(d, d->inodes[e->inode].size) ||
        bit >= 8 * d->options.sector_bytes || !d->cached[fb_disk_at(d, e->inode, sector)]) {
        return false;
    }
    uint8_t mask = (uint8_t)(1u << bit % 8);
    fb_disk_bytes(d, d->cache, e->inode, sector)[bit / 8] ^= mask;
    fb_disk_bytes(d, d->platter, e->inode, sector)[bit / 8] ^= mask;
    d->fired[FB_DISK_FAULT_ROT]++;
    return true;
}

bool fb_disk_cut(fb_disk *d, const char *name, uint32_t bytes)
{
    const fb_disk_entry *e = entry_of(d, d->seen, name);
    if (e == NULL || bytes >= d->inodes[e->inode].size) return false;
    fb_disk_inode *inode = &d->inodes[e->inode];
    inode->size = bytes;
    shrink_platter(d, e->inode, bytes);
    for (uint32_t s = fb_disk_sectors_of(d, bytes); s < inode->high; s++) {
        size_t at = fb_disk_at(d, e->inode, s);
        d->allocated -= d->cached[at];
        d->cached[at] = false;
    }
    d->fired[FB_DISK_FAULT_TRUNCATE]++;
    return true;
}

uint64_t fb_disk_digest(const fb_disk *d)
{
    static const uint8_t hole[8] = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < d->options.files; i++) {
        const fb_disk_entry *e = &d->kept[i];
        if (e->name[0] == 0) continue;
        uint64_t hash = fb_xxh64(e->name, sizeof e->name, d->inodes[e->inode].durable);
        for (uint32_t s = 0; s < fb_disk_sectors_of(d, d->inodes[e->inode].durable); s++) {
            bool there = s < d->options.file_sectors && d->written[fb_disk_at(d, e->inode, s)];
            hash = there ? fb_xxh64(fb_disk_bytes(d, d->platter, e->inode, s),
                                    d->options.sector_bytes, hash)
                         : fb_xxh64(hole, sizeof hole, hash);
        }
        sum += hash;
    }
    return sum;
}
