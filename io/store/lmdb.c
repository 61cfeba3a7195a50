/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store/lmdb.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/document_store/store.h"
#include "io/store/fault.h"
#include "io/store/lmdb_env.h"
#include "io/store/place.h"
#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/store/keys.h"
#include "protocol/store/readset.h"

typedef enum request_kind {
    REQUEST_BEGIN = 1,
    REQUEST_READ = 2,
    REQUEST_WRITE = 3,
    REQUEST_SCRUB = 4,
    REQUEST_SERVED = 5, /* a job of the document store came back */
    REQUEST_MISSED = 7, /* a reading of documents came back without what should be there */
    REQUEST_OUTER = 6,  /* another program did something to documents */
} request_kind;

typedef struct request {
    struct request *next;
    request_kind kind;
    uint64_t incarnation;
    uint64_t operation;
    uint64_t w;
    fb_job *job;         /* SERVED */
    fb_outer *outer;     /* OUTER */
    fb_reading *reading; /* MISSED */
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

    /* Near reads: of the caller's thread. The three of `shown` belong together while `turn` is even
     * and stays the same: up to which write set the commit goes that has that id. */
    _Atomic uint64_t turn;
    _Atomic uint64_t shown;
    _Atomic uint64_t shown_incarnation;
    _Atomic uint64_t shown_id;
    fb_lmdb_env near;           /* reads in the environment of `env` */
    pthread_mutex_t near_guard; /* held while it does */
    uint64_t near_not_before_ns;
    uint64_t near_reads;

    /* The thread's own from here (the opener's before the thread runs). */
    fb_lmdb_env env;
    uint64_t remake_after_ms;      /* the last try failed */
    fb_store_documents *documents; /* NULL: everything is here */
    uint64_t incarnation;
    uint64_t applied;
    bool failed;   /* this incarnation takes no more write sets */
    bool failing;  /* nothing was written since a write failed */
    fb_span *sets; /* of the group that is being committed */
    size_t sets_cap;
    uint64_t scrub_pass, scrub_told; /* damaged values of this pass, and those that were counted */
    request *held, **held_end;       /* write sets of this incarnation that are tried again */
    uint64_t held_pause_ms;
    struct timespec held_due; /* CLOCK_MONOTONIC */
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

static request *request_new(request_kind kind, uint64_t incarnation, uint64_t operation, uint64_t w,
                            fb_span bytes)
{
    request *r = malloc(sizeof *r + bytes.len);
    FB_ASSERT(r != NULL);
    *r = (request){NULL, kind, incarnation, operation, w, NULL, NULL, NULL, bytes.len};
    if (bytes.len != 0) memcpy(r->bytes, bytes.p, bytes.len);
    return r;
}

static void request_queue(fb_lmdb *store, request *r)
{
    pthread_mutex_lock(&store->mutex);
    *store->requests_end = r;
    store->requests_end = &r->next;
    pthread_mutex_unlock(&store->mutex);
    /* Outside, or who wakes up would wait for the mutex first. */
    pthread_cond_signal(&store->wake);
}

static void request_put(fb_lmdb *store, request_kind kind, uint64_t incarnation, uint64_t operation,
                        uint64_t w, fb_span bytes)
{
    request_queue(store, request_new(kind, incarnation, operation, w, bytes));
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

void fb_lmdb_scrub(fb_lmdb *store, uint64_t operation, fb_span after)
{
    request_put(store, REQUEST_SCRUB, 0, operation, 0, after);
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
    out->reads += store->near_reads;
    out->near_reads = store->near_reads;
    pthread_mutex_unlock(&store->mutex);
    out->has_documents = store->documents != NULL;
    if (out->has_documents) fb_store_documents_stats(store->documents, &out->documents);
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

static bool is_small(fb_span read_set)
{
    fb_reader r = fb_reader_of(read_set);
    unsigned items = fb_read_u16(&r);
    uint64_t entries = 0, bytes = 0;
    for (unsigned i = 0; i < items && !r.failed; i++) {
        fb_read_item item = fb_read_item_next(&r);
        bool one = item.kind == FB_READ_KEY;
        entries += one ? 1 : item.items;
        bytes += one ? 0 : item.bytes;
        if (entries > FB_LMDB_NEAR_ENTRIES || bytes > FB_LMDB_NEAR_BYTES) return false;
    }
    return !r.failed;
}

bool fb_lmdb_read_near(fb_lmdb *store, uint64_t incarnation, fb_span read_set, fb_lmdb_near *out)
{
    if (store->documents != NULL || !is_small(read_set)) return false;
    uint64_t before = fb_clock_mono_ns();
    uint64_t turn = atomic_load(&store->turn);
    if (turn % 2 != 0 || before < store->near_not_before_ns ||
        atomic_load(&store->shown_incarnation) != incarnation ||
        pthread_mutex_trylock(&store->near_guard) != 0) {
        return false;
    }
    int rc = MDB_PANIC;
    out->w = atomic_load(&store->shown);
    uint64_t id = atomic_load(&store->shown_id);
    if (store->near.env != NULL) {
        fb_store_fault_enter_again(store->directory);
        rc = fb_lmdb_env_read(&store->near, incarnation, read_set, &out->bytes);
        fb_store_fault_leave();
    }
    pthread_mutex_unlock(&store->near_guard);
    /* A commit that ended before it was shown has the next id. */
    bool same = atomic_load(&store->turn) == turn && store->near.read_id == id;
    uint64_t took = fb_clock_mono_ns() - before;
    if (took > FB_LMDB_NEAR_SLOW_NS) {
        store->near_not_before_ns = before + took + took * FB_LMDB_NEAR_PAUSE_NS;
    }
    if (rc == 0 && same) store->near_reads++;
    return rc == 0 && same;
}

/* sure: see documents/reading.h. */
static void read_set_serve(fb_lmdb *store, uint64_t operation, fb_span read_set, bool sure)
{
    fb_span answer;
    int rc = store->env.env == NULL
                 ? MDB_PANIC
                 : fb_lmdb_env_read(&store->env, store->incarnation, read_set, &answer);
    if (rc == 0 && store->documents != NULL) {
        bool taken;
        rc = fb_store_documents_read(store->documents, operation, store->incarnation,
                                     store->applied, read_set,
                                     fb_span_of(answer.p + 8, answer.len - 8), sure, &taken);
        if (rc == 0 && taken) return;
    }
    uint8_t alone[8];
    if (rc != 0) {
        fb_store_be(alone, store->incarnation, sizeof alone);
        answer = fb_span_of(alone, sizeof alone);
    }
    fb_lmdb_completion *c = completion_new(FB_LMDB_READ, rc, answer.len);
    memcpy(c->bytes, answer.p, answer.len);
    c->operation = operation;
    c->incarnation = store->incarnation;
    c->w = store->applied;
    completion_put(store, c);
}

static void serve_read(fb_lmdb *store, const request *req)
{
    read_set_serve(store, req->operation, fb_span_of(req->bytes, req->len), false);
}

static void serve_scrub(fb_lmdb *store, const request *req)
{
    fb_span last;
    uint64_t entries, damaged;
    int rc = fb_lmdb_env_scrub(&store->env, fb_span_of(req->bytes, req->len), FB_LMDB_SCRUB_ENTRIES,
                               &last, &entries, &damaged);
    fb_lmdb_completion *c = completion_new(FB_LMDB_SCRUBBED, rc, last.len);
    if (last.len != 0) memcpy(c->bytes, last.p, last.len);
    c->operation = req->operation;
    c->entries = entries;
    c->damaged = damaged;
    pthread_mutex_lock(&store->mutex);
    /* One that was there in the last pass is not another one. */
    if (req->len == 0) store->scrub_pass = 0;
    store->scrub_pass += damaged;
    if (store->scrub_pass > store->scrub_told) {
        store->stats.damaged += store->scrub_pass - store->scrub_told;
        store->scrub_told = store->scrub_pass;
    }
    pthread_mutex_unlock(&store->mutex);
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

/* What is written for the group: its sets, or what stands for them where records are documents. */
static int gather_sets(fb_lmdb *store, const request *group, size_t *count)
{
    size_t most = 2;
    for (const request *r = group; r != NULL; r = r->next) most++;
    if (most > store->sets_cap) {
        fb_span *sets = realloc(store->sets, most * sizeof *sets);
        if (sets == NULL) return ENOMEM;
        store->sets = sets;
        store->sets_cap = most;
    }
    *count = 0;
    int rc = 0;
    if (store->documents != NULL) {
        rc = fb_store_documents_clean(store->documents, &store->sets[0]);
        if (rc == 0 && store->sets[0].len != 0) *count = 1;
        if (rc == 0 && group == NULL && store->incarnation != 0) {
            fb_span *set = &store->sets[*count];
            fb_store_documents_remake(store->documents, store->incarnation, store->applied, set);
            if (set->len != 0) ++*count;
        }
    }
    for (const request *r = group; rc == 0 && r != NULL; r = r->next) {
        fb_span *set = &store->sets[(*count)++];
        *set = fb_span_of(r->bytes, r->len);
        if (store->documents != NULL) {
            rc = fb_store_documents_split(store->documents, r->incarnation, r->w, *set, set);
        }
    }
    return rc;
}

/* What near reads may answer from now: the last commit. */
static void show(fb_lmdb *store, uint64_t w, uint64_t incarnation)
{
    atomic_fetch_add(&store->turn, 1);
    atomic_store(&store->shown, w);
    atomic_store(&store->shown_incarnation, incarnation);
    atomic_store(&store->shown_id, store->env.written_id);
    atomic_fetch_add(&store->turn, 1);
}

/* All sets of the group in one transaction: one fsync for all of them, each one whole, in order. */
static int write_group(fb_lmdb *store, const request *group)
{
    size_t count;
    int rc = gather_sets(store, group, &count);
    if (rc == 0) rc = fb_lmdb_env_write(&store->env, store->sets, count);
    if (rc == 0 && group != NULL) {
        while (group->next != NULL) group = group->next;
        store->applied = group->w;
    }
    /* Of a commit that failed nobody knows what it left, until the next one. */
    show(store, store->applied, rc == 0 ? store->incarnation : 0);
    if (rc == 0) {
        store->failing = false;
        stats_after_commit(store, count);
    }
    if (store->documents != NULL) {
        uint64_t w = group == NULL ? 0 : group->w;
        int handed = fb_store_documents_over(store->documents, rc == 0, store->incarnation, w);
        if (rc == 0) rc = handed;
    }
    return rc;
}

static void group_free(request *group)
{
    while (group != NULL) {
        request *next = group->next;
        free(group);
        group = next;
    }
}

static void group_answer(fb_lmdb *store, const request *group, int rc)
{
    /* Where records are documents, the answer is given when they are kept. */
    if (rc == 0 && store->documents != NULL) return;
    fb_lmdb_completion *c = completion_new(FB_LMDB_WRITE, rc, 0);
    c->incarnation = store->incarnation;
    c->w = rc == 0 ? store->applied : group->w;
    completion_put(store, c);
}

/* Takes out of the list what belongs to another incarnation: it is never answered. */
static request *group_of(const fb_lmdb *store, request *list)
{
    request *kept = NULL, **end = &kept;
    while (list != NULL) {
        request *r = list;
        list = r->next;
        r->next = NULL;
        if (r->incarnation != store->incarnation) {
            free(r);
        } else {
            *end = r;
            end = &r->next;
        }
    }
    return kept;
}

/* Kept sets. */

/* Could the same write set be taken later? A full or a failing disk says one of these; a set that
 * is malformed, or a file that is gone or cannot be followed, stays so. */
static bool may_pass(int rc)
{
    if (rc == MDB_MAP_FULL || rc == MDB_PANIC) return true;
    return rc > 0 && rc < FB_LMDB_BAD_SUM && rc != EINVAL && rc != ENOMEM;
}

/* On a full disk a small write set may find a place where a larger one just failed: while there is
 * hardly any room nothing is tried, or every second write would end an incarnation. */
static bool has_room(const fb_lmdb *store)
{
    struct statvfs disk;
    return statvfs(store->directory, &disk) != 0 || disk.f_blocks == 0 ||
           disk.f_bavail >= FB_LMDB_ROOM_BYTES / disk.f_frsize;
}

static int write_or_wait(fb_lmdb *store, const request *group)
{
    if (store->env.env == NULL) return MDB_PANIC;
    return store->failing && !has_room(store) ? ENOSPC : write_group(store, group);
}

static void held_show(fb_lmdb *store, bool held)
{
    pthread_mutex_lock(&store->mutex);
    store->stats.held = held;
    pthread_mutex_unlock(&store->mutex);
}

static void held_later(fb_lmdb *store)
{
    clock_gettime(CLOCK_MONOTONIC, &store->held_due);
    uint64_t ns = (uint64_t)store->held_due.tv_nsec + store->held_pause_ms * 1000000u;
    store->held_due.tv_sec += (time_t)(ns / 1000000000u);
    store->held_due.tv_nsec = (long)(ns % 1000000000u);
    store->held_pause_ms *= 2;
    if (store->held_pause_ms > FB_LMDB_RETRY_MAX_MS) store->held_pause_ms = FB_LMDB_RETRY_MAX_MS;
}

static void held_append(fb_lmdb *store, request *group)
{
    *store->held_end = group;
    while (*store->held_end != NULL) store->held_end = &(*store->held_end)->next;
}

static void held_drop(fb_lmdb *store)
{
    group_free(store->held);
    store->held = NULL;
    store->held_end = &store->held;
    held_show(store, false);
}

static int env_reopen(fb_lmdb *store);

static void held_begin(fb_lmdb *store, request *group, int rc)
{
    held_append(store, group);
    store->held_pause_ms = FB_LMDB_RETRY_MIN_MS;
    held_later(store);
    held_show(store, true);
    fb_lmdb_completion *c = completion_new(FB_LMDB_HELD, rc, 0);
    c->incarnation = store->incarnation;
    completion_put(store, c);
    /* What failed may have left the environment unusable, and reads go on. */
    env_reopen(store);
}

/* Whatever a try did before it failed, the next one writes the same whole values again. */
static void held_try(fb_lmdb *store)
{
    int rc = write_or_wait(store, store->held);
    if (rc != 0 && may_pass(rc)) {
        env_reopen(store);
        held_later(store);
        return;
    }
    store->failed = rc != 0;
    group_answer(store, store->held, rc);
    held_drop(store);
}

/* Commits the group, or keeps it, and frees it. */
static void serve_group(fb_lmdb *store, request *group)
{
    group = group_of(store, group);
    if (group == NULL) return;
    if (store->held != NULL) {
        held_append(store, group);
        return;
    }
    /* After a failure everything later fails as well: the sets build on one another. */
    int rc = store->failed ? MDB_PANIC : write_or_wait(store, group);
    /* The first failure is told, so that whoever waits is answered; the incarnation after it finds
     * nobody waiting. */
    if (rc != 0 && !store->failed && store->failing && may_pass(rc)) {
        held_begin(store, group, rc);
        return;
    }
    if (rc != 0) store->failed = store->failing = true;
    group_answer(store, group, rc);
    group_free(group);
}

/* Documents. */

static void document_missed(fb_lmdb *store, fb_reading *reading)
{
    request *r = request_new(REQUEST_MISSED, 0, 0, 0, (fb_span){NULL, 0});
    r->reading = reading;
    request_queue(store, r);
}

static void document_read(void *user, fb_reading *reading, fb_status status, fb_span answer,
                          const char *why)
{
    fb_lmdb *store = user;
    uint8_t alone[8];
    bool lacks = status == FB_OK && fb_store_documents_lacks(store->documents, reading);
    if (status == FB_ERR_NOT_FOUND || lacks) {
        document_missed(store, reading);
        return;
    }
    if (status != FB_OK) {
        fb_store_be(alone, reading->incarnation, sizeof alone);
        answer = fb_span_of(alone, sizeof alone);
    }
    fb_lmdb_completion *c = completion_new(FB_LMDB_READ, 0, answer.len);
    memcpy(c->bytes, answer.p, answer.len);
    c->error = status;
    say(c->detail, sizeof c->detail, "%s", why);
    c->operation = reading->operation;
    c->incarnation = reading->incarnation;
    c->w = reading->w;
    completion_put(store, c);
    fb_reading_free(reading);
}

static void document_done(void *user, fb_job *job, uint64_t start)
{
    request *r = request_new(REQUEST_SERVED, job->incarnation, 0, start, (fb_span){NULL, 0});
    r->job = job;
    request_queue(user, r);
}

static void document_outer(void *user, fb_outer *outer)
{
    request *r = request_new(REQUEST_OUTER, 0, 0, 0, (fb_span){NULL, 0});
    r->outer = outer;
    request_queue(user, r);
}

static void serve_outer(fb_lmdb *store, fb_outer *outer)
{
    bool forward;
    int rc = fb_store_documents_outer(store->documents, outer, &forward);
    if (rc != 0 || !forward) return;
    fb_lmdb_completion *c = completion_new(FB_LMDB_OUTER, 0, 0);
    c->outer = outer;
    completion_put(store, c);
}

/* Those that came while the local store could not be read. */
static void serve_kept_outers(fb_lmdb *store)
{
    uint64_t now_ms = fb_clock_awake_or_not_ms();
    fb_outer *outer;
    while ((outer = fb_store_documents_outer_due(store->documents, now_ms)) != NULL) {
        serve_outer(store, outer);
    }
}

void fb_lmdb_outer_done(fb_lmdb *store, fb_outer *outer)
{
    fb_store_documents_outer_done(store->documents, outer);
}

void fb_lmdb_outer_again(fb_lmdb *store, fb_outer *outer)
{
    fb_store_documents_outer_again(store->documents, outer);
}

/* It is made again if it should still be there, and read once more: that, and not all else that is
 * to be made again, as everybody waits. Where that cannot be written nothing is known of it. */
static void serve_missed(fb_lmdb *store, const request *req)
{
    fb_reading *reading = req->reading;
    bool wanted = reading->incarnation == store->incarnation && store->env.env != NULL;
    if (wanted && fb_store_documents_lacks(store->documents, reading)) {
        read_set_serve(store, reading->operation, reading->read_set, false);
    } else if (wanted) {
        fb_store_documents_missing(store->documents, reading);
        int rc = 0;
        while (rc == 0 && !store->failing && fb_store_documents_misses(store->documents)) {
            rc = write_group(store, NULL);
        }
        if (fb_store_documents_misses(store->documents)) {
            document_read(store, reading, FB_ERR_AGAIN, (fb_span){NULL, 0},
                          "a document is gone, and the local store takes no other one now");
            return;
        }
        read_set_serve(store, reading->operation, reading->read_set, true);
    }
    fb_reading_free(reading);
}

/* Lists that waited until what they list is made again. */
static void serve_waited(fb_lmdb *store)
{
    bool late;
    fb_reading *reading;
    while ((reading = fb_store_documents_waited(store->documents, &late)) != NULL) {
        if (reading->incarnation != store->incarnation) {
            fb_reading_free(reading);
        } else if (late) {
            document_read(store, reading, FB_ERR_AGAIN, (fb_span){NULL, 0},
                          "documents that are gone are being made again");
        } else {
            read_set_serve(store, reading->operation, reading->read_set, false);
            fb_reading_free(reading);
        }
    }
}

static void serve_served(fb_lmdb *store, const request *req)
{
    fb_job *job = req->job;
    if (job->w != 0 && job->incarnation == store->incarnation && !store->failed) {
        fb_lmdb_completion *c = completion_new(FB_LMDB_WRITE, 0, 0);
        c->incarnation = job->incarnation;
        c->w = job->w;
        completion_put(store, c);
    }
    fb_store_documents_served(store->documents, job, req->w);
}

static int documents_open(fb_lmdb *store)
{
    const fb_worker_ops callbacks = {document_read, document_done, document_outer, store};
    if (store->options.documents_ops == NULL) return 0;
    return fb_store_documents_open(&store->env, store->options.documents_ops,
                                   store->options.documents, &callbacks, &store->documents);
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
    /* A commit of unknown outcome may have left redo entries that nobody has handed on. */
    if (store->failed && rc == 0 && store->documents != NULL) {
        rc = fb_store_documents_resume(store->documents);
    }
    held_drop(store);
    store->incarnation = incarnation;
    store->applied = 0;
    store->failed = rc != 0;
    show(store, 0, rc == 0 ? incarnation : 0);
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
        if (r->kind == REQUEST_SCRUB) serve_scrub(store, r);
        if (r->kind == REQUEST_BEGIN) serve_begin(store, r->incarnation);
        if (r->kind == REQUEST_SERVED) serve_served(store, r);
        if (r->kind == REQUEST_MISSED) serve_missed(store, r);
        if (r->kind == REQUEST_OUTER) serve_outer(store, r->outer);
        free(r);
    }
    serve_group(store, group);
}

/* When records whose documents are gone are made again; UINT64_MAX: there are none. */
static uint64_t remake_at_ms(const fb_lmdb *store)
{
    bool wanted = store->documents != NULL && !store->failing && store->incarnation != 0 &&
                  fb_store_documents_wants_remaking(store->documents);
    return wanted ? store->remake_after_ms : UINT64_MAX;
}

/* Without a write set that takes them along; they may stay where that fails. */
static void clean_documents(fb_lmdb *store, bool idle)
{
    if (store->documents == NULL || store->failing || store->env.env == NULL ||
        (!fb_store_documents_wants_cleaning(store->documents, idle) &&
         remake_at_ms(store) > fb_clock_awake_or_not_ms() &&
         !fb_store_documents_has_token(store->documents))) {
        return;
    }
    if (write_group(store, NULL) != 0) {
        store->remake_after_ms = fb_clock_awake_or_not_ms() + FB_LMDB_RETRY_MAX_MS;
    }
}

/* Waits for requests, or until kept write sets are due, or documents again, or until it is idle
 * enough to take out what has served; with the mutex. True: nothing came. */
static bool wait_for_work(fb_lmdb *store)
{
    int rc = 0;
    uint64_t again_ms =
        store->documents == NULL ? UINT64_MAX : fb_store_documents_again_at(store->documents);
    bool served = store->documents != NULL && !store->failing &&
                  fb_store_documents_wants_cleaning(store->documents, true);
    uint64_t idle_ms = fb_clock_awake_or_not_ms() + FB_STORE_SERVED_IDLE_MS;
    if (served && idle_ms < again_ms) again_ms = idle_ms;
    if (remake_at_ms(store) < again_ms) again_ms = remake_at_ms(store);
    bool again = store->held == NULL && again_ms != UINT64_MAX;
    struct timespec due = store->held_due;
    if (again) {
        uint64_t now_ms = fb_clock_awake_or_not_ms();
        uint64_t wait_ms = again_ms > now_ms ? again_ms - now_ms : 0;
        uint64_t due_ms = fb_clock_mono_ns() / 1000000 + wait_ms + 1;
        due = (struct timespec){(time_t)(due_ms / 1000), (long)(due_ms % 1000 * 1000000)};
    }
    while (store->requests == NULL && !store->stopping && rc != ETIMEDOUT) {
        rc = store->held == NULL && !again
                 ? pthread_cond_wait(&store->wake, &store->mutex)
                 : pthread_cond_timedwait(&store->wake, &store->mutex, &due);
    }
    return rc == ETIMEDOUT;
}

static bool held_is_due(const fb_lmdb *store)
{
    struct timespec now;
    if (store->held == NULL) return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > store->held_due.tv_sec ||
           (now.tv_sec == store->held_due.tv_sec && now.tv_nsec >= store->held_due.tv_nsec);
}

static void *store_thread(void *user)
{
    fb_lmdb *store = user;
    fb_store_fault_enter(store->directory);
    bool over = false;
    while (!over) {
        pthread_mutex_lock(&store->mutex);
        bool idle = wait_for_work(store);
        request *list = store->requests;
        store->requests = NULL;
        store->requests_end = &store->requests;
        over = store->stopping && list == NULL;
        pthread_mutex_unlock(&store->mutex);
        serve(store, list);
        if (held_is_due(store) || (over && store->held != NULL)) held_try(store);
        /* Entries that do not follow their format stay, and are found again at a start. */
        if (store->documents != NULL) {
            serve_waited(store);
            serve_kept_outers(store);
            (void)fb_store_documents_again(store->documents);
        }
        clean_documents(store, over || idle);
    }
    return NULL;
}

static void store_free(fb_lmdb *store)
{
    /* Its callbacks may still put something into both lists. */
    if (store->documents != NULL) fb_store_documents_stop(store->documents);
    while (store->requests != NULL) {
        request *next = store->requests->next;
        fb_job_free(store->requests->job);
        fb_outer_free(store->requests->outer);
        fb_reading_free(store->requests->reading);
        free(store->requests);
        store->requests = next;
    }
    fb_store_documents_free(store->documents);
    while (store->done != NULL) {
        fb_lmdb_completion *next = store->done->next;
        fb_outer_free(store->done->outer);
        free(store->done);
        store->done = next;
    }
    fb_lmdb_env_free(&store->env);
    fb_lmdb_env_free(&store->near);
    group_free(store->held);
    free(store->sets);
    if (store->lock_fd >= 0) close(store->lock_fd);
    free(store->directory);
    pthread_cond_destroy(&store->wake);
    pthread_mutex_destroy(&store->mutex);
    pthread_mutex_destroy(&store->near_guard);
    free(store);
}

static bool has_documents(fb_lmdb *store)
{
    static const uint8_t start_key[] = {FB_TAG_REDO};
    fb_span start;
    return fb_lmdb_env_look(&store->env, fb_span_of(start_key, sizeof start_key), &start) == 0 &&
           start.len != 0;
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
    if (store->options.documents_ops == NULL && has_documents(store)) {
        say(why, why_len,
            "the records of this node are in a document store: run it with that as its --store, or "
            "bring them back with `faberio store migrate --to local`");
        return FB_ERR_STORE_FAILED;
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
    say(why, why_len, "%s: no memory", options->directory); /* unless there is more to say */
    fb_lmdb *store = calloc(1, sizeof *store);
    if (store == NULL) return FB_ERR_NO_MEMORY;
    store->options = *options;
    store->env.map_bytes = options->map_bytes_min != 0 ? options->map_bytes_min : FB_LMDB_MAP_MIN;
    store->env.map_bytes_max =
        options->map_bytes_max != 0 ? options->map_bytes_max : FB_LMDB_MAP_MAX;
    store->lock_fd = -1;
    store->requests_end = &store->requests;
    store->done_end = &store->done;
    store->held_end = &store->held;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_mutex_init(&store->near_guard, NULL);
    store->env.reader = &store->near;
    store->env.guard = &store->near_guard;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&store->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    store->directory = strdup(options->directory);
    fb_status status =
        store->directory == NULL ? FB_ERR_NO_MEMORY : store_prepare(store, why, why_len);
    if (status == FB_OK) {
        /* Signals belong to the loop's thread. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int rc = documents_open(store);
        if (rc != 0) {
            say(why, why_len, "%s: what waits for the document store: %s", store->directory,
                fb_lmdb_text(rc));
        } else {
            rc = pthread_create(&store->thread, NULL, store_thread, store);
            if (rc != 0) say(why, why_len, "no thread: %s", strerror(rc));
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (rc != 0) status = FB_ERR_STORE_FAILED;
    }
    if (status != FB_OK) {
        store_free(store);
        return status;
    }
    say(why, why_len, "%s", "");
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
