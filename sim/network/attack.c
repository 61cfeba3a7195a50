/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody honest sends: recordings played again, bytes of an attacker, and changes of one
 * decision by hand. */
#include "sim/network/inside.h"
#include "sim/view/record.h"

#define NONE UINT32_MAX

void fb_sim_network_replay(fb_sim_world *world)
{
    fb_sim_network *net = &world->network;
    if (net->recorded_len == 0 || !fb_sim_is_up(world, net->recorded_to)) return;
    if (2 * net->connections_open > net->connection_count) return; /* the backlog is full */
    fb_sim_connection *c = fb_net_connection_take(world);
    c->state = FB_SIM_CONNECTION_DIALLING;
    c->attacker = true;
    c->ends[0].node = c->ends[1].node = (uint16_t)net->recorded_to;
    uint32_t end = fb_net_end_name(world, c, 1);
    fb_sim_schedule(world, world->now_ns, net->recorded_to, FB_SIM_AT_ACCEPT, end, c->stamp);
    fb_sim_flow *flow = &c->flows[0];
    fb_net_segment_append(world, flow, fb_span_of(net->recorded, net->recorded_len),
                          world->now_ns + 1000000);
    flow->granted = flow->written;
    fb_net_delivery_schedule(world, c, 0, world->now_ns + 1000000);
    /* It goes away some time later, when the node has not. */
    uint64_t stay = fb_sim_between(world->seed, FB_SIM_STREAM_REPLAY, net->recorded_to,
                                   net->replays++, UINT64_C(1000000), UINT64_C(20000000000));
    flow->ended = true;
    flow->end_reason = FB_OK;
    flow->end_at_ns = world->now_ns + stay;
    c->flows[1].swallowing = false;
    world->fired[FB_SIM_FAULT_REPLAY]++;
}

void fb_sim_network_inject(fb_sim_world *world, uint32_t node, uint64_t pick, fb_span bytes)
{
    fb_sim_network *net = &world->network;
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < net->connection_count; i++) {
            fb_sim_connection *c = &net->connections[i];
            if (c->state != FB_SIM_CONNECTION_OPEN || c->attacker) continue;
            for (uint32_t side = 0; side < 2; side++) {
                const fb_sim_end *e = &c->ends[side];
                if (!e->open || e->closing || e->node != node || c->ends[1 - side].node == node) {
                    continue;
                }
                if (pass == 1 && seen == pick % count) {
                    fb_sim_flow *flow = &c->flows[side];
                    if (c->carrier) {
                        fb_net_frame_push(world, c, side, bytes, (fb_sim_wanted){0});
                    } else if (flow->granted + bytes.len <= flow->taken + net->window_bytes) {
                        /* The machine's own bytes do not use up its node's credit. */
                        flow->granted += bytes.len;
                        net->hung_ns = world->now_ns;
                        fb_net_stream_push(world, c, side, bytes, (fb_sim_wanted){0});
                    }
                    return;
                }
                seen++;
            }
        }
        count = seen;
        if (count == 0) return;
    }
}

/* Changes by hand. */

bool fb_sim_network_frame_repeat(fb_sim_world *world, uint32_t place, uint64_t at_ns)
{
    fb_sim_network *net = &world->network;
    if (net->frame_free == NONE) return false;
    fb_sim_frame frame = net->frames[place];
    uint32_t node = fb_net_connection_of(world, frame.end)->ends[frame.end & 1].node;
    uint64_t message = world->record != NULL ? world->record->live->frame_message[place] : 0;
    fb_net_frame_launch(world, node, frame.end, frame.stamp, frame.bytes, at_ns, message);
    return true;
}

void fb_sim_network_cut(fb_sim_world *world, uint32_t end)
{
    fb_sim_connection *c = fb_net_connection_of(world, end);
    for (uint32_t side = 0; side < 2; side++) {
        fb_net_flow_end(world, c, side, FB_ERR_LINK_CLOSED, world->now_ns, true);
    }
}
