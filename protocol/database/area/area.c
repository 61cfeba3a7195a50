/* SPDX-License-Identifier: Apache-2.0 */
/* The table of areas. An area is known by its derived id; its number in store keys is local and
 * never used twice. One that a peer merely named has a place here, pinned while somebody works on
 * it, and is stored with the first batch. */
#include "protocol/database/state.h"

static uint32_t bucket_of(const struct fb_database *db, fb_id id)
{
    return (uint32_t)fb_xxh64(id.b, sizeof id.b, 0) & db->area_mask;
}

static uint32_t digest_count(const fb_node *node)
{
    return node->options.sizes.areas;
}

static fb_digest_cell *digest_cell(fb_node *node, uint32_t index)
{
    return &fb_area_get(node, index)->cell;
}

static void digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_area *area = fb_area_get(node, index);
    if (!area->used) return;
    fb_write_id(w, area->id);
    fb_write_bytes(w, area->root, sizeof area->root);
    const fb_builder *builder =
        area->builder == 0 ? NULL : &node->database->builders[area->builder - 1];
    const uint64_t words[] = {
        (uint64_t)area->local << 32 | area->pins,
        area->root_info.items,
        area->own_seq,
        (area->stored ? 1u : 0u) | (builder == NULL ? 0 : 2u | (uint64_t)builder->count << 32),
        builder == NULL ? 0 : builder->len,
    };
    fb_write_words(w, words, sizeof words / sizeof words[0]);
}

static const fb_digest_kind digest_kind = {"area", digest_count, digest_cell, digest_write};

void fb_area_touch(fb_node *node, uint32_t area)
{
    fb_digest_touch_cell(node, &node->database->areas[area].cell, FB_DIGEST_AREA, area);
}

void fb_areas_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    const fb_sizes *sizes = &node->options.sizes;
    uint32_t buckets = 16;
    while (buckets < 2 * sizes->areas) buckets *= 2;
    fb_area *areas = fb_arena_take(arena, sizes->areas, sizeof *areas);
    uint32_t *heads = fb_arena_take(arena, buckets, sizeof *heads);
    uint32_t *chain = fb_arena_take(arena, sizes->areas, sizeof *chain);
    uint32_t *named = fb_arena_take(arena, sizes->links, sizeof *named);
    fb_space_areas *spaces = fb_arena_take(arena, sizes->spaces, sizeof *spaces);
    fb_digest_register(node, FB_DIGEST_AREA, &digest_kind);
    if (db == NULL) return;
    db->areas = areas;
    db->area_buckets = heads;
    db->area_chain = chain;
    db->named = named;
    db->area_mask = buckets - 1;
    db->spaces = spaces;
}

void fb_areas_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    const fb_sizes *sizes = &node->options.sizes;
    memset(db->area_buckets, 0, (db->area_mask + (size_t)1) * sizeof *db->area_buckets);
    memset(db->spaces, 0, sizes->spaces * sizeof *db->spaces);
    fb_reports_reset(node);
    memset(db->named, 0, sizes->links * sizeof *db->named);
    db->area_free = db->area_count = db->local = db->unsettled = 0;
    for (uint32_t i = sizes->areas; i-- > 0;) {
        fb_area *area = &db->areas[i];
        if (area->used) fb_area_touch(node, i);
        area->used = false;
        area->next = db->area_free;
        db->area_free = i + 1;
    }
}

uint32_t fb_area_find(const fb_node *node, fb_id id)
{
    const struct fb_database *db = node->database;
    uint32_t at = db->area_buckets[bucket_of(db, id)];
    while (at != 0 && !fb_id_equal(db->areas[at - 1].id, id)) at = db->area_chain[at - 1];
    return at == 0 ? FB_NONE : at - 1;
}

uint32_t fb_area_own(const fb_node *node, uint32_t space)
{
    uint32_t own = node->database->spaces[space].own;
    return own == 0 ? FB_NONE : own - 1;
}

static uint32_t add(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name, fb_id id)
{
    struct fb_database *db = node->database;
    if (db->area_free == 0) return FB_NONE;
    uint32_t index = db->area_free - 1;
    fb_area *area = &db->areas[index];
    db->area_free = area->next;
    db->area_count++;
    fb_digest_cell cell = area->cell;
    memset(area, 0, sizeof *area);
    area->cell = cell;
    area->used = true;
    area->kind = (uint8_t)kind;
    area->space = space;
    area->id = id;
    area->name_len = (uint8_t)name.len;
    if (name.len != 0) memcpy(area->name, name.p, name.len);
    area->root_node.kind = FB_TREE_BUCKET;
    fb_timer_init(&area->onward, FB_TIMER_ONWARD, index);
    fb_timer_init(&area->wanted, FB_TIMER_WANTED, index);
    fb_timer_init(&area->conflict, FB_TIMER_CONFLICT, index);
    fb_timer_init(&area->fold, FB_TIMER_FOLD, index);
    fb_timer_init(&area->compare, FB_TIMER_COMPARE, index);
    uint32_t *bucket = &db->area_buckets[bucket_of(db, id)];
    db->area_chain[index] = *bucket;
    *bucket = index + 1;
    uint32_t *at = &db->spaces[space].first;
    while (*at != 0 && fb_id_compare(db->areas[*at - 1].id, id) < 0) at = &db->areas[*at - 1].next;
    area->next = *at;
    *at = index + 1;
    if (kind == FB_AREA_SPACE) db->spaces[space].own = index + 1;
    if (kind == FB_AREA_REPORTS) db->spaces[space].reports = index + 1;
    fb_area_touch(node, index);
    return index;
}

static void forget_namer(fb_node *node, fb_area *area)
{
    if (area->namer != 0) node->database->named[area->namer - 1]--;
    area->namer = 0;
}

static void drop(fb_node *node, uint32_t index)
{
    struct fb_database *db = node->database;
    fb_area *area = &db->areas[index];
    uint32_t *at = &db->area_buckets[bucket_of(db, area->id)];
    while (*at != index + 1) at = &db->area_chain[*at - 1];
    *at = db->area_chain[index];
    at = &db->spaces[area->space].first;
    while (*at != index + 1) at = &db->areas[*at - 1].next;
    *at = area->next;
    fb_timer_clear(node, &area->onward);
    fb_timer_clear(node, &area->wanted);
    fb_timer_clear(node, &area->conflict);
    fb_timer_clear(node, &area->fold);
    fb_timer_clear(node, &area->compare);
    if (area->kind == FB_AREA_REPORTS) db->spaces[area->space].reports = 0;
    forget_namer(node, area);
    area->used = false;
    area->next = db->area_free;
    db->area_free = index + 1;
    db->area_count--;
    fb_area_touch(node, index);
}

uint32_t fb_area_open(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name)
{
    FB_ASSERT(name.len <= FB_COLLECTION_NAME_BYTES_MAX);
    fb_id id = fb_area_id(fb_space_id(node, space), kind, name);
    uint32_t index = fb_area_find(node, id);
    if (index != FB_NONE) return fb_area_get(node, index)->space == space ? index : FB_NONE;
    index = add(node, space, kind, name, id);
    if (index != FB_NONE) fb_area_get(node, index)->local = ++node->database->local;
    return index;
}

uint32_t fb_area_named(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name, fb_id id,
                       uint32_t link)
{
    uint32_t *named = &node->database->named[link];
    bool fresh = fb_area_find(node, id) == FB_NONE;
    uint32_t most = (node->options.sizes.areas + 1) / 2;
    if (fresh && *named >= most) return FB_NONE;
    uint32_t index = fb_area_open(node, space, kind, name);
    if (fresh && index != FB_NONE) {
        fb_area_get(node, index)->namer = link + 1;
        ++*named;
    }
    return index;
}

void fb_area_stored(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    area->stored = true;
    forget_namer(node, area);
    fb_area_touch(node, index);
}

void fb_area_root_put(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    uint64_t w = fb_w_building(node);
    if (area->root_count == 0) {
        area->unsettled = node->database->unsettled;
        node->database->unsettled = index + 1;
    }
    if (area->root_count == 0 || area->roots[area->root_count - 1].w != w) {
        FB_ASSERT(area->root_count < FB_WRITE_SETS_KEPT);
        area->roots[area->root_count++].w = w;
    }
    memcpy(area->roots[area->root_count - 1].root, area->root, sizeof area->root);
}

void fb_areas_durable(fb_node *node)
{
    uint32_t *at = &node->database->unsettled;
    while (*at != 0) {
        fb_area *area = fb_area_get(node, *at - 1);
        uint32_t done = 0;
        while (done < area->root_count && area->roots[done].w <= fb_w_durable(node)) done++;
        if (done > 0) memcpy(area->durable_root, area->roots[done - 1].root, 16);
        area->root_count -= done;
        memmove(area->roots, area->roots + done, area->root_count * sizeof area->roots[0]);
        if (area->root_count == 0) {
            *at = area->unsettled;
        } else {
            at = &area->unsettled;
        }
    }
}

void fb_areas_link_down(fb_node *node, uint32_t link)
{
    for (uint32_t i = 0; i < node->options.sizes.areas && node->database->named[link] > 0; i++) {
        fb_area *area = fb_area_get(node, i);
        if (area->used && area->namer == link + 1) forget_namer(node, area);
    }
}

void fb_area_pin(fb_node *node, uint32_t area)
{
    fb_area_get(node, area)->pins++;
    fb_area_touch(node, area);
}

void fb_area_unpin(fb_node *node, uint32_t area)
{
    fb_area *a = fb_area_get(node, area);
    FB_ASSERT(a->pins > 0);
    a->pins--;
    fb_area_touch(node, area);
    if (a->pins == 0 && !a->stored) drop(node, area);
}

size_t fb_area_value(const fb_node *node, uint32_t area, uint8_t out[FB_AREA_VALUE_BYTES_MAX])
{
    const fb_area *a = fb_area_get(node, area);
    fb_writer w = fb_writer_of(out, FB_AREA_VALUE_BYTES_MAX);
    fb_write_u8(&w, 1);
    fb_write_u32(&w, fb_space_local(node, a->space));
    fb_write_u8(&w, a->kind);
    fb_write_span16(&w, fb_span_of(a->name, a->name_len));
    return w.at;
}

static uint32_t space_of_local(const fb_node *node, uint32_t local)
{
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (fb_space_exists(node, i) && fb_space_local(node, i) == local) return i;
    }
    return FB_NONE;
}

fb_status fb_area_load(fb_node *node, uint32_t local, fb_span value)
{
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    if (!r.failed && version != 1) return FB_ERR_VERSION_NEWER;
    uint32_t space = space_of_local(node, fb_read_u32(&r));
    uint8_t kind = fb_read_u8(&r);
    fb_span name = fb_read_span16(&r);
    if (!fb_reader_done(&r) || kind < FB_AREA_COLLECTION || kind > FB_AREA_REPORTS ||
        name.len > FB_COLLECTION_NAME_BYTES_MAX) {
        return FB_ERR_STORE_DAMAGED;
    }
    if (local > node->database->local) node->database->local = local;
    /* A space that was dropped leaves its areas behind. */
    if (space == FB_NONE) return FB_OK;
    fb_id id = fb_area_id(fb_space_id(node, space), (fb_area_kind)kind, name);
    if (fb_area_find(node, id) != FB_NONE) return FB_ERR_STORE_DAMAGED;
    uint32_t index = add(node, space, (fb_area_kind)kind, name, id);
    if (index == FB_NONE) return FB_ERR_LIMIT;
    fb_area_get(node, index)->local = local;
    fb_area_get(node, index)->stored = true;
    return FB_OK;
}

uint32_t fb_area_capacity(const fb_node *node)
{
    return node->options.sizes.areas;
}

bool fb_area_at(const fb_node *node, uint32_t index, fb_area_info *out)
{
    const fb_area *area = fb_area_get(node, index);
    if (!area->used || !area->stored) return false;
    *out = (fb_area_info){.id = area->id,
                          .space = fb_space_id(node, area->space),
                          .kind = area->kind,
                          .vector_count = area->entry_count,
                          .records = area->root_info.items};
    memcpy(out->root, area->root, sizeof out->root);
    return true;
}

bool fb_area_vector_at(const fb_node *node, uint32_t index, uint32_t entry, fb_vector_info *out)
{
    const fb_area *area = fb_area_get(node, index);
    if (!area->used) return false;
    uint32_t at = area->entries;
    while (at != 0) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        if (!v->closed && v->batch != 0 && entry-- == 0) {
            *out = (fb_vector_info){v->node, v->incarnation, v->batch, v->last_seq};
            return true;
        }
        at = v->next;
    }
    return false;
}

_Static_assert(FB_AREA_KEY_BYTES + FB_AREA_VALUE_BYTES_MAX - FB_COLLECTION_NAME_BYTES_MAX + 16 <=
                   FB_DATABASE_OPEN_BYTES,
               "an area without a name, and what is around an entry");

fb_status fb_database_open_space(fb_node *node, uint32_t space)
{
    uint32_t index = fb_area_open(node, space, FB_AREA_SPACE, (fb_span){NULL, 0});
    if (index == FB_NONE) return FB_ERR_LIMIT;
    fb_area *area = fb_area_get(node, index);
    if (area->stored) return FB_OK;
    uint8_t key[FB_AREA_KEY_BYTES], value[FB_AREA_VALUE_BYTES_MAX];
    size_t len = fb_area_value(node, index, value);
    fb_put(node, fb_key_area(key, area->local), fb_span_of(value, len));
    fb_area_stored(node, index);
    return FB_OK;
}
