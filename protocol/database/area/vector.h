/* SPDX-License-Identifier: Apache-2.0 */
/* Version vectors: how far this node has each life of each node in an area. */
#ifndef FB_DATABASE_AREA_VECTOR_H
#define FB_DATABASE_AREA_VECTOR_H

#include "protocol/base/cursor.h"
#include "protocol/database/database.h"
#include "protocol/database/keys.h"
#include "protocol/store/ops.h"

#define FB_VECTOR_VALUE_BYTES (1u + 8 + 8 + 32 + 8 + 8 + 8)

/* One life of one node in one area: a head of its chain, or (closed) one that a later life has
 * taken up and that is still to become durable so. */
typedef struct fb_vector {
    bool used;
    bool closed;
    uint32_t area;
    uint32_t next; /* of the area, in the order (node, incarnation), plus one; or free list */
    fb_id node;
    uint64_t incarnation;
    uint64_t batch; /* executed: sealed or applied, 0 before the first */
    uint64_t last_seq;
    uint8_t hash[32];              /* of the header of that batch */
    uint64_t claim;                /* of that batch (space.h) */
    uint64_t previous_incarnation; /* that the first header named, 0 for none */
    uint64_t previous_number;
    uint64_t durable_batch;
    uint64_t durable_seq;
    uint64_t cut;    /* every member holds it up to this batch */
    uint64_t marked; /* its batch when the last pass of fold.c ended */
    uint64_t marked_seq;
    uint64_t noted_w; /* the last note about it */
    uint32_t noted_at;
    uint32_t notes; /* about it that are not durable: it keeps its place until they are */
    fb_digest_cell cell;
} fb_vector;

/* What becomes true of an entry when a write set is durable. */
typedef struct fb_note {
    uint64_t w;
    uint32_t entry;
    bool close;
    uint64_t batch;
    uint64_t seq;
} fb_note;

#define FB_VECTORS_FOUND 32u

void fb_vectors_layout(fb_node *node, fb_arena *arena);
void fb_vectors_reset(fb_node *node);
/* The head of a life, or FB_NONE. */
uint32_t fb_vector_find(const fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation);
/* Does any life of the node stand in the area's vector? */
bool fb_vector_knows(const fb_node *node, uint32_t area, fb_id peer);
uint32_t fb_vector_add(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation);
bool fb_vector_room(const fb_node *node, uint32_t count);
/* May a received batch begin a life of this node? Whoever signs many first batches has half of the
 * table at most, and FB_LIVES_IN_AREA_MAX of an area: FB_ERR_BATCH_LIVES, or FB_ERR_LIMIT when the
 * table is full. closes: it takes up a head. */
fb_status fb_vector_admits(const fb_node *node, uint32_t area, fb_id peer, bool closes);
void fb_vector_remove(fb_node *node, uint32_t entry);
/* Puts the entry as it stands now and notes it for when that is durable. */
void fb_vector_put(fb_node *node, uint32_t entry);
/* A later life took it up: it is a head no more. Puts two entries. */
void fb_vector_close(fb_node *node, uint32_t entry);
void fb_vectors_durable(fb_node *node);
/* Digest of the durable vector of an area; zeros when it is empty. */
const uint8_t *fb_area_digest(fb_node *node, uint32_t area);
/* Writes the executed vector of the space's own area, and the signer's claim unless it is the first
 * one, at most so many entries. */
uint32_t fb_epoch_write(const fb_node *node, uint32_t space, uint64_t claim, uint32_t most,
                        fb_writer *w);
/* A closed life is a head again, as its stored value says: puts two entries. */
uint32_t fb_vector_reopen(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                          const fb_life *life);
/* A head whose batches were all taken back: puts one entry. */
void fb_vector_erase(fb_node *node, uint32_t entry);

#endif
