/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents_worker.h"

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
    fb_handing handing; /* the writer's, once it runs */
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
    return 2 * ms > FB_HANDING_RETRY_MAX_MS ? FB_HANDING_RETRY_MAX_MS : 2 * ms;
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

/* Handing on */

static void count_job(fb_worker *worker, const fb_job *job)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stats.jobs++;
    worker->stats.waiting--;
    for (size_t i = 0; i < job->record_count; i++) {
        switch (job->records[i].outcome) {
        case FB_DOCUMENT_TOO_LARGE:
            worker->stats.too_large++;
            break;
        case FB_DOCUMENT_REFUSED:
            worker->stats.refused++;
            break;
        default:
            worker->stats.documents++;
            break;
        }
    }
    pthread_mutex_unlock(&worker->mutex);
}

static uint64_t now_ms(void)
{
    return fb_clock_awake_or_not_ms();
}

static bool found(void *user, const fb_document *document)
{
    fb_handing_found(user, document);
    return true;
}

/* One call to the server, and what came of it. */
static void call(fb_worker *worker, const fb_handing_call *c)
{
    const fb_documents_ops *store = worker->store;
    fb_handing *h = &worker->handing;
    char why[WHY_BYTES] = "";
    uint64_t number = c->number;
    fb_status status = FB_OK;
    if (c->kind == FB_HANDING_FENCE) {
        status = store->fence(worker->documents, &number, why, sizeof why);
        fb_handing_fenced(h, now_ms(), status, number);
    } else if (c->kind == FB_HANDING_CONFIRM) {
        status = store->confirm(worker->documents, &number, why, sizeof why);
        fb_handing_confirmed(h, now_ms(), status, number);
    } else if (c->kind == FB_HANDING_GET) {
        status = store->get(worker->documents, c->collection, c->ids, c->count, found, h, why,
                            sizeof why);
        fb_handing_got(h, now_ms(), status);
    } else {
        fb_document_outcome *outcomes = calloc(c->count, sizeof *outcomes);
        bool durable = false;
        FB_ASSERT(outcomes != NULL);
        status = store->put(worker->documents, c->changes, c->count, outcomes, &durable, why,
                            sizeof why);
        fb_handing_was_put(h, now_ms(), status, durable, outcomes);
        for (size_t i = 0; status == FB_OK && i < c->count; i++) {
            if (outcomes[i] == FB_DOCUMENT_OPEN) status = FB_ERR_UNREACHABLE;
        }
        if (status == FB_OK && !durable) status = FB_ERR_UNREACHABLE;
        free(outcomes);
    }
    if (h->locked) {
        status = FB_ERR_STORE_LOCKED;
        snprintf(
            why, sizeof why,
            "documents of a later start are there: another process of this node writes to this "
            "database");
    }
    note(worker, status, why);
}

static void *writer_thread(void *user)
{
    fb_worker *worker = user;
    fb_handing *h = &worker->handing;
    for (;;) {
        fb_handing_call c;
        fb_handing_next(h, now_ms(), fb_clock_wall_us() + FB_WORKER_FUTURE_US, &c);
        pthread_mutex_lock(&worker->mutex);
        worker->stats.fenced = h->fenced;
        bool idle = c.kind == FB_HANDING_IDLE || c.kind == FB_HANDING_LOCKED;
        while (idle && worker->jobs == NULL && !worker->stopping) {
            pthread_cond_wait(&worker->wake, &worker->mutex);
        }
        bool stopping = worker->stopping;
        while (!stopping && worker->jobs != NULL) {
            fb_job *job = worker->jobs;
            worker->jobs = job->next;
            fb_handing_job(h, job);
        }
        worker->jobs_end = worker->jobs == NULL ? &worker->jobs : worker->jobs_end;
        pthread_mutex_unlock(&worker->mutex);
        if (c.kind == FB_HANDING_DONE) {
            count_job(worker, c.job);
            worker->ops.done(worker->ops.user, c.job, h->start);
        }
        if (stopping) return NULL;
        if (idle || c.kind == FB_HANDING_DONE) continue;
        if (c.kind == FB_HANDING_PAUSE) {
            uint64_t now = now_ms();
            if (c.at_ms > now && !pause_for(worker, c.at_ms - now)) return NULL;
            continue;
        }
        call(worker, &c);
    }
}

/* Reading */

static bool is_fenced(fb_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    bool fenced = worker->stats.fenced;
    pthread_mutex_unlock(&worker->mutex);
    return fenced;
}

static void answer(fb_worker *worker, fb_reading *reading)
{
    char why[WHY_BYTES] = "";
    fb_span bytes = {NULL, 0};
    uint64_t until_ns = fb_clock_mono_ns() + (uint64_t)FB_WORKER_PATIENCE_MS * 1000000;
    fb_status status;
    for (uint64_t pause_ms = FB_HANDING_RETRY_MIN_MS;; pause_ms = longer(pause_ms)) {
        if (is_fenced(worker)) {
            status =
                fb_reading_end(reading, worker->store, worker->documents, &bytes, why, sizeof why);
            note(worker, status, why);
        } else {
            status = FB_ERR_UNREACHABLE;
        }
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
    fb_handing_init(&worker->handing, start, NULL);
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
    fb_handing_free(&worker->handing);
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
