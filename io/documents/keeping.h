/* SPDX-License-Identifier: Apache-2.0 */
/* The local store's side of a document store: what is written instead of a write set, what is
 * handed on after the commit, and when its redo entries may go. Of whoever owns the local store; a
 * simulated node's is this very code. */
#ifndef FB_DOCUMENTS_KEEPING_H
#define FB_DOCUMENTS_KEEPING_H

#include "io/documents/job.h"
#include "io/documents/reading.h"
#include "io/documents/remake.h"

/* Served jobs whose redo entries are taken out in a transaction of their own, when no write set
 * comes that could take them along. */
#define FB_KEEPING_SERVED_MAX 64u
/* Parts of areas that are made again and that the document store does not have yet. More wait where
 * they are made of, so that a server that is away costs no more memory than these. */
#define FB_KEEPING_REMAKES_MAX 8u

typedef struct fb_keeping {
    fb_split split;
    uint64_t start, start_stored; /* the number of this start, and what the store has of it */
    uint64_t first;               /* handing.h, and what the store has of it */
    fb_room room;                 /* of the group that is being committed */
    fb_split_record *touched;     /* by it */
    size_t touched_count, touched_cap;
    fb_job *served, **served_end;
    size_t served_count, cleaning; /* of the served: those that the group takes out */
    fb_job *doubtful, **doubtful_end;
    /* What is to be made again: single records, then whole areas; and what the group makes. */
    fb_room remake_room;
    fb_split_record *missing;
    size_t missing_count, missing_cap, missing_at;
    uint32_t *areas;
    size_t area_count, area_cap, area_at;
    uint64_t drops; /* of areas, that were heard of */
    fb_remake remake, remaking;
    size_t making; /* of the missing; those go first */
    bool makes;
    size_t making_again;        /* jobs of whole areas that are with the document store */
    uint64_t remade, not_equal; /* records */
} fb_keeping;

/* Not 0: the local store's error. */
int fb_keeping_open(fb_keeping *k, const fb_split_store *store, const fb_room_source *source);
void fb_keeping_free(fb_keeping *k);

/* What is written instead of each set of a group, in order; lives until the group is over. */
int fb_keeping_split(fb_keeping *k, uint64_t incarnation, uint64_t w, fb_span set, fb_span *local);
/* To be written before them: redo entries that have served are taken out. May be empty. */
int fb_keeping_clean(fb_keeping *k, fb_span *set);
/* Also before them: records whose documents are gone are made again, some at a time, as of the last
 * set that was applied. May be empty. */
void fb_keeping_remake(fb_keeping *k, uint64_t incarnation, uint64_t applied, fb_span *set);
/* The transaction with all of that was committed, or not. w: of the last set, 0 for none.
 * *job: to be handed on, or NULL. */
int fb_keeping_over(fb_keeping *k, bool committed, uint64_t incarnation, uint64_t w, fb_job **job);

/* A job that was handed on, all of it settled; is taken. start: what the documents have of this
 * process. */
void fb_keeping_served(fb_keeping *k, fb_job *job, uint64_t start);
/* So many have come back that they are worth a transaction of their own. */
bool fb_keeping_wants_cleaning(const fb_keeping *k, bool closing);

/* The documents of an area, or of all areas, are gone: its records are to be made again. Not 0: the
 * local store's error. */
int fb_keeping_dropped(fb_keeping *k, uint32_t area);
int fb_keeping_dropped_all(fb_keeping *k);
/* The document of one record is gone, or lacks a value. */
void fb_keeping_missing(fb_keeping *k, fb_split_record record);
/* There are some of those, which go first. */
bool fb_keeping_misses(const fb_keeping *k);
/* Something can be made again now. */
bool fb_keeping_wants_remaking(const fb_keeping *k);

/* A reading (reading.h) of these documents. */
int fb_keeping_read(fb_keeping *k, fb_span read_set, fb_span local, fb_reading **out);
/* It lists an area of which documents were dropped since it began, or are not all made again: it
 * would leave records out, and is to begin anew when that is over. */
bool fb_keeping_lacks(const fb_keeping *k, const fb_reading *reading);

/* When something that was in doubt is to be handed on once more; UINT64_MAX: nothing is. */
uint64_t fb_keeping_again_at(const fb_keeping *k);
/* A job of it when it is time; else NULL. */
int fb_keeping_again(fb_keeping *k, uint64_t now_ms, fb_job **job);

#endif
