/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay: a store's answer with the node's own later write sets laid over it.
 *
 * A reader sees sets up to w_durable, a writer also what is in flight and what is being built. The
 * ring keeps every set that some unfinished operation may need (DESIGN 2). */
#include "protocol/base/mutant.h"
#include "protocol/store/store.h"

/* The sets to lay over a read that saw everything up to `applied`, newest first. */
static uint32_t overlay_sets(fb_store *store, const fb_op *op, uint64_t applied, fb_set **sets)
{
    uint64_t newest = op->kind != FB_OP_WRITER
                          ? store->w_durable
                          : MUTANT(OVERLAY_WITHOUT_BUILDING, store->w_sealed + 1, store->w_sealed);
    uint32_t count = 0;
    for (uint64_t w = newest; w > applied && w > 0 && count < FB_WRITE_SETS_KEPT; w--) {
        fb_set *set = &store->ring[w % FB_WRITE_SETS_KEPT];
        FB_ASSERT(set->w == w);
        if (set->live != 0) sets[count++] = set;
    }
    return count;
}

static bool add_entry(fb_store *store, fb_result *result, fb_read_entry entry)
{
    if (store->entry_count == store->entry_cap) return false;
    store->entries[store->entry_count++] = entry;
    result->count++;
    return true;
}

static fb_read_entry overlaid(const fb_write_entry *entry)
{
    return (fb_read_entry){entry->key, (uint32_t)entry->value.len, entry->value};
}

/* An item of the operation's own read set, and an entry of an answer that passed fb_merge_check:
 * neither need be asked what bytes from elsewhere are. */
static fb_read_item own_item(const uint8_t **p)
{
    const uint8_t *head = *p, *low = head + FB_READ_ITEM_HEAD + 2;
    size_t low_len = fb_load_be16(low - 2);
    const uint8_t *high = low + low_len + 2;
    size_t high_len = fb_load_be16(high - 2);
    *p = high + high_len;
    return (fb_read_item){.kind = head[0],
                          .flags = head[1],
                          .value_bytes = fb_load_be32(head + 2),
                          .items = fb_load_be32(head + 6),
                          .bytes = fb_load_be32(head + 10),
                          .low = {low, low_len},
                          .high = {high, high_len}};
}

static fb_read_entry checked_entry(const uint8_t **p)
{
    const uint8_t *key = *p + 2;
    size_t key_len = fb_load_be16(key - 2);
    const uint8_t *lengths = key + key_len, *value = lengths + 8;
    size_t value_len = fb_load_be32(lengths + 4);
    *p = value + value_len;
    return (fb_read_entry){{key, key_len}, fb_load_be32(lengths), {value, value_len}};
}

static bool merge_key(fb_store *store, fb_result *result, fb_set **sets, uint32_t set_count,
                      const fb_read_entry *stored)
{
    uint32_t hash = set_count == 0 ? 0 : fb_set_hash(result->item.low);
    for (uint32_t i = 0; i < set_count; i++) {
        fb_write_entry entry;
        if (!fb_set_find(sets[i], hash, result->item.low, &entry)) continue;
        if (entry.kind == FB_WRITE_DELETE) return true;
        return add_entry(store, result, overlaid(&entry));
    }
    return stored == NULL || add_entry(store, result, *stored);
}

/* One source of a range merge: a set's entries within the range, in the range's direction. */
typedef struct source {
    const fb_set *set;
    uint32_t low;  /* first place of what is left */
    uint32_t high; /* one past the last */
    bool has;
    fb_write_entry entry;
} source;

static void source_load(source *s, bool descending)
{
    s->has =
        s->low < s->high && fb_set_entry_at(s->set, descending ? s->high - 1 : s->low, &s->entry);
}

static void source_next(source *s, bool descending)
{
    if (descending) {
        s->high--;
    } else {
        s->low++;
    }
    source_load(s, descending);
}

/* a before b in the range's direction: below 0. */
static int order_of(fb_span a, fb_span b, bool descending)
{
    int order = fb_span_compare(a, b);
    return descending ? -order : order;
}

static bool merge_range(fb_store *store, fb_result *result, fb_set **sets, uint32_t set_count,
                        const uint8_t **answer, uint32_t stored_count)
{
    bool descending = (result->item.flags & FB_READ_DESCENDING) != 0;
    fb_span low = result->item.low, high = result->item.high;
    source sources[FB_WRITE_SETS_KEPT];
    for (uint32_t i = 0; i < set_count; i++) {
        fb_set_sort(sets[i]);
        sources[i].set = sets[i];
        sources[i].low = fb_set_lower(sets[i], low);
        sources[i].high = high.len == 0 ? sets[i]->sorted_count : fb_set_lower(sets[i], high);
        source_load(&sources[i], descending);
    }
    fb_read_entry stored = {{NULL, 0}, 0, {NULL, 0}};
    uint32_t left = stored_count;
    bool has_stored = left > 0;
    if (has_stored) stored = checked_entry(answer);
    fb_span last = {NULL, 0}; /* of what the store gave: a stopped answer ends there */
    for (;;) {
        source *best = NULL; /* the newest set with the next key */
        for (uint32_t i = 0; i < set_count; i++) {
            source *s = &sources[i];
            if (s->has &&
                (best == NULL || order_of(s->entry.key, best->entry.key, descending) < 0)) {
                best = s;
            }
        }
        int order = best == NULL    ? 1
                    : has_stored    ? order_of(best->entry.key, stored.key, descending)
                    : result->whole ? -1
                                    : 1; /* beyond a stop nothing is known */
        if (best == NULL && !has_stored) break;
        if (order > 0 && !has_stored) break;
        if (order > 0) {
            if (!add_entry(store, result, stored)) return false;
        } else {
            fb_span key = best->entry.key;
            if (best->entry.kind == FB_WRITE_PUT &&
                !add_entry(store, result, overlaid(&best->entry)))
                return false;
            for (uint32_t i = 0; i < set_count; i++) {
                if (sources[i].has && fb_span_equal(sources[i].entry.key, key)) {
                    source_next(&sources[i], descending);
                }
            }
        }
        if (order >= 0) {
            last = stored.key;
            has_stored = --left > 0;
            if (has_stored) stored = checked_entry(answer);
        }
    }
    result->next = last;
    return true;
}

static bool merge_round(fb_node *node, fb_op *op, const fb_op_round_bytes *round, fb_span values)
{
    fb_store *store = node->store;
    fb_set *sets[FB_WRITE_SETS_KEPT];
    uint32_t set_count = overlay_sets(store, op, round->applied_w, sets);
    const uint8_t *items = op->block + round->set_at, *answer = values.p;
    for (uint32_t i = 0; i < round->items; i++) {
        fb_result *result = &store->results[store->result_count++];
        *result = (fb_result){.item = own_item(&items), .first = store->entry_count};
        result->whole = answer[0] != 0;
        uint32_t count = fb_load_be32(answer + 1);
        answer += 5;
        if (result->item.kind == FB_READ_KEY) {
            fb_read_entry stored;
            if (count != 0) stored = checked_entry(&answer);
            result->whole = true;
            if (!merge_key(store, result, sets, set_count, count != 0 ? &stored : NULL))
                return false;
        } else if (!merge_range(store, result, sets, set_count, &answer, count)) {
            return false;
        }
    }
    return true;
}

bool fb_merge(fb_node *node, fb_op *op)
{
    fb_store *store = node->store;
    store->result_count = store->entry_count = 0;
    for (uint32_t i = 0; i < op->round; i++) {
        const fb_op_round_bytes *round = &op->rounds[i];
        fb_span values = i + 1 == op->round && op->borrowed.p != NULL
                             ? op->borrowed
                             : fb_span_of(op->block + round->values_at, round->values_len);
        if (!merge_round(node, op, round, values)) return false;
    }
    return true;
}

bool fb_merge_check(const fb_op *op, fb_span values)
{
    const fb_op_round_bytes *round = &op->rounds[op->round - 1];
    const uint8_t *items = op->block + round->set_at;
    fb_reader r = fb_reader_of(values);
    for (uint32_t i = 0; i < round->items && !r.failed; i++) {
        fb_read_item item = own_item(&items);
        bool descending = (item.flags & FB_READ_DESCENDING) != 0;
        uint8_t whole = fb_read_u8(&r);
        uint32_t count = fb_read_u32(&r);
        if (whole > 1 || (item.kind == FB_READ_KEY && count > 1)) return false;
        if (item.kind == FB_READ_RANGE && (count > item.items || (whole == 0 && count == 0)))
            return false;
        fb_span first = {NULL, 0}, before = {NULL, 0};
        for (uint32_t j = 0; j < count && !r.failed; j++) {
            fb_read_entry entry = fb_read_entry_next(&r);
            if (r.failed || entry.value.len > entry.value_len) return false;
            if (item.kind == FB_READ_KEY && !fb_span_equal(entry.key, item.low)) return false;
            if (item.kind == FB_READ_RANGE) {
                if (j == 0) first = entry.key;
                if (j != 0 && order_of(before, entry.key, descending) >= 0) return false;
            }
            before = entry.key;
        }
        if (first.p != NULL) {
            /* They are in order, so all lie within the bounds when both ends do. */
            fb_span lowest = descending ? before : first, highest = descending ? first : before;
            if (fb_span_compare(lowest, item.low) < 0) return false;
            if (item.high.len != 0 && fb_span_compare(highest, item.high) >= 0) return false;
        }
    }
    return fb_reader_done(&r);
}
