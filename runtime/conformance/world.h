/* SPDX-License-Identifier: Apache-2.0 */
/* A driver of a few nodes in one process and in virtual time, for the conformance adapter: stores
 * in memory, byte streams between the nodes, external carriers to whoever uses this. No faults.
 *
 * Memory that runs out, and what the core says is a driver's mistake, end the program. */
#ifndef FB_RUNTIME_CONFORMANCE_WORLD_H
#define FB_RUNTIME_CONFORMANCE_WORLD_H

#include "protocol/core/node.h"
#include "protocol/core/request.h"

#define FB_WORLD_NODES 8u

typedef struct fb_world fb_world;

/* What a node does on its external carriers, and the facts it tells (observe.h). Called within the
 * functions below; the bytes are borrowed. */
typedef struct fb_world_user {
    void *user;
    void (*frame)(void *user, uint32_t node, uint64_t link, fb_span bytes);
    void (*closed)(void *user, uint32_t node, uint64_t link, fb_error why);
    void (*fact)(void *user, uint32_t node, const fb_effect *fact);
} fb_world_user;

fb_world *fb_world_new(const fb_world_user *user, int64_t wall_us);
void fb_world_free(fb_world *world); /* NULL is allowed */

/* A node with the key of this seed, started. Of the options the sizes and times count. */
uint32_t fb_world_add(fb_world *world, const fb_b32 *seed, const fb_options *options);
/* It is gone, and cannot be dialled any more. */
void fb_world_remove(fb_world *world, uint32_t node);
fb_node *fb_world_node(fb_world *world, uint32_t node);
fb_b32 fb_world_key(const fb_world *world, uint32_t node);

/* Its address for invites; "world:N". */
const char *fb_world_address(uint32_t node);

uint64_t fb_world_mono_ns(const fb_world *world);
int64_t fb_world_wall_us(const fb_world *world);
void fb_world_set_wall(fb_world *world, int64_t wall_us);

/* Lets time pass, in steps as the nodes want them; everything under way arrives. 0 is allowed. */
void fb_world_run(fb_world *world, uint64_t ns);

/* While held, a node's store writes nothing and answers no write. */
void fb_world_hold_disk(fb_world *world, uint32_t node, bool hold);
/* Everything volatile is lost, sets that the disk held included; its links are closed. */
void fb_world_restart(fb_world *world, uint32_t node);

/* A new link's number; the node is told of a carrier to that peer with fb_world_run, or of its end
 * at once. */
uint64_t fb_world_carrier(fb_world *world, uint32_t node, fb_id space, const fb_b32 *peer);
void fb_world_carrier_end(fb_world *world, uint32_t node, uint64_t link);
/* A frame is on its way; fb_world_run lets it arrive. */
void fb_world_frame(fb_world *world, uint32_t node, uint64_t link, fb_span bytes);

/* Asks a node as its operator; the answer's bytes live until the next call. FB_ERR_AGAIN: no answer
 * at once; it is waited for in virtual time, at most so long. */
fb_status fb_world_ask(fb_world *world, uint32_t node, fb_verb verb, fb_span arguments,
                       uint64_t patience_ns, fb_span *answer);

#endif
