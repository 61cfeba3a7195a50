/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that talk to the document store, so that neither the node nor its local store waits
 * for it: one does what handing on asks for (documents/handing.h), one answers readings, one
 * watches what other programs do (documents_watcher.c).
 *
 * A server that cannot be reached is back pressure and nothing else: a job is tried until it
 * succeeds, with pauses that double; a reading as well, up to FB_WORKER_PATIENCE_MS. No reading is
 * answered before this process has raised the fence: a server that was deposed, and does not know
 * it yet, could answer it with documents from before. */
#ifndef FB_IO_DOCUMENT_STORE_WORKER_H
#define FB_IO_DOCUMENT_STORE_WORKER_H

#include "io/documents/handing.h"
#include "io/documents/outer.h"
#include "io/documents/reading.h"

#define FB_WORKER_PATIENCE_MS 15000u
/* Changes of other programs that are under way at once; a watch waits for a place among them. */
#define FB_WORKER_OUTERS_MAX 64u
/* Where the server tells no changes, all documents are looked at so often. */
#define FB_WORKER_SCAN_MS 600000u
/* A watch's place is stored when all behind it is done: at most after so many changes, and so often
 * when none come, as a server forgets places that are too old. */
#define FB_WORKER_TOKEN_CHANGES 256u
#define FB_WORKER_TOKEN_MS      10000u
/* Stamps further ahead than this are not shown in documents (the default bound of the future). */
#define FB_WORKER_FUTURE_US (INT64_C(300) * 1000000)

typedef struct fb_worker fb_worker;

/* Called from the worker's threads. */
typedef struct fb_worker_ops {
    /* The reading is answered, or failed (FB_ERR_AGAIN: the server could not be reached;
     * FB_ERR_NOT_FOUND: something is gone, see reading.h); the receiver frees it. The answer
     * belongs to it. */
    void (*read)(void *user, fb_reading *reading, fb_status status, fb_span answer,
                 const char *why);
    /* Every document of the job is kept, or has a verdict; the receiver frees it. start: the number
     * that the documents have of this process. */
    void (*done)(void *user, fb_job *job, uint64_t start);
    /* What another program did; the receiver frees it and says fb_worker_outer_done, or gives it
     * back to fb_worker_outer. */
    void (*outer)(void *user, fb_outer *outer);
    void *user;
} fb_worker_ops;

typedef enum fb_worker_watch {
    FB_WORKER_WATCH_NONE = 0,   /* not yet, or the server cannot be reached */
    FB_WORKER_WATCH_STREAM = 1, /* changes are told as they come */
    FB_WORKER_WATCH_SCAN = 2,   /* the server cannot tell: when they are read, and by looking */
} fb_worker_watch;

typedef struct fb_worker_stats {
    bool fenced;        /* this process may write documents */
    uint64_t first;     /* handing.h */
    bool locked;        /* another process of this node came: no job is carried out any more */
    uint64_t jobs;      /* carried out */
    uint64_t documents; /* put or removed */
    uint64_t too_large, refused; /* documents that stay in the local store, as of their last try */
    uint64_t retries;            /* calls that failed */
    uint32_t waiting;            /* jobs and readings under way */
    char why[160];               /* what the last failure was; empty after a success */
    fb_worker_watch watch;
    uint64_t scans;       /* times that all documents were looked at */
    uint64_t outers;      /* changes of other programs that were noticed */
    uint32_t outers_open; /* of those, under way */
    uint64_t late;        /* documents of earlier starts that were taken away again */
    uint64_t remade;      /* records that were made again, as their documents were gone */
    uint64_t not_equal;   /* of those, not proven to be what they were */
    uint64_t overwritten; /* changes of other programs of which nothing was left to be taken */
    char watch_why[160];  /* why changes are not told now */
} fb_worker_stats;

/* The ops and the documents stay the caller's and must outlive the worker. start, first: the
 * greatest and the first number of a start that the local store knows; token: of the last
 * FB_OUTER_TOKEN that was stored, or empty. NULL: no thread. */
fb_worker *fb_worker_new(const fb_documents_ops *documents_ops, fb_documents *documents,
                         uint64_t start, uint64_t first, fb_span token, const fb_worker_ops *ops);
/* Lets what is under way end and starts nothing else; jobs that were not carried out are dropped,
 * as their redo entries are still there. */
void fb_worker_free(fb_worker *worker);

/* Both take what they are given. */
void fb_worker_job(fb_worker *worker, fb_job *job);
void fb_worker_read(fb_worker *worker, fb_reading *reading);

/* Looks at its document again, puts it back if that is to be done, and gives it to ops.outer. */
void fb_worker_outer(fb_worker *worker, fb_outer *outer);
/* One that came is dealt with. */
void fb_worker_outer_done(fb_worker *worker);

void fb_worker_stats_get(fb_worker *worker, fb_worker_stats *out);

#endif
