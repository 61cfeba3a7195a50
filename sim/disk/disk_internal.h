/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the disk, shared by its files. */
#ifndef FB_SIM_DISK_DISK_INTERNAL_H
#define FB_SIM_DISK_DISK_INTERNAL_H

#include "sim/disk/disk.h"

#define FB_DISK_NONE  UINT32_MAX
#define FB_DISK_LATES 4u

/* What is kept of a file besides its bytes. */
typedef struct fb_disk_inode {
    uint32_t size;    /* as it is seen */
    uint32_t durable; /* on the platter */
    uint32_t high;    /* sectors ever touched */
} fb_disk_inode;

typedef struct fb_disk_entry {
    char name[FB_DISK_NAME_BYTES]; /* empty: no entry */
    uint32_t inode;
} fb_disk_entry;

typedef enum fb_disk_part_kind {
    FB_DISK_PART_DATA,  /* one sector */
    FB_DISK_PART_GROW,  /* the size is at least `size` */
    FB_DISK_PART_SHRINK /* the size is `size`, what was behind is gone */
} fb_disk_part_kind;

/* A part of a call that no sync has covered. */
typedef struct fb_disk_part {
    fb_disk_part_kind kind;
    uint32_t inode;
    uint32_t sector;  /* where it belongs */
    uint32_t landing; /* where it goes; FB_DISK_NONE: nowhere (stale) */
    uint32_t size;
    bool doomed; /* its page counts as clean: nothing will write it */
    uint64_t call;
} fb_disk_part;

/* One change of the directory. */
typedef struct fb_disk_naming {
    char made[FB_DISK_NAME_BYTES]; /* now names `inode`; empty: none */
    char gone[FB_DISK_NAME_BYTES];
    uint32_t inode;
} fb_disk_naming;

typedef struct fb_disk_late {
    bool used;
    uint32_t inode;
    uint64_t call;
    uint64_t due_ns;
} fb_disk_late;

typedef struct fb_disk_strike {
    fb_disk_fault fault;
    uint64_t call;
    uint64_t argument;
} fb_disk_strike;

typedef struct fb_disk_handle {
    bool used;
    uint32_t inode;
} fb_disk_handle;

struct fb_disk {
    fb_disk_options options;
    void (*at_call)(void *user, fb_disk *disk);
    void *user;
    bool inside; /* a write that has done its work and not returned yet */
    uint64_t calls;
    uint64_t now_ns;
    uint64_t fired[FB_DISK_FAULTS];
    uint32_t part_count;
    uint32_t naming_count;
    uint32_t plan_count;
    uint32_t allocated; /* sectors, as seen */
    fb_disk_strike plans[FB_DISK_PLANS];
    fb_disk_late lates[FB_DISK_LATES];
    fb_disk_handle handles[FB_DISK_HANDLES];
    /* Tables of their own. */
    fb_disk_inode *inodes;
    fb_disk_entry *seen;     /* the directory in the cache */
    fb_disk_entry *kept;     /* on the platter */
    fb_disk_part *parts;     /* in the order they were made */
    uint8_t *images;         /* of the parts, a sector each */
    fb_disk_naming *namings; /* in the order they were made */
    uint8_t *cache;          /* inode after inode, file_sectors each */
    uint8_t *platter;
    bool *cached;  /* a sector that was written; otherwise it reads as zeros */
    bool *written; /* the same of the platter */
};

static inline bool fb_disk_has(const fb_disk *d, fb_disk_fault fault)
{
    return (d->options.faults >> fault & 1) != 0;
}

static inline size_t fb_disk_at(const fb_disk *d, uint32_t inode, uint32_t sector)
{
    return (size_t)inode * d->options.file_sectors + sector;
}

static inline uint8_t *fb_disk_bytes(const fb_disk *d, uint8_t *of, uint32_t inode, uint32_t sector)
{
    return of + fb_disk_at(d, inode, sector) * d->options.sector_bytes;
}

static inline uint8_t *fb_disk_image(const fb_disk *d, uint32_t part)
{
    return d->images + (size_t)part * d->options.sector_bytes;
}

static inline uint32_t fb_disk_sectors_of(const fb_disk *d, uint32_t bytes)
{
    return (bytes + d->options.sector_bytes - 1) / d->options.sector_bytes;
}

/* The first `bytes` of a part reach the platter. */
void fb_disk_settle(fb_disk *d, uint32_t part, uint32_t bytes);
/* Every part up to this call that a sync of this file covers. */
void fb_disk_flush(fb_disk *d, uint32_t inode, uint64_t call);
/* The change becomes true of a directory. */
void fb_disk_name_apply(const fb_disk *d, fb_disk_entry *directory, const fb_disk_naming *naming);
/* Forgets the cache: what is seen is what is on the platter. */
void fb_disk_reload(fb_disk *d);
void fb_disk_handles_drop(fb_disk *d);

#endif
