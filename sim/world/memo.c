/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/memo.h"

#define LEAST  32u   /* places */
#define DOUBLE 1024u /* places up to which a table doubles */

/* A table as large as it is now. */
static uint64_t *slots_of(const fb_sim_memo *memo, uint8_t table)
{
    return memo->tables[table] + ((size_t)memo->masks[table] + 1) * memo->stride;
}

static void empty(fb_sim_memo *memo, uint8_t table)
{
    size_t words = ((size_t)memo->masks[table] + 1) * memo->stride;
    memset(slots_of(memo, table), 0, words * sizeof(uint64_t));
}

void fb_sim_memo_init(fb_sim_memo *memo, fb_arena *arena, uint32_t places, uint32_t values)
{
    size_t words = (size_t)places * 2 * (1 + values);
    uint64_t *first = fb_arena_take(arena, words, sizeof *first);
    uint64_t *second = fb_arena_take(arena, words, sizeof *second);
    if (arena->base == NULL) return;
    uint32_t least = (places < LEAST ? places : LEAST) - 1;
    *memo = (fb_sim_memo){.tables = {first, second},
                          .masks = {least, least},
                          .mask = places - 1,
                          .stride = 1 + values};
}

void fb_sim_memo_clear(fb_sim_memo *memo)
{
    empty(memo, 0);
    empty(memo, 1);
    memo->used = 0;
}

/* The place of a key, or the free one where it would stand. */
static uint64_t *slot_of(const fb_sim_memo *memo, uint8_t table, uint64_t key)
{
    uint32_t mask = memo->masks[table];
    uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    uint64_t *slots = slots_of(memo, table);
    for (;; at = (at + 1) & mask) {
        uint64_t *slot = slots + (size_t)at * memo->stride;
        if (slot[0] == key || slot[0] == 0) return slot;
    }
}

/* What it becomes stands behind it, and was never used: a table does not shrink. What it was is
 * touched memory that nobody uses any more, so a large one is whole at once. */
static void grow(fb_sim_memo *memo, uint8_t table)
{
    const uint64_t *from = slots_of(memo, table);
    uint32_t places = memo->masks[table] + 1;
    memo->masks[table] = places < DOUBLE ? places * 2 - 1 : memo->mask;
    for (uint32_t at = 0; at < places; at++, from += memo->stride) {
        if (from[0] == 0) continue;
        memcpy(slot_of(memo, table, from[0]), from, memo->stride * sizeof *from);
    }
}

uint64_t *fb_sim_memo_find(fb_sim_memo *memo, uint64_t key)
{
    /* What is about faults has nothing in it as a rule. */
    if (memo->used == 0 && memo->turns == 0) return NULL;
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
    if (memo->used > memo->masks[memo->young] / 2) {
        if (memo->masks[memo->young] != memo->mask) {
            grow(memo, memo->young);
        } else {
            memo->young ^= 1;
            memo->turns++;
            empty(memo, memo->young);
            memo->used = 0;
        }
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
    for (uint8_t t = 0; t < 2; t++) {
        for (size_t at = 0; at <= memo->masks[t]; at++) {
            slots_of(memo, t)[at * memo->stride + 1 + value] = 0;
        }
    }
}
