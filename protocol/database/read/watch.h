/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds of changes. */
#ifndef FB_DATABASE_READ_WATCH_H
#define FB_DATABASE_READ_WATCH_H

#include "protocol/core/digest.h"
#include "protocol/core/internal.h"

/* A place of the changelog: its sequence, and the incarnation that wrote what stands there. Zeros:
 * before everything. */
typedef struct fb_place {
    uint64_t sequence;
    uint64_t incarnation;
} fb_place;

typedef struct fb_watch {
    bool used;
    bool fresh;  /* from what is new on */
    bool placed; /* its caller knows where it begins */
    bool reading;
    bool dry;       /* nothing durable is left to give */
    uint64_t stuck; /* credit that was too little */
    uint32_t space;
    uint32_t request;
    uint64_t number;
    uint64_t principal; /* who asked: an application may lose the space while it watches */
    fb_place cursor;    /* what was given last */
    uint64_t serial;
    fb_digest_cell cell;
} fb_watch;

void fb_watch_layout(fb_node *node, fb_arena *arena);
void fb_watch_reset(fb_node *node);
void fb_watch_durable(fb_node *node);
void fb_watch_flush(fb_node *node);

#endif
