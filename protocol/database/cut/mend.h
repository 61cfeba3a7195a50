/* SPDX-License-Identifier: Apache-2.0 */
/* Taking back what is above a cut. For the files of this folder only. */
#ifndef FB_DATABASE_CUT_MEND_H
#define FB_DATABASE_CUT_MEND_H

#include "protocol/database/state.h"

/* A record's way through the tree, over what is staged and read. */
typedef struct fb_mend_path {
    fb_node *node;
    const fb_reads *reads;
    fb_staged_area *staged;
    uint32_t local;
    uint8_t key[16];              /* of the record in the tree */
    uint32_t beside[FB_TREE_FAN]; /* items of the nodes beside its bucket, FB_NONE: none there */
} fb_mend_path;

/* Asks for the nodes beside the record's bucket: what fb_mend_tree_unset needs. */
fb_status fb_mend_tree_beside(fb_mend_path *path, fb_op *op, uint32_t *next_item);
/* The same, when they were asked for: nothing came into the area since. */
fb_status fb_mend_tree_places(fb_mend_path *path, uint32_t *next_item);
fb_status fb_mend_tree_set(fb_mend_path *path, const uint8_t fingerprint[16]);
/* Takes the record out of the tree. */
fb_status fb_mend_tree_unset(fb_mend_path *path);
/* Nibble `depth` of a key. */
void fb_mend_nibble(uint8_t key[16], uint32_t depth, uint32_t nibble);

#endif
