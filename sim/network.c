/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network.h"

#include <stdio.h>

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "sim/schedule/player.h"
#include "sim/view/record.h"
#include "sim/world.h"

#define NONE UINT32_MAX

/* How long after a partition's end a stuck sender tries again, at most. */
#define RETRANSMIT_NS UINT64_C(200000000)

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

static uint64_t path_entity(const fb_sim_world *world, const fb_sim_path *path)
{
    return (uint64_t)(path - world->network.paths);
}

static uint64_t path_delay(const fb_sim_path *path, uint64_t occurrence)
{
    if (path->delay_mean_ns == 0) return path->delay_min_ns;
    uint64_t bits = fb_draw_at(path->delay_draws, occurrence);
    return path->delay_min_ns + fb_sim_exponential(bits, path->delay_mean_ns);
}

static bool one_of(const fb_sim_world *world, const fb_sim_path *path, uint32_t stream,
                   uint64_t occurrence, uint32_t of)
{
    return of != 0 &&
           fb_draw_below(world->seed, stream, path_entity(world, path), occurrence, of) == 0;
}

/* Connections. */

static fb_sim_connection *connection_of(fb_sim_world *world, uint32_t end)
{
    return &world->network.connections[end / 2];
}

static uint32_t end_name(const fb_sim_world *world, const fb_sim_connection *c, uint32_t side)
{
    return (uint32_t)(c - world->network.connections) * 2 + side;
}

/* The path that flow `side` takes. Nobody's bytes (an attacker's) take the path of the node to
 * itself: partitions do not hold them up. */
static fb_sim_path *flow_path(fb_sim_world *world, const fb_sim_connection *c, uint32_t side)
{
    return fb_sim_path_of(world, c->ends[side].node, c->ends[1 - side].node);
}

static fb_sim_connection *connection_take(fb_sim_world *world)
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

static fb_sim_segment *segment_of(fb_sim_world *world, fb_sim_blob blob)
{
    return (fb_sim_segment *)(void *)fb_sim_blob_writable(&world->blobs, blob);
}

static void segment_append(fb_sim_world *world, fb_sim_flow *flow, fb_span bytes, uint64_t at_ns)
{
    fb_sim_blob blob = fb_sim_blob_make(&world->blobs, sizeof(fb_sim_segment) + bytes.len);
    fb_sim_segment *segment = segment_of(world, blob);
    *segment = (fb_sim_segment){at_ns, 0, (uint32_t)bytes.len};
    memcpy(segment + 1, bytes.p, bytes.len);
    if (flow->last != 0) {
        segment_of(world, flow->last)->next = blob;
    } else {
        flow->first = blob;
    }
    flow->last = blob;
    flow->written += bytes.len;
}

/* The receiver took so many bytes from the beginning. */
static void segments_take(fb_sim_world *world, fb_sim_flow *flow, size_t len)
{
    flow->taken += len;
    while (len != 0) {
        fb_sim_segment *segment = segment_of(world, flow->first);
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

static void segments_drop(fb_sim_world *world, fb_sim_connection *c, uint32_t side)
{
    fb_sim_flow *flow = &c->flows[side];
    if (world->record != NULL) fb_sim_record_dropped(world, end_name(world, c, 1 - side));
    segments_take(world, flow, (size_t)(flow->written - flow->taken));
}

static void connection_release(fb_sim_world *world, fb_sim_connection *c)
{
    segments_drop(world, c, 0);
    segments_drop(world, c, 1);
    c->state = FB_SIM_CONNECTION_FREE;
    c->stamp++;
    c->next_free = world->network.connection_free;
    world->network.connection_free = end_name(world, c, 0) / 2;
    world->network.connections_open--;
}

static void connection_release_if_over(fb_sim_world *world, fb_sim_connection *c)
{
    if (c->state == FB_SIM_CONNECTION_OPEN && !c->ends[0].open && !c->ends[1].open) {
        connection_release(world, c);
    }
}

static uint64_t link_new(fb_sim_world *world, uint32_t end)
{
    return ++world->network.link_serial << 16 | end;
}

/* The end that a node means by a link number, or FB_SIM_END_NONE when it is over. */
static uint32_t end_of(fb_sim_world *world, uint32_t node, uint64_t link)
{
    uint32_t end = (uint32_t)(link & 0xffff);
    if (end / 2 >= world->network.connection_count) return FB_SIM_END_NONE;
    const fb_sim_end *e = &connection_of(world, end)->ends[end & 1];
    return e->open && e->link == link && e->node == node ? end : FB_SIM_END_NONE;
}

static void credit_schedule(fb_sim_world *world, fb_sim_connection *c, uint32_t side,
                            uint64_t at_ns)
{
    c->flows[side].credit_scheduled = true;
    fb_sim_schedule(world, at_ns, c->ends[side].node, FB_SIM_AT_CREDIT, end_name(world, c, side),
                    c->stamp);
}

/* A carrier holds whole frames, of the largest size too. */
#define CARRIER_WINDOW (2 * (FB_FRAME_BYTES_MAX + 4096u))
/* The sender of a stream needs room for one whole record to go on. */
#define ENOUGH  (FB_RECORD_BYTES_MAX + 1024u)
#define LAZY_NS UINT64_C(5000000)

/* On a stream nothing is lost in a full queue: its sender gets less credit. */
static uint64_t window_of(fb_sim_world *world, const fb_sim_connection *c, uint32_t side)
{
    if (c->carrier) return CARRIER_WINDOW;
    uint64_t window = world->network.window_bytes;
    uint64_t cap = flow_path(world, c, side)->queue_cap;
    return cap != 0 && cap < window ? fb_max_u64(cap, ENOUGH) : window;
}

/* Credit goes back at once when half the window is free; a little later when less is, but the
 * sender may be short. */
static void credit_maybe(fb_sim_world *world, fb_sim_connection *c, uint32_t side)
{
    fb_sim_flow *flow = &c->flows[side];
    uint64_t window = window_of(world, c, side);
    uint64_t limit = flow->taken + window;
    uint64_t free = limit > flow->granted ? limit - flow->granted : 0;
    if (free == 0 || flow->credit_scheduled || flow->credit_stalled || !c->ends[side].open ||
        flow->swallowing) {
        return;
    }
    uint64_t at = world->now_ns + flow_path(world, c, 1 - side)->delay_min_ns;
    if (free < window / 2) {
        if (flow->granted - flow->written >= ENOUGH) return;
        at += LAZY_NS;
    }
    credit_schedule(world, c, side, at);
}

static void delivery_schedule(fb_sim_world *world, fb_sim_connection *c, uint32_t side,
                              uint64_t at_ns)
{
    fb_sim_flow *flow = &c->flows[side];
    if (flow->scheduled || flow->stalled) return;
    flow->scheduled = true;
    fb_sim_schedule(world, at_ns, c->ends[1 - side].node, FB_SIM_AT_BYTES,
                    end_name(world, c, 1 - side), c->stamp);
}

/* What the receiver of flow `side` waits for next, if anything. */
static void delivery_next(fb_sim_world *world, fb_sim_connection *c, uint32_t side)
{
    fb_sim_flow *flow = &c->flows[side];
    if (!c->ends[1 - side].open || flow->paused) return;
    if (flow->first != 0) {
        uint64_t at = segment_of(world, flow->first)->at_ns;
        if (at <= world->now_ns) at = world->now_ns + 1000;
        delivery_schedule(world, c, side, at);
    } else if (flow->ended) {
        uint64_t at = fb_max_u64(flow->end_at_ns, world->now_ns);
        fb_sim_schedule(world, at, c->ends[1 - side].node, FB_SIM_AT_CLOSED,
                        end_name(world, c, 1 - side), c->stamp);
    }
}

/* The sender of flow `side` is gone: the receiver learns it after what it can still get. */
static void flow_end(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_error why,
                     uint64_t at_ns, bool drop)
{
    fb_sim_flow *flow = &c->flows[side];
    if (flow->ended) return;
    flow->ended = true;
    flow->end_reason = why;
    flow->end_at_ns = fb_max_u64(at_ns, flow->last_at_ns);
    if (drop) {
        segments_drop(world, c, side);
        flow->paused = false;
    }
    if (!flow->scheduled && !flow->stalled && !flow->paused) delivery_next(world, c, side);
}

/* Dialling. */

void fb_sim_dial(fb_sim_world *world, uint32_t node, uint64_t dial, fb_span address)
{
    fb_sim_connection *c = connection_take(world);
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
    uint64_t at = world->now_ns + path_delay(there, occurrence << 32);
    uint64_t answer = at + path_delay(back, (occurrence << 32) + 1);
    uint32_t end = end_name(world, c, 0);
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
    fb_sim_connection *c = connection_of(world, end);
    if (c->stamp != stamp) return;
    fb_sim_end *e = &c->ends[1];
    fb_sim_node *node = &world->nodes[e->node];
    if (node->core == NULL || node->needs_start || flow_path(world, c, 0)->blocked) {
        c->refused = true;
        if (c->attacker) connection_release(world, c);
        return;
    }
    e->link = link_new(world, end);
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
    credit_schedule(world, c, 1, world->now_ns);
}

void fb_sim_at_dial_result(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = connection_of(world, end);
    if (c->stamp != stamp) return;
    fb_sim_end *e = &c->ends[0];
    fb_sim_node *node = &world->nodes[e->node];
    uint32_t who = e->node;
    uint64_t dial = c->dial;
    bool alive = node->core != NULL && node->boots == c->dial_boots;
    bool wanted = alive && !node->needs_start && node->incarnation == c->dial_incarnation;
    if (c->refused || !wanted || flow_path(world, c, 1)->blocked) {
        c->state = FB_SIM_CONNECTION_OPEN;
        if (c->ends[1].open) {
            flow_end(world, c, 0, FB_ERR_LINK_CLOSED, world->now_ns, true);
        } else {
            connection_release(world, c);
        }
        if (alive) {
            fb_sim_step(world, who,
                        (fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .c = FB_ERR_UNREACHABLE});
        }
        return;
    }
    c->state = FB_SIM_CONNECTION_OPEN;
    e->link = link_new(world, end);
    e->open = true;
    fb_sim_step(world, who, (fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .b = e->link});
    if (c->stamp != stamp || !e->open) return;
    credit_schedule(world, c, 0, world->now_ns);
    /* What the other side sent, or its end, may have waited for this. */
    fb_sim_flow *flow = &c->flows[1];
    if (!flow->scheduled && !flow->stalled) delivery_next(world, c, 1);
}

/* Streams. */

static void record_bytes(fb_sim_world *world, const fb_sim_connection *c, fb_span bytes)
{
    fb_sim_network *net = &world->network;
    uint32_t number = end_name(world, c, 0) / 2;
    bool first = c->flows[0].written == 0;
    if (first && (net->recorded_len == 0 || (c->dial & 3) == 0)) {
        net->recorded_len = 0;
        net->recorded_connection = number;
        net->recorded_stamp = c->stamp;
        net->recorded_to = c->ends[1].node;
    }
    if (net->recorded_connection != number || net->recorded_stamp != c->stamp) return;
    size_t room = FB_SIM_RECORDED_BYTES - net->recorded_len;
    size_t len = bytes.len < room ? bytes.len : room;
    memcpy(net->recorded + net->recorded_len, bytes.p, len);
    net->recorded_len += (uint32_t)len;
}

/* Whether what is still on its way arrives before the bad news, or never. */
static bool coin(fb_sim_world *world, const fb_sim_connection *c, uint32_t side)
{
    fb_sim_path *path = flow_path(world, c, side);
    return (fb_draw(world->seed, FB_SIM_STREAM_CUT, path_entity(world, path) + (1u << 24),
                    path->dials++) &
            1) != 0;
}

/* Both ends learn that the connection broke. */
static void connection_cut(fb_sim_world *world, fb_sim_connection *c)
{
    for (uint32_t side = 0; side < 2; side++) {
        flow_end(world, c, side, FB_ERR_LINK_CLOSED, world->now_ns, coin(world, c, side));
    }
}

static fb_sim_wanted wanted_of(fb_sim_world *world, const fb_sim_connection *c, uint32_t side,
                               fb_span bytes)
{
    if (world->player == NULL) return (fb_sim_wanted){0};
    return fb_sim_player_wanted(world, c->ends[side].node, c->ends[1 - side].node, c->carrier,
                                bytes);
}

static void stream_push(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_span bytes,
                        fb_sim_wanted what)
{
    fb_sim_flow *flow = &c->flows[side];
    if (flow->swallowing || flow->ended || bytes.len == 0) {
        flow->granted -= bytes.len; /* spent, and nothing arrives */
        if (world->record != NULL) {
            fb_sim_record_sent(world, end_name(world, c, 1 - side), bytes.len, 0, false);
        }
        return;
    }
    fb_sim_path *path = flow_path(world, c, side);
    uint64_t occurrence = path->sends++;
    size_t len = bytes.len;
    bool dropped = fb_sim_wants(&what, FB_SIM_MESSAGE_DROP);
    bool cut = dropped || fb_sim_wants(&what, FB_SIM_MESSAGE_CUT);
    if (dropped) {
        /* A stream loses nothing but its end. */
        len = 0;
    } else if (!cut && one_of(world, path, FB_SIM_STREAM_CUT, occurrence, path->cut_of)) {
        cut = true;
        len = (size_t)fb_draw_below(world->seed, FB_SIM_STREAM_CUT, path_entity(world, path),
                                    occurrence + (UINT64_C(1) << 48), len);
        world->fired[FB_SIM_FAULT_CUT]++;
    } else if (one_of(world, path, FB_SIM_STREAM_TRUNCATE, occurrence, path->truncate_of)) {
        len = (size_t)fb_draw_below(world->seed, FB_SIM_STREAM_TRUNCATE, path_entity(world, path),
                                    occurrence + (UINT64_C(1) << 48), len);
        world->fired[FB_SIM_FAULT_TRUNCATE]++;
    }
    /* The sender spent its credit on the lost bytes too. */
    flow->granted -= bytes.len - len;
    uint64_t at = world->now_ns;
    if (path->rate != 0) {
        at = fb_max_u64(at, flow->busy_until_ns) + bytes.len * UINT64_C(1000000000) / path->rate;
        flow->busy_until_ns = at;
        world->fired[FB_SIM_FAULT_RATE]++;
    }
    at = fb_max_u64(at + path_delay(path, occurrence) + what.delay_ns, flow->last_at_ns);
    flow->last_at_ns = at;
    bool harmed = len != bytes.len;
    if (len != 0) {
        segment_append(world, flow, fb_span_of(bytes.p, len), at);
        if (one_of(world, path, FB_SIM_STREAM_CORRUPT, occurrence, path->corrupt_of)) {
            uint8_t *sent = (uint8_t *)(segment_of(world, flow->last) + 1);
            for (uint64_t i = 0; i == 0 || i < path->corrupt_bits; i++) {
                uint64_t bit =
                    fb_draw_below(world->seed, FB_SIM_STREAM_CORRUPT, path_entity(world, path),
                                  occurrence + ((i + 1) << 48), len * 8);
                sent[bit / 8] ^= (uint8_t)(1u << (bit & 7));
            }
            world->fired[FB_SIM_FAULT_CORRUPT]++;
            harmed = true;
        }
        if (fb_sim_wants(&what, FB_SIM_MESSAGE_CORRUPT)) {
            uint8_t *sent = (uint8_t *)(segment_of(world, flow->last) + 1);
            sent[len / 2] ^= 1;
            harmed = true;
        }
        if (!flow->scheduled && !flow->stalled && !flow->paused) delivery_next(world, c, side);
    }
    if (harmed && !cut) world->network.hung_ns = world->now_ns;
    if (world->record != NULL) {
        fb_sim_record_sent(world, end_name(world, c, 1 - side), bytes.len, len, harmed);
    }
    if (cut) connection_cut(world, c);
}

void fb_sim_send(fb_sim_world *world, uint32_t node, uint64_t link, fb_span bytes)
{
    uint32_t end = end_of(world, node, link);
    if (end == FB_SIM_END_NONE || connection_of(world, end)->ends[end & 1].closing) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s sends on link %llu, which is over", fb_sim_name(node),
                        (unsigned long long)link);
        return;
    }
    fb_sim_connection *c = connection_of(world, end);
    fb_sim_flow *flow = &c->flows[end & 1];
    if (flow->written + bytes.len > flow->granted || c->carrier) {
        fb_sim_violated(world, FB_SIM_SAFETY, "credit-respected",
                        "%s sends %zu bytes on link %llu with a credit of %llu", fb_sim_name(node),
                        bytes.len, (unsigned long long)link,
                        (unsigned long long)(flow->granted - flow->written));
        return;
    }
    if ((end & 1) == 0 && flow->written < FB_SIM_RECORDED_BYTES) record_bytes(world, c, bytes);
    stream_push(world, c, end & 1, bytes, wanted_of(world, c, end & 1, bytes));
}

/* The first len bytes on the way, as one piece. */
static const uint8_t *segments_gather(fb_sim_world *world, const fb_sim_flow *flow, size_t len)
{
    const fb_sim_segment *segment = segment_of(world, flow->first);
    if (segment->len - flow->skip >= len) return (const uint8_t *)(segment + 1) + flow->skip;
    size_t used = 0;
    uint32_t skip = flow->skip;
    while (used < len) {
        size_t piece = segment->len - skip;
        if (piece > len - used) piece = len - used;
        memcpy(world->scratch + used, (const uint8_t *)(segment + 1) + skip, piece);
        used += piece;
        skip = 0;
        if (used < len) segment = segment_of(world, segment->next);
    }
    return world->scratch;
}

void fb_sim_at_bytes(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = connection_of(world, end);
    if (c->stamp != stamp) return;
    uint32_t side = 1 - (end & 1); /* of the sender */
    fb_sim_flow *flow = &c->flows[side];
    fb_sim_end *receiver = &c->ends[end & 1];
    flow->scheduled = false;
    if (!receiver->open) return;
    fb_sim_path *path = flow_path(world, c, side);
    if (path->blocked && !c->attacker) {
        flow->stalled = true;
        return;
    }
    if (receiver->closing) segments_drop(world, c, side);
    size_t ready = 0;
    fb_sim_blob at = flow->first;
    while (at != 0 && segment_of(world, at)->at_ns <= world->now_ns) {
        ready += segment_of(world, at)->len;
        at = segment_of(world, at)->next;
    }
    if (flow->paused || ready == 0) {
        delivery_next(world, c, side);
        return;
    }
    ready -= flow->skip;
    size_t len = ready;
    uint64_t occurrence = path->deliveries++;
    if (path->segment_of_16 != 0 && len > 1 &&
        fb_draw_below(world->seed, FB_SIM_STREAM_SEGMENT, path_entity(world, path), occurrence * 2,
                      16) < path->segment_of_16) {
        len = (size_t)fb_draw_below(world->seed, FB_SIM_STREAM_SEGMENT, path_entity(world, path),
                                    occurrence * 2 + 1, len) +
              1;
        world->fired[FB_SIM_FAULT_SEGMENT]++;
    }
    const uint8_t *bytes = segments_gather(world, flow, len);
    flow->paused = true; /* RESUME within the step lifts it */
    if (world->record != NULL) fb_sim_record_arrives(world, end, flow->taken + len);
    fb_sim_step(
        world, receiver->node,
        (fb_event){
            .kind = FB_EV_LINK_BYTES, .len = (uint32_t)len, .a = receiver->link, .bytes = bytes});
    if (c->stamp != stamp || !receiver->open) return;
    size_t consumed = world->effects.consumed;
    if (consumed > len) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order", "%s consumed %zu of %zu bytes",
                        fb_sim_name(receiver->node), consumed, len);
        return;
    }
    if (flow->taken + consumed <= flow->written) segments_take(world, flow, consumed);
    if (consumed == len) flow->paused = false;
    credit_maybe(world, c, side);
    delivery_next(world, c, side);
}

void fb_sim_resume(fb_sim_world *world, uint32_t node, uint64_t link)
{
    uint32_t end = end_of(world, node, link);
    if (end == FB_SIM_END_NONE) return;
    fb_sim_connection *c = connection_of(world, end);
    fb_sim_flow *flow = &c->flows[1 - (end & 1)];
    flow->paused = false;
    if (!flow->scheduled && !flow->stalled) delivery_next(world, c, 1 - (end & 1));
}

void fb_sim_at_credit(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = connection_of(world, end);
    if (c->stamp != stamp) return;
    uint32_t side = end & 1;
    fb_sim_flow *flow = &c->flows[side];
    fb_sim_end *sender = &c->ends[side];
    flow->credit_scheduled = false;
    if (!sender->open || sender->closing) return;
    if (flow->granted != 0 && flow_path(world, c, 1 - side)->blocked && !c->attacker) {
        flow->credit_stalled = true;
        return;
    }
    uint64_t window = window_of(world, c, side);
    if (!c->carrier && window < world->network.window_bytes) world->fired[FB_SIM_FAULT_QUEUE]++;
    uint64_t limit = flow->taken + window;
    if (limit <= flow->granted) return;
    uint64_t more = limit - flow->granted;
    flow->granted = limit;
    fb_sim_step(world, sender->node,
                (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = sender->link, .b = more});
}

/* Ends. */

void fb_sim_close(fb_sim_world *world, uint32_t node, uint64_t link, fb_error why)
{
    (void)why;
    uint32_t end = end_of(world, node, link);
    if (end == FB_SIM_END_NONE || connection_of(world, end)->ends[end & 1].closing) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s closes link %llu, which is over or closed already", fb_sim_name(node),
                        (unsigned long long)link);
        return;
    }
    fb_sim_connection *c = connection_of(world, end);
    uint32_t side = end & 1;
    c->ends[side].closing = true;
    fb_sim_path *path = flow_path(world, c, side);
    flow_end(world, c, side, FB_OK, world->now_ns + path->delay_min_ns, false);
    fb_sim_schedule(world, world->now_ns + 1000, node, FB_SIM_AT_CLOSED, end, c->stamp);
}

void fb_sim_at_closed(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = connection_of(world, end);
    if (c->stamp != stamp) return;
    uint32_t side = end & 1;
    fb_sim_end *e = &c->ends[side];
    if (!e->open) return;
    fb_sim_flow *in = &c->flows[1 - side];
    if (!e->closing && flow_path(world, c, 1 - side)->blocked && !c->attacker) {
        e->close_stalled = true;
        return;
    }
    if (!e->closing && in->ended && in->taken != in->written) return; /* more to deliver first */
    fb_error why = e->closing ? FB_OK : in->end_reason;
    uint64_t link = e->link;
    uint32_t node = e->node;
    e->open = false;
    /* What is still on its way to this end goes nowhere. */
    segments_drop(world, c, 1 - side);
    if (!e->closing) {
        flow_end(world, c, side, FB_ERR_LINK_CLOSED, world->now_ns, true);
    }
    connection_release_if_over(world, c);
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
            fb_sim_path *path = flow_path(world, c, side);
            uint64_t at = world->now_ns + path->delay_min_ns;
            if (path->half_open) {
                /* No word, not even when the peer speaks: its own patience has to end. */
                at += UINT64_C(3600000000000);
                c->flows[1 - side].swallowing = true;
                world->fired[FB_SIM_FAULT_HALF_OPEN]++;
                net->hung_ns = world->now_ns;
            }
            flow_end(world, c, side, FB_ERR_LINK_CLOSED, at, coin(world, c, side));
        }
        connection_release_if_over(world, c);
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
            fb_sim_path *path = flow_path(world, c, side);
            if (path->blocked) continue;
            uint64_t at = world->now_ns + fb_draw_below(world->seed, FB_SIM_STREAM_DELAY,
                                                        path_entity(world, path) + (1u << 24),
                                                        path->dials++, RETRANSMIT_NS);
            if (flow->stalled) {
                flow->stalled = false;
                delivery_schedule(world, c, side, at);
            }
            if (c->flows[1 - side].credit_stalled) {
                c->flows[1 - side].credit_stalled = false;
                credit_schedule(world, c, 1 - side, at);
            }
            fb_sim_end *e = &c->ends[1 - side];
            if (e->close_stalled) {
                e->close_stalled = false;
                fb_sim_schedule(world, at, e->node, FB_SIM_AT_CLOSED, end_name(world, c, 1 - side),
                                c->stamp);
            }
        }
    }
}

/* The external carrier. */

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
            flow_end(world, c, 1 - side, FB_ERR_LINK_CLOSED, world->now_ns, true);
        }
        return;
    }
    fb_sim_connection *c = connection_take(world);
    c->carrier = true;
    c->space = (uint8_t)space;
    c->state = FB_SIM_CONNECTION_DIALLING;
    c->ends[0].node = (uint16_t)a;
    c->ends[1].node = (uint16_t)b;
    for (uint32_t side = 0; side < 2; side++) {
        fb_sim_path *path = flow_path(world, c, 1 - side);
        fb_sim_schedule(world, world->now_ns + path->delay_min_ns, c->ends[side].node,
                        FB_SIM_AT_CARRIER, end_name(world, c, side), c->stamp);
    }
}

void fb_sim_at_carrier(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = connection_of(world, end);
    if (c->stamp != stamp) return;
    fb_sim_end *e = &c->ends[end & 1];
    c->state = FB_SIM_CONNECTION_OPEN;
    fb_sim_node *node = &world->nodes[e->node];
    if (node->core == NULL || node->needs_start || c->flows[1 - (end & 1)].ended) {
        flow_end(world, c, end & 1, FB_ERR_LINK_CLOSED, world->now_ns, true);
        connection_release_if_over(world, c);
        return;
    }
    e->link = link_new(world, end);
    e->open = true;
    uint8_t bytes[48];
    memcpy(bytes, world->spaces[c->space].b, 16);
    memcpy(bytes + 16, world->nodes[c->ends[1 - (end & 1)].node].provider.public_key.b, 32);
    fb_sim_step(
        world, e->node,
        (fb_event){
            .kind = FB_EV_CARRIER_OPENED, .len = sizeof bytes, .a = e->link, .bytes = bytes});
    if (c->stamp != stamp || !e->open) return;
    credit_schedule(world, c, end & 1, world->now_ns);
}

static void frame_launch(fb_sim_world *world, uint32_t node, uint32_t end, uint32_t stamp,
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
    fb_sim_connection *c = connection_of(world, end);
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

static void frame_push(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_span frame,
                       fb_sim_wanted what)
{
    fb_sim_path *path = flow_path(world, c, side);
    uint64_t occurrence = path->sends++;
    uint32_t end = end_name(world, c, 1 - side);
    uint32_t to = c->ends[1 - side].node;
    uint64_t message = world->record != NULL ? fb_sim_record_frame_sent(world, end, frame.len) : 0;
    fb_sim_flow *flow = &c->flows[side];
    if (path->blocked || !c->ends[1 - side].open || fb_sim_wants(&what, FB_SIM_MESSAGE_DROP)) {
        disturbed(world, c);
        return;
    }
    if (one_of(world, path, FB_SIM_STREAM_LOSS, occurrence, path->loss_of)) {
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
    if (one_of(world, path, FB_SIM_STREAM_DUP, occurrence, path->dup_of)) {
        copies += path->dup_copies;
        world->fired[FB_SIM_FAULT_DUP]++;
    }
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t key = occurrence + ((uint64_t)i << 48);
        uint64_t at = world->now_ns + path_delay(path, key) + what.delay_ns;
        if (one_of(world, path, FB_SIM_STREAM_REORDER, key, path->reorder_of)) {
            at += fb_draw_below(world->seed, FB_SIM_STREAM_REORDER, path_entity(world, path),
                                key + (UINT64_C(1) << 56), path->reorder_ns);
            world->fired[FB_SIM_FAULT_REORDER]++;
        } else if (path->in_order) {
            at = fb_max_u64(at, flow->last_at_ns);
        }
        if (at < flow->last_at_ns || i != 0) disturbed(world, c);
        flow->last_at_ns = fb_max_u64(at, flow->last_at_ns);
        frame_launch(world, to, end, c->stamp, bytes, at, message);
    }
    fb_sim_network *net = &world->network;
    if (one_of(world, path, FB_SIM_STREAM_REPLAY, occurrence, path->stale_of)) {
        /* Mostly of an earlier session on this path; now and then of the other way, or of anybody.
         */
        uint64_t paths = (uint64_t)world->config.nodes * world->config.nodes;
        uint64_t which =
            fb_draw(world->seed, FB_SIM_STREAM_REPLAY, path_entity(world, path), ~occurrence);
        uint64_t from = (which & 3) != 0    ? path_entity(world, path)
                        : (which & 12) != 0 ? path_entity(world, flow_path(world, c, 1 - side))
                                            : (which >> 8) % paths;
        fb_sim_blob old = net->recorded_frames[from];
        if (old != 0) {
            disturbed(world, c);
            frame_launch(world, to, end, c->stamp, old, world->now_ns + 1000000, 0);
            world->fired[FB_SIM_FAULT_STALE_SESSION]++;
        }
    }
    if ((occurrence & 255) == 0 || net->recorded_frames[path_entity(world, path)] == 0) {
        fb_sim_blob *kept = &net->recorded_frames[path_entity(world, path)];
        fb_sim_blob_drop(&world->blobs, *kept);
        fb_sim_blob_hold(&world->blobs, bytes);
        *kept = bytes;
    }
    fb_sim_blob_drop(&world->blobs, bytes);
    if (fb_sim_wants(&what, FB_SIM_MESSAGE_CUT)) connection_cut(world, c);
}

void fb_sim_frame_send(fb_sim_world *world, uint32_t node, uint64_t link, fb_span frame)
{
    uint32_t end = end_of(world, node, link);
    if (end == FB_SIM_END_NONE || connection_of(world, end)->ends[end & 1].closing) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s sends a frame on link %llu, which is over", fb_sim_name(node),
                        (unsigned long long)link);
        return;
    }
    fb_sim_connection *c = connection_of(world, end);
    fb_sim_flow *flow = &c->flows[end & 1];
    if (!c->carrier || flow->written + frame.len > flow->granted) {
        fb_sim_violated(world, FB_SIM_SAFETY, "credit-respected",
                        "%s sends a frame of %zu bytes with a credit of %llu", fb_sim_name(node),
                        frame.len, (unsigned long long)(flow->granted - flow->written));
        return;
    }
    flow->written += frame.len;
    flow->taken = flow->written;
    credit_maybe(world, c, end & 1);
    frame_push(world, c, end & 1, frame, wanted_of(world, c, end & 1, frame));
}

void fb_sim_at_frame(fb_sim_world *world, uint32_t place)
{
    fb_sim_network *net = &world->network;
    fb_sim_frame frame = net->frames[place];
    net->frames[place].next_free = net->frame_free;
    fb_sim_frame_over(world, &net->frames[place]);
    net->frames[place].bytes = 0;
    net->frame_free = place;
    const fb_sim_connection *c = connection_of(world, frame.end);
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

/* Attackers. */

void fb_sim_network_replay(fb_sim_world *world)
{
    fb_sim_network *net = &world->network;
    if (net->recorded_len == 0 || !fb_sim_is_up(world, net->recorded_to)) return;
    if (2 * net->connections_open > net->connection_count) return; /* the backlog is full */
    fb_sim_connection *c = connection_take(world);
    c->state = FB_SIM_CONNECTION_DIALLING;
    c->attacker = true;
    c->ends[0].node = c->ends[1].node = (uint16_t)net->recorded_to;
    uint32_t end = end_name(world, c, 1);
    fb_sim_schedule(world, world->now_ns, net->recorded_to, FB_SIM_AT_ACCEPT, end, c->stamp);
    fb_sim_flow *flow = &c->flows[0];
    segment_append(world, flow, fb_span_of(net->recorded, net->recorded_len),
                   world->now_ns + 1000000);
    flow->granted = flow->written;
    delivery_schedule(world, c, 0, world->now_ns + 1000000);
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
                        frame_push(world, c, side, bytes, (fb_sim_wanted){0});
                    } else if (flow->granted + bytes.len <= flow->taken + net->window_bytes) {
                        /* The machine's own bytes do not use up its node's credit. */
                        flow->granted += bytes.len;
                        net->hung_ns = world->now_ns;
                        stream_push(world, c, side, bytes, (fb_sim_wanted){0});
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
    uint32_t node = connection_of(world, frame.end)->ends[frame.end & 1].node;
    uint64_t message = world->record != NULL ? world->record->live->frame_message[place] : 0;
    frame_launch(world, node, frame.end, frame.stamp, frame.bytes, at_ns, message);
    return true;
}

void fb_sim_network_cut(fb_sim_world *world, uint32_t end)
{
    fb_sim_connection *c = connection_of(world, end);
    for (uint32_t side = 0; side < 2; side++) {
        flow_end(world, c, side, FB_ERR_LINK_CLOSED, world->now_ns, true);
    }
}
