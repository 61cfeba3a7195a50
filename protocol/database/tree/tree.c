/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/tree/tree.h"

#include "protocol/base/hash.h"
#include "protocol/base/mutant.h"

/* Inner nodes of a path that are kept while an item is set. */
#define PATH_KEPT 6u

static const char item_label[] = "faberio-item-v1"; /* with its zero byte */
static const uint8_t nothing[16];

void fb_tree_key(fb_id record, uint8_t key[16])
{
    const fb_span parts[] = {fb_span_of(item_label, sizeof item_label),
                             fb_span_of(record.b, sizeof record.b)};
    fb_blake3(parts, 2, key, 16);
}

/* One child more or less costs two blocks this way, and not four: quarters are hashed side by side.
 */
static void children_fingerprint(const uint8_t *children, uint8_t out[16])
{
    uint8_t quarters[4 * 32], heads[4 * 16];
    fb_blake3_quarters(children, quarters);
    for (size_t i = 0; i < 4; i++) memcpy(heads + 16 * i, quarters + 32 * i, 16);
    const fb_span parts[] = {fb_span_of(heads, sizeof heads)};
    fb_blake3(parts, 1, out, 16);
}

/* The only child that is there; FB_TREE_FAN: there are none, or several. */
static uint32_t only_child(const fb_tree_node *inner, bool *any)
{
    uint32_t only = FB_TREE_FAN, count = 0;
    for (uint32_t i = 0; i < FB_TREE_FAN; i++) {
        if (memcmp(inner->bytes + (size_t)i * 16, nothing, sizeof nothing) == 0) continue;
        only = i;
        count++;
    }
    *any = count != 0;
    return count == 1 ? only : FB_TREE_FAN;
}

/* Where items, in the order of keys, part behind the first `depth` nibbles; FB_TREE_DEPTH_MAX: it
 * is one item. */
static uint32_t parting(const uint8_t *items, size_t count, uint32_t depth)
{
    const uint8_t *last = items + (count - 1) * FB_TREE_ITEM_BYTES;
    if (count == 1) return FB_TREE_DEPTH_MAX;
    while (depth < FB_TREE_DEPTH_MAX &&
           fb_tree_nibble(items, depth) == fb_tree_nibble(last, depth)) {
        depth++;
    }
    return depth;
}

/* Depth first with a stack of the places where items part: no recursion. */
void fb_tree_recompute(const uint8_t *items, size_t count, uint8_t root[16])
{
    struct {
        size_t at, next, end; /* items of the child at hand, and the last one of all */
        uint32_t depth;
        uint8_t children[FB_TREE_FAN * 16];
    } stack[FB_TREE_DEPTH_MAX], *top = stack;
    size_t first = 0, end = count;
    uint32_t used = 0, depth = 0;
    memset(root, 0, 16);
    while (count != 0) {
        depth = parting(items + first * FB_TREE_ITEM_BYTES, end - first, depth);
        if (depth < FB_TREE_DEPTH_MAX) {
            top = &stack[used++];
            top->at = first;
            top->end = end;
            top->depth = depth;
            memset(top->children, 0, sizeof top->children);
        } else {
            memcpy(root, items + first * FB_TREE_ITEM_BYTES + 16, 16);
            while (used > 0) {
                top = &stack[used - 1];
                const uint8_t *item = items + top->at * FB_TREE_ITEM_BYTES;
                memcpy(top->children + (size_t)fb_tree_nibble(item, top->depth) * 16, root, 16);
                top->at = top->next;
                if (top->at < top->end) break;
                children_fingerprint(top->children, root);
                used--;
            }
            if (used == 0) return;
        }
        first = top->at;
        uint32_t nibble = fb_tree_nibble(items + first * FB_TREE_ITEM_BYTES, top->depth);
        for (end = first + 1; end < top->end; end++) {
            if (fb_tree_nibble(items + end * FB_TREE_ITEM_BYTES, top->depth) != nibble) break;
        }
        top->next = end;
        depth = top->depth + 1;
    }
}

void fb_tree_fingerprint(const fb_tree_node *node, uint8_t out[16])
{
    if (node->kind == FB_TREE_BUCKET) {
        fb_tree_recompute(node->bytes, node->count, out);
        return;
    }
    bool any;
    uint32_t only = only_child(node, &any);
    if (MUTANT(SHARED_NIBBLES_HASHED, only, FB_TREE_FAN) < FB_TREE_FAN) {
        memcpy(out, node->bytes + (size_t)only * 16, 16);
    } else {
        children_fingerprint(node->bytes, out);
    }
}

fb_status fb_tree_decode(fb_span stored, fb_tree_node *out, fb_tree_root *root)
{
    out->kind = FB_TREE_BUCKET;
    out->count = 0;
    if (root != NULL) *root = (fb_tree_root){0, 0};
    if (stored.len == 0) return FB_OK;
    fb_reader r = fb_reader_of(stored);
    uint8_t version = fb_read_u8(&r);
    if (!r.failed && version != FB_TREE_VERSION) {
        return version < FB_TREE_VERSION ? FB_ERR_VERSION_OLDER : FB_ERR_VERSION_NEWER;
    }
    out->kind = (fb_tree_kind)fb_read_u8(&r);
    if (root != NULL) {
        root->items = fb_read_u64(&r);
        root->levels = fb_read_u8(&r);
        if (root->levels > FB_TREE_DEPTH_MAX) return FB_ERR_STORE_DAMAGED;
    }
    size_t left = fb_reader_left(&r);
    if (out->kind == FB_TREE_INNER) {
        if (left != FB_TREE_FAN * 16) return FB_ERR_STORE_DAMAGED;
    } else {
        if (out->kind != FB_TREE_BUCKET || left % FB_TREE_ITEM_BYTES != 0) {
            return FB_ERR_STORE_DAMAGED;
        }
        if (left > FB_TREE_BUCKET_MAX * FB_TREE_ITEM_BYTES) return FB_ERR_STORE_DAMAGED;
        out->count = (uint32_t)(left / FB_TREE_ITEM_BYTES);
    }
    fb_read_into(&r, out->bytes, left);
    return fb_reader_done(&r) ? FB_OK : FB_ERR_STORE_DAMAGED;
}

void fb_tree_encode(fb_writer *w, const fb_tree_node *node, const fb_tree_root *root)
{
    fb_write_u8(w, FB_TREE_VERSION);
    fb_write_u8(w, (uint8_t)node->kind);
    if (root != NULL) {
        fb_write_u64(w, root->items);
        fb_write_u8(w, (uint8_t)root->levels);
    }
    fb_write_bytes(w, node->bytes,
                   node->kind == FB_TREE_INNER ? FB_TREE_FAN * 16
                                               : (size_t)node->count * FB_TREE_ITEM_BYTES);
}

static uint32_t lower(const uint8_t *items, uint32_t count, const uint8_t key[16])
{
    uint32_t at = 0;
    while (at < count && memcmp(items + (size_t)at * FB_TREE_ITEM_BYTES, key, 16) < 0) at++;
    return at;
}

static bool is_item(const uint8_t *items, uint32_t count, uint32_t at, const uint8_t key[16])
{
    return at < count && memcmp(items + (size_t)at * FB_TREE_ITEM_BYTES, key, 16) == 0;
}

/* FB_TREE_BUCKET_MAX + 1 items that do not fit one bucket at `depth`: puts the nodes below the
 * inner node that takes its place, and gives that node. */
static void split(const fb_tree_ops *ops, const uint8_t *items, uint32_t count, uint32_t depth,
                  uint32_t *levels, fb_tree_node *inner)
{
    /* An inner node for each nibble that all items share, one more where they part. */
    uint32_t parts = depth;
    while (fb_tree_nibble(items, parts) ==
           fb_tree_nibble(items + (size_t)(count - 1) * FB_TREE_ITEM_BYTES, parts)) {
        parts++;
    }
    fb_tree_node node = {.kind = FB_TREE_INNER};
    uint32_t first = 0;
    while (first < count) {
        const uint8_t *item = items + (size_t)first * FB_TREE_ITEM_BYTES;
        uint32_t nibble = fb_tree_nibble(item, parts), end = first + 1;
        while (end < count &&
               fb_tree_nibble(items + (size_t)end * FB_TREE_ITEM_BYTES, parts) == nibble) {
            end++;
        }
        fb_tree_node bucket = {.kind = FB_TREE_BUCKET, .count = end - first};
        memcpy(bucket.bytes, item, (size_t)bucket.count * FB_TREE_ITEM_BYTES);
        fb_tree_fingerprint(&bucket, node.bytes + (size_t)nibble * 16);
        ops->put(ops->user, parts + 1, item, &bucket);
        first = end;
    }
    if (parts + 1 > *levels) *levels = parts + 1;
    while (parts > depth) {
        ops->put(ops->user, parts, items, &node);
        fb_tree_node above = {.kind = FB_TREE_INNER};
        parts--;
        fb_tree_fingerprint(&node, above.bytes + (size_t)fb_tree_nibble(items, parts) * 16);
        node = above;
    }
    *inner = node;
}

/* Down to the bucket of an item. The inner nodes near the root are kept for the way up; deeper
 * ones, which are rare, are got again. */
static fb_status descend(const fb_tree_ops *ops, const uint8_t key[16],
                         fb_tree_node path[PATH_KEPT], fb_tree_node *bucket, uint32_t *depth)
{
    for (*depth = 0;;) {
        fb_tree_node *to = *depth < PATH_KEPT ? &path[*depth] : bucket;
        FB_TRY(ops->get(ops->user, *depth, key, to));
        if (to->kind == FB_TREE_BUCKET) {
            if (to != bucket) *bucket = *to;
            return FB_OK;
        }
        const uint8_t *child = to->bytes + (size_t)fb_tree_nibble(key, *depth) * 16;
        bool empty = memcmp(child, nothing, sizeof nothing) == 0;
        if (++*depth >= FB_TREE_DEPTH_MAX) return FB_ERR_STORE_DAMAGED;
        if (empty) {
            /* Not stored: nothing is got. */
            bucket->kind = FB_TREE_BUCKET;
            bucket->count = 0;
            return FB_OK;
        }
    }
}

fb_status fb_tree_set(const fb_tree_ops *ops, const uint8_t key[16], const uint8_t fingerprint[16],
                      bool *grown, uint32_t *levels, uint8_t root[16])
{
    fb_tree_node path[PATH_KEPT];
    fb_tree_node node;
    uint32_t depth;
    FB_TRY(descend(ops, key, path, &node, &depth));
    uint32_t at = lower(node.bytes, node.count, key);
    *grown = !is_item(node.bytes, node.count, at, key);
    if (!*grown) {
        memcpy(node.bytes + (size_t)at * FB_TREE_ITEM_BYTES + 16, fingerprint, 16);
    } else {
        uint8_t items[(FB_TREE_BUCKET_MAX + 1) * FB_TREE_ITEM_BYTES];
        size_t before = (size_t)at * FB_TREE_ITEM_BYTES;
        size_t after = (size_t)(node.count - at) * FB_TREE_ITEM_BYTES;
        memcpy(items, node.bytes, before);
        memcpy(items + before, key, 16);
        memcpy(items + before + 16, fingerprint, 16);
        memcpy(items + before + FB_TREE_ITEM_BYTES, node.bytes + before, after);
        if (node.count < FB_TREE_BUCKET_MAX) {
            node.count++;
            memcpy(node.bytes, items, (size_t)node.count * FB_TREE_ITEM_BYTES);
        } else {
            split(ops, items, node.count + 1, depth, levels, &node);
        }
    }
    if (depth > *levels) *levels = depth;
    ops->put(ops->user, depth, key, &node);
    fb_tree_fingerprint(&node, root);
    while (depth-- > 0) {
        fb_tree_node *above = depth < PATH_KEPT ? &path[depth] : &node;
        /* It was there on the way down, so this does not fail. */
        if (above == &node) FB_TRY(ops->get(ops->user, depth, key, above));
        memcpy(above->bytes + (size_t)fb_tree_nibble(key, depth) * 16, root, 16);
        ops->put(ops->user, depth, key, above);
        fb_tree_fingerprint(above, root);
    }
    return FB_OK;
}

/* What stands below `above` on the way to the key, and is not put yet: nothing of it is left, or it
 * is all that is left, or it stays. What stands at `depth` then is in *node. */
static void settle(const fb_tree_ops *ops, uint32_t depth, const uint8_t key[16],
                   const fb_tree_node *above, fb_tree_node *node)
{
    bool any, empty = node->kind == FB_TREE_BUCKET && node->count == 0;
    bool only = only_child(above, &any) < FB_TREE_FAN;
    if (empty || (only && node->kind == FB_TREE_BUCKET)) {
        ops->drop(ops->user, depth + 1, key);
        if (any && empty) *node = *above;
        return;
    }
    ops->put(ops->user, depth + 1, key, node);
    *node = *above;
}

fb_status fb_tree_unset(const fb_tree_ops *ops, const uint8_t key[16], bool *shrunk,
                        uint32_t *levels, uint8_t root[16])
{
    fb_tree_node path[PATH_KEPT];
    fb_tree_node node;
    uint32_t depth;
    *shrunk = false;
    FB_TRY(descend(ops, key, path, &node, &depth));
    uint32_t at = lower(node.bytes, node.count, key);
    if (!is_item(node.bytes, node.count, at, key)) return FB_OK;
    size_t item = (size_t)at * FB_TREE_ITEM_BYTES;
    memmove(node.bytes + item, node.bytes + item + FB_TREE_ITEM_BYTES,
            (node.count - at - (size_t)1) * FB_TREE_ITEM_BYTES);
    node.count--;
    *shrunk = true;
    fb_tree_fingerprint(&node, root);
    while (depth-- > 0) {
        fb_tree_node got, *above = depth < PATH_KEPT ? &path[depth] : &got;
        /* It was there on the way down, so this does not fail. */
        if (above == &got) FB_TRY(ops->get(ops->user, depth, key, above));
        memcpy(above->bytes + (size_t)fb_tree_nibble(key, depth) * 16, root, 16);
        settle(ops, depth, key, above, &node);
        fb_tree_fingerprint(&node, root);
    }
    ops->put(ops->user, 0, key, &node);
    if (node.kind == FB_TREE_BUCKET) *levels = 0;
    return FB_OK;
}
