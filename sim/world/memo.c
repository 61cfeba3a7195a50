/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/memo.h"

static size_t table_bytes(const fb_sim_memo *memo)
{
    return ((size_t)memo->mask + 1) * memo->stride * sizeof(uint64_t);
}

void fb_sim_memo_init(fb_sim_memo *memo, fb_arena *arena, uint32_t places, uint32_t values)
{
    size_t words = (size_t)places * (1 + values);
    uint64_t *first = fb_arena_take(arena, words, sizeof *first);
    uint64_t *second = fb_arena_take(arena, words, sizeof *second);
    if (arena->base == NULL) return;
    *memo = (fb_sim_memo){.tables = {first, second}, .mask = places - 1, .stride = 1 + values};
}

void fb_sim_memo_clear(fb_sim_memo *memo)
{
    memset(memo->tables[0], 0, table_bytes(memo));
    memset(memo->tables[1], 0, table_bytes(memo));
    memo->used = 0;
}

/* The place of a key, or the free one where it would stand. */
static uint64_t *slot_of(const fb_sim_memo *memo, uint8_t table, uint64_t key)
{
    uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & memo->mask;
    uint64_t *slots = memo->tables[table];
    for (;; at = (at + 1) & memo->mask) {
        uint64_t *slot = slots + (size_t)at * memo->stride;
        if (slot[0] == key || slot[0] == 0) return slot;
    }
}

uint64_t *fb_sim_memo_find(fb_sim_memo *memo, uint64_t key)
{
    for (uint8_t i = 0; i < 2; i++) {
        uint64_t *slot = slot_of(memo, memo->young ^ i, key);
        if (slot[0] == key) return slot + 1;
    }
    return NULL;
}

/* A key that is not in the young table. */
static uint64_t *make_young(fb_sim_memo *memo, uint64_t *slot, uint64_t key)
{
    /* What is used again is young again, unless its table is the one to be forgotten now. */
    const uint64_t *old = slot_of(memo, memo->young ^ 1, key);
    uint64_t values[FB_SIM_MEMO_VALUES_MAX] = {0};
    size_t bytes = (memo->stride - 1) * sizeof *values;
    if (old[0] == key) memcpy(values, old + 1, bytes);
    if (memo->used > memo->mask / 2) {
        memo->young ^= 1;
        memo->turns++;
        memset(memo->tables[memo->young], 0, table_bytes(memo));
        memo->used = 0;
        slot = slot_of(memo, memo->young, key);
    }
    slot[0] = key;
    memcpy(slot + 1, values, bytes);
    memo->used++;
    return slot + 1;
}

uint64_t *fb_sim_memo_at(fb_sim_memo *memo, uint64_t key)
{
    uint64_t *slot = slot_of(memo, memo->young, key);
    return slot[0] == key ? slot + 1 : make_young(memo, slot, key);
}

void fb_sim_memo_put(fb_sim_memo *memo, uint64_t key, uint64_t value)
{
    *fb_sim_memo_at(memo, key) = value;
}

void fb_sim_memo_zero(fb_sim_memo *memo, uint32_t value)
{
    for (uint32_t t = 0; t < 2; t++) {
        for (size_t at = 0; at <= memo->mask; at++) {
            memo->tables[t][at * memo->stride + 1 + value] = 0;
        }
    }
}
