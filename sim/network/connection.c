/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: their places, what is on the way in each direction, and when it arrives. */
#include "protocol/base/limits.h"
#include "sim/network/inside.h"
#include "sim/view/record.h"

#define NONE UINT32_MAX

void fb_sim_network_init(fb_sim_world *world, fb_arena *arena)
{
    fb_sim_network *net = &world->network;
    uint32_t nodes = world->config.nodes;
    net->paths = fb_arena_take(arena, (size_t)nodes * nodes, sizeof *net->paths);
    net->connection_count = world->config.connections;
    net->connections = fb_arena_take(arena, net->connection_count, sizeof *net->connections);
    net->window_bytes = world->config.window_bytes;
    net->frame_count = 64 + nodes * 64;
    net->frames = fb_arena_take(arena, net->frame_count, sizeof *net->frames);
    net->recorded_frames =
        fb_arena_take(arena, (size_t)nodes * nodes, sizeof *net->recorded_frames);
    net->recorded = fb_arena_take(arena, FB_SIM_RECORDED_BYTES, 1);
    net->answers = fb_arena_take(arena, nodes, sizeof *net->answers);
    net->dial_timeout_ns = UINT64_C(3000000000);
    if (arena->base == NULL) return;
    for (uint32_t i = 0; i < nodes; i++) net->answers[i] = (uint16_t)i;
    for (uint32_t i = 0; i < nodes * nodes; i++) {
        net->paths[i].delay_draws = fb_draw_base(world->seed, FB_SIM_STREAM_DELAY, i);
    }
    for (uint32_t i = 0; i < net->connection_count; i++) {
        fb_sim_connection *c = &net->connections[i];
        c->next_free = i + 1 < net->connection_count ? i + 1 : NONE;
    }
    for (uint32_t i = 0; i < net->frame_count; i++) {
        net->frames[i].next_free = i + 1 < net->frame_count ? i + 1 : NONE;
    }
}

fb_sim_path *fb_sim_path_of(fb_sim_world *world, uint32_t from, uint32_t to)
{
    return &world->network.paths[from * world->config.nodes + to];
}

uint64_t fb_net_path_delay(const fb_sim_path *path, uint64_t occurrence)
{
    if (path->delay_mean_ns == 0) return path->delay_min_ns;
    uint64_t bits = fb_draw_at(path->delay_draws, occurrence);
    return path->delay_min_ns + fb_sim_exponential(bits, path->delay_mean_ns);
}

bool fb_net_one_of(const fb_sim_world *world, const fb_sim_path *path, uint32_t stream,
                   uint64_t occurrence, uint32_t of)
{
    return of != 0 &&
           fb_draw_below(world->seed, stream, fb_net_path_entity(world, path), occurrence, of) == 0;
}

/* Connections. */

fb_sim_connection *fb_net_connection_take(fb_sim_world *world)
{
    fb_sim_network *net = &world->network;
    if (net->connection_free == NONE || net->connections_open == net->connection_count) {
        fb_sim_fail_resource("connections");
    }
    fb_sim_connection *c = &net->connections[net->connection_free];
    net->connection_free = c->next_free;
    net->connections_open++;
    *c = (fb_sim_connection){.stamp = c->stamp};
    return c;
}

/* Segments. */

void fb_net_segment_append(fb_sim_world *world, fb_sim_flow *flow, fb_span bytes, uint64_t at_ns)
{
    fb_sim_blob blob = fb_sim_blob_make(&world->blobs, sizeof(fb_sim_segment) + bytes.len);
    fb_sim_segment *segment = fb_net_segment_of(world, blob);
    *segment = (fb_sim_segment){at_ns, 0, (uint32_t)bytes.len};
    memcpy(segment + 1, bytes.p, bytes.len);
    if (flow->last != 0) {
        fb_net_segment_of(world, flow->last)->next = blob;
    } else {
        flow->first = blob;
    }
    flow->last = blob;
    flow->written += bytes.len;
}

void fb_net_segments_take(fb_sim_world *world, fb_sim_flow *flow, size_t len)
{
    flow->taken += len;
    while (len != 0) {
        fb_sim_segment *segment = fb_net_segment_of(world, flow->first);
        size_t left = segment->len - flow->skip;
        if (len < left) {
            flow->skip += (uint32_t)len;
            return;
        }
        len -= left;
        fb_sim_blob next = segment->next;
        fb_sim_blob_drop(&world->blobs, flow->first);
        flow->first = next;
        flow->skip = 0;
        if (next == 0) flow->last = 0;
    }
}

void fb_net_segments_drop(fb_sim_world *world, fb_sim_connection *c, uint32_t side)
{
    fb_sim_flow *flow = &c->flows[side];
    if (world->record != NULL) fb_sim_record_dropped(world, fb_net_end_name(world, c, 1 - side));
    fb_net_segments_take(world, flow, (size_t)(flow->written - flow->taken));
}

void fb_net_connection_release(fb_sim_world *world, fb_sim_connection *c)
{
    fb_net_segments_drop(world, c, 0);
    fb_net_segments_drop(world, c, 1);
    c->state = FB_SIM_CONNECTION_FREE;
    c->stamp++;
    c->next_free = world->network.connection_free;
    world->network.connection_free = fb_net_end_name(world, c, 0) / 2;
    world->network.connections_open--;
}

void fb_net_connection_release_if_over(fb_sim_world *world, fb_sim_connection *c)
{
    if (c->state == FB_SIM_CONNECTION_OPEN && !c->ends[0].open && !c->ends[1].open) {
        fb_net_connection_release(world, c);
    }
}

uint32_t fb_net_end_of(fb_sim_world *world, uint32_t node, uint64_t link)
{
    uint32_t end = (uint32_t)(link & 0xffff);
    if (end / 2 >= world->network.connection_count) return FB_SIM_END_NONE;
    const fb_sim_end *e = &fb_net_connection_of(world, end)->ends[end & 1];
    return e->open && e->link == link && e->node == node ? end : FB_SIM_END_NONE;
}

void fb_net_credit_schedule(fb_sim_world *world, fb_sim_connection *c, uint32_t side,
                            uint64_t at_ns)
{
    c->flows[side].credit_scheduled = true;
    fb_sim_schedule(world, at_ns, c->ends[side].node, FB_SIM_AT_CREDIT,
                    fb_net_end_name(world, c, side), c->stamp);
}

/* A carrier holds whole frames, of the largest size too. */
#define CARRIER_WINDOW (2 * (FB_FRAME_BYTES_MAX + 4096u))
/* The sender of a stream needs room for one whole record to go on. */
#define ENOUGH  (FB_RECORD_BYTES_MAX + 1024u)
#define LAZY_NS UINT64_C(5000000)

uint64_t fb_net_window_of(fb_sim_world *world, const fb_sim_connection *c, uint32_t side)
{
    if (c->carrier) return CARRIER_WINDOW;
    uint64_t window = world->network.window_bytes;
    uint64_t cap = fb_net_flow_path(world, c, side)->queue_cap;
    return cap != 0 && cap < window ? fb_max_u64(cap, ENOUGH) : window;
}

void fb_net_credit_maybe(fb_sim_world *world, fb_sim_connection *c, uint32_t side)
{
    fb_sim_flow *flow = &c->flows[side];
    uint64_t window = fb_net_window_of(world, c, side);
    uint64_t limit = flow->taken + window;
    uint64_t free = limit > flow->granted ? limit - flow->granted : 0;
    if (free == 0 || flow->credit_scheduled || flow->credit_stalled || !c->ends[side].open ||
        flow->swallowing) {
        return;
    }
    uint64_t at = world->now_ns + fb_net_flow_path(world, c, 1 - side)->delay_min_ns;
    if (free < window / 2) {
        if (flow->granted - flow->written >= ENOUGH) return;
        at += LAZY_NS;
    }
    fb_net_credit_schedule(world, c, side, at);
}

void fb_net_delivery_schedule(fb_sim_world *world, fb_sim_connection *c, uint32_t side,
                              uint64_t at_ns)
{
    fb_sim_flow *flow = &c->flows[side];
    if (flow->scheduled || flow->stalled) return;
    flow->scheduled = true;
    fb_sim_schedule(world, at_ns, c->ends[1 - side].node, FB_SIM_AT_BYTES,
                    fb_net_end_name(world, c, 1 - side), c->stamp);
}

void fb_net_delivery_next(fb_sim_world *world, fb_sim_connection *c, uint32_t side)
{
    fb_sim_flow *flow = &c->flows[side];
    if (!c->ends[1 - side].open || flow->paused) return;
    if (flow->first != 0) {
        uint64_t at = fb_net_segment_of(world, flow->first)->at_ns;
        if (at <= world->now_ns) at = world->now_ns + 1000;
        fb_net_delivery_schedule(world, c, side, at);
    } else if (flow->ended) {
        uint64_t at = fb_max_u64(flow->end_at_ns, world->now_ns);
        fb_sim_schedule(world, at, c->ends[1 - side].node, FB_SIM_AT_CLOSED,
                        fb_net_end_name(world, c, 1 - side), c->stamp);
    }
}

void fb_net_flow_end(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_error why,
                     uint64_t at_ns, bool drop)
{
    fb_sim_flow *flow = &c->flows[side];
    if (flow->ended) return;
    flow->ended = true;
    flow->end_reason = why;
    flow->end_at_ns = fb_max_u64(at_ns, flow->last_at_ns);
    if (drop) {
        fb_net_segments_drop(world, c, side);
        flow->paused = false;
    }
    if (!flow->scheduled && !flow->stalled && !flow->paused) fb_net_delivery_next(world, c, side);
}
