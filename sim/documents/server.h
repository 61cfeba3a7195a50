/* SPDX-License-Identifier: Apache-2.0 */
/* A document server as a node's process meets it: documents that change one by one, bulks of which
 * a part is done, puts that are carried out late, twice or for a while only, answers that are lost,
 * and one that was deposed and answers with what was.
 *
 * Each document keeps one older state of itself: that a server shows which does not know yet that
 * another one has taken its place. What the process had confirmed is never taken back. */
#ifndef FB_SIM_DOCUMENTS_SERVER_H
#define FB_SIM_DOCUMENTS_SERVER_H

#include "io/documents/documents.h"
#include "io/documents/room.h"
#include "sim/world/blobs.h"

#define FB_SIM_DOCUMENTS_MAX 4096u

typedef struct fb_sim_document {
    uint64_t collection; /* a hash of its name */
    fb_id id;
    bool there, mark;
    bool confirmed;  /* the process knows of its last change */
    bool was_there;  /* before that */
    uint64_t was_of; /* the start that had put that */
    fb_document_version version;
    uint64_t age; /* of the record's state: which write set of the node it is of, in their order */
    uint64_t changed_ns;
    fb_sim_blob bytes, was; /* record and values */
} fb_sim_document;

/* One change of a bulk, as it travels. */
typedef struct fb_sim_document_change {
    uint64_t collection;
    fb_id id;
    fb_document_version version;
    uint64_t age;
    bool puts, marks; /* neither: it removes */
    fb_sim_blob bytes;
} fb_sim_document_change;

typedef struct fb_sim_documents_server {
    fb_sim_blobs *blobs;
    fb_sim_document *documents; /* by collection and id; one that was removed stays, as not there */
    uint32_t count;
    uint64_t fence; /* the greatest start; 0: none, or it was dropped with all the rest */
    uint32_t by;    /* the process that raised it last, and what stood there before that */
    uint64_t before;
    uint64_t writer; /* the greatest start that a document was put with */
    bool full;       /* nothing is put */
    bool deposed;    /* reads are answered with what was */
} fb_sim_documents_server;

/* What a server does with a change. `of`: the document, as it was before. */
typedef void (*fb_sim_document_applied)(void *user, const fb_sim_document *before,
                                        const fb_sim_document_change *change);

void fb_sim_documents_server_init(fb_sim_documents_server *server, fb_arena *arena,
                                  fb_sim_blobs *blobs);
/* The database is dropped. */
void fb_sim_documents_server_clear(fb_sim_documents_server *server);

uint64_t fb_sim_documents_collection(const char *name);
/* NULL when it never was there. */
fb_sim_document *fb_sim_documents_find(fb_sim_documents_server *server, uint64_t collection,
                                       fb_id id);
/* Raises the fence for a process that knows of that start. */
uint64_t fb_sim_documents_fence(fb_sim_documents_server *server, uint64_t known, uint64_t now_ns);
/* One change, alone and whole. */
fb_document_outcome fb_sim_document_apply(fb_sim_documents_server *server, uint64_t now_ns,
                                          const fb_sim_document_change *change,
                                          fb_sim_document_applied applied, void *user);

/* Encodes record and values of a document. */
fb_sim_blob fb_sim_documents_encode(fb_sim_blobs *blobs, const fb_document *document);
fb_span fb_sim_documents_record(const fb_sim_blobs *blobs, fb_sim_blob bytes);
/* Gives a document as readers see it; in `room`. False: they see none. */
bool fb_sim_documents_seen(const fb_sim_documents_server *server, const fb_sim_document *document,
                           fb_room *room, fb_document *out);

#endif
