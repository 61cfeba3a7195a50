/* SPDX-License-Identifier: Apache-2.0 */
/* RECORD_WATCH: the local changelog as a stream, against the caller's credit. Nothing polls: what a
 * durable write set brings is read when it is durable, and given on in that step.
 *
 * A cursor is a place of the changelog: its sequence and the incarnation that wrote it. A store
 * that was set back gives the same sequences again, under another incarnation, so a cursor of what
 * is not there any more is told from one that is. A watch goes on behind its cursor without a gap,
 * or ends: FB_ERR_CURSOR_OLD when what follows is not kept any more (fb_sizes.changelog), also
 * while the watch is open and its caller slow; FB_ERR_CURSOR_UNKNOWN when this store never gave it.
 */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"

#define PIECE_BYTES_MAX 16384u
#define PIECE_ITEMS_MAX 64u
#define CURSOR_BYTES    16u
#define ITEM_BYTES_MAX  (CURSOR_BYTES + 16 + 16 + 1 + 2 + FB_COLLECTION_NAME_BYTES_MAX)
#define FRAME_BYTES     (2 + CURSOR_BYTES)

_Static_assert(FRAME_BYTES + PIECE_ITEMS_MAX * ITEM_BYTES_MAX <= PIECE_BYTES_MAX,
               "a piece holds its items");

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
    fb_write_u64(w, watch->cursor.sequence);
    fb_write_u64(w, watch->cursor.incarnation);
    fb_write_u8(w, (uint8_t)((watch->reading ? 1 : 0) | (watch->placed ? 2 : 0)));
}

static const fb_digest_kind digest_kind = {"watch", digest_count, digest_cell, digest_write};

static void touch(fb_node *node, uint32_t watch)
{
    fb_digest_touch(node, FB_DIGEST_WATCH, watch);
}

static void write_cursor(fb_writer *w, fb_place place)
{
    fb_write_u64(w, place.sequence);
    fb_write_u64(w, place.incarnation);
}

/* A value of the changelog. */
typedef struct logged {
    fb_place place;
    uint32_t local; /* of the area */
    fb_id record;
    uint8_t kind;
} logged;

static bool logged_read(fb_read_entry entry, logged *out)
{
    fb_reader key = fb_reader_of(entry.key), value = fb_reader_of(entry.value);
    fb_read_bytes(&key, 5);
    out->place.sequence = fb_read_u64(&key);
    uint8_t version = fb_read_u8(&value);
    /* Of a store of the version before: no cursor of those was ever given. */
    out->place.incarnation = version == 1 ? 0 : fb_read_u64(&value);
    out->local = fb_read_u32(&value);
    out->record = fb_read_id(&value);
    out->kind = fb_read_u8(&value);
    return fb_reader_done(&key) && fb_reader_done(&value);
}

/* Nothing for what no application is told of: the space's own statements. */
/* FM-4.1-5 */
static bool write_item(const fb_node *node, const fb_watch *watch, const logged *l, fb_writer *w)
{
    for (uint32_t at = node->database->spaces[watch->space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        at = area->next;
        if (area->local != l->local) continue;
        if (area->kind != FB_AREA_COLLECTION) return false;
        write_cursor(w, l->place);
        fb_write_id(w, area->id);
        fb_write_id(w, l->record);
        fb_write_u8(w, l->kind);
        fb_write_span16(w, fb_span_of(area->name, area->name_len));
        return true;
    }
    return false;
}

static void end(fb_node *node, uint32_t index, fb_status status)
{
    fb_watch *watch = &node->database->watches[index];
    uint32_t request = watch->request;
    watch->used = false;
    node->database->watch_used--;
    touch(node, index);
    fb_reply(node, request, status, (fb_span){NULL, 0});
}

/* Gives a piece with its place behind it, which a caller that is told nothing else can go on from.
 * False: the caller's credit is too little. */
static bool give(fb_node *node, fb_watch *watch, fb_writer *w, uint32_t items, fb_place place)
{
    write_cursor(w, place);
    FB_ASSERT(!w->failed);
    fb_store_be(w->p, items, 2);
    if (fb_reply_more(node, watch->request, fb_writer_span(w))) {
        watch->stuck = 0;
        return true;
    }
    watch->stuck = fb_request_credit(node, watch->request);
    watch->dry = false;
    return false;
}

/* Where the watch begins. The entry read is the newest one up to its cursor. */
static fb_status place(const fb_node *node, const fb_op *op, const fb_watch *watch, fb_place *out)
{
    logged l = {.place = {0, 0}};
    uint32_t count = fb_op_range_count(node, op, 0);
    if (count != 0 && !logged_read(fb_op_range_entry(node, op, 0, 0), &l)) {
        return FB_ERR_STORE_DAMAGED;
    }
    *out = l.place;
    if (watch->fresh) return FB_OK;
    *out = watch->cursor;
    const fb_space_areas *space = &node->database->spaces[watch->space];
    bool first = watch->cursor.sequence == 0;
    if (watch->cursor.sequence < space->changelog_gone + (first ? 0 : 1)) {
        return FB_ERR_CURSOR_OLD;
    }
    if (first) return watch->cursor.incarnation == 0 ? FB_OK : FB_ERR_CURSOR_UNKNOWN;
    bool known = count != 0 && l.place.sequence == watch->cursor.sequence &&
                 l.place.incarnation == watch->cursor.incarnation;
    return MUTANT(CURSOR_NOT_COMPARED, known, true) ? FB_OK : FB_ERR_CURSOR_UNKNOWN;
}

static void placed(fb_node *node, const fb_op *op, uint32_t index)
{
    fb_watch *watch = &node->database->watches[index];
    fb_place at;
    fb_status status = place(node, op, watch, &at);
    if (status != FB_OK) {
        end(node, index, status);
        return;
    }
    uint8_t bytes[FRAME_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&w, 0);
    if (!give(node, watch, &w, 0, at)) return;
    watch->placed = true;
    watch->cursor = at;
    if (MUTANT(FEED_SKIPS_ONE, false, !watch->fresh && at.sequence > 0)) watch->cursor.sequence++;
}

static void watch_run(fb_node *node, fb_op *op)
{
    const watch_context *c = fb_op_context(op);
    fb_watch *watch = &node->database->watches[c->watch];
    if (!watch->used || watch->serial != c->serial) return;
    watch->reading = false;
    touch(node, c->watch);
    if (fb_op_status(op) != FB_OK) {
        end(node, c->watch, fb_op_status(op));
        return;
    }
    if (watch->principal != 0 && !fb_space_allows(node, watch->space, watch->principal)) {
        end(node, c->watch, FB_ERR_NOT_AUTHORISED);
        return;
    }
    if (!watch->placed) {
        placed(node, op, c->watch);
        return;
    }
    uint8_t bytes[PIECE_BYTES_MAX];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&w, 0);
    uint32_t count = fb_op_range_count(node, op, 0), items = 0;
    fb_place last = watch->cursor;
    for (uint32_t i = 0; i < count; i++) {
        logged l;
        if (!logged_read(fb_op_range_entry(node, op, 0, i), &l)) {
            end(node, c->watch, FB_ERR_STORE_DAMAGED);
            return;
        }
        if (MUTANT(FEED_GAP_UNSEEN, l.place.sequence != last.sequence + 1, false)) {
            /* Its caller was slower than the changelog is long. */
            end(node, c->watch, FB_ERR_CURSOR_OLD);
            return;
        }
        if (write_item(node, watch, &l, &w)) items++;
        last = l.place;
    }
    watch->dry = fb_op_range_whole(node, op, 0);
    if (count > 0 && !give(node, watch, &w, items, last)) return;
    watch->cursor = last;
}

static void go(fb_node *node, uint32_t index)
{
    struct fb_database *db = node->database;
    fb_watch *watch = &db->watches[index];
    uint64_t credit = fb_request_credit(node, watch->request);
    if (watch->reading || watch->dry || credit <= watch->stuck) return;
    if (credit < FRAME_BYTES + ITEM_BYTES_MAX) return;
    uint64_t newest = db->spaces[watch->space].changelog;
    if (watch->placed && watch->cursor.sequence >= newest) return;
    fb_op *op = fb_op_begin(node, FB_OP_READER, watch_run, 0, 0);
    if (op == NULL) return; /* the next step tries again */
    *(watch_context *)fb_op_context(op) = (watch_context){index, watch->serial};
    uint8_t low[FB_CHANGELOG_KEY_BYTES], high[FB_CHANGELOG_KEY_BYTES];
    uint32_t local = fb_space_local(node, watch->space);
    if (!watch->placed) {
        uint64_t upto = watch->cursor.sequence; /* at most UINT64_MAX - 1 */
        fb_op_read_range(op, fb_key_changelog(low, local, 0),
                         fb_key_changelog(high, local, upto + 1), FB_CHANGELOG_VALUE_BYTES, 1,
                         PIECE_BYTES_MAX, true);
    } else {
        uint64_t fits = (credit - FRAME_BYTES) / ITEM_BYTES_MAX;
        uint32_t items = fits < PIECE_ITEMS_MAX ? (uint32_t)fits : PIECE_ITEMS_MAX;
        fb_op_read_range(op, fb_key_changelog(low, local, watch->cursor.sequence + 1),
                         fb_key_changelog(high, local, UINT64_MAX), FB_CHANGELOG_VALUE_BYTES, items,
                         PIECE_BYTES_MAX, false);
    }
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
    fb_place since = {.sequence = fb_read_u64(&r)};
    since.incarnation = fb_read_u64(&r);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    bool fresh = since.sequence == UINT64_MAX;
    if (status == FB_OK && !fresh && since.sequence > db->spaces[space].changelog) {
        status = FB_ERR_CURSOR_UNKNOWN;
    }
    if (status != FB_OK) {
        fb_refuse(node, request, status);
        return;
    }
    if (fresh) since = (fb_place){db->spaces[space].changelog, 0};
    /* A watch has the place of its request. */
    fb_watch *watch = &db->watches[request.index];
    FB_ASSERT(!watch->used);
    fb_digest_cell cell = watch->cell;
    *watch = (fb_watch){.used = true,
                        .fresh = fresh,
                        .space = space,
                        .request = request.index,
                        .number = request.number,
                        .principal = request.principal,
                        .cursor = since,
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
