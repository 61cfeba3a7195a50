/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of a worker share. For documents_worker.c and
 * documents_watcher.c only. */
#ifndef FB_IO_DOCUMENT_STORE_WORKER_INTERNAL_H
#define FB_IO_DOCUMENT_STORE_WORKER_INTERNAL_H

#include <pthread.h>

#include "io/document_store/worker.h"

#define FB_WORKER_WHY_BYTES sizeof((fb_worker_stats *)0)->why

struct fb_worker {
    const fb_documents_ops *store;
    fb_documents *documents;
    fb_worker_ops ops;
    fb_handing handing; /* the writer's, once it runs */
    pthread_t threads[3];
    size_t thread_count;

    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t wake;
    fb_job *jobs, **jobs_end;
    fb_reading *readings, **readings_end;
    fb_outer *outers, **outers_end; /* to be looked at again */
    fb_worker_stats stats;
    bool stopping;

    fb_room token_room; /* the watcher's: where it goes on */
    fb_span token;
};

/* Waits for a pause, or until everything stops: false then. */
bool fb_worker_pause(fb_worker *worker, uint64_t ms);
/* The next pause behind one. */
uint64_t fb_worker_longer(uint64_t ms);

/* Takes note of it and hands it on; by any thread. */
void fb_worker_noticed(fb_worker *worker, const fb_document_event *change);

void *fb_worker_watcher_thread(void *user);

#endif
