/* SPDX-License-Identifier: Apache-2.0 */
/* Handing jobs on to the document store: what is asked of the server next, and what its answer, or
 * the want of one, means. No thread, no clock, no server is in here: a thread of the shell carries
 * out the calls that it gives, and so does the simulator (sim/documents/).
 *
 * - Jobs are handed on in their order, each until all of it is settled; a server that cannot be
 *   reached, is full or forbids writing is a pause and nothing else.
 * - Before the first put the fence is raised (DESIGN 7): a document of a later start is never
 *   replaced by one of an earlier. A process that has been overtaken notices with the first job
 *   that ends after its lease: it is confirmed by the fence, or handing on ends for good. The
 *   process that came later puts nothing before that lease is over; so what the earlier one had
 *   told to be kept was there when the later one began.
 * - A fence that is gone, dropped with the database, may be raised anew by any process that was
 *   alive: nobody can know any more which of them was the last. The first one to do so is the last
 *   start from then on, with a number that no start before the drop has had (documents.h), the job
 *   it was at begins anew, and every other one finds a number that is not its own and gives way.
 * - What became of a put without an answer may be seen much later, when a server takes up what it
 *   got before the connection broke. Such records are in doubt for a while: their redo entries
 *   stay, so a later process knows of it too, and where one of them is removed a mark is left, or
 *   the late put would make the document again. When the doubt is over they are put once more. */
#ifndef FB_DOCUMENTS_HANDING_H
#define FB_DOCUMENTS_HANDING_H

#include "io/documents/job.h"

#define FB_HANDING_RETRY_MIN_MS 50u
#define FB_HANDING_RETRY_MAX_MS 2000u
#define FB_HANDING_LEASE_MS     1000u
/* A lease as measured by another clock is at most so much longer. */
#define FB_HANDING_LEASE_OVER_MS (FB_HANDING_LEASE_MS + FB_HANDING_LEASE_MS / 8)
/* Nothing that was sent on a connection that broke is carried out later than this. */
#define FB_HANDING_DOUBT_MS 600000u

typedef enum fb_handing_kind {
    FB_HANDING_IDLE = 1, /* until there is a job */
    FB_HANDING_PAUSE,    /* until at_ms */
    FB_HANDING_FENCE,    /* fence with `number`, then fb_handing_fenced */
    FB_HANDING_CONFIRM,  /* confirm, then fb_handing_confirmed */
    FB_HANDING_GET,      /* ids of collection, then fb_handing_found for each and fb_handing_got */
    FB_HANDING_PUT,      /* changes, then fb_handing_was_put */
    FB_HANDING_DONE,     /* the job is settled; it is the caller's */
    FB_HANDING_LOCKED,   /* another process of this node came; nothing is handed on any more */
} fb_handing_kind;

typedef struct fb_handing_call {
    fb_handing_kind kind;
    uint64_t at_ms;
    uint64_t number;
    const char *collection;
    const fb_id *ids;
    const fb_document_change *changes;
    size_t count; /* of ids or changes */
    fb_job *job;
} fb_handing_call;

/* fb_job_show, or NULL where documents show nothing. */
typedef void (*fb_handing_show)(const fb_job_record *record, int64_t horizon, fb_room *room,
                                fb_document *document);

typedef struct fb_handing {
    fb_handing_show show;
    uint64_t start;  /* of this process once it is fenced; before, the greatest that is known */
    uint64_t number; /* of the last change */
    /* Of the first start of this local store, 0: not known yet, or of a store from before this was
     * written down. Documents of earlier starts are not of this store: whoever put them lost theirs
     * since. Their records are nothing that this node knows, until peers bring them. */
    uint64_t first;
    bool fenced, locked;
    bool older; /* the fence had not heard of a start that the local store knows: the caller's */
    uint64_t write_from_ms; /* no put before */
    uint64_t confirmed_ms;  /* when the last confirmation, or the fence, was asked for */
    uint64_t asked_ms;      /* the running call */
    uint64_t pause_until_ms;
    uint32_t pause_ms;        /* the next one */
    uint32_t doubt_ms;        /* FB_HANDING_DOUBT_MS; a test's may be shorter */
    fb_job *jobs, **jobs_end; /* those behind the current one */
    fb_job *job;
    fb_room room;                /* of the current try */
    fb_document **now;           /* by record, of the current try: what was found */
    bool *looked;                /* by record: it was looked for */
    size_t *places;              /* of the running call: records by change */
    fb_id *ids;                  /* of it */
    fb_document_change *changes; /* of it */
    size_t count;
    const char *collection;
    fb_room doubts_room;
    struct fb_handing_doubt *doubts, *doubts_free;
} fb_handing;

/* start, first: the greatest and the first number of a start that the local store knows, 0: none.
 * source: of its memory. */
void fb_handing_init(fb_handing *h, uint64_t start, uint64_t first, fb_handing_show show,
                     const fb_room_source *source);
/* Jobs that are not settled are dropped: their redo entries are still there. */
void fb_handing_free(fb_handing *h);

/* Takes the job. */
void fb_handing_job(fb_handing *h, fb_job *job);

/* What is to be done now. horizon_us: what documents show (job.h). After FENCE, CONFIRM, GET and
 * PUT nothing else is asked before the answer; what *out names lives until then. */
void fb_handing_next(fb_handing *h, uint64_t now_ms, int64_t horizon_us, fb_handing_call *out);

/* Whatever was asked, it could not be sent. */
void fb_handing_failed(fb_handing *h, uint64_t now_ms);

/* A reading may be answered: by no server that was deposed before this process began. */
bool fb_handing_may_read(const fb_handing *h);

void fb_handing_fenced(fb_handing *h, uint64_t now_ms, fb_status status, uint64_t number);
void fb_handing_confirmed(fb_handing *h, uint64_t now_ms, fb_status status, uint64_t number);
void fb_handing_found(fb_handing *h, const fb_document *document);
void fb_handing_got(fb_handing *h, uint64_t now_ms, fb_status status);
void fb_handing_was_put(fb_handing *h, uint64_t now_ms, fb_status status, bool durable,
                        const fb_document_outcome *outcomes);

#endif
