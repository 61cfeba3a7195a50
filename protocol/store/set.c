/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/store/set.h"

#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "protocol/base/limits.h"

static uint32_t power_of_two_above(uint32_t n)
{
    uint32_t p = 16;
    while (p < n) p *= 2;
    return p;
}

void fb_set_layout(fb_set *set, fb_arena *arena, uint32_t bytes, uint32_t entries)
{
    uint32_t buckets = power_of_two_above(entries);
    uint8_t *memory = fb_arena_take(arena, bytes, 1);
    fb_set_slot *slots = fb_arena_take(arena, entries, sizeof *slots);
    uint32_t *heads = fb_arena_take(arena, buckets, sizeof *heads);
    uint32_t *sorted = fb_arena_take(arena, entries, sizeof *sorted);
    if (set == NULL) return;
    *set = (fb_set){.bytes = memory,
                    .cap = bytes,
                    .slots = slots,
                    .slot_cap = entries,
                    .buckets = heads,
                    .bucket_mask = buckets - 1,
                    .sorted = sorted};
}

void fb_set_clear(fb_set *set, uint64_t w)
{
    if (set->count * 4 < set->bucket_mask) {
        for (uint32_t i = 0; i < set->count; i++) {
            set->buckets[set->slots[i].hash & set->bucket_mask] = 0;
        }
    } else {
        memset(set->buckets, 0, ((size_t)set->bucket_mask + 1) * sizeof *set->buckets);
    }
    set->w = w;
    set->used = set->dead_bytes = set->count = set->live = 0;
    set->sorted_count = set->sorted_upto = 0;
}

uint32_t fb_set_hash(fb_span key)
{
    return (uint32_t)fb_xxh64(key.p, key.len, 0);
}

static fb_write_entry entry_of(const fb_set *set, uint32_t slot)
{
    const uint8_t *p = set->bytes + set->slots[slot].offset;
    uint32_t key_len = fb_load_be16(p + 2);
    uint32_t value_len = fb_load_be32(p + 4);
    const uint8_t *key = p + FB_WRITE_ENTRY_HEAD;
    return (fb_write_entry){p[0], {key, key_len}, {key + key_len, value_len}};
}

static uint32_t find_slot(const fb_set *set, uint32_t hash, fb_span key)
{
    uint32_t at = set->buckets[hash & set->bucket_mask];
    while (at != 0) {
        const fb_set_slot *slot = &set->slots[at - 1];
        if (slot->hash == hash && slot->offset != FB_SET_DEAD &&
            fb_span_equal(entry_of(set, at - 1).key, key)) {
            return at - 1;
        }
        at = slot->next;
    }
    return FB_NONE;
}

bool fb_set_fits(const fb_set *set, size_t bytes, size_t entries)
{
    return bytes <= set->cap - set->used && entries <= set->slot_cap - set->count;
}

/* Room for an entry of a key that has this hash; one that the key had is dead from now on. */
static uint8_t *append(fb_set *set, uint32_t hash, fb_span key, size_t size)
{
    FB_ASSERT(fb_set_fits(set, size, 1));
    uint32_t earlier = find_slot(set, hash, key);
    if (earlier != FB_NONE) {
        fb_write_entry dead = entry_of(set, earlier);
        set->dead_bytes += (uint32_t)fb_write_entry_bytes(dead.key.len, dead.value.len);
        set->slots[earlier].offset = FB_SET_DEAD;
        set->live--;
    }
    uint8_t *p = set->bytes + set->used;
    uint32_t *head = &set->buckets[hash & set->bucket_mask];
    set->slots[set->count] = (fb_set_slot){set->used, hash, *head};
    *head = ++set->count;
    set->used += (uint32_t)size;
    set->live++;
    return p;
}

void fb_set_put(fb_set *set, fb_write_kind kind, fb_span key, fb_span value)
{
    size_t size = fb_write_entry_bytes(key.len, value.len);
    FB_ASSERT(key.len > 0 && key.len <= FB_KEY_BYTES_MAX && value.len <= FB_VALUE_BYTES_MAX);
    uint8_t *p = append(set, fb_set_hash(key), key, size);
    /* The end, so that nothing but zeros is behind the value. */
    fb_store_be64(p + size - 8, 0);
    p[0] = (uint8_t)kind;
    p[1] = 0;
    fb_store_be16(p + 2, (uint16_t)key.len);
    fb_store_be32(p + 4, (uint32_t)value.len);
    fb_copy(p + FB_WRITE_ENTRY_HEAD, key.p, key.len);
    fb_copy(p + FB_WRITE_ENTRY_HEAD + key.len, value.p, value.len);
}

size_t fb_set_take(fb_set *set, const fb_set *from, uint32_t slot)
{
    if (from->slots[slot].offset == FB_SET_DEAD) return 0;
    fb_write_entry entry = entry_of(from, slot);
    size_t size = fb_write_entry_bytes(entry.key.len, entry.value.len);
    uint8_t *p = append(set, from->slots[slot].hash, entry.key, size);
    memcpy(p, from->bytes + from->slots[slot].offset, size);
    return size;
}

bool fb_set_overwrite(fb_set *set, fb_span key, fb_span value)
{
    uint32_t slot = find_slot(set, fb_set_hash(key), key);
    if (slot == FB_NONE) return false;
    fb_write_entry entry = entry_of(set, slot);
    if (entry.kind != FB_WRITE_PUT || entry.value.len != value.len) return false;
    size_t at = set->slots[slot].offset + FB_WRITE_ENTRY_HEAD + key.len;
    memcpy(set->bytes + at, value.p, value.len);
    return true;
}

bool fb_set_find(const fb_set *set, uint32_t hash, fb_span key, fb_write_entry *out)
{
    uint32_t slot = find_slot(set, hash, key);
    if (slot == FB_NONE) return false;
    *out = entry_of(set, slot);
    return true;
}

void fb_set_compact(fb_set *set)
{
    if (set->dead_bytes == 0) return;
    uint32_t kept = 0, to = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->slots[i].offset == FB_SET_DEAD) continue;
        fb_write_entry entry = entry_of(set, i);
        uint32_t size = (uint32_t)fb_write_entry_bytes(entry.key.len, entry.value.len);
        memmove(set->bytes + to, set->bytes + set->slots[i].offset, size);
        set->slots[kept] = (fb_set_slot){to, set->slots[i].hash, 0};
        to += size;
        kept++;
    }
    memset(set->buckets, 0, ((size_t)set->bucket_mask + 1) * sizeof *set->buckets);
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t *head = &set->buckets[set->slots[i].hash & set->bucket_mask];
        set->slots[i].next = *head;
        *head = i + 1;
    }
    set->count = kept;
    set->used = to;
    set->dead_bytes = 0;
    set->sorted_count = set->sorted_upto = 0;
}

uint32_t fb_set_lower(const fb_set *set, fb_span key)
{
    uint32_t low = 0, high = set->sorted_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fb_span_compare(entry_of(set, set->sorted[middle]).key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void fb_set_sort(fb_set *set)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->sorted_count; i++) {
        if (set->slots[set->sorted[i]].offset != FB_SET_DEAD) set->sorted[kept++] = set->sorted[i];
    }
    set->sorted_count = kept;
    for (uint32_t slot = set->sorted_upto; slot < set->count; slot++) {
        if (set->slots[slot].offset == FB_SET_DEAD) continue;
        uint32_t place = fb_set_lower(set, entry_of(set, slot).key);
        memmove(set->sorted + place + 1, set->sorted + place,
                (set->sorted_count - place) * sizeof *set->sorted);
        set->sorted[place] = slot;
        set->sorted_count++;
    }
    set->sorted_upto = set->count;
}

bool fb_set_entry_at(const fb_set *set, uint32_t place, fb_write_entry *out)
{
    if (place >= set->sorted_count) return false;
    *out = entry_of(set, set->sorted[place]);
    return true;
}
