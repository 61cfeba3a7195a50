/* SPDX-License-Identifier: Apache-2.0 */
/* Calls for what is wanted, and the batches that they bring (apply.c). */
#ifndef FB_DATABASE_EXCHANGE_FETCH_H
#define FB_DATABASE_EXCHANGE_FETCH_H

#include "protocol/database/batch/batch.h"
#include "protocol/database/database.h"

/* What stands before a batch of which those before it are folded (fold.c). */
typedef struct fb_folded {
    bool used;
    fb_id node;
    uint64_t incarnation;
    uint64_t after; /* what is folded begins behind this one; 0: with the life */
    uint64_t previous_incarnation, previous_number; /* that the first header of the life named */
    bool judged;
    uint64_t upto; /* judged: what is folded of the life ends here or before (report.c) */
} fb_folded;
#define FB_FOLDED_BYTES 49u /* u8 0 and the others, as an item of a piece */

/* A call of our own. */
/* Values whose hashes are kept from the judging of a batch to its merge. */
#define FB_FETCH_VALUES 16u

typedef struct fb_fetch {
    bool used;
    bool ended;  /* the call is gone; an operation may still run */
    bool inside; /* within the callback of the call */
    bool busy;   /* an operation applies a batch of the piece */
    bool heard;  /* a batch came that is not here already, whatever became of it */
    bool progress;
    bool refused;   /* a batch was forged */
    uint32_t skips; /* batches that came behind folded ones */
    uint32_t node_count;
    fb_id nodes[FB_FETCH_RANGES_MAX]; /* that it still asks for */
    uint64_t heard_ns;                /* when the last batch came, or it began */
    uint32_t area;
    uint32_t link;
    uint32_t member; /* whom it asks */
    uint32_t call;
    uint64_t serial;
    uint64_t link_number;
    fb_status status;
    uint8_t *piece;
    uint32_t piece_len;
    uint32_t piece_at;
    fb_folded folded; /* the item before the one at hand */
    /* Of the batch at piece_at, while it is applied. */
    uint32_t tries;
    fb_id heard_of; /* the signer of the batch before this one */
    fb_id signer;
    uint64_t incarnation, number;
    uint8_t hash[32];
    fb_dot waits_for; /* FB_ERR_BATCH_EARLY */
    uint64_t here;    /* FB_ERR_DUPLICATE: how far its life is here */
    /* As it was read when it was judged first, if it has one change: most have. */
    bool kept;
    fb_batch batch;
    fb_change change;
    uint8_t leaf[32];
    uint8_t value_hashes[FB_FETCH_VALUES * 32]; /* of the first values in it */
} fb_fetch;

void fb_fetch_layout(fb_node *node, fb_arena *arena);
void fb_fetch_reset(fb_node *node);
/* A call asks for this node no more. */
void fb_fetch_has(fb_node *node, uint32_t fetch, fb_id peer);
/* Starts what calls there can be for an area. */
void fb_fetch_go(fb_node *node, uint32_t area);
void fb_fetch_go_all(fb_node *node, uint32_t space);

/* Judges the batch at hand of a fetch. True: an operation goes on with it, and fb_fetch_applied
 * follows. False: *status is the outcome. */
bool fb_apply_begin(fb_node *node, uint32_t fetch, fb_status *status);
void fb_fetch_applied(fb_node *node, uint32_t fetch, fb_status status);
/* What the peer says to be folded was judged: fb_fetch.folded tells, or FB_ERR_BUSY. */
void fb_fetch_judged(fb_node *node, uint32_t fetch, fb_status status);
/* The batch at hand. */
fb_span fb_fetch_batch(const fb_node *node, uint32_t fetch);
/* Statements came: what waited for them is asked for again. */
void fb_fetch_unpark(fb_node *node, uint32_t space);
/* Changes of a life came, up to this one: what waited for them is asked for again. */
void fb_fetch_woken(fb_node *node, uint32_t area, fb_dot last);

#endif
