/* SPDX-License-Identifier: Apache-2.0 */
/* The methods `compare` and `verify`, both ends. docs/WIRE-FORMATS.md, "Compare".
 *
 * A path names the node under the first `depth` nibbles of a key. What stands there is told as if
 * every bucket reached as far down as asked: a bucket above the path is shown as far as its items
 * have the path's nibbles. */
#ifndef FB_DATABASE_COMPARE_H
#define FB_DATABASE_COMPARE_H

#include "protocol/database/state.h"

enum { FB_COMPARE_NODES = 1, FB_COMPARE_RECORDS = 2 };

/* path.c */
void fb_path_write(fb_writer *w, const fb_path *path);
/* Fails on nibbles behind the last one that are not zero, and below FB_TREE_DEPTH_MAX. */
fb_path fb_path_read(fb_reader *r);
/* Asks for the nodes from the root down to the path, depth + 1 items. */
bool fb_path_ask(fb_node *node, fb_op *op, uint32_t area, const fb_path *path);
/* What the path shows, from those items. FB_ERR_STORE_DAMAGED and others of fb_tree_decode. */
fb_status fb_path_view(const fb_node *node, const fb_op *op, uint32_t item, const fb_path *path,
                       fb_tree_node *out);
/* The fingerprint of one child of what a path shows. */
void fb_path_child(const fb_tree_node *view, const fb_path *path, uint32_t nibble, uint8_t out[16]);
/* So many reads fit one operation. */
#define FB_PATH_READS_MAX 160u

/* repair.c. A state as the peer has it, and of which of the dots asked about the peer says that it
 * knows them. */
typedef struct fb_peer_state {
    fb_span state;
    const uint8_t *dots; /* those asked about */
    uint32_t dot_count;
    const uint8_t *covered; /* a bit each */
} fb_peer_state;

bool fb_peer_state_is_valid(fb_span state);
/* Does what this dot put there go: into the column, or (an empty name) into the existence? */
typedef bool (*fb_gone)(void *user, fb_span name, const uint8_t dot[FB_DOT_BYTES]);
/* The record without what is gone, and without replaced dots that are kept for changes which are
 * here (ops->covered). *dropped: so many dots. FB_ERR_LIMIT. */
fb_status fb_record_prune(fb_id id, const fb_record *record, fb_gone gone, void *gone_user,
                          const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                          fb_merged *merged, uint32_t *dropped);
/* The record without what the peer knows to be replaced, and without replaced dots that are kept
 * for changes which are here. *dropped: so many dots. FB_ERR_LIMIT. */
fb_status fb_record_repair(fb_id id, const fb_record *record, const fb_peer_state *peer,
                           const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                           fb_merged *merged, uint32_t *dropped);

#endif
