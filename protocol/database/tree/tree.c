/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/tree/tree.h"

#include "protocol/base/hash.h"

/* Inner nodes of a path that are kept while an item is set. */
#define PATH_KEPT 6u

static const char item_label[] = "faberio-item-v1"; /* each with its zero byte */
static const char bucket_label[] = "faberio-bucket-v1";

void fb_tree_key(fb_id record, uint8_t key[16])
{
    const fb_span parts[] = {fb_span_of(item_label, sizeof item_label),
                             fb_span_of(record.b, sizeof record.b)};
    fb_blake3(parts, 2, key, 16);
}

static void bucket_fingerprint(const uint8_t *items, size_t count, uint8_t out[16])
{
    if (count == 0) {
        memset(out, 0, 16);
        return;
    }
    const fb_span parts[] = {fb_span_of(bucket_label, sizeof bucket_label),
                             fb_span_of(items, count * FB_TREE_ITEM_BYTES)};
    fb_blake3(parts, 2, out, 16);
}

/* One child more or less costs two blocks this way, and not four: quarters are hashed side by side.
 */
static void inner_fingerprint(const uint8_t *children, uint8_t out[16])
{
    _Static_assert((64 - sizeof bucket_label) % FB_TREE_ITEM_BYTES != 0,
                   "no bucket hashes as many bytes");
    uint8_t quarters[4 * 32], heads[4 * 16];
    fb_blake3_quarters(children, quarters);
    for (size_t i = 0; i < 4; i++) memcpy(heads + 16 * i, quarters + 32 * i, 16);
    const fb_span parts[] = {fb_span_of(heads, sizeof heads)};
    fb_blake3(parts, 1, out, 16);
}

void fb_tree_fingerprint(const fb_tree_node *node, uint8_t out[16])
{
    if (node->kind == FB_TREE_BUCKET) {
        bucket_fingerprint(node->bytes, node->count, out);
    } else {
        inner_fingerprint(node->bytes, out);
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
    if (!r.failed && version != FB_TREE_VERSION) return FB_ERR_VERSION_NEWER;
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

fb_status fb_tree_set(const fb_tree_ops *ops, const uint8_t key[16], const uint8_t fingerprint[16],
                      bool *grown, uint32_t *levels, uint8_t root[16])
{
    /* Down to the bucket. The inner nodes near the root are kept for the way up; deeper ones, which
     * are rare, are got again. */
    fb_tree_node path[PATH_KEPT];
    fb_tree_node node;
    uint32_t depth = 0;
    for (;;) {
        static const uint8_t nothing[16];
        fb_tree_node *to = depth < PATH_KEPT ? &path[depth] : &node;
        FB_TRY(ops->get(ops->user, depth, key, to));
        if (to->kind == FB_TREE_BUCKET) {
            if (to != &node) node = *to;
            break;
        }
        const uint8_t *child = to->bytes + (size_t)fb_tree_nibble(key, depth) * 16;
        bool empty = memcmp(child, nothing, sizeof nothing) == 0;
        if (++depth >= FB_TREE_DEPTH_MAX) return FB_ERR_STORE_DAMAGED;
        if (empty) {
            /* Not stored: nothing is got. */
            node.kind = FB_TREE_BUCKET;
            node.count = 0;
            break;
        }
    }
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

/* Depth first with a stack of the inner nodes on the way: no recursion. */
void fb_tree_recompute(const uint8_t *items, size_t count, uint8_t root[16])
{
    struct {
        size_t first, end, at; /* items under the node; the next child begins at `at` */
        uint8_t children[FB_TREE_FAN * 16];
    } stack[FB_TREE_DEPTH_MAX];
    if (count <= FB_TREE_BUCKET_MAX) {
        bucket_fingerprint(items, count, root);
        return;
    }
    uint32_t depth = 0;
    stack[0].first = stack[0].at = 0;
    stack[0].end = count;
    memset(stack[0].children, 0, sizeof stack[0].children);
    for (;;) {
        if (stack[depth].at == stack[depth].end) {
            uint8_t fingerprint[16];
            inner_fingerprint(stack[depth].children, fingerprint);
            if (depth == 0) {
                memcpy(root, fingerprint, 16);
                return;
            }
            const uint8_t *item = items + stack[depth].first * FB_TREE_ITEM_BYTES;
            depth--;
            memcpy(stack[depth].children + (size_t)fb_tree_nibble(item, depth) * 16, fingerprint,
                   16);
            continue;
        }
        size_t first = stack[depth].at, end = first + 1;
        uint32_t nibble = fb_tree_nibble(items + first * FB_TREE_ITEM_BYTES, depth);
        while (end < stack[depth].end &&
               fb_tree_nibble(items + end * FB_TREE_ITEM_BYTES, depth) == nibble) {
            end++;
        }
        stack[depth].at = end;
        if (end - first <= FB_TREE_BUCKET_MAX || depth + 1 == FB_TREE_DEPTH_MAX) {
            bucket_fingerprint(items + first * FB_TREE_ITEM_BYTES, end - first,
                               stack[depth].children + (size_t)nibble * 16);
            continue;
        }
        depth++;
        stack[depth].first = stack[depth].at = first;
        stack[depth].end = end;
        memset(stack[depth].children, 0, sizeof stack[depth].children);
    }
}
