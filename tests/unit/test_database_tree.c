/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint tree, node by node, against the tree recomputed from its items. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/base/draw.h"
#include "protocol/database/tree/tree.h"

#define NODES_MAX 4096

typedef struct stored {
    uint32_t depth;
    uint8_t prefix[16];
    uint8_t bytes[FB_TREE_NODE_BYTES_MAX];
    size_t len;
} stored;

typedef struct store {
    stored nodes[NODES_MAX];
    uint32_t count;
    uint32_t puts;
} store;

static void cut(uint32_t depth, const uint8_t key[16], uint8_t prefix[16])
{
    memset(prefix, 0, 16);
    memcpy(prefix, key, depth / 2);
    if (depth % 2 != 0) prefix[depth / 2] = key[depth / 2] & 0xf0;
}

static stored *find(store *s, uint32_t depth, const uint8_t key[16])
{
    uint8_t prefix[16];
    cut(depth, key, prefix);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->nodes[i].depth == depth && memcmp(s->nodes[i].prefix, prefix, 16) == 0) {
            return &s->nodes[i];
        }
    }
    return NULL;
}

static fb_status get(void *user, uint32_t depth, const uint8_t key[16], fb_tree_node *out)
{
    stored *found = find(user, depth, key);
    return fb_tree_decode(
        found == NULL ? fb_span_of(NULL, 0) : fb_span_of(found->bytes, found->len), out, NULL);
}

static void put(void *user, uint32_t depth, const uint8_t key[16], const fb_tree_node *node)
{
    store *s = user;
    stored *at = find(s, depth, key);
    if (at == NULL) {
        assert_true(s->count < NODES_MAX);
        at = &s->nodes[s->count++];
        at->depth = depth;
        cut(depth, key, at->prefix);
    }
    fb_writer w = fb_writer_of(at->bytes, sizeof at->bytes);
    fb_tree_encode(&w, node, NULL);
    assert_false(w.failed);
    at->len = w.at;
    s->puts++;
}

static void drop(void *user, uint32_t depth, const uint8_t key[16])
{
    store *s = user;
    stored *at = find(s, depth, key);
    assert_non_null(at);
    assert_true(depth > 0);
    *at = s->nodes[--s->count];
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

/* shared: so many leading bytes of every key are equal, to force long splits. */
static void grow(uint32_t count, uint32_t shared, uint64_t stream)
{
    fb_seed seed = {3, 4};
    store *s = calloc(1, sizeof *s);
    uint8_t *items = calloc(count, FB_TREE_ITEM_BYTES);
    fb_tree_ops ops = {s, get, put, drop};
    uint32_t n = 0, levels = 0, split_seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t key[16] = {0}, fingerprint[16] = {0}, root[16], again[16];
        for (uint32_t b = shared; b < 16; b++) {
            key[b] = (uint8_t)fb_draw(seed, (uint32_t)stream, i, b);
        }
        /* Every fourth time an item that is there gets another fingerprint. */
        bool change = i % 4 == 3;
        if (change) memcpy(key, items + (size_t)(i % n) * FB_TREE_ITEM_BYTES, 16);
        fb_store_be(fingerprint, i + 1, 8);
        fb_tree_node bucket;
        uint32_t depth = 0;
        for (;; depth++) {
            assert_int_equal(get(s, depth, key, &bucket), FB_OK);
            if (bucket.kind == FB_TREE_BUCKET) break;
        }
        uint32_t nodes_before = s->count;
        bool grown;
        assert_int_equal(fb_tree_set(&ops, key, fingerprint, &grown, &levels, root), FB_OK);
        assert_int_equal(grown, !change);
        split_seen += s->count - nodes_before > 1;
        if (grown) {
            memcpy(items + (size_t)n * FB_TREE_ITEM_BYTES, key, 16);
            memcpy(items + (size_t)n++ * FB_TREE_ITEM_BYTES + 16, fingerprint, 16);
            qsort(items, n, FB_TREE_ITEM_BYTES, by_key);
        } else {
            uint8_t *item = bsearch(key, items, n, FB_TREE_ITEM_BYTES, by_key);
            memcpy(item + 16, fingerprint, 16);
        }
        fb_tree_recompute(items, n, again);
        assert_memory_equal(root, again, 16);
    }
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->nodes[i].depth > deepest) deepest = s->nodes[i].depth;
    }
    assert_int_equal(deepest, levels);
    assert_true(split_seen > 0);
    free(items);
    free(s);
}

static void grows_as_recomputed(void **state)
{
    (void)state;
    grow(1200, 0, 1);
}

static void long_splits_as_recomputed(void **state)
{
    (void)state;
    grow(60, 3, 2);
    grow(60, 14, 3);
}

static void order_does_not_matter(void **state)
{
    (void)state;
    fb_seed seed = {8, 9};
    uint8_t roots[2][16];
    for (uint32_t run = 0; run < 2; run++) {
        store *s = calloc(1, sizeof *s);
        fb_tree_ops ops = {s, get, put, drop};
        uint32_t levels = 0;
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t item = run == 0 ? i : 199 - i;
            fb_id id;
            for (uint32_t b = 0; b < 16; b++) id.b[b] = (uint8_t)fb_draw(seed, 1, item, b);
            uint8_t key[16], fingerprint[16] = {0};
            fb_tree_key(id, key);
            fingerprint[15] = (uint8_t)(item + 1);
            bool grown;
            assert_int_equal(fb_tree_set(&ops, key, fingerprint, &grown, &levels, roots[run]),
                             FB_OK);
        }
        free(s);
    }
    assert_memory_equal(roots[0], roots[1], 16);
}

/* Items come and go; what is left has the fingerprint of a tree that never had the others, and when
 * nothing is left there is no node but the root. */
static void shrink(uint32_t count, uint32_t shared, uint32_t stream)
{
    fb_seed seed = {5, 6};
    store *s = calloc(1, sizeof *s);
    uint8_t *items = calloc(count, FB_TREE_ITEM_BYTES);
    fb_tree_ops ops = {s, get, put, drop};
    uint32_t n = 0, levels = 0;
    uint8_t root[16] = {0}, again[16];
    bool moved;
    for (uint32_t i = 0; i < 6 * count; i++) {
        bool comes =
            n == 0 || (i < 3 * count && n < count && fb_draw(seed, stream, i, 20) % 3 != 0);
        if (comes) {
            uint8_t item[FB_TREE_ITEM_BYTES] = {0};
            for (uint32_t b = shared; b < 16; b++) item[b] = (uint8_t)fb_draw(seed, stream, i, b);
            fb_store_be(item + 16, i + 1, 8);
            assert_int_equal(fb_tree_set(&ops, item, item + 16, &moved, &levels, root), FB_OK);
            assert_true(moved);
            memcpy(items + (size_t)n++ * FB_TREE_ITEM_BYTES, item, sizeof item);
            qsort(items, n, FB_TREE_ITEM_BYTES, by_key);
        } else {
            uint8_t *item = items + (size_t)(fb_draw(seed, stream, i, 21) % n) * FB_TREE_ITEM_BYTES,
                    key[16];
            memcpy(key, item, sizeof key);
            assert_int_equal(fb_tree_unset(&ops, key, &moved, &levels, root), FB_OK);
            assert_true(moved);
            memmove(item, item + FB_TREE_ITEM_BYTES,
                    (size_t)(items + --n * FB_TREE_ITEM_BYTES - item));
            uint8_t before[16];
            memcpy(before, root, sizeof before);
            assert_int_equal(fb_tree_unset(&ops, key, &moved, &levels, root), FB_OK);
            assert_false(moved);
            memcpy(root, before, sizeof before);
        }
        fb_tree_recompute(items, n, again);
        assert_memory_equal(root, again, 16);
        if (n != 0) continue;
        assert_int_equal(s->count, 1);
        assert_int_equal(levels, 0);
    }
    assert_true(s->puts > 4 * count);
    free(items);
    free(s);
}

static void shrinks_as_recomputed(void **state)
{
    (void)state;
    shrink(300, 0, 1);
    shrink(40, 3, 2);
    shrink(40, 14, 3);
}

static void damaged_nodes_are_told(void **state)
{
    (void)state;
    fb_tree_node node;
    fb_tree_root root;
    const uint8_t newer[] = {FB_TREE_VERSION + 1, 1};
    assert_int_equal(fb_tree_decode(fb_span_of(newer, 2), &node, NULL), FB_ERR_VERSION_NEWER);
    const uint8_t older[] = {FB_TREE_VERSION - 1, FB_TREE_BUCKET};
    assert_int_equal(fb_tree_decode(fb_span_of(older, 2), &node, NULL), FB_ERR_VERSION_OLDER);
    const uint8_t kind[] = {FB_TREE_VERSION, 3};
    assert_int_equal(fb_tree_decode(fb_span_of(kind, 2), &node, NULL), FB_ERR_STORE_DAMAGED);
    const uint8_t odd[] = {FB_TREE_VERSION, 1, 0};
    assert_int_equal(fb_tree_decode(fb_span_of(odd, 3), &node, NULL), FB_ERR_STORE_DAMAGED);
    const uint8_t deep[] = {FB_TREE_VERSION, 1, 0, 0, 0, 0, 0, 0, 0, 0, 33};
    assert_int_equal(fb_tree_decode(fb_span_of(deep, 11), &node, &root), FB_ERR_STORE_DAMAGED);
    assert_int_equal(fb_tree_decode(fb_span_of(deep, 10), &node, &root), FB_ERR_STORE_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_as_recomputed),    cmocka_unit_test(long_splits_as_recomputed),
        cmocka_unit_test(order_does_not_matter),  cmocka_unit_test(shrinks_as_recomputed),
        cmocka_unit_test(damaged_nodes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
