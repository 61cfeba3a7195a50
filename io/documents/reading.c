/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/documents/remake.h"
#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/base/mutant.h"
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

typedef enum item_kind {
    ITEM_LOCAL,  /* the local store's alone */
    ITEM_RECORD, /* one record */
    ITEM_VALUE,  /* one value stored apart */
    ITEM_RANGE,  /* records */
} item_kind;

/* Entries of one source, in the order of the item. */
typedef struct entries {
    fb_read_entry *entry; /* value NULL and value_len UINT32_MAX: deleted (redo only) */
    size_t count, cap;
    bool whole; /* there are no others behind them */
} entries;

typedef struct fb_reading_item {
    item_kind kind;
    fb_read_item asked;
    const char *collection;
    uint32_t area;
    fb_id low, high; /* RANGE: first, and first beyond or zeros; else low is the record */
    bool answered;   /* what the document store has of the record is known */
    bool expected;   /* the local store knows that there is such a record */
    entries local, redo, documents;
} fb_reading_item;

static const uint32_t deleted = UINT32_MAX;

static void entries_add(fb_room *room, entries *to, fb_span key, fb_span value, uint32_t value_len)
{
    if (to->count == to->cap) {
        size_t cap = to->cap == 0 ? 4 : 2 * to->cap;
        fb_read_entry *entry = fb_room_take(room, cap * sizeof *entry);
        if (to->count != 0) memcpy(entry, to->entry, to->count * sizeof *entry);
        to->entry = entry;
        to->cap = cap;
    }
    to->entry[to->count++] =
        (fb_read_entry){fb_room_copy(room, key), value_len, fb_room_copy(room, value)};
}

/* What is asked */

static uint32_t area_of(fb_span key)
{
    fb_reader r = fb_reader_of(key);
    fb_read_u8(&r);
    return fb_read_u32(&r);
}

static fb_id id_behind(fb_id id, bool *over)
{
    *over = true;
    for (size_t i = sizeof id.b; *over && i-- > 0;) *over = ++id.b[i] == 0;
    return id;
}

/* The first id that a key, or a beginning of one, lets through; *over: there is none. */
static fb_id id_from(fb_span key, bool *over)
{
    fb_id id = {{0}};
    size_t given = key.len <= 5 ? 0 : key.len - 5;
    if (given > sizeof id.b) given = sizeof id.b;
    if (given != 0) memcpy(id.b, key.p + 5, given);
    *over = false;
    return key.len > FB_RECORD_KEY_BYTES ? id_behind(id, over) : id;
}

/* 0, or EINVAL for what no range of documents answers. */
static int classify(fb_split *split, const fb_read_item *asked, fb_reading_item *out)
{
    uint8_t tag = asked->low.len == 0 ? 0 : asked->low.p[0];
    bool documents = false, over = false;
    *out = (fb_reading_item){.kind = ITEM_LOCAL, .asked = *asked};
    if ((tag != FB_TAG_RECORD && tag != FB_TAG_FIELD) || asked->low.len < 5) return 0;
    out->area = area_of(asked->low);
    int rc = fb_split_is_document(split, out->area, &documents);
    if (rc != 0 || !documents) return rc;
    if (asked->kind == FB_READ_KEY) {
        if (!fb_split_is_record_key(asked->low)) return EINVAL;
        out->kind = tag == FB_TAG_RECORD ? ITEM_RECORD : ITEM_VALUE;
        out->low = id_from(fb_span_of(asked->low.p, FB_RECORD_KEY_BYTES), &over);
    } else {
        /* The core asks for records of one collection. */
        bool bounded = asked->high.len >= 5 && asked->high.p[0] == tag;
        uint32_t end = bounded ? area_of(asked->high) : 0;
        /* To the end of the area is to before the first record of the next one. */
        fb_id first = bounded ? id_from(asked->high, &over) : (fb_id){{0}};
        bool next_area = bounded && end == out->area + 1 && !over && fb_id_is_zero(first);
        if (tag != FB_TAG_RECORD || !(next_area || (bounded && end == out->area))) return EINVAL;
        out->kind = ITEM_RANGE;
        out->low = id_from(asked->low, &over);
        if (over) return EINVAL;
        if (!next_area) {
            out->high = id_from(asked->high, &over);
            if (over) out->high = (fb_id){{0}};
        }
    }
    return fb_split_collection(split, out->area, &out->collection);
}

int fb_reading_needed(fb_split *split, fb_span read_set, bool *needed)
{
    fb_reader r = fb_reader_of(read_set);
    unsigned count = fb_read_u16(&r);
    *needed = false;
    for (unsigned i = 0; i < count && !*needed; i++) {
        fb_read_item asked = fb_read_item_next(&r);
        uint8_t tag = asked.low.len < 5 ? 0 : asked.low.p[0];
        if (r.failed) return EINVAL;
        if (tag != FB_TAG_RECORD && tag != FB_TAG_FIELD) continue;
        int rc = fb_split_is_document(split, area_of(asked.low), needed);
        if (rc != 0) return rc;
    }
    return 0;
}

/* Beginning */

typedef struct redo_gathering {
    fb_reading *reading;
    fb_reading_item *item;
    bool damaged;
} redo_gathering;

static void gather_redo(void *user, fb_span key, fb_span stored)
{
    redo_gathering *g = user;
    fb_redo redo;
    if (!fb_redo_read(stored, &redo)) {
        g->damaged = true;
        return;
    }
    fb_span named = fb_span_of(key.p + 1, key.len - 1);
    bool put = redo.kind == FB_WRITE_PUT;
    entries_add(&g->reading->room, &g->item->redo, named, put ? redo.value : (fb_span){NULL, 0},
                put ? (uint32_t)redo.value.len : deleted);
}

static void reverse(entries *e)
{
    for (size_t i = 0; i < e->count / 2; i++) {
        fb_read_entry other = e->entry[i];
        e->entry[i] = e->entry[e->count - 1 - i];
        e->entry[e->count - 1 - i] = other;
    }
}

static int redo_read(fb_split *split, fb_reading *reading, fb_reading_item *item)
{
    uint8_t low[FB_KEY_BYTES_MAX + 2], high[FB_KEY_BYTES_MAX + 2];
    fb_span from = fb_redo_key(item->asked.low, low), to;
    if (item->kind == ITEM_RANGE) {
        to = fb_redo_key(item->asked.high, high);
    } else {
        to = fb_redo_key(item->asked.low, high);
        high[to.len++] = 0; /* the one key */
    }
    redo_gathering g = {.reading = reading, .item = item};
    int rc = split->store.scan(split->store.user, from, to, gather_redo, &g);
    if ((item->asked.flags & FB_READ_DESCENDING) != 0) reverse(&item->redo);
    return rc == 0 && g.damaged ? EINVAL : rc;
}

static bool local_read(fb_reading *reading, fb_reading_item *item, fb_reader *r)
{
    item->local.whole = fb_read_u8(r) == 1;
    uint32_t count = fb_read_u32(r);
    for (uint32_t i = 0; i < count && !r->failed; i++) {
        fb_read_entry entry = fb_read_entry_next(r);
        entries_add(&reading->room, &item->local, entry.key, entry.value, entry.value_len);
    }
    return !r->failed;
}

static bool needs_document(const fb_reading_item *item)
{
    return (item->kind == ITEM_RECORD || item->kind == ITEM_VALUE) && item->redo.count == 0 &&
           item->local.count == 0 && !item->answered;
}

int fb_reading_begin(fb_split *split, fb_span read_set, fb_span local, fb_reading **out)
{
    fb_room room = {.source = split->room.source};
    fb_reading *reading = fb_room_take_zeroed(&room, sizeof *reading);
    reading->room = room;
    reading->read_set = fb_room_copy(&reading->room, read_set);
    fb_reader asked = fb_reader_of(reading->read_set);
    fb_reader answered = fb_reader_of(local);
    reading->item_count = fb_read_u16(&asked);
    reading->items = fb_room_take(&reading->room, reading->item_count * sizeof *reading->items);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < reading->item_count; i++) {
        fb_reading_item *item = &reading->items[i];
        fb_read_item one = fb_read_item_next(&asked);
        rc = asked.failed ? EINVAL : classify(split, &one, item);
        if (rc == 0 && !local_read(reading, item, &answered)) rc = EINVAL;
        if (rc != 0 || item->kind == ITEM_LOCAL) continue;
        item->collection =
            (const char *)fb_room_copy(&reading->room,
                                       fb_span_of(item->collection, strlen(item->collection) + 1))
                .p;
        rc = redo_read(split, reading, item);
        if (rc == 0 && needs_document(item)) {
            uint8_t fingerprint[16];
            rc = fb_remake_expected(split, item->area, item->low, fingerprint, &item->expected);
        }
    }
    *out = NULL;
    if (rc == 0) {
        *out = reading;
    } else {
        fb_reading_free(reading);
    }
    return rc;
}

void fb_reading_free(fb_reading *reading)
{
    if (reading == NULL) return;
    fb_room room = reading->room; /* it stands in it */
    fb_room_free(&room);
}

/* Asking */

static void notice(const fb_reading *reading, const char *collection, const fb_document *document)
{
    const fb_document_event change = {.kind = FB_DOCUMENT_SEEN,
                                      .collection = collection,
                                      .id = document->id,
                                      .document = document};
    if (reading->noticed != NULL) reading->noticed(reading->noticed_user, &change);
}

static void found_record(fb_reading *reading, fb_reading_item *item, const fb_document *document)
{
    uint8_t key[FB_RECORD_KEY_BYTES];
    fb_span value = document->record;
    if (value.len > item->asked.value_bytes) value.len = item->asked.value_bytes;
    entries_add(&reading->room, &item->documents, fb_key_record(key, item->area, document->id),
                value, (uint32_t)document->record.len);
}

typedef struct asking {
    fb_reading *reading;
    const char *collection;
    fb_reading_item *range; /* NULL: those of `collection` that name one record */
    uint32_t found;
    fb_id last;
    size_t bytes;
} asking;

/* Of one document all items that ask for it. */
static bool found_one(void *user, const fb_document *document)
{
    asking *a = user;
    if (document->edited) notice(a->reading, a->collection, document);
    if (document->record.len == 0 || document->start < a->reading->first) return true;
    for (size_t i = 0; i < a->reading->item_count; i++) {
        fb_reading_item *item = &a->reading->items[i];
        if ((item->kind != ITEM_RECORD && item->kind != ITEM_VALUE) ||
            strcmp(item->collection, a->collection) != 0 || !fb_id_equal(item->low, document->id) ||
            item->documents.count != 0) {
            continue;
        }
        if (item->kind == ITEM_RECORD) {
            found_record(a->reading, item, document);
            continue;
        }
        for (size_t k = 0; k < document->value_count; k++) {
            const fb_document_value *value = &document->values[k];
            uint8_t key[FB_FIELD_KEY_BYTES_MAX];
            fb_span named = fb_key_field(key, item->area, document->id, value->column, value->dot);
            if (!fb_span_equal(named, item->asked.low)) continue;
            fb_span head = value->value;
            if (head.len > item->asked.value_bytes) head.len = item->asked.value_bytes;
            entries_add(&a->reading->room, &item->documents, named, head,
                        (uint32_t)value->value.len);
        }
    }
    return true;
}

static bool has_local(const fb_reading_item *item, fb_id id)
{
    uint8_t key[FB_RECORD_KEY_BYTES];
    fb_span named = fb_key_record(key, item->area, id);
    for (size_t i = 0; i < item->local.count; i++) {
        if (fb_span_equal(item->local.entry[i].key, named)) return true;
    }
    return false;
}

static bool found_in_range(void *user, const fb_document *document)
{
    asking *a = user;
    a->found++;
    a->last = document->id;
    if (document->edited || has_local(a->range, document->id)) {
        notice(a->reading, a->collection, document);
    }
    if (document->record.len == 0 || document->start < a->reading->first) return true;
    found_record(a->reading, a->range, document);
    a->bytes += document->record.len;
    /* Beyond the bound of the answer nothing of it is used, whatever redo entries hide. */
    return a->bytes <= (size_t)a->range->asked.bytes + FB_RECORD_BYTES_MAX_STORED;
}

/* Every record that some item of the same collection still needs, in one question. */
static fb_status ask_collection(fb_reading *reading, size_t first, const fb_documents_ops *ops,
                                fb_documents *documents, char *why, size_t why_len)
{
    const char *collection = reading->items[first].collection;
    fb_id *ids = fb_room_take(&reading->room, reading->item_count * sizeof *ids);
    size_t count = 0;
    for (size_t i = first; i < reading->item_count; i++) {
        const fb_reading_item *item = &reading->items[i];
        if (!needs_document(item) || strcmp(item->collection, collection) != 0) continue;
        bool again = false;
        for (size_t k = 0; k < count && !again; k++) again = fb_id_equal(ids[k], item->low);
        if (!again) ids[count++] = item->low;
    }
    asking a = {.reading = reading, .collection = collection};
    for (size_t i = first; i < reading->item_count; i++) {
        fb_reading_item *item = &reading->items[i];
        if (needs_document(item)) item->documents = (entries){.whole = false};
    }
    FB_TRY(ops->get(documents, collection, ids, count, found_one, &a, why, why_len));
    for (size_t i = first; i < reading->item_count; i++) {
        fb_reading_item *item = &reading->items[i];
        if (needs_document(item) && strcmp(item->collection, collection) == 0) {
            item->answered = true;
        }
    }
    return FB_OK;
}

static fb_status ask_range(fb_reading *reading, fb_reading_item *item, const fb_documents_ops *ops,
                           fb_documents *documents, char *why, size_t why_len)
{
    bool descending = (item->asked.flags & FB_READ_DESCENDING) != 0;
    /* Those that redo entries and deletions stand over, and one to see that there are more. */
    uint64_t limit = (uint64_t)item->asked.items + item->redo.count + item->local.count + 1;
    if (limit > INT32_MAX) limit = INT32_MAX;
    item->documents = (entries){.whole = false};
    fb_id low = item->low, high = item->high;
    for (;;) {
        asking a = {.reading = reading, .collection = item->collection, .range = item};
        FB_TRY(ops->range(documents, item->collection, low, high, descending, (uint32_t)limit,
                          found_in_range, &a, why, why_len));
        item->documents.whole =
            a.found < limit && a.bytes <= (size_t)item->asked.bytes + FB_RECORD_BYTES_MAX_STORED;
        /* Nothing but what is not ours: behind it there may be more. */
        if (item->documents.whole || item->documents.count != 0) return FB_OK;
        bool over = false;
        if (descending) {
            high = a.last;
        } else {
            low = id_behind(a.last, &over);
        }
        if (over) item->documents.whole = true;
        if (over) return FB_OK;
    }
}

/* Answering */

typedef struct answer {
    uint8_t *bytes;
    fb_writer w;
    size_t cap;
} answer;

static void answer_room(answer *a, size_t more)
{
    if (more > a->w.cap - a->w.at) {
        size_t cap = a->w.cap == 0 ? 4096 : a->w.cap;
        while (more > cap - a->w.at) cap *= 2;
        uint8_t *bytes = realloc(a->bytes, cap);
        FB_ASSERT(bytes != NULL);
        a->bytes = bytes;
        a->w.p = bytes;
        a->w.cap = cap;
    }
}

static void answer_entry(answer *a, const fb_read_entry *entry, uint32_t value_bytes)
{
    fb_read_entry given = *entry;
    if (given.value.len > value_bytes) given.value.len = value_bytes;
    answer_room(a, 2 + given.key.len + 4 + 4 + given.value.len);
    fb_read_entry_write(&a->w, &given);
}

static void answer_head(answer *a, bool whole, uint32_t count, size_t at)
{
    a->w.p[at] = whole ? 1 : 0;
    fb_store_be(a->w.p + at + 1, count, 4);
}

static size_t answer_begin(answer *a)
{
    answer_room(a, 5);
    size_t at = a->w.at;
    fb_write_u8(&a->w, 0);
    fb_write_u32(&a->w, 0);
    return at;
}

static void answer_list(answer *a, const entries *e, uint32_t value_bytes)
{
    size_t at = answer_begin(a);
    for (size_t i = 0; i < e->count; i++) answer_entry(a, &e->entry[i], value_bytes);
    answer_head(a, e->whole, (uint32_t)e->count, at);
}

static void answer_key(answer *a, const fb_reading_item *item)
{
    size_t at = answer_begin(a);
    const fb_read_entry *entry = NULL;
    if (item->redo.count != 0 && item->redo.entry[0].value_len != deleted) {
        entry = &item->redo.entry[0];
    } else if (item->local.count != 0) {
        entry = &item->local.entry[0];
    } else if (item->documents.count != 0) {
        entry = &item->documents.entry[0];
    }
    if (entry != NULL) answer_entry(a, entry, item->asked.value_bytes);
    answer_head(a, true, entry != NULL ? 1 : 0, at);
}

/* The next key of the three in the item's direction, or an empty one. */
static fb_span next_key(const fb_reading_item *item, const size_t at[3])
{
    const entries *sources[] = {&item->redo, &item->local, &item->documents};
    bool descending = (item->asked.flags & FB_READ_DESCENDING) != 0;
    fb_span next = {NULL, 0};
    for (size_t i = 0; i < 3; i++) {
        if (at[i] == sources[i]->count) continue;
        fb_span key = sources[i]->entry[at[i]].key;
        int order = next.len == 0 ? -1 : fb_span_compare(key, next);
        if (next.len == 0 || (descending ? order > 0 : order < 0)) next = key;
    }
    return next;
}

/* A source that was cut says nothing about what comes behind its last entry. */
static bool is_known(const fb_reading_item *item, const size_t at[3])
{
    return (item->local.whole || at[1] < item->local.count) &&
           (item->documents.whole || at[2] < item->documents.count);
}

static void answer_range(answer *a, const fb_reading_item *item)
{
    const entries *sources[] = {&item->redo, &item->local, &item->documents};
    size_t at[3] = {0, 0, 0}, start = answer_begin(a) + 5;
    uint32_t count = 0;
    bool whole = true;
    for (;;) {
        fb_span key = next_key(item, at);
        if (!is_known(item, at)) whole = false;
        if (key.len == 0 || !whole) break;
        const fb_read_entry *shown = NULL;
        bool gone = false;
        for (size_t i = 0; i < 3; i++) {
            if (at[i] == sources[i]->count) continue;
            const fb_read_entry *entry = &sources[i]->entry[at[i]];
            if (!fb_span_equal(entry->key, key)) continue;
            at[i]++;
            if (i == 0 && entry->value_len == deleted) {
                gone = true;
            } else if (shown == NULL && !(i == 2 && gone)) {
                shown = entry;
            }
        }
        if (shown == NULL) continue;
        size_t value_len = shown->value.len;
        if (value_len > item->asked.value_bytes) value_len = item->asked.value_bytes;
        size_t bytes = a->w.at - start + 2 + shown->key.len + 4 + 4 + value_len;
        if (count >= item->asked.items || (count > 0 && bytes > item->asked.bytes)) {
            whole = false;
            break;
        }
        answer_entry(a, shown, item->asked.value_bytes);
        count++;
    }
    answer_head(a, whole, count, start - 5);
}

bool fb_reading_lists(const fb_reading *reading)
{
    for (size_t i = 0; i < reading->item_count; i++) {
        if (reading->items[i].kind == ITEM_RANGE) return true;
    }
    return false;
}

bool fb_reading_lists_area(const fb_reading *reading, uint32_t area)
{
    for (size_t i = 0; i < reading->item_count; i++) {
        const fb_reading_item *item = &reading->items[i];
        if (item->kind == ITEM_RANGE && item->area == area) return true;
    }
    return false;
}

static bool is_missing(const fb_reading_item *item)
{
    return item->expected && item->answered && item->documents.count == 0;
}

void fb_reading_missing(const fb_reading *reading,
                        void (*each)(void *user, uint32_t area, fb_id id), void *user)
{
    for (size_t i = 0; i < reading->item_count; i++) {
        const fb_reading_item *item = &reading->items[i];
        if (is_missing(item)) each(user, item->area, item->low);
    }
}

fb_status fb_reading_end(fb_reading *reading, const fb_documents_ops *ops, fb_documents *documents,
                         fb_span *out, char *why, size_t why_len)
{
    for (size_t i = 0; i < reading->item_count; i++) {
        fb_reading_item *item = &reading->items[i];
        if (item->kind == ITEM_RANGE) {
            FB_TRY(ask_range(reading, item, ops, documents, why, why_len));
        } else if (needs_document(item)) {
            FB_TRY(ask_collection(reading, i, ops, documents, why, why_len));
        }
    }
    for (size_t i = 0; i < reading->item_count && !reading->sure; i++) {
        if (!is_missing(&reading->items[i]) || MUTANT(GONE_IS_ABSENT, false, true)) continue;
        return FB_ERR_NOT_FOUND;
    }
    answer a = {.bytes = NULL};
    answer_room(&a, 8);
    fb_write_u64(&a.w, reading->incarnation);
    for (size_t i = 0; i < reading->item_count; i++) {
        const fb_reading_item *item = &reading->items[i];
        if (item->kind == ITEM_LOCAL) answer_list(&a, &item->local, item->asked.value_bytes);
        if (item->kind == ITEM_RECORD || item->kind == ITEM_VALUE) answer_key(&a, item);
        if (item->kind == ITEM_RANGE) answer_range(&a, item);
    }
    *out = fb_room_copy(&reading->room, fb_writer_span(&a.w));
    free(a.bytes);
    return FB_OK;
}
