/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store_lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"
#include "protocol/base/limits.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"

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
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the members of this block */
    pthread_cond_t wake;
    request *requests, **requests_end;
    fb_lmdb_completion *done, **done_end;
    fb_lmdb_stats stats;
    bool stopping;

    /* The thread's own from here (the opener's before the thread runs). */
    MDB_env *env;
    MDB_dbi data;
    MDB_txn *read_txn; /* reset between batches; NULL until the first read after a growth */
    size_t map_bytes;
    uint64_t incarnation;
    uint64_t applied;
    bool failed;     /* this incarnation takes no more write sets */
    uint8_t *answer; /* scratch for read completions */
    size_t answer_cap;
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

static fb_error error_of(int rc)
{
    switch (rc) {
    case 0:
        return FB_OK;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
        return FB_ERR_STORE_DAMAGED;
    case ENOMEM:
        return FB_ERR_NO_MEMORY;
    default:
        return FB_ERR_STORE_FAILED;
    }
}

static uint64_t value_sum(fb_span key, const void *value, size_t len)
{
    return fb_xxh64(value, len, fb_xxh64(key.p, key.len, 0));
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
    c->error = error_of(rc);
    c->len = len;
    if (rc != 0) say(c->detail, sizeof c->detail, "%s", mdb_strerror(rc));
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

static bool answer_room(fb_lmdb *store, fb_writer *w, size_t more)
{
    if (more > w->cap - w->at) {
        size_t cap = store->answer_cap;
        while (more > cap - w->at) cap *= 2;
        uint8_t *p = realloc(store->answer, cap);
        if (p == NULL) return false;
        store->answer = p;
        store->answer_cap = cap;
        w->p = p;
        w->cap = cap;
    }
    return true;
}

/* Checks one stored value against its checksum and appends its entry. */
static int answer_entry(fb_lmdb *store, fb_writer *w, const MDB_val *key, const MDB_val *stored,
                        uint32_t value_bytes)
{
    fb_span k = fb_span_of(key->mv_data, key->mv_size);
    if (stored->mv_size < FB_LMDB_SUM_BYTES) return MDB_CORRUPTED;
    fb_reader r = fb_reader_of(fb_span_of(stored->mv_data, stored->mv_size));
    uint64_t sum = fb_read_u64(&r);
    fb_span value = fb_read_bytes(&r, fb_reader_left(&r));
    if (sum != value_sum(k, value.p, value.len)) return MDB_CORRUPTED;
    fb_read_entry entry = {k, (uint32_t)value.len, value};
    if (entry.value.len > value_bytes) entry.value.len = value_bytes;
    if (!answer_room(store, w, 2 + k.len + 4 + 4 + entry.value.len)) return ENOMEM;
    fb_read_entry_write(w, &entry);
    return 0;
}

static MDB_val val_of(fb_span s)
{
    /* LMDB takes keys as non-const and only reads them. */
    return (MDB_val){s.len, (void *)(uintptr_t)s.p};
}

/* Puts the cursor on the first entry of the range in its direction. */
static int range_first(MDB_cursor *cursor, const fb_read_item *item, MDB_val *key, MDB_val *value)
{
    if ((item->flags & FB_READ_DESCENDING) == 0) {
        if (item->low.len == 0) return mdb_cursor_get(cursor, key, value, MDB_FIRST);
        *key = val_of(item->low);
        return mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    }
    if (item->high.len == 0) return mdb_cursor_get(cursor, key, value, MDB_LAST);
    *key = val_of(item->high);
    int rc = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    if (rc == MDB_NOTFOUND) return mdb_cursor_get(cursor, key, value, MDB_LAST);
    return rc != 0 ? rc : mdb_cursor_get(cursor, key, value, MDB_PREV);
}

static int read_range(fb_lmdb *store, MDB_cursor *cursor, const fb_read_item *item, fb_writer *w,
                      bool *whole, uint32_t *entries)
{
    bool descending = (item->flags & FB_READ_DESCENDING) != 0;
    size_t start = w->at;
    MDB_val key, value;
    int rc = range_first(cursor, item, &key, &value);
    for (; rc == 0; rc = mdb_cursor_get(cursor, &key, &value, descending ? MDB_PREV : MDB_NEXT)) {
        fb_span k = fb_span_of(key.mv_data, key.mv_size);
        if (!descending && item->high.len != 0 && fb_span_compare(k, item->high) >= 0) break;
        if (descending && fb_span_compare(k, item->low) < 0) break;
        size_t value_len =
            value.mv_size < FB_LMDB_SUM_BYTES ? 0 : value.mv_size - FB_LMDB_SUM_BYTES;
        if (value_len > item->value_bytes) value_len = item->value_bytes;
        size_t bytes = w->at - start + 2 + k.len + 4 + 4 + value_len;
        if (*entries >= item->items || (*entries > 0 && bytes > item->bytes)) {
            *whole = false;
            return 0;
        }
        rc = answer_entry(store, w, &key, &value, item->value_bytes);
        if (rc != 0) return rc;
        ++*entries;
    }
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int read_item(fb_lmdb *store, MDB_txn *txn, MDB_cursor *cursor, const fb_read_item *item,
                     fb_writer *w)
{
    bool whole = true;
    uint32_t entries = 0;
    if (!answer_room(store, w, 5)) return ENOMEM;
    size_t head = w->at;
    fb_write_u8(w, 0);
    fb_write_u32(w, 0);
    int rc;
    if (item->low.len > FB_KEY_BYTES_MAX || item->high.len > FB_KEY_BYTES_MAX) {
        return MDB_BAD_VALSIZE;
    }
    if (item->kind == FB_READ_KEY) {
        MDB_val key = val_of(item->low), value;
        rc = mdb_get(txn, store->data, &key, &value);
        if (rc == 0) {
            rc = answer_entry(store, w, &key, &value, item->value_bytes);
            entries = 1;
        } else if (rc == MDB_NOTFOUND) {
            rc = 0;
        }
    } else {
        rc = read_range(store, cursor, item, w, &whole, &entries);
    }
    if (rc != 0) return rc;
    w->p[head] = whole ? 1 : 0;
    fb_store_be(w->p + head + 1, entries, 4);
    return 0;
}

/* One snapshot for the whole read set; what it shows is everything up to store->applied. */
static int read_all(fb_lmdb *store, fb_span read_set, fb_writer *w)
{
    if (store->env == NULL) return MDB_PANIC;
    int rc = store->read_txn != NULL
                 ? mdb_txn_renew(store->read_txn)
                 : mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->read_txn);
    if (rc != 0) return rc;
    MDB_cursor *cursor = NULL;
    rc = mdb_cursor_open(store->read_txn, store->data, &cursor);
    fb_reader r = fb_reader_of(read_set);
    unsigned items = fb_read_u16(&r);
    for (unsigned i = 0; rc == 0 && i < items; i++) {
        fb_read_item item = fb_read_item_next(&r);
        rc = r.failed ? EINVAL : read_item(store, store->read_txn, cursor, &item, w);
    }
    if (cursor != NULL) mdb_cursor_close(cursor);
    mdb_txn_reset(store->read_txn);
    return rc;
}

static void serve_read(fb_lmdb *store, const request *req)
{
    fb_writer w = fb_writer_of(store->answer, store->answer_cap);
    fb_write_u64(&w, store->incarnation);
    int rc = read_all(store, fb_span_of(req->bytes, req->len), &w);
    if (rc != 0) w.at = 8;
    fb_lmdb_completion *c = completion_new(FB_LMDB_READ, rc, w.at);
    memcpy(c->bytes, w.p, w.at);
    c->operation = req->operation;
    c->incarnation = store->incarnation;
    c->w = store->applied;
    completion_put(store, c);
}

/* Writing. */

static int write_one(fb_lmdb *store, MDB_txn *txn, fb_span set)
{
    fb_reader r = fb_reader_of(set);
    while (fb_reader_left(&r) > 0) {
        fb_write_entry e = fb_write_entry_next(&r);
        if (r.failed) return EINVAL;
        MDB_val key = val_of(e.key);
        int rc;
        if (e.kind == FB_WRITE_DELETE) {
            rc = mdb_del(txn, store->data, &key, NULL);
            if (rc == MDB_NOTFOUND) rc = 0;
        } else {
            MDB_val value = {FB_LMDB_SUM_BYTES + e.value.len, NULL};
            rc = mdb_put(txn, store->data, &key, &value, MDB_RESERVE);
            if (rc == 0) {
                uint8_t *room = value.mv_data;
                fb_store_be(room, value_sum(e.key, e.value.p, e.value.len), FB_LMDB_SUM_BYTES);
                if (e.value.len != 0) memcpy(room + FB_LMDB_SUM_BYTES, e.value.p, e.value.len);
            }
        }
        if (rc != 0) return rc;
    }
    return 0;
}

static int map_grow(fb_lmdb *store)
{
    size_t max = store->options.map_bytes_max;
    if (store->map_bytes >= max) return MDB_MAP_FULL;
    /* No transaction may be open while the map moves. */
    if (store->read_txn != NULL) mdb_txn_abort(store->read_txn);
    store->read_txn = NULL;
    size_t bytes = store->map_bytes > max / 2 ? max : store->map_bytes * 2;
    int rc = mdb_env_set_mapsize(store->env, bytes);
    if (rc == 0) store->map_bytes = bytes;
    return rc;
}

/* All sets of the group in one transaction: one fsync for all of them, each one whole, in order. */
static int write_group(fb_lmdb *store, const request *group)
{
    for (;;) {
        MDB_txn *txn = NULL;
        int rc = mdb_txn_begin(store->env, NULL, 0, &txn);
        for (const request *r = group; rc == 0 && r != NULL; r = r->next) {
            rc = write_one(store, txn, fb_span_of(r->bytes, r->len));
        }
        if (rc == 0) {
            rc = mdb_txn_commit(txn);
        } else if (txn != NULL) {
            mdb_txn_abort(txn);
        }
        if (rc == MDB_MAP_FULL) {
            rc = map_grow(store);
            if (rc == 0) continue;
        }
        return rc;
    }
}

static void stats_after_commit(fb_lmdb *store, uint64_t sets)
{
    MDB_envinfo info = {0};
    MDB_stat data = {0};
    MDB_txn *txn = NULL;
    mdb_env_info(store->env, &info);
    if (mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn) == 0) {
        mdb_stat(txn, store->data, &data);
        mdb_txn_abort(txn);
    }
    pthread_mutex_lock(&store->mutex);
    if (sets > 0) store->stats.commits++;
    store->stats.write_sets += sets;
    store->stats.map_bytes = store->map_bytes;
    store->stats.used_bytes = (uint64_t)(info.me_last_pgno + 1) * data.ms_psize;
    store->stats.entries = data.ms_entries;
    pthread_mutex_unlock(&store->mutex);
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
    int rc = store->failed ? MDB_PANIC : write_group(store, kept);
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

static int data_open(fb_lmdb *store, char *why, size_t why_len, fb_error *error)
{
    MDB_txn *txn = NULL;
    MDB_dbi meta;
    int rc = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (rc != 0) return rc;
    rc = mdb_dbi_open(txn, "meta", MDB_CREATE, &meta);
    if (rc == 0) rc = mdb_dbi_open(txn, "data", MDB_CREATE, &store->data);
    MDB_val key = {6, (void *)(uintptr_t) "format"}, value;
    if (rc == 0) rc = mdb_get(txn, meta, &key, &value);
    if (rc == MDB_NOTFOUND) {
        uint8_t format[4];
        fb_store_be(format, FB_LMDB_FORMAT, sizeof format);
        value = (MDB_val){sizeof format, format};
        rc = mdb_put(txn, meta, &key, &value, 0);
    } else if (rc == 0) {
        fb_reader r = fb_reader_of(fb_span_of(value.mv_data, value.mv_size));
        uint32_t format = fb_read_u32(&r);
        if (!fb_reader_done(&r) || format == 0) {
            rc = MDB_INVALID;
        } else if (format > FB_LMDB_FORMAT) {
            *error = FB_ERR_VERSION_NEWER;
            say(why, why_len,
                "%s has format %u and was written by a newer program; this one reads up to %u",
                store->directory, format, FB_LMDB_FORMAT);
            rc = EINVAL;
        }
    }
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    return mdb_txn_commit(txn);
}

static int env_open(fb_lmdb *store, char *why, size_t why_len, fb_error *error)
{
    int rc = mdb_env_create(&store->env);
    if (rc == 0) rc = mdb_env_set_maxdbs(store->env, 2);
    if (rc == 0) rc = mdb_env_set_mapsize(store->env, store->map_bytes);
    if (rc == 0) {
        rc = mdb_env_open(store->env, store->directory, MDB_NOTLS | MDB_NORDAHEAD, 0600);
    }
    if (rc == 0) rc = data_open(store, why, why_len, error);
    MDB_envinfo info;
    if (rc == 0) rc = mdb_env_info(store->env, &info);
    if (rc == 0) store->map_bytes = info.me_mapsize;
    if (rc != 0 && store->env != NULL) {
        mdb_env_close(store->env);
        store->env = NULL;
    }
    return rc;
}

/* A failed write can leave the environment unusable (MDB_PANIC): a new incarnation opens it anew,
 * which also shows what really reached the disk. */
static int env_reopen(fb_lmdb *store)
{
    if (store->read_txn != NULL) mdb_txn_abort(store->read_txn);
    store->read_txn = NULL;
    if (store->env != NULL) mdb_env_close(store->env);
    store->env = NULL;
    fb_error error = FB_OK;
    return env_open(store, NULL, 0, &error);
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
    if (store->read_txn != NULL) mdb_txn_abort(store->read_txn);
    if (store->env != NULL) mdb_env_close(store->env);
    if (store->lock_fd >= 0) close(store->lock_fd);
    free(store->answer);
    free(store->directory);
    pthread_cond_destroy(&store->wake);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static fb_status lock_take(fb_lmdb *store, char *why, size_t why_len)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/owner.lock", store->directory) >= (int)sizeof path) {
        say(why, why_len, "%s: the path is too long", store->directory);
        return FB_ERR_STORE_FAILED;
    }
    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock_fd < 0) {
        say(why, why_len, "%s: %s", path, strerror(errno));
        return FB_ERR_STORE_FAILED;
    }
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            say(why, why_len, "%s: %s", path, strerror(errno));
            return FB_ERR_STORE_FAILED;
        }
        say(why, why_len, "%s is in use by another process", store->directory);
        return FB_ERR_STORE_LOCKED;
    }
    return FB_OK;
}

static fb_status store_prepare(fb_lmdb *store, char *why, size_t why_len)
{
    if (mkdir(store->directory, 0700) != 0 && errno != EEXIST) {
        say(why, why_len, "%s: %s", store->directory, strerror(errno));
        return FB_ERR_STORE_FAILED;
    }
    FB_TRY(lock_take(store, why, why_len));
    fb_error error = FB_OK;
    int rc = env_open(store, why, why_len, &error);
    if (error != FB_OK) return error;
    if (rc != 0) {
        say(why, why_len, "%s: %s", store->directory, mdb_strerror(rc));
        return error_of(rc);
    }
    stats_after_commit(store, 0);
    return FB_OK;
}

fb_status fb_lmdb_open(const fb_lmdb_options *options, fb_lmdb **out, char *why, size_t why_len)
{
    *out = NULL;
    say(why, why_len, "%s", "");
    fb_lmdb *store = calloc(1, sizeof *store);
    if (store == NULL) return FB_ERR_NO_MEMORY;
    store->options = *options;
    if (options->map_bytes_max == 0) store->options.map_bytes_max = FB_LMDB_MAP_MAX;
    store->map_bytes = options->map_bytes_min != 0 ? options->map_bytes_min : FB_LMDB_MAP_MIN;
    store->lock_fd = -1;
    store->requests_end = &store->requests;
    store->done_end = &store->done;
    store->answer_cap = 4096;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
    store->answer = malloc(store->answer_cap);
    store->directory = strdup(options->directory);
    fb_status status = store->answer == NULL || store->directory == NULL
                           ? FB_ERR_NO_MEMORY
                           : store_prepare(store, why, why_len);
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
