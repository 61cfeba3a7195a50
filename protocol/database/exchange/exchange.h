/* SPDX-License-Identifier: Apache-2.0 */
/* What links are told of vectors, and what becomes of batches that came (onward.c). */
#ifndef FB_DATABASE_EXCHANGE_EXCHANGE_H
#define FB_DATABASE_EXCHANGE_EXCHANGE_H

#include "protocol/database/database.h"

/* What the control channel owes a link. */
typedef struct fb_link_vectors {
    bool up;
    bool summary;        /* all areas, from `summary_after` on */
    fb_id summary_after; /* zeros: from the start */
    uint64_t differs_ns; /* the peer's digest differed then */
    uint32_t stranger_count;
    fb_id strangers[FB_STRANGERS_MAX];
    uint32_t offer_at;   /* entries of the offer at hand that are out */
    uint32_t offer_area; /* of which area */
    uint8_t *offer;      /* bits by area: our vector is owed */
    uint8_t *ask;        /* bits by area: its vector is wanted */
    /* The frame last peeked. */
    uint8_t peeked;
    uint32_t peeked_area;
    uint32_t peeked_next; /* entries of the offer that are out then */
    fb_id peeked_last;    /* of a summary */
} fb_link_vectors;

void fb_vector_exchange_layout(fb_node *node, fb_arena *arena);
void fb_vector_exchange_reset(fb_node *node);
void fb_vector_ask(fb_node *node, uint32_t link, uint32_t area, fb_id id);
/* Tells every link of a space what is held here, to be told of the rest. */
void fb_vector_compare_all(fb_node *node, uint32_t space);
void fb_onward_layout(fb_node *node);
/* A received batch was applied to this area. */
void fb_onward_applied(fb_node *node, uint32_t area, bool conflict);

#endif
