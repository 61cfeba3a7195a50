/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/tree/path.h"
#include "protocol/database/state.h"

void fb_path_write(fb_writer *w, const fb_path *path)
{
    fb_write_u8(w, path->depth);
    fb_write_bytes(w, path->key, (path->depth + (size_t)1) / 2);
}

fb_path fb_path_read(fb_reader *r)
{
    fb_path path = {.depth = fb_read_u8(r)};
    if (path.depth >= FB_TREE_DEPTH_MAX) {
        r->failed = true;
        return path;
    }
    fb_read_into(r, path.key, (path.depth + (size_t)1) / 2);
    if (path.depth % 2 != 0 && (path.key[path.depth / 2] & 15u) != 0) r->failed = true;
    return path;
}

bool fb_path_ask(fb_node *node, fb_op *op, uint32_t area, const fb_path *path)
{
    uint32_t local = fb_area_get(node, area)->local;
    for (uint32_t depth = 0; depth <= path->depth; depth++) {
        uint8_t key[FB_TREE_KEY_BYTES];
        if (!fb_op_read_key(op, fb_key_tree(key, local, depth, path->key),
                            FB_TREE_NODE_BYTES_MAX)) {
            return false;
        }
    }
    return true;
}

static bool is_under(const uint8_t key[16], const fb_path *path)
{
    for (uint32_t i = 0; i < path->depth; i++) {
        if (fb_tree_nibble(key, i) != fb_tree_nibble(path->key, i)) return false;
    }
    return true;
}

fb_status fb_path_view(const fb_node *node, const fb_op *op, uint32_t item, const fb_path *path,
                       fb_tree_node *out)
{
    for (uint32_t depth = path->depth + (uint32_t)1; depth-- > 0;) {
        fb_read_entry entry;
        if (!fb_op_value(node, op, item + depth, &entry)) continue;
        fb_tree_root root;
        FB_TRY(fb_tree_decode(entry.value, out, depth == 0 ? &root : NULL));
        if (depth == path->depth) return FB_OK;
        if (out->kind == FB_TREE_INNER) break;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < out->count; i++) {
            const uint8_t *from = out->bytes + (size_t)i * FB_TREE_ITEM_BYTES;
            if (!is_under(from, path)) continue;
            memmove(out->bytes + (size_t)kept * FB_TREE_ITEM_BYTES, from, FB_TREE_ITEM_BYTES);
            kept++;
        }
        out->count = kept;
        return FB_OK;
    }
    out->kind = FB_TREE_BUCKET;
    out->count = 0;
    return FB_OK;
}

fb_path fb_path_to(fb_id record, uint32_t depth)
{
    fb_path path = {.depth = (uint8_t)depth};
    fb_tree_key(record, path.key);
    return path;
}

bool fb_path_is_free(const fb_node *node, const fb_op *op, uint32_t item, const fb_path *path)
{
    fb_tree_node view;
    if (fb_path_view(node, op, item, path, &view) != FB_OK) return false;
    if (view.kind == FB_TREE_INNER) return false; /* it grew since */
    for (uint32_t i = 0; i < view.count; i++) {
        const uint8_t *key = view.bytes + (size_t)i * FB_TREE_ITEM_BYTES;
        if (memcmp(key, path->key, sizeof path->key) == 0) return false;
    }
    return true;
}

void fb_path_child(const fb_tree_node *view, const fb_path *path, uint32_t nibble, uint8_t out[16])
{
    if (view->kind == FB_TREE_INNER) {
        memcpy(out, view->bytes + (size_t)nibble * 16, 16);
        return;
    }
    fb_tree_node child = {.kind = FB_TREE_BUCKET};
    for (uint32_t i = 0; i < view->count; i++) {
        const uint8_t *from = view->bytes + (size_t)i * FB_TREE_ITEM_BYTES;
        if (fb_tree_nibble(from, path->depth) != nibble) continue;
        memcpy(child.bytes + (size_t)child.count++ * FB_TREE_ITEM_BYTES, from, FB_TREE_ITEM_BYTES);
    }
    fb_tree_fingerprint(&child, out);
}
