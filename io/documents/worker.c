/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/clock.h"
#include "protocol/base/assert.h"

struct fb_worker {
    const fb_documents_ops *store;
    fb_documents *documents;
    fb_worker_ops ops;
    uint64_t start; /* the writer's, once it runs */
    pthread_t writer, reader;

    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t wake;
    fb_job *jobs, **jobs_end;
    fb_reading *readings, **readings_end;
    fb_worker_stats stats;
    bool stopping;
};

#define WHY_BYTES sizeof((fb_worker_stats *)0)->why

/* Waits for a pause, or until everything stops: false then. */
static bool pause_for(fb_worker *worker, uint64_t ms)
{
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    uint64_t ns = (uint64_t)due.tv_nsec + ms * 1000000u;
    due.tv_sec += (time_t)(ns / 1000000000u);
    due.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&worker->mutex);
    int rc = 0;
    while (!worker->stopping && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&worker->wake, &worker->mutex, &due);
    }
    bool go_on = !worker->stopping;
    pthread_mutex_unlock(&worker->mutex);
    return go_on;
}

static uint64_t longer(uint64_t ms)
{
    return 2 * ms > FB_WORKER_RETRY_MAX_MS ? FB_WORKER_RETRY_MAX_MS : 2 * ms;
}

static void note(fb_worker *worker, fb_status status, const char *why)
{
    pthread_mutex_lock(&worker->mutex);
    fb_worker_stats *stats = &worker->stats;
    stats->locked = stats->locked || status == FB_ERR_STORE_LOCKED;
    if (status != FB_OK) stats->retries++;
    snprintf(stats->why, sizeof stats->why, "%s", status == FB_OK ? "" : why);
    pthread_mutex_unlock(&worker->mutex);
}

/* Carrying out */

typedef struct current {
    fb_job *job;
    fb_room *room;
    fb_document **now; /* by record; NULL: not needed or not there */
    const char *collection;
} current;

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

static bool is_of(const fb_job_record *record, const char *collection)
{
    return strcmp(record->collection, collection) == 0;
}

static bool found(void *user, const fb_document *document)
{
    current *c = user;
    for (size_t i = 0; i < c->job->record_count; i++) {
        const fb_job_record *record = &c->job->records[i];
        if (c->now[i] == NULL && fb_id_equal(record->id, document->id) &&
            is_of(record, c->collection)) {
            c->now[i] = copy(c->room, document);
        }
    }
    return true;
}

/* The documents as they are, of those records that lack a value. */
static fb_status look(fb_worker *worker, current *c, char *why)
{
    fb_job *job = c->job;
    fb_id *ids = fb_room_take(c->room, job->record_count * sizeof *ids);
    bool *asked = fb_room_take(c->room, job->record_count * sizeof *asked);
    memset(asked, 0, job->record_count * sizeof *asked);
    for (size_t i = 0; i < job->record_count; i++) {
        if (asked[i] || !fb_job_record_needs_document(&job->records[i])) continue;
        size_t count = 0;
        c->collection = job->records[i].collection;
        for (size_t k = i; k < job->record_count; k++) {
            if (asked[k] || !is_of(&job->records[k], c->collection) ||
                !fb_job_record_needs_document(&job->records[k])) {
                continue;
            }
            asked[k] = true;
            ids[count++] = job->records[k].id;
        }
        fb_status status = worker->store->get(worker->documents, c->collection, ids, count, found,
                                              c, why, WHY_BYTES);
        /* What is there and not ours holds no value of ours. */
        if (status != FB_OK && status != FB_ERR_STORE_DAMAGED) return status;
    }
    return FB_OK;
}

static fb_status carry_out(fb_worker *worker, fb_job *job, char *why)
{
    fb_room room = {NULL, 0};
    current c = {.job = job, .room = &room};
    c.now = fb_room_take(&room, job->record_count * sizeof *c.now);
    memset(c.now, 0, job->record_count * sizeof *c.now);
    fb_document *documents = fb_room_take(&room, job->record_count * sizeof *documents);
    fb_document_verdict *verdicts = fb_room_take(&room, job->record_count * sizeof *verdicts);
    fb_status status = look(worker, &c, why);
    int64_t horizon = fb_clock_wall_us() + FB_WORKER_FUTURE_US;
    for (size_t i = 0; status == FB_OK && i < job->record_count; i++) {
        fb_job_compose(&job->records[i], c.now[i], horizon, &room, &documents[i]);
        verdicts[i] = FB_DOCUMENT_KEPT;
    }
    if (status == FB_OK && job->record_count != 0) {
        status = worker->store->put(worker->documents, documents, job->record_count, verdicts, why,
                                    WHY_BYTES);
    }
    for (size_t i = 0; status == FB_OK && i < job->record_count; i++) {
        job->records[i].verdict = verdicts[i];
    }
    fb_room_free(&room);
    return status;
}

static void count_job(fb_worker *worker, const fb_job *job)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stats.jobs++;
    worker->stats.waiting--;
    for (size_t i = 0; i < job->record_count; i++) {
        switch (job->records[i].verdict) {
        case FB_DOCUMENT_TOO_LARGE:
            worker->stats.too_large++;
            break;
        case FB_DOCUMENT_REFUSED:
            worker->stats.refused++;
            break;
        case FB_DOCUMENT_KEPT:
            worker->stats.documents++;
            break;
        }
    }
    pthread_mutex_unlock(&worker->mutex);
}

/* Until it succeeds. False: everything stops, or nothing can succeed any more. */
static bool try_job(fb_worker *worker, fb_job *job, bool *fenced)
{
    char why[WHY_BYTES] = "";
    for (uint64_t pause_ms = FB_WORKER_RETRY_MIN_MS;; pause_ms = longer(pause_ms)) {
        fb_status status =
            *fenced ? FB_OK
                    : worker->store->fence(worker->documents, &worker->start, why, sizeof why);
        if (status == FB_OK) *fenced = true;
        if (status == FB_OK) status = carry_out(worker, job, why);
        note(worker, status, why);
        if (status == FB_OK) return true;
        if (status == FB_ERR_STORE_LOCKED || !pause_for(worker, pause_ms)) return false;
    }
}

static void *writer_thread(void *user)
{
    fb_worker *worker = user;
    bool fenced = false, goes_on = true;
    while (goes_on) {
        pthread_mutex_lock(&worker->mutex);
        worker->stats.fenced = fenced;
        while (worker->jobs == NULL && !worker->stopping) {
            pthread_cond_wait(&worker->wake, &worker->mutex);
        }
        fb_job *job = worker->stopping ? NULL : worker->jobs;
        if (job != NULL) worker->jobs = job->next;
        if (worker->jobs == NULL) worker->jobs_end = &worker->jobs;
        pthread_mutex_unlock(&worker->mutex);
        if (job == NULL) break;
        goes_on = try_job(worker, job, &fenced);
        if (goes_on) {
            count_job(worker, job);
            worker->ops.done(worker->ops.user, job, worker->start);
        } else {
            fb_job_free(job);
        }
    }
    return NULL;
}

/* Reading */

static void answer(fb_worker *worker, fb_reading *reading)
{
    char why[WHY_BYTES] = "";
    fb_span bytes = {NULL, 0};
    uint64_t until_ns = fb_clock_mono_ns() + (uint64_t)FB_WORKER_PATIENCE_MS * 1000000;
    fb_status status;
    for (uint64_t pause_ms = FB_WORKER_RETRY_MIN_MS;; pause_ms = longer(pause_ms)) {
        status = fb_reading_end(reading, worker->store, worker->documents, &bytes, why, sizeof why);
        note(worker, status, why);
        if (status != FB_ERR_UNREACHABLE || fb_clock_mono_ns() >= until_ns) break;
        if (!pause_for(worker, pause_ms)) break;
    }
    pthread_mutex_lock(&worker->mutex);
    worker->stats.waiting--;
    pthread_mutex_unlock(&worker->mutex);
    /* Nothing is wrong with the store: whoever asked may ask again. */
    if (status == FB_ERR_UNREACHABLE) status = FB_ERR_AGAIN;
    worker->ops.read(worker->ops.user, reading, status, bytes, why);
}

static void *reader_thread(void *user)
{
    fb_worker *worker = user;
    for (;;) {
        pthread_mutex_lock(&worker->mutex);
        while (worker->readings == NULL && !worker->stopping) {
            pthread_cond_wait(&worker->wake, &worker->mutex);
        }
        fb_reading *reading = worker->readings;
        if (reading != NULL) worker->readings = reading->next;
        if (worker->readings == NULL) worker->readings_end = &worker->readings;
        bool stopping = worker->stopping;
        pthread_mutex_unlock(&worker->mutex);
        if (reading != NULL && stopping) {
            worker->ops.read(worker->ops.user, reading, FB_ERR_AGAIN, (fb_span){NULL, 0},
                             "the node is stopping");
        } else if (reading != NULL) {
            answer(worker, reading);
        }
        if (reading == NULL) return NULL;
    }
}

/* Both sides */

fb_worker *fb_worker_new(const fb_documents_ops *store, fb_documents *documents, uint64_t start,
                         const fb_worker_ops *ops)
{
    fb_worker *worker = calloc(1, sizeof *worker);
    FB_ASSERT(worker != NULL);
    worker->store = store;
    worker->documents = documents;
    worker->ops = *ops;
    worker->start = start;
    worker->jobs_end = &worker->jobs;
    worker->readings_end = &worker->readings;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    bool writes = pthread_create(&worker->writer, NULL, writer_thread, worker) == 0;
    if (writes && pthread_create(&worker->reader, NULL, reader_thread, worker) == 0) return worker;
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
    if (writes) pthread_join(worker->writer, NULL);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
    return NULL;
}

void fb_worker_free(fb_worker *worker)
{
    if (worker == NULL) return;
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->writer, NULL);
    pthread_join(worker->reader, NULL);
    while (worker->jobs != NULL) {
        fb_job *next = worker->jobs->next;
        fb_job_free(worker->jobs);
        worker->jobs = next;
    }
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
}

void fb_worker_job(fb_worker *worker, fb_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&worker->mutex);
    *worker->jobs_end = job;
    worker->jobs_end = &job->next;
    worker->stats.waiting++;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
}

void fb_worker_read(fb_worker *worker, fb_reading *reading)
{
    reading->next = NULL;
    pthread_mutex_lock(&worker->mutex);
    *worker->readings_end = reading;
    worker->readings_end = &reading->next;
    worker->stats.waiting++;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
}

void fb_worker_stats_get(fb_worker *worker, fb_worker_stats *out)
{
    pthread_mutex_lock(&worker->mutex);
    *out = worker->stats;
    pthread_mutex_unlock(&worker->mutex);
}
