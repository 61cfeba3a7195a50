/* SPDX-License-Identifier: Apache-2.0 */
/* A disk below the write set, for logs and blobs: one directory, files made of sectors, a cache of
 * writes that no sync has covered, and an adversary.
 *
 * What a crash leaves is chosen, not happened upon: fb_disk_crash_choices says how many outcomes
 * there are, fb_disk_crash makes one of them. So a caller can try all of them at every call.
 *
 * Which outcomes there are depends on the faults that are switched on:
 * - none: everything written is there (the process ended, the machine did not).
 * - lose-unsynced: calls survive up to some point of their order; a sync covers all before it.
 * - reorder: any set of calls survives; a sync covers its own file alone.
 * - tear: the call that power failed in, with `lose-unsynced` the last surviving one, with
 * `reorder` every one may survive by sectors, and one sector by its first eighths.
 * - rename-lost: names survive up to some point of their own order; without it they are durable at
 *   once.
 * - rename-twice: of the last rename that survives, the old name may be there still.
 *
 * The size of a file is a part of its own of the call that changed it.
 *
 * Nothing is allocated after fb_disk_create. Draws are keyed (sim/world/streams.h). */
#ifndef FB_SIM_DISK_DISK_H
#define FB_SIM_DISK_DISK_H

#include "protocol/base/types.h"
#include "sim/world/random.h"

typedef enum fb_disk_fault {
#define X(id, name, parameters, text, needs) FB_DISK_FAULT_##id,
#include "sim/disk/disk_faults.def"
#undef X
    FB_DISK_FAULTS
} fb_disk_fault;

#define DISK_FAULT(id) (UINT64_C(1) << FB_DISK_FAULT_##id)

typedef struct fb_disk_fault_row {
    const char *name;
    const char *parameters;
    const char *text;
    uint64_t needs;
} fb_disk_fault_row;

extern const fb_disk_fault_row fb_disk_fault_rows[FB_DISK_FAULTS];

/* The fault and what comes with it. */
uint64_t fb_disk_fault_set(fb_disk_fault fault);

typedef enum fb_disk_status {
    FB_DISK_OK,
    FB_DISK_EIO,
    FB_DISK_ENOSPC,
    FB_DISK_ENOENT,
    FB_DISK_LATE, /* a sync goes on behind the caller's back */
} fb_disk_status;

#define FB_DISK_NAME_BYTES 24u
#define FB_DISK_HANDLES    8u
#define FB_DISK_PLANS      4u
#define FB_DISK_CUTS       7u /* places where a sector can be torn: eighths of it */

typedef struct fb_disk_options {
    fb_seed seed;
    uint32_t sector_bytes;           /* a power of two, at least 64 */
    uint32_t files;                  /* at once, those without a name included; at most 64 */
    uint32_t file_sectors;           /* of the longest one */
    uint32_t pending;                /* sectors, sizes and names that no sync has covered */
    uint32_t space_sectors;          /* of all files; 0: no limit (enospc) */
    uint64_t faults;                 /* what a crash may do, what draws may do */
    uint32_t one_in[FB_DISK_FAULTS]; /* of the calls that it can strike; 0: planned ones only */
} fb_disk_options;

typedef struct fb_disk fb_disk;

/* NULL: no memory. */
fb_disk *fb_disk_create(const fb_disk_options *options);
void fb_disk_destroy(fb_disk *disk);
/* As created. */
void fb_disk_clear(fb_disk *disk);
/* Everything but the hook; both were created with the same sizes. */
void fb_disk_copy(fb_disk *to, const fb_disk *from);
void fb_disk_set_faults(fb_disk *disk, uint64_t faults);
/* One strike at the call of this number (from 1), when the fault can strike it; `argument`:
 * misdirect: 1 + the first sector that is written instead, 0: drawn. */
void fb_disk_plan(fb_disk *disk, fb_disk_fault fault, uint64_t call, uint64_t argument);
/* None of those that were planned. */
void fb_disk_plan_none(fb_disk *disk);
/* Called before each call does anything: what it sees is what a crash at this call finds. When
 * `tear` is on and `lose-unsynced` is not, also in each write before it returns (fb_disk_inside):
 * only then can a write be torn of which nobody knows yet. */
void fb_disk_hook(fb_disk *disk, void (*at_call)(void *user, fb_disk *disk), void *user);

/* Calls. A handle is below FB_DISK_HANDLES; one that a crash or a restart took gives FB_DISK_EIO.
 */
#define FB_DISK_CREATE 1u /* when there is none */
#define FB_DISK_EMPTY  2u /* to length 0 */
fb_disk_status fb_disk_open(fb_disk *disk, const char *name, unsigned flags, uint32_t *handle);
void fb_disk_close(fb_disk *disk, uint32_t handle);
/* *done gets what was read; less than asked at the end of the file. */
fb_disk_status fb_disk_read(fb_disk *disk, uint32_t handle, uint32_t at, void *out, uint32_t len,
                            uint32_t *done);
fb_disk_status fb_disk_write(fb_disk *disk, uint32_t handle, uint32_t at, const void *bytes,
                             uint32_t len, uint32_t *done);
fb_disk_status fb_disk_truncate(fb_disk *disk, uint32_t handle, uint32_t len);
/* patience_ns: longer than this nobody waits, FB_DISK_LATE; 0: as long as it takes. */
fb_disk_status fb_disk_sync(fb_disk *disk, uint32_t handle, uint64_t patience_ns);
fb_disk_status fb_disk_sync_directory(fb_disk *disk);
fb_disk_status fb_disk_rename(fb_disk *disk, const char *from, const char *to);
fb_disk_status fb_disk_remove(fb_disk *disk, const char *name);
uint32_t fb_disk_size(const fb_disk *disk, uint32_t handle);
/* The names in the directory in a written order; NULL behind the last. Not a call. */
const char *fb_disk_name(const fb_disk *disk, uint32_t index);

/* Ends. After each of them every handle is gone. */
/* The process ends, the cache stays. */
void fb_disk_restart(fb_disk *disk);
/* How many outcomes a power failure has now; UINT64_MAX: more than can be numbered. */
uint64_t fb_disk_crash_choices(const fb_disk *disk);
/* Power fails; `choice` below fb_disk_crash_choices. Choice 0 loses the most, the last one nothing.
 */
void fb_disk_crash(fb_disk *disk, uint64_t choice);
/* One of all outcomes, by draw. */
void fb_disk_crash_drawn(fb_disk *disk, uint64_t occurrence);

/* Damage at rest, of what is on the platter and in the cache. False: there is no such place. */
bool fb_disk_rot(fb_disk *disk, const char *name, uint32_t sector, uint32_t bit);
bool fb_disk_cut(fb_disk *disk, const char *name, uint32_t bytes);
/* Sectors of a file as it is seen; 0: no file. */
uint32_t fb_disk_sectors(const fb_disk *disk, const char *name);

bool fb_disk_inside(const fb_disk *disk);
uint64_t fb_disk_calls(const fb_disk *disk);
uint64_t fb_disk_fired(const fb_disk *disk, fb_disk_fault fault);
/* Of names, sizes and bytes on the platter: what a power failure now would leave at least. */
uint64_t fb_disk_digest(const fb_disk *disk);

#endif
