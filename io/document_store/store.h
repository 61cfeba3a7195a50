/* SPDX-License-Identifier: Apache-2.0 */
/* What the local store's thread does for a document store: documents/keeping.h over LMDB, and jobs
 * and readings to the threads of documents_worker.h. For the store's thread, but for the two
 * callbacks. */
#ifndef FB_IO_DOCUMENT_STORE_STORE_H
#define FB_IO_DOCUMENT_STORE_STORE_H

#include "io/document_store/worker.h"
#include "io/documents/keeping.h"
#include "io/store/lmdb_env.h"

/* Redo entries that have served lie over their documents: they are taken out after so much time
 * without a write set that takes them along. */
#define FB_STORE_SERVED_IDLE_MS 50u
/* What another program did, while the local store could not be read, is looked at so much later. */
#define FB_STORE_OUTER_AGAIN_MS 1000u

typedef struct fb_store_documents fb_store_documents;

/* Begins the worker, with what an earlier process left. The documents stay the caller's. Not 0: the
 * local store's error. */
int fb_store_documents_open(fb_lmdb_env *env, const fb_documents_ops *ops, fb_documents *documents,
                            const fb_worker_ops *callbacks, fb_store_documents **out);
/* Ends the worker: both callbacks may be called meanwhile, never afterwards. */
void fb_store_documents_stop(fb_store_documents *sd);
void fb_store_documents_free(fb_store_documents *sd);

/* From any thread: a reading that was answered may have left records out, as documents were dropped
 * since it began. It begins anew. */
bool fb_store_documents_lacks(fb_store_documents *sd, const fb_reading *reading);
/* One that waited until what it lists is made again, and is to begin now, or has waited for too
 * long (*late); the caller's. NULL: there is none. */
fb_reading *fb_store_documents_waited(fb_store_documents *sd, bool *late);

/* A read set: answers it later through the callback (*taken), or leaves it to the caller. local:
 * the local store's answer, behind its incarnation; sure: see reading.h. */
int fb_store_documents_read(fb_store_documents *sd, uint64_t operation, uint64_t incarnation,
                            uint64_t w, fb_span read_set, fb_span local, bool sure, bool *taken);

/* What is written instead of each set of a group, in order; lives until the group is over. */
int fb_store_documents_split(fb_store_documents *sd, uint64_t incarnation, uint64_t w, fb_span set,
                             fb_span *local);
/* To be written before them: redo entries that have served are taken out. May be empty. */
int fb_store_documents_clean(fb_store_documents *sd, fb_span *set);
/* Also before them, in a transaction without others: some of the records whose documents are gone,
 * made again as of the last set that was applied. May be empty. */
bool fb_store_documents_wants_remaking(const fb_store_documents *sd);
bool fb_store_documents_misses(const fb_store_documents *sd); /* keeping.h */
void fb_store_documents_remake(fb_store_documents *sd, uint64_t incarnation, uint64_t applied,
                               fb_span *set);
/* What a reading missed (reading.h) is wanted. */
void fb_store_documents_missing(fb_store_documents *sd, const fb_reading *reading);
/* The transaction with all of that was committed, or not. w: of the last set, 0 for none. */
int fb_store_documents_over(fb_store_documents *sd, bool committed, uint64_t incarnation,
                            uint64_t w);

/* Hands on all redo entries there are, also those that were handed on before: that does no harm. */
int fb_store_documents_resume(fb_store_documents *sd);

/* A job that came back through the callback; is taken. */
void fb_store_documents_served(fb_store_documents *sd, fb_job *job, uint64_t start);
/* So many have come back that they are worth a transaction of their own; or some, while there is
 * nothing else to do. */
bool fb_store_documents_wants_cleaning(const fb_store_documents *sd, bool idle);

/* When the thread is to come again, in milliseconds of fb_clock_awake_or_not_ms; UINT64_MAX: not at
 * all. Then what was in doubt is handed on once more. */
uint64_t fb_store_documents_again_at(const fb_store_documents *sd);
int fb_store_documents_again(fb_store_documents *sd);

/* What another program did (outer.h): completed by what the local store knows. True: it is to
 * become a change of this node. False: it was dealt with, or, where the local store cannot be read
 * now, is kept; the place in the stream is not stored before it was dealt with. */
int fb_store_documents_outer(fb_store_documents *sd, fb_outer *outer, bool *forward);
/* One that was kept and may be tried again at this time; NULL: there is none. */
fb_outer *fb_store_documents_outer_due(fb_store_documents *sd, uint64_t now_ms);
/* From any thread: one that was forwarded is over, or its document is to be looked at again. */
void fb_store_documents_outer_done(fb_store_documents *sd, fb_outer *outer);
void fb_store_documents_outer_again(fb_store_documents *sd, fb_outer *outer);
/* There is a token to be written, in a transaction of its own if no write set comes. */
bool fb_store_documents_has_token(const fb_store_documents *sd);

void fb_store_documents_stats(fb_store_documents *sd, fb_worker_stats *out);

#endif
