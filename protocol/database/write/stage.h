/* SPDX-License-Identifier: Apache-2.0 */
/* What one operation has worked out and not put yet: records, values, their trees, the changelog.
 */
#ifndef FB_DATABASE_WRITE_STAGE_H
#define FB_DATABASE_WRITE_STAGE_H

#include "protocol/database/database.h"
#include "protocol/database/record/record.h"
#include "protocol/database/tree/tree.h"
#include "protocol/store/ops.h"
#include "protocol/store/set.h"

/* What one change puts into the changelog: an entry, and the oldest one goes. */
#define FB_CHANGELOG_ROOM                                                                          \
    (fb_write_entry_bytes(FB_CHANGELOG_KEY_BYTES, FB_CHANGELOG_VALUE_BYTES) +                      \
     fb_write_entry_bytes(FB_CHANGELOG_KEY_BYTES, 0))
#define FB_CHANGELOG_ROOM_ENTRIES 2u

#define FB_CHANGELOG_VALUE_BYTES (1u + 8 + 4 + 16 + 1)

/* What one operation has worked out and not put yet. */
typedef struct fb_staged_area {
    uint32_t area;
    uint64_t next_seq; /* of this node's own changes */
    fb_tree_node node; /* the root */
    fb_tree_root info;
    uint8_t root[16];
} fb_staged_area;

typedef struct fb_staged_change {
    uint32_t area; /* index among the staged areas */
    bool own;
    uint32_t at, len; /* of an own one, in bytes */
    uint64_t seq;
    uint8_t leaf[32];
    fb_id record;
    int64_t stamp;
    bool deleted; /* nothing visible is left of the record */
    bool created;
    bool conflict;
    uint8_t etag[16];
    uint32_t cost;
    uint32_t lives; /* that an own one names */
} fb_staged_change;

typedef struct fb_stage {
    fb_set set;
    uint32_t area_count;
    fb_staged_area areas[FB_WRITE_AREAS_MAX];
    uint32_t change_count;
    fb_staged_change changes[FB_BATCH_CHANGES_MAX];
    uint8_t *bytes; /* of own changes */
    size_t bytes_len, bytes_cap;
    uint8_t *merged, *scratch; /* record_max each */
    bool overflow;
} fb_stage;

/* A record's key in the tree is asked for when its path is read and again when it is written. */
#define FB_ITEM_KEYS 32u

typedef struct fb_item_key {
    bool known;
    fb_id record;
    uint8_t key[16];
} fb_item_key;

void fb_stage_layout(fb_node *node, fb_arena *arena);
void fb_stage_clear(fb_node *node);
/* The place of an area among the staged ones, FB_NONE when there is no room. */
uint32_t fb_stage_area(fb_node *node, uint32_t area);
void fb_stage_put(fb_node *node, fb_span key, fb_span value);
void fb_stage_delete(fb_node *node, fb_span key);
/* What an operation's reads say of a change: where its record is among the items, and its path. */
typedef struct fb_reads {
    const fb_op *op;
    uint32_t record; /* item of the record; those of the path follow, depth 1 first */
    uint32_t levels; /* so many of them */
} fb_reads;
/* Adds the items for a record of an area. False: a limit. */
bool fb_stage_read(fb_node *node, fb_op *op, uint32_t area, fb_id record, uint32_t *next_item,
                   fb_reads *reads);
/* The stored record as it stands with what is staged. */
fb_status fb_stage_record(const fb_node *node, const fb_reads *reads, uint32_t area, fb_id record,
                          fb_record *out);
/* Merges a change and stages record, values, tree and changelog. FB_ERR_AGAIN: the tree grew below
 * what was read; read again. FB_ERR_LIMIT. FB_ERR_BATCH_EARLY: the record is large, and *early is a
 * dot that a received change replaces, that is not covered and of which `comes` says that it may
 * come. out->own, seq and bytes are the caller's. */
fb_status fb_stage_change(fb_node *node, const fb_reads *reads, uint32_t staged_area,
                          const fb_change *change, fb_dot dot,
                          bool (*covered)(void *, const uint8_t *),
                          bool (*comes)(void *, const uint8_t *), void *user, fb_staged_change *out,
                          fb_dot *early);
/* conflict.c: a value of this node's own stands beside another one in a field of the change, in the
 * record as merged. */
bool fb_conflict_with_own(const fb_node *node, const fb_record *record, const fb_change *change);
/* A record as it was worked out elsewhere, and its place in the tree. As fb_stage_change fails. */
fb_status fb_stage_rewrite(fb_node *node, const fb_reads *reads, uint32_t staged_area, fb_id record,
                           const fb_merged *merged, fb_staged_change *out);
/* What the stage puts. */
void fb_stage_size(const fb_node *node, size_t *bytes, size_t *entries);
/* Puts everything and makes it the state. */
void fb_stage_commit(fb_node *node);

#endif
