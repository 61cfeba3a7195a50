/* SPDX-License-Identifier: Apache-2.0 */
/* What is under way to the nodes of the conformance adapter's world, in one order for all.
 *
 * A node need not take all bytes of a link at once. The rest then stands before everything that
 * came later over that link, its end included, and all of it waits until the node says that it goes
 * on. */
#ifndef FB_RUNTIME_CONFORMANCE_QUEUE_H
#define FB_RUNTIME_CONFORMANCE_QUEUE_H

#include "protocol/core/event.h"

#define FB_QUEUE_PAUSED_MAX 64u

/* An event that is on its way to a node. */
typedef struct fb_waiting {
    struct fb_waiting *next;
    uint32_t node;
    uint64_t life; /* of the node when it was sent */
    fb_event event;
    uint8_t bytes[];
} fb_waiting;

/* A link whose node did not take all of its bytes. */
typedef struct fb_paused {
    bool used;
    uint32_t node;
    uint64_t link;
} fb_paused;

/* All zero is an empty one. */
typedef struct fb_queue {
    fb_waiting *head;
    fb_paused paused[FB_QUEUE_PAUSED_MAX];
} fb_queue;

/* Copies the event's bytes. False: memory, or too many links are paused. */
bool fb_queue_add(fb_queue *queue, uint32_t node, uint64_t life, fb_event event);

/* Of a LINK_BYTES that was taken from the queue the node took so many bytes, and not all. */
bool fb_queue_put_back(fb_queue *queue, uint32_t node, uint64_t life, fb_event event, size_t taken);

/* The first that need not wait, whose event points at its bytes; to be freed. NULL: there is none.
 */
fb_waiting *fb_queue_next(fb_queue *queue);

/* The node goes on with this link. */
void fb_queue_resume(fb_queue *queue, uint32_t node, uint64_t link);
/* The node closes it: what it has not read is nobody's. */
void fb_queue_drop(fb_queue *queue, uint32_t node, uint64_t link);
/* None of the node's links waits any more. */
void fb_queue_resume_all(fb_queue *queue, uint32_t node);

void fb_queue_free(fb_queue *queue);

#endif
