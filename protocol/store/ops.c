/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/store/ops.h"

#include "protocol/base/mutant.h"
#include "protocol/store/keys.h"
#include "protocol/store/store.h"

#define OP_INDEX_BITS 12u
/* What the core itself adds when it seals: the high-water mark of the UUIDs. */
#define SEAL_BYTES   64u
#define SEAL_ENTRIES 2u

_Static_assert(FB_OPERATIONS_MAX <= 1u << OP_INDEX_BITS, "an operation's number holds its index");

static uint32_t index_of(const fb_store *store, const fb_op *op)
{
    return (uint32_t)(op - store->ops);
}

static void touch(fb_node *node, const fb_op *op)
{
    uint32_t index = index_of(node->store, op);
    fb_digest_touch_cell(node, &node->store->ops[index].cell, FB_DIGEST_OPERATION, index);
}

static uint32_t digest_count(const fb_node *node)
{
    return node->options.sizes.operations;
}

static fb_digest_cell *digest_cell(fb_node *node, uint32_t index)
{
    return &node->store->ops[index].cell;
}

static void digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_op *op = &node->store->ops[index];
    if (op->state == FB_OP_FREE) return;
    const uint64_t words[] = {op->id,
                              (uint64_t)op->block_used << 32 | (uint64_t)op->round << 16 |
                                  (uint64_t)op->kind << 8 | (uint64_t)op->state,
                              op->base_w};
    fb_write_words(w, words, sizeof words / sizeof words[0]);
}

static const fb_digest_kind digest_kind = {"operation", digest_count, digest_cell, digest_write};

static uint32_t entry_cap(const fb_sizes *sizes)
{
    return 2 * FB_READ_ITEMS_MAX + FB_WRITE_SETS_KEPT * sizes->write_set_entries;
}

size_t fb_store_scratch_bytes(const fb_options *options)
{
    return FB_READ_ITEMS_MAX * sizeof(fb_result) +
           entry_cap(&options->sizes) * sizeof(fb_read_entry);
}

void fb_store_scratch(fb_node *node, void *memory)
{
    node->store->results = memory;
    node->store->entries = (fb_read_entry *)(node->store->results + FB_READ_ITEMS_MAX);
    node->store->result_count = node->store->entry_count = 0;
}

void fb_store_layout(fb_node *node, fb_arena *arena)
{
    const fb_sizes *sizes = &node->options.sizes;
    fb_store *store = fb_arena_take(arena, 1, sizeof *store);
    fb_op *ops = fb_arena_take(arena, sizes->operations, sizeof *ops);
    uint8_t *blocks = fb_arena_take(arena, sizes->operations, sizes->operation_bytes);
    for (uint32_t i = 0; i < FB_WRITE_SETS_KEPT; i++) {
        fb_set_layout(store == NULL ? NULL : &store->ring[i], arena, sizes->write_set_bytes,
                      sizes->write_set_entries);
    }
    fb_digest_register(node, FB_DIGEST_OPERATION, &digest_kind);
    if (store == NULL) return;
    node->store = store;
    store->ops = ops;
    store->op_count = sizes->operations;
    store->entry_cap = entry_cap(sizes);
    for (uint32_t i = 0; i < sizes->operations; i++) {
        ops[i].block = blocks + (size_t)i * sizes->operation_bytes;
        ops[i].block_cap = sizes->operation_bytes;
    }
}

void fb_store_reset(fb_node *node)
{
    fb_store *store = node->store;
    store->w_sealed = store->w_durable = 0;
    for (uint32_t i = 0; i < FB_WRITE_SETS_KEPT; i++) fb_set_clear(&store->ring[i], i);
    store->op_free = 0;
    store->ops_used = 0;
    for (uint32_t i = store->op_count; i-- > 0;) {
        fb_op *op = &store->ops[i];
        if (op->state != FB_OP_FREE) {
            op->state = FB_OP_FREE;
            touch(node, op);
        }
        op->id = 0;
        op->next = store->op_free;
        store->op_free = i + 1;
    }
    store->to_admit = store->to_read = store->ready = (fb_op_queue){0};
    store->admitted_bytes = store->admitted_entries = 0;
    store->seal_bytes = store->seal_entries = 0;
    store->running = NULL;
    memset(store->base_count, 0, sizeof store->base_count);
}

static void enqueue(fb_store *store, fb_op_queue *queue, fb_op *op)
{
    uint32_t place = index_of(store, op) + 1;
    op->next = 0;
    if (queue->head == 0) {
        queue->head = place;
    } else {
        store->ops[queue->tail - 1].next = place;
    }
    queue->tail = place;
    queue->count++;
}

static fb_op *dequeue(fb_store *store, fb_op_queue *queue)
{
    if (queue->head == 0) return NULL;
    fb_op *op = &store->ops[queue->head - 1];
    queue->head = op->next;
    if (queue->head == 0) queue->tail = 0;
    queue->count--;
    return op;
}

fb_op *fb_op_begin(fb_node *node, fb_op_kind kind, fb_op_run run, uint32_t write_bytes,
                   uint32_t write_entries)
{
    fb_store *store = node->store;
    if (store->op_free == 0 || node->ending != FB_OK) return NULL;
    FB_ASSERT(write_bytes <= fb_op_write_bytes_max(node));
    FB_ASSERT(write_entries <= fb_op_write_entries_max(node));
    fb_op *op = &store->ops[store->op_free - 1];
    store->op_free = op->next;
    store->ops_used++;
    op->id = ++store->op_serial << OP_INDEX_BITS | index_of(store, op);
    op->state = FB_OP_BEGUN;
    op->kind = kind;
    op->run = run;
    op->write_bytes = write_bytes;
    op->write_entries = write_entries;
    op->status = FB_OK;
    op->round = 0;
    op->issued = op->failed = op->admitted = false;
    op->block_used = 0;
    op->borrowed = (fb_span){NULL, 0};
    op->rounds[0] = (fb_op_round_bytes){0};
    op->written_bytes = op->written_entries = 0;
    memset(op->context, 0, sizeof op->context);
    touch(node, op);
    return op;
}

uint32_t fb_op_write_bytes_max(const fb_node *node)
{
    return node->options.sizes.write_set_bytes - SEAL_BYTES;
}

uint32_t fb_op_write_entries_max(const fb_node *node)
{
    return node->options.sizes.write_set_entries - SEAL_ENTRIES;
}

uint32_t fb_op_write_bytes(const fb_op *op)
{
    return op->write_bytes;
}

uint32_t fb_op_write_entries(const fb_op *op)
{
    return op->write_entries;
}

void *fb_op_context(fb_op *op)
{
    return op->context;
}

static uint8_t *block_room(fb_op *op, size_t len)
{
    if (len > op->block_cap - op->block_used) return NULL;
    uint8_t *room = op->block + op->block_used;
    op->block_used += (uint32_t)len;
    return room;
}

fb_span fb_op_keep(fb_op *op, fb_span bytes)
{
    /* Kept bytes come before the read set they lead to: a read set is one run of bytes. */
    FB_ASSERT(op->rounds[op->round].items == 0);
    uint8_t *room = block_room(op, bytes.len);
    if (room == NULL) return (fb_span){NULL, 0};
    if (bytes.len != 0) memcpy(room, bytes.p, bytes.len);
    return fb_span_of(room, bytes.len);
}

static void release(fb_node *node, fb_op *op)
{
    fb_store *store = node->store;
    if (op->admitted) {
        store->base_count[op->base_w % FB_WRITE_SETS_KEPT]--;
        store->admitted_bytes -= op->write_bytes - op->written_bytes;
        store->admitted_entries -= op->write_entries - op->written_entries;
    }
    op->state = FB_OP_FREE;
    op->id = 0;
    op->next = store->op_free;
    store->op_free = index_of(store, op) + 1;
    store->ops_used--;
    touch(node, op);
}

void fb_op_abandon(fb_node *node, fb_op *op)
{
    FB_ASSERT(op->state == FB_OP_BEGUN);
    release(node, op);
}

static bool add_item(fb_op *op, const fb_read_item *item)
{
    if (op->round == FB_READ_ROUNDS_MAX) op->failed = true;
    if (op->failed) return false;
    fb_op_round_bytes *round = &op->rounds[op->round];
    uint32_t items = round->items;
    for (uint32_t i = 0; i < op->round; i++) items += op->rounds[i].items;
    if (round->items == 0) {
        round->set_at = op->block_used;
        round->set_len = 0;
    }
    fb_writer w = fb_writer_of(op->block + op->block_used, op->block_cap - op->block_used);
    fb_read_item_write(&w, item);
    if (w.failed || items >= FB_READ_ITEMS_MAX) {
        op->failed = true;
        return false;
    }
    op->block_used += (uint32_t)w.at;
    round->set_len += (uint32_t)w.at;
    round->items++;
    return true;
}

bool fb_op_read_key(fb_op *op, fb_span key, uint32_t value_bytes)
{
    fb_read_item item = {FB_READ_KEY, 0, value_bytes, 1, UINT32_MAX, key, {NULL, 0}};
    return add_item(op, &item);
}

bool fb_op_read_range(fb_op *op, fb_span low, fb_span high, uint32_t value_bytes, uint32_t items,
                      uint32_t bytes, bool descending)
{
    FB_ASSERT(items > 0 && items <= FB_READ_ITEMS_MAX);
    fb_read_item item = {
        FB_READ_RANGE, descending ? FB_READ_DESCENDING : 0, value_bytes, items, bytes, low, high};
    return add_item(op, &item);
}

bool fb_op_read_fits(const fb_op *op, uint32_t keys, size_t bytes)
{
    uint32_t items = keys;
    for (uint32_t i = 0; i <= op->round && i < FB_READ_ROUNDS_MAX; i++)
        items += op->rounds[i].items;
    return !op->failed && items <= FB_READ_ITEMS_MAX && op->round < FB_READ_ROUNDS_MAX &&
           keys * (size_t)(FB_READ_ITEM_HEAD + 4) + bytes <= op->block_cap - op->block_used;
}

static bool send_read(fb_node *node, fb_op *op)
{
    const fb_op_round_bytes *round = &op->rounds[op->round - 1];
    size_t len = 2 + (size_t)round->set_len;
    if (!fb_effect_fits(node, len)) return false;
    uint8_t *p = fb_effect_room(node, FB_FX_READ, op->id, 0, 0, len);
    fb_store_be(p, round->items, 2);
    memcpy(p + 2, op->block + round->set_at, round->set_len);
    op->state = FB_OP_READING;
    return true;
}

static void start_read(fb_node *node, fb_op *op)
{
    fb_store *store = node->store;
    fb_op_round_bytes *round = &op->rounds[op->round - 1];
    if (round->items == 0) {
        round->applied_w = store->w_durable;
        op->state = FB_OP_READY;
        enqueue(store, &store->ready, op);
        return;
    }
    op->state = FB_OP_TO_READ;
    if (store->to_read.count != 0 || !send_read(node, op)) {
        enqueue(store, &store->to_read, op);
        fb_starved(node);
    }
}

static bool admit(fb_node *node, fb_op *op)
{
    fb_store *store = node->store;
    if (op->kind == FB_OP_WRITER && op->status == FB_OK &&
        !fb_write_fits(node, op->write_bytes, op->write_entries)) {
        return false;
    }
    op->admitted = true;
    op->base_w = store->w_durable;
    store->base_count[op->base_w % FB_WRITE_SETS_KEPT]++;
    store->admitted_bytes += op->write_bytes;
    store->admitted_entries += op->write_entries;
    start_read(node, op);
    return true;
}

void fb_op_issue(fb_node *node, fb_op *op)
{
    fb_store *store = node->store;
    FB_ASSERT(op->state == FB_OP_BEGUN || op->state == FB_OP_RUNNING);
    FB_ASSERT(op->round < FB_READ_ROUNDS_MAX);
    fb_op_round_bytes *round = &op->rounds[op->round];
    op->round++;
    if (op->round < FB_READ_ROUNDS_MAX) op->rounds[op->round] = (fb_op_round_bytes){0};
    op->issued = true;
    if (op->failed) {
        op->status = FB_ERR_LIMIT;
        *round = (fb_op_round_bytes){0};
    }
    touch(node, op);
    if (op->round > 1) {
        start_read(node, op);
    } else if (store->to_admit.count != 0 || !admit(node, op)) {
        op->state = FB_OP_TO_ADMIT;
        enqueue(store, &store->to_admit, op);
    }
}

fb_status fb_op_status(const fb_op *op)
{
    return op->status;
}

uint32_t fb_op_round(const fb_op *op)
{
    return op->round;
}

/* Keeps the values of the round that has just been read: the next round needs them again. */
static bool keep_values(fb_op *op, fb_op_round_bytes *round, fb_span values)
{
    uint8_t *room = block_room(op, values.len);
    if (room == NULL) return false;
    if (values.len != 0) memcpy(room, values.p, values.len);
    round->values_at = (uint32_t)(room - op->block);
    round->values_len = (uint32_t)values.len;
    return true;
}

static void run(fb_node *node, fb_op *op, fb_span values)
{
    fb_store *store = node->store;
    op->borrowed = values;
    store->result_count = store->entry_count = 0;
    if (op->status == FB_OK && !fb_merge(node, op)) op->status = FB_ERR_LIMIT;
    op->state = FB_OP_RUNNING;
    op->issued = false;
    touch(node, op);
    fb_op_round_bytes *round = &op->rounds[op->round - 1];
    store->running = op;
    op->run(node, op);
    store->running = NULL;
    op->borrowed = (fb_span){NULL, 0};
    if (node->ending != FB_OK) return;
    if (!op->issued) {
        release(node, op);
    } else if (!keep_values(op, round, values)) {
        op->status = FB_ERR_LIMIT;
    }
}

fb_status fb_store_read_done(fb_node *node, const fb_event *event)
{
    fb_store *store = node->store;
    fb_reader r = fb_reader_of(fb_span_of(event->bytes, event->len));
    uint64_t incarnation = fb_read_u64(&r);
    uint64_t index = event->a & ((UINT64_C(1) << OP_INDEX_BITS) - 1);
    if (r.failed || event->c > INT32_MAX) return FB_ERR_EVENT_MALFORMED;
    if (incarnation != node->incarnation || index >= store->op_count ||
        store->ops[index].id != event->a || store->ops[index].state != FB_OP_READING) {
        fb_count(node, FB_COUNTER_LATE_COMPLETIONS, 1);
        return FB_OK;
    }
    fb_op *op = &store->ops[index];
    fb_span values = fb_read_bytes(&r, fb_reader_left(&r));
    if (event->c != 0) {
        /* A store that is elsewhere may come back; what is damaged or lost does not. */
        op->status = event->c == FB_ERR_AGAIN ? FB_ERR_AGAIN : FB_ERR_STORE_FAILED;
        values = (fb_span){NULL, 0};
    } else {
        if (event->b < op->base_w + MUTANT(READ_MUST_BE_NEWER, 0u, 1u) ||
            event->b > store->w_sealed)
            return FB_ERR_EVENT_MALFORMED;
        if (!fb_merge_check(op, values)) return FB_ERR_EVENT_MALFORMED;
        op->rounds[op->round - 1].applied_w = event->b;
    }
    run(node, op, values);
    return FB_OK;
}

fb_status fb_store_write_done(fb_node *node, const fb_event *event)
{
    fb_store *store = node->store;
    if (event->len != 0 || event->c > INT32_MAX) return FB_ERR_EVENT_MALFORMED;
    if (event->a != node->incarnation || event->b <= store->w_durable) {
        fb_count(node, FB_COUNTER_LATE_COMPLETIONS, 1);
        return FB_OK;
    }
    if (event->b > store->w_sealed) return FB_ERR_EVENT_MALFORMED;
    if (MUTANT(FAILED_SET_IGNORED, event->c != 0, false)) {
        fb_incarnation_end(node, FB_ERR_STORE_FAILED);
        return FB_OK;
    }
    store->w_durable = event->b;
    fb_digest_touch(node, FB_DIGEST_NODE, 0);
    for (const fb_plane *const *plane = fb_planes; *plane != NULL; plane++) {
        if ((*plane)->durable != NULL && node->ending == FB_OK) (*plane)->durable(node);
    }
    return FB_OK;
}

/* The set after the next one takes the place of set w_sealed + 2 - 4: that one must be durable and
 * needed by no open operation. */
static bool ring_has_place(const fb_store *store)
{
    uint64_t next = store->w_sealed + 2;
    if (next <= FB_WRITE_SETS_KEPT) return true;
    uint64_t victim = next - FB_WRITE_SETS_KEPT;
    if (victim > store->w_durable) return false;
    /* An operation with base_w below victim may still need it. Bases reach back at most to the
     * oldest set kept, so their remainders tell them apart. */
    uint64_t base = victim - 1;
    return store->base_count[base % FB_WRITE_SETS_KEPT] == 0;
}

static void seal(fb_node *node)
{
    fb_store *store = node->store;
    fb_set *set = fb_store_building(store);
    if (set->live == 0 || !ring_has_place(store)) return;
    uint64_t in_flight = store->w_sealed - store->w_durable;
    if (in_flight >= MUTANT(THREE_IN_FLIGHT, FB_WRITE_SETS_IN_FLIGHT_MAX, 3u)) return;
    bool large = set->used - set->dead_bytes >= set->cap / 2 || store->to_admit.count != 0;
    if (in_flight != 0 && !large) {
        MUTANT(SEALING_SPINS, (void)0, fb_starved(node));
        return;
    }
    /* The fact stands before the set: whoever looks on knows what is in it when it may be on the
     * disk. */
    if (!fb_effect_fits(node, set->cap + sizeof(fb_effect))) {
        fb_starved(node);
        return;
    }
    for (const fb_plane *const *plane = fb_planes; *plane != NULL; plane++) {
        if ((*plane)->seal != NULL && node->phase == FB_PHASE_RUNNING) (*plane)->seal(node);
    }
    if (node->ending != FB_OK) return;
    fb_set_compact(set);
    store->w_sealed += MUTANT(SETS_COUNTED_TWICE, 1u, 2u);
    fb_observe(node, FB_FACT_SEALED, store->w_sealed, set->live, (fb_span){NULL, 0});
    fb_effect_put(node, FB_FX_WRITE, node->incarnation, store->w_sealed, set->live,
                  fb_span_of(set->bytes, set->used));
    fb_count(node, FB_COUNTER_WRITE_SETS, 1);
    fb_set_clear(fb_store_building(store), store->w_sealed + 1);
    store->seal_bytes = store->seal_entries = 0;
    fb_digest_touch(node, FB_DIGEST_NODE, 0);
}

/* Once admitted it stands in another queue, or its read is out: the rest of this one is what was
 * behind it before. */
static bool admit_first(fb_node *node)
{
    fb_op_queue *queue = &node->store->to_admit;
    fb_op *op = &node->store->ops[queue->head - 1];
    uint32_t next = op->next;
    if (!admit(node, op)) return false;
    next = MUTANT(QUEUE_FORGOTTEN, next, op->next);
    queue->head = next;
    if (next == 0) queue->tail = 0;
    queue->count--;
    return true;
}

void fb_store_advance(fb_node *node)
{
    fb_store *store = node->store;
    while (store->to_admit.head != 0 && node->ending == FB_OK) {
        if (!admit_first(node)) {
            fb_set_compact(fb_store_building(store));
            if (!admit_first(node)) break;
        }
    }
    while (store->ready.head != 0 && node->ending == FB_OK) {
        if (!fb_effect_fits(node, FB_REPLY_BYTES_MAX)) {
            fb_starved(node);
            break;
        }
        run(node, dequeue(store, &store->ready), (fb_span){NULL, 0});
    }
    while (store->to_read.head != 0 && node->ending == FB_OK) {
        if (!send_read(node, &store->ops[store->to_read.head - 1])) {
            fb_starved(node);
            break;
        }
        dequeue(store, &store->to_read);
    }
    if (node->ending == FB_OK) seal(node);
}

bool fb_op_value(const fb_node *node, const fb_op *op, uint32_t item, fb_read_entry *out)
{
    const fb_store *store = node->store;
    FB_ASSERT(op->state == FB_OP_RUNNING && item < store->result_count);
    const fb_result *result = &store->results[item];
    FB_ASSERT(result->item.kind == FB_READ_KEY);
    if (result->count == 0) return false;
    *out = store->entries[result->first];
    return true;
}

uint32_t fb_op_items(const fb_node *node, const fb_op *op)
{
    FB_ASSERT(op->state == FB_OP_RUNNING);
    return node->store->result_count;
}

static const fb_result *range_of(const fb_node *node, const fb_op *op, uint32_t item)
{
    const fb_store *store = node->store;
    FB_ASSERT(op->state == FB_OP_RUNNING && item < store->result_count);
    FB_ASSERT(store->results[item].item.kind == FB_READ_RANGE);
    return &store->results[item];
}

uint32_t fb_op_range_count(const fb_node *node, const fb_op *op, uint32_t item)
{
    return range_of(node, op, item)->count;
}

fb_read_entry fb_op_range_entry(const fb_node *node, const fb_op *op, uint32_t item, uint32_t at)
{
    const fb_result *result = range_of(node, op, item);
    FB_ASSERT(at < result->count);
    return node->store->entries[result->first + at];
}

bool fb_op_range_whole(const fb_node *node, const fb_op *op, uint32_t item)
{
    return range_of(node, op, item)->whole;
}

fb_span fb_op_range_next(const fb_node *node, const fb_op *op, uint32_t item)
{
    return range_of(node, op, item)->next;
}

/* What an operation puts comes out of its reservation. */
static void charge(fb_store *store, size_t bytes, size_t entries)
{
    if (store->from_reserve) {
        FB_ASSERT(bytes <= store->seal_bytes);
        FB_ASSERT(entries <= store->seal_entries);
        store->seal_bytes -= bytes;
        store->seal_entries -= entries;
        return;
    }
    fb_op *op = store->running;
    if (op == NULL || op->kind != FB_OP_WRITER) return;
    op->written_bytes += bytes;
    op->written_entries += entries;
    FB_ASSERT(op->written_bytes <= op->write_bytes);
    FB_ASSERT(op->written_entries <= op->write_entries);
    store->admitted_bytes -= bytes;
    store->admitted_entries -= entries;
}

static void put(fb_node *node, fb_write_kind kind, fb_span key, fb_span value)
{
    charge(node->store, fb_write_entry_bytes(key.len, value.len), 1);
    fb_set_put(fb_store_building(node->store), kind, key, value);
}

void fb_put(fb_node *node, fb_span key, fb_span value)
{
    put(node, FB_WRITE_PUT, key, value);
}

void fb_put_set(fb_node *node, const fb_set *from)
{
    fb_set *set = fb_store_building(node->store);
    for (uint32_t slot = 0; slot < from->count; slot++) {
        size_t bytes = fb_set_take(set, from, slot);
        if (bytes != 0) charge(node->store, bytes, 1);
    }
}

void fb_store_put_own(fb_node *node, fb_span key, fb_span value)
{
    fb_set *set = fb_store_building(node->store);
    /* Again in one set it takes no more room: there is only so much of it. */
    if (!fb_set_overwrite(set, key, value)) fb_set_put(set, FB_WRITE_PUT, key, value);
}

void fb_delete(fb_node *node, fb_span key)
{
    put(node, FB_WRITE_DELETE, key, (fb_span){NULL, 0});
}

void fb_seal_use(fb_node *node, bool use)
{
    node->store->from_reserve = use;
}

void fb_seal_release(fb_node *node, size_t bytes, size_t entries)
{
    FB_ASSERT(bytes <= node->store->seal_bytes);
    FB_ASSERT(entries <= node->store->seal_entries);
    node->store->seal_bytes -= bytes;
    node->store->seal_entries -= entries;
}

void fb_seal_left(const fb_node *node, size_t *bytes, size_t *entries)
{
    *bytes = (size_t)node->store->seal_bytes;
    *entries = (size_t)node->store->seal_entries;
}

void fb_seal_reserve(fb_node *node, size_t bytes, size_t entries)
{
    charge(node->store, bytes, entries);
    node->store->seal_bytes += bytes;
    node->store->seal_entries += entries;
}

bool fb_write_fits(const fb_node *node, size_t bytes, size_t entries)
{
    const fb_store *store = node->store;
    return fb_set_fits(&store->ring[(store->w_sealed + 1) % FB_WRITE_SETS_KEPT],
                       bytes + SEAL_BYTES + store->admitted_bytes + store->seal_bytes,
                       entries + SEAL_ENTRIES + store->admitted_entries + store->seal_entries);
}

uint64_t fb_w_building(const fb_node *node)
{
    return node->store->w_sealed + 1;
}

uint64_t fb_w_durable(const fb_node *node)
{
    return node->store->w_durable;
}

bool fb_w_dirty(const fb_node *node)
{
    return fb_store_building(node->store)->live != 0;
}
