/* SPDX-License-Identifier: Apache-2.0 */
/* A read set of which some items are documents: what the local store says, what waits as redo, and
 * what the document store has, laid over each other in this order of weight: a redo entry, a local
 * record (of which only the deletion is left), a document.
 *
 * It is begun by the thread of the local store, from one state of it, and ended by another one. A
 * document may be newer than that state; then it is of a write set that the core lays over the
 * answer anyway (DESIGN 2, Read, then execute), as that set was not finished when it was asked. */
#ifndef FB_DOCUMENTS_READING_H
#define FB_DOCUMENTS_READING_H

#include "io/documents/split.h"
#include "protocol/store/readset.h"

typedef struct fb_reading {
    struct fb_reading *next;
    uint64_t operation;
    uint64_t incarnation;
    uint64_t w;        /* applied when it was begun */
    uint64_t until_ns; /* the worker's: so long it is tried */
    uint64_t drops;    /* heard of when it was begun (keeping.h) */
    uint64_t first; /* documents of earlier starts are not there (handing.h); of whoever ends it */
    fb_room room;
    fb_span read_set;
    bool sure; /* what is not there is not there: it was looked for where it may come from */
    struct fb_reading_item *items;
    size_t item_count;
    /* Told of documents that another program changed, or that should not be there any more; may be
     * NULL. */
    void (*noticed)(void *user, const fb_document_event *change);
    void *noticed_user;
} fb_reading;

/* Some item of the read set is of documents. Not 0: the local store's error. */
int fb_reading_needed(fb_split *split, fb_span read_set, bool *needed);

/* local: the local store's answer to the same read set, behind its incarnation. Not 0: its error,
 * or EINVAL. */
int fb_reading_begin(fb_split *split, fb_span read_set, fb_span local, fb_reading **out);

/* Asks the documents and writes the answer behind `incarnation` into `room`, where it stays.
 * FB_ERR_UNREACHABLE, FB_ERR_STORE_DAMAGED, as documents.h says; it may be called again.
 * FB_ERR_NOT_FOUND: a document is gone, or a value of it, that the local store knows to be there.
 * It was deleted since the reading began, or it is to be made again (remake.h): who has seen to
 * that begins another reading, which is `sure`. What is gone of a list nobody can say: whether it
 * may have been read while documents were gone is the keeping's to know (fb_keeping_lacks). */
fb_status fb_reading_end(fb_reading *reading, const fb_documents_ops *ops, fb_documents *documents,
                         fb_span *answer, char *why, size_t why_len);
/* Which they are; after that answer. */
void fb_reading_missing(const fb_reading *reading,
                        void (*each)(void *user, uint32_t area, fb_id id), void *user);
/* It lists records of documents: of all areas, or of one. */
bool fb_reading_lists(const fb_reading *reading);
bool fb_reading_lists_area(const fb_reading *reading, uint32_t area);
void fb_reading_free(fb_reading *reading);

#endif
