/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store/lmdb_env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/store/fault.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"
#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"

fb_error fb_lmdb_error(int rc)
{
    switch (rc) {
    case 0:
        return FB_OK;
    case FB_LMDB_BAD_SUM:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_CURSOR_FULL:
    case MDB_BAD_TXN: /* what LMDB says once it met such a page in this transaction */
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
        return FB_ERR_STORE_DAMAGED;
    case ENOMEM:
        return FB_ERR_NO_MEMORY;
    default:
        return FB_ERR_STORE_FAILED;
    }
}

const char *fb_lmdb_text(int rc)
{
    if (rc == FB_LMDB_BAD_SUM) return "a value does not match its checksum";
    if (rc == FB_LMDB_GONE) return "data.mdb was removed or replaced while the node ran";
    return mdb_strerror(rc);
}

static uint64_t value_sum(fb_span key, const void *value, size_t len)
{
    return fb_xxh64(value, len, fb_xxh64(key.p, key.len, 0));
}

bool fb_lmdb_value_is_whole(const MDB_val *key, const MDB_val *stored)
{
    if (stored->mv_size < FB_LMDB_SUM_BYTES) return false;
    fb_reader r = fb_reader_of(fb_span_of(stored->mv_data, stored->mv_size));
    uint64_t sum = fb_read_u64(&r);
    fb_span value = fb_read_bytes(&r, fb_reader_left(&r));
    return sum == value_sum(fb_span_of(key->mv_data, key->mv_size), value.p, value.len);
}

/* Reading. */

static bool answer_room(fb_lmdb_env *e, fb_writer *w, size_t more)
{
    if (more > w->cap - w->at) {
        size_t cap = e->answer_cap == 0 ? 4096 : e->answer_cap;
        while (more > cap - w->at) cap *= 2;
        uint8_t *p = realloc(e->answer, cap);
        if (p == NULL) return false;
        e->answer = p;
        e->answer_cap = cap;
        w->p = p;
        w->cap = cap;
    }
    return true;
}

/* Checks one stored value against its checksum and appends its entry. */
static int answer_entry(fb_lmdb_env *e, fb_writer *w, const MDB_val *key, const MDB_val *stored,
                        uint32_t value_bytes)
{
    if (!fb_lmdb_value_is_whole(key, stored)) return FB_LMDB_BAD_SUM;
    fb_span k = fb_span_of(key->mv_data, key->mv_size);
    fb_span value = fb_span_of((const uint8_t *)stored->mv_data + FB_LMDB_SUM_BYTES,
                               stored->mv_size - FB_LMDB_SUM_BYTES);
    fb_read_entry entry = {k, (uint32_t)value.len, value};
    if (entry.value.len > value_bytes) entry.value.len = value_bytes;
    if (!answer_room(e, w, 2 + k.len + 4 + 4 + entry.value.len)) return ENOMEM;
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

static int read_range(fb_lmdb_env *e, MDB_cursor *cursor, const fb_read_item *item, fb_writer *w,
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
        rc = answer_entry(e, w, &key, &value, item->value_bytes);
        if (rc != 0) return rc;
        ++*entries;
    }
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int read_item(fb_lmdb_env *e, MDB_txn *txn, MDB_cursor *cursor, const fb_read_item *item,
                     fb_writer *w)
{
    bool whole = true;
    uint32_t entries = 0;
    if (!answer_room(e, w, 5)) return ENOMEM;
    size_t head = w->at;
    fb_write_u8(w, 0);
    fb_write_u32(w, 0);
    int rc;
    if (item->low.len > FB_KEY_BYTES_MAX || item->high.len > FB_KEY_BYTES_MAX) {
        return MDB_BAD_VALSIZE;
    }
    if (item->kind == FB_READ_KEY) {
        MDB_val key = val_of(item->low), value;
        rc = mdb_get(txn, e->data, &key, &value);
        if (rc == 0) {
            rc = answer_entry(e, w, &key, &value, item->value_bytes);
            entries = 1;
        } else if (rc == MDB_NOTFOUND) {
            rc = 0;
        }
    } else {
        rc = read_range(e, cursor, item, w, &whole, &entries);
    }
    if (rc != 0) return rc;
    w->p[head] = whole ? 1 : 0;
    fb_store_be(w->p + head + 1, entries, 4);
    return 0;
}

static int reading_begin(fb_lmdb_env *e, MDB_cursor **cursor)
{
    *cursor = NULL;
    if (e->env == NULL) return MDB_PANIC;
    int rc = e->read_txn != NULL ? mdb_txn_renew(e->read_txn)
                                 : mdb_txn_begin(e->env, NULL, MDB_RDONLY, &e->read_txn);
    return rc != 0 ? rc : mdb_cursor_open(e->read_txn, e->data, cursor);
}

/* Also where it could not begin. */
static void reading_end(fb_lmdb_env *e, MDB_cursor *cursor)
{
    if (cursor != NULL) mdb_cursor_close(cursor);
    if (e->read_txn != NULL) mdb_txn_reset(e->read_txn);
}

int fb_lmdb_env_scrub(fb_lmdb_env *e, fb_span after, uint32_t items, fb_span *last,
                      uint64_t *entries, uint64_t *damaged)
{
    MDB_cursor *cursor;
    MDB_val key = val_of(after), value;
    *last = (fb_span){NULL, 0};
    *entries = *damaged = 0;
    int rc = reading_begin(e, &cursor);
    if (rc != 0) {
        reading_end(e, cursor);
        return rc;
    }
    rc = mdb_cursor_get(cursor, &key, &value, after.len == 0 ? MDB_FIRST : MDB_SET_RANGE);
    bool is_after =
        after.len != 0 && rc == 0 && fb_span_equal(fb_span_of(key.mv_data, key.mv_size), after);
    if (is_after) rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    while (rc == 0 && *entries < items) {
        ++*entries;
        if (!fb_lmdb_value_is_whole(&key, &value)) ++*damaged;
        if (*entries == items) {
            fb_writer w = fb_writer_of(e->answer, e->answer_cap);
            if (!answer_room(e, &w, key.mv_size)) {
                rc = ENOMEM;
                break;
            }
            fb_write_bytes(&w, key.mv_data, key.mv_size);
            *last = fb_writer_span(&w);
        }
        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    if (rc == MDB_NOTFOUND) *last = (fb_span){NULL, 0}; /* it was the last one */
    reading_end(e, cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static fb_span value_of(const MDB_val *stored)
{
    return fb_span_of((const uint8_t *)stored->mv_data + FB_LMDB_SUM_BYTES,
                      stored->mv_size - FB_LMDB_SUM_BYTES);
}

int fb_lmdb_env_look(fb_lmdb_env *e, fb_span key, fb_span *out)
{
    MDB_cursor *cursor;
    MDB_val k = val_of(key), stored;
    *out = (fb_span){NULL, 0};
    int rc = reading_begin(e, &cursor);
    if (rc == 0) rc = mdb_get(e->read_txn, e->data, &k, &stored);
    if (rc == 0 && !fb_lmdb_value_is_whole(&k, &stored)) rc = FB_LMDB_BAD_SUM;
    if (rc == 0) {
        fb_span value = value_of(&stored);
        if (value.len > e->looked_cap) {
            uint8_t *p = realloc(e->looked, value.len);
            if (p == NULL) rc = ENOMEM;
            if (p != NULL) e->looked = p;
            if (p != NULL) e->looked_cap = value.len;
        }
        if (rc == 0 && value.len != 0) memcpy(e->looked, value.p, value.len);
        if (rc == 0) *out = fb_span_of(e->looked, value.len);
    }
    reading_end(e, cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

int fb_lmdb_env_scan(fb_lmdb_env *e, fb_span low, fb_span high,
                     void (*each)(void *user, fb_span key, fb_span value), void *user)
{
    MDB_cursor *cursor;
    MDB_val key = val_of(low), stored;
    int rc = reading_begin(e, &cursor);
    if (rc == 0) rc = mdb_cursor_get(cursor, &key, &stored, MDB_SET_RANGE);
    while (rc == 0) {
        fb_span k = fb_span_of(key.mv_data, key.mv_size);
        if (fb_span_compare(k, high) >= 0) break;
        if (!fb_lmdb_value_is_whole(&key, &stored)) {
            rc = FB_LMDB_BAD_SUM;
            break;
        }
        each(user, k, value_of(&stored));
        rc = mdb_cursor_get(cursor, &key, &stored, MDB_NEXT);
    }
    reading_end(e, cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int read_all(fb_lmdb_env *e, fb_span read_set, fb_writer *w)
{
    MDB_cursor *cursor;
    int rc = reading_begin(e, &cursor);
    if (rc == 0) e->read_id = mdb_txn_id(e->read_txn);
    fb_reader r = fb_reader_of(read_set);
    unsigned items = fb_read_u16(&r);
    for (unsigned i = 0; rc == 0 && i < items; i++) {
        fb_read_item item = fb_read_item_next(&r);
        rc = r.failed ? EINVAL : read_item(e, e->read_txn, cursor, &item, w);
    }
    reading_end(e, cursor);
    return rc;
}

int fb_lmdb_env_read(fb_lmdb_env *e, uint64_t incarnation, fb_span read_set, fb_span *out)
{
    fb_writer w = fb_writer_of(e->answer, e->answer_cap);
    *out = (fb_span){NULL, 0};
    if (!answer_room(e, &w, 8)) return ENOMEM;
    fb_write_u64(&w, incarnation);
    int rc = read_all(e, read_set, &w);
    *out = fb_span_of(w.p, rc == 0 ? w.at : 8);
    return rc;
}

/* Writing. */

static int write_one(fb_lmdb_env *e, MDB_txn *txn, fb_span set)
{
    fb_reader r = fb_reader_of(set);
    while (fb_reader_left(&r) > 0) {
        fb_write_entry entry = fb_write_entry_next(&r);
        if (r.failed) return EINVAL;
        MDB_val key = val_of(entry.key);
        int rc;
        if (entry.kind == FB_WRITE_DELETE) {
            rc = mdb_del(txn, e->data, &key, NULL);
            if (rc == MDB_NOTFOUND) rc = 0;
        } else {
            MDB_val value = {FB_LMDB_SUM_BYTES + entry.value.len, NULL};
            rc = mdb_put(txn, e->data, &key, &value, MDB_RESERVE);
            if (rc == 0) {
                uint8_t *room = value.mv_data;
                fb_store_be(room, value_sum(entry.key, entry.value.p, entry.value.len),
                            FB_LMDB_SUM_BYTES);
                if (entry.value.len != 0)
                    memcpy(room + FB_LMDB_SUM_BYTES, entry.value.p, entry.value.len);
            }
        }
        if (rc != 0) return rc;
    }
    return 0;
}

/* No transaction may be open while the map moves or goes. */
static void readers_out(fb_lmdb_env *e)
{
    if (e->read_txn != NULL) mdb_txn_abort(e->read_txn);
    e->read_txn = NULL;
    if (e->reader == NULL) return;
    pthread_mutex_lock(e->guard);
    if (e->reader->read_txn != NULL) mdb_txn_abort(e->reader->read_txn);
    e->reader->read_txn = NULL;
    e->reader->env = NULL;
    pthread_mutex_unlock(e->guard);
}

static void readers_in(fb_lmdb_env *e)
{
    if (e->reader == NULL) return;
    pthread_mutex_lock(e->guard);
    e->reader->env = e->env;
    e->reader->data = e->data;
    pthread_mutex_unlock(e->guard);
}

static int map_grow(fb_lmdb_env *e)
{
    size_t max = e->map_bytes_max;
    if (e->map_bytes >= max) return MDB_MAP_FULL;
    readers_out(e);
    size_t bytes = e->map_bytes > max / 2 ? max : e->map_bytes * 2;
    int rc = mdb_env_set_mapsize(e->env, bytes);
    if (rc == 0) e->map_bytes = bytes;
    readers_in(e);
    return rc;
}

/* What is written into a file without a name is lost with this process, whatever its fsync says. */
static bool is_gone(const fb_lmdb_env *e)
{
    int fd = -1;
    char path[4096];
    struct stat open_file, named;
    snprintf(path, sizeof path, "%s/data.mdb", e->directory);
    return mdb_env_get_fd(e->env, &fd) != 0 || fstat(fd, &open_file) != 0 ||
           stat(path, &named) != 0 || open_file.st_dev != named.st_dev ||
           open_file.st_ino != named.st_ino;
}

int fb_lmdb_env_write(fb_lmdb_env *e, const fb_span *sets, size_t count)
{
    int dead = 0;
    if (is_gone(e)) return FB_LMDB_GONE;
    if (e->writes++ % FB_LMDB_READERS_EVERY == 0) mdb_reader_check(e->env, &dead);
    for (;;) {
        MDB_txn *txn = NULL;
        int rc = mdb_txn_begin(e->env, NULL, 0, &txn);
        for (size_t i = 0; rc == 0 && i < count; i++) rc = write_one(e, txn, sets[i]);
        if (rc == 0) {
            size_t id = mdb_txn_id(txn);
            rc = mdb_txn_commit(txn);
            if (rc == 0) e->written_id = id;
        } else if (txn != NULL) {
            mdb_txn_abort(txn);
        }
        if (rc == MDB_MAP_FULL) {
            rc = map_grow(e);
            if (rc == 0) continue;
        }
        return rc;
    }
}

void fb_lmdb_env_size(fb_lmdb_env *e, uint64_t *used_bytes, uint64_t *entries)
{
    MDB_envinfo info = {0};
    MDB_stat data = {0};
    MDB_txn *txn = NULL;
    mdb_env_info(e->env, &info);
    if (mdb_txn_begin(e->env, NULL, MDB_RDONLY, &txn) == 0) {
        mdb_stat(txn, e->data, &data);
        mdb_txn_abort(txn);
    }
    *used_bytes = (uint64_t)(info.me_last_pgno + 1) * data.ms_psize;
    *entries = data.ms_entries;
}

/* Opening. */

/* A store under other keys would take another node's numbers and memberships for its own. */
static int owner_check(fb_lmdb_env *e, MDB_txn *txn, MDB_dbi meta, char *why, size_t why_len,
                       fb_error *error)
{
    MDB_val key = {5, (void *)(uintptr_t) "owner"}, value;
    if (fb_id_is_zero(e->owner)) return 0;
    int rc = mdb_get(txn, meta, &key, &value);
    if (rc == MDB_NOTFOUND) {
        value = (MDB_val){sizeof e->owner.b, e->owner.b};
        return mdb_put(txn, meta, &key, &value, 0);
    }
    if (rc != 0) return rc;
    if (value.mv_size != sizeof e->owner.b) return MDB_INVALID;
    if (memcmp(value.mv_data, e->owner.b, sizeof e->owner.b) == 0) return 0;
    char owner[33], self[33];
    fb_hex_text(value.mv_data, value.mv_size, owner);
    fb_hex_text(e->owner.b, sizeof e->owner.b, self);
    *error = FB_ERR_KEY;
    snprintf(why, why_len, "%s belongs to the node %s, and the keys here are those of %s",
             e->directory, owner, self);
    return EINVAL;
}

static int data_open(fb_lmdb_env *e, char *why, size_t why_len, fb_error *error)
{
    MDB_txn *txn = NULL;
    MDB_dbi meta;
    int rc = mdb_txn_begin(e->env, NULL, 0, &txn);
    if (rc != 0) return rc;
    rc = mdb_dbi_open(txn, "meta", MDB_CREATE, &meta);
    if (rc == 0) rc = mdb_dbi_open(txn, "data", MDB_CREATE, &e->data);
    MDB_val key = {6, (void *)(uintptr_t) "format"}, value;
    if (rc == 0) rc = mdb_get(txn, meta, &key, &value);
    if (rc == MDB_NOTFOUND && e->must_exist) rc = FB_LMDB_GONE;
    if (rc == MDB_NOTFOUND) {
        e->made = true;
        uint8_t format[4];
        fb_store_be(format, FB_LMDB_FORMAT, sizeof format);
        value = (MDB_val){sizeof format, format};
        rc = mdb_put(txn, meta, &key, &value, 0);
    } else if (rc == 0) {
        fb_reader r = fb_reader_of(fb_span_of(value.mv_data, value.mv_size));
        uint32_t format = fb_read_u32(&r);
        if (!fb_reader_done(&r) || format == 0) {
            rc = MDB_INVALID;
        } else if (format < FB_LMDB_FORMAT) {
            *error = FB_ERR_VERSION_OLDER;
            snprintf(
                why, why_len,
                "%s has format %u and was written by an older program; this one reads %u. Export "
                "its spaces with that program, or move it away: peers give back what they have",
                e->directory, format, FB_LMDB_FORMAT);
            rc = EINVAL;
        } else if (format > FB_LMDB_FORMAT) {
            *error = FB_ERR_VERSION_NEWER;
            snprintf(why, why_len,
                     "%s has format %u and was written by a newer program; this one reads up to %u",
                     e->directory, format, FB_LMDB_FORMAT);
            rc = EINVAL;
        }
    }
    if (rc == 0) rc = owner_check(e, txn, meta, why, why_len, error);
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    return mdb_txn_commit(txn);
}

static void asserted(MDB_env *env, const char *what)
{
    (void)env;
    fb_store_fault_now(what);
}

int fb_lmdb_env_open(fb_lmdb_env *e, char *why, size_t why_len, fb_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/data.mdb", e->directory);
    e->made = false;
    if (e->must_exist && access(path, F_OK) != 0) return FB_LMDB_GONE;
    int rc = mdb_env_create(&e->env);
    if (rc == 0) rc = mdb_env_set_assert(e->env, asserted);
    if (rc == 0) rc = mdb_env_set_maxdbs(e->env, 2);
    if (rc == 0) rc = mdb_env_set_mapsize(e->env, e->map_bytes);
    if (rc == 0) {
        rc = mdb_env_open(e->env, e->directory, MDB_NOTLS | MDB_NORDAHEAD, 0600);
    }
    if (rc == 0) rc = data_open(e, why, why_len, error);
    MDB_envinfo info;
    if (rc == 0) rc = mdb_env_info(e->env, &info);
    if (rc == 0) {
        e->map_bytes = info.me_mapsize;
        e->written_id = info.me_last_txnid;
    }
    if (rc != 0 && e->env != NULL) {
        mdb_env_close(e->env);
        e->env = NULL;
    }
    if (rc == 0) readers_in(e);
    return rc;
}

void fb_lmdb_env_close(fb_lmdb_env *e)
{
    readers_out(e);
    if (e->env != NULL) mdb_env_close(e->env);
    e->env = NULL;
}

void fb_lmdb_env_free(fb_lmdb_env *e)
{
    fb_lmdb_env_close(e);
    free(e->answer);
    free(e->looked);
    e->answer = e->looked = NULL;
}
