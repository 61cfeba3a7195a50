/* SPDX-License-Identifier: Apache-2.0 */
/* Small programs on the simulated disk: an append log as the replica plane needs one, and a store
 * of content-addressed blobs. Sound as they stand, and wrong in one way each with a defect: they
 * test the disk, as the toy node of sim/toys/ tests the network. */
#ifndef FB_SIM_DISK_TOY_H
#define FB_SIM_DISK_TOY_H

#include "sim/disk/disk.h"

typedef enum fb_disk_defect {
    FB_DISK_SOUND,
#define X(id, toy, name, text, by) FB_DISK_DEFECT_##id,
#include "sim/disk/toy_defects.def"
#undef X
    FB_DISK_DEFECTS
} fb_disk_defect;

typedef enum fb_disk_result {
    FB_DISK_DONE,    /* durable */
    FB_DISK_REFUSED, /* it did not happen, and never will */
    FB_DISK_FAILED,  /* nobody knows; the toy has to be opened again */
    FB_DISK_DAMAGED, /* it says that something acknowledged is gone, and does nothing */
} fb_disk_result;

/* Numbers of operations beside those of the script. */
#define FB_DISK_OP_WRITE      0u
#define FB_DISK_OP_CHECKPOINT 5u
#define FB_DISK_OP_RESTART    11u /* of the script's 16; the caller does it */
#define FB_DISK_OPS           16u

/* What was written, by the identity it was given: no identity may ever name two contents. */
typedef struct fb_disk_history {
    uint64_t identity[1024];
    uint64_t content[1024];
    bool clash;
} fb_disk_history;

typedef struct fb_disk_toy {
    const char *name;
    size_t bytes;       /* of a toy */
    size_t model_bytes; /* of what was acknowledged, and what is under way */
    /* Starts on what the disk holds: DONE, FAILED or DAMAGED. `incarnation`: fresh. */
    fb_disk_result (*open)(void *toy, fb_disk *disk, uint64_t incarnation, fb_disk_defect defect);
    /* Does operation n of the script; the model follows. `history` may be NULL. */
    fb_disk_result (*step)(void *toy, void *model, uint32_t n, fb_disk_history *history);
    /* After an open: does the toy show what was acknowledged, and of what was under way all or
     * nothing? NULL, or what is wrong; the model then holds what it shows. damage: the disk lost
     * what it had synced, so the toy may say that it is damaged. */
    const char *(*judge)(const void *toy, void *model, bool damage);
    uint64_t (*digest)(const void *toy); /* of what it shows */
    void (*diverge)(void *model);        /* what is written from here on is something else */
} fb_disk_toy;

extern const fb_disk_toy fb_disk_toy_log;
extern const fb_disk_toy fb_disk_toy_blob;

typedef struct fb_disk_defect_row {
    const char *name;
    const char *text;
    const fb_disk_toy *toy;
    uint64_t by;
} fb_disk_defect_row;

extern const fb_disk_defect_row fb_disk_defect_rows[FB_DISK_DEFECTS];

/* What both write: contents that follow from a number. *out has room for FB_DISK_CONTENT_MAX. */
#define FB_DISK_CONTENT_MAX 512u
uint32_t fb_disk_content(uint64_t number, uint32_t low, uint32_t high, uint8_t *out);
/* All of it, or less at the end of the file; short reads and writes go on. */
fb_disk_status fb_disk_read_all(fb_disk *disk, uint32_t handle, uint32_t at, void *out,
                                uint32_t len, uint32_t *done);
fb_disk_status fb_disk_write_all(fb_disk *disk, uint32_t handle, uint32_t at, const void *bytes,
                                 uint32_t len);
/* A file of this name that is new: one that had the name may have another one as well. */
fb_disk_status fb_disk_open_new(fb_disk *disk, const char *name, uint32_t *handle);
bool fb_disk_history_add(fb_disk_history *history, uint64_t identity, uint64_t content);

#endif
