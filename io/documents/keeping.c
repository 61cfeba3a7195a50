/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/keeping.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/mutant.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

/* The numbers of the last and of the first start: no entry has this key, as none has an empty one.
 * Older stores have that of the last one alone. */
static const uint8_t start_key[] = {FB_TAG_REDO};

int fb_keeping_open(fb_keeping *k, const fb_split_store *store, const fb_room_source *source)
{
    *k = (fb_keeping){.split = {.store = *store}};
    k->split.room.source = k->room.source = k->remake_room.source = source;
    k->served_end = &k->served;
    k->doubtful_end = &k->doubtful;
    fb_span stored;
    int rc = store->look(store->user, fb_span_of(start_key, sizeof start_key), &stored);
    if (rc != 0) return rc;
    fb_reader r = fb_reader_of(stored);
    k->start_stored = fb_read_u64(&r);
    k->start = k->start_stored;
    k->first = fb_reader_left(&r) != 0 ? fb_read_u64(&r) : 0;
    return 0;
}

static void jobs_free(fb_job *jobs)
{
    while (jobs != NULL) {
        fb_job *next = jobs->next;
        fb_job_free(jobs);
        jobs = next;
    }
}

void fb_keeping_free(fb_keeping *k)
{
    jobs_free(k->served);
    jobs_free(k->doubtful);
    fb_room_free(&k->room);
    fb_room_free(&k->remake_room);
    fb_split_free(&k->split);
}

/* A group */

int fb_keeping_split(fb_keeping *k, uint64_t incarnation, uint64_t w, fb_span set, fb_span *local)
{
    fb_split_record *records;
    size_t count;
    int rc = fb_split_write(&k->split, incarnation, w, set, &k->room, local, &records, &count);
    if (rc != 0 || count == 0) return rc;
    if (k->touched_count + count > k->touched_cap) {
        size_t cap = 2 * (k->touched_count + count);
        fb_split_record *touched = fb_room_take(&k->room, cap * sizeof *touched);
        if (k->touched_count != 0) {
            memcpy(touched, k->touched, k->touched_count * sizeof *touched);
        }
        k->touched = touched;
        k->touched_cap = cap;
    }
    memcpy(k->touched + k->touched_count, records, count * sizeof *records);
    k->touched_count += count;
    return 0;
}

static fb_span start_entry(fb_keeping *k)
{
    size_t bytes = fb_write_entry_bytes(sizeof start_key, 16);
    fb_writer w = fb_writer_of(fb_room_take(&k->room, bytes), bytes);
    fb_write_u8(&w, FB_WRITE_PUT);
    fb_write_u8(&w, 0);
    fb_write_u16(&w, sizeof start_key);
    fb_write_u32(&w, 16);
    fb_write_bytes(&w, start_key, sizeof start_key);
    fb_write_u64(&w, k->start);
    fb_write_u64(&w, k->first);
    while (w.at < bytes) fb_write_u8(&w, 0);
    return fb_writer_span(&w);
}

int fb_keeping_clean(fb_keeping *k, fb_span *set)
{
    size_t bytes = 0, parts = 0;
    fb_span *part = fb_room_take(&k->room, (k->served_count + 1) * sizeof *part);
    *set = (fb_span){NULL, 0};
    k->cleaning = 0;
    if (k->start != k->start_stored) part[parts++] = start_entry(k);
    for (const fb_job *job = k->served; job != NULL; job = job->next) {
        int rc = fb_job_served(&k->split, job, &k->room, &part[parts]);
        if (rc != 0) return rc;
        parts += MUTANT(DOC_REDO_STAYS, 1, 0);
        k->cleaning++;
    }
    for (size_t i = 0; i < parts; i++) bytes += part[i].len;
    if (bytes == 0) return 0;
    fb_writer w = fb_writer_of(fb_room_take(&k->room, bytes), bytes);
    for (size_t i = 0; i < parts; i++) fb_write_span(&w, part[i]);
    *set = fb_writer_span(&w);
    return 0;
}

static bool is_in_doubt(const fb_job *job)
{
    for (size_t i = 0; i < job->record_count; i++) {
        if (job->records[i].doubt_until_ms != 0) return true;
    }
    return false;
}

static void forget_cleaned(fb_keeping *k)
{
    k->start_stored = k->start;
    for (; k->cleaning > 0; k->cleaning--, k->served_count--) {
        fb_job *job = k->served;
        k->served = job->next;
        job->next = NULL;
        if (is_in_doubt(job)) {
            *k->doubtful_end = job;
            k->doubtful_end = &job->next;
        } else {
            fb_job_free(job);
        }
    }
    if (k->served == NULL) k->served_end = &k->served;
}

/* Making again */

bool fb_keeping_misses(const fb_keeping *k)
{
    return k->missing_at < k->missing_count;
}

bool fb_keeping_wants_remaking(const fb_keeping *k)
{
    return fb_keeping_misses(k) ||
           (k->area_at < k->area_count && k->making_again < FB_KEEPING_REMAKES_MAX);
}

void fb_keeping_missing(fb_keeping *k, fb_split_record record)
{
    for (size_t i = k->missing_at; i < k->missing_count; i++) {
        const fb_split_record *known = &k->missing[i];
        if (known->area == record.area && fb_id_equal(known->id, record.id)) return;
    }
    if (k->missing_count == k->missing_cap) {
        size_t cap = k->missing_cap == 0 ? 16 : 2 * k->missing_cap;
        fb_split_record *missing = fb_room_take(&k->remake_room, cap * sizeof *missing);
        if (k->missing_count != 0) {
            memcpy(missing, k->missing, k->missing_count * sizeof *missing);
        }
        k->missing = missing;
        k->missing_cap = cap;
    }
    k->missing[k->missing_count++] = record;
}

int fb_keeping_dropped(fb_keeping *k, uint32_t area)
{
    bool documents;
    int rc = fb_split_is_document(&k->split, area, &documents);
    if (rc != 0 || !documents || MUTANT(DROPPED_IS_LEFT, false, true)) return rc;
    if (k->area_count == k->area_cap) {
        size_t cap = k->area_cap == 0 ? 16 : 2 * k->area_cap;
        uint32_t *areas = fb_room_take(&k->remake_room, cap * sizeof *areas);
        if (k->area_count != 0) memcpy(areas, k->areas, k->area_count * sizeof *areas);
        k->areas = areas;
        k->area_cap = cap;
    }
    /* One that is being made goes from its beginning once more: some of it may be gone again. */
    k->areas[k->area_count++] = area;
    k->drops++;
    return 0;
}

typedef struct dropping {
    fb_keeping *k;
    uint32_t *areas;
    size_t count, cap;
} dropping;

static void drop_area(void *user, fb_span key, fb_span stored)
{
    dropping *d = user;
    fb_reader r = fb_reader_of(key);
    (void)stored;
    fb_read_u8(&r);
    uint32_t area = fb_read_u32(&r);
    if (!fb_reader_done(&r)) return;
    if (d->count == d->cap) {
        size_t cap = d->cap == 0 ? 16 : 2 * d->cap;
        uint32_t *areas = fb_room_take(&d->k->remake_room, cap * sizeof *areas);
        if (d->count != 0) memcpy(areas, d->areas, d->count * sizeof *areas);
        d->areas = areas;
        d->cap = cap;
    }
    d->areas[d->count++] = area;
}

int fb_keeping_dropped_all(fb_keeping *k)
{
    static const uint8_t low[] = {FB_TAG_AREA}, high[] = {FB_TAG_AREA + 1};
    dropping d = {.k = k};
    int rc = k->split.store.scan(k->split.store.user, fb_span_of(low, sizeof low),
                                 fb_span_of(high, sizeof high), drop_area, &d);
    for (size_t i = 0; rc == 0 && i < d.count; i++) {
        const char *name;
        /* A space that was dropped leaves its areas behind. */
        if (fb_split_collection(&k->split, d.areas[i], &name) != 0) continue;
        rc = fb_keeping_dropped(k, d.areas[i]);
    }
    return rc;
}

int fb_keeping_read(fb_keeping *k, fb_span read_set, fb_span local, fb_reading **out)
{
    int rc = fb_reading_begin(&k->split, read_set, local, out);
    if (rc == 0) (*out)->drops = k->drops;
    return rc;
}

bool fb_keeping_lacks(const fb_keeping *k, const fb_reading *reading)
{
    bool lacks = reading->drops != k->drops && fb_reading_lists(reading);
    for (size_t i = k->area_at; i < k->area_count && !lacks; i++) {
        lacks = fb_reading_lists_area(reading, k->areas[i]);
    }
    return MUTANT(LIST_GOES_ON, lacks, false);
}

static int by_id(const void *a, const void *b)
{
    return fb_id_compare(*(const fb_id *)a, *(const fb_id *)b);
}

void fb_keeping_remake(fb_keeping *k, uint64_t incarnation, uint64_t applied, fb_span *set)
{
    *set = (fb_span){NULL, 0};
    if (!fb_keeping_wants_remaking(k)) return;
    fb_id *ids = NULL;
    k->makes = true;
    k->making = 0;
    k->remaking = k->remake;
    if (fb_keeping_misses(k)) {
        /* Those of one area, which is that of the first. */
        const fb_split_record *first = &k->missing[k->missing_at];
        size_t most = k->missing_count - k->missing_at;
        ids = fb_room_take(&k->room, most * sizeof *ids);
        while (k->making < most && first[k->making].area == first->area) {
            ids[k->making] = first[k->making].id;
            k->making++;
        }
        qsort(ids, k->making, sizeof *ids, by_id);
        k->remaking = (fb_remake){.area = first->area};
    } else {
        k->remaking.area = k->areas[k->area_at];
    }
    uint64_t remade = k->remaking.remade, not_equal = k->remaking.not_equal;
    fb_span made, local = {NULL, 0};
    int rc = fb_remake_next(&k->split, &k->remaking, ids, k->making, &k->room, &made);
    if (rc == 0 && made.len != 0) rc = fb_keeping_split(k, incarnation, applied, made, &local);
    if (rc == 0) {
        k->remade += k->remaking.remade - remade;
        k->not_equal += k->remaking.not_equal - not_equal;
        *set = local;
    } else {
        /* Nothing can be made of what cannot be read; that is told by whoever reads it. */
        k->remaking.over = true;
    }
}

static void remake_over(fb_keeping *k)
{
    if (!k->makes) return;
    if (k->making != 0) {
        k->missing_at += k->making;
    } else {
        k->remake = k->remaking;
        if (k->remake.over) k->area_at++;
        if (k->remake.over) k->remake = (fb_remake){.area = 0};
    }
    if (fb_keeping_misses(k) || k->area_at < k->area_count) return;
    fb_room_free(&k->remake_room);
    k->missing = NULL;
    k->missing_count = k->missing_cap = k->missing_at = 0;
    k->areas = NULL;
    k->area_count = k->area_cap = k->area_at = 0;
}

int fb_keeping_over(fb_keeping *k, bool committed, uint64_t incarnation, uint64_t w, fb_job **job)
{
    int rc = 0;
    *job = NULL;
    if (committed) {
        forget_cleaned(k);
        remake_over(k);
        if (w != 0 || k->touched_count != 0) {
            rc = fb_job_make(&k->split, incarnation, w, k->touched, k->touched_count, job);
        }
        if (*job != NULL && k->makes && k->making == 0) {
            (*job)->remade = true;
            k->making_again++;
        }
    }
    k->cleaning = 0;
    k->makes = false;
    k->touched = NULL;
    k->touched_count = k->touched_cap = 0;
    fb_room_free(&k->room);
    return rc;
}

void fb_keeping_served(fb_keeping *k, fb_job *job, uint64_t start)
{
    job->next = NULL;
    if (job->remade) k->making_again--;
    job->remade = false;
    k->start = start;
    if (k->start_stored == 0 && k->first == 0) k->first = start;
    *k->served_end = job;
    k->served_end = &job->next;
    k->served_count++;
}

bool fb_keeping_wants_cleaning(const fb_keeping *k, bool closing)
{
    return k->served_count >= FB_KEEPING_SERVED_MAX || (closing && k->served_count != 0);
}

/* Doubt: what became of some puts of these jobs was seen late, if it was. */

static uint64_t over_at(const fb_job *job)
{
    uint64_t at_ms = 0;
    for (size_t i = 0; i < job->record_count; i++) {
        if (job->records[i].doubt_until_ms > at_ms) at_ms = job->records[i].doubt_until_ms;
    }
    return at_ms;
}

uint64_t fb_keeping_again_at(const fb_keeping *k)
{
    return k->doubtful == NULL ? UINT64_MAX : over_at(k->doubtful);
}

int fb_keeping_again(fb_keeping *k, uint64_t now_ms, fb_job **job)
{
    *job = NULL;
    if (now_ms < fb_keeping_again_at(k)) return 0;
    fb_job *over = k->doubtful;
    k->doubtful = over->next;
    if (k->doubtful == NULL) k->doubtful_end = &k->doubtful;
    size_t count = 0;
    fb_split_record *records = fb_room_take(&over->room, over->record_count * sizeof *records);
    for (size_t i = 0; i < over->record_count; i++) {
        if (over->records[i].doubt_until_ms == 0) continue;
        records[count++] = (fb_split_record){over->records[i].area, over->records[i].id};
    }
    int rc = fb_job_make(&k->split, 0, 0, records, count, job);
    fb_job_free(over);
    return rc;
}
