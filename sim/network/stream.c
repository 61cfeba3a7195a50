/* SPDX-License-Identifier: Apache-2.0 */
/* Byte streams: what a node sends, cut into segments, arrives in order, with credit. */
#include "sim/network/inside.h"
#include "sim/view/record.h"

static void record_bytes(fb_sim_world *world, const fb_sim_connection *c, fb_span bytes)
{
    fb_sim_network *net = &world->network;
    uint32_t number = fb_net_end_name(world, c, 0) / 2;
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

bool fb_net_coin(fb_sim_world *world, const fb_sim_connection *c, uint32_t side)
{
    fb_sim_path *path = fb_net_flow_path(world, c, side);
    return (fb_draw(world->seed, FB_SIM_STREAM_CUT, fb_net_path_entity(world, path) + (1u << 24),
                    path->dials++) &
            1) != 0;
}

void fb_net_connection_cut(fb_sim_world *world, fb_sim_connection *c)
{
    for (uint32_t side = 0; side < 2; side++) {
        fb_net_flow_end(world, c, side, FB_ERR_LINK_CLOSED, world->now_ns,
                        fb_net_coin(world, c, side));
    }
}

fb_sim_wanted fb_net_wanted_of(fb_sim_world *world, const fb_sim_connection *c, uint32_t side,
                               fb_span bytes)
{
    if (world->player == NULL) return (fb_sim_wanted){0};
    return fb_sim_player_wanted(world, c->ends[side].node, c->ends[1 - side].node, c->carrier,
                                bytes);
}

void fb_net_stream_push(fb_sim_world *world, fb_sim_connection *c, uint32_t side, fb_span bytes,
                        fb_sim_wanted what)
{
    fb_sim_flow *flow = &c->flows[side];
    if (flow->swallowing || flow->ended || bytes.len == 0) {
        flow->granted -= bytes.len; /* spent, and nothing arrives */
        if (world->record != NULL) {
            fb_sim_record_sent(world, fb_net_end_name(world, c, 1 - side), bytes.len, 0, false);
        }
        return;
    }
    fb_sim_path *path = fb_net_flow_path(world, c, side);
    uint64_t occurrence = path->sends++;
    size_t len = bytes.len;
    bool dropped = fb_sim_wants(&what, FB_SIM_MESSAGE_DROP);
    bool cut = dropped || fb_sim_wants(&what, FB_SIM_MESSAGE_CUT);
    if (dropped) {
        /* A stream loses nothing but its end. */
        len = 0;
    } else if (!cut && fb_net_one_of(world, path, FB_SIM_STREAM_CUT, occurrence, path->cut_of)) {
        cut = true;
        len = (size_t)fb_draw_below(world->seed, FB_SIM_STREAM_CUT, fb_net_path_entity(world, path),
                                    occurrence + (UINT64_C(1) << 48), len);
        world->fired[FB_SIM_FAULT_CUT]++;
    } else if (fb_net_one_of(world, path, FB_SIM_STREAM_TRUNCATE, occurrence, path->truncate_of)) {
        len = (size_t)fb_draw_below(world->seed, FB_SIM_STREAM_TRUNCATE,
                                    fb_net_path_entity(world, path),
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
    at = fb_max_u64(at + fb_net_path_delay(path, occurrence) + what.delay_ns, flow->last_at_ns);
    flow->last_at_ns = at;
    bool harmed = len != bytes.len;
    if (len != 0) {
        fb_net_segment_append(world, flow, fb_span_of(bytes.p, len), at);
        if (fb_net_one_of(world, path, FB_SIM_STREAM_CORRUPT, occurrence, path->corrupt_of)) {
            uint8_t *sent = (uint8_t *)(fb_net_segment_of(world, flow->last) + 1);
            for (uint64_t i = 0; i == 0 || i < path->corrupt_bits; i++) {
                uint64_t bit = fb_draw_below(world->seed, FB_SIM_STREAM_CORRUPT,
                                             fb_net_path_entity(world, path),
                                             occurrence + ((i + 1) << 48), len * 8);
                sent[bit / 8] ^= (uint8_t)(1u << (bit & 7));
            }
            world->fired[FB_SIM_FAULT_CORRUPT]++;
            harmed = true;
        }
        if (fb_sim_wants(&what, FB_SIM_MESSAGE_CORRUPT)) {
            uint8_t *sent = (uint8_t *)(fb_net_segment_of(world, flow->last) + 1);
            sent[len / 2] ^= 1;
            harmed = true;
        }
        if (!flow->scheduled && !flow->stalled && !flow->paused)
            fb_net_delivery_next(world, c, side);
    }
    if (harmed && !cut) world->network.hung_ns = world->now_ns;
    if (world->record != NULL) {
        fb_sim_record_sent(world, fb_net_end_name(world, c, 1 - side), bytes.len, len, harmed);
    }
    if (cut) fb_net_connection_cut(world, c);
}

void fb_sim_send(fb_sim_world *world, uint32_t node, uint64_t link, fb_span bytes)
{
    uint32_t end = fb_net_end_of(world, node, link);
    if (end == FB_SIM_END_NONE || fb_net_connection_of(world, end)->ends[end & 1].closing) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s sends on link %llu, which is over", fb_sim_name(node),
                        (unsigned long long)link);
        return;
    }
    fb_sim_connection *c = fb_net_connection_of(world, end);
    fb_sim_flow *flow = &c->flows[end & 1];
    if (flow->written + bytes.len > flow->granted || c->carrier) {
        fb_sim_violated(world, FB_SIM_SAFETY, "credit-respected",
                        "%s sends %zu bytes on link %llu with a credit of %llu", fb_sim_name(node),
                        bytes.len, (unsigned long long)link,
                        (unsigned long long)(flow->granted - flow->written));
        return;
    }
    if ((end & 1) == 0 && flow->written < FB_SIM_RECORDED_BYTES) record_bytes(world, c, bytes);
    fb_net_stream_push(world, c, end & 1, bytes, fb_net_wanted_of(world, c, end & 1, bytes));
}

/* The first len bytes on the way, as one piece. */
static const uint8_t *segments_gather(fb_sim_world *world, const fb_sim_flow *flow, size_t len)
{
    const fb_sim_segment *segment = fb_net_segment_of(world, flow->first);
    if (segment->len - flow->skip >= len) return (const uint8_t *)(segment + 1) + flow->skip;
    size_t used = 0;
    uint32_t skip = flow->skip;
    while (used < len) {
        size_t piece = segment->len - skip;
        if (piece > len - used) piece = len - used;
        memcpy(world->scratch + used, (const uint8_t *)(segment + 1) + skip, piece);
        used += piece;
        skip = 0;
        if (used < len) segment = fb_net_segment_of(world, segment->next);
    }
    return world->scratch;
}

void fb_sim_at_bytes(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = fb_net_connection_of(world, end);
    if (c->stamp != stamp) return;
    uint32_t side = 1 - (end & 1); /* of the sender */
    fb_sim_flow *flow = &c->flows[side];
    fb_sim_end *receiver = &c->ends[end & 1];
    flow->scheduled = false;
    if (!receiver->open) return;
    fb_sim_path *path = fb_net_flow_path(world, c, side);
    if (path->blocked && !c->attacker) {
        flow->stalled = true;
        return;
    }
    if (receiver->closing) fb_net_segments_drop(world, c, side);
    size_t ready = 0;
    fb_sim_blob at = flow->first;
    while (at != 0 && fb_net_segment_of(world, at)->at_ns <= world->now_ns) {
        ready += fb_net_segment_of(world, at)->len;
        at = fb_net_segment_of(world, at)->next;
    }
    if (flow->paused || ready == 0) {
        fb_net_delivery_next(world, c, side);
        return;
    }
    ready -= flow->skip;
    size_t len = ready;
    uint64_t occurrence = path->deliveries++;
    if (path->segment_of_16 != 0 && len > 1 &&
        fb_draw_below(world->seed, FB_SIM_STREAM_SEGMENT, fb_net_path_entity(world, path),
                      occurrence * 2, 16) < path->segment_of_16) {
        len = (size_t)fb_draw_below(world->seed, FB_SIM_STREAM_SEGMENT,
                                    fb_net_path_entity(world, path), occurrence * 2 + 1, len) +
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
    if (flow->taken + consumed <= flow->written) fb_net_segments_take(world, flow, consumed);
    if (consumed == len) flow->paused = false;
    fb_net_credit_maybe(world, c, side);
    fb_net_delivery_next(world, c, side);
}

void fb_sim_resume(fb_sim_world *world, uint32_t node, uint64_t link)
{
    uint32_t end = fb_net_end_of(world, node, link);
    if (end == FB_SIM_END_NONE) return;
    fb_sim_connection *c = fb_net_connection_of(world, end);
    fb_sim_flow *flow = &c->flows[1 - (end & 1)];
    flow->paused = false;
    if (!flow->scheduled && !flow->stalled) fb_net_delivery_next(world, c, 1 - (end & 1));
}

void fb_sim_at_credit(fb_sim_world *world, uint32_t end, uint32_t stamp)
{
    fb_sim_connection *c = fb_net_connection_of(world, end);
    if (c->stamp != stamp) return;
    uint32_t side = end & 1;
    fb_sim_flow *flow = &c->flows[side];
    fb_sim_end *sender = &c->ends[side];
    flow->credit_scheduled = false;
    if (!sender->open || sender->closing) return;
    if (flow->granted != 0 && fb_net_flow_path(world, c, 1 - side)->blocked && !c->attacker) {
        flow->credit_stalled = true;
        return;
    }
    uint64_t window = fb_net_window_of(world, c, side);
    if (!c->carrier && window < world->network.window_bytes) world->fired[FB_SIM_FAULT_QUEUE]++;
    uint64_t limit = flow->taken + window;
    if (limit <= flow->granted) return;
    uint64_t more = limit - flow->granted;
    flow->granted = limit;
    fb_sim_step(world, sender->node,
                (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = sender->link, .b = more});
}
