/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a node of a tree. */
#ifndef FB_DATABASE_TREE_PATH_H
#define FB_DATABASE_TREE_PATH_H

#include "protocol/database/tree/tree.h"
#include "protocol/store/ops.h"

/* The way to a node of a tree: its first `depth` nibbles. */
typedef struct fb_path {
    uint8_t depth;
    uint8_t key[16];
} fb_path;

void fb_path_write(fb_writer *w, const fb_path *path);
/* Fails on nibbles behind the last one that are not zero, and below FB_TREE_DEPTH_MAX. */
fb_path fb_path_read(fb_reader *r);
/* Asks for the nodes from the root down to the path, depth + 1 items. */
bool fb_path_ask(fb_node *node, fb_op *op, uint32_t area, const fb_path *path);
/* What the path shows, from those items. FB_ERR_STORE_DAMAGED and others of fb_tree_decode. */
fb_status fb_path_view(const fb_node *node, const fb_op *op, uint32_t item, const fb_path *path,
                       fb_tree_node *out);
/* The way to a record's item, `depth` levels down, and from the nodes on it: there is no such item.
 * False as well where they do not tell. */
fb_path fb_path_to(fb_id record, uint32_t depth);
bool fb_path_is_free(const fb_node *node, const fb_op *op, uint32_t item, const fb_path *path);
/* The fingerprint of one child of what a path shows. */
void fb_path_child(const fb_tree_node *view, const fb_path *path, uint32_t nibble, uint8_t out[16]);
/* So many reads fit one operation. */
#define FB_PATH_READS_MAX 160u

#endif
