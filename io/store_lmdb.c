/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store_lmdb.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/lmdb_env.h"
#include "io/store_fault.h"
#include "io/store_place.h"
#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"

typedef enum request_kind {
    REQUEST_BEGIN = 1,
    REQUEST_READ = 2,
    REQUEST_WRITE = 3,
} request_kind;

typedef struct request {
    struct request *next;
    request_kind kind;
    uint64_t incarnation;
    uint64_t operation;
    uint64_t w;
    size_t len;
    uint8_t bytes[];
} request;

struct fb_lmdb {
    fb_lmdb_options options;
    char *directory;
    int lock_fd;
    fb_lmdb_opening opening;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the members of this block */
    pthread_cond_t wake;
    request *requests, **requests_end;
    fb_lmdb_completion *done, **done_end;
    fb_lmdb_stats stats;
    bool stopping;

    /* The thread's own from here (the opener's before the thread runs). */
    fb_lmdb_env env;
    uint64_t incarnation;
    uint64_t applied;
    bool failed;   /* this incarnation takes no more write sets */
    fb_span *sets; /* of the group that is being committed */
    size_t sets_cap;
};

static void say(char *why, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(char *why, size_t len, const char *format, ...)
{
    if (why == NULL || len == 0) return;
    va_list args;
    va_start(args, format);
    vsnprintf(why, len, format, args);
    va_end(args);
}

/* Requests and completions. */

static void request_put(fb_lmdb *store, request_kind kind, uint64_t incarnation, uint64_t operation,
                        uint64_t w, fb_span bytes)
{
    request *r = malloc(sizeof *r + bytes.len);
    FB_ASSERT(r != NULL);
    *r = (request){NULL, kind, incarnation, operation, w, bytes.len};
    if (bytes.len != 0) memcpy(r->bytes, bytes.p, bytes.len);
    pthread_mutex_lock(&store->mutex);
    *store->requests_end = r;
    store->requests_end = &r->next;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
}

void fb_lmdb_begin(fb_lmdb *store, uint64_t incarnation)
{
    request_put(store, REQUEST_BEGIN, incarnation, 0, 0, (fb_span){NULL, 0});
}

void fb_lmdb_read(fb_lmdb *store, uint64_t operation, fb_span read_set)
{
    request_put(store, REQUEST_READ, 0, operation, 0, read_set);
}

void fb_lmdb_write(fb_lmdb *store, uint64_t incarnation, uint64_t w, fb_span write_set)
{
    request_put(store, REQUEST_WRITE, incarnation, 0, w, write_set);
}

fb_lmdb_completion *fb_lmdb_take(fb_lmdb *store)
{
    pthread_mutex_lock(&store->mutex);
    fb_lmdb_completion *c = store->done;
    if (c != NULL) {
        store->done = c->next;
        if (store->done == NULL) store->done_end = &store->done;
        c->next = NULL;
    }
    pthread_mutex_unlock(&store->mutex);
    return c;
}

void fb_lmdb_completion_free(fb_lmdb_completion *completion)
{
    free(completion);
}

void fb_lmdb_stats_get(fb_lmdb *store, fb_lmdb_stats *out)
{
    pthread_mutex_lock(&store->mutex);
    *out = store->stats;
    pthread_mutex_unlock(&store->mutex);
}

static fb_lmdb_completion *completion_new(fb_lmdb_kind kind, int rc, size_t len)
{
    fb_lmdb_completion *c = calloc(1, sizeof *c + len);
    FB_ASSERT(c != NULL);
    c->kind = kind;
    c->error = fb_lmdb_error(rc);
    c->len = len;
    if (rc != 0) say(c->detail, sizeof c->detail, "%s", fb_lmdb_text(rc));
    /* A value that does not match its checksum stands alone; this is about the tree. */
    if (c->error == FB_ERR_STORE_DAMAGED && rc != FB_LMDB_BAD_SUM) fb_store_fault_mark();
    return c;
}

static void completion_put(fb_lmdb *store, fb_lmdb_completion *c)
{
    pthread_mutex_lock(&store->mutex);
    *store->done_end = c;
    store->done_end = &c->next;
    if (c->kind == FB_LMDB_READ) store->stats.reads++;
    if (c->error != FB_OK) store->stats.failures++;
    if (c->error == FB_ERR_STORE_DAMAGED) store->stats.damaged++;
    pthread_mutex_unlock(&store->mutex);
    store->options.notify(store->options.user);
}

/* Reading. */

static void serve_read(fb_lmdb *store, const request *req)
{
    fb_span answer;
    int rc = store->env.env == NULL ? MDB_PANIC
                                    : fb_lmdb_env_read(&store->env, store->incarnation,
                                                       fb_span_of(req->bytes, req->len), &answer);
    uint8_t alone[8];
    if (rc != 0) {
        fb_store_be(alone, store->incarnation, sizeof alone);
        answer = fb_span_of(alone, sizeof alone);
    }
    fb_lmdb_completion *c = completion_new(FB_LMDB_READ, rc, answer.len);
    memcpy(c->bytes, answer.p, answer.len);
    c->operation = req->operation;
    c->incarnation = store->incarnation;
    c->w = store->applied;
    completion_put(store, c);
}

static void stats_after_commit(fb_lmdb *store, uint64_t sets)
{
    uint64_t used_bytes, entries;
    fb_lmdb_env_size(&store->env, &used_bytes, &entries);
    pthread_mutex_lock(&store->mutex);
    if (sets > 0) store->stats.commits++;
    store->stats.write_sets += sets;
    store->stats.map_bytes = store->env.map_bytes;
    store->stats.used_bytes = used_bytes;
    store->stats.entries = entries;
    pthread_mutex_unlock(&store->mutex);
}

/* All sets of the group in one transaction: one fsync for all of them, each one whole, in order. */
static int write_group(fb_lmdb *store, const request *group, size_t count)
{
    if (count > store->sets_cap) {
        fb_span *sets = realloc(store->sets, count * sizeof *sets);
        if (sets == NULL) return ENOMEM;
        store->sets = sets;
        store->sets_cap = count;
    }
    size_t at = 0;
    for (const request *r = group; r != NULL; r = r->next) {
        store->sets[at++] = fb_span_of(r->bytes, r->len);
    }
    return fb_lmdb_env_write(&store->env, store->sets, count);
}

/* Commits the group and frees it. Sets of another incarnation are left out without an answer. */
static void serve_group(fb_lmdb *store, request *group)
{
    request *kept = NULL, **end = &kept;
    uint64_t sets = 0, w_first = 0, w_last = 0;
    while (group != NULL) {
        request *r = group;
        group = r->next;
        if (r->incarnation != store->incarnation) {
            free(r);
            continue;
        }
        if (kept == NULL) w_first = r->w;
        w_last = r->w;
        sets++;
        r->next = NULL;
        *end = r;
        end = &r->next;
    }
    if (kept == NULL) return;
    /* After a failure everything later fails as well: the sets build on one another. */
    int rc = store->failed ? MDB_PANIC : write_group(store, kept, sets);
    if (rc == 0) {
        store->applied = w_last;
        stats_after_commit(store, sets);
    } else {
        store->failed = true;
    }
    fb_lmdb_completion *c = completion_new(FB_LMDB_WRITE, rc, 0);
    c->incarnation = store->incarnation;
    c->w = rc == 0 ? w_last : w_first;
    completion_put(store, c);
    while (kept != NULL) {
        request *next = kept->next;
        free(kept);
        kept = next;
    }
}

/* Opening. */

/* A failed write can leave the environment unusable (MDB_PANIC): a new incarnation opens it anew,
 * which also shows what really reached the disk. */
static int env_reopen(fb_lmdb *store)
{
    fb_error error = FB_OK;
    char why[128];
    fb_lmdb_env_close(&store->env);
    return fb_lmdb_env_open(&store->env, why, sizeof why, &error);
}

static void serve_begin(fb_lmdb *store, uint64_t incarnation)
{
    int rc = store->failed ? env_reopen(store) : 0;
    store->incarnation = incarnation;
    store->applied = 0;
    store->failed = rc != 0;
    fb_lmdb_completion *c = completion_new(FB_LMDB_BEGUN, rc, 0);
    c->incarnation = incarnation;
    completion_put(store, c);
}

/* One round: reads at once from what is committed, write sets gathered, then committed together. */
static void serve(fb_lmdb *store, request *list)
{
    request *group = NULL, **end = &group;
    while (list != NULL) {
        request *r = list;
        list = r->next;
        r->next = NULL;
        if (r->kind == REQUEST_WRITE) {
            *end = r;
            end = &r->next;
            continue;
        }
        if (r->kind == REQUEST_READ) serve_read(store, r);
        if (r->kind == REQUEST_BEGIN) serve_begin(store, r->incarnation);
        free(r);
    }
    serve_group(store, group);
}

static void *store_thread(void *user)
{
    fb_lmdb *store = user;
    fb_store_fault_enter(store->directory);
    pthread_mutex_lock(&store->mutex);
    for (;;) {
        while (store->requests == NULL && !store->stopping) {
            pthread_cond_wait(&store->wake, &store->mutex);
        }
        request *list = store->requests;
        if (list == NULL) break;
        store->requests = NULL;
        store->requests_end = &store->requests;
        pthread_mutex_unlock(&store->mutex);
        serve(store, list);
        pthread_mutex_lock(&store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

static void store_free(fb_lmdb *store)
{
    while (store->done != NULL) {
        fb_lmdb_completion *next = store->done->next;
        free(store->done);
        store->done = next;
    }
    fb_lmdb_env_free(&store->env);
    free(store->sets);
    if (store->lock_fd >= 0) close(store->lock_fd);
    free(store->directory);
    pthread_cond_destroy(&store->wake);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static fb_status store_open(fb_lmdb *store, char *why, size_t why_len)
{
    fb_error error = FB_OK;
    store->env.directory = store->directory;
    store->env.owner = store->options.owner;
    int rc = fb_lmdb_env_open(&store->env, why, why_len, &error);
    if (error != FB_OK) return error;
    if (rc != 0) {
        say(why, why_len, "%s: %s", store->directory, fb_lmdb_text(rc));
        return fb_lmdb_error(rc);
    }
    store->env.must_exist = true;
    if (store->env.made && store->opening.found == FB_LMDB_FOUND_SOUND) {
        store->opening.found = FB_LMDB_FOUND_NOTHING;
    }
    stats_after_commit(store, 0);
    return FB_OK;
}

static fb_status store_prepare(fb_lmdb *store, char *why, size_t why_len)
{
    FB_TRY(fb_store_place_take(store->directory, &store->lock_fd, &store->opening, why, why_len));
    fb_store_fault_enter(store->directory);
    fb_status status = store_open(store, why, why_len);
    fb_store_fault_leave();
    FB_TRY(status);
    return fb_store_place_sync(store->directory, why, why_len);
}

const fb_lmdb_opening *fb_lmdb_opening_of(const fb_lmdb *store)
{
    return &store->opening;
}

fb_status fb_lmdb_open(const fb_lmdb_options *options, fb_lmdb **out, char *why, size_t why_len)
{
    *out = NULL;
    say(why, why_len, "%s", "");
    fb_lmdb *store = calloc(1, sizeof *store);
    if (store == NULL) return FB_ERR_NO_MEMORY;
    store->options = *options;
    store->env.map_bytes = options->map_bytes_min != 0 ? options->map_bytes_min : FB_LMDB_MAP_MIN;
    store->env.map_bytes_max =
        options->map_bytes_max != 0 ? options->map_bytes_max : FB_LMDB_MAP_MAX;
    store->lock_fd = -1;
    store->requests_end = &store->requests;
    store->done_end = &store->done;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
    store->directory = strdup(options->directory);
    fb_status status =
        store->directory == NULL ? FB_ERR_NO_MEMORY : store_prepare(store, why, why_len);
    if (status == FB_OK) {
        /* Signals belong to the loop's thread. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int rc = pthread_create(&store->thread, NULL, store_thread, store);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (rc != 0) {
            say(why, why_len, "no thread: %s", strerror(rc));
            status = FB_ERR_STORE_FAILED;
        }
    }
    if (status != FB_OK) {
        store_free(store);
        return status;
    }
    *out = store;
    return FB_OK;
}

void fb_lmdb_close(fb_lmdb *store)
{
    if (store == NULL) return;
    pthread_mutex_lock(&store->mutex);
    store->stopping = true;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
    pthread_join(store->thread, NULL);
    store_free(store);
}
