/* SPDX-License-Identifier: Apache-2.0 */
/* The two threads that talk to the document store, so that neither the node nor its local store
 * waits for it: one does what handing on asks for (documents/handing.h), the other one answers
 * readings.
 *
 * A server that cannot be reached is back pressure and nothing else: a job is tried until it
 * succeeds, with pauses that double; a reading as well, up to FB_WORKER_PATIENCE_MS. No reading is
 * answered before this process has raised the fence: a server that was deposed, and does not know
 * it yet, could answer it with documents from before. */
#ifndef FB_IO_DOCUMENTS_WORKER_H
#define FB_IO_DOCUMENTS_WORKER_H

#include "io/documents/handing.h"
#include "io/documents/reading.h"

#define FB_WORKER_PATIENCE_MS 15000u
/* Stamps further ahead than this are not shown in documents (the default bound of the future). */
#define FB_WORKER_FUTURE_US (INT64_C(300) * 1000000)

typedef struct fb_worker fb_worker;

/* Called from the worker's threads. */
typedef struct fb_worker_ops {
    /* The reading is answered, or failed (FB_ERR_AGAIN: the server could not be reached); the
     * receiver frees it. The answer belongs to it. */
    void (*read)(void *user, fb_reading *reading, fb_status status, fb_span answer,
                 const char *why);
    /* Every document of the job is kept, or has a verdict; the receiver frees it. start: the number
     * that the documents have of this process. */
    void (*done)(void *user, fb_job *job, uint64_t start);
    void *user;
} fb_worker_ops;

typedef struct fb_worker_stats {
    bool fenced;        /* this process may write documents */
    bool locked;        /* another process of this node came: no job is carried out any more */
    uint64_t jobs;      /* carried out */
    uint64_t documents; /* put or removed */
    uint64_t too_large, refused; /* documents that stay in the local store, as of their last try */
    uint64_t retries;            /* calls that failed */
    uint32_t waiting;            /* jobs and readings under way */
    char why[160];               /* what the last failure was; empty after a success */
} fb_worker_stats;

/* The ops and the documents stay the caller's and must outlive the worker. start: the greatest
 * number of a start that the local store knows. NULL: no thread. */
fb_worker *fb_worker_new(const fb_documents_ops *documents_ops, fb_documents *documents,
                         uint64_t start, const fb_worker_ops *ops);
/* Lets what is under way end and starts nothing else; jobs that were not carried out are dropped,
 * as their redo entries are still there. */
void fb_worker_free(fb_worker *worker);

/* Both take what they are given. */
void fb_worker_job(fb_worker *worker, fb_job *job);
void fb_worker_read(fb_worker *worker, fb_reading *reading);

void fb_worker_stats_get(fb_worker *worker, fb_worker_stats *out);

#endif
