/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the store that is LMDB: opening with its version check, read sets, write sets. For
 * one thread; errors are LMDB's and the system's numbers. */
#ifndef FB_IO_STORE_LMDB_ENV_H
#define FB_IO_STORE_LMDB_ENV_H

#include <lmdb.h>
#include <pthread.h>

#include "protocol/base/error.h"
#include "protocol/base/types.h"

/* 2: trees of version 3. A store of an older format is refused: none was ever released. */
#define FB_LMDB_FORMAT    2u
#define FB_LMDB_SUM_BYTES 8u

/* What another process began to read stays in the file until it says that it is done. One that was
 * killed never does: so often, in write transactions, is it looked for. */
#define FB_LMDB_READERS_EVERY 64u

/* Besides those of LMDB (negative) and of the system: a value that does not match its checksum. */
#define FB_LMDB_BAD_SUM 1000000
/* The file is not the one that is open any more, or none is there. */
#define FB_LMDB_GONE 1000001

typedef struct fb_lmdb_env fb_lmdb_env;
struct fb_lmdb_env {
    const char *directory; /* the opener's */
    fb_id owner;           /* zeros: any; else the store is this node's alone */
    size_t map_bytes;      /* wanted by the owner, then what is in force */
    size_t map_bytes_max;
    bool must_exist; /* opening makes no store: there was one, so a missing one is an error */
    bool made;       /* the last opening made it */
    MDB_env *env;    /* NULL while closed */
    MDB_dbi data;
    MDB_txn *read_txn; /* reset between uses; NULL until the first one after a growth */
    size_t read_id;    /* the commit whose state the last read set was answered from */
    size_t written_id; /* the last commit, once it is durable */
    uint8_t *answer;   /* of the last read set */
    size_t answer_cap;
    uint32_t writes; /* since those who read in other processes were looked at */
    uint8_t *looked; /* the value of the last look */
    size_t looked_cap;
    /* Another thread's reader of the same database, or NULL: it has the environment while `guard`
     * is held, and loses its transaction when the map moves or the environment is closed. */
    fb_lmdb_env *reader;
    pthread_mutex_t *guard;
};

/* directory, owner, map_bytes, map_bytes_max and must_exist are set. *error gets
 * FB_ERR_VERSION_NEWER, FB_ERR_VERSION_OLDER or FB_ERR_KEY and `why` a sentence when that is the
 * reason; otherwise the number says it. */
int fb_lmdb_env_open(fb_lmdb_env *e, char *why, size_t why_len, fb_error *error);

/* Lets go of everything; may be opened again. */
void fb_lmdb_env_close(fb_lmdb_env *e);
void fb_lmdb_env_free(fb_lmdb_env *e);

/* Answers a read set from one snapshot: *out is u64 `incarnation` and the values, borrowed until
 * the next call. On an error *out is the incarnation alone. */
int fb_lmdb_env_read(fb_lmdb_env *e, uint64_t incarnation, fb_span read_set, fb_span *out);

/* One value, borrowed until the next look; empty when the key is not there. */
int fb_lmdb_env_look(fb_lmdb_env *e, fb_span key, fb_span *value);
/* Every entry from low to before high, in order, borrowed for the call of `each`, which must not
 * use the environment. */
int fb_lmdb_env_scan(fb_lmdb_env *e, fb_span low, fb_span high,
                     void (*each)(void *user, fb_span key, fb_span value), void *user);

/* Applies the write sets in order in one transaction, grows the map when it is full. Either all are
 * durable when it returns 0, or the outcome is unknown. */
int fb_lmdb_env_write(fb_lmdb_env *e, const fb_span *sets, size_t count);

/* Does a stored value match the checksum in front of it? */
bool fb_lmdb_value_is_whole(const MDB_val *key, const MDB_val *stored);

/* Looks at up to `items` entries behind the key `after` (empty: from the start) and counts those
 * whose value does not match its checksum. *last is the last key looked at, borrowed until the next
 * call; empty when the end was reached. */
int fb_lmdb_env_scrub(fb_lmdb_env *e, fb_span after, uint32_t items, fb_span *last,
                      uint64_t *entries, uint64_t *damaged);

/* Bytes of the file in use, and keys present. */
void fb_lmdb_env_size(fb_lmdb_env *e, uint64_t *used_bytes, uint64_t *entries);

fb_error fb_lmdb_error(int rc);
const char *fb_lmdb_text(int rc);

#endif
