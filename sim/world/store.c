/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/store.h"

#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "sim/world/fail.h"

#define NOT_FOUND UINT32_MAX

/* In wider tables a value is looked for in the column that was put last, not in all; and so are
 * values that are not worth the looking. */
#define NARROW 16u
#define LONG   512u

/* One key and what each store has under it; a blob, followed by the key's bytes. */
typedef struct row {
    uint32_t hash;
    fb_sim_blob next; /* in its bucket */
    uint32_t key_len;
    uint16_t holders;     /* columns with a value */
    uint16_t last;        /* column that was put last */
    fb_sim_blob values[]; /* 0: this store does not have the key */
} row;

static row *row_of(const fb_sim_keys *keys, fb_sim_blob blob)
{
    return (row *)(void *)fb_sim_blob_writable(keys->blobs, blob);
}

static fb_span key_of(const fb_sim_keys *keys, const row *r)
{
    return fb_span_of((const uint8_t *)(r->values + keys->columns), r->key_len);
}

void fb_sim_keys_init(fb_sim_keys *keys, fb_arena *arena, fb_sim_blobs *blobs, uint32_t columns,
                      uint32_t rows_max)
{
    FB_ASSERT(columns <= UINT16_MAX);
    *keys = (fb_sim_keys){.blobs = blobs, .columns = columns, .rows_max = rows_max};
    uint32_t buckets = 16;
    /* Few tables are ever full, and one that is small stays in the cache. */
    while (buckets < rows_max / 8) buckets *= 2;
    keys->bucket_mask = buckets - 1;
    keys->buckets = fb_arena_take(arena, buckets, sizeof *keys->buckets);
    /* Leaves are split in halves and merged when two fit in three quarters of one, so that half a
     * leaf each is the worst lasting case. */
    keys->leaves_max = rows_max / (FB_SIM_LEAF_ROWS / 3) + 4;
    keys->leaves = fb_arena_take(arena, keys->leaves_max, sizeof *keys->leaves);
    keys->order = fb_arena_take(arena, keys->leaves_max, sizeof *keys->order);
    keys->free_leaf = NOT_FOUND;
}

void fb_sim_store_init(fb_sim_store *store, fb_sim_keys *keys, uint32_t column, uint32_t items_max)
{
    FB_ASSERT(column < keys->columns);
    *store = (fb_sim_store){.keys = keys, .column = column, .items_max = items_max};
}

/* The order. */

static fb_span first_key(const fb_sim_keys *keys, uint32_t place)
{
    return key_of(keys, row_of(keys, keys->leaves[keys->order[place]].rows[0]));
}

/* The last place whose first key is not beyond the key; 0 when all are. */
static uint32_t place_of(const fb_sim_keys *keys, fb_span key)
{
    uint32_t low = 0, high = keys->leaf_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (fb_span_compare(first_key(keys, middle), key) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_place_of(const fb_sim_keys *keys, uint32_t place, fb_span key)
{
    if (place >= keys->leaf_count || fb_span_compare(first_key(keys, place), key) > 0) return false;
    return place + 1 == keys->leaf_count || fb_span_compare(first_key(keys, place + 1), key) > 0;
}

/* Keys that count up (batches, the changelog) differ in their last bytes alone. */
static uint32_t finger_of(fb_span key)
{
    return (uint32_t)(fb_xxh64(key.p, key.len > 4 ? key.len - 4 : key.len, 0) % FB_SIM_FINGERS);
}

static fb_sim_finger *page_of(const fb_sim_store *store, fb_span key)
{
    uint32_t kind = key.len == 0 ? 0 : key.p[0];
    return &store->keys->pages[(kind + 7 * store->column) % FB_SIM_FINGERS];
}

static int compare_at(const fb_sim_keys *keys, const fb_sim_leaf *leaf, uint32_t at, fb_span key)
{
    return fb_span_compare(key_of(keys, row_of(keys, leaf->rows[at])), key);
}

/* How many keys of the leaf are below the key. */
static uint32_t below(const fb_sim_keys *keys, const fb_sim_leaf *leaf, fb_span key)
{
    uint32_t low = 0, high = leaf->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_at(keys, leaf, middle, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The same, when it is no more than a few places from where a finger is. A look at a key is a look
 * at memory that nobody used for long, as a rule. */
#define NEAR 3u

static uint32_t below_near(const fb_sim_keys *keys, const fb_sim_leaf *leaf, fb_span key,
                           uint32_t at)
{
    if (at > leaf->count) at = leaf->count;
    if (at < leaf->count && compare_at(keys, leaf, at, key) < 0) {
        for (uint32_t i = 1; i <= NEAR; i++) {
            if (at + i == leaf->count || compare_at(keys, leaf, at + i, key) >= 0) return at + i;
        }
    } else {
        for (uint32_t i = 0; i <= NEAR && i <= at; i++) {
            if (i == at || compare_at(keys, leaf, at - i - 1, key) < 0) return at - i;
        }
    }
    return below(keys, leaf, key);
}

/* The place and what is below the key there, from a finger. */
static fb_sim_finger near(const fb_sim_keys *keys, fb_sim_finger finger, fb_span key)
{
    uint32_t place = finger.place, at = finger.at;
    if (keys->leaf_count == 1) {
        place = 0;
    } else if (!is_place_of(keys, place, key)) {
        /* Leaves that came since push a place on. */
        place = is_place_of(keys, place + 1, key) ? place + 1 : place_of(keys, key);
    }
    return (fb_sim_finger){place, below_near(keys, &keys->leaves[keys->order[place]], key, at)};
}

static uint32_t leaf_take(fb_sim_keys *keys)
{
    uint32_t leaf = keys->free_leaf;
    if (leaf != NOT_FOUND) {
        keys->free_leaf = keys->leaves[leaf].next_free;
    } else {
        if (keys->leaves_carved == keys->leaves_max) fb_sim_fail_resource("leaves of the stores");
        leaf = keys->leaves_carved++;
    }
    keys->leaves[leaf].count = 0;
    return leaf;
}

static void leaf_give(fb_sim_keys *keys, uint32_t leaf)
{
    keys->leaves[leaf].next_free = keys->free_leaf;
    keys->free_leaf = leaf;
}

static void order_insert(fb_sim_keys *keys, uint32_t place, uint32_t leaf)
{
    memmove(&keys->order[place + 1], &keys->order[place],
            (keys->leaf_count - place) * sizeof *keys->order);
    keys->order[place] = leaf;
    keys->leaf_count++;
}

static void order_remove(fb_sim_keys *keys, uint32_t place)
{
    leaf_give(keys, keys->order[place]);
    keys->leaf_count--;
    memmove(&keys->order[place], &keys->order[place + 1],
            (keys->leaf_count - place) * sizeof *keys->order);
}

static void order_add_row(fb_sim_keys *keys, fb_sim_blob blob, fb_span key)
{
    if (keys->leaf_count == 0) order_insert(keys, 0, leaf_take(keys));
    fb_sim_finger *finger = &keys->fingers[finger_of(key)];
    fb_sim_finger found = near(keys, *finger, key);
    uint32_t place = found.place, at = found.at;
    fb_sim_leaf *leaf = &keys->leaves[keys->order[place]];
    if (leaf->count == FB_SIM_LEAF_ROWS) {
        /* Appended keys keep their leaf nearly full; others split in halves. */
        uint32_t keep = at == FB_SIM_LEAF_ROWS ? FB_SIM_LEAF_ROWS - 4 : FB_SIM_LEAF_ROWS / 2;
        uint32_t taken = leaf_take(keys);
        fb_sim_leaf *right = &keys->leaves[taken];
        right->count = FB_SIM_LEAF_ROWS - keep;
        memcpy(right->rows, leaf->rows + keep, right->count * sizeof *right->rows);
        leaf->count = keep;
        order_insert(keys, place + 1, taken);
        if (at > keep) {
            place++;
            leaf = right;
            at -= keep;
        }
    }
    memmove(&leaf->rows[at + 1], &leaf->rows[at], (leaf->count - at) * sizeof *leaf->rows);
    leaf->rows[at] = blob;
    leaf->count++;
    *finger = (fb_sim_finger){place, at + 1};
}

static bool fits_one_leaf(uint32_t rows)
{
    return rows <= FB_SIM_LEAF_ROWS * 3 / 4;
}

static void order_remove_row(fb_sim_keys *keys, fb_sim_blob blob)
{
    fb_span key = key_of(keys, row_of(keys, blob));
    fb_sim_finger *finger = &keys->removals[finger_of(key)];
    *finger = near(keys, *finger, key);
    uint32_t place = finger->place, at = finger->at;
    fb_sim_leaf *leaf = &keys->leaves[keys->order[place]];
    FB_ASSERT(at < leaf->count && leaf->rows[at] == blob);
    leaf->count--;
    memmove(&leaf->rows[at], &leaf->rows[at + 1], (leaf->count - at) * sizeof *leaf->rows);
    if (leaf->count == 0) {
        order_remove(keys, place);
        return;
    }
    for (uint32_t first = place == 0 ? 0 : place - 1; first <= place; first++) {
        if (first + 1 >= keys->leaf_count) break;
        fb_sim_leaf *left = &keys->leaves[keys->order[first]];
        const fb_sim_leaf *right = &keys->leaves[keys->order[first + 1]];
        if (!fits_one_leaf(left->count + right->count)) continue;
        memcpy(left->rows + left->count, right->rows, right->count * sizeof *left->rows);
        left->count += right->count;
        order_remove(keys, first + 1);
        return;
    }
}

/* Rows. */

static uint32_t hash_of(fb_span key)
{
    return (uint32_t)fb_xxh64(key.p, key.len, 0);
}

static row *row_find(const fb_sim_keys *keys, fb_span key, uint32_t hash)
{
    for (fb_sim_blob at = keys->buckets[hash & keys->bucket_mask]; at != 0;) {
        row *r = row_of(keys, at);
        if (r->hash == hash && fb_span_equal(key_of(keys, r), key)) return r;
        at = r->next;
    }
    return NULL;
}

static row *row_make(fb_sim_keys *keys, fb_span key, uint32_t hash)
{
    if (keys->rows == keys->rows_max) fb_sim_fail_resource("keys of the stores");
    keys->rows++;
    size_t values = keys->columns * sizeof(fb_sim_blob);
    fb_sim_blob blob = fb_sim_blob_make(keys->blobs, sizeof(row) + values + key.len);
    row *r = row_of(keys, blob);
    fb_sim_blob *bucket = &keys->buckets[hash & keys->bucket_mask];
    *r = (row){.hash = hash, .next = *bucket, .key_len = (uint32_t)key.len};
    memset(r->values, 0, values);
    if (key.len != 0) memcpy(r->values + keys->columns, key.p, key.len);
    *bucket = blob;
    order_add_row(keys, blob, key);
    return r;
}

/* Takes a row out of its bucket and gives its blob back: not out of the order. */
static void row_give(fb_sim_keys *keys, fb_sim_blob blob)
{
    const row *r = row_of(keys, blob);
    fb_sim_blob *link = &keys->buckets[r->hash & keys->bucket_mask];
    while (*link != blob) link = &row_of(keys, *link)->next;
    *link = r->next;
    keys->rows--;
    fb_sim_blob_drop(keys->blobs, blob);
}

/* Rows that no store holds any more go, and leaves that have become small are joined. */
static void rows_sweep(fb_sim_keys *keys)
{
    uint32_t places = 0;
    for (uint32_t place = 0; place < keys->leaf_count; place++) {
        uint32_t number = keys->order[place];
        fb_sim_leaf *leaf = &keys->leaves[number];
        uint32_t count = 0;
        for (uint32_t i = 0; i < leaf->count; i++) {
            if (row_of(keys, leaf->rows[i])->holders != 0) {
                leaf->rows[count++] = leaf->rows[i];
            } else {
                row_give(keys, leaf->rows[i]);
            }
        }
        leaf->count = count;
        fb_sim_leaf *before = places == 0 ? NULL : &keys->leaves[keys->order[places - 1]];
        if (count != 0 && (before == NULL || !fits_one_leaf(before->count + count))) {
            keys->order[places++] = number;
            continue;
        }
        if (count != 0) {
            memcpy(before->rows + before->count, leaf->rows, count * sizeof *leaf->rows);
            before->count += count;
        }
        leaf_give(keys, number);
    }
    keys->leaf_count = places;
}

/* The maps. */

static bool has_bytes(const fb_sim_keys *keys, fb_sim_blob blob, fb_span bytes)
{
    return fb_span_equal(fb_sim_blob_bytes(keys->blobs, blob), bytes);
}

/* A blob of these bytes, shared with another store that has them under this key. The column that
 * was put last has them as a rule when any has: values of a key replace each other, and each store
 * gets them in turn. In narrow tables the others are asked when the value is long. */
static fb_sim_blob value_of(const fb_sim_keys *keys, const row *r, fb_span value)
{
    fb_sim_blob last = r->values[r->last];
    if (last != 0 && has_bytes(keys, last, value)) {
        fb_sim_blob_hold(keys->blobs, last);
        return last;
    }
    uint32_t columns = keys->columns <= NARROW && value.len >= LONG ? keys->columns : 0;
    for (uint32_t i = 0; i < columns; i++) {
        fb_sim_blob other = r->values[i];
        if (other == 0 || other == last || !has_bytes(keys, other, value)) continue;
        fb_sim_blob_hold(keys->blobs, other);
        return other;
    }
    fb_sim_blob blob = fb_sim_blob_make(keys->blobs, value.len);
    if (value.len != 0) memcpy(fb_sim_blob_writable(keys->blobs, blob), value.p, value.len);
    return blob;
}

/* The table of a long run is larger than the caches, and a set names a dozen keys all over it. So
 * the first of them are looked up together: buckets are asked for, then rows, then values, then
 * they are used.
 */
#define AHEAD 32u

typedef struct lookups {
    uint32_t hashes[AHEAD];
    uint32_t count;
    uint32_t used;
} lookups;

static void look_ahead(const fb_sim_keys *keys, lookups *l, fb_span key)
{
    if (l->count == AHEAD) return;
    uint32_t hash = hash_of(key);
    l->hashes[l->count++] = hash;
    __builtin_prefetch(&keys->buckets[hash & keys->bucket_mask]);
}

static void look_at_rows(const fb_sim_keys *keys, const lookups *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        fb_sim_blob blob = keys->buckets[l->hashes[i] & keys->bucket_mask];
        if (blob != 0) __builtin_prefetch(row_of(keys, blob)->values);
    }
}

/* And what the stores have there: of the column, and what was put last. */
static void look_at_values(const fb_sim_keys *keys, const lookups *l, uint32_t column)
{
    for (uint32_t i = 0; i < l->count; i++) {
        fb_sim_blob blob = keys->buckets[l->hashes[i] & keys->bucket_mask];
        if (blob == 0) continue;
        const row *r = row_of(keys, blob);
        __builtin_prefetch(fb_sim_blob_head_of(keys->blobs, r->values[column]));
        __builtin_prefetch(fb_sim_blob_head_of(keys->blobs, r->values[r->last]));
    }
}

static uint32_t next_hash(lookups *l, fb_span key)
{
    return l->used < l->count ? l->hashes[l->used++] : hash_of(key);
}

static void put(fb_sim_store *store, fb_span key, uint32_t hash, fb_span value)
{
    fb_sim_keys *keys = store->keys;
    row *r = row_find(keys, key, hash);
    if (r == NULL || r->values[store->column] == 0) {
        if (store->items == store->items_max) fb_sim_fail_resource("items of a store");
        if (r == NULL) r = row_make(keys, key, hash);
        store->items++;
        r->holders++;
    }
    fb_sim_blob old = r->values[store->column];
    r->values[store->column] = value_of(keys, r, value);
    r->last = (uint16_t)store->column;
    fb_sim_blob_drop(keys->blobs, old);
}

void fb_sim_store_put(fb_sim_store *store, fb_span key, fb_span value)
{
    put(store, key, hash_of(key), value);
}

/* The value of a key, 0 when it is absent. */
static fb_sim_blob find(const fb_sim_store *store, fb_span key, uint32_t hash)
{
    const row *r = row_find(store->keys, key, hash);
    return r == NULL ? 0 : r->values[store->column];
}

static void delete (fb_sim_store *store, fb_span key, uint32_t hash)
{
    fb_sim_keys *keys = store->keys;
    row *r = row_find(keys, key, hash);
    if (r == NULL || r->values[store->column] == 0) return;
    fb_sim_blob_drop(keys->blobs, r->values[store->column]);
    r->values[store->column] = 0;
    store->items--;
    if (--r->holders != 0) return;
    fb_sim_blob blob = keys->buckets[hash & keys->bucket_mask];
    while (row_of(keys, blob) != r) blob = row_of(keys, blob)->next;
    order_remove_row(keys, blob);
    row_give(keys, blob);
}

void fb_sim_store_delete(fb_sim_store *store, fb_span key)
{
    delete (store, key, hash_of(key));
}

bool fb_sim_store_get(const fb_sim_store *store, fb_span key, fb_span *value)
{
    fb_sim_blob blob = find(store, key, hash_of(key));
    if (blob == 0) return false;
    *value = fb_sim_blob_bytes(store->keys->blobs, blob);
    return true;
}

/* Makes the store's column that of `from`, or empty with NULL. */
static void column_set(fb_sim_store *store, const fb_sim_store *from)
{
    fb_sim_keys *keys = store->keys;
    bool orphans = false;
    for (uint32_t place = 0; place < keys->leaf_count; place++) {
        const fb_sim_leaf *leaf = &keys->leaves[keys->order[place]];
        for (uint32_t i = 0; i < leaf->count; i++) {
            row *r = row_of(keys, leaf->rows[i]);
            fb_sim_blob old = r->values[store->column];
            fb_sim_blob fresh = from == NULL ? 0 : r->values[from->column];
            if (old == fresh) continue;
            if (fresh != 0) {
                fb_sim_blob_hold(keys->blobs, fresh);
                r->holders++;
            }
            if (old != 0) {
                fb_sim_blob_drop(keys->blobs, old);
                r->holders--;
            }
            r->values[store->column] = fresh;
            orphans = orphans || r->holders == 0;
        }
    }
    store->items = from == NULL ? 0 : from->items;
    if (orphans) rows_sweep(keys);
}

void fb_sim_store_clear(fb_sim_store *store)
{
    column_set(store, NULL);
}

void fb_sim_store_copy(fb_sim_store *to, const fb_sim_store *from)
{
    FB_ASSERT(to->items_max >= from->items && to->keys == from->keys);
    column_set(to, from);
}

bool fb_sim_store_apply(fb_sim_store *store, fb_span write_set)
{
    lookups ahead = {.count = 0};
    fb_reader check = fb_reader_of(write_set);
    while (fb_reader_left(&check) != 0) {
        fb_span key = fb_write_entry_next(&check).key;
        if (!check.failed) look_ahead(store->keys, &ahead, key);
    }
    if (check.failed) return false;
    look_at_rows(store->keys, &ahead);
    look_at_values(store->keys, &ahead, store->column);
    fb_reader r = fb_reader_of(write_set);
    while (fb_reader_left(&r) != 0) {
        fb_write_entry entry = fb_write_entry_next(&r);
        uint32_t hash = next_hash(&ahead, entry.key);
        if (entry.kind == FB_WRITE_PUT) {
            put(store, entry.key, hash, entry.value);
        } else {
            delete (store, entry.key, hash);
        }
    }
    return true;
}

static void entry_write(const fb_sim_store *store, fb_writer *out, const fb_read_item *item,
                        fb_span key, fb_sim_blob value)
{
    fb_span bytes = fb_sim_blob_bytes(store->keys->blobs, value);
    fb_read_entry entry = {
        .key = key,
        .value_len = (uint32_t)bytes.len,
        .value = fb_span_of(bytes.p, bytes.len < item->value_bytes ? bytes.len : item->value_bytes),
    };
    fb_read_entry_write(out, &entry);
}

/* Somewhere in the order. */
typedef struct cursor {
    uint32_t place;
    uint32_t at;
} cursor;

/* One row further in the direction; false at the end of the table. */
static bool advance(const fb_sim_keys *keys, bool descending, cursor *c)
{
    if (descending) {
        if (c->at > 0) {
            c->at--;
            return true;
        }
        if (c->place == 0) return false;
        c->place--;
        c->at = keys->leaves[keys->order[c->place]].count - 1;
        return true;
    }
    if (c->at + 1 < keys->leaves[keys->order[c->place]].count) {
        c->at++;
        return true;
    }
    if (c->place + 1 >= keys->leaf_count) return false;
    c->place++;
    c->at = 0;
    return true;
}

/* The first row whose key is at least `from`; false when there is none. */
static bool ascend_from(const fb_sim_store *store, fb_span from, cursor *c)
{
    const fb_sim_keys *keys = store->keys;
    if (keys->leaf_count == 0) return false;
    /* As a rule what came lately is read, or what follows the page before. */
    fb_sim_finger finger = keys->fingers[finger_of(from)];
    if (!is_place_of(keys, finger.place, from)) finger = *page_of(store, from);
    fb_sim_finger found = near(keys, finger, from);
    c->place = found.place;
    c->at = found.at;
    const fb_sim_leaf *leaf = &keys->leaves[keys->order[c->place]];
    if (c->at < leaf->count) return true;
    c->at = leaf->count - 1;
    return advance(keys, false, c);
}

/* The last row whose key is below `bound`, or the very last when that is empty. */
static bool descend_from(const fb_sim_keys *keys, fb_span bound, cursor *c)
{
    if (keys->leaf_count == 0) return false;
    if (bound.len == 0) {
        c->place = keys->leaf_count - 1;
        c->at = keys->leaves[keys->order[c->place]].count - 1;
        return true;
    }
    c->place = place_of(keys, bound);
    c->at = below(keys, &keys->leaves[keys->order[c->place]], bound);
    return advance(keys, true, c);
}

static const row *row_at(const fb_sim_keys *keys, cursor c)
{
    return row_of(keys, keys->leaves[keys->order[c.place]].rows[c.at]);
}

/* Rows of long answers lie all over the table, and so do their values: of the first both are asked
 * for at once, then each one ahead. Of a leaf that ends within the range no other key is compared.
 */
#define LONG_ANSWER 8u
#define ROWS_AHEAD  8u
#define VALUE_AHEAD 4u

static const row *row_ahead(const fb_sim_keys *keys, cursor c, uint32_t ahead)
{
    const fb_sim_leaf *leaf = &keys->leaves[keys->order[c.place]];
    return c.at + ahead < leaf->count ? row_of(keys, leaf->rows[c.at + ahead]) : NULL;
}

static void ask_for_row(const fb_sim_keys *keys, cursor c, uint32_t ahead)
{
    const row *r = row_ahead(keys, c, ahead);
    if (r == NULL) return;
    __builtin_prefetch(r);
    __builtin_prefetch(r->values + keys->columns);
}

static void ask_for_value(const fb_sim_keys *keys, cursor c, uint32_t ahead, uint32_t column)
{
    const row *r = row_ahead(keys, c, ahead);
    if (r == NULL) return;
    const uint8_t *value = (const uint8_t *)fb_sim_blob_head_of(keys->blobs, r->values[column]);
    for (uint32_t i = 0; i < 4; i++) __builtin_prefetch(value + (size_t)64 * i);
}

static bool ends_below(const fb_sim_keys *keys, cursor c, fb_span bound)
{
    const fb_sim_leaf *leaf = &keys->leaves[keys->order[c.place]];
    return compare_at(keys, leaf, leaf->count - 1, bound) < 0;
}

static void range_read(const fb_sim_store *store, const fb_read_item *item, fb_writer *out)
{
    const fb_sim_keys *keys = store->keys;
    bool descending = (item->flags & FB_READ_DESCENDING) != 0;
    size_t head = out->at;
    fb_write_u8(out, 0);
    fb_write_u32(out, 0);
    size_t start = out->at;
    uint32_t count = 0;
    bool whole = true;
    cursor c = {0, 0};
    bool more = descending ? descend_from(keys, item->high, &c) : ascend_from(store, item->low, &c);
    bool is_long = !descending && item->items > LONG_ANSWER;
    bool below_high = item->high.len == 0;
    for (uint32_t i = 0; more && is_long && i < ROWS_AHEAD; i++) ask_for_row(keys, c, i);
    for (uint32_t i = 0; more && is_long && i < VALUE_AHEAD; i++) {
        ask_for_value(keys, c, i, store->column);
    }
    uint32_t asked = NOT_FOUND; /* the place of the leaf that `below_high` is about */
    for (; more && !out->failed; more = advance(keys, descending, &c)) {
        const row *r = row_at(keys, c);
        fb_span key = key_of(keys, r);
        if (is_long) {
            ask_for_row(keys, c, ROWS_AHEAD);
            ask_for_value(keys, c, VALUE_AHEAD, store->column);
        }
        if (is_long && item->high.len != 0 && c.place != asked) {
            asked = c.place;
            below_high = ends_below(keys, c, item->high);
        }
        if (descending ? fb_span_compare(key, item->low) < 0
                       : !below_high && fb_span_compare(key, item->high) >= 0) {
            break;
        }
        fb_sim_blob value = r->values[store->column];
        if (value == 0) continue;
        if (count == item->items) {
            whole = false;
            break;
        }
        size_t value_len = fb_sim_blob_bytes(keys->blobs, value).len;
        if (value_len > item->value_bytes) value_len = item->value_bytes;
        size_t size = 2 + key.len + 4 + 4 + value_len;
        if (count != 0 && out->at - start + size > item->bytes) {
            whole = false;
            break;
        }
        entry_write(store, out, item, key, value);
        count++;
    }
    if (is_long) *page_of(store, item->low) = (fb_sim_finger){c.place, c.at};
    if (out->failed) return;
    out->p[head] = whole ? 1 : 0;
    fb_store_be(out->p + head + 1, count, 4);
}

bool fb_sim_store_read(const fb_sim_store *store, fb_span read_set, fb_writer *out)
{
    lookups ahead = {.count = 0};
    fb_read_item parsed[AHEAD];
    fb_reader r = fb_reader_of(read_set);
    uint16_t items = fb_read_u16(&r);
    uint16_t first = items < AHEAD ? items : AHEAD;
    for (uint16_t i = 0; i < first; i++) {
        parsed[i] = fb_read_item_next(&r);
        if (r.failed) return false;
        if (parsed[i].kind == FB_READ_KEY) look_ahead(store->keys, &ahead, parsed[i].low);
    }
    look_at_rows(store->keys, &ahead);
    look_at_values(store->keys, &ahead, store->column);
    for (uint16_t i = 0; i < items; i++) {
        fb_read_item item = i < first ? parsed[i] : fb_read_item_next(&r);
        if (r.failed) return false;
        if (item.kind == FB_READ_RANGE) {
            range_read(store, &item, out);
            continue;
        }
        if (item.kind != FB_READ_KEY) return false;
        fb_sim_blob value = find(store, item.low, next_hash(&ahead, item.low));
        fb_write_u8(out, 1);
        fb_write_u32(out, value == 0 ? 0 : 1);
        if (value != 0) entry_write(store, out, &item, item.low, value);
    }
    return fb_reader_done(&r) && !out->failed;
}

bool fb_sim_store_first(const fb_sim_store *store, fb_span from, fb_span *key)
{
    const fb_sim_keys *keys = store->keys;
    cursor c = {0, 0};
    for (bool more = ascend_from(store, from, &c); more; more = advance(keys, false, &c)) {
        const row *r = row_at(keys, c);
        if (r->values[store->column] == 0) continue;
        *key = key_of(keys, r);
        return true;
    }
    return false;
}

void fb_sim_store_walk(const fb_sim_store *store, fb_span prefix,
                       void (*at)(void *user, fb_span key, fb_span value), void *user)
{
    const fb_sim_keys *keys = store->keys;
    cursor c = {0, 0};
    for (bool more = ascend_from(store, prefix, &c); more; more = advance(keys, false, &c)) {
        const row *r = row_at(keys, c);
        fb_span key = key_of(keys, r);
        if (key.len < prefix.len) return;
        if (prefix.len != 0 && memcmp(key.p, prefix.p, prefix.len) != 0) return;
        fb_sim_blob value = r->values[store->column];
        if (value != 0) at(user, key, fb_sim_blob_bytes(keys->blobs, value));
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
    fb_sim_store_walk(store, (fb_span){NULL, 0}, hash_item, &hash);
    return hash;
}
