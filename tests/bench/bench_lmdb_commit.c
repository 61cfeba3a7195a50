/* SPDX-License-Identifier: Apache-2.0 */
/* How long one durable commit of one put takes with LMDB alone: the measure that latencies of nodes
 * are compared with. Alone it prints the distribution of 2,000 commits. With --lines it makes one
 * commit for each line of standard input and answers with its nanoseconds, so that another program
 * can interleave it with what it measures. */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/clock.h"
#include "protocol/base/assert.h"

#define COMMITS 2000

typedef struct raw {
    char directory[64];
    MDB_env *env;
    MDB_dbi dbi;
    uint64_t count;
} raw;

static void raw_open(raw *r)
{
    MDB_txn *txn;
    strcpy(r->directory, "/tmp/fb-bench-XXXXXX");
    FB_ASSERT(mkdtemp(r->directory) != NULL);
    int rc = mdb_env_create(&r->env);
    if (rc == 0) rc = mdb_env_set_mapsize(r->env, (size_t)1 << 28);
    if (rc == 0) rc = mdb_env_open(r->env, r->directory, MDB_NOTLS, 0600);
    if (rc == 0) rc = mdb_txn_begin(r->env, NULL, 0, &txn);
    if (rc == 0) rc = mdb_dbi_open(txn, NULL, 0, &r->dbi);
    if (rc == 0) rc = mdb_txn_commit(txn);
    FB_ASSERT(rc == 0);
}

static uint64_t commit_one(raw *r)
{
    static char value[200];
    char name[24];
    uint64_t start = fb_clock_mono_ns();
    MDB_txn *txn;
    MDB_val key = {0, name}, data = {sizeof value, value};
    key.mv_size = (size_t)snprintf(name, sizeof name, "%016llx", (unsigned long long)r->count++);
    int rc = mdb_txn_begin(r->env, NULL, 0, &txn);
    if (rc == 0) rc = mdb_put(txn, r->dbi, &key, &data, 0);
    if (rc == 0) rc = mdb_txn_commit(txn);
    FB_ASSERT(rc == 0);
    return fb_clock_mono_ns() - start;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

int main(int argc, char **argv)
{
    raw r = {0};
    raw_open(&r);
    if (argc > 1 && strcmp(argv[1], "--lines") == 0) {
        char line[64];
        while (fgets(line, sizeof line, stdin) != NULL) {
            printf("%llu\n", (unsigned long long)commit_one(&r));
            fflush(stdout);
        }
    } else {
        static uint64_t ns[COMMITS];
        for (int i = 0; i < COMMITS; i++) ns[i] = commit_one(&r);
        qsort(ns, COMMITS, sizeof ns[0], by_size);
        printf("one durable single-put commit of LMDB alone: p50 %.2f ms, p99 %.2f ms, max %.2f "
               "ms\n",
               (double)ns[COMMITS / 2] / 1e6, (double)ns[COMMITS * 99 / 100] / 1e6,
               (double)ns[COMMITS - 1] / 1e6);
    }
    mdb_env_close(r.env);
    char path[128];
    snprintf(path, sizeof path, "%s/data.mdb", r.directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/lock.mdb", r.directory);
    unlink(path);
    rmdir(r.directory);
    return 0;
}
