/* SPDX-License-Identifier: Apache-2.0 */
/* One record's item in the fingerprint tree, set or taken out. The tree's shape follows from the
 * set of its records, so where a subtree is left with no more than a bucket holds, it becomes one.
 */
#include "protocol/database/cut/mend.h"

static fb_status path_node(const fb_mend_path *p, uint32_t depth, const uint8_t key[16],
                           fb_tree_node *out)
{
    if (depth == 0) {
        *out = p->staged->node;
        return FB_OK;
    }
    uint8_t bytes[FB_TREE_KEY_BYTES];
    fb_span name = fb_key_tree(bytes, p->local, depth, key);
    const fb_set *set = &p->node->database->stage.set;
    fb_write_entry staged;
    if (set->live != 0 && fb_set_find(set, fb_set_hash(name), name, &staged)) {
        return fb_tree_decode(staged.value, out, NULL);
    }
    uint32_t item = FB_NONE;
    if (memcmp(key, p->key, 16) == 0) {
        if (depth > p->reads->levels) return FB_ERR_AGAIN;
        item = p->reads->record + depth;
    } else {
        item = p->beside[fb_tree_nibble(key, depth - 1)];
    }
    fb_read_entry entry;
    bool there = item != FB_NONE && fb_op_value(p->node, p->reads->op, item, &entry);
    return fb_tree_decode(there ? entry.value : (fb_span){NULL, 0}, out, NULL);
}

static fb_status get(void *user, uint32_t depth, const uint8_t key[16], fb_tree_node *out)
{
    return path_node(user, depth, key, out);
}

static void put(void *user, uint32_t depth, const uint8_t key[16], const fb_tree_node *node)
{
    fb_mend_path *p = user;
    if (depth == 0) {
        p->staged->node = *node;
        return;
    }
    uint8_t bytes[FB_TREE_KEY_BYTES], value[FB_TREE_NODE_BYTES_MAX];
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_tree_encode(&w, node, NULL);
    fb_stage_put(p->node, fb_key_tree(bytes, p->local, depth, key), fb_writer_span(&w));
}

static void drop(const fb_mend_path *p, uint32_t depth, const uint8_t key[16])
{
    uint8_t bytes[FB_TREE_KEY_BYTES];
    if (depth != 0) fb_stage_delete(p->node, fb_key_tree(bytes, p->local, depth, key));
}

fb_status fb_mend_tree_set(fb_mend_path *p, const uint8_t fingerprint[16])
{
    const fb_tree_ops ops = {p, get, put};
    bool grown;
    uint32_t levels = p->staged->info.levels;
    FB_TRY(fb_tree_set(&ops, p->key, fingerprint, &grown, &levels, p->staged->root));
    p->staged->info.levels = levels;
    if (grown) p->staged->info.items++;
    return FB_OK;
}

/* Where the item stands: the depth of its bucket. FB_NONE: it is not in the tree. */
static fb_status find(const fb_mend_path *p, uint32_t *depth, fb_tree_node *bucket, uint32_t *at)
{
    static const uint8_t nothing[16];
    for (*depth = 0;; ++*depth) {
        FB_TRY(path_node(p, *depth, p->key, bucket));
        if (bucket->kind == FB_TREE_BUCKET) break;
        const uint8_t *child = bucket->bytes + (size_t)fb_tree_nibble(p->key, *depth) * 16;
        if (memcmp(child, nothing, sizeof nothing) == 0) {
            *at = FB_NONE;
            return FB_OK;
        }
    }
    for (*at = 0; *at < bucket->count; ++*at) {
        if (memcmp(bucket->bytes + (size_t)*at * FB_TREE_ITEM_BYTES, p->key, 16) == 0) return FB_OK;
    }
    *at = FB_NONE;
    return FB_OK;
}

/* Numbers the nodes beside the bucket, and asks for them when there is an operation. */
static fb_status beside(fb_mend_path *p, fb_op *op, uint32_t *next_item)
{
    fb_tree_node bucket, above;
    uint32_t depth, at;
    for (uint32_t i = 0; i < FB_TREE_FAN; i++) p->beside[i] = FB_NONE;
    FB_TRY(find(p, &depth, &bucket, &at));
    if (at == FB_NONE || depth == 0) return FB_OK;
    FB_TRY(path_node(p, depth - 1, p->key, &above));
    static const uint8_t nothing[16];
    for (uint32_t i = 0; i < FB_TREE_FAN; i++) {
        if (i == fb_tree_nibble(p->key, depth - 1) ||
            memcmp(above.bytes + (size_t)i * 16, nothing, sizeof nothing) == 0) {
            continue;
        }
        uint8_t key[16], bytes[FB_TREE_KEY_BYTES];
        memcpy(key, p->key, 16);
        fb_mend_nibble(key, depth - 1, i);
        if (op != NULL &&
            !fb_op_read_key(op, fb_key_tree(bytes, p->local, depth, key), FB_TREE_NODE_BYTES_MAX)) {
            return FB_ERR_LIMIT;
        }
        p->beside[i] = (*next_item)++;
    }
    return FB_OK;
}

fb_status fb_mend_tree_beside(fb_mend_path *p, fb_op *op, uint32_t *next_item)
{
    return beside(p, op, next_item);
}

fb_status fb_mend_tree_places(fb_mend_path *p, uint32_t *next_item)
{
    return beside(p, NULL, next_item);
}

void fb_mend_nibble(uint8_t key[16], uint32_t depth, uint32_t nibble)
{
    uint8_t *byte = &key[depth / 2];
    *byte = depth % 2 == 0 ? (uint8_t)((*byte & 0x0f) | nibble << 4)
                           : (uint8_t)((*byte & 0xf0) | nibble);
}

/* All that is under the node above, if it fits a bucket. */
static fb_status gather(const fb_mend_path *p, uint32_t depth, const fb_tree_node *above,
                        const fb_tree_node *own, fb_tree_node *out, bool *fits)
{
    static const uint8_t nothing[16];
    out->kind = FB_TREE_BUCKET;
    out->count = 0;
    *fits = true;
    for (uint32_t i = 0; i < FB_TREE_FAN && *fits; i++) {
        fb_tree_node child;
        bool is_own = i == fb_tree_nibble(p->key, depth - 1);
        if (is_own) {
            child = *own;
        } else if (memcmp(above->bytes + (size_t)i * 16, nothing, sizeof nothing) == 0) {
            continue;
        } else {
            uint8_t key[16];
            memcpy(key, p->key, 16);
            fb_mend_nibble(key, depth - 1, i);
            FB_TRY(path_node(p, depth, key, &child));
        }
        *fits = child.kind == FB_TREE_BUCKET && out->count + child.count <= FB_TREE_BUCKET_MAX;
        if (!*fits) break;
        memcpy(out->bytes + (size_t)out->count * FB_TREE_ITEM_BYTES, child.bytes,
               (size_t)child.count * FB_TREE_ITEM_BYTES);
        out->count += child.count;
    }
    return FB_OK;
}

static bool only_child(const fb_tree_node *node, uint32_t nibble)
{
    static const uint8_t nothing[16];
    for (uint32_t i = 0; i < FB_TREE_FAN; i++) {
        bool there = memcmp(node->bytes + (size_t)i * 16, nothing, sizeof nothing) != 0;
        if (there && i != nibble) return false;
    }
    return true;
}

fb_status fb_mend_tree_unset(fb_mend_path *p)
{
    fb_tree_node node, above;
    uint32_t depth, at;
    FB_TRY(find(p, &depth, &node, &at));
    if (at == FB_NONE) return FB_OK;
    memmove(node.bytes + (size_t)at * FB_TREE_ITEM_BYTES,
            node.bytes + (size_t)(at + 1) * FB_TREE_ITEM_BYTES,
            (size_t)(node.count - at - 1) * FB_TREE_ITEM_BYTES);
    node.count--;
    p->staged->info.items--;
    if (depth > 0) {
        fb_tree_node all;
        bool fits;
        FB_TRY(path_node(p, depth - 1, p->key, &above));
        FB_TRY(gather(p, depth, &above, &node, &all, &fits));
        while (fits) {
            for (uint32_t i = 0; i < FB_TREE_FAN; i++) {
                uint8_t key[16];
                memcpy(key, p->key, 16);
                fb_mend_nibble(key, depth - 1, i);
                if (p->beside[i] != FB_NONE || i == fb_tree_nibble(p->key, depth - 1)) {
                    drop(p, depth, key);
                }
            }
            for (uint32_t i = 0; i < FB_TREE_FAN; i++) p->beside[i] = FB_NONE;
            node = all;
            depth--;
            if (depth == 0) break;
            FB_TRY(path_node(p, depth - 1, p->key, &above));
            fits = only_child(&above, fb_tree_nibble(p->key, depth - 1));
        }
    }
    if (node.count == 0 && depth != 0) {
        drop(p, depth, p->key);
    } else {
        put(p, depth, p->key, &node);
    }
    uint8_t root[16];
    fb_tree_fingerprint(&node, root);
    while (depth-- > 0) {
        FB_TRY(path_node(p, depth, p->key, &above));
        memcpy(above.bytes + (size_t)fb_tree_nibble(p->key, depth) * 16, root, 16);
        put(p, depth, p->key, &above);
        fb_tree_fingerprint(&above, root);
    }
    memcpy(p->staged->root, root, 16);
    return FB_OK;
}
