/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/bench.h"

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "sim/workload/workload.h"

#define AREAS       64u /* of each node, announced in turn: fewer would coalesce */
#define VALUE_BYTES 40u

static fb_id id_of(const fb_sim_world *world, uint64_t kind, uint64_t number)
{
    fb_id id;
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_VALUE, UINT64_MAX - kind, number);
    fb_store_be(id.b, UINT64_C(1790000000000) + number, 6);
    fb_store_be(id.b + 6, bits, 2);
    fb_store_be(id.b + 8, bits * UINT64_C(0x9e3779b97f4a7c15), 8);
    id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x70);
    id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
    return id;
}

void fb_sim_bench_start(fb_sim_world *world)
{
    const fb_sim_bench *bench = world->bench;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        uint64_t first = bench->interval_ns * i / world->config.nodes;
        fb_sim_schedule(world, world->now_ns + first, i, FB_SIM_AT_WORK, 0, 0);
    }
}

static void announce(fb_sim_world *world, uint32_t node, uint64_t turn)
{
    const fb_sim_bench *bench = world->bench;
    uint8_t bytes[32 + AREAS * 16];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, world->spaces[0]);
    fb_write_u16(&w, (uint16_t)bench->per_turn);
    for (uint32_t i = 0; i < bench->per_turn; i++) {
        uint64_t area = (turn * bench->per_turn + i) % AREAS;
        fb_write_id(&w, id_of(world, 1, node * UINT64_C(1000) + area));
    }
    FB_ASSERT(!w.failed);
    fb_sim_request(world, node, FB_VERB_PUBLISH, 0, fb_writer_span(&w));
}

static void put(fb_sim_world *world, uint32_t node, uint64_t count)
{
    const fb_sim_bench *bench = world->bench;
    static const fb_id zero = {{0}};
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    /* Every node writes records of its own: the rate is that of changes, not of conflicts. */
    uint64_t record =
        count % (bench->records / world->config.nodes + 1) * world->config.nodes + node;
    fb_write_id(&w, world->spaces[0]);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, fb_span_text(fb_sim_collection));
    fb_write_id(&w, id_of(world, 2, record));
    fb_write_u8(&w, 2);
    fb_write_u8(&w, 0);
    fb_write_id(&w, zero);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text("f"));
    fb_write_u8(&w, 1);
    uint8_t value[VALUE_BYTES];
    memset(value, '.', sizeof value);
    value[0] = value[sizeof value - 1] = '"';
    for (uint32_t i = 1; i < 20; i++, count /= 10) value[i] = (uint8_t)('0' + count % 10);
    fb_write_span32(&w, fb_span_of(value, sizeof value));
    FB_ASSERT(!w.failed);
    fb_sim_request(world, node, FB_VERB_RECORD_PUT, 0, fb_writer_span(&w));
}

void fb_sim_bench_work(fb_sim_world *world, uint32_t node)
{
    fb_sim_bench *bench = world->bench;
    if (bench->turns[node] == bench->left) return;
    uint64_t turn = bench->turns[node]++;
    if (bench->profile == FB_SIM_BENCH_MESSAGES) {
        announce(world, node, turn);
    } else {
        for (uint32_t i = 0; i < bench->per_turn && !world->stop; i++) {
            put(world, node, turn * bench->per_turn + i);
        }
    }
    fb_sim_schedule(world, world->now_ns + bench->interval_ns, node, FB_SIM_AT_WORK, 0, 0);
}

void fb_sim_bench_replied(fb_sim_world *world, const fb_effect *reply)
{
    world->bench->failed += reply->b != FB_OK && reply->b != FB_ERR_BUSY;
}
