/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of others for batches that this node has. */
#ifndef FB_DATABASE_EXCHANGE_SERVE_H
#define FB_DATABASE_EXCHANGE_SERVE_H

#include "protocol/database/database.h"

typedef struct fb_range {
    fb_id node;
    uint64_t incarnation;
    uint64_t batch;
    uint32_t have_count;
    uint64_t have_incarnation[FB_FETCH_HAVES_MAX];
    uint64_t have_batch[FB_FETCH_HAVES_MAX];
} fb_range;

typedef struct fb_step_back {
    uint64_t incarnation;
    uint64_t from, upto;
    uint64_t previous_incarnation, previous_number; /* as its first header names them */
} fb_step_back;

/* A call of another node. */
typedef struct fb_serve {
    bool used;
    bool busy; /* an operation reads */
    uint32_t area;
    uint32_t call;
    uint64_t serial;
    uint32_t count, at; /* ranges */
    fb_range range[FB_FETCH_RANGES_MAX];
    uint32_t depth; /* lives on the path, the next one to send last */
    fb_step_back path[FB_SERVE_PATH_MAX];
    bool walking; /* the walk for this range was begun */
    bool cut;     /* the path lost its far end: walk again from there */
} fb_serve;

void fb_serve_layout(fb_node *node, fb_arena *arena);
void fb_serve_reset(fb_node *node);

#endif
