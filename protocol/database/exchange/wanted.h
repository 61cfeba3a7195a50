/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: what peers say to have and this node lacks. */
#ifndef FB_DATABASE_EXCHANGE_WANTED_H
#define FB_DATABASE_EXCHANGE_WANTED_H

#include "protocol/core/digest.h"
#include "protocol/database/database.h"
#include "protocol/database/record/change.h"

#define FB_WANTED_VALUE_BYTES (1u + 8)

/* A claim: something that a peer said to have and we lack, of one life of one node. */
typedef struct fb_wanted {
    bool used;
    bool stored;
    bool parked; /* its epoch is unknown here yet */
    bool whole;  /* what the life follows is not here either: the next call names no heads */
    bool waits;  /* a batch of it came early: for this dot of another life */
    fb_dot waits_for;
    uint32_t area;
    uint32_t next; /* of the area, plus one; or free list */
    fb_id node;
    uint64_t incarnation;
    uint64_t batch;       /* up to this one */
    uint32_t link;        /* who claims it, FB_NONE: nobody who is linked now */
    uint32_t avoid;       /* then: who was asked last and gave nothing */
    uint32_t fetch;       /* the call that asks for it, plus one */
    uint64_t back_off_ns; /* the last pause, 0 before one */
    uint64_t again_ns;    /* not asked for before */
    /* A life of the node that is no head here, and how far it is here: the answer to an earlier
     * call told. 0: none did. */
    uint64_t known_incarnation, known_batch;
    /* The batch before which the peer said to have folded what nobody has said to hold, and since
     * when that is known. 0: there is none. */
    uint64_t gap_incarnation, gap_number, gap_ns;
    fb_digest_cell cell;
} fb_wanted;

void fb_wanted_layout(fb_node *node, fb_arena *arena);
void fb_wanted_reset(fb_node *node);
/* A peer claims this; true when it is lacking here and is wanted now. */
bool fb_want(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint64_t batch,
             uint32_t link);
/* Puts the claim into the set being built, if there is room. */
void fb_wanted_store(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint32_t link);
void fb_wanted_touch(fb_node *node, uint32_t wanted);
/* The claim about this node that a fetch asks for; FB_NONE: none does any more. */
uint32_t fb_wanted_asked(const fb_node *node, uint32_t fetch, fb_id peer);
/* Since when it is known that those before this batch are said to be folded: from now on, if that
 * is news. Also when another claimer, or the same one over a link before, was the first to say so.
 */
uint64_t fb_wanted_gap_since(fb_node *node, uint32_t fetch, fb_id peer, uint64_t incarnation,
                             uint64_t number);
/* What is wanted of an area is asked for again without a pause. */
void fb_wanted_hurry(fb_node *node, uint32_t area);
/* Nobody has it: counted and forgotten. */
void fb_wanted_drop(fb_node *node, uint32_t wanted);
void fb_wanted_link_down(fb_node *node, uint32_t link);

fb_status fb_wanted_load(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                         fb_span value);

/* We have this batch: claims that it satisfies are forgotten. Puts one entry when room for it is
 * reserved, or there is. */
void fb_wanted_satisfy(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       uint64_t batch, bool reserved);

#endif
