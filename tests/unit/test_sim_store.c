/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated store against a naive twin: a sorted array searched from the start; a second store
 * in the same table is always in the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/base/draw.h"
#include "sim/world/store.h"

#define ITEMS 4096u

typedef struct twin_item {
    uint8_t key[12];
    size_t key_len;
    uint64_t value;
} twin_item;

typedef struct world {
    void *memory;
    uint8_t *blob_memory;
    fb_sim_blobs blobs;
    fb_sim_keys keys;
    fb_sim_store store;
    fb_sim_store other;
    twin_item twin[ITEMS];
    uint32_t twin_count;
} world;

static void *layout(world *w, fb_arena *arena)
{
    fb_sim_keys_init(&w->keys, arena, &w->blobs, 2, 2 * ITEMS);
    fb_sim_store_init(&w->store, &w->keys, 0, ITEMS);
    fb_sim_store_init(&w->other, &w->keys, 1, ITEMS);
    return arena->base;
}

static int setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    fb_arena arena = {NULL, 0, 0};
    layout(w, &arena);
    w->memory = calloc(1, arena.used);
    w->blob_memory = malloc(8u << 20);
    assert_true(w->memory != NULL && w->blob_memory != NULL);
    fb_sim_blobs_init(&w->blobs, w->blob_memory, 8u << 20);
    arena = (fb_arena){w->memory, 0, arena.used};
    layout(w, &arena);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    free(w->memory);
    free(w->blob_memory);
    free(w);
    return 0;
}

static uint32_t twin_find(const world *w, fb_span key, bool *found)
{
    uint32_t i = 0;
    while (i < w->twin_count &&
           fb_span_compare(fb_span_of(w->twin[i].key, w->twin[i].key_len), key) < 0) {
        i++;
    }
    *found =
        i < w->twin_count && fb_span_equal(fb_span_of(w->twin[i].key, w->twin[i].key_len), key);
    return i;
}

static void twin_put(world *w, fb_span key, uint64_t value)
{
    bool found;
    uint32_t i = twin_find(w, key, &found);
    if (!found) {
        assert_true(w->twin_count < ITEMS);
        memmove(&w->twin[i + 1], &w->twin[i], (w->twin_count - i) * sizeof w->twin[0]);
        w->twin_count++;
        memcpy(w->twin[i].key, key.p, key.len);
        w->twin[i].key_len = key.len;
    }
    w->twin[i].value = value;
}

static void twin_delete(world *w, fb_span key)
{
    bool found;
    uint32_t i = twin_find(w, key, &found);
    if (!found) return;
    w->twin_count--;
    memmove(&w->twin[i], &w->twin[i + 1], (w->twin_count - i) * sizeof w->twin[0]);
}

/* Keys of 1 to 12 bytes, many with a common beginning. */
static fb_span make_key(uint8_t out[12], uint64_t bits)
{
    size_t len = 1 + (size_t)(bits % 12);
    for (size_t i = 0; i < len; i++)
        out[i] = i + 3 < len ? 'k' : (uint8_t)(bits >> (8 + 5 * i) & 7);
    return fb_span_of(out, len);
}

static void check_range(const world *w, fb_span low, fb_span high, bool descending, uint32_t items)
{
    uint8_t set[128];
    uint8_t answer[16384];
    fb_writer out = fb_writer_of(set, sizeof set);
    fb_write_u16(&out, 1);
    fb_read_item item = {.kind = FB_READ_RANGE,
                         .flags = descending ? FB_READ_DESCENDING : 0,
                         .value_bytes = 4,
                         .items = items,
                         .bytes = UINT32_MAX,
                         .low = low,
                         .high = high};
    fb_read_item_write(&out, &item);
    fb_writer in = fb_writer_of(answer, sizeof answer);
    assert_true(fb_sim_store_read(&w->store, fb_writer_span(&out), &in));
    fb_reader r = fb_reader_of(fb_writer_span(&in));
    bool whole = fb_read_u8(&r) != 0;
    uint32_t count = fb_read_u32(&r);
    uint32_t at = 0, left = 0;
    for (uint32_t k = 0; k < w->twin_count; k++) {
        uint32_t i = descending ? w->twin_count - 1 - k : k;
        fb_span key = fb_span_of(w->twin[i].key, w->twin[i].key_len);
        if (fb_span_compare(key, low) < 0 || (high.len != 0 && fb_span_compare(key, high) >= 0)) {
            continue;
        }
        if (at == items) {
            left++;
            continue;
        }
        at++;
        fb_read_entry entry = fb_read_entry_next(&r);
        assert_true(fb_span_equal(entry.key, key));
        assert_int_equal(entry.value_len, 8);
        assert_int_equal(entry.value.len, 4);
    }
    assert_int_equal(count, at);
    assert_int_equal(whole, left == 0);
    assert_true(fb_reader_done(&r));
}

static void agrees_with_its_twin(void **state)
{
    world *w = *state;
    fb_seed seed = {7, 7};
    for (uint64_t i = 0; i < 40000; i++) {
        uint64_t bits = fb_draw(seed, 1, 0, i);
        uint8_t key[12], low[12], high[12];
        fb_span k = make_key(key, bits);
        /* Grows, shrinks, grows again: leaves split and merge, removed places are swept. */
        bool shrink = (i / 5000) % 2 == 1;
        if ((bits >> 56) % 8 < (shrink ? 6u : 2u)) {
            fb_sim_store_delete(&w->store, k);
            twin_delete(w, k);
        } else {
            fb_sim_store_put(&w->store, k, fb_span_of(&bits, sizeof bits));
            twin_put(w, k, bits);
        }
        assert_int_equal(w->store.items, w->twin_count);
        if (i % 50 == 0) {
            fb_span l = make_key(low, fb_draw(seed, 2, 0, i));
            fb_span h = make_key(high, fb_draw(seed, 3, 0, i));
            if (i % 150 == 0) h.len = 0;
            check_range(w, l, h, i % 100 == 0, 1 + (uint32_t)(bits >> 40) % 64);
        }
        fb_span other = make_key(low, fb_draw(seed, 4, 0, i));
        if ((bits >> 52) % 2 == 0) {
            fb_sim_store_delete(&w->other, other);
        } else {
            fb_sim_store_put(&w->other, other, fb_span_of(&i, 4));
        }
        bool found;
        uint32_t at = twin_find(w, k, &found);
        fb_span value;
        assert_int_equal(fb_sim_store_get(&w->store, k, &value), found);
        if (found) assert_memory_equal(value.p, &w->twin[at].value, 8);
    }
    fb_sim_store_copy(&w->other, &w->store);
    assert_true(fb_sim_store_hash(&w->other) == fb_sim_store_hash(&w->store));
    fb_sim_store_clear(&w->store);
    fb_sim_store_clear(&w->other);
    assert_int_equal(w->blobs.live, 0);
}

static void what_stores_have_in_common_is_kept_once(void **state)
{
    world *w = *state;
    fb_sim_store_put(&w->store, fb_span_text("key"), fb_span_text("a value that both have"));
    uint64_t live = w->blobs.live;
    fb_sim_store_put(&w->other, fb_span_text("key"), fb_span_text("a value that both have"));
    assert_int_equal(w->blobs.live, live);
    fb_sim_store_delete(&w->store, fb_span_text("key"));
    fb_span value;
    assert_false(fb_sim_store_get(&w->store, fb_span_text("key"), &value));
    assert_true(fb_sim_store_get(&w->other, fb_span_text("key"), &value));
    fb_sim_store_copy(&w->store, &w->other);
    fb_sim_store_put(&w->other, fb_span_text("key"), fb_span_text("another"));
    assert_true(fb_sim_store_get(&w->store, fb_span_text("key"), &value));
    assert_true(fb_span_equal(value, fb_span_text("a value that both have")));
    fb_sim_store_clear(&w->other);
    assert_true(fb_sim_store_get(&w->store, fb_span_text("key"), &value));
}

static void a_write_set_is_applied_whole_or_refused(void **state)
{
    world *w = *state;
    uint8_t set[64];
    fb_writer out = fb_writer_of(set, sizeof set);
    static const uint8_t bytes[] = {1, 0, 0, 1, 0, 0, 0, 2, 'a', 'x', 'y', 0, 0, 0, 0, 0,
                                    2, 0, 0, 1, 0, 0, 0, 0, 'b', 0,   0,   0, 0, 0, 0, 0};
    fb_write_bytes(&out, bytes, sizeof bytes);
    fb_sim_store_put(&w->store, fb_span_text("b"), fb_span_text("old"));
    assert_false(fb_sim_store_apply(&w->store, fb_span_of(set, sizeof bytes - 1)));
    fb_span value;
    assert_false(fb_sim_store_get(&w->store, fb_span_text("a"), &value));
    assert_true(fb_sim_store_apply(&w->store, fb_span_of(set, sizeof bytes)));
    assert_true(fb_sim_store_get(&w->store, fb_span_text("a"), &value));
    assert_true(fb_span_equal(value, fb_span_text("xy")));
    assert_false(fb_sim_store_get(&w->store, fb_span_text("b"), &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(agrees_with_its_twin, setup, teardown),
        cmocka_unit_test_setup_teardown(what_stores_have_in_common_is_kept_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_set_is_applied_whole_or_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
