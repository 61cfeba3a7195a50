/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of a real node: one fb_node, its store and its carrier on one libuv loop.
 *
 * It feeds events, carries out effects in their order, keeps the deadline as one timer, and starts
 * the node anew when it asks for that. Nothing polls. Everything but the store's own thread happens
 * on the loop's thread. */
#ifndef FB_IO_LOOP_H
#define FB_IO_LOOP_H

#include <uv.h>

#include "io/document_store/import.h"
#include "io/net/carrier_tcp.h"
#include "io/recorder.h"
#include "io/store/lmdb.h"
#include "protocol/core/node.h"
#include "protocol/core/observe.h"
#include "protocol/core/request.h"

#define FB_LOOP_RESTART_MIN_MS 100u   /* pause before the second START in a row */
#define FB_LOOP_RESTART_MAX_MS 10000u /* it doubles up to this */
#define FB_LOOP_DRAIN_MS       5000u  /* how long a stop waits for open requests */
#define FB_LOOP_RENEW_MS       1000u  /* ... and the end of a recording's file */

typedef struct fb_loop fb_loop;

/* An answer to fb_loop_request. more: further ones follow (streams). The bytes live for the call.
 * Called from the loop, never from within fb_loop_request; may call fb_loop functions. */
typedef void (*fb_loop_reply)(void *user, fb_error error, bool more, fb_span answer);

typedef enum fb_loop_happening {
    FB_LOOP_STARTED,    /* START was delivered; incarnation */
    FB_LOOP_RUNNING,    /* the node has read its store and answers */
    FB_LOOP_ENDED,      /* the incarnation ended; error, detail says why */
    FB_LOOP_LOG,        /* a log line of the core; level, detail */
    FB_LOOP_OPENED,     /* somebody connected; link, detail is the remote host */
    FB_LOOP_DIALLED,    /* a dial was answered; link or error, detail is the address */
    FB_LOOP_CLOSED,     /* a link ended; link, error */
    FB_LOOP_STORE,      /* a read or write of the store failed; error, detail */
    FB_LOOP_READ_ONLY,  /* the store takes no writes, and is tried again; error, detail */
    FB_LOOP_WRITABLE,   /* ... it takes them again */
    FB_LOOP_RENEWED,    /* the recording needs another instance: an incarnation ended for that */
    FB_LOOP_UNRECORDED, /* the recorder gave up; detail says why. The node goes on */
    FB_LOOP_OUTER,      /* another program changed documents; name, detail: what came of which */
    FB_LOOP_FATAL,      /* no start can succeed, and none is tried again; error, detail */
} fb_loop_happening;

typedef struct fb_loop_event {
    fb_loop_happening what;
    fb_log_level level;
    fb_error error;
    uint64_t link;
    uint64_t incarnation;
    const char *name;   /* OUTER: as a log names it */
    const char *detail; /* text without line ends; never NULL */
    size_t detail_len;
} fb_loop_event;

typedef struct fb_loop_options {
    uv_loop_t *uv;
    fb_options node; /* provider and keys filled in, allocator not needed */
    fb_lmdb_options store;
    fb_recorder *recorder; /* outlives the loop; NULL: nothing is recorded */
    void (*happened)(void *user, const fb_loop_event *event); /* for the operator's eyes */
    void *user;
} fb_loop_options;

/* Opens the store, makes the node and starts it. Errors are those of fb_lmdb_open and
 * fb_node_create; `why` gets a sentence, and the uv loop must be run once more to let go of
 * handles. */
fb_status fb_loop_open(const fb_loop_options *options, fb_loop **out, char *why, size_t why_len);

/* See fb_carrier_listen. */
fb_status fb_loop_listen(fb_loop *loop, const char *address, char *bound, size_t bound_len,
                         char *why, size_t why_len);

/* What the opening of the store found. */
const fb_lmdb_opening *fb_loop_opening(const fb_loop *loop);

/* Asks the node (request.h). The bytes are copied. Returns the request's number, or 0 when the node
 * is not started, is being stopped, or would have to write while the store takes no writes: then
 * there is no reply, and the caller says "try again". */
uint64_t fb_loop_request(fb_loop *loop, fb_verb verb, uint64_t principal, fb_span arguments,
                         fb_loop_reply reply, void *user);

/* Does now what would be done in the loop's next turn: a request that needs no disk is answered by
 * then. Not from within a reply. */
void fb_loop_flush(fb_loop *loop);

/* Why a request of this kind would be refused now, for people; NULL when it would be taken. */
const char *fb_loop_refusal(const fb_loop *loop, fb_verb verb);

/* What a look at a part of the store came to. last: the key to go on behind, empty at the end. */
typedef void (*fb_loop_scrubbed)(void *user, fb_error error, uint64_t entries, uint64_t damaged,
                                 fb_span last);

/* Looks at the next part of the store (fb_lmdb_scrub). Called from the loop, never from within.
 * False: one is under way. */
bool fb_loop_scrub(fb_loop *loop, fb_span after, fb_loop_scrubbed scrubbed, void *user);
/* Its caller is gone. */
void fb_loop_scrub_cancel(fb_loop *loop, const void *user);

/* The caller is gone: no reply follows. An answered or unknown number does nothing. */
void fb_loop_cancel(fb_loop *loop, uint64_t request);

/* The caller of a stream takes so many more bytes. */
void fb_loop_credit(fb_loop *loop, uint64_t request, uint64_t bytes);

/* Refuses new requests and connections, waits for the open requests but streams, at most
 * FB_LOOP_DRAIN_MS, then ends: what was promised is on disk when `stopped` is called. Frees the
 * loop just before. */
void fb_loop_stop(fb_loop *loop, void (*stopped)(void *user), void *user);

typedef struct fb_loop_stats {
    bool started; /* START was delivered and the incarnation goes on */
    bool running; /* loaded as well */
    bool
        read_only; /* since a write failed none has succeeded: reads are answered, writes refused */
    uint64_t incarnation;
    uint64_t starts;
    uint32_t requests;
    size_t node_bytes;
    fb_error last_end;              /* why the last incarnation ended; FB_OK before that */
    uint64_t counters[FB_COUNTERS]; /* of the core, since its START */
    fb_lmdb_stats store;
    fb_import_stats import;
    fb_carrier_stats carrier;
} fb_loop_stats;

void fb_loop_stats_get(fb_loop *loop, fb_loop_stats *out);

#endif
