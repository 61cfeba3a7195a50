/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a whole world. A world is a few regions of memory that never move, so it is restored
 * in place and every pointer in it stays true. Pages that did not change between two snapshots are
 * kept once. */
#ifndef FB_SIM_STEP_SNAPSHOT_H
#define FB_SIM_STEP_SNAPSHOT_H

#include "sim/view/record.h"

#define FB_SIM_PAGE_BYTES 4096u

typedef struct fb_sim_page {
    uint32_t refs;
    uint8_t bytes[FB_SIM_PAGE_BYTES];
} fb_sim_page;

typedef struct fb_sim_snapshot {
    uint64_t turn; /* turns of the world before it */
    uint64_t step;
    uint64_t time_ns;
    uint64_t blobs_used;
    uint32_t count;
    fb_sim_page **pages; /* NULL: zeros */
} fb_sim_snapshot;

typedef struct fb_sim_shelf {
    fb_sim_snapshot *snapshots; /* in the order of turns */
    uint32_t count;
    uint32_t capacity;
    uint64_t pages; /* in memory */
    uint64_t pages_max;
} fb_sim_shelf;

/* Room for so many snapshots in so many bytes. False: no memory. */
bool fb_sim_shelf_init(fb_sim_shelf *shelf, uint32_t capacity, uint64_t bytes_max);
void fb_sim_shelf_free(fb_sim_shelf *shelf);

/* The last one at or before the step; NULL: none. */
fb_sim_snapshot *fb_sim_shelf_before(fb_sim_shelf *shelf, uint64_t step);
/* The last one at or before the turn. */
fb_sim_snapshot *fb_sim_shelf_before_turn(fb_sim_shelf *shelf, uint64_t turn);

/* Keeps the world as it is. When the shelf is full, others go: those that lie closest together,
 * measured by how far away they are. */
void fb_sim_shelf_take(fb_sim_shelf *shelf, const fb_sim_world *world, uint64_t turn);
/* The world becomes what it was then, its record included. */
void fb_sim_shelf_restore(const fb_sim_snapshot *snapshot, fb_sim_world *world);
/* What lies after the turn is of another future. */
void fb_sim_shelf_forget(fb_sim_shelf *shelf, uint64_t turn);

#endif
