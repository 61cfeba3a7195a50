/* SPDX-License-Identifier: Apache-2.0 */
/* What a database really asks of its file, in order: the system calls of this program, taken before
 * the C library's. Only calls on one file and on its directories are kept. */
#ifndef FB_TESTS_CRASH_RECORD_H
#define FB_TESTS_CRASH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum event_kind {
    EVENT_WRITE,     /* bytes at a place; `forced`: durable when it returns (O_DSYNC) */
    EVENT_SYNC,      /* of the file: everything before it is durable when it returns */
    EVENT_TRUNCATE,  /* to `at` bytes */
    EVENT_NAME_SYNC, /* of the directory; `at` 1: of the one above */
    EVENT_OPENED,    /* the store is open: it promised that */
    EVENT_GIVEN,     /* write set `at` was handed over */
    EVENT_ACKED,     /* write set `at` was acknowledged */
} event_kind;

typedef struct event {
    event_kind kind;
    bool forced;
    uint64_t at;
    size_t len;
    const uint8_t *bytes; /* the recorder's */
} event;

typedef struct recording {
    event *events;
    size_t count, cap;
    bool mapped_writable; /* what is written through a map is not seen */
} recording;

/* Keeps the calls on DIRECTORY/data.mdb from here on. sync_lies: fdatasync does nothing, and says
 * that it did; names_lie: so does a sync of a directory. */
void record_begin(const char *directory, bool sync_lies, bool names_lie);
/* The caller frees it with recording_free. */
recording record_end(void);
void recording_free(recording *r);
/* Something that is no call on the file. Of any thread. */
void record_note(event_kind kind, uint64_t at);
/* While nothing is recorded, syncs are left out: what is verified need not survive. */

#endif
