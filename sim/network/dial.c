/* SPDX-License-Identifier: Apache-2.0 */
/* Dialling: who answers at an address, and when the dialler learns it. */
#include <stdio.h>

#include "sim/network/inside.h"

void fb_sim_dial(fb_sim_world *world, uint32_t node, uint64_t dial, fb_span address)
{
    fb_sim_connection *c = fb_net_connection_take(world);
    uint32_t to = node;
    bool known = fb_sim_address_node(address, world->config.nodes, &to);
    if (known && world->network.answers[to] != to) {
        to = world->network.answers[to];
        world->fired[FB_SIM_FAULT_ADDRESS_REUSE]++;
    }
    c->state = FB_SIM_CONNECTION_DIALLING;
    c->dial = dial;
    c->dial_boots = world->nodes[node].boots;
    c->dial_incarnation = world->nodes[node].incarnation;
    c->ends[0].node = (uint16_t)node;
    c->ends[1].node = (uint16_t)to;
    fb_sim_path *there = fb_sim_path_of(world, node, to);
    fb_sim_path *back = fb_sim_path_of(world, to, node);
    uint64_t occurrence = there->dials++;
    uint64_t at = world->now_ns + fb_net_path_delay(there, occurrence << 32);
    uint64_t answer = at + fb_net_path_delay(back, (occurrence << 32) + 1);
    uint32_t end = fb_net_end_name(world, c, 0);
    if (!known || there->blocked || back->blocked ||
        world->carriers[node * world->config.nodes + to] == FB_SIM_ROUTE_CARRIER) {
        c->refused = true;
        if (known) answer = world->now_ns + world->network.dial_timeout_ns;
    } else {
        fb_sim_schedule(world, at, to, FB_SIM_AT_ACCEPT, end + 1, c->stamp);
    }
    fb_sim_schedule(world, answer, node, FB_SIM_AT_DIAL_RESULT, end, c->stamp);
}

void fb_sim_at_accept(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = fb_net_connection_of(world, end);
    if (c->stamp != stamp) return;
    fb_sim_end *e = &c->ends[1];
    fb_sim_node *node = &world->nodes[e->node];
    if (node->core == NULL || node->needs_start || fb_net_flow_path(world, c, 0)->blocked) {
        c->refused = true;
        if (c->attacker) fb_net_connection_release(world, c);
        return;
    }
    e->link = fb_net_link_new(world, end);
    e->open = true;
    if (c->attacker) c->state = FB_SIM_CONNECTION_OPEN;
    char address[16];
    int len = snprintf(address, sizeof address, "sim:%u",
                       c->attacker ? 9999u : (unsigned)c->ends[0].node);
    fb_sim_step(world, e->node,
                (fb_event){.kind = FB_EV_LINK_OPENED,
                           .len = (uint32_t)len,
                           .a = e->link,
                           .bytes = (const uint8_t *)address});
    if (c->stamp != stamp || !e->open) return;
    fb_net_credit_schedule(world, c, 1, world->now_ns);
}

void fb_sim_at_dial_result(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = fb_net_connection_of(world, end);
    if (c->stamp != stamp) return;
    fb_sim_end *e = &c->ends[0];
    fb_sim_node *node = &world->nodes[e->node];
    uint32_t who = e->node;
    uint64_t dial = c->dial;
    bool alive = node->core != NULL && node->boots == c->dial_boots;
    bool wanted = alive && !node->needs_start && node->incarnation == c->dial_incarnation;
    if (c->refused || !wanted || fb_net_flow_path(world, c, 1)->blocked) {
        c->state = FB_SIM_CONNECTION_OPEN;
        if (c->ends[1].open) {
            fb_net_flow_end(world, c, 0, FB_ERR_LINK_CLOSED, world->now_ns, true);
        } else {
            fb_net_connection_release(world, c);
        }
        if (alive) {
            fb_sim_step(world, who,
                        (fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .c = FB_ERR_UNREACHABLE});
        }
        return;
    }
    c->state = FB_SIM_CONNECTION_OPEN;
    e->link = fb_net_link_new(world, end);
    e->open = true;
    fb_sim_step(world, who, (fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .b = e->link});
    if (c->stamp != stamp || !e->open) return;
    fb_net_credit_schedule(world, c, 0, world->now_ns);
    /* What the other side sent, or its end, may have waited for this. */
    fb_sim_flow *flow = &c->flows[1];
    if (!flow->scheduled && !flow->stalled) fb_net_delivery_next(world, c, 1);
}
