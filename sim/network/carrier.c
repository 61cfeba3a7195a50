/* SPDX-License-Identifier: Apache-2.0 */
/* The external carrier: whole frames, which get lost, repeated, reordered and delayed. */
#include "sim/network/inside.h"
#include "sim/view/record.h"

#define NONE UINT32_MAX

void fb_sim_carrier_open(fb_sim_world *world, uint32_t space, uint32_t a, uint32_t b)
{
    if (!fb_sim_is_up(world, a) || !fb_sim_is_up(world, b)) return;
    fb_sim_network *net = &world->network;
    for (uint32_t i = 0; i < net->connection_count; i++) {
        fb_sim_connection *c = &net->connections[i];
        if (c->state == FB_SIM_CONNECTION_FREE || !c->carrier || c->space != space) continue;
        bool same = (c->ends[0].node == a && c->ends[1].node == b) ||
                    (c->ends[0].node == b && c->ends[1].node == a);
        if (!same) continue;
        if (c->ends[0].open && c->ends[1].open) return;
        /* One end waits for a peer that is gone: its driver notices now. */
        for (uint32_t side = 0; side < 2; side++) {
            fb_sim_flow *flow = &c->flows[1 - side];
            if (!c->ends[side].open || (flow->ended && flow->end_at_ns <= world->now_ns)) continue;
            flow->ended = false; /* half-open: it was to learn of it much later */
            fb_net_flow_end(world, c, 1 - side, FB_ERR_LINK_CLOSED, world->now_ns, true);
        }
        return;
    }
    fb_sim_connection *c = fb_net_connection_take(world);
    c->carrier = true;
    c->space = (uint8_t)space;
    c->state = FB_SIM_CONNECTION_DIALLING;
    c->ends[0].node = (uint16_t)a;
    c->ends[1].node = (uint16_t)b;
    for (uint32_t side = 0; side < 2; side++) {
        fb_sim_path *path = fb_net_flow_path(world, c, 1 - side);
        fb_sim_schedule(world, world->now_ns + path->delay_min_ns, c->ends[side].node,
                        FB_SIM_AT_CARRIER, fb_net_end_name(world, c, side), c->stamp);
    }
}

void fb_sim_at_carrier(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = fb_net_connection_of(world, end);
    if (c->stamp != stamp) return;
    fb_sim_end *e = &c->ends[end & 1];
    c->state = FB_SIM_CONNECTION_OPEN;
    fb_sim_node *node = &world->nodes[e->node];
    if (node->core == NULL || node->needs_start || c->flows[1 - (end & 1)].ended) {
        fb_net_flow_end(world, c, end & 1, FB_ERR_LINK_CLOSED, world->now_ns, true);
        fb_net_connection_release_if_over(world, c);
        return;
    }
    e->link = fb_net_link_new(world, end);
    e->open = true;
    uint8_t bytes[48];
    memcpy(bytes, world->spaces[c->space].b, 16);
    memcpy(bytes + 16, world->nodes[c->ends[1 - (end & 1)].node].provider.public_key.b, 32);
    fb_sim_step(
        world, e->node,
        (fb_event){
            .kind = FB_EV_CARRIER_OPENED, .len = sizeof bytes, .a = e->link, .bytes = bytes});
    if (c->stamp != stamp || !e->open) return;
    fb_net_credit_schedule(world, c, end & 1, world->now_ns);
}

void fb_net_frame_launch(fb_sim_world *world, uint32_t node, uint32_t end, uint32_t stamp,
                         fb_sim_blob bytes, uint64_t at_ns, uint64_t message)
{
    fb_sim_network *net = &world->network;
    if (net->frame_free == NONE) {
        net->disturbed_ns = world->now_ns;
        world->fired[FB_SIM_FAULT_LOSS]++; /* the carrier's own queue is full */
        return;
    }
    uint32_t place = net->frame_free;
    net->frame_free = net->frames[place].next_free;
    fb_sim_blob_hold(&world->blobs, bytes);
    net->frames[place] =
        (fb_sim_frame){.bytes = bytes, .end = end, .stamp = stamp, .serial = ++net->frame_serial};
    fb_sim_connection *c = fb_net_connection_of(world, end);
    size_t len = fb_sim_blob_bytes(&world->blobs, bytes).len;
    if (c->stamp == stamp) c->flows[1 - (end & 1)].waiting += len;
    if (world->record != NULL) fb_sim_record_frame_launched(world, message, place);
    fb_sim_schedule(world, at_ns, node, FB_SIM_AT_FRAME, place, 0);
}

/* Of nodes that are held apart nobody expects anything. */
static void disturbed(fb_sim_world *world, const fb_sim_connection *c)
{
    if (world->held_apart[c->ends[0].node] || world->held_apart[c->ends[1].node]) return;
    world->network.disturbed_ns = world->now_ns;
}

void fb_net_frame_push(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_span frame,
                       fb_sim_wanted what)
{
    fb_sim_path *path = fb_net_flow_path(world, c, side);
    uint64_t occurrence = path->sends++;
    uint32_t end = fb_net_end_name(world, c, 1 - side);
    uint32_t to = c->ends[1 - side].node;
    uint64_t message = world->record != NULL ? fb_sim_record_frame_sent(world, end, frame.len) : 0;
    fb_sim_flow *flow = &c->flows[side];
    if (path->blocked || !c->ends[1 - side].open || fb_sim_wants(&what, FB_SIM_MESSAGE_DROP)) {
        disturbed(world, c);
        return;
    }
    if (fb_net_one_of(world, path, FB_SIM_STREAM_LOSS, occurrence, path->loss_of)) {
        disturbed(world, c);
        world->fired[FB_SIM_FAULT_LOSS]++;
        return;
    }
    bool fits = flow->waiting + frame.len <= path->queue_cap;
    if (path->queue_cap != 0 && !fits) {
        disturbed(world, c);
        world->fired[FB_SIM_FAULT_QUEUE]++;
        if (!path->queue_old_go) return;
        fb_sim_frames_oldest_lost(world, end,
                                  path->queue_cap - fb_min_u64(frame.len, path->queue_cap));
    }
    fb_sim_blob bytes = fb_sim_blob_make(&world->blobs, frame.len);
    memcpy(fb_sim_blob_writable(&world->blobs, bytes), frame.p, frame.len);
    if (fb_sim_wants(&what, FB_SIM_MESSAGE_CORRUPT) && frame.len != 0) {
        fb_sim_blob_writable(&world->blobs, bytes)[frame.len / 2] ^= 1;
        disturbed(world, c);
        if (world->record != NULL) fb_sim_record_harmed(world, message);
    }
    uint32_t copies = fb_sim_wants(&what, FB_SIM_MESSAGE_DUP) ? 2 : 1;
    if (fb_net_one_of(world, path, FB_SIM_STREAM_DUP, occurrence, path->dup_of)) {
        copies += path->dup_copies;
        world->fired[FB_SIM_FAULT_DUP]++;
    }
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t key = occurrence + ((uint64_t)i << 48);
        uint64_t at = world->now_ns + fb_net_path_delay(path, key) + what.delay_ns;
        if (fb_net_one_of(world, path, FB_SIM_STREAM_REORDER, key, path->reorder_of)) {
            at += fb_draw_below(world->seed, FB_SIM_STREAM_REORDER, fb_net_path_entity(world, path),
                                key + (UINT64_C(1) << 56), path->reorder_ns);
            world->fired[FB_SIM_FAULT_REORDER]++;
        } else if (path->in_order) {
            at = fb_max_u64(at, flow->last_at_ns);
        }
        if (at < flow->last_at_ns || i != 0) disturbed(world, c);
        flow->last_at_ns = fb_max_u64(at, flow->last_at_ns);
        fb_net_frame_launch(world, to, end, c->stamp, bytes, at, message);
    }
    fb_sim_network *net = &world->network;
    if (fb_net_one_of(world, path, FB_SIM_STREAM_REPLAY, occurrence, path->stale_of)) {
        /* Mostly of an earlier session on this path; now and then of the other way, or of anybody.
         */
        uint64_t paths = (uint64_t)world->config.nodes * world->config.nodes;
        uint64_t which = fb_draw(world->seed, FB_SIM_STREAM_REPLAY, fb_net_path_entity(world, path),
                                 ~occurrence);
        uint64_t from = (which & 3) != 0 ? fb_net_path_entity(world, path)
                        : (which & 12) != 0
                            ? fb_net_path_entity(world, fb_net_flow_path(world, c, 1 - side))
                            : (which >> 8) % paths;
        fb_sim_blob old = net->recorded_frames[from];
        if (old != 0) {
            disturbed(world, c);
            fb_net_frame_launch(world, to, end, c->stamp, old, world->now_ns + 1000000, 0);
            world->fired[FB_SIM_FAULT_STALE_SESSION]++;
        }
    }
    if ((occurrence & 255) == 0 || net->recorded_frames[fb_net_path_entity(world, path)] == 0) {
        fb_sim_blob *kept = &net->recorded_frames[fb_net_path_entity(world, path)];
        fb_sim_blob_drop(&world->blobs, *kept);
        fb_sim_blob_hold(&world->blobs, bytes);
        *kept = bytes;
    }
    fb_sim_blob_drop(&world->blobs, bytes);
    if (fb_sim_wants(&what, FB_SIM_MESSAGE_CUT)) fb_net_connection_cut(world, c);
}

void fb_sim_frame_send(fb_sim_world *world, uint32_t node, uint64_t link, fb_span frame)
{
    uint32_t end = fb_net_end_of(world, node, link);
    if (end == FB_SIM_END_NONE || fb_net_connection_of(world, end)->ends[end & 1].closing) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s sends a frame on link %llu, which is over", fb_sim_name(node),
                        (unsigned long long)link);
        return;
    }
    fb_sim_connection *c = fb_net_connection_of(world, end);
    fb_sim_flow *flow = &c->flows[end & 1];
    if (!c->carrier || flow->written + frame.len > flow->granted) {
        fb_sim_violated(world, FB_SIM_SAFETY, "credit-respected",
                        "%s sends a frame of %zu bytes with a credit of %llu", fb_sim_name(node),
                        frame.len, (unsigned long long)(flow->granted - flow->written));
        return;
    }
    flow->written += frame.len;
    flow->taken = flow->written;
    fb_net_credit_maybe(world, c, end & 1);
    fb_net_frame_push(world, c, end & 1, frame, fb_net_wanted_of(world, c, end & 1, frame));
}

void fb_sim_at_frame(fb_sim_world *world, uint32_t place)
{
    fb_sim_network *net = &world->network;
    fb_sim_frame frame = net->frames[place];
    net->frames[place].next_free = net->frame_free;
    fb_sim_frame_over(world, &net->frames[place]);
    net->frames[place].bytes = 0;
    net->frame_free = place;
    const fb_sim_connection *c = fb_net_connection_of(world, frame.end);
    const fb_sim_end *e = &c->ends[frame.end & 1];
    fb_span bytes = fb_sim_blob_bytes(&world->blobs, frame.bytes);
    bool arrives = c->stamp == frame.stamp && e->open && !e->closing && !frame.lost;
    if (world->record != NULL) fb_sim_record_frame_arrives(world, place, !arrives);
    if (arrives) {
        fb_sim_step(world, e->node,
                    (fb_event){.kind = FB_EV_CARRIER_FRAME,
                               .len = (uint32_t)bytes.len,
                               .a = e->link,
                               .bytes = bytes.p});
    }
    fb_sim_blob_drop(&world->blobs, frame.bytes);
}
