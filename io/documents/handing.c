/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/handing.h"

#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/mutant.h"

typedef struct fb_handing_doubt {
    struct fb_handing_doubt *next;
    uint32_t area;
    fb_id id;
    uint64_t until_ms;
} fb_handing_doubt;

void fb_handing_init(fb_handing *h, uint64_t start, uint64_t first, fb_handing_show show,
                     const fb_room_source *source)
{
    *h = (fb_handing){
        .show = show, .start = start, .first = first, .pause_ms = FB_HANDING_RETRY_MIN_MS};
    h->doubt_ms = FB_HANDING_DOUBT_MS;
    h->jobs_end = &h->jobs;
    h->room.source = h->doubts_room.source = source;
}

void fb_handing_free(fb_handing *h)
{
    fb_job_free(h->job);
    while (h->jobs != NULL) {
        fb_job *next = h->jobs->next;
        fb_job_free(h->jobs);
        h->jobs = next;
    }
    fb_room_free(&h->room);
    fb_room_free(&h->doubts_room);
    fb_handing_init(h, h->start, h->first, h->show, h->room.source);
}

void fb_handing_job(fb_handing *h, fb_job *job)
{
    bool behind = MUTANT(DOC_JOBS_SWAPPED, true, h->jobs == NULL);
    job->next = behind ? NULL : h->jobs;
    if (behind) {
        *h->jobs_end = job;
        h->jobs_end = &job->next;
    } else {
        h->jobs = job;
    }
}

/* Doubt */

static void doubt(fb_handing *h, const fb_job_record *record, uint64_t now_ms)
{
    fb_handing_doubt *d = h->doubts;
    while (d != NULL && (d->area != record->area || !fb_id_equal(d->id, record->id))) d = d->next;
    if (d == NULL) {
        d = h->doubts_free;
        if (d != NULL) {
            h->doubts_free = d->next;
        } else {
            d = fb_room_take(&h->doubts_room, sizeof *d);
        }
        *d = (fb_handing_doubt){.next = h->doubts, .area = record->area, .id = record->id};
        h->doubts = d;
    }
    d->until_ms = now_ms + h->doubt_ms;
}

/* Until when the record is in doubt; 0: it is not. What is over is forgotten on the way. */
static uint64_t doubt_of(fb_handing *h, const fb_job_record *record, uint64_t now_ms)
{
    uint64_t until_ms = 0;
    for (fb_handing_doubt **at = &h->doubts; *at != NULL;) {
        fb_handing_doubt *d = *at;
        if (d->until_ms <= now_ms) {
            *at = d->next;
            d->next = h->doubts_free;
            h->doubts_free = d;
            continue;
        }
        if (d->area == record->area && fb_id_equal(d->id, record->id)) until_ms = d->until_ms;
        at = &d->next;
    }
    return until_ms;
}

/* A try */

static void try_begin(fb_handing *h)
{
    fb_room_free(&h->room);
    size_t count = h->job->record_count;
    h->now = fb_room_take_zeroed(&h->room, count * sizeof *h->now);
    h->looked = fb_room_take_zeroed(&h->room, count * sizeof *h->looked);
    h->places = fb_room_take(&h->room, count * sizeof *h->places);
    h->ids = fb_room_take(&h->room, count * sizeof *h->ids);
    h->changes = fb_room_take(&h->room, count * sizeof *h->changes);
}

static void job_begin(fb_handing *h, uint64_t now_ms)
{
    h->job = h->jobs;
    h->jobs = h->job->next;
    if (h->jobs == NULL) h->jobs_end = &h->jobs;
    h->job->next = NULL;
    bool found = h->job->found && MUTANT(DOC_DEAD_FORGOTTEN, true, false);
    for (size_t i = 0; found && i < h->job->record_count; i++) {
        doubt(h, &h->job->records[i], now_ms);
    }
    try_begin(h);
}

/* It is tried again after a pause that doubles. */
static void failed(fb_handing *h, uint64_t now_ms)
{
    h->pause_until_ms = now_ms + h->pause_ms;
    h->pause_ms *= 2;
    uint32_t most_ms = MUTANT(DOC_PAUSE_GROWS, FB_HANDING_RETRY_MAX_MS, UINT32_MAX / 4);
    if (h->pause_ms > most_ms) h->pause_ms = most_ms;
    if (h->job != NULL) try_begin(h);
}

static void succeeded(fb_handing *h)
{
    h->pause_ms = FB_HANDING_RETRY_MIN_MS;
}

/* The fence is gone, and with it who raised the last one: another process may have, and go on
 * replacing documents of this start until it asks. So nothing of the job counts that was put before
 * another fence; behind that one, which whoever came meanwhile gives way to, it is put again. */
static void begin_anew(fb_handing *h)
{
    if (h->job == NULL || MUTANT(DOC_GONE_IS_KEPT, false, true)) return;
    for (size_t i = 0; i < h->job->record_count; i++) {
        h->job->records[i].outcome = FB_DOCUMENT_OPEN;
    }
    try_begin(h);
}

static bool is_of(const fb_job_record *record, const char *collection)
{
    return strcmp(record->collection, collection) == 0;
}

/* The open records of one collection that pass; false: there are none. */
static bool gather(fb_handing *h, bool to_look)
{
    const fb_job *job = h->job;
    h->collection = NULL;
    h->count = 0;
    for (size_t i = 0; i < job->record_count; i++) {
        const fb_job_record *record = &job->records[i];
        if (record->outcome != FB_DOCUMENT_OPEN) continue;
        if (to_look && (h->looked[i] || !fb_job_record_needs_document(record))) continue;
        if (h->collection != NULL && !is_of(record, h->collection)) continue;
        h->collection = record->collection;
        h->ids[h->count] = record->id;
        h->places[h->count++] = i;
    }
    return h->count != 0;
}

static void compose(fb_handing *h, uint64_t now_ms, int64_t horizon_us)
{
    for (size_t i = 0; i < h->count; i++) {
        const fb_job_record *record = &h->job->records[h->places[i]];
        fb_document_change *change = &h->changes[i];
        *change =
            (fb_document_change){.version = {h->start, MUTANT(DOC_NUMBER_STANDS, ++h->number, 1)}};
        fb_job_compose(record, h->now[h->places[i]], &h->room, &change->document);
        if (h->show != NULL) h->show(record, horizon_us, &h->room, &change->document);
        change->marks = record->record.len == 0 && doubt_of(h, record, now_ms) != 0 &&
                        MUTANT(DOC_NO_MARK, true, false);
    }
}

static void settle(fb_handing *h, uint64_t now_ms)
{
    for (size_t i = 0; i < h->job->record_count; i++) {
        fb_job_record *record = &h->job->records[i];
        record->doubt_until_ms = doubt_of(h, record, now_ms);
    }
}

void fb_handing_next(fb_handing *h, uint64_t now_ms, int64_t horizon_us, fb_handing_call *out)
{
    *out = (fb_handing_call){.kind = FB_HANDING_IDLE, .number = h->start};
    h->asked_ms = now_ms;
    if (h->locked) {
        out->kind = FB_HANDING_LOCKED;
        return;
    }
    if (now_ms < h->pause_until_ms) {
        out->kind = FB_HANDING_PAUSE;
        out->at_ms = h->pause_until_ms;
        return;
    }
    if (!h->fenced) {
        out->kind = FB_HANDING_FENCE;
        return;
    }
    if (h->job == NULL && h->jobs == NULL) return;
    uint64_t lease_ms = MUTANT(DOC_LEASE_ENDLESS, FB_HANDING_LEASE_MS, UINT64_MAX);
    const fb_job *job = h->job != NULL ? h->job : h->jobs;
    if (job->record_count != 0 && now_ms < h->write_from_ms) {
        out->kind = FB_HANDING_PAUSE;
        out->at_ms = h->write_from_ms;
        return;
    }
    if (h->job == NULL) job_begin(h, now_ms);
    if (gather(h, true)) {
        out->kind = FB_HANDING_GET;
    } else if (gather(h, false)) {
        compose(h, now_ms, horizon_us);
        out->kind = FB_HANDING_PUT;
    } else if (h->job->record_count != 0 && now_ms - h->confirmed_ms >= lease_ms) {
        out->kind = FB_HANDING_CONFIRM;
    } else {
        settle(h, now_ms);
        out->kind = FB_HANDING_DONE;
        out->job = h->job;
        h->job = NULL;
        fb_room_free(&h->room);
        return;
    }
    out->collection = h->collection;
    out->ids = h->ids;
    out->changes = h->changes;
    out->count = h->count;
}

void fb_handing_failed(fb_handing *h, uint64_t now_ms)
{
    failed(h, now_ms);
}

bool fb_handing_may_read(const fb_handing *h)
{
    return MUTANT(DOC_READ_UNFENCED, h->fenced, true);
}

/* Answers */

void fb_handing_fenced(fb_handing *h, uint64_t now_ms, fb_status status, uint64_t number)
{
    if (status != FB_OK) {
        failed(h, now_ms);
        return;
    }
    succeeded(h);
    h->fenced = true;
    if (h->start == 0 && h->first == 0) h->first = MUTANT(LOST_IS_READ, number, 0);
    h->start = MUTANT(DOC_START_STANDS, number, h->start + (h->start == 0));
    h->confirmed_ms = h->asked_ms;
    /* Whoever was fenced before may believe so long that it still is. */
    h->write_from_ms = now_ms + FB_HANDING_LEASE_OVER_MS;
}

void fb_handing_confirmed(fb_handing *h, uint64_t now_ms, fb_status status, uint64_t number)
{
    if (status != FB_OK) {
        failed(h, now_ms);
        return;
    }
    succeeded(h);
    h->confirmed_ms = h->asked_ms;
    h->fenced = number != 0;
    if (!h->fenced) {
        begin_anew(h);
    } else if (number != h->start) {
        h->locked = true;
    }
}

static fb_document *copy(fb_room *room, const fb_document *document)
{
    fb_document *kept = fb_room_take(room, sizeof *kept);
    fb_document_value *values =
        fb_room_take(room, document->value_count * sizeof *document->values);
    *kept = (fb_document){.id = document->id};
    for (size_t i = 0; i < document->value_count; i++) {
        values[i] = document->values[i];
        values[i].column = fb_room_copy(room, values[i].column);
        values[i].value = fb_room_copy(room, values[i].value);
    }
    kept->values = values;
    kept->value_count = document->value_count;
    return kept;
}

void fb_handing_found(fb_handing *h, const fb_document *document)
{
    if (document->start < h->first) return;
    for (size_t i = 0; i < h->count; i++) {
        size_t place = h->places[i];
        if (h->now[place] == NULL && fb_id_equal(h->ids[i], document->id)) {
            h->now[place] = copy(&h->room, document);
        }
    }
}

void fb_handing_got(fb_handing *h, uint64_t now_ms, fb_status status)
{
    if (status != FB_OK && status != FB_ERR_STORE_DAMAGED) {
        failed(h, now_ms);
        return;
    }
    succeeded(h);
    for (size_t i = 0; i < h->count; i++) {
        size_t place = h->places[i];
        h->looked[place] = true;
        /* It may be the one that is there and cannot be read: what it holds apart is not put over.
         */
        if (status == FB_ERR_STORE_DAMAGED && h->now[place] == NULL) {
            h->job->records[place].outcome = FB_DOCUMENT_REFUSED;
        }
    }
}

void fb_handing_was_put(fb_handing *h, uint64_t now_ms, fb_status status, bool durable,
                        const fb_document_outcome *outcomes)
{
    bool answered = status == FB_OK;
    bool certain = MUTANT(DOC_TAKEN_BACK, durable, true);
    if (MUTANT(DOC_LOST_IS_KEPT, !answered, false) || !certain) {
        for (size_t i = 0; i < h->count; i++) doubt(h, &h->job->records[h->places[i]], now_ms);
        failed(h, now_ms);
        return;
    }
    bool all = true, any = false;
    for (size_t i = 0; i < h->count; i++) {
        fb_document_outcome outcome = answered ? outcomes[i] : FB_DOCUMENT_KEPT;
        bool other = outcome == FB_DOCUMENT_PRESENT && MUTANT(DOC_PRESENT_LOCKS, false, true);
        if (outcome == FB_DOCUMENT_NEWER || other) h->locked = true;
        /* An earlier try has left it. */
        if (outcome == FB_DOCUMENT_PRESENT) outcome = FB_DOCUMENT_KEPT;
        any = any || outcome == FB_DOCUMENT_KEPT;
        bool dropped =
            MUTANT(DOC_FULL_IS_KEPT, false, true) || MUTANT(DOC_TAIL_DROPPED, false, any);
        if (outcome == FB_DOCUMENT_OPEN && dropped) outcome = FB_DOCUMENT_KEPT;
        h->job->records[h->places[i]].outcome = outcome;
        all = all && outcome != FB_DOCUMENT_OPEN;
    }
    if (all) {
        succeeded(h);
    } else {
        failed(h, now_ms);
    }
}
