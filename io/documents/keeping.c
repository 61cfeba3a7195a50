/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/keeping.h"

#include <string.h>

#include "protocol/base/mutant.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

/* The number of the last start: no entry has this key, as none has an empty one. */
static const uint8_t start_key[] = {FB_TAG_REDO};

int fb_keeping_open(fb_keeping *k, const fb_split_store *store, const fb_room_source *source)
{
    *k = (fb_keeping){.split = {.store = *store}};
    k->split.room.source = k->room.source = source;
    k->served_end = &k->served;
    k->doubtful_end = &k->doubtful;
    fb_span stored;
    int rc = store->look(store->user, fb_span_of(start_key, sizeof start_key), &stored);
    if (rc != 0) return rc;
    fb_reader r = fb_reader_of(stored);
    k->start_stored = fb_read_u64(&r);
    k->start = k->start_stored;
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
    size_t bytes = fb_write_entry_bytes(sizeof start_key, 8);
    fb_writer w = fb_writer_of(fb_room_take(&k->room, bytes), bytes);
    fb_write_u8(&w, FB_WRITE_PUT);
    fb_write_u8(&w, 0);
    fb_write_u16(&w, sizeof start_key);
    fb_write_u32(&w, 8);
    fb_write_bytes(&w, start_key, sizeof start_key);
    fb_write_u64(&w, k->start);
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

int fb_keeping_over(fb_keeping *k, bool committed, uint64_t incarnation, uint64_t w, fb_job **job)
{
    int rc = 0;
    *job = NULL;
    if (committed) {
        forget_cleaned(k);
        if (w != 0) {
            rc = fb_job_make(&k->split, incarnation, w, k->touched, k->touched_count, job);
        }
    }
    k->cleaning = 0;
    k->touched = NULL;
    k->touched_count = k->touched_cap = 0;
    fb_room_free(&k->room);
    return rc;
}

void fb_keeping_served(fb_keeping *k, fb_job *job, uint64_t start)
{
    job->next = NULL;
    k->start = start;
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
