/* SPDX-License-Identifier: Apache-2.0 */
/* Own changes become signed batches. */
#ifndef FB_DATABASE_BATCH_SEAL_H
#define FB_DATABASE_BATCH_SEAL_H

#include "protocol/database/database.h"
#include "protocol/store/ops.h"

/* A batch being filled with the changes of this node. */
typedef struct fb_builder {
    bool used;
    uint32_t area;
    uint32_t count;
    uint64_t first_seq;
    uint32_t epoch_max; /* entries there is room for */
    uint64_t claim;     /* under which its changes were written (space.h) */
    size_t len;
    size_t cost;    /* what applying it will put, about */
    uint32_t lives; /* that its changes name, counted for each change */
    size_t reserved_bytes, reserved_entries;
    uint64_t serial; /* order of beginning */
    uint8_t *items;
    uint8_t leaves[FB_BATCH_CHANGES_MAX * 32];
} fb_builder;

void fb_builders_layout(fb_node *node, fb_arena *arena);
void fb_builders_reset(fb_node *node);
/* The most that sealing needs beside the changes themselves, for each batch begun. */
size_t fb_seal_frame_bytes(const fb_node *node, uint32_t area);
#define FB_SEAL_FRAME_ENTRIES 4u
/* The longest change of an area that a batch of this node holds. */
size_t fb_change_bytes_max(const fb_node *node, uint32_t area);
/* Adds an own change to the batch being filled; reserves what its sealing will put. */
void fb_builder_add(fb_node *node, uint32_t area, fb_span change, uint64_t seq,
                    const uint8_t leaf[32], size_t cost, uint32_t lives);
/* Can a node of the same sizes read at once what applying such a batch takes: the records and their
 * paths, and the lives that changes, epoch and chain name? */
bool fb_batch_readable(const fb_node *node, uint32_t area, uint32_t changes, uint32_t lives);
/* May this node begin a life in the area, as far as its peers' rules go? */
fb_status fb_life_begins(const fb_node *node, uint32_t area);
void fb_database_seal(fb_node *node);

#endif
