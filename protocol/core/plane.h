/* SPDX-License-Identifier: Apache-2.0 */
/* What a plane gives the core: a constant table of functions. The order in planes.c is the order of
 * loading and of flushing. No plane calls another through this table; for that they include each
 * other's headers. */
#ifndef FB_CORE_PLANE_H
#define FB_CORE_PLANE_H

#include "protocol/base/alloc.h"

typedef struct fb_node fb_node;

/* Every member may be NULL. */
typedef struct fb_plane {
    const char *name;
    /* Takes the plane's tables from the arena and registers timers, digests, verbs, channels.
     * Called twice with the same result: first to measure (fb_arena_take gives NULL). */
    void (*layout)(fb_node *node, fb_arena *arena);
    /* START: everything volatile is forgotten, as if just created. */
    void (*reset)(fb_node *node);
    /* Begins to read the plane's part of the store, by operations; the last one of the chain calls
     * fb_plane_loaded. A plane without a store part leaves this NULL. */
    void (*load)(fb_node *node);
    /* Every plane is loaded: timers may be set, peers dialled. */
    void (*started)(fb_node *node);
    /* A write set is about to be sealed: put what belongs with it. */
    void (*seal)(fb_node *node);
    /* fb_w_durable rose. */
    void (*durable)(fb_node *node);
    /* Output at the end of the step, as far as credit and the arena allow. */
    void (*flush)(fb_node *node);
} fb_plane;

/* NULL-terminated, in order. */
extern const fb_plane *const fb_planes[];

#endif
