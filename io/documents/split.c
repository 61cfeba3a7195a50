/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/split.h"

#include <errno.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/database/database.h"
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

typedef struct fb_split_area {
    uint32_t local;
    uint32_t space;
    bool documents;
    fb_span name;
    uint8_t name_bytes[FB_COLLECTION_NAME_BYTES_MAX];
    char collection[FB_DOCUMENTS_COLLECTION_MAX]; /* empty: not asked for yet */
    fb_id space_id, id;                           /* ... as little as these */
} fb_split_area;

fb_span fb_redo_key(fb_span key, uint8_t *out)
{
    out[0] = FB_TAG_REDO;
    if (key.len != 0) memcpy(out + 1, key.p, key.len);
    return fb_span_of(out, key.len + 1);
}

bool fb_redo_read(fb_span stored, fb_redo *out)
{
    fb_reader r = fb_reader_of(stored);
    uint8_t version = fb_read_u8(&r);
    *out = (fb_redo){.incarnation = fb_read_u64(&r)};
    out->w = fb_read_u64(&r);
    out->kind = fb_read_u8(&r);
    out->value = fb_read_bytes(&r, fb_reader_left(&r));
    return !r.failed && version == FB_REDO_VERSION &&
           (out->kind == FB_WRITE_PUT || out->kind == FB_WRITE_DELETE);
}

void fb_split_free(fb_split *split)
{
    fb_room_free(&split->room);
    split->areas = NULL;
    split->area_count = split->area_cap = 0;
}

bool fb_split_is_record_key(fb_span key)
{
    return key.len >= FB_RECORD_KEY_BYTES &&
           (key.p[0] == FB_TAG_RECORD || key.p[0] == FB_TAG_FIELD);
}

/* Areas */

static fb_split_area *find(const fb_split *split, uint32_t local)
{
    for (size_t i = 0; i < split->area_count; i++) {
        if (split->areas[i].local == local) return &split->areas[i];
    }
    return NULL;
}

/* An area's entry as it is stored; EINVAL when it does not follow the format. */
static int area_add(fb_split *split, uint32_t local, fb_span stored, fb_split_area **out)
{
    fb_reader r = fb_reader_of(stored);
    fb_read_u8(&r);
    uint32_t space = fb_read_u32(&r);
    uint8_t kind = fb_read_u8(&r);
    fb_span name = fb_read_span16(&r);
    if (r.failed || name.len > FB_COLLECTION_NAME_BYTES_MAX) return EINVAL;
    fb_split_area *area = find(split, local);
    if (area == NULL) {
        if (split->area_count == split->area_cap) {
            size_t cap = split->area_cap == 0 ? 4 : 2 * split->area_cap;
            fb_split_area *areas = fb_room_take(&split->room, cap * sizeof *areas);
            if (split->area_cap != 0) {
                memcpy(areas, split->areas, split->area_cap * sizeof *areas);
            }
            split->areas = areas;
            split->area_cap = cap;
        }
        area = &split->areas[split->area_count++];
    }
    *area = (fb_split_area){.local = local, .space = space};
    area->documents = kind == FB_AREA_COLLECTION;
    area->name.len = name.len;
    memcpy(area->name_bytes, name.p, name.len);
    *out = area;
    return 0;
}

/* NULL: nothing of it is stored yet. */
static int area_get(fb_split *split, uint32_t local, fb_split_area **out)
{
    *out = find(split, local);
    if (*out != NULL) return 0;
    uint8_t key[FB_AREA_KEY_BYTES];
    fb_span stored;
    int rc = split->store.look(split->store.user, fb_key_area(key, local), &stored);
    if (rc != 0 || stored.len == 0) return rc;
    return area_add(split, local, stored, out);
}

int fb_split_is_document(fb_split *split, uint32_t local, bool *yes)
{
    fb_split_area *area;
    int rc = area_get(split, local, &area);
    *yes = rc == 0 && area != NULL && area->documents;
    return rc;
}

int fb_split_collection(fb_split *split, uint32_t local, const char **out)
{
    fb_split_area *area;
    int rc = area_get(split, local, &area);
    if (rc != 0 || area == NULL) return rc != 0 ? rc : EINVAL;
    if (area->collection[0] == 0) {
        uint8_t key[6];
        fb_writer k = fb_writer_of(key, sizeof key);
        fb_write_u8(&k, FB_TAG_SPACE);
        fb_write_u32(&k, area->space);
        fb_write_u8(&k, 0);
        fb_span stored;
        rc = split->store.look(split->store.user, fb_writer_span(&k), &stored);
        if (rc != 0) return rc;
        fb_reader r = fb_reader_of(stored);
        fb_read_u8(&r);
        fb_id space = fb_read_id(&r);
        if (r.failed) return EINVAL;
        fb_span name = fb_span_of(area->name_bytes, area->name.len);
        area->space_id = space;
        area->id = fb_area_id(space, FB_AREA_COLLECTION, name);
        fb_documents_collection(space, area->id, name, area->collection);
    }
    *out = area->collection;
    return 0;
}

static void find_area(void *user, fb_span key, fb_span stored)
{
    fb_split *split = user;
    fb_reader r = fb_reader_of(key);
    fb_read_u8(&r);
    uint32_t local = fb_read_u32(&r);
    fb_split_area *added;
    if (fb_reader_done(&r) && find(split, local) == NULL) {
        (void)area_add(split, local, stored, &added);
    }
}

int fb_split_find(fb_split *split, const char *collection, fb_split_named *out, bool *found)
{
    static const uint8_t low[] = {FB_TAG_AREA}, high[] = {FB_TAG_AREA + 1};
    *found = false;
    for (unsigned pass = 0; pass < 2 && !*found; pass++) {
        /* The areas that were met, and then all there are. */
        int rc = pass == 0 ? 0
                           : split->store.scan(split->store.user, fb_span_of(low, sizeof low),
                                               fb_span_of(high, sizeof high), find_area, split);
        if (rc != 0) return rc;
        for (size_t i = 0; i < split->area_count && !*found; i++) {
            const char *name;
            if (!split->areas[i].documents) continue;
            /* Of a space that was dropped nothing is left but its areas. */
            if (fb_split_collection(split, split->areas[i].local, &name) != 0) continue;
            if (strcmp(name, collection) != 0) continue;
            const fb_split_area *area = &split->areas[i];
            *out = (fb_split_named){area->local, area->space_id, area->id};
            *found = true;
        }
    }
    return 0;
}

/* Write sets */

typedef struct splitting {
    fb_split *split;
    uint64_t incarnation, w;
    fb_room *room;
    fb_writer local;
    fb_split_record *records;
    size_t record_count;
} splitting;

static void entry_write(fb_writer *w, uint8_t kind, fb_span key, fb_span head, fb_span value)
{
    size_t from = w->at, bytes = fb_write_entry_bytes(key.len, head.len + value.len);
    fb_write_u8(w, kind);
    fb_write_u8(w, 0);
    fb_write_u16(w, (uint16_t)key.len);
    fb_write_u32(w, (uint32_t)(head.len + value.len));
    fb_write_span(w, key);
    fb_write_span(w, head);
    fb_write_span(w, value);
    while (!w->failed && w->at < from + bytes) fb_write_u8(w, 0);
}

static void local_put(splitting *s, fb_span key, fb_span value)
{
    entry_write(&s->local, FB_WRITE_PUT, key, (fb_span){NULL, 0}, value);
}

static void local_delete(splitting *s, fb_span key)
{
    entry_write(&s->local, FB_WRITE_DELETE, key, (fb_span){NULL, 0}, (fb_span){NULL, 0});
}

static void redo(splitting *s, uint8_t kind, fb_span key, fb_span value)
{
    uint8_t named[FB_KEY_BYTES_MAX], head[FB_REDO_HEAD_BYTES];
    fb_writer h = fb_writer_of(head, sizeof head);
    fb_write_u8(&h, FB_REDO_VERSION);
    fb_write_u64(&h, s->incarnation);
    fb_write_u64(&h, s->w);
    fb_write_u8(&h, kind);
    entry_write(&s->local, FB_WRITE_PUT, fb_redo_key(key, named), fb_writer_span(&h), value);
}

/* It shows something, or may once a clock has come so far. */
static bool is_alive(fb_span stored, bool *damaged)
{
    fb_record record;
    int64_t stamp;
    *damaged = fb_record_decode(stored, &record) != FB_OK;
    return !*damaged && fb_record_visible(&record, INT64_MAX, &stamp);
}

static void touch(splitting *s, uint32_t area, fb_id id)
{
    s->records[s->record_count++] = (fb_split_record){area, id};
}

static int split_record(splitting *s, const fb_write_entry *entry, uint32_t area, fb_id id)
{
    bool damaged = false;
    touch(s, area, id);
    if (entry->kind == FB_WRITE_PUT && is_alive(entry->value, &damaged)) {
        local_delete(s, entry->key);
        redo(s, FB_WRITE_PUT, entry->key, entry->value);
        return 0;
    }
    if (damaged) return EINVAL;
    if (entry->kind == FB_WRITE_PUT) {
        local_put(s, entry->key, entry->value);
    } else {
        /* What says that a document which stands there all the same is none of ours. */
        uint8_t empty[FB_RECORD_EMPTY_BYTES];
        local_put(s, entry->key, fb_record_empty(id, empty));
    }
    redo(s, FB_WRITE_DELETE, entry->key, (fb_span){NULL, 0});
    return 0;
}

/* A value goes with its record: which are wanted is what the record says. */
static void split_value(splitting *s, const fb_write_entry *entry)
{
    if (entry->kind == FB_WRITE_PUT) {
        redo(s, FB_WRITE_PUT, entry->key, entry->value);
    } else {
        uint8_t named[FB_KEY_BYTES_MAX];
        local_delete(s, fb_redo_key(entry->key, named));
        /* From the time before this collection was one of documents. */
        local_delete(s, entry->key);
    }
}

static int split_entry(splitting *s, const fb_write_entry *entry)
{
    fb_reader key = fb_reader_of(entry->key);
    uint8_t tag = fb_read_u8(&key);
    uint32_t area = fb_read_u32(&key);
    bool document = false;
    if (fb_split_is_record_key(entry->key)) {
        int rc = fb_split_is_document(s->split, area, &document);
        if (rc != 0) return rc;
    }
    if (document) {
        if (tag == FB_TAG_RECORD) return split_record(s, entry, area, fb_read_id(&key));
        split_value(s, entry);
    } else if (entry->kind == FB_WRITE_PUT) {
        local_put(s, entry->key, entry->value);
    } else {
        local_delete(s, entry->key);
    }
    return 0;
}

/* An area's own entry may stand behind those of its first records. */
static int area_note(fb_split *split, const fb_write_entry *entry)
{
    fb_reader key = fb_reader_of(entry->key);
    fb_read_u8(&key);
    fb_split_area *added;
    return entry->kind == FB_WRITE_PUT ? area_add(split, fb_read_u32(&key), entry->value, &added)
                                       : 0;
}

int fb_split_write(fb_split *split, uint64_t incarnation, uint64_t w, fb_span set, fb_room *room,
                   fb_span *local, fb_split_record **records, size_t *record_count)
{
    size_t entries = 0, bytes = 0;
    fb_reader count = fb_reader_of(set);
    while (fb_reader_left(&count) > 0) {
        fb_write_entry entry = fb_write_entry_next(&count);
        if (count.failed || entry.key.len + 1 > FB_KEY_BYTES_MAX) return EINVAL;
        if (entry.key.len == FB_AREA_KEY_BYTES && entry.key.p[0] == FB_TAG_AREA) {
            int rc = area_note(split, &entry);
            if (rc != 0) return rc;
        }
        entries++;
        /* At most two entries for one, the second with a redo head and a longer key. */
        bytes += fb_write_entry_bytes(entry.key.len, entry.value.len + FB_RECORD_EMPTY_BYTES) +
                 fb_write_entry_bytes(entry.key.len + 1, FB_REDO_HEAD_BYTES + entry.value.len);
    }
    splitting s = {.split = split, .incarnation = incarnation, .w = w, .room = room};
    s.local = fb_writer_of(fb_room_take(room, bytes), bytes);
    s.records = fb_room_take(room, entries * sizeof *s.records);
    fb_reader r = fb_reader_of(set);
    while (fb_reader_left(&r) > 0) {
        fb_write_entry entry = fb_write_entry_next(&r);
        int rc = split_entry(&s, &entry);
        if (rc != 0) return rc;
    }
    FB_ASSERT(!s.local.failed);
    *local = fb_writer_span(&s.local);
    *records = s.records;
    *record_count = s.record_count;
    return 0;
}
