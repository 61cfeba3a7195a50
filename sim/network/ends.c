/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of connections: closed, cut, or gone with their node. */
#include "sim/network/inside.h"

/* How long after a partition's end a stuck sender tries again, at most. */
#define RETRANSMIT_NS UINT64_C(200000000)

void fb_sim_close(fb_sim_world *world, uint32_t node, uint64_t link, fb_error why)
{
    (void)why;
    uint32_t end = fb_net_end_of(world, node, link);
    if (end == FB_SIM_END_NONE || fb_net_connection_of(world, end)->ends[end & 1].closing) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s closes link %llu, which is over or closed already", fb_sim_name(node),
                        (unsigned long long)link);
        return;
    }
    fb_sim_connection *c = fb_net_connection_of(world, end);
    uint32_t side = end & 1;
    c->ends[side].closing = true;
    fb_sim_path *path = fb_net_flow_path(world, c, side);
    fb_net_flow_end(world, c, side, FB_OK, world->now_ns + path->delay_min_ns, false);
    fb_sim_schedule(world, world->now_ns + 1000, node, FB_SIM_AT_CLOSED, end, c->stamp);
}

void fb_sim_at_closed(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = fb_net_connection_of(world, end);
    if (c->stamp != stamp) return;
    uint32_t side = end & 1;
    fb_sim_end *e = &c->ends[side];
    if (!e->open) return;
    fb_sim_flow *in = &c->flows[1 - side];
    if (!e->closing && fb_net_flow_path(world, c, 1 - side)->blocked && !c->attacker) {
        e->close_stalled = true;
        return;
    }
    if (!e->closing && in->ended && in->taken != in->written) return; /* more to deliver first */
    fb_error why = e->closing ? FB_OK : in->end_reason;
    uint64_t link = e->link;
    uint32_t node = e->node;
    e->open = false;
    /* What is still on its way to this end goes nowhere. */
    fb_net_segments_drop(world, c, 1 - side);
    if (!e->closing) {
        fb_net_flow_end(world, c, side, FB_ERR_LINK_CLOSED, world->now_ns, true);
    }
    fb_net_connection_release_if_over(world, c);
    if (!fb_sim_is_up(world, node)) return;
    fb_sim_step(world, node, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = link, .b = why});
}

void fb_sim_network_crashed(fb_sim_world *world, uint32_t node)
{
    fb_sim_network *net = &world->network;
    for (uint32_t i = 0; i < net->connection_count; i++) {
        fb_sim_connection *c = &net->connections[i];
        if (c->state == FB_SIM_CONNECTION_FREE) continue;
        for (uint32_t side = 0; side < 2; side++) {
            fb_sim_end *e = &c->ends[side];
            if (!e->open || e->node != node) continue;
            e->open = false;
            fb_sim_path *path = fb_net_flow_path(world, c, side);
            uint64_t at = world->now_ns + path->delay_min_ns;
            if (path->half_open) {
                /* No word, not even when the peer speaks: its own patience has to end. */
                at += UINT64_C(3600000000000);
                c->flows[1 - side].swallowing = true;
                world->fired[FB_SIM_FAULT_HALF_OPEN]++;
                net->hung_ns = world->now_ns;
            }
            fb_net_flow_end(world, c, side, FB_ERR_LINK_CLOSED, at, fb_net_coin(world, c, side));
        }
        fb_net_connection_release_if_over(world, c);
    }
}

void fb_sim_network_unblocked(fb_sim_world *world)
{
    fb_sim_network *net = &world->network;
    for (uint32_t i = 0; i < net->connection_count; i++) {
        fb_sim_connection *c = &net->connections[i];
        if (c->state == FB_SIM_CONNECTION_FREE) continue;
        for (uint32_t side = 0; side < 2; side++) {
            fb_sim_flow *flow = &c->flows[side];
            fb_sim_path *path = fb_net_flow_path(world, c, side);
            if (path->blocked) continue;
            uint64_t at =
                world->now_ns + fb_draw_below(world->seed, FB_SIM_STREAM_DELAY,
                                              fb_net_path_entity(world, path) + (1u << 24),
                                              path->dials++, RETRANSMIT_NS);
            if (flow->stalled) {
                flow->stalled = false;
                fb_net_delivery_schedule(world, c, side, at);
            }
            if (c->flows[1 - side].credit_stalled) {
                c->flows[1 - side].credit_stalled = false;
                fb_net_credit_schedule(world, c, 1 - side, at);
            }
            fb_sim_end *e = &c->ends[1 - side];
            if (e->close_stalled) {
                e->close_stalled = false;
                fb_sim_schedule(world, at, e->node, FB_SIM_AT_CLOSED,
                                fb_net_end_name(world, c, 1 - side), c->stamp);
            }
        }
    }
}
