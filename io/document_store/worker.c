/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/clock.h"
#include "io/document_store/call.h"
#include "io/document_store/worker_internal.h"
#include "protocol/base/assert.h"

bool fb_worker_pause(fb_worker *worker, uint64_t ms)
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

uint64_t fb_worker_longer(uint64_t ms)
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

/* One call to the server, and what came of it. */
static void call(fb_worker *worker, const fb_handing_call *c)
{
    char why[FB_WORKER_WHY_BYTES] = "";
    fb_status status =
        fb_documents_call(worker->store, worker->documents, &worker->handing, c, why, sizeof why);
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
        worker->stats.fenced = fb_handing_may_read(h);
        worker->stats.first = h->first;
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
            if (c.at_ms > now && !fb_worker_pause(worker, c.at_ms - now)) return NULL;
            continue;
        }
        call(worker, &c);
        if (!h->older) continue;
        h->older = false;
        fb_worker_noticed(worker,
                          &(fb_document_event){.kind = FB_DOCUMENT_DROPPED, .collection = ""});
    }
}

/* What other programs did */

void fb_worker_noticed(fb_worker *worker, const fb_document_event *change)
{
    fb_outer *outer = fb_outer_make(worker->store, change);
    if (outer == NULL) return;
    pthread_mutex_lock(&worker->mutex);
    worker->stats.outers++;
    worker->stats.outers_open++;
    pthread_mutex_unlock(&worker->mutex);
    worker->ops.outer(worker->ops.user, outer);
}

static void noticed(void *user, const fb_document_event *change)
{
    fb_worker *worker = user;
    pthread_mutex_lock(&worker->mutex);
    bool room = worker->stats.outers_open <= FB_WORKER_OUTERS_MAX;
    bool told = worker->stats.watch != FB_WORKER_WATCH_SCAN;
    pthread_mutex_unlock(&worker->mutex);
    /* Of a document that has nothing of ours the stream tells what it was before: it may be a
     * record whose _faberio was dropped. */
    if (told && change->document->record.len == 0) return;
    /* What finds no place is noticed again when it is read again, or by the watch. */
    if (room) fb_worker_noticed(worker, change);
}

typedef struct again {
    fb_worker *worker;
    fb_outer *outer;
    bool found;
} again;

static bool found_again(void *user, const fb_document *document)
{
    again *a = user;
    fb_document there = *document;
    there.collection = a->outer->collection;
    a->found = true;
    /* Removed, and made again since: nothing is to be done about the removal. */
    bool removed = a->outer->kind == FB_OUTER_DELETE || a->outer->kind == FB_OUTER_LOST;
    if (removed && !fb_outer_is_remade(a->outer, document)) {
        a->outer->look = false;
        a->outer->kind = FB_OUTER_STALE;
    }
    fb_outer_rebase(a->outer, a->worker->store, &there);
    return false;
}

/* Puts it back, asks for it. FB_ERR_UNREACHABLE: try again. */
static fb_status look_again(fb_worker *worker, fb_outer *outer, char *why)
{
    if (outer->look) {
        again a = {worker, outer, false};
        fb_status status = worker->store->get(worker->documents, outer->collection, &outer->id, 1,
                                              found_again, &a, why, FB_WORKER_WHY_BYTES);
        if (status == FB_ERR_UNREACHABLE) return status;
        if (!a.found) fb_outer_rebase(outer, worker->store, NULL);
    }
    bool wanted = outer->kind == FB_OUTER_DELETE || outer->kind == FB_OUTER_EDIT;
    if (outer->restore.len == 0 || !wanted) return FB_OK;
    fb_status status = worker->store->restore(worker->documents, outer->collection, outer->id,
                                              outer->restore, why, FB_WORKER_WHY_BYTES);
    if (status == FB_ERR_UNREACHABLE) return status;
    outer->restore = (fb_span){NULL, 0};
    if (status != FB_OK) fb_outer_not_restored(outer, why);
    return FB_OK;
}

static bool reading_waits(fb_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    bool waits = worker->readings != NULL;
    pthread_mutex_unlock(&worker->mutex);
    return waits;
}

static void deal_with(fb_worker *worker, fb_outer *outer)
{
    char why[FB_WORKER_WHY_BYTES] = "";
    for (uint64_t pause_ms = FB_HANDING_RETRY_MIN_MS;; pause_ms = fb_worker_longer(pause_ms)) {
        fb_status status = look_again(worker, outer, why);
        note(worker, status, why);
        if (status == FB_OK) break;
        if (!fb_worker_pause(worker, pause_ms)) break;
        if (!reading_waits(worker)) continue;
        /* It comes again behind the reading, which has a deadline. */
        fb_worker_outer(worker, outer);
        return;
    }
    worker->ops.outer(worker->ops.user, outer);
}

void fb_worker_outer(fb_worker *worker, fb_outer *outer)
{
    outer->next = NULL;
    pthread_mutex_lock(&worker->mutex);
    *worker->outers_end = outer;
    worker->outers_end = &outer->next;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
}

void fb_worker_outer_done(fb_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stats.outers_open--;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
}

/* Reading */

static bool is_fenced(fb_worker *worker, uint64_t *first)
{
    pthread_mutex_lock(&worker->mutex);
    bool fenced = worker->stats.fenced;
    *first = worker->stats.first;
    pthread_mutex_unlock(&worker->mutex);
    return fenced;
}

static void answer(fb_worker *worker, fb_reading *reading)
{
    char why[FB_WORKER_WHY_BYTES] = "";
    fb_span bytes = {NULL, 0};
    fb_status status = FB_ERR_UNREACHABLE;
    uint64_t pause_ms = FB_HANDING_RETRY_MIN_MS;
    for (; fb_clock_mono_ns() < reading->until_ns; pause_ms = fb_worker_longer(pause_ms)) {
        if (is_fenced(worker, &reading->first)) {
            reading->noticed = noticed;
            reading->noticed_user = worker;
            status =
                fb_reading_end(reading, worker->store, worker->documents, &bytes, why, sizeof why);
            note(worker, status == FB_ERR_NOT_FOUND ? FB_OK : status, why);
        }
        if (status != FB_ERR_UNREACHABLE) break;
        if (!fb_worker_pause(worker, pause_ms)) break;
    }
    pthread_mutex_lock(&worker->mutex);
    worker->stats.waiting--;
    pthread_mutex_unlock(&worker->mutex);
    bool unsaid = status == FB_ERR_UNREACHABLE && why[0] == 0;
    if (unsaid) snprintf(why, sizeof why, "the document store does not answer");
    /* Nothing is wrong with the store: whoever asked may ask again. */
    if (status == FB_ERR_UNREACHABLE) status = FB_ERR_AGAIN;
    worker->ops.read(worker->ops.user, reading, status, bytes, why);
}

static void *reader_thread(void *user)
{
    fb_worker *worker = user;
    for (;;) {
        pthread_mutex_lock(&worker->mutex);
        while (worker->readings == NULL && worker->outers == NULL && !worker->stopping) {
            pthread_cond_wait(&worker->wake, &worker->mutex);
        }
        bool stopping = worker->stopping;
        fb_reading *reading = worker->readings;
        /* Whoever waits for an answer goes first. */
        fb_outer *outer = reading == NULL && !stopping ? worker->outers : NULL;
        if (reading != NULL) worker->readings = reading->next;
        if (worker->readings == NULL) worker->readings_end = &worker->readings;
        if (outer != NULL) worker->outers = outer->next;
        if (worker->outers == NULL) worker->outers_end = &worker->outers;
        pthread_mutex_unlock(&worker->mutex);
        if (reading != NULL && stopping) {
            worker->ops.read(worker->ops.user, reading, FB_ERR_AGAIN, (fb_span){NULL, 0},
                             "the node is stopping");
        } else if (reading != NULL) {
            answer(worker, reading);
        } else if (outer != NULL) {
            deal_with(worker, outer);
        } else {
            return NULL;
        }
    }
}

/* Both sides */

static void stop_threads(fb_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
    for (size_t i = 0; i < worker->thread_count; i++) pthread_join(worker->threads[i], NULL);
}

fb_worker *fb_worker_new(const fb_documents_ops *store, fb_documents *documents, uint64_t start,
                         uint64_t first, fb_span token, const fb_worker_ops *ops)
{
    void *(*const bodies[])(void *) = {writer_thread, reader_thread, fb_worker_watcher_thread};
    const size_t count = sizeof bodies / sizeof bodies[0];
    fb_worker *worker = calloc(1, sizeof *worker);
    FB_ASSERT(worker != NULL);
    worker->store = store;
    worker->documents = documents;
    worker->ops = *ops;
    fb_handing_init(&worker->handing, start, first, fb_job_show, NULL);
    worker->token = fb_room_copy(&worker->token_room, token);
    worker->jobs_end = &worker->jobs;
    worker->readings_end = &worker->readings;
    worker->outers_end = &worker->outers;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    while (worker->thread_count < count) {
        size_t i = worker->thread_count;
        if (pthread_create(&worker->threads[i], NULL, bodies[i], worker) != 0) break;
        worker->thread_count++;
    }
    if (worker->thread_count == count) return worker;
    fb_worker_free(worker);
    return NULL;
}

void fb_worker_free(fb_worker *worker)
{
    if (worker == NULL) return;
    stop_threads(worker);
    while (worker->jobs != NULL) {
        fb_job *next = worker->jobs->next;
        fb_job_free(worker->jobs);
        worker->jobs = next;
    }
    fb_handing_free(&worker->handing);
    while (worker->outers != NULL) {
        fb_outer *next = worker->outers->next;
        fb_outer_free(worker->outers);
        worker->outers = next;
    }
    fb_room_free(&worker->token_room);
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
    /* From now on, whatever stands before it: of several that wait none waits for the others'. */
    reading->until_ns = fb_clock_mono_ns() + (uint64_t)FB_WORKER_PATIENCE_MS * 1000000;
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
