/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store/snapshot.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/store/fault.h"
#include "io/store/lmdb_env.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"

#define PATH_BYTES 4200

struct fb_store_snapshot {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi data;
    MDB_cursor *cursor;
    uint8_t last[FB_KEY_BYTES_MAX], under[FB_KEY_BYTES_MAX]; /* the key given last; its beginning */
    size_t last_len, under_len;
};

void fb_store_snapshot_close(fb_store_snapshot *s)
{
    if (s == NULL) return;
    if (s->cursor != NULL) mdb_cursor_close(s->cursor);
    if (s->txn != NULL) mdb_txn_abort(s->txn);
    if (s->env != NULL) mdb_env_close(s->env);
    fb_store_fault_leave();
    free(s);
}

static void asserted(MDB_env *env, const char *what)
{
    (void)env;
    fb_store_fault_now(what);
}

static int open_tables(fb_store_snapshot *s, uint32_t *format)
{
    MDB_dbi meta;
    MDB_val key = {6, (void *)(uintptr_t) "format"}, value;
    int rc = mdb_txn_begin(s->env, NULL, MDB_RDONLY, &s->txn);
    if (rc == 0) rc = mdb_dbi_open(s->txn, "meta", 0, &meta);
    if (rc == 0) rc = mdb_get(s->txn, meta, &key, &value);
    if (rc == 0 && value.mv_size != 4) rc = MDB_CORRUPTED;
    if (rc == 0) {
        fb_reader r = fb_reader_of(fb_span_of(value.mv_data, value.mv_size));
        *format = fb_read_u32(&r);
        rc = mdb_dbi_open(s->txn, "data", 0, &s->data);
    }
    return rc == 0 ? mdb_cursor_open(s->txn, s->data, &s->cursor) : rc;
}

fb_status fb_store_snapshot_open(const char *directory, fb_store_snapshot **out, char *why,
                                 size_t why_len)
{
    char path[PATH_BYTES];
    struct stat st;
    *out = NULL;
    snprintf(path, sizeof path, "%s/data.mdb", directory);
    if (stat(path, &st) != 0) {
        snprintf(why, why_len, "%s: %s", path, strerror(errno));
        return errno == ENOENT ? FB_ERR_NOT_FOUND : FB_ERR_STORE_FAILED;
    }
    fb_store_snapshot *s = calloc(1, sizeof *s);
    uint32_t format = 0;
    int rc = s == NULL ? ENOMEM : mdb_env_create(&s->env);
    /* A damaged file ends the process with a word; nothing else could be read of it. */
    fb_store_fault_enter(directory);
    if (rc == 0) rc = mdb_env_set_assert(s->env, asserted);
    if (rc == 0) rc = mdb_env_set_maxdbs(s->env, 2);
    if (rc == 0) {
        rc = mdb_env_open(s->env, directory, MDB_RDONLY | MDB_NOTLS | MDB_NORDAHEAD, 0600);
    }
    if (rc == 0) rc = open_tables(s, &format);
    if (rc == 0 && format == FB_LMDB_FORMAT) {
        *out = s;
        return FB_OK;
    }
    fb_store_snapshot_close(s);
    if (rc == 0 || rc == MDB_VERSION_MISMATCH) {
        bool older = rc == 0 && format < FB_LMDB_FORMAT;
        snprintf(why, why_len, "%s was written by %s program", path,
                 older ? "an older" : "a newer");
        return older ? FB_ERR_VERSION_OLDER : FB_ERR_VERSION_NEWER;
    }
    snprintf(why, why_len, "%s: %s", path, mdb_strerror(rc));
    return rc > 0 ? FB_ERR_STORE_FAILED : FB_ERR_STORE_DAMAGED;
}

static fb_status taken(int rc, const MDB_val *key, const MDB_val *stored, fb_span *value)
{
    if (rc == MDB_NOTFOUND) return FB_ERR_NOT_FOUND;
    if (rc != 0) return rc > 0 ? FB_ERR_STORE_FAILED : FB_ERR_STORE_DAMAGED;
    if (!fb_lmdb_value_is_whole(key, stored)) return FB_ERR_STORE_DAMAGED;
    *value = fb_span_of((const uint8_t *)stored->mv_data + FB_LMDB_SUM_BYTES,
                        stored->mv_size - FB_LMDB_SUM_BYTES);
    return FB_OK;
}

/* LMDB takes keys as non-const and only reads them. */
static MDB_val val_of(fb_span s)
{
    return (MDB_val){s.len, (void *)(uintptr_t)s.p};
}

fb_status fb_store_snapshot_get(fb_store_snapshot *s, fb_span key, fb_span *value)
{
    MDB_val k = val_of(key), stored;
    return taken(mdb_get(s->txn, s->data, &k, &stored), &k, &stored, value);
}

static fb_status entry(fb_store_snapshot *s, MDB_val *k, MDB_cursor_op op, fb_span *key,
                       fb_span *value)
{
    MDB_val stored;
    int rc = mdb_cursor_get(s->cursor, k, &stored, op);
    fb_span got = rc == 0 ? fb_span_of(k->mv_data, k->mv_size) : (fb_span){NULL, 0};
    /* Pages that lead to one another would be gone through for ever. */
    bool again = op == MDB_NEXT && fb_span_compare(got, fb_span_of(s->last, s->last_len)) <= 0;
    if (rc == 0 && (again || got.len == 0 || got.len > sizeof s->last)) rc = MDB_CORRUPTED;
    if (rc == 0 && (got.len < s->under_len || memcmp(got.p, s->under, s->under_len) != 0)) {
        rc = MDB_NOTFOUND;
    }
    *key = rc == 0 ? got : (fb_span){NULL, 0};
    if (rc == 0) memcpy(s->last, got.p, got.len);
    if (rc == 0) s->last_len = got.len;
    return taken(rc, k, &stored, value);
}

fb_status fb_store_snapshot_first(fb_store_snapshot *s, fb_span under, fb_span *key, fb_span *value)
{
    MDB_val k = val_of(under);
    *key = (fb_span){NULL, 0};
    if (under.len == 0 || under.len > sizeof s->under) return FB_ERR_ARGUMENT;
    memcpy(s->under, under.p, under.len);
    s->under_len = under.len;
    return entry(s, &k, MDB_SET_RANGE, key, value);
}

fb_status fb_store_snapshot_next(fb_store_snapshot *s, fb_span *key, fb_span *value)
{
    MDB_val k;
    return entry(s, &k, MDB_NEXT, key, value);
}
