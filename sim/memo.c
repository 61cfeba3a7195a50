/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/memo.h"

void fb_sim_memo_init(fb_sim_memo *memo, fb_arena *arena, uint32_t places)
{
    fb_sim_memo_slot *first = fb_arena_take(arena, places, sizeof *first);
    fb_sim_memo_slot *second = fb_arena_take(arena, places, sizeof *second);
    if (arena->base == NULL) return;
    *memo = (fb_sim_memo){.tables = {first, second}, .mask = places - 1};
}

void fb_sim_memo_clear(fb_sim_memo *memo)
{
    size_t bytes = ((size_t)memo->mask + 1) * sizeof *memo->tables[0];
    memset(memo->tables[0], 0, bytes);
    memset(memo->tables[1], 0, bytes);
    memo->used = 0;
}

static fb_sim_memo_slot *slot_of(const fb_sim_memo *memo, uint8_t table, uint64_t key)
{
    uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & memo->mask;
    fb_sim_memo_slot *slots = memo->tables[table];
    while (slots[at].key != 0 && slots[at].key != key) at = (at + 1) & memo->mask;
    return &slots[at];
}

uint64_t *fb_sim_memo_find(fb_sim_memo *memo, uint64_t key)
{
    for (uint8_t i = 0; i < 2; i++) {
        fb_sim_memo_slot *slot = slot_of(memo, memo->young ^ i, key);
        if (slot->key == key) return &slot->value;
    }
    return NULL;
}

uint64_t *fb_sim_memo_at(fb_sim_memo *memo, uint64_t key)
{
    fb_sim_memo_slot *slot = slot_of(memo, memo->young, key);
    if (slot->key == key) return &slot->value;
    /* What is used again is young again. */
    const fb_sim_memo_slot *old = slot_of(memo, memo->young ^ 1, key);
    uint64_t value = old->key == key ? old->value : 0;
    if (memo->used > memo->mask / 2) {
        memo->young ^= 1;
        memo->turns++;
        memset(memo->tables[memo->young], 0, ((size_t)memo->mask + 1) * sizeof *memo->tables[0]);
        memo->used = 0;
        slot = slot_of(memo, memo->young, key);
    }
    *slot = (fb_sim_memo_slot){key, value};
    memo->used++;
    return &slot->value;
}

void fb_sim_memo_put(fb_sim_memo *memo, uint64_t key, uint64_t value)
{
    *fb_sim_memo_at(memo, key) = value;
}
