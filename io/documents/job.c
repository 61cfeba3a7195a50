/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/base/mutant.h"
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

/* Making */

static fb_job_redo *redo_add(fb_job *job, fb_span key, const fb_redo *redo)
{
    if ((job->redo_count & (job->redo_count - 1)) == 0) {
        size_t cap = job->redo_count == 0 ? 1 : 2 * job->redo_count;
        fb_job_redo *more = fb_room_take(&job->room, cap * sizeof *more);
        if (job->redo_count != 0) memcpy(more, job->redo, job->redo_count * sizeof *more);
        job->redo = more;
    }
    fb_job_redo *added = &job->redo[job->redo_count++];
    *added = (fb_job_redo){fb_room_copy(&job->room, key), redo->incarnation, redo->w};
    return added;
}

typedef struct gathering {
    fb_job *job;
    fb_job_record *record;
    size_t cap;
    bool damaged;
} gathering;

/* A value: its key names record, column and dot. */
static void value_add(gathering *g, fb_span key, fb_span stored)
{
    fb_reader r = fb_reader_of(key);
    fb_read_bytes(&r, FB_RECORD_KEY_BYTES);
    fb_span column = fb_read_span16(&r);
    fb_span dot = fb_read_bytes(&r, FB_DOT_BYTES);
    if (!fb_reader_done(&r)) {
        g->damaged = true;
        return;
    }
    fb_job_record *record = g->record;
    if (record->value_count == g->cap) {
        size_t cap = g->cap == 0 ? 4 : 2 * g->cap;
        fb_document_value *values = fb_room_take(&g->job->room, cap * sizeof *values);
        if (g->cap != 0) memcpy(values, record->values, g->cap * sizeof *values);
        record->values = values;
        g->cap = cap;
    }
    fb_document_value *value = &record->values[record->value_count++];
    value->column = fb_room_copy(&g->job->room, column);
    memcpy(value->dot, dot.p, FB_DOT_BYTES);
    value->value = fb_room_copy(&g->job->room, stored);
}

static void gather_redo(void *user, fb_span key, fb_span stored)
{
    gathering *g = user;
    fb_redo redo;
    if (!fb_redo_read(stored, &redo)) {
        g->damaged = true;
        return;
    }
    value_add(g, fb_span_of(key.p + 1, key.len - 1), redo.value);
    redo_add(g->job, key, &redo);
    g->record->redo_count++;
}

/* From the time before this collection was one of documents. */
static void gather_local(void *user, fb_span key, fb_span stored)
{
    value_add(user, key, stored);
}

static int record_add(fb_split *split, fb_job *job, const fb_split_record *touched)
{
    uint8_t key[FB_RECORD_KEY_BYTES], low[1 + FB_RECORD_KEY_BYTES], high[1 + FB_RECORD_KEY_BYTES];
    fb_job_record *record = &job->records[job->record_count];
    *record = (fb_job_record){.area = touched->area, .id = touched->id};
    record->redo_first = job->redo_count;
    fb_span named = fb_redo_key(fb_key_record(key, touched->area, touched->id), low), stored;
    int rc = split->store.look(split->store.user, named, &stored);
    if (rc != 0 || stored.len == 0) return rc;
    fb_redo redo;
    if (!fb_redo_read(stored, &redo)) return EINVAL;
    if (redo.kind == FB_WRITE_PUT) record->record = fb_room_copy(&job->room, redo.value);
    record->incarnation = redo.incarnation;
    record->w = redo.w;
    redo_add(job, named, &redo);
    record->redo_count++;
    const char *collection;
    rc = fb_split_collection(split, touched->area, &collection);
    if (rc != 0) return rc;
    record->collection =
        (const char *)fb_room_copy(&job->room, fb_span_of(collection, strlen(collection) + 1)).p;
    /* The values of the record: from its key with another tag to before the next record's. */
    low[1] = FB_TAG_FIELD;
    memcpy(high, low, sizeof high);
    bool last = true;
    for (size_t i = sizeof high; last && i-- > 0;) last = ++high[i] == 0;
    gathering g = {.job = job, .record = record};
    rc = split->store.scan(split->store.user, fb_span_of(low, sizeof low),
                           fb_span_of(high, sizeof high), gather_redo, &g);
    if (rc == 0) {
        rc = split->store.scan(split->store.user, fb_span_of(low + 1, sizeof low - 1),
                               fb_span_of(high + 1, sizeof high - 1), gather_local, &g);
    }
    if (rc != 0 || g.damaged) return rc != 0 ? rc : EINVAL;
    job->record_count++;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const fb_split_record *x = a, *y = b;
    if (x->area != y->area) return x->area < y->area ? -1 : 1;
    return fb_id_compare(x->id, y->id);
}

int fb_job_make(fb_split *split, uint64_t incarnation, uint64_t w, const fb_split_record *records,
                size_t count, fb_job **out)
{
    fb_room room = {.source = split->room.source};
    fb_job *job = fb_room_take_zeroed(&room, sizeof *job);
    job->room = room;
    *out = NULL;
    job->incarnation = incarnation;
    job->w = w;
    int rc = 0;
    if (count > 0) {
        fb_split_record *sorted = fb_room_take(&job->room, count * sizeof *sorted);
        memcpy(sorted, records, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare);
        job->records = fb_room_take(&job->room, count * sizeof *job->records);
        for (size_t i = 0; rc == 0 && i < count; i++) {
            bool again = i > 0 && compare(&sorted[i - 1], &sorted[i]) == 0;
            if (!again) rc = record_add(split, job, &sorted[i]);
        }
    }
    if (rc == 0) {
        *out = job;
    } else {
        fb_job_free(job);
    }
    return rc;
}

typedef struct finding {
    fb_split_record *records;
    size_t count, cap;
} finding;

static void find_record(void *user, fb_span key, fb_span stored)
{
    finding *f = user;
    (void)stored;
    fb_reader r = fb_reader_of(key);
    fb_read_bytes(&r, 2);
    uint32_t area = fb_read_u32(&r);
    fb_id id = fb_read_id(&r);
    if (f->count == f->cap) {
        f->cap = f->cap == 0 ? 64 : 2 * f->cap;
        f->records = realloc(f->records, f->cap * sizeof *f->records);
        FB_ASSERT(f->records != NULL);
    }
    f->records[f->count++] = (fb_split_record){area, id};
}

int fb_job_found(fb_split *split, fb_job **out)
{
    static const uint8_t low[] = {FB_TAG_REDO, FB_TAG_RECORD};
    static const uint8_t high[] = {FB_TAG_REDO, FB_TAG_RECORD + 1};
    finding f = {NULL, 0, 0};
    *out = NULL;
    int rc = split->store.scan(split->store.user, fb_span_of(low, sizeof low),
                               fb_span_of(high, sizeof high), find_record, &f);
    if (rc == 0 && f.count > 0) rc = fb_job_make(split, 0, 0, f.records, f.count, out);
    if (*out != NULL) (*out)->found = true;
    free(f.records);
    return rc;
}

void fb_job_free(fb_job *job)
{
    if (job == NULL) return;
    fb_room room = job->room; /* it stands in it */
    fb_room_free(&room);
}

int fb_job_served(fb_split *split, const fb_job *job, fb_room *room, fb_span *set)
{
    size_t bytes = 0;
    for (size_t i = 0; i < job->redo_count; i++) {
        bytes += fb_write_entry_bytes(job->redo[i].key.len, 0);
    }
    fb_writer w = fb_writer_of(fb_room_take(room, bytes), bytes);
    for (size_t i = 0; i < job->record_count; i++) {
        const fb_job_record *record = &job->records[i];
        if (record->outcome != FB_DOCUMENT_KEPT || record->doubt_until_ms != 0) continue;
        for (size_t k = 0; k < record->redo_count; k++) {
            const fb_job_redo *served = &job->redo[record->redo_first + k];
            fb_span stored;
            fb_redo redo;
            int rc = split->store.look(split->store.user, served->key, &stored);
            if (rc != 0) return rc;
            if (stored.len == 0 || !fb_redo_read(stored, &redo)) continue;
            bool later = redo.incarnation != served->incarnation || redo.w != served->w;
            if (MUTANT(DOC_LATER_REDO_TAKEN, later, false)) continue;
            fb_write_u8(&w, FB_WRITE_DELETE);
            fb_write_u8(&w, 0);
            fb_write_u16(&w, (uint16_t)served->key.len);
            fb_write_u32(&w, 0);
            fb_write_span(&w, served->key);
            while (w.at % 8 != 0) fb_write_u8(&w, 0);
        }
    }
    FB_ASSERT(!w.failed);
    *set = fb_writer_span(&w);
    return 0;
}

/* Composing */

static const fb_document_value *value_in(const fb_document_value *values, size_t count,
                                         fb_span column, const uint8_t dot[FB_DOT_BYTES])
{
    for (size_t i = 0; i < count; i++) {
        if (memcmp(values[i].dot, dot, FB_DOT_BYTES) == 0 &&
            fb_span_equal(values[i].column, column)) {
            return &values[i];
        }
    }
    return NULL;
}

/* Goes through the siblings whose values are stored apart. */
typedef bool (*apart_visit)(void *user, fb_span column, const uint8_t dot[FB_DOT_BYTES]);

static bool each_apart(fb_span stored, apart_visit visit, void *user)
{
    fb_record record;
    if (stored.len == 0 || fb_record_decode(stored, &record) != FB_OK) return true;
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        fb_record_field siblings = field;
        for (uint32_t i = 0; i < field.count; i++) {
            fb_sibling sibling = fb_record_sibling(&siblings, i);
            const uint8_t *dot = field.siblings + (size_t)i * FB_SIBLING_BYTES;
            if (sibling.apart && !visit(user, field.name, dot)) return false;
        }
    }
    return true;
}

static bool is_here(void *user, fb_span column, const uint8_t dot[FB_DOT_BYTES])
{
    const fb_job_record *record = user;
    return value_in(record->values, record->value_count, column, dot) != NULL;
}

bool fb_job_record_needs_document(const fb_job_record *record)
{
    return !each_apart(record->record, is_here, (void *)(uintptr_t)record);
}

typedef struct composing {
    const fb_job_record *record;
    const fb_document *now;
    fb_document_value *values;
    size_t count;
} composing;

static bool compose_value(void *user, fb_span column, const uint8_t dot[FB_DOT_BYTES])
{
    composing *c = user;
    const fb_document_value *value =
        value_in(c->record->values, c->record->value_count, column, dot);
    if (value == NULL && c->now != NULL) {
        value = value_in(c->now->values, c->now->value_count, column, dot);
    }
    if (value != NULL) c->values[c->count++] = *value;
    return true;
}

static bool count_value(void *user, fb_span column, const uint8_t dot[FB_DOT_BYTES])
{
    (void)column;
    (void)dot;
    ++*(size_t *)user;
    return true;
}

void fb_job_compose(const fb_job_record *record, const fb_document *now, fb_room *room,
                    fb_document *out)
{
    *out = (fb_document){.collection = record->collection, .id = record->id};
    out->record = record->record;
    size_t apart = 0;
    each_apart(record->record, count_value, &apart);
    composing c = {.record = record, .now = now};
    c.values = fb_room_take(room, apart * sizeof *c.values);
    each_apart(record->record, compose_value, &c);
    out->values = c.values;
    out->value_count = c.count;
}
