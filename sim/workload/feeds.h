/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that watch the changes of their node: each has one feed at a time and remembers where it
 * was, also while its node is down. It goes on from there, from the start, or from a cursor that
 * nobody ever gave; some take what comes at once, some slower than it comes. */
#ifndef FB_SIM_WORKLOAD_FEEDS_H
#define FB_SIM_WORKLOAD_FEEDS_H

#include "sim/workload/workload.h"

typedef struct fb_sim_cursor {
    uint64_t sequence;
    uint64_t incarnation;
} fb_sim_cursor;

/* Where a feed begins: `items` of its operation, with FB_SIM_FEED_SLOW or without. */
typedef enum fb_sim_feed_from {
    FB_SIM_FEED_NEW,
    FB_SIM_FEED_START,
    FB_SIM_FEED_LAST,   /* where it was */
    FB_SIM_FEED_FIRST,  /* where the feed before began */
    FB_SIM_FEED_BEYOND, /* far beyond where it was */
    FB_SIM_FEED_OTHER,  /* where it was, of another life */
    FB_SIM_FEED_FROMS
} fb_sim_feed_from;

#define FB_SIM_FEED_SLOW 8u

extern const char *const fb_sim_feed_names[FB_SIM_FEED_FROMS];

typedef struct fb_sim_feed {
    uint64_t request; /* that is open; 0: none */
    bool fresh;       /* asked for what is new alone */
    bool placed;      /* was told where it begins */
    bool slow;
    bool known;   /* `last` is something that a node gave */
    bool pending; /* credit is on its way to the node */
    fb_sim_cursor asked;
    fb_sim_cursor last;
    fb_sim_cursor first;
    uint32_t owed; /* bytes of credit to give back */
    uint32_t count;
} fb_sim_feed;

/* The feed with this request, or NULL. */
const fb_sim_feed *fb_sim_feed_of(const fb_sim_world *world, uint32_t node, uint64_t request);
/* The feed of a client. */
fb_sim_feed *fb_sim_feed_at(const fb_sim_world *world, uint32_t node, uint32_t client);

/* Ends the feed that the client has, and begins another one. */
void fb_sim_feed_begin(fb_sim_world *world, uint32_t node, uint32_t client, const fb_sim_op *op);
/* A reply, or a piece, of a feed; false: of something else. */
bool fb_sim_feed_replied(fb_sim_world *world, uint32_t node, const fb_effect *reply);
/* Credit arrives. */
void fb_sim_at_feed(fb_sim_world *world, uint32_t node, uint32_t client, uint32_t stamp);
/* The node ended its incarnation. */
void fb_sim_feeds_over(fb_sim_world *world, uint32_t node);

#endif
