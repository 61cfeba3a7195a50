/* SPDX-License-Identifier: Apache-2.0 */
/* Facts for checkers: what happened inside, typed and hashed with the trace. Real drivers ignore
 * them; nothing in the core depends on them. Layouts are big-endian. */
#ifndef FB_CORE_OBSERVE_H
#define FB_CORE_OBSERVE_H

/* b and c are the record's second and third number, bytes what follows it. */
typedef enum fb_fact {
    FB_FACT_STARTED = 1,       /* b incarnation; the node is running */
    FB_FACT_SEALED = 2,        /* b w; c entries */
    FB_FACT_LINK_BOUND = 10,   /* b link; c peer incarnation; space, peer node id */
    FB_FACT_LINK_ENDED = 11,   /* b link; c fb_error */
    FB_FACT_LINK_REFUSED = 12, /* b link; c fb_error: bytes of a peer that broke a rule */
    FB_FACT_CLONE = 13,        /* own key proven by a peer, or own batch unknown to the store */
    FB_FACT_SENT = 20,         /* b link; c number; space, target peer, message id, u64 timestamp:
                                  given to a link for the first time */
    FB_FACT_RESENT = 21,       /* as SENT: again on a later link, or repeated on the carrier */
    FB_FACT_DELIVERED = 22,    /* b link; c number; space, sender, message id, u64 timestamp: to the
                                  engine */
    FB_FACT_REFUSED = 23, /* b link; c fb_error; space, peer, message id (zeros if unreadable) */
    FB_FACT_ACKED = 24,   /* b link; c cumulative number: what this node acknowledges now */
    FB_FACT_DROPPED = 25, /* b fb_error; space, target peer, message id: never to be delivered */
    FB_FACT_FLOOR = 26, /* b floor as two's complement; c link that reset it or 0; space, sender */
    FB_FACT_WRITTEN = 30, /* b request; c w; area, record, dot (node, incarnation, seq), i64 stamp:
                             a local change was executed */
    FB_FACT_APPLIED = 31, /* b w; c link or 0; area, record, dot, i64 stamp: a remote change */
    FB_FACT_BATCH = 32,   /* b w; c number; area, node, incarnation, u64 last sequence: stored */
    FB_FACT_BATCH_REFUSED = 33, /* b link; c fb_error; area, node, incarnation, number */
    FB_FACT_ROOT = 34,          /* b w; area, 16 bytes: fingerprint of the area after this set */
    FB_FACT_CUT = 36,           /* b w; c number; area, node, incarnation, u64 last sequence now: a
                                   batch above a cut was taken back */
    FB_FACT_MENDED = 37,        /* b w; area, record: what is above a cut was taken out of it */
    FB_FACT_SKIPPED = 38,       /* b w; c number; area, node, incarnation, u64 last sequence, node
                                   that it came from: all of this life before that batch was
                                   folded there */
    FB_FACT_FOLDED = 39,        /* b w; area, node, incarnation, u64 number: nothing of it lives */
    FB_FACT_COMPARED = 42,      /* b calls for nodes; c bytes of them; area, u64 items that differ,
                                   u64 items here */
    FB_FACT_REPAIRED = 43,  /* b w; area, record, node: values that it knows to be replaced went */
    FB_FACT_ANNOUNCED = 35, /* b link; area: a `changed` was given to the link's channel */
    FB_FACT_MEMBER = 40,    /* b status; c role; space, node: what this node holds true now */
    FB_FACT_NAMED = 41,     /* space, then the bytes of the name that a renaming gave it */
    FB_FACT_UUID = 50,      /* the 16 bytes of a new UUID */
} fb_fact;

/* Counters of a node since its START, read with fb_node_counter. Names: docs/OPERATIONS.md. */
#define FB_COUNTER_TABLE(X)                                                                        \
    X(STEPS, "steps")                                                                              \
    X(WRITE_SETS, "write_sets")                                                                    \
    X(LATE_COMPLETIONS, "late_completions")                                                        \
    X(FACTS_DROPPED, "facts_dropped")                                                              \
    X(LOGS_DROPPED, "logs_dropped")                                                                \
    X(MESSAGES_SENT, "messages_sent")                                                              \
    X(MESSAGES_RESENT, "messages_resent")                                                          \
    X(MESSAGES_DELIVERED, "messages_delivered")                                                    \
    X(MESSAGES_REFUSED, "messages_refused")                                                        \
    X(MESSAGES_DROPPED, "messages_dropped")                                                        \
    X(LINKS_OPENED, "links_opened")                                                                \
    X(LINKS_REFUSED, "links_refused")                                                              \
    X(CALLS_REFUSED, "calls_refused")                                                              \
    X(CHANGES_WRITTEN, "changes_written")                                                          \
    X(CHANGES_APPLIED, "changes_applied")                                                          \
    X(BATCHES_REFUSED, "batches_refused")                                                          \
    X(BATCHES_PARKED, "batches_parked")                                                            \
    X(REQUESTS_REFUSED, "requests_refused")                                                        \
    X(CLAIMS_DROPPED, "claims_dropped")                                                            \
    X(LIVES_REFUSED, "lives_refused")                                                              \
    X(BATCHES_EARLY, "batches_early")                                                              \
    X(RECORDS_FULL, "records_full")                                                                \
    X(AREAS_REFUSED, "areas_refused")                                                              \
    X(BATCHES_CUT, "batches_cut")                                                                  \
    X(BATCHES_FOLDED, "batches_folded")                                                            \
    X(BATCHES_SKIPPED, "batches_skipped")                                                          \
    X(DOTS_DROPPED, "dots_dropped")

typedef enum fb_counter {
#define FB_COUNTER_ROW(name, label) FB_COUNTER_##name,
    FB_COUNTER_TABLE(FB_COUNTER_ROW)
#undef FB_COUNTER_ROW
        FB_COUNTERS
} fb_counter;

/* The stable name, e.g. "messages_sent". */
const char *fb_counter_name(fb_counter counter);

#endif
