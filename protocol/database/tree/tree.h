/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint tree of an area: a radix tree over hashed item keys. DESIGN 3.1, Anti-entropy;
 * docs/WIRE-FORMATS.md, "Tree".
 *
 * An item's key is BLAKE3-128("faberio-item-v1" 0x00 ‖ record); its path are the 32 nibbles of
 * that. The items are the records of which something is left: one that is empty is none, so what
 * was deleted and collected, and what never was, are the same.
 *
 * The fingerprint of a prefix follows from the items under it and from nothing else. Of none it is
 * zeros. Of one it is the item's own, which hashes the record's id and state. Of more: they part at
 * some nibble; the 16 fingerprints of what is under each of its values are hashed in quarters,
 * BLAKE3-128 of four times BLAKE3-128(4 times 16 bytes). So a nibble that all items share changes
 * nothing, and how the tree is kept is each node's own: under a prefix stands a bucket, a list of
 * (key, fingerprint) in the order of keys, or an inner node with the fingerprints of its 16
 * children. A bucket splits when it overflows; an inner node whose only child is the bucket at hand
 * becomes that. Nothing beside the path of an item is ever read: an inner node may stand over a few
 * items that would fit one bucket.
 *
 * Stored node: u8 version 3, u8 kind (1 bucket, 2 inner), then the items (16 + 16 bytes each), or
 * the children. The root node carries before these: u64 items in the area, u8 levels below the
 * root. */
#ifndef FB_DATABASE_TREE_TREE_H
#define FB_DATABASE_TREE_TREE_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"

#define FB_TREE_VERSION        3u
#define FB_TREE_FAN            16u
#define FB_TREE_BUCKET_MAX     8u
#define FB_TREE_DEPTH_MAX      32u
#define FB_TREE_ITEM_BYTES     32u
#define FB_TREE_NODE_BYTES_MAX (2u + 9u + FB_TREE_BUCKET_MAX * FB_TREE_ITEM_BYTES)

_Static_assert(FB_TREE_FAN * 16u <= FB_TREE_BUCKET_MAX * FB_TREE_ITEM_BYTES,
               "an inner node is not longer than a full bucket");

typedef enum fb_tree_kind {
    FB_TREE_BUCKET = 1,
    FB_TREE_INNER = 2,
} fb_tree_kind;

/* One node in memory. */
typedef struct fb_tree_node {
    fb_tree_kind kind;
    uint32_t count;                                         /* items of a bucket */
    uint8_t bytes[FB_TREE_BUCKET_MAX * FB_TREE_ITEM_BYTES]; /* items, or 16 children */
} fb_tree_node;

void fb_tree_key(fb_id record, uint8_t key[16]);
void fb_tree_fingerprint(const fb_tree_node *node, uint8_t out[16]);

static inline uint32_t fb_tree_nibble(const uint8_t key[16], uint32_t depth)
{
    return depth % 2 == 0 ? key[depth / 2] >> 4 : key[depth / 2] & 15u;
}

/* An empty value is an empty bucket. For the root (items and levels are set then) or another node.
 * FB_ERR_STORE_DAMAGED, FB_ERR_VERSION_OLDER, FB_ERR_VERSION_NEWER. */
typedef struct fb_tree_root {
    uint64_t items;
    uint32_t levels;
} fb_tree_root;
fb_status fb_tree_decode(fb_span stored, fb_tree_node *out, fb_tree_root *root);
/* root: NULL for a node that is not the root. At most FB_TREE_NODE_BYTES_MAX. */
void fb_tree_encode(fb_writer *w, const fb_tree_node *node, const fb_tree_root *root);

/* Where nodes come from and go to. Depth 0 is the root; a node is named by the first `depth`
 * nibbles of `key`. */
typedef struct fb_tree_ops {
    void *user;
    /* The node as it is now, an empty bucket when there is none. */
    fb_status (*get)(void *user, uint32_t depth, const uint8_t key[16], fb_tree_node *out);
    void (*put)(void *user, uint32_t depth, const uint8_t key[16], const fb_tree_node *node);
    /* There is no such node any more; never of the root. */
    void (*drop)(void *user, uint32_t depth, const uint8_t key[16]);
} fb_tree_ops;

/* Sets the fingerprint of one item. Nothing was put unless FB_OK. *grown: it is a new item.
 * *levels: raised to the depth of the deepest node put. root: fingerprint of the whole tree. */
fb_status fb_tree_set(const fb_tree_ops *ops, const uint8_t key[16], const uint8_t fingerprint[16],
                      bool *grown, uint32_t *levels, uint8_t root[16]);

/* Takes one item out, if it is there: *shrunk. *levels: 0 when the root is all there is. Nothing
 * was put or dropped unless FB_OK. */
fb_status fb_tree_unset(const fb_tree_ops *ops, const uint8_t key[16], bool *shrunk,
                        uint32_t *levels, uint8_t root[16]);

/* The fingerprint of a tree of these items, in the order of keys, from nothing: what fb_tree_set
 * and fb_tree_unset must arrive at. */
void fb_tree_recompute(const uint8_t *items, size_t count, uint8_t root[16]);

#endif
