/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store_documents.h"

#include <errno.h>
#include <stdlib.h>

#include "io/clock.h"
#include "protocol/base/assert.h"

struct fb_store_documents {
    fb_lmdb_env *env;
    fb_keeping keeping;
    fb_worker *worker;
};

static int look(void *user, fb_span key, fb_span *value)
{
    fb_store_documents *sd = user;
    return fb_lmdb_env_look(sd->env, key, value);
}

static int scan(void *user, fb_span low, fb_span high,
                void (*each)(void *each_user, fb_span key, fb_span value), void *each_user)
{
    fb_store_documents *sd = user;
    return fb_lmdb_env_scan(sd->env, low, high, each, each_user);
}

int fb_store_documents_open(fb_lmdb_env *env, const fb_documents_ops *ops, fb_documents *documents,
                            const fb_worker_ops *callbacks, fb_store_documents **out)
{
    fb_store_documents *sd = calloc(1, sizeof *sd);
    FB_ASSERT(sd != NULL);
    sd->env = env;
    const fb_split_store store = {look, scan, sd};
    int rc = fb_keeping_open(&sd->keeping, &store, NULL);
    if (rc == 0) {
        sd->worker = fb_worker_new(ops, documents, sd->keeping.start, callbacks);
        if (sd->worker == NULL) rc = EAGAIN;
    }
    if (rc == 0) rc = fb_store_documents_resume(sd);
    if (rc == 0) {
        *out = sd;
    } else {
        fb_store_documents_free(sd);
    }
    return rc;
}

int fb_store_documents_resume(fb_store_documents *sd)
{
    fb_job *found;
    int rc = fb_job_found(&sd->keeping.split, &found);
    if (rc == 0 && found != NULL) fb_worker_job(sd->worker, found);
    return rc;
}

void fb_store_documents_stop(fb_store_documents *sd)
{
    fb_worker_free(sd->worker);
    sd->worker = NULL;
}

void fb_store_documents_free(fb_store_documents *sd)
{
    if (sd == NULL) return;
    fb_worker_free(sd->worker);
    fb_keeping_free(&sd->keeping);
    free(sd);
}

int fb_store_documents_read(fb_store_documents *sd, uint64_t operation, uint64_t incarnation,
                            uint64_t w, fb_span read_set, fb_span local, bool *taken)
{
    fb_reading *reading;
    int rc = fb_reading_needed(&sd->keeping.split, read_set, taken);
    if (rc != 0 || !*taken) return rc;
    rc = fb_reading_begin(&sd->keeping.split, read_set, local, &reading);
    *taken = rc == 0;
    if (rc != 0) return rc;
    reading->operation = operation;
    reading->incarnation = incarnation;
    reading->w = w;
    fb_worker_read(sd->worker, reading);
    return 0;
}

int fb_store_documents_split(fb_store_documents *sd, uint64_t incarnation, uint64_t w, fb_span set,
                             fb_span *local)
{
    return fb_keeping_split(&sd->keeping, incarnation, w, set, local);
}

int fb_store_documents_clean(fb_store_documents *sd, fb_span *set)
{
    return fb_keeping_clean(&sd->keeping, set);
}

int fb_store_documents_over(fb_store_documents *sd, bool committed, uint64_t incarnation,
                            uint64_t w)
{
    fb_job *job;
    int rc = fb_keeping_over(&sd->keeping, committed, incarnation, w, &job);
    if (job != NULL) fb_worker_job(sd->worker, job);
    return rc;
}

void fb_store_documents_served(fb_store_documents *sd, fb_job *job, uint64_t start)
{
    fb_keeping_served(&sd->keeping, job, start);
}

bool fb_store_documents_wants_cleaning(const fb_store_documents *sd, bool closing)
{
    return fb_keeping_wants_cleaning(&sd->keeping, closing);
}

uint64_t fb_store_documents_again_at(const fb_store_documents *sd)
{
    return fb_keeping_again_at(&sd->keeping);
}

int fb_store_documents_again(fb_store_documents *sd)
{
    fb_job *job = NULL;
    int rc = 0;
    do {
        rc = fb_keeping_again(&sd->keeping, fb_clock_awake_or_not_ms(), &job);
        if (job != NULL) fb_worker_job(sd->worker, job);
    } while (rc == 0 && job != NULL);
    return rc;
}

void fb_store_documents_stats(fb_store_documents *sd, fb_worker_stats *out)
{
    fb_worker_stats_get(sd->worker, out);
}
