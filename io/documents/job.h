/* SPDX-License-Identifier: Apache-2.0 */
/* What the document store is to be given after a commit: each record that was touched, as it is
 * now, whole. Made by the thread of the local store, carried out by another one. */
#ifndef FB_DOCUMENTS_JOB_H
#define FB_DOCUMENTS_JOB_H

#include "io/documents/split.h"

/* A redo entry that has served once the document is kept. */
typedef struct fb_job_redo {
    fb_span key;
    uint64_t incarnation, w; /* a later set may have put another one in its place */
} fb_job_redo;

typedef struct fb_job_record {
    const char *collection;
    uint32_t area;
    fb_id id;
    fb_span record;            /* empty: nothing is to be there */
    fb_document_value *values; /* of the redo entries; what else there is, is in the document */
    size_t value_count;
    size_t redo_first, redo_count;
    uint64_t incarnation, w;     /* of the set that it is of */
    fb_document_outcome outcome; /* OPEN until it is settled */
    uint64_t doubt_until_ms;     /* 0: nothing of it is on its way any more */
} fb_job_record;

typedef struct fb_job {
    struct fb_job *next;
    uint64_t incarnation, w; /* of the last set that it covers; 0: none */
    bool found;              /* it is what a start found: an earlier process may have sent it */
    bool remade;             /* it is a part of an area that is made again */
    fb_room room;
    fb_job_record *records;
    size_t record_count;
    fb_job_redo *redo;
    size_t redo_count;
} fb_job;

/* A job of these records (any of them more than once), from what is committed.
 * Not 0: the local store's error, or EINVAL for entries that do not follow their format. */
int fb_job_make(fb_split *split, uint64_t incarnation, uint64_t w, const fb_split_record *records,
                size_t count, fb_job **out);
/* All that waits in the local store; *out is NULL when nothing does. */
int fb_job_found(fb_split *split, fb_job **out);
void fb_job_free(fb_job *job);

/* The write set that removes the redo entries of what was kept, as far as they still stand there:
 * not of what is in doubt. Empty when there are none. In `room`. */
int fb_job_served(fb_split *split, const fb_job *job, fb_room *room, fb_span *set);

/* Does it need values that are only in the document as it is? */
bool fb_job_record_needs_document(const fb_job_record *record);
/* The document to be put; `now` is what the document store has of it or NULL. What is made for it
 * is in `room`. */
void fb_job_compose(const fb_job_record *record, const fb_document *now, fb_room *room,
                    fb_document *out);
/* Gives it the fields that it shows, as of this horizon (show.h). */
void fb_job_show(const fb_job_record *record, int64_t horizon, fb_room *room,
                 fb_document *document);

#endif
