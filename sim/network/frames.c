/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, and frames that wait: what needs nothing of the network's inside. */
#include "sim/network/network.h"
#include "sim/world/world.h"

bool fb_sim_address_node(fb_span address, uint32_t nodes, uint32_t *node)
{
    static const char scheme[] = "sim:";
    size_t skip = sizeof scheme - 1;
    if (address.len <= skip || address.len > skip + 4 || memcmp(address.p, scheme, skip) != 0) {
        return false;
    }
    uint32_t value = 0;
    for (size_t i = skip; i < address.len; i++) {
        if (address.p[i] < '0' || address.p[i] > '9') return false;
        value = value * 10 + (uint32_t)(address.p[i] - '0');
    }
    *node = value;
    return value < nodes;
}

static fb_sim_flow *flow_to(fb_sim_world *world, uint32_t end)
{
    return &world->network.connections[end / 2].flows[1 - (end & 1)];
}

void fb_sim_frame_over(fb_sim_world *world, fb_sim_frame *frame)
{
    bool counted = world->network.connections[frame->end / 2].stamp == frame->stamp && !frame->lost;
    if (counted) {
        flow_to(world, frame->end)->waiting -= fb_sim_blob_bytes(&world->blobs, frame->bytes).len;
    }
    frame->lost = true;
}

void fb_sim_frames_oldest_lost(fb_sim_world *world, uint32_t end, uint64_t most)
{
    fb_sim_network *net = &world->network;
    uint32_t stamp = net->connections[end / 2].stamp;
    while (flow_to(world, end)->waiting > most) {
        fb_sim_frame *oldest = NULL;
        for (uint32_t i = 0; i < net->frame_count; i++) {
            fb_sim_frame *f = &net->frames[i];
            if (f->bytes == 0 || f->lost || f->end != end || f->stamp != stamp) continue;
            if (oldest == NULL || f->serial < oldest->serial) oldest = f;
        }
        if (oldest == NULL) return;
        fb_sim_frame_over(world, oldest);
    }
}
