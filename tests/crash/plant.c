/* SPDX-License-Identifier: Apache-2.0 */
/* The linker gives the store these in the place of the database's own (--wrap). */
#include "tests/crash/plant.h"

#include <lmdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

plant plant_now;

static MDB_txn *held;    /* reported as committed, and not committed */
static MDB_txn *writing; /* the store has one thread, and one of these at most */
static MDB_env *env_of;
static unsigned put_count;
static pthread_t opener; /* its transactions are those of the opening */

int __real_mdb_env_open(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode);
int __real_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **out);
int __real_mdb_txn_commit(MDB_txn *txn);
int __real_mdb_put(MDB_txn *txn, MDB_dbi table, MDB_val *key, MDB_val *value, unsigned flags);
void __real_mdb_env_close(MDB_env *env);
int __wrap_mdb_env_open(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode);
int __wrap_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **out);
int __wrap_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_put(MDB_txn *txn, MDB_dbi table, MDB_val *key, MDB_val *value, unsigned flags);
void __wrap_mdb_env_close(MDB_env *env);

int __wrap_mdb_env_open(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode)
{
    if ((flags & MDB_RDONLY) == 0) {
        if (plant_now == PLANT_NO_SYNC) flags |= MDB_NOSYNC;
        if (plant_now == PLANT_NO_META) flags |= MDB_NOMETASYNC;
        if (plant_now == PLANT_WRITE_MAP) flags |= MDB_WRITEMAP;
    }
    opener = pthread_self();
    return __real_mdb_env_open(env, path, flags, mode);
}

static int held_commit(void)
{
    MDB_txn *txn = held;
    held = NULL;
    return txn == NULL ? 0 : __real_mdb_txn_commit(txn);
}

int __wrap_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **out)
{
    bool writes = (flags & MDB_RDONLY) == 0;
    if (writes) {
        int rc = held_commit();
        if (rc != 0) return rc;
    }
    int rc = __real_mdb_txn_begin(env, parent, flags, out);
    if (writes && rc == 0) {
        writing = *out;
        env_of = env;
        put_count = 0;
    }
    return rc;
}

int __wrap_mdb_txn_commit(MDB_txn *txn)
{
    bool holds =
        plant_now == PLANT_ACK_EARLY && txn == writing && !pthread_equal(pthread_self(), opener);
    if (!holds) return __real_mdb_txn_commit(txn);
    held = txn;
    return 0;
}

/* The store reserves room and fills it in: after a put its transaction must stay, so a set is cut
 * before its third. LMDB reuses the one transaction of an environment, so the handle stays too. */
int __wrap_mdb_put(MDB_txn *txn, MDB_dbi table, MDB_val *key, MDB_val *value, unsigned flags)
{
    if (plant_now == PLANT_SPLIT && txn == writing && ++put_count == 3) {
        MDB_txn *next = NULL;
        int rc = __real_mdb_txn_commit(txn);
        if (rc == 0) rc = __real_mdb_txn_begin(env_of, NULL, 0, &next);
        if (rc != 0 || next != txn) return MDB_PANIC;
    }
    return __real_mdb_put(txn, table, key, value, flags);
}

void __wrap_mdb_env_close(MDB_env *env)
{
    held_commit();
    __real_mdb_env_close(env);
}
