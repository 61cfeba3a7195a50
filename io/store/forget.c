/* SPDX-License-Identifier: Apache-2.0 */
/* In three steps, each of which leaves a store that a node can start from:
 *
 * 1. In one transaction the space becomes one that was left, and everything goes that may not stand
 *    without it: members, statements, invites, addresses.
 * 2. What its areas hold goes, some thousand entries at a time. Their own entries stay: a number
 *    that is given out again must find nothing under it.
 * 3. In one transaction those go, and with them the space's name and id. */
#include "io/store/forget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/store/lmdb.h"
#include "io/store/lmdb_env.h"
#include "io/store/place.h"
#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/space/stored.h"
#include "protocol/store/keys.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"

#define PAGE_ITEMS 4096u
#define PAGE_BYTES (1u << 20)
#define PREFIX_MAX 6u
#define NAME_MAX   1024u /* of a space, or a value that stands before what is looked at */

typedef struct forgetting {
    const fb_forget_options *options;
    fb_forget_stats *stats;
    char *why;
    size_t why_len;
    fb_lmdb_env env;
    int lock_fd;
    uint8_t *set; /* being built */
    size_t set_len, set_cap;
    uint32_t space; /* its number */
    bool found, several, left;
    fb_b32 creator;
    uint8_t name[FB_SPACE_NAME_BYTES_MAX];
    size_t name_len;
    bool member, creator_told, others;
    uint32_t *areas;
    size_t area_count;
} forgetting;

static fb_status failed(forgetting *f, int rc)
{
    if (rc == 0) return FB_OK;
    snprintf(f->why, f->why_len, "%s: %s", f->options->directory, fb_lmdb_text(rc));
    return fb_lmdb_error(rc) == FB_OK ? FB_ERR_STORE_FAILED : fb_lmdb_error(rc);
}

/* Reading: the entries under a prefix, a page at a time. */

typedef fb_status (*each_entry)(forgetting *f, fb_span key, fb_span value);

static fb_status page(forgetting *f, fb_span low, fb_span high, uint32_t value_bytes,
                      each_entry each, uint8_t *last, size_t *last_len, bool *whole)
{
    uint8_t asked[2 + FB_READ_ITEM_HEAD + 4 + 2 * (FB_KEY_BYTES_MAX + 1)];
    fb_writer w = fb_writer_of(asked, sizeof asked);
    const fb_read_item item = {.kind = FB_READ_RANGE,
                               .value_bytes = value_bytes,
                               .items = PAGE_ITEMS,
                               .bytes = PAGE_BYTES,
                               .low = low,
                               .high = high};
    fb_write_u16(&w, 1);
    fb_read_item_write(&w, &item);
    FB_ASSERT(!w.failed);
    fb_span answer;
    FB_TRY(failed(f, fb_lmdb_env_read(&f->env, 0, fb_writer_span(&w), &answer)));
    fb_reader r = fb_reader_of(answer);
    fb_read_u64(&r);
    *whole = fb_read_u8(&r) == 1;
    uint32_t count = fb_read_u32(&r);
    for (uint32_t i = 0; i < count; i++) {
        fb_read_entry entry = fb_read_entry_next(&r);
        if (r.failed || entry.key.len > FB_KEY_BYTES_MAX) return FB_ERR_STORE_DAMAGED;
        memcpy(last, entry.key.p, entry.key.len);
        *last_len = entry.key.len;
        FB_TRY(each(f, entry.key, entry.value));
    }
    return FB_OK;
}

static fb_span beyond(fb_span prefix, uint8_t out[PREFIX_MAX])
{
    memcpy(out, prefix.p, prefix.len);
    size_t at = prefix.len;
    while (at > 0 && ++out[at - 1] == 0) at--;
    return fb_span_of(out, prefix.len);
}

static fb_status under(forgetting *f, fb_span prefix, uint32_t value_bytes, each_entry each)
{
    uint8_t low[FB_KEY_BYTES_MAX + 1], bound[PREFIX_MAX];
    size_t len = prefix.len;
    memcpy(low, prefix.p, len);
    for (bool whole = false; !whole;) {
        FB_TRY(page(f, fb_span_of(low, len), beyond(prefix, bound), value_bytes, each, low, &len,
                    &whole));
        low[len++] = 0; /* behind the last one */
    }
    return FB_OK;
}

static fb_span prefix_of(uint8_t out[PREFIX_MAX], fb_tag tag, uint32_t number)
{
    fb_writer w = fb_writer_of(out, PREFIX_MAX);
    fb_write_u8(&w, (uint8_t)tag);
    fb_write_u32(&w, number);
    return fb_writer_span(&w);
}

/* Writing. */

static void set_add(forgetting *f, fb_write_kind kind, fb_span key, fb_span value)
{
    size_t bytes = fb_write_entry_bytes(key.len, value.len);
    if (f->set_len + bytes > f->set_cap) {
        f->set_cap = 2 * (f->set_len + bytes);
        f->set = realloc(f->set, f->set_cap);
        FB_ASSERT(f->set != NULL);
    }
    fb_writer w = fb_writer_of(f->set + f->set_len, bytes);
    fb_write_u8(&w, (uint8_t)kind);
    fb_write_u8(&w, 0);
    fb_write_u16(&w, (uint16_t)key.len);
    fb_write_u32(&w, (uint32_t)value.len);
    fb_write_span(&w, key);
    fb_write_span(&w, value);
    while (w.at < bytes) fb_write_u8(&w, 0);
    f->set_len += bytes;
    if (kind == FB_WRITE_DELETE) f->stats->entries++;
}

static fb_status set_write(forgetting *f)
{
    const fb_span set = fb_span_of(f->set, f->set_len);
    if (set.len == 0) return FB_OK;
    f->set_len = 0;
    return failed(f, fb_lmdb_env_write(&f->env, &set, 1));
}

static fb_status drop(forgetting *f, fb_span key, fb_span value)
{
    (void)value;
    set_add(f, FB_WRITE_DELETE, key, (fb_span){NULL, 0});
    return FB_OK;
}

/* Of the two entries of a space the first one is put anew. */
static fb_status drop_proof(forgetting *f, fb_span key, fb_span value)
{
    return key.len == PREFIX_MAX && key.p[PREFIX_MAX - 1] == 0 ? FB_OK : drop(f, key, value);
}

/* Some thousand at a time, each page for good before the next one. */
static fb_status drop_all(forgetting *f, fb_span prefix)
{
    uint8_t last[FB_KEY_BYTES_MAX], bound[PREFIX_MAX];
    size_t len;
    for (bool whole = false; !whole;) {
        FB_TRY(page(f, prefix, beyond(prefix, bound), 0, drop, last, &len, &whole));
        FB_TRY(set_write(f));
    }
    return FB_OK;
}

static void put_left(forgetting *f, fb_id id, fb_span name)
{
    uint8_t key[PREFIX_MAX], value[128 + FB_SPACE_NAME_BYTES_MAX];
    fb_span k = prefix_of(key, FB_TAG_SPACE, f->space);
    key[k.len] = 0; /* the item */
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_space_left_encode(&w, id, name);
    FB_ASSERT(!w.failed);
    set_add(f, FB_WRITE_PUT, fb_span_of(key, k.len + 1), fb_writer_span(&w));
}

/* Which space, and whether it may go. */

static fb_status space_at(forgetting *f, fb_span key, fb_span value)
{
    fb_reader k = fb_reader_of(key);
    fb_read_u8(&k);
    uint32_t number = fb_read_u32(&k);
    if (fb_read_u8(&k) != 0) return FB_OK; /* what proves the membership */
    fb_space_stored space;
    FB_TRY(fb_space_stored_decode(value, &space));
    if (fb_id_is_zero(space.id)) return FB_OK; /* what is kept of one that is gone */
    const char *name = f->options->name;
    bool this_one = name != NULL ? fb_span_equal(space.name, fb_span_text(name))
                                 : fb_id_equal(space.id, f->options->id);
    /* One that is being forgotten stands back behind one that the node joined since. */
    if (!this_one || (f->found && space.left)) return FB_OK;
    f->several = f->several || (f->found && !f->left);
    f->found = true;
    f->left = space.left;
    f->space = number;
    f->stats->space = space.id;
    f->creator = space.creator;
    f->name_len = space.name.len < sizeof f->name ? space.name.len : sizeof f->name;
    memcpy(f->name, space.name.p, f->name_len);
    return FB_OK;
}

static fb_status member_at(forgetting *f, fb_span key, fb_span value)
{
    fb_member_stored member;
    FB_TRY(fb_member_stored_decode(value, &member));
    bool self = key.len == 21 && memcmp(key.p + 5, f->options->owner.b, 16) == 0;
    bool creator = memcmp(member.key.b, f->creator.b, sizeof f->creator.b) == 0;
    f->creator_told = f->creator_told || creator;
    if (self) f->member = member.approved;
    if (!self && member.approved) f->others = true;
    return FB_OK;
}

static fb_status area_at(forgetting *f, fb_span key, fb_span value)
{
    fb_reader k = fb_reader_of(key), r = fb_reader_of(value);
    fb_read_u8(&k);
    uint32_t number = fb_read_u32(&k);
    fb_read_u8(&r);
    if (fb_read_u32(&r) != f->space) return FB_OK;
    if (r.failed || k.failed) return FB_ERR_STORE_DAMAGED;
    /* Doubled whenever it is full: at powers of two. */
    if ((f->area_count & (f->area_count - 1)) == 0) {
        size_t cap = f->area_count == 0 ? 1 : 2 * f->area_count;
        f->areas = realloc(f->areas, cap * sizeof *f->areas);
        FB_ASSERT(f->areas != NULL);
    }
    f->areas[f->area_count++] = number;
    return FB_OK;
}

static fb_status any(forgetting *f, fb_span key, fb_span value)
{
    (void)f;
    (void)key;
    (void)value;
    return FB_ERR_UNSUPPORTED;
}

static fb_status look(forgetting *f)
{
    static const uint8_t redo = FB_TAG_REDO, spaces = FB_TAG_SPACE, areas = FB_TAG_AREA;
    uint8_t prefix[PREFIX_MAX];
    FB_TRY(under(f, fb_span_of(&redo, 1), 0, any));
    FB_TRY(under(f, fb_span_of(&spaces, 1), NAME_MAX, space_at));
    if (!f->found) return FB_ERR_NOT_FOUND;
    if (f->several) {
        snprintf(f->why, f->why_len, "several spaces have this name: use the id");
        return FB_ERR_CONFLICT;
    }
    FB_TRY(under(f, fb_span_of(&areas, 1), NAME_MAX, area_at));
    if (f->left) return FB_OK; /* it was begun */
    bool own = memcmp(f->creator.b, f->options->public_key.b, sizeof f->creator.b) == 0;
    f->member = own; /* unless something is stated about it */
    FB_TRY(under(f, prefix_of(prefix, FB_TAG_MEMBER, f->space), NAME_MAX, member_at));
    if (!own && !f->creator_told) f->others = true;
    if (f->member && f->others) {
        snprintf(f->why, f->why_len,
                 "this node is a member of it: the others would wait for it for ever; "
                 "space leave SPACE first");
        return FB_ERR_CONFLICT;
    }
    return FB_OK;
}

static fb_status forget(forgetting *f)
{
    static const fb_tag of_space[] = {FB_TAG_MEMBER, FB_TAG_STANDING, FB_TAG_CUT,
                                      FB_TAG_INVITE, FB_TAG_PENDING,  FB_TAG_ADDRESS};
    static const fb_tag of_area[] = {FB_TAG_RECORD, FB_TAG_FIELD,  FB_TAG_TREE, FB_TAG_BATCH,
                                     FB_TAG_MARK,   FB_TAG_WANTED, FB_TAG_DOUBT};
    uint8_t prefix[PREFIX_MAX];
    for (size_t i = 0; i < sizeof of_space / sizeof of_space[0] && !f->left; i++) {
        FB_TRY(under(f, prefix_of(prefix, of_space[i], f->space), 0, drop));
    }
    if (!f->left) {
        FB_TRY(under(f, prefix_of(prefix, FB_TAG_SPACE, f->space), 0, drop_proof));
        put_left(f, f->stats->space, fb_span_of(f->name, f->name_len));
    }
    FB_TRY(set_write(f));
    FB_TRY(drop_all(f, prefix_of(prefix, FB_TAG_CHANGELOG, f->space)));
    FB_TRY(drop_all(f, prefix_of(prefix, FB_TAG_SEEN, f->space)));
    for (size_t a = 0; a < f->area_count; a++) {
        for (size_t i = 0; i < sizeof of_area / sizeof of_area[0]; i++) {
            FB_TRY(drop_all(f, prefix_of(prefix, of_area[i], f->areas[a])));
        }
        for (uint8_t closed = 0; closed < 2; closed++) {
            prefix[0] = FB_TAG_VECTOR;
            prefix[1] = closed;
            fb_store_be(prefix + 2, f->areas[a], 4);
            FB_TRY(drop_all(f, fb_span_of(prefix, PREFIX_MAX)));
        }
    }
    for (size_t a = 0; a < f->area_count; a++) {
        FB_TRY(drop(f, prefix_of(prefix, FB_TAG_AREA, f->areas[a]), (fb_span){NULL, 0}));
    }
    put_left(f, (fb_id){{0}}, (fb_span){NULL, 0});
    return set_write(f);
}

fb_status fb_store_forget(const fb_forget_options *options, fb_forget_stats *stats, char *why,
                          size_t why_len)
{
    *stats = (fb_forget_stats){.entries = 0};
    forgetting *f = calloc(1, sizeof *f);
    if (f == NULL) return FB_ERR_NO_MEMORY;
    fb_lmdb_opening opening = {0};
    fb_error error = FB_OK;
    f->options = options;
    f->stats = stats;
    f->why = why;
    f->why_len = why_len;
    f->lock_fd = -1;
    f->env.directory = options->directory;
    f->env.owner = options->owner;
    f->env.must_exist = true;
    f->env.map_bytes = FB_LMDB_MAP_MIN;
    f->env.map_bytes_max = FB_LMDB_MAP_MAX;
    fb_status status = fb_store_place_take(options->directory, &f->lock_fd, &opening, why, why_len);
    if (status == FB_OK) status = failed(f, fb_lmdb_env_open(&f->env, why, why_len, &error));
    if (error != FB_OK) status = error;
    if (status == FB_OK) status = look(f);
    if (status == FB_OK) status = forget(f);
    fb_lmdb_env_free(&f->env);
    if (f->lock_fd >= 0) close(f->lock_fd);
    free(f->set);
    free(f->areas);
    free(f);
    return status;
}
