/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated node whose records are documents: what io/documents/ decides, between the core, a
 * disk of its own and a server (server.h). Beside it the node's store goes on as it would without
 * documents; checks look at that one, and what the core reads is held against it. */
#ifndef FB_SIM_DOCUMENTS_DOCUMENTS_H
#define FB_SIM_DOCUMENTS_DOCUMENTS_H

#include "io/documents/handing.h"
#include "io/documents/keeping.h"
#include "io/documents/reading.h"
#include "sim/documents/server.h"
#include "sim/world/store.h"

typedef struct fb_sim_world fb_sim_world;
typedef struct fb_sim_window fb_sim_window;

#define FB_SIM_DOCUMENTS_DRAWN    UINT64_MAX
#define FB_SIM_DOCUMENTS_NODES    6u /* a larger cluster has documents only when it is told to */
#define FB_SIM_DOCUMENTS_READINGS 64u
#define FB_SIM_DOCUMENTS_CALLS    32u
#define FB_SIM_DOCUMENTS_LIVES    256u
/* A put that was sent is carried out within the one, and in doubt for the other. */
#define FB_SIM_DOCUMENTS_LATE_NS  UINT64_C(30000000000)
#define FB_SIM_DOCUMENTS_DOUBT_MS 60000u
/* What those windows do of the weather that is over has come to its end then. */
#define FB_SIM_DOCUMENTS_HEAL_NS UINT64_C(10000000000)

/* A call that the server has not finished with, be the process alive or not. */
typedef struct fb_sim_documents_call {
    bool used;
    uint32_t serial;
    uint8_t kind;    /* fb_handing_kind */
    uint8_t to_come; /* executions */
    uint32_t life;   /* boots of the process that waits for the answer */
    bool answered;   /* or nobody waits any more */
    bool overtaken;  /* it was carried out after a later start had put something */
    bool vanishes;   /* it is carried out, and taken back with the server that did it */
    uint64_t number;
    bool durable;
    bool older;            /* of a fence: there was none, or one from before */
    uint32_t first, count; /* changes that are carried out */
    uint32_t all;
    fb_sim_blob changes;  /* fb_sim_document_change */
    fb_sim_blob outcomes; /* fb_document_outcome */
} fb_sim_documents_call;

typedef struct fb_sim_documents_reading {
    fb_reading *reading;
    fb_sim_blob read_set;
    uint64_t sets; /* applied when it began */
    uint64_t until_ns;
    uint64_t pause_ns;
} fb_sim_documents_reading;

typedef struct fb_sim_documents_life {
    uint64_t incarnation, index;
} fb_sim_documents_life;

typedef struct fb_sim_documents {
    fb_sim_world *world;
    uint32_t node;
    bool up;
    bool calling; /* the process waits for an answer */
    bool pumping;
    uint32_t call;
    uint32_t serial;
    uint64_t calls_made, reads_made; /* occurrences */
    uint64_t wake_ns;
    uint64_t sets;      /* applied to the disk */
    fb_sim_store local; /* what its disk really holds */
    fb_room_source source;
    fb_keeping keeping;
    fb_handing handing;
    fb_sim_documents_server server;
    fb_sim_documents_reading readings[FB_SIM_DOCUMENTS_READINGS];
    fb_sim_documents_call calls[FB_SIM_DOCUMENTS_CALLS];
    fb_sim_documents_life lives[FB_SIM_DOCUMENTS_LIVES];
    uint64_t lives_seen;
    bool job_overtaken;
    bool overtaken;      /* there was one since the last boot */
    bool dropped;        /* and the process has not heard of it */
    uint64_t dropped_ns; /* the last time */
    uint64_t lost;       /* starts up to this one had a disk that is lost since */
    uint64_t rival;      /* the start of another process of this node; 0: there is none */
} fb_sim_documents;

/* The layout of what each node with documents has; node->documents is set. */
void fb_sim_documents_init(fb_sim_world *world, uint32_t node, fb_arena *arena);
/* Which nodes have documents when nobody says so. */
uint64_t fb_sim_documents_draw(const fb_sim_world *world);

void fb_sim_documents_boot(fb_sim_documents *d);
void fb_sim_documents_crash(fb_sim_documents *d);
/* A fresh incarnation: what a write set of unknown outcome left is handed on. */
void fb_sim_documents_start(fb_sim_documents *d);
/* The disk is lost, and the database is not. */
void fb_sim_documents_forget(fb_sim_documents *d);

/* A write set of the node reaches the disk, before or within a flush. False: it is none. */
bool fb_sim_documents_apply(fb_sim_documents *d, uint64_t incarnation, uint64_t w, fb_span set);
/* A flush begins, and ends: w of its last set. */
void fb_sim_documents_flush(fb_sim_documents *d);
void fb_sim_documents_flushed(fb_sim_documents *d, bool durable, uint64_t incarnation, uint64_t w);
/* True when the read is of documents: it is answered later. local: the disk's answer. */
bool fb_sim_documents_read(fb_sim_documents *d, uint64_t operation, fb_span read_set,
                           fb_span local);

/* A node of the core has write sets that wait for documents, or for its disk. */
bool fb_sim_documents_wait(const fb_sim_world *world);

/* Entries of the queue: of the node, and of its server. */
void fb_sim_at_documents(fb_sim_world *world, uint32_t node, uint32_t ref, uint32_t stamp);
void fb_sim_at_server(fb_sim_world *world, uint32_t ref, uint32_t stamp);

/* It was put by a process whose disk is lost since: no document of this node any more. */
static inline bool fb_sim_documents_is_lost(const fb_sim_documents *d, fb_document_version version)
{
    return version.start <= d->lost;
}
/* What was put before, and what is on its way, may be gone: so long after a drop. */
bool fb_sim_documents_lately_dropped(const fb_sim_documents *d);
/* The process hears of it. */
void fb_sim_documents_hears(fb_sim_documents *d);

/* A window of the weather about documents begins or ends. */
void fb_sim_documents_weather(fb_sim_world *world, const fb_sim_window *window);
/* Another process of this node has waited long enough. */
void fb_sim_documents_rival(fb_sim_world *world, uint32_t node);

/* The order of a write set among all of this node: its incarnation's number, then w. */
#define FB_SIM_DOCUMENTS_AGE "%llu.%llu"
#define FB_SIM_DOCUMENTS_AGE_OF(age)                                                               \
    (unsigned long long)((age) >> 40), (unsigned long long)((age) & ((UINT64_C(1) << 40) - 1))
uint64_t fb_sim_documents_age(const fb_sim_documents *d, uint64_t incarnation, uint64_t w);

/* checkers/documents_*.c: what they are told. */
void fb_sim_check_documents_applied(fb_sim_documents *d, const fb_sim_document *before,
                                    const fb_sim_document_change *change);
void fb_sim_check_documents_done(fb_sim_documents *d, const fb_job *job);
void fb_sim_check_documents_cleaned(fb_sim_documents *d, fb_span set);
void fb_sim_check_documents_locked(fb_sim_documents *d);
void fb_sim_check_documents_pauses(fb_sim_documents *d, uint64_t pause_ms);
/* unheard: there was a drop of which the process has not heard. */
void fb_sim_check_documents_answer(fb_sim_documents *d, fb_span read_set, fb_span answer,
                                   bool unheard);

#endif
