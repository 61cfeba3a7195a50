/* SPDX-License-Identifier: Apache-2.0 */
/* A document store: where the living records of collections are kept when the local store is not
 * to hold them (DESIGN 7). What implements it is loaded when it is used (io/document_store/load.h),
 * and knows nothing of threads, of the local store or of the core's keys.
 *
 * A document is one record: what the core stores of it, which comes back byte by byte, and what it
 * shows, which is for others to read. */
#ifndef FB_DOCUMENTS_DOCUMENTS_H
#define FB_DOCUMENTS_DOCUMENTS_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"
#include "protocol/database/dot.h"

/* The interface between the program and what it loads: both must have the same. */
#define FB_DOCUMENTS_INTERFACE 4u

typedef struct fb_documents fb_documents;

/* A value that is stored apart from its record. */
typedef struct fb_document_value {
    fb_span column;
    uint8_t dot[FB_DOT_BYTES];
    fb_span value;
} fb_document_value;

/* A field as it is shown: a JSON text. */
typedef struct fb_document_field {
    fb_span name;
    fb_span json;
} fb_document_field;

typedef struct fb_document {
    const char *collection; /* fb_documents_collection */
    fb_id id;
    fb_span record; /* as the core stores it; empty: there is to be no such document */
    const fb_document_value *values;
    size_t value_count;
    const fb_document_field *fields;
    size_t field_count;
    int64_t horizon; /* stamps beyond it are not shown in the fields */
    /* Of one that was found: */
    uint64_t start;  /* of the process that put it; 0: it has nothing of ours, record is empty */
    uint64_t number; /* within that */
    bool edited;     /* what it shows is not what was put: another program's */
    fb_span whole;   /* what edits and restore take */
} fb_document;

/* Which of two documents of one id is the newer one: by the number of the start of the process that
 * put it, then by its number within that. */
typedef struct fb_document_version {
    uint64_t start, number;
} fb_document_version;

static inline bool fb_document_is_older(fb_document_version a, fb_document_version b)
{
    return a.start != b.start ? a.start < b.start : a.number < b.number;
}

/* One document of a put. It takes the place of what is there when that is older, or has no version;
 * one without a record removes what is there and older. marks: instead of nothing, a mark with the
 * version is left, a document that shows nothing and is never found. */
typedef struct fb_document_change {
    fb_document document;
    fb_document_version version;
    bool marks;
} fb_document_change;

/* What the server says of one of them. */
typedef enum fb_document_outcome {
    FB_DOCUMENT_OPEN = 0, /* it was not done, and may be another time */
    FB_DOCUMENT_KEPT = 1,
    FB_DOCUMENT_TOO_LARGE = 2, /* no document can hold it */
    FB_DOCUMENT_REFUSED = 3, /* the server will not have it, now or later (a rule of its owner's) */
    FB_DOCUMENT_PRESENT = 4, /* what is there is not older, and of this start */
    FB_DOCUMENT_NEWER = 5,   /* what is there is of a later start */
} fb_document_outcome;

/* What another program does to documents, and what an earlier process of this node left. */
typedef enum fb_document_event_kind {
    FB_DOCUMENT_NOTHING = 1, /* the token alone */
    FB_DOCUMENT_SEEN = 2,    /* it is there, and edited or of an earlier start */
    FB_DOCUMENT_GONE = 3,    /* it was removed, by this node or by others */
    FB_DOCUMENT_ALIEN = 4,   /* its _id is no record's */
    FB_DOCUMENT_DROPPED = 5, /* the whole collection, or without a name all of them */
} fb_document_event_kind;

typedef struct fb_document_event {
    fb_document_event_kind kind;
    const char *collection;
    fb_id id;
    const fb_document *document; /* SEEN */
    const fb_document *before;   /* as it was before that, when the server knows it; or NULL */
    fb_span token;               /* where a watch goes on behind this */
} fb_document_event;

/* Everything is borrowed for the call. False: enough. */
typedef bool (*fb_documents_event_told)(void *user, const fb_document_event *change);

/* A field of a document that does not show what it should; json is empty where it is gone. */
typedef bool (*fb_documents_differs)(void *user, fb_span name, fb_span json);

typedef struct fb_documents_options {
    const char *uri;     /* with the name of a database */
    fb_id owner;         /* the node; its documents are no other's */
    uint32_t timeout_ms; /* of each call to the server */
} fb_documents_options;

/* A document that was found; everything is borrowed for the call. False: no more of them. */
typedef bool (*fb_documents_found)(void *user, const fb_document *document);

/* Every call may be made by several threads at once, blocks for a few times timeout_ms at most, and
 * gives `why` a sentence when it fails. */
typedef struct fb_documents_ops {
    uint32_t interface;
    /* Looks at the options and touches no server: FB_ERR_REQUEST_MALFORMED, FB_ERR_NO_MEMORY. */
    fb_status (*open)(const fb_documents_options *options, fb_documents **out, char *why,
                      size_t why_len);
    void (*close)(fb_documents *documents);

    /* Raises the fence: *number of this start becomes greater than that of any earlier one and than
     * what was given in it; also of those that nobody knows of any more, because the fence was
     * dropped or set back since. FB_OK: durable. *older: it was below what was given, so what is
     * there is an older database than was written to, or an empty one. FB_ERR_UNREACHABLE: try
     * again. */
    fb_status (*fence)(fb_documents *documents, uint64_t *number, bool *older, char *why,
                       size_t why_len);
    /* *number: that of the last start that raised the fence, 0 where there is none any more. It is
     * asked by a write that is durable like the fence, so no server that was deposed can answer.
     * FB_ERR_UNREACHABLE. */
    fb_status (*confirm)(fb_documents *documents, uint64_t *number, char *why, size_t why_len);

    /* Puts documents of one collection and one start, each id named once. FB_OK: each has an
     * outcome, and *durable says whether what was done is certain to last. FB_ERR_UNREACHABLE:
     * anything may have happened, or may happen later on. The same call again does no harm. */
    fb_status (*put)(fb_documents *documents, const fb_document_change *changes, size_t count,
                     fb_document_outcome *outcomes, bool *durable, char *why, size_t why_len);

    /* Both see whatever this process has had confirmed before the call, and nothing that may be
     * taken back. */
    /* Those of these ids that are there, in any order. FB_ERR_UNREACHABLE; FB_ERR_STORE_DAMAGED:
     * one is there and is not ours to read: the others were given. */
    fb_status (*get)(fb_documents *documents, const char *collection, const fb_id *ids,
                     size_t count, fb_documents_found found, void *user, char *why, size_t why_len);
    /* From low to before high (zeros: to the end), by id; as get. Fewer than `limit` mean that
     * there are no more. */
    fb_status (*range)(fb_documents *documents, const char *collection, fb_id low, fb_id high,
                       bool descending, uint32_t limit, fb_documents_found found, void *user,
                       char *why, size_t why_len);

    /* Tells of changes behind the token, or from now on when it is empty, until `changed` has
     * enough; at least every second, with NOTHING when nothing comes. FB_ERR_UNREACHABLE: go on
     * behind the last token. FB_ERR_CURSOR_OLD: what lies behind it is lost, all documents have to
     * be looked at. FB_ERR_UNSUPPORTED: this server cannot tell. */
    fb_status (*watch)(fb_documents *documents, fb_span token, fb_documents_event_told changed,
                       void *user, char *why, size_t why_len);
    /* Looks at every document and tells of those that are edited or of an earlier start. */
    fb_status (*scan)(fb_documents *documents, fb_documents_event_told changed, void *user,
                      char *why, size_t why_len);
    /* Compares what a document shows with what it should. FB_ERR_VALUE_MALFORMED with a reason: no
     * record can be so. */
    fb_status (*edits)(fb_span whole, const fb_document_field *fields, size_t count,
                       fb_documents_differs differs, void *user, char *why, size_t why_len);
    /* Puts a document back that is not there or has nothing of ours any more; one that is there and
     * ours stays. FB_ERR_UNREACHABLE; FB_ERR_VALUE_MALFORMED: the server will not have it. */
    fb_status (*restore)(fb_documents *documents, const char *collection, fb_id id, fb_span whole,
                         char *why, size_t why_len);
} fb_documents_ops;

#endif
