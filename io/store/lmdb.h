/* SPDX-License-Identifier: Apache-2.0 */
/* The local store: one LMDB environment in the node's directory, owned by one thread. Small reads
 * of what is in memory need not go there: fb_lmdb_read_near.
 *
 * Requests go in by a queue and never wait; completions come out by another one, after `notify` was
 * called. Write sets are applied in the order they were given, each wholly or not at all; those
 * that wait together share one transaction and one fsync (DESIGN 2, "Sealing").
 *
 * Once a write set failed, every later one fails too, until fb_lmdb_begin names a fresh
 * incarnation (DESIGN 2, "Failure"). Of an incarnation that follows such a failure, write sets that
 * the system does not take (a full disk, a failing one) are kept and tried again, so that reads go
 * on meanwhile (DESIGN 7); FB_LMDB_HELD says so once.
 *
 * With a document store the records of collections are there, and a write set is answered when it
 * has them; until then they stand here as redo entries (documents/split.h).
 *
 * On disk: keys are the core's, opaque, 1 to 511 bytes, in memcmp order. A value is stored as
 * XXH3-64 (big-endian) over the value, seeded with the XXH3-64 of its key, and then the value. */
#ifndef FB_IO_STORE_LMDB_H
#define FB_IO_STORE_LMDB_H

#include "io/document_store/worker.h"
#include "protocol/base/error.h"
#include "protocol/base/types.h"

#define FB_LMDB_MAP_MIN ((size_t)64 << 20)
#define FB_LMDB_MAP_MAX ((size_t)1 << 40)

#define FB_LMDB_PATH_MAX 4096

/* Between two tries of write sets that are kept: the first pause, and what it doubles up to. */
#define FB_LMDB_RETRY_MIN_MS 50u
#define FB_LMDB_RETRY_MAX_MS 2000u
/* ... and, after a failure, the free room on the disk without which none is made. */
#define FB_LMDB_ROOM_BYTES (1u << 20)

/* Values that one scrub looks at; reads wait for it meanwhile. */
#define FB_LMDB_SCRUB_ENTRIES 4096u

/* Up to this size every entry is looked at when the store is opened; a sample of a larger one. */
#define FB_LMDB_CHECK_WHOLE ((uint64_t)8 << 20)

/* A near read has at most so many entries; one that took longer than that waited for the disk, and
 * the store's thread is asked for a while. So the loop waits for a twentieth of its time at most.
 */
#define FB_LMDB_NEAR_ENTRIES  512u
#define FB_LMDB_NEAR_BYTES    65536u
#define FB_LMDB_NEAR_SLOW_NS  UINT64_C(1000000)
#define FB_LMDB_NEAR_PAUSE_NS UINT64_C(20) /* times what it took */

typedef struct fb_lmdb fb_lmdb;

typedef struct fb_lmdb_options {
    const char *directory; /* made with mode 0700 when missing; its parent must exist */
    fb_id owner;           /* the node whose store it is: another's is refused; zeros: any */
    size_t map_bytes_min;  /* first size of the map; 0: FB_LMDB_MAP_MIN */
    size_t map_bytes_max;  /* it doubles up to this; 0: FB_LMDB_MAP_MAX */
    /* Where the records of collections are kept, NULL: here. The documents stay the opener's. */
    const fb_documents_ops *documents_ops;
    fb_documents *documents;
    void (*notify)(void *user); /* called by a thread of the store: there is a completion to take */
    void *user;
} fb_lmdb_options;

/* What was there when the store was opened. */
typedef enum fb_lmdb_found {
    FB_LMDB_FOUND_SOUND = 1,
    FB_LMDB_FOUND_NOTHING = 2, /* a new one was made */
    FB_LMDB_FOUND_DAMAGED = 3, /* it was moved aside, and a new one made */
} fb_lmdb_found;

typedef struct fb_lmdb_opening {
    fb_lmdb_found found;
    uint64_t entries_checked;
    uint64_t entries_damaged;     /* of those: they fail when they are read, the rest goes on */
    char damage[160];             /* FB_LMDB_FOUND_DAMAGED: what it is */
    char aside[FB_LMDB_PATH_MAX]; /* ... and the directory where it is now */
} fb_lmdb_opening;

typedef enum fb_lmdb_kind {
    FB_LMDB_BEGUN = 1, /* incarnation: as given */
    FB_LMDB_READ = 2,  /* operation, w, error, bytes: as FB_EV_READ_DONE wants them */
    FB_LMDB_WRITE = 3, /* incarnation, w, error: as FB_EV_WRITE_DONE wants them */
    FB_LMDB_HELD = 4,  /* incarnation, error, detail: write sets wait until they can be written */
    FB_LMDB_SCRUBBED = 5, /* operation, error, entries, damaged; bytes: the last key, or none */
    FB_LMDB_OUTER = 6,    /* outer: what another program did to documents */
} fb_lmdb_kind;

typedef struct fb_lmdb_completion {
    struct fb_lmdb_completion *next;
    fb_lmdb_kind kind;
    fb_error error;
    uint64_t incarnation;
    uint64_t operation;
    uint64_t w;
    uint64_t entries, damaged; /* looked at, and of those not whole */
    fb_outer *outer;           /* the taker's, until one of the two below */
    char detail[96];           /* on an error: what the database or the system said */
    size_t len;
    uint8_t bytes[];
} fb_lmdb_completion;

typedef struct fb_lmdb_stats {
    uint64_t near_reads; /* of the reads, those that did not go to the thread */
    uint64_t reads, write_sets, commits, failures, damaged;
    uint64_t map_bytes;  /* current size of the map */
    uint64_t used_bytes; /* of the file, after the last commit */
    uint64_t entries;    /* keys present, after the last commit */
    bool held;           /* write sets are kept and tried again */
    bool has_documents;
    fb_worker_stats documents;
} fb_lmdb_stats;

/* Opens or makes the store and starts its thread. What is there is checked first, in a child
 * process; a damaged file is moved into a new directory beside this one, DIRECTORY.damaged-N, and
 * never deleted (DESIGN 7). `why` gets a sentence for people on failure.
 * FB_ERR_STORE_LOCKED: another process has it. FB_ERR_VERSION_NEWER: written by a newer program.
 * FB_ERR_KEY: another node's.
 * FB_ERR_STORE_DAMAGED: of another version of LMDB, or not to be opened although it was checked.
 * FB_ERR_STORE_FAILED: the system refused. FB_ERR_NO_MEMORY. On failure *out is NULL and nothing
 * stays open. */
fb_status fb_lmdb_open(const fb_lmdb_options *options, fb_lmdb **out, char *why, size_t why_len);

/* What that opening found. The texts belong to the store. */
const fb_lmdb_opening *fb_lmdb_opening_of(const fb_lmdb *store);

/* Finishes the write sets already given, stops the thread, closes. Untaken completions are freed.
 */
void fb_lmdb_close(fb_lmdb *store);

/* A new incarnation: write sets of any other that were not applied yet never will be. Answered by
 * FB_LMDB_BEGUN, after which nothing of an earlier incarnation is applied. */
void fb_lmdb_begin(fb_lmdb *store, uint64_t incarnation);

/* A read set (protocol/store/readset.h); the bytes are copied. Answered by one FB_LMDB_READ. */
void fb_lmdb_read(fb_lmdb *store, uint64_t operation, fb_span read_set);

/* Answers a small read set at once, on the caller's thread: *out is to be handed over as
 * FB_EV_READ_DONE (the bytes are the store's until the next call). False: ask fb_lmdb_read; the set
 * is large, a commit has just ended, the environment is being opened anew, something is wrong with
 * what was read, or lately a read had to wait for the disk.
 *
 * It is right because LMDB's readers see whole commits, each only when it is on the disk, and tell
 * which one it is: so the state is that of w, also while the next commit is under way, and who
 * reads need not wait for its fsync. */
typedef struct fb_lmdb_near {
    uint64_t w;
    fb_span bytes;
} fb_lmdb_near;

bool fb_lmdb_read_near(fb_lmdb *store, uint64_t incarnation, fb_span read_set, fb_lmdb_near *out);

/* A write set (protocol/store/writeset.h); the bytes are copied. Answered by an FB_LMDB_WRITE that
 * may cover several, or by nothing when a begin overtook it. */
void fb_lmdb_write(fb_lmdb *store, uint64_t incarnation, uint64_t w, fb_span write_set);

/* Looks at up to FB_LMDB_SCRUB_ENTRIES values behind the key `after`. Answered by one
 * FB_LMDB_SCRUBBED. */
void fb_lmdb_scrub(fb_lmdb *store, uint64_t operation, fb_span after);

/* What an FB_LMDB_OUTER brought is over; or its document is looked at again and comes once more. */
void fb_lmdb_outer_done(fb_lmdb *store, fb_outer *outer);
void fb_lmdb_outer_again(fb_lmdb *store, fb_outer *outer);

/* The oldest completion, or NULL. The caller owns it until fb_lmdb_completion_free. */
fb_lmdb_completion *fb_lmdb_take(fb_lmdb *store);
void fb_lmdb_completion_free(fb_lmdb_completion *completion);

void fb_lmdb_stats_get(fb_lmdb *store, fb_lmdb_stats *out);

#endif
