/* SPDX-License-Identifier: Apache-2.0 */
/* Loading at start: areas, heads of their vectors, what is wanted, the end of each changelog, the
 * root of each tree. Closed lives, batches and records stay in the store. */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"

#define PAGE_ITEMS 256u

enum { LOAD_AREAS, LOAD_VECTORS, LOAD_WANTED, LOAD_DOUBTS, LOAD_CHANGELOGS, LOAD_ROOTS, LOAD_DONE };

typedef struct load_context {
    uint8_t step;
    uint32_t at;  /* space or area */
    uint32_t got; /* of LOAD_ROOTS: areas in this round */
} load_context;

static void load_run(fb_node *node, fb_op *op);

static void next(fb_node *node, uint8_t step, uint32_t at, fb_span after);

static uint32_t area_of_local(const fb_node *node, uint32_t local)
{
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        const fb_area *area = fb_area_get(node, i);
        if (area->used && area->local == local) return i;
    }
    return FB_NONE;
}

static fb_status take_vector(fb_node *node, fb_read_entry entry)
{
    fb_reader r = fb_reader_of(entry.key);
    fb_read_u16(&r);
    uint32_t area = area_of_local(node, fb_read_u32(&r));
    fb_id peer = fb_read_id(&r);
    uint64_t incarnation = fb_read_u64(&r);
    fb_life life;
    if (!fb_reader_done(&r)) return FB_ERR_STORE_DAMAGED;
    FB_TRY(fb_life_decode(entry.value, &life));
    if (area == FB_NONE) return FB_OK;
    uint32_t index = fb_vector_add(node, area, peer, incarnation);
    if (index == FB_NONE) return FB_ERR_LIMIT;
    fb_vector *v = fb_vector_get(node, index);
    v->batch = v->durable_batch = life.batch;
    v->last_seq = v->durable_seq = life.last_seq;
    memcpy(v->hash, life.hash, 32);
    v->previous_incarnation = life.previous_incarnation;
    v->previous_number = life.previous_number;
    v->claim = life.claim;
    return FB_OK;
}

static fb_status take_entry(fb_node *node, uint8_t step, fb_read_entry entry)
{
    if (entry.value.len != entry.value_len) return FB_ERR_STORE_DAMAGED;
    if (step == LOAD_VECTORS) return take_vector(node, entry);
    fb_reader r = fb_reader_of(entry.key);
    fb_read_u8(&r);
    uint32_t local = fb_read_u32(&r);
    if (step == LOAD_AREAS) {
        return fb_reader_done(&r) ? fb_area_load(node, local, entry.value) : FB_ERR_STORE_DAMAGED;
    }
    if (step == LOAD_DOUBTS) {
        uint32_t doubted = area_of_local(node, local);
        bool known = fb_reader_done(&r) && entry.value.len == FB_DOUBT_VALUE_BYTES &&
                     (entry.value.p[0] == FB_DOUBT_NOW || entry.value.p[0] == FB_DOUBT_ONCE);
        if (!known) return FB_ERR_STORE_DAMAGED;
        if (doubted == FB_NONE) return FB_OK;
        fb_area_get(node, doubted)->skipped = true;
        if (entry.value.p[0] == FB_DOUBT_NOW) fb_doubt(node, doubted, false);
        return FB_OK;
    }
    fb_id peer = fb_read_id(&r);
    uint64_t incarnation = fb_read_u64(&r);
    bool mending = fb_reader_left(&r) == 1 && fb_read_u8(&r) == FB_WANTED_MENDING;
    uint32_t area = area_of_local(node, local);
    if (!fb_reader_done(&r)) return FB_ERR_STORE_DAMAGED;
    if (area == FB_NONE) return FB_OK;
    return mending ? fb_mend_load(node, area, peer, incarnation, entry.value)
                   : fb_wanted_load(node, area, peer, incarnation, entry.value);
}

static void issue_page(fb_node *node, fb_op *op, uint8_t step, fb_span after)
{
    static const uint8_t lows[][2] = {
        {FB_TAG_AREA}, {FB_TAG_VECTOR, 0}, {FB_TAG_WANTED}, {FB_TAG_DOUBT}};
    static const uint8_t highs[][2] = {
        {FB_TAG_AREA + 1}, {FB_TAG_VECTOR, 1}, {FB_TAG_WANTED + 1}, {FB_TAG_DOUBT + 1}};
    size_t len = step == LOAD_VECTORS ? 2 : 1;
    uint8_t low[64];
    fb_writer w = fb_writer_of(low, sizeof low);
    if (after.len != 0) {
        fb_write_span(&w, after);
        fb_write_u8(&w, 0);
    } else {
        fb_write_bytes(&w, lows[step], len);
    }
    fb_op_read_range(op, fb_writer_span(&w), fb_span_of(highs[step], len), 1024, PAGE_ITEMS, 65536,
                     false);
    fb_op_issue(node, op);
}

static uint64_t changelog_sequence(fb_read_entry entry)
{
    fb_reader r = fb_reader_of(entry.key);
    fb_read_bytes(&r, 5);
    return fb_read_u64(&r);
}

/* A space at a time: there are few. */
static bool issue_changelog(fb_node *node, fb_op *op, load_context *c)
{
    while (c->at < fb_space_capacity(node) && !fb_space_exists(node, c->at)) c->at++;
    if (c->at == fb_space_capacity(node)) return false;
    uint8_t low[FB_CHANGELOG_KEY_BYTES], high[FB_CHANGELOG_KEY_BYTES];
    uint32_t local = fb_space_local(node, c->at);
    fb_op_read_range(op, fb_key_changelog(low, local, 0), fb_key_changelog(high, local, UINT64_MAX),
                     0, 1, 1024, true);
    fb_op_read_range(op, fb_key_changelog(low, local, 0), fb_key_changelog(high, local, UINT64_MAX),
                     0, 1, 1024, false);
    fb_op_issue(node, op);
    return true;
}

static bool issue_roots(fb_node *node, fb_op *op, load_context *c)
{
    static const uint8_t no_prefix[16];
    uint8_t key[FB_TREE_KEY_BYTES];
    c->got = 0;
    for (uint32_t i = c->at; i < node->options.sizes.areas && c->got < 64; i++) {
        if (!fb_area_get(node, i)->used) continue;
        if (!fb_op_read_key(op, fb_key_tree(key, fb_area_get(node, i)->local, 0, no_prefix),
                            FB_TREE_NODE_BYTES_MAX)) {
            break;
        }
        c->got++;
    }
    if (c->got == 0) return false;
    fb_op_issue(node, op);
    return true;
}

static fb_status take_roots(fb_node *node, fb_op *op, load_context *c)
{
    uint32_t item = 0;
    for (; item < c->got; c->at++) {
        fb_area *area = fb_area_get(node, c->at);
        if (!area->used) continue;
        fb_read_entry entry;
        if (fb_op_value(node, op, item, &entry)) {
            FB_TRY(fb_tree_decode(entry.value, &area->root_node, &area->root_info));
            fb_tree_fingerprint(&area->root_node, area->root);
            memcpy(area->durable_root, area->root, sizeof area->root);
        }
        item++;
    }
    return FB_OK;
}

static void next(fb_node *node, uint8_t step, uint32_t at, fb_span after)
{
    for (; step != LOAD_DONE; step++, at = 0, after = (fb_span){NULL, 0}) {
        fb_op *op = fb_op_begin(node, FB_OP_READER, load_run, 0, 0);
        if (op == NULL) {
            fb_incarnation_end(node, FB_ERR_BUSY);
            return;
        }
        load_context *c = fb_op_context(op);
        *c = (load_context){step, at, 0};
        if (step < LOAD_CHANGELOGS) {
            issue_page(node, op, step, after);
            return;
        }
        if (step == LOAD_CHANGELOGS ? issue_changelog(node, op, c) : issue_roots(node, op, c)) {
            return;
        }
        fb_op_abandon(node, op);
    }
    fb_plane_loaded(node);
}

static void load_run(fb_node *node, fb_op *op)
{
    load_context *c = fb_op_context(op);
    fb_status status = fb_op_status(op);
    uint32_t count = status == FB_OK && c->step < LOAD_ROOTS ? fb_op_range_count(node, op, 0) : 0;
    if (status == FB_OK && c->step < LOAD_CHANGELOGS) {
        for (uint32_t i = 0; i < count && status == FB_OK; i++) {
            status = take_entry(node, c->step, fb_op_range_entry(node, op, 0, i));
        }
    } else if (status == FB_OK && c->step == LOAD_CHANGELOGS) {
        if (count > 0) {
            fb_space_areas *space = &node->database->spaces[c->at];
            uint64_t last = changelog_sequence(fb_op_range_entry(node, op, 0, 0));
            space->changelog = MUTANT(CHANGELOG_GIVEN_AGAIN, last, last - 1);
            space->changelog_gone = changelog_sequence(fb_op_range_entry(node, op, 1, 0)) - 1;
        }
    } else if (status == FB_OK) {
        status = take_roots(node, op, c);
    }
    if (status != FB_OK) {
        fb_incarnation_end(node, status);
        return;
    }
    if (c->step < LOAD_CHANGELOGS) {
        bool whole = fb_op_range_whole(node, op, 0);
        fb_span last = whole || count == 0 ? fb_span_of(NULL, 0)
                                           : fb_op_range_entry(node, op, 0, count - 1).key;
        next(node, whole ? c->step + 1 : c->step, 0, last);
    } else {
        next(node, c->step, c->step == LOAD_CHANGELOGS ? c->at + 1 : c->at, (fb_span){NULL, 0});
    }
}

void fb_database_load(fb_node *node)
{
    struct fb_database *db = node->database;
    const fb_provider *provider = node->options.provider;
    /* Salts of this life's values are derived from it: unguessable, and never from a seed. */
    if (provider->secret(provider->user, db->secret, sizeof db->secret) != FB_OK) {
        fb_incarnation_end(node, FB_ERR_CRYPTO);
        return;
    }
    next(node, LOAD_AREAS, 0, (fb_span){NULL, 0});
}
