/* SPDX-License-Identifier: Apache-2.0 */
/* Inside sim/network/: what its parts share. A connection has two ends and two flows; flow `side`
 * is what end `side` sends. */
#ifndef FB_SIM_NETWORK_INSIDE_H
#define FB_SIM_NETWORK_INSIDE_H

#include "sim/network/network.h"
#include "sim/schedule/player.h"
#include "sim/world/world.h"

static inline uint64_t fb_net_path_entity(const fb_sim_world *world, const fb_sim_path *path)
{
    return (uint64_t)(path - world->network.paths);
}

static inline fb_sim_connection *fb_net_connection_of(fb_sim_world *world, uint32_t end)
{
    return &world->network.connections[end / 2];
}

static inline uint32_t fb_net_end_name(const fb_sim_world *world, const fb_sim_connection *c,
                                       uint32_t side)
{
    return (uint32_t)(c - world->network.connections) * 2 + side;
}

/* The path that flow `side` takes. Nobody's bytes (an attacker's) take the path of the node to
 * itself: partitions do not hold them up. */
static inline fb_sim_path *fb_net_flow_path(fb_sim_world *world, const fb_sim_connection *c,
                                            uint32_t side)
{
    return fb_sim_path_of(world, c->ends[side].node, c->ends[1 - side].node);
}

static inline fb_sim_segment *fb_net_segment_of(fb_sim_world *world, fb_sim_blob blob)
{
    return (fb_sim_segment *)(void *)fb_sim_blob_writable(&world->blobs, blob);
}

static inline uint64_t fb_net_link_new(fb_sim_world *world, uint32_t end)
{
    return ++world->network.link_serial << 16 | end;
}

/* connection.c */
uint64_t fb_net_path_delay(const fb_sim_path *path, uint64_t occurrence);
bool fb_net_one_of(const fb_sim_world *world, const fb_sim_path *path, uint32_t stream,
                   uint64_t occurrence, uint32_t of);
void fb_net_segment_append(fb_sim_world *world, fb_sim_flow *flow, fb_span bytes, uint64_t at_ns);
/* The receiver took so many bytes from the beginning. */
void fb_net_segments_take(fb_sim_world *world, fb_sim_flow *flow, size_t len);
void fb_net_segments_drop(fb_sim_world *world, fb_sim_connection *c, uint32_t side);
void fb_net_connection_release(fb_sim_world *world, fb_sim_connection *c);
void fb_net_connection_release_if_over(fb_sim_world *world, fb_sim_connection *c);
/* The end that a node means by a link number, or FB_SIM_END_NONE when it is over. */
uint32_t fb_net_end_of(fb_sim_world *world, uint32_t node, uint64_t link);
void fb_net_credit_schedule(fb_sim_world *world, fb_sim_connection *c, uint32_t side,
                            uint64_t at_ns);
/* On a stream nothing is lost in a full queue: its sender gets less credit. */
uint64_t fb_net_window_of(fb_sim_world *world, const fb_sim_connection *c, uint32_t side);
/* Credit goes back at once when half the window is free; a little later when less is, but the
 * sender may be short. */
void fb_net_credit_maybe(fb_sim_world *world, fb_sim_connection *c, uint32_t side);
void fb_net_delivery_schedule(fb_sim_world *world, fb_sim_connection *c, uint32_t side,
                              uint64_t at_ns);
/* What the receiver of flow `side` waits for next, if anything. */
void fb_net_delivery_next(fb_sim_world *world, fb_sim_connection *c, uint32_t side);
/* The sender of flow `side` is gone: the receiver learns it after what it can still get. */
void fb_net_flow_end(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_error why,
                     uint64_t at_ns, bool drop);
fb_sim_connection *fb_net_connection_take(fb_sim_world *world);

/* stream.c */
/* Whether what is still on its way arrives before the bad news, or never. */
bool fb_net_coin(fb_sim_world *world, const fb_sim_connection *c, uint32_t side);
/* Both ends learn that the connection broke. */
void fb_net_connection_cut(fb_sim_world *world, fb_sim_connection *c);
fb_sim_wanted fb_net_wanted_of(fb_sim_world *world, const fb_sim_connection *c, uint32_t side,
                               fb_span bytes);
void fb_net_stream_push(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_span bytes,
                        fb_sim_wanted what);

/* carrier.c */
void fb_net_frame_launch(fb_sim_world *world, uint32_t node, uint32_t end, uint32_t stamp,
                         fb_sim_blob bytes, uint64_t at_ns, uint64_t message);
void fb_net_frame_push(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_span frame,
                       fb_sim_wanted what);

#endif
