/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that watches what other programs do to documents.
 *
 * With a stored token it goes on where it was. Without one, the first time or when the server knows
 * that place no more, it begins a watch first and looks at all documents then: what is changed
 * meanwhile is told by the one or seen by the other. A server that cannot tell changes is looked
 * through at the start and from time to time. */
#include <stdio.h>
#include <string.h>

#include "io/clock.h"
#include "io/document_store/worker_internal.h"

typedef struct watch {
    fb_worker *worker;
    bool first;         /* a place is all that is wanted */
    uint32_t unstored;  /* changes since the token was stored */
    bool moved;         /* the token is another one since */
    uint64_t stored_ns; /* when that was */
} watch;

static void say(fb_worker *worker, fb_worker_watch how, const char *why)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stats.watch = how;
    snprintf(worker->stats.watch_why, sizeof worker->stats.watch_why, "%s", why);
    pthread_mutex_unlock(&worker->mutex);
}

/* At most so many are under way. False: everything stops. */
static bool wait_for_outers(fb_worker *worker, uint32_t most)
{
    pthread_mutex_lock(&worker->mutex);
    while (!worker->stopping && worker->stats.outers_open > most) {
        pthread_cond_wait(&worker->wake, &worker->mutex);
    }
    bool go_on = !worker->stopping;
    pthread_mutex_unlock(&worker->mutex);
    return go_on;
}

static void keep_token(fb_worker *worker, fb_span token)
{
    fb_room before = worker->token_room;
    worker->token_room = (fb_room){.last = NULL};
    worker->token = fb_room_copy(&worker->token_room, token);
    fb_room_free(&before);
}

/* All that was told up to here is done: a later start goes on here. */
static void store_token(watch *w)
{
    w->worker->ops.outer(w->worker->ops.user, fb_outer_token(w->worker->token));
    w->unstored = 0;
    w->moved = false;
    w->stored_ns = fb_clock_mono_ns();
}

static bool told(void *user, const fb_document_event *change)
{
    watch *w = user;
    fb_worker *worker = w->worker;
    if (change->kind != FB_DOCUMENT_NOTHING) {
        if (!wait_for_outers(worker, FB_WORKER_OUTERS_MAX)) return false;
        fb_worker_noticed(worker, change);
        w->unstored++;
    } else if (!w->first) {
        say(worker, FB_WORKER_WATCH_STREAM, "");
    }
    if (change->token.len != 0 && !fb_span_equal(change->token, worker->token)) {
        keep_token(worker, change->token);
        w->moved = true;
    }
    if (w->first) return worker->token.len == 0 && wait_for_outers(worker, UINT32_MAX);
    bool idle = change->kind == FB_DOCUMENT_NOTHING;
    uint64_t since = fb_clock_mono_ns() - w->stored_ns;
    bool due = (idle && w->unstored != 0) || w->unstored >= FB_WORKER_TOKEN_CHANGES ||
               (w->moved && since >= FB_WORKER_TOKEN_MS * UINT64_C(1000000));
    if (due && w->moved) {
        if (!wait_for_outers(worker, 0)) return false;
        store_token(w);
    }
    return wait_for_outers(worker, UINT32_MAX);
}

static bool found(void *user, const fb_document_event *change)
{
    fb_worker *worker = user;
    if (!wait_for_outers(worker, FB_WORKER_OUTERS_MAX)) return false;
    if (change->kind != FB_DOCUMENT_NOTHING) fb_worker_noticed(worker, change);
    return true;
}

/* Until it succeeds. False: everything stops. */
static bool look_through(fb_worker *worker)
{
    char why[FB_WORKER_WHY_BYTES] = "";
    for (uint64_t pause_ms = FB_HANDING_RETRY_MIN_MS;; pause_ms = fb_worker_longer(pause_ms)) {
        fb_status status = worker->store->scan(worker->documents, found, worker, why, sizeof why);
        if (status == FB_OK) break;
        say(worker, FB_WORKER_WATCH_NONE, why);
        if (!fb_worker_pause(worker, pause_ms)) return false;
    }
    pthread_mutex_lock(&worker->mutex);
    worker->stats.scans++;
    bool go_on = !worker->stopping;
    pthread_mutex_unlock(&worker->mutex);
    return go_on;
}

/* One watch, from the token on or from now on; what came of it. */
static fb_status watch_on(fb_worker *worker, watch *w, char *why, size_t why_len)
{
    w->first = worker->token.len == 0;
    fb_status status =
        worker->store->watch(worker->documents, worker->token, told, w, why, why_len);
    if (status != FB_OK || !w->first) return status;
    if (!look_through(worker) || !wait_for_outers(worker, 0)) return FB_OK;
    store_token(w);
    return FB_OK;
}

static void forget_token(fb_worker *worker)
{
    fb_room_free(&worker->token_room);
    worker->token = (fb_span){NULL, 0};
}

void *fb_worker_watcher_thread(void *user)
{
    fb_worker *worker = user;
    watch w = {.worker = worker, .stored_ns = fb_clock_mono_ns()};
    char why[FB_WORKER_WHY_BYTES] = "";
    uint64_t pause_ms = FB_HANDING_RETRY_MIN_MS;
    while (wait_for_outers(worker, UINT32_MAX)) {
        fb_status status = watch_on(worker, &w, why, sizeof why);
        if (status == FB_OK) {
            pause_ms = FB_HANDING_RETRY_MIN_MS;
            continue;
        }
        if (status == FB_ERR_CURSOR_OLD) forget_token(worker);
        if (status == FB_ERR_UNSUPPORTED) {
            say(worker, FB_WORKER_WATCH_SCAN, "");
            if (!look_through(worker)) break;
            say(worker, FB_WORKER_WATCH_SCAN, "");
            if (!fb_worker_pause(worker, FB_WORKER_SCAN_MS)) break;
            continue;
        }
        say(worker, FB_WORKER_WATCH_NONE, why);
        if (!fb_worker_pause(worker, pause_ms)) break;
        pause_ms = fb_worker_longer(pause_ms);
    }
    return NULL;
}
