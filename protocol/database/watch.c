/* SPDX-License-Identifier: Apache-2.0 */
/* RECORD_WATCH: the local changelog as a stream, against the caller's credit. Nothing polls: what a
 * durable write set brings is read when it is durable, and given on in that step. */
#include "protocol/database/state.h"

#define PIECE_BYTES_MAX 16384u
#define PIECE_ITEMS_MAX 64u
#define ITEM_BYTES_MAX  (8u + 16 + 16 + 1 + 2 + FB_COLLECTION_NAME_BYTES_MAX)

_Static_assert(2 + PIECE_ITEMS_MAX * ITEM_BYTES_MAX <= PIECE_BYTES_MAX, "a piece holds its items");

typedef struct watch_context {
    uint32_t watch;
    uint64_t serial;
} watch_context;

static uint32_t digest_count(const fb_node *node)
{
    return node->options.sizes.requests;
}

static fb_digest_cell *digest_cell(fb_node *node, uint32_t index)
{
    return &node->database->watches[index].cell;
}

static void digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_watch *watch = &node->database->watches[index];
    if (!watch->used) return;
    fb_write_u64(w, watch->number);
    fb_write_u64(w, watch->cursor);
    fb_write_u8(w, watch->reading ? 1 : 0);
}

static const fb_digest_kind digest_kind = {"watch", digest_count, digest_cell, digest_write};

static void touch(fb_node *node, uint32_t watch)
{
    fb_digest_touch(node, FB_DIGEST_WATCH, watch);
}

/* One entry of the changelog; false for what no application is told of. */
/* FM-4.1-5 */
static bool write_item(const fb_node *node, const fb_watch *watch, fb_read_entry entry,
                       fb_writer *w, uint64_t *sequence)
{
    fb_reader key = fb_reader_of(entry.key), value = fb_reader_of(entry.value);
    fb_read_bytes(&key, 5);
    *sequence = fb_read_u64(&key);
    fb_read_u8(&value);
    uint32_t local = fb_read_u32(&value);
    fb_id record = fb_read_id(&value);
    uint8_t kind = fb_read_u8(&value);
    if (!fb_reader_done(&value)) return false;
    for (uint32_t at = node->database->spaces[watch->space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        at = area->next;
        if (area->local != local) continue;
        if (area->kind != FB_AREA_COLLECTION) return false;
        fb_write_u64(w, *sequence);
        fb_write_id(w, area->id);
        fb_write_id(w, record);
        fb_write_u8(w, kind);
        fb_write_span16(w, fb_span_of(area->name, area->name_len));
        return true;
    }
    return false;
}

static void watch_run(fb_node *node, fb_op *op)
{
    const watch_context *c = fb_op_context(op);
    fb_watch *watch = &node->database->watches[c->watch];
    if (!watch->used || watch->serial != c->serial) return;
    watch->reading = false;
    touch(node, c->watch);
    if (fb_op_status(op) != FB_OK) {
        uint32_t request = watch->request;
        watch->used = false;
        node->database->watch_used--;
        fb_reply(node, request, fb_op_status(op), (fb_span){NULL, 0});
        return;
    }
    uint8_t bytes[PIECE_BYTES_MAX];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&w, 0);
    uint32_t count = fb_op_range_count(node, op, 0), items = 0;
    uint64_t last = watch->cursor;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t sequence = last;
        if (write_item(node, watch, fb_op_range_entry(node, op, 0, i), &w, &sequence)) items++;
        last = sequence;
    }
    watch->dry = fb_op_range_whole(node, op, 0);
    if (items > 0) {
        fb_store_be(bytes, items, 2);
        if (!fb_reply_more(node, watch->request, fb_writer_span(&w))) {
            watch->stuck = fb_request_credit(node, watch->request);
            watch->dry = false;
            return;
        }
    }
    watch->stuck = 0;
    watch->cursor = last;
}

static void go(fb_node *node, uint32_t index)
{
    struct fb_database *db = node->database;
    fb_watch *watch = &db->watches[index];
    uint64_t credit = fb_request_credit(node, watch->request);
    if (watch->reading || watch->dry || credit <= watch->stuck || credit < 2 + ITEM_BYTES_MAX) {
        return;
    }
    if (watch->cursor >= db->spaces[watch->space].changelog) return;
    fb_op *op = fb_op_begin(node, FB_OP_READER, watch_run, 0, 0);
    if (op == NULL) return; /* the next step tries again */
    *(watch_context *)fb_op_context(op) = (watch_context){index, watch->serial};
    uint8_t low[FB_CHANGELOG_KEY_BYTES], high[FB_CHANGELOG_KEY_BYTES];
    uint32_t local = fb_space_local(node, watch->space);
    uint64_t fits = (credit - 2) / ITEM_BYTES_MAX;
    uint32_t items = fits < PIECE_ITEMS_MAX ? (uint32_t)fits : PIECE_ITEMS_MAX;
    fb_op_read_range(op, fb_key_changelog(low, local, watch->cursor + 1),
                     fb_key_changelog(high, local, UINT64_MAX), FB_CHANGELOG_VALUE_BYTES, items,
                     PIECE_BYTES_MAX, false);
    watch->reading = true;
    touch(node, index);
    fb_op_issue(node, op);
}

static void cancelled(fb_node *node, uint32_t index, uint64_t user)
{
    (void)index;
    fb_watch *watch = &node->database->watches[user];
    watch->used = false;
    node->database->watch_used--;
    touch(node, (uint32_t)user);
}

static void on_watch(fb_node *node, fb_request request, fb_span arguments)
{
    struct fb_database *db = node->database;
    fb_reader r = fb_reader_of(arguments);
    uint32_t space;
    fb_status status = fb_space_read(node, &r, request.principal, &space);
    uint64_t since = fb_read_u64(&r);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    if (status != FB_OK) {
        fb_refuse(node, request, status);
        return;
    }
    /* A watch has the place of its request. */
    fb_watch *watch = &db->watches[request.index];
    FB_ASSERT(!watch->used);
    fb_digest_cell cell = watch->cell;
    uint64_t last = db->spaces[space].changelog;
    *watch = (fb_watch){.used = true,
                        .space = space,
                        .request = request.index,
                        .number = request.number,
                        .cursor = since < last ? since : last,
                        .serial = ++db->serial,
                        .cell = cell};
    db->watch_used++;
    fb_request_keep(node, request.index, cancelled, request.index);
    touch(node, request.index);
}

void fb_watch_durable(fb_node *node)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i < db->watch_count && db->watch_used > 0; i++) {
        db->watches[i].dry = false;
    }
    fb_watch_flush(node);
}

void fb_watch_flush(fb_node *node)
{
    struct fb_database *db = node->database;
    if (db->watch_used == 0) return;
    for (uint32_t i = 0; i < db->watch_count; i++) {
        if (db->watches[i].used) go(node, i);
    }
}

void fb_watch_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    uint32_t count = node->options.sizes.requests;
    fb_watch *watches = fb_arena_take(arena, count, sizeof *watches);
    fb_digest_register(node, FB_DIGEST_WATCH, &digest_kind);
    if (db == NULL) return;
    db->watches = watches;
    db->watch_count = count;
    fb_verb_register(node, FB_VERB_RECORD_WATCH, on_watch);
}

void fb_watch_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    for (uint32_t i = 0; i < db->watch_count; i++) {
        if (db->watches[i].used) touch(node, i);
        db->watches[i].used = false;
    }
    db->watch_used = 0;
}
