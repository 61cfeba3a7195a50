/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of the store are documents, and what the local store keeps of them meanwhile.
 *
 * A record of a collection that shows something is a document; so are its values that are stored
 * apart. All else is local: what belongs to the node, the space's own statements, and records of
 * which only the deletion is left, as there is nothing of them to read. Where the core deletes a
 * record, an empty one (record.h) takes its place in the local store: a document that stands there
 * all the same, put back by whomever, is none of ours then. To who reads it is as good as nothing.
 *
 * What a write set puts into documents stands in the local store as redo entries, written with the
 * rest of the set in one transaction, until the document store has it (DESIGN 7). They lie over
 * what documents say. A redo entry's key is "o" and the entry's own; its value:
 *     u8 1, u64 incarnation, u64 w, u8 kind (writeset.h), the value */
#ifndef FB_DOCUMENTS_SPLIT_H
#define FB_DOCUMENTS_SPLIT_H

#include "io/documents/documents.h"
#include "io/documents/names.h"
#include "io/documents/room.h"
#include "protocol/base/cursor.h"

#define FB_REDO_VERSION    1u
#define FB_REDO_HEAD_BYTES 18u

typedef struct fb_redo {
    uint64_t incarnation;
    uint64_t w;
    uint8_t kind;
    fb_span value;
} fb_redo;

/* The redo entry's key for an entry's own, into out, one byte longer. */
fb_span fb_redo_key(fb_span key, uint8_t *out);

/* False: it does not follow the format. */
bool fb_redo_read(fb_span stored, fb_redo *out);

/* The local store as this folder sees it. 0, or the store's error. What is given is borrowed until
 * the next call. */
typedef struct fb_split_store {
    /* One value; empty when it is not there. */
    int (*look)(void *user, fb_span key, fb_span *value);
    /* Every entry from low to before high, in order. */
    int (*scan)(void *user, fb_span low, fb_span high,
                void (*each)(void *each_user, fb_span key, fb_span value), void *each_user);
    void *user;
} fb_split_store;

/* A record that a write set touches. */
typedef struct fb_split_record {
    uint32_t area;
    fb_id id;
} fb_split_record;

/* What is known of areas; zeroed but for the store is empty. */
typedef struct fb_split {
    fb_split_store store;
    struct fb_split_area *areas;
    size_t area_count, area_cap;
    fb_room room; /* of the areas; its source is that of jobs and readings, too */
} fb_split;

void fb_split_free(fb_split *split);

/* A key that has an area: its record or a value of it. */
bool fb_split_is_record_key(fb_span key);

/* The area's records are documents. Not 0: the local store's error. */
int fb_split_is_document(fb_split *split, uint32_t area, bool *yes);
/* The name of the area's collection of documents, once its entries are committed; borrowed. */
int fb_split_collection(fb_split *split, uint32_t area, const char **out);

/* The area whose collection of documents has this name, and what others call it; *found. */
typedef struct fb_split_named {
    uint32_t area; /* local */
    fb_id space, id;
} fb_split_named;
int fb_split_find(fb_split *split, const char *collection, fb_split_named *out, bool *found);

/* What the local store is given for a write set: *local and the records that are touched, both in
 * `room`. Not 0: the local store's error, or EINVAL for bytes that are no write set. */
int fb_split_write(fb_split *split, uint64_t incarnation, uint64_t w, fb_span set, fb_room *room,
                   fb_span *local, fb_split_record **records, size_t *record_count);

#endif
