/* SPDX-License-Identifier: Apache-2.0 */
/* The methods `compare` and `verify`, both ends. docs/WIRE-FORMATS.md, "Compare".
 *
 * A path names the node under the first `depth` nibbles of a key. What stands there is told as if
 * every bucket reached as far down as asked: a bucket above the path is shown as far as its items
 * have the path's nibbles. */
#ifndef FB_DATABASE_COMPARE_COMPARE_H
#define FB_DATABASE_COMPARE_COMPARE_H

#include "protocol/database/record/record.h"
#include "protocol/database/tree/path.h"
#include "protocol/rpc/rpc.h"
#include "protocol/store/ops.h"

enum { FB_COMPARE_NODES = 1, FB_COMPARE_RECORDS = 2 };

/* What a comparison that repairs nothing has come to: so many items differ, and of those that are
 * here some ids. whole: all of it was looked at. */
typedef struct fb_looked {
    bool whole;
    uint64_t differ;
    const fb_id *ids;
    uint32_t count;
} fb_looked;
typedef void (*fb_compare_done)(fb_node *node, uint64_t user, const fb_looked *looked);

/* A comparison of this node's (compare.c). */
typedef struct fb_compare {
    bool used;
    bool calling;         /* a call is under way */
    bool busy;            /* an operation is */
    bool more;            /* not all that differs was looked at */
    bool doubtful;        /* the peer is in doubt itself */
    bool dots_left;       /* of the record at hand, behind those asked about */
    bool waiting;         /* its answer, for batches that the peer had when it gave that */
    bool outdated;        /* and that named lives which are not here: it is asked for anew */
    uint32_t waits;       /* pauses so far, for all records */
    uint32_t dots_most;   /* that are asked about in one call: fewer, when an answer was too long */
    fb_compare_done done; /* it only looks, for this one; else NULL */
    uint64_t user;
    uint8_t phase;
    /* The last one was whole: area, plus one, which is out of doubt when this is durable. */
    uint32_t cleared;
    uint64_t cleared_w;
    uint32_t area;
    uint32_t link;
    uint64_t link_number;
    uint32_t member;
    uint32_t call;
    uint64_t serial;
    uint32_t rounds;  /* calls for nodes */
    uint64_t bytes;   /* of them */
    uint64_t differ;  /* items that differ, here or there */
    uint64_t dropped; /* dots that were taken away */
    uint8_t *piece;
    uint32_t piece_len;
    /* Most nodes never compare: what is below is not touched before one does. */
    uint32_t front_count;
    fb_path front[FB_COMPARE_FRONT_MAX]; /* still to be asked for */
    uint32_t asked_count, asked_at;
    fb_path asked[FB_COMPARE_PATHS_MAX];
    uint32_t found_count; /* keys of items that are other here */
    uint8_t found[FB_COMPARE_FOUND_MAX][16];
    fb_id scanned;
    uint32_t record_count, record_at;
    fb_id records[FB_COMPARE_FOUND_MAX];
    uint32_t dot_count;               /* of the record at hand */
    uint8_t dots_after[FB_DOT_BYTES]; /* those up to this one were asked about */
    uint8_t dots[FB_COMPARE_DOTS_MAX * FB_DOT_BYTES];
} fb_compare;

/* And of another node. */
typedef struct fb_compare_serve {
    bool used;
    bool busy;
    uint8_t kind;
    uint32_t area;
    uint32_t call;
    uint64_t serial;
    uint32_t count; /* paths or records that are left, from `at` on */
    uint32_t at;
    uint32_t arguments_len;
    uint8_t root[16];
    uint8_t arguments[FB_CALL_ARGUMENTS_MAX];
} fb_compare_serve;

/* One question to a peer, whether it holds the same (verify.c). */
typedef struct fb_verify {
    bool used;
    bool calling; /* the peer is asked; else the comparison goes on */
    uint32_t area;
    uint32_t link;
    uint32_t call;
    uint32_t index; /* of the request */
    uint64_t number;
    uint64_t serial;
    uint8_t mine[16], theirs[16];
} fb_verify;

void fb_verify_layout(fb_node *node, fb_arena *arena);
void fb_verify_reset(fb_node *node);
/* Begins one that only looks; false while another one goes on. */
bool fb_compare_look(fb_node *node, uint32_t area, uint32_t link, fb_compare_done done,
                     uint64_t user);

void fb_compare_layout(fb_node *node, fb_arena *arena);
void fb_compare_reset(fb_node *node);
void fb_compare_durable(fb_node *node);
void fb_compare_link_up(fb_node *node, uint32_t space);
void fb_compare_serve_layout(fb_node *node, fb_arena *arena);
/* Batches were skipped: something may live here that was replaced by one of them. Puts one entry
 * when `put`. */
void fb_doubt(fb_node *node, uint32_t area, bool put);

#define FB_DOUBT_VALUE_BYTES 1u
/* Its value: in doubt, or it was once. */
#define FB_DOUBT_NOW  1u
#define FB_DOUBT_ONCE 2u

#endif
