/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/store.h"

#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "sim/fail.h"

#define REMOVED   1u
#define NOT_FOUND UINT32_MAX

void fb_sim_store_init(fb_sim_store *store, fb_arena *arena, fb_sim_blobs *blobs,
                       uint32_t items_max)
{
    *store = (fb_sim_store){.blobs = blobs, .items_max = items_max};
    uint32_t slots = 16;
    while (slots < items_max + items_max / 4) slots *= 2;
    store->slot_mask = slots - 1;
    store->slots = fb_arena_take(arena, slots, sizeof *store->slots);
    /* Leaves are split in halves and merged when two fit in three quarters of one, so that half a
     * leaf each is the worst lasting case. */
    store->leaves_max = items_max / (FB_SIM_LEAF_KEYS / 3) + 4;
    store->leaves = fb_arena_take(arena, store->leaves_max, sizeof *store->leaves);
    store->order = fb_arena_take(arena, store->leaves_max, sizeof *store->order);
    store->free_leaf = NOT_FOUND;
}

/* The hash table: key blobs are interned, so equal keys are equal numbers. */

static uint32_t slot_start(const fb_sim_store *store, fb_sim_blob key)
{
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & store->slot_mask;
}

static fb_sim_slot *slot_find(const fb_sim_store *store, fb_sim_blob key)
{
    for (uint32_t at = slot_start(store, key);; at = (at + 1) & store->slot_mask) {
        fb_sim_slot *slot = &store->slots[at];
        if (slot->key == key) return slot;
        if (slot->key == 0) return NULL;
    }
}

static void slots_rebuild(fb_sim_store *store)
{
    memset(store->slots, 0, ((size_t)store->slot_mask + 1) * sizeof *store->slots);
    store->slots_used = 0;
}

static void slot_insert_new(fb_sim_store *store, fb_sim_blob key, fb_sim_blob value)
{
    uint32_t at = slot_start(store, key);
    while (store->slots[at].key > REMOVED) at = (at + 1) & store->slot_mask;
    if (store->slots[at].key == 0) store->slots_used++;
    store->slots[at] = (fb_sim_slot){key, value};
}

/* Removed places are swept when they crowd the table: values wait in the leaves' order. */
static void slots_sweep(fb_sim_store *store)
{
    uint32_t size = store->slot_mask + 1;
    if (store->slots_used < size - size / 8) return;
    /* In place: lift each chain once. Everything after a gap is put in again from scratch. */
    uint32_t start = 0;
    while (store->slots[start].key != 0) start++;
    for (uint32_t i = 1; i < size; i++) {
        uint32_t at = (start + i) & store->slot_mask;
        fb_sim_slot slot = store->slots[at];
        if (slot.key == 0) continue;
        store->slots[at].key = 0;
        store->slots_used--;
        if (slot.key != REMOVED) slot_insert_new(store, slot.key, slot.value);
    }
}

/* The order. */

static fb_span key_bytes(const fb_sim_store *store, fb_sim_blob key)
{
    return fb_sim_blob_bytes(store->blobs, key);
}

static fb_span first_key(const fb_sim_store *store, uint32_t place)
{
    return key_bytes(store, store->leaves[store->order[place]].keys[0]);
}

/* The last place whose first key is not beyond the key; 0 when all are. */
static uint32_t place_of(const fb_sim_store *store, fb_span key)
{
    uint32_t low = 0, high = store->leaf_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (fb_span_compare(first_key(store, middle), key) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t place_of_hinted(const fb_sim_store *store, fb_span key)
{
    uint32_t hint = store->finger;
    if (hint < store->leaf_count && fb_span_compare(first_key(store, hint), key) <= 0 &&
        (hint + 1 == store->leaf_count || fb_span_compare(first_key(store, hint + 1), key) > 0)) {
        return hint;
    }
    return place_of(store, key);
}

/* How many keys of the leaf are below the key. */
static uint32_t below(const fb_sim_store *store, const fb_sim_leaf *leaf, fb_span key)
{
    uint32_t low = 0, high = leaf->count;
    if (high != 0 && fb_span_compare(key_bytes(store, leaf->keys[high - 1]), key) < 0) return high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fb_span_compare(key_bytes(store, leaf->keys[middle]), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t leaf_take(fb_sim_store *store)
{
    uint32_t leaf = store->free_leaf;
    if (leaf != NOT_FOUND) {
        store->free_leaf = store->leaves[leaf].next_free;
    } else {
        if (store->leaves_carved == store->leaves_max) fb_sim_fail_resource("leaves of a store");
        leaf = store->leaves_carved++;
    }
    store->leaves[leaf].count = 0;
    return leaf;
}

static void order_insert(fb_sim_store *store, uint32_t place, uint32_t leaf)
{
    memmove(&store->order[place + 1], &store->order[place],
            (store->leaf_count - place) * sizeof *store->order);
    store->order[place] = leaf;
    store->leaf_count++;
}

static void order_remove(fb_sim_store *store, uint32_t place)
{
    uint32_t leaf = store->order[place];
    store->leaves[leaf].next_free = store->free_leaf;
    store->free_leaf = leaf;
    store->leaf_count--;
    memmove(&store->order[place], &store->order[place + 1],
            (store->leaf_count - place) * sizeof *store->order);
}

static void key_insert(fb_sim_store *store, fb_sim_blob key)
{
    fb_span bytes = key_bytes(store, key);
    if (store->leaf_count == 0) order_insert(store, 0, leaf_take(store));
    uint32_t place = store->leaf_count == 1 ? 0 : place_of_hinted(store, bytes);
    fb_sim_leaf *leaf = &store->leaves[store->order[place]];
    uint32_t at = leaf->count == 0 ? 0 : below(store, leaf, bytes);
    if (leaf->count == FB_SIM_LEAF_KEYS) {
        /* Appended keys keep their leaf nearly full; others split in halves. */
        uint32_t keep = at == FB_SIM_LEAF_KEYS ? FB_SIM_LEAF_KEYS - 4 : FB_SIM_LEAF_KEYS / 2;
        uint32_t taken = leaf_take(store);
        fb_sim_leaf *right = &store->leaves[taken];
        right->count = FB_SIM_LEAF_KEYS - keep;
        memcpy(right->keys, leaf->keys + keep, right->count * sizeof *right->keys);
        leaf->count = keep;
        order_insert(store, place + 1, taken);
        if (at > keep) {
            place++;
            leaf = right;
            at -= keep;
        }
    }
    memmove(&leaf->keys[at + 1], &leaf->keys[at], (leaf->count - at) * sizeof *leaf->keys);
    leaf->keys[at] = key;
    leaf->count++;
    store->finger = place;
}

static void key_remove(fb_sim_store *store, fb_sim_blob key)
{
    fb_span bytes = key_bytes(store, key);
    uint32_t place = place_of_hinted(store, bytes);
    fb_sim_leaf *leaf = &store->leaves[store->order[place]];
    uint32_t at = below(store, leaf, bytes);
    FB_ASSERT(at < leaf->count && leaf->keys[at] == key);
    leaf->count--;
    memmove(&leaf->keys[at], &leaf->keys[at + 1], (leaf->count - at) * sizeof *leaf->keys);
    if (leaf->count == 0) {
        order_remove(store, place);
        return;
    }
    for (uint32_t first = place == 0 ? 0 : place - 1; first <= place; first++) {
        if (first + 1 >= store->leaf_count) break;
        fb_sim_leaf *left = &store->leaves[store->order[first]];
        const fb_sim_leaf *right = &store->leaves[store->order[first + 1]];
        if (left->count + right->count > FB_SIM_LEAF_KEYS * 3 / 4) continue;
        memcpy(left->keys + left->count, right->keys, right->count * sizeof *left->keys);
        left->count += right->count;
        order_remove(store, first + 1);
        return;
    }
}

/* The map. */

void fb_sim_store_put(fb_sim_store *store, fb_span key, fb_span value)
{
    fb_sim_blob key_blob = fb_sim_blob_intern(store->blobs, key);
    fb_sim_blob value_blob = fb_sim_blob_intern(store->blobs, value);
    fb_sim_slot *slot = slot_find(store, key_blob);
    if (slot != NULL) {
        fb_sim_blob_drop(store->blobs, key_blob);
        fb_sim_blob_drop(store->blobs, slot->value);
        slot->value = value_blob;
        return;
    }
    if (store->items == store->items_max) fb_sim_fail_resource("items of a store");
    slots_sweep(store);
    slot_insert_new(store, key_blob, value_blob);
    key_insert(store, key_blob);
    store->items++;
}

void fb_sim_store_delete(fb_sim_store *store, fb_span key)
{
    fb_sim_blob key_blob = fb_sim_blob_find(store->blobs, key);
    if (key_blob == 0) return;
    fb_sim_slot *slot = slot_find(store, key_blob);
    if (slot == NULL) return;
    key_remove(store, key_blob);
    fb_sim_blob_drop(store->blobs, slot->value);
    fb_sim_blob_drop(store->blobs, key_blob);
    *slot = (fb_sim_slot){REMOVED, 0};
    store->items--;
}

bool fb_sim_store_get(const fb_sim_store *store, fb_span key, fb_span *value)
{
    fb_sim_blob key_blob = fb_sim_blob_find(store->blobs, key);
    if (key_blob == 0) return false;
    const fb_sim_slot *slot = slot_find(store, key_blob);
    if (slot == NULL) return false;
    *value = fb_sim_blob_bytes(store->blobs, slot->value);
    return true;
}

void fb_sim_store_clear(fb_sim_store *store)
{
    for (uint32_t i = 0; i <= store->slot_mask; i++) {
        if (store->slots[i].key <= REMOVED) continue;
        fb_sim_blob_drop(store->blobs, store->slots[i].key);
        fb_sim_blob_drop(store->blobs, store->slots[i].value);
    }
    slots_rebuild(store);
    store->items = 0;
    store->leaf_count = 0;
    store->leaves_carved = 0;
    store->free_leaf = NOT_FOUND;
    store->finger = 0;
}

void fb_sim_store_copy(fb_sim_store *to, const fb_sim_store *from)
{
    FB_ASSERT(to->items_max >= from->items && to->blobs == from->blobs);
    fb_sim_store_clear(to);
    for (uint32_t place = 0; place < from->leaf_count; place++) {
        const fb_sim_leaf *leaf = &from->leaves[from->order[place]];
        for (uint32_t i = 0; i < leaf->count; i++) {
            const fb_sim_slot *slot = slot_find(from, leaf->keys[i]);
            fb_sim_blob_hold(to->blobs, slot->key);
            fb_sim_blob_hold(to->blobs, slot->value);
            slot_insert_new(to, slot->key, slot->value);
            key_insert(to, slot->key);
            to->items++;
        }
    }
}

bool fb_sim_store_apply(fb_sim_store *store, fb_span write_set)
{
    fb_reader check = fb_reader_of(write_set);
    while (fb_reader_left(&check) != 0) fb_write_entry_next(&check);
    if (check.failed) return false;
    fb_reader r = fb_reader_of(write_set);
    while (fb_reader_left(&r) != 0) {
        fb_write_entry entry = fb_write_entry_next(&r);
        if (entry.kind == FB_WRITE_PUT) {
            fb_sim_store_put(store, entry.key, entry.value);
        } else {
            fb_sim_store_delete(store, entry.key);
        }
    }
    return true;
}

static void entry_write(const fb_sim_store *store, fb_writer *out, const fb_read_item *item,
                        fb_sim_blob key, fb_sim_blob value)
{
    fb_span bytes = fb_sim_blob_bytes(store->blobs, value);
    fb_read_entry entry = {
        .key = fb_sim_blob_bytes(store->blobs, key),
        .value_len = (uint32_t)bytes.len,
        .value = fb_span_of(bytes.p, bytes.len < item->value_bytes ? bytes.len : item->value_bytes),
    };
    fb_read_entry_write(out, &entry);
}

/* One place further in the direction of the range; false at the end of the store. */
static bool advance(const fb_sim_store *store, bool descending, uint32_t *place, uint32_t *at)
{
    if (descending) {
        if (*at > 0) {
            --*at;
            return true;
        }
        if (*place == 0) return false;
        --*place;
        *at = store->leaves[store->order[*place]].count - 1;
        return true;
    }
    if (*at + 1 < store->leaves[store->order[*place]].count) {
        ++*at;
        return true;
    }
    if (*place + 1 >= store->leaf_count) return false;
    ++*place;
    *at = 0;
    return true;
}

/* Where a range begins in its direction; false when nothing is there. */
static bool range_start(const fb_sim_store *store, const fb_read_item *item, uint32_t *place,
                        uint32_t *at)
{
    if (store->leaf_count == 0) return false;
    bool descending = (item->flags & FB_READ_DESCENDING) != 0;
    if (descending && item->high.len == 0) {
        *place = store->leaf_count - 1;
        *at = store->leaves[store->order[*place]].count - 1;
        return true;
    }
    fb_span from = descending ? item->high : item->low;
    *place = place_of(store, from);
    const fb_sim_leaf *leaf = &store->leaves[store->order[*place]];
    uint32_t less = below(store, leaf, from);
    if (descending) {
        /* The last key below the bound. */
        *at = less;
        return advance(store, true, place, at);
    }
    if (less == leaf->count) {
        *at = leaf->count - 1;
        return advance(store, false, place, at);
    }
    *at = less;
    return true;
}

static void range_read(const fb_sim_store *store, const fb_read_item *item, fb_writer *out)
{
    bool descending = (item->flags & FB_READ_DESCENDING) != 0;
    size_t head = out->at;
    fb_write_u8(out, 0);
    fb_write_u32(out, 0);
    size_t start = out->at;
    uint32_t count = 0;
    bool whole = true;
    uint32_t place, at;
    bool more = range_start(store, item, &place, &at);
    while (more && !out->failed) {
        fb_sim_blob key = store->leaves[store->order[place]].keys[at];
        fb_span bytes = key_bytes(store, key);
        if (descending ? fb_span_compare(bytes, item->low) < 0
                       : item->high.len != 0 && fb_span_compare(bytes, item->high) >= 0) {
            break;
        }
        if (count == item->items) {
            whole = false;
            break;
        }
        fb_sim_blob value = slot_find(store, key)->value;
        size_t value_len = fb_sim_blob_bytes(store->blobs, value).len;
        if (value_len > item->value_bytes) value_len = item->value_bytes;
        size_t size = 2 + bytes.len + 4 + 4 + value_len;
        if (count != 0 && out->at - start + size > item->bytes) {
            whole = false;
            break;
        }
        entry_write(store, out, item, key, value);
        count++;
        more = advance(store, descending, &place, &at);
    }
    if (out->failed) return;
    out->p[head] = whole ? 1 : 0;
    fb_store_be(out->p + head + 1, count, 4);
}

bool fb_sim_store_read(const fb_sim_store *store, fb_span read_set, fb_writer *out)
{
    fb_reader r = fb_reader_of(read_set);
    uint16_t items = fb_read_u16(&r);
    for (uint16_t i = 0; i < items; i++) {
        fb_read_item item = fb_read_item_next(&r);
        if (r.failed) return false;
        if (item.kind == FB_READ_RANGE) {
            range_read(store, &item, out);
            continue;
        }
        if (item.kind != FB_READ_KEY) return false;
        fb_sim_blob key = fb_sim_blob_find(store->blobs, item.low);
        const fb_sim_slot *slot = key == 0 ? NULL : slot_find(store, key);
        fb_write_u8(out, 1);
        fb_write_u32(out, slot == NULL ? 0 : 1);
        if (slot != NULL) entry_write(store, out, &item, slot->key, slot->value);
    }
    return fb_reader_done(&r) && !out->failed;
}

void fb_sim_store_walk(const fb_sim_store *store,
                       void (*at)(void *user, fb_span key, fb_span value), void *user)
{
    for (uint32_t place = 0; place < store->leaf_count; place++) {
        const fb_sim_leaf *leaf = &store->leaves[store->order[place]];
        for (uint32_t i = 0; i < leaf->count; i++) {
            const fb_sim_slot *slot = slot_find(store, leaf->keys[i]);
            at(user, key_bytes(store, slot->key), fb_sim_blob_bytes(store->blobs, slot->value));
        }
    }
}

static void hash_item(void *user, fb_span key, fb_span value)
{
    uint64_t *hash = user;
    *hash = fb_xxh64(key.p, key.len, *hash);
    *hash = fb_xxh64(value.p, value.len, *hash);
}

uint64_t fb_sim_store_hash(const fb_sim_store *store)
{
    uint64_t hash = 0;
    fb_sim_store_walk(store, hash_item, &hash);
    return hash;
}
