/* SPDX-License-Identifier: Apache-2.0 */
/* What another program did to documents, on its way to become a change of this node.
 *
 * It is taken down when it is noticed: by the change stream, when the document is read, or by a
 * walk through all of them. So it is not lost when a write of this node replaces the document
 * before the change was made: what is written then is the other program's fields alone, on the
 * condition that the record is what the other program saw. Where it is not, those fields that
 * nobody has written since are taken once more (rebase), and the others have lost. */
#ifndef FB_DOCUMENTS_OUTER_H
#define FB_DOCUMENTS_OUTER_H

#include "io/documents/documents.h"
#include "io/documents/room.h"

typedef enum fb_outer_kind {
    FB_OUTER_EDIT = 1,    /* fields were changed, or there is a document where none was */
    FB_OUTER_DELETE = 2,  /* the document was removed */
    FB_OUTER_STALE = 3,   /* an earlier process of this node put it: is it still wanted? */
    FB_OUTER_LEFT = 4,    /* no record can be so: it is told and left alone */
    FB_OUTER_LOST = 5,    /* the document was removed, and what it was is not known */
    FB_OUTER_DROPPED = 6, /* all documents of a collection were */
    FB_OUTER_TOKEN = 7,   /* a watch may go on behind this */
} fb_outer_kind;

typedef struct fb_outer_field {
    fb_span name;
    fb_span was;  /* as it should have been shown; empty: not there */
    fb_span is;   /* as it was found; empty: gone */
    uint8_t kind; /* fb_field_kind of what the record has */
    /* Of a set: the elements that went, and behind them those that came. */
    fb_span *moves;
    size_t gone, move_count;
} fb_outer_field;

typedef struct fb_outer {
    struct fb_outer *next;
    fb_outer_kind kind;
    fb_room room;
    const char *collection;
    fb_id id;
    fb_id space, area; /* known once the store has seen it */
    bool has_base;     /* it was a record's document: etag says which */
    uint8_t etag[16];
    fb_document_version version; /* DELETE: of what was removed */
    fb_outer_field *fields;
    size_t field_count, field_cap;
    fb_span restore; /* DELETE, and EDIT of a document that lost what is ours: as it was before */
    fb_span token;
    bool look;      /* the document is to be asked for again */
    bool overwrote; /* some field was written by others since, and is not taken */
    uint32_t tries;
    char why[160]; /* LEFT and its like */
} fb_outer;

/* NULL: there is nothing to be done about it. */
fb_outer *fb_outer_make(const fb_documents_ops *ops, const fb_document_event *change);
fb_outer *fb_outer_token(fb_span token);
void fb_outer_free(fb_outer *outer);

/* The document as it is now, NULL when it is not there: what is left to be done. */
void fb_outer_rebase(fb_outer *outer, const fb_documents_ops *ops, const fb_document *now);

/* The document of one that was removed is there: is it this node's, made again as it was (remake.h)
 * before it was known that somebody had removed it? */
bool fb_outer_is_remade(const fb_outer *outer, const fb_document *now);
/* ... and does this state of its record say the same as what was removed? */
bool fb_outer_is_as_it_was(const fb_outer *outer, fb_span record);

/* Its document cannot be put back, as the server will not have it. What was removed is lost then,
 * what was replaced is left alone. */
void fb_outer_not_restored(fb_outer *outer, const char *why);

/* The arguments of a request (request.h) that makes it a change of this node, in the outer's room;
 * *verb says of which. */
fb_span fb_outer_request(fb_outer *outer, uint32_t *verb);

#endif
