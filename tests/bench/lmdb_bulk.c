/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB alone loads what a node's first copy brought, in transactions of so many, durable at the
 * end: first the records in the order in which the node got them, then every entry that it keeps of
 * them (batches, tree and changelog too) in the order of keys. tests/bench/bench_many.py runs it on
 * the store of the node that was filled.
 *
 * usage: lmdb_bulk STORE ENTRIES_A_TRANSACTION   prints two lines: entries, bytes, nanoseconds */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/store/lmdb_env.h"
#include "protocol/base/assert.h"
#include "protocol/store/keys.h"

#define SPACE_BYTES     4u
#define SEQUENCE_BYTES  8u
#define AREA_AND_RECORD (4u + 16u)
#define AREA_AT         (1u + 8u) /* in a value of the changelog: version, incarnation, then area */

typedef struct entry {
    size_t key_len, value_len;
    uint8_t *bytes; /* the key, then the value */
} entry;

typedef struct load {
    entry *entries;
    size_t count, room;
    unsigned long long bytes;
} load;

static MDB_env *env_open(const char *directory, size_t map_bytes, unsigned flags)
{
    MDB_env *env;
    int rc = mdb_env_create(&env);
    if (rc == 0) rc = mdb_env_set_maxdbs(env, 2);
    if (rc == 0 && map_bytes > 0) rc = mdb_env_set_mapsize(env, map_bytes);
    if (rc == 0) rc = mdb_env_open(env, directory, flags, 0600);
    if (rc == 0) return env;
    fprintf(stderr, "%s: %s\n", directory, mdb_strerror(rc));
    exit(1);
}

static void keep(load *l, const MDB_val *key, const MDB_val *value)
{
    if (l->count == l->room) {
        l->room = l->room == 0 ? 1024 : l->room * 2;
        l->entries = realloc(l->entries, l->room * sizeof *l->entries);
        FB_ASSERT(l->entries != NULL);
    }
    entry *e = &l->entries[l->count++];
    *e = (entry){key->mv_size, value->mv_size, malloc(key->mv_size + value->mv_size)};
    FB_ASSERT(e->bytes != NULL);
    memcpy(e->bytes, key->mv_data, key->mv_size);
    memcpy(e->bytes + key->mv_size, value->mv_data, value->mv_size);
    l->bytes += key->mv_size + value->mv_size;
}

/* The changelog is the order; a value begins with the store's checksum. */
static void store_read(load *records, load *all, const char *directory)
{
    MDB_env *env = env_open(directory, 0, MDB_RDONLY);
    MDB_txn *txn;
    MDB_dbi data;
    MDB_cursor *cursor;
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (rc == 0) rc = mdb_dbi_open(txn, "data", 0, &data);
    if (rc == 0) rc = mdb_cursor_open(txn, data, &cursor);
    FB_ASSERT(rc == 0);
    uint8_t first[1] = {FB_TAG_CHANGELOG};
    MDB_val key = {sizeof first, first}, change;
    for (rc = mdb_cursor_get(cursor, &key, &change, MDB_SET_RANGE);
         rc == 0 && ((uint8_t *)key.mv_data)[0] == FB_TAG_CHANGELOG;
         rc = mdb_cursor_get(cursor, &key, &change, MDB_NEXT)) {
        FB_ASSERT(key.mv_size == 1 + SPACE_BYTES + SEQUENCE_BYTES);
        FB_ASSERT(change.mv_size >= FB_LMDB_SUM_BYTES + AREA_AT + AREA_AND_RECORD);
        uint8_t name[1 + AREA_AND_RECORD] = {FB_TAG_RECORD};
        memcpy(name + 1, (uint8_t *)change.mv_data + FB_LMDB_SUM_BYTES + AREA_AT, AREA_AND_RECORD);
        MDB_val record = {sizeof name, name}, value;
        if (mdb_get(txn, data, &record, &value) == 0) keep(records, &record, &value);
    }
    for (rc = mdb_cursor_get(cursor, &key, &change, MDB_FIRST); rc == 0;
         rc = mdb_cursor_get(cursor, &key, &change, MDB_NEXT)) {
        keep(all, &key, &change);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(env);
}

static uint64_t timed(const load *l, const char *directory, size_t each)
{
    MDB_env *env = env_open(directory, (size_t)1 << 34, MDB_NOSYNC);
    MDB_dbi data = 0;
    uint64_t begun = fb_clock_mono_ns();
    for (size_t at = 0; at < l->count;) {
        MDB_txn *txn;
        int rc = mdb_txn_begin(env, NULL, 0, &txn);
        if (rc == 0 && at == 0) rc = mdb_dbi_open(txn, "data", MDB_CREATE, &data);
        for (size_t i = 0; rc == 0 && i < each && at < l->count; i++, at++) {
            const entry *e = &l->entries[at];
            MDB_val key = {e->key_len, e->bytes}, value = {e->value_len, e->bytes + e->key_len};
            rc = mdb_put(txn, data, &key, &value, 0);
        }
        if (rc == 0) rc = mdb_txn_commit(txn);
        FB_ASSERT(rc == 0);
    }
    FB_ASSERT(mdb_env_sync(env, 1) == 0);
    uint64_t took = fb_clock_mono_ns() - begun;
    mdb_env_close(env);
    return took;
}

static void run(const load *l, size_t each)
{
    char directory[] = "/tmp/fb-bench-XXXXXX", path[64];
    FB_ASSERT(mkdtemp(directory) != NULL);
    uint64_t took = timed(l, directory, each);
    printf("%zu %llu %llu\n", l->count, l->bytes, (unsigned long long)took);
    for (size_t i = 0; i < l->count; i++) free(l->entries[i].bytes);
    free(l->entries);
    const char *names[] = {"data.mdb", "lock.mdb"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

int main(int argc, char **argv)
{
    size_t each = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (each == 0) {
        fprintf(stderr, "usage: lmdb_bulk STORE ENTRIES_A_TRANSACTION\n");
        return 2;
    }
    load records = {0}, all = {0};
    store_read(&records, &all, argv[1]);
    run(&records, each);
    run(&all, each);
    return 0;
}
