/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/weather/byzantine.h"

#include "protocol/base/cursor.h"
#include "sim/weather/lies.h"
#include "sim/weather/weather.h"
#include "sim/world/world.h"

bool fb_sim_byzantine_possible(const fb_sim_world *world)
{
    return world->config.nodes >= 3;
}

void fb_sim_byzantine_set(fb_sim_world *world, const fb_sim_window *window, bool begins)
{
    /* A copy of an honest member keeps the rules as that one does. */
    if (begins && world->nodes[window->a].cloned) return;
    fb_sim_provider *provider = &world->nodes[window->a].provider;
    bool gone = window->fault == FB_SIM_FAULT_GONE;
    uint32_t bit = 1u << (gone ? FB_SIM_LIE_GONE : (uint32_t)window->fault - FB_SIM_FAULT_FORGE);
    if (begins) {
        provider->lies |= bit;
        world->traitor = window->a;
        world->liars[window->a] = true;
    } else {
        provider->lies &= ~bit;
    }
}

/* Bytes of no meaning, or with the shape of something. */
static void garbage(fb_sim_world *world, const fb_sim_window *w)
{
    uint8_t bytes[256];
    uint64_t key = (world->weather->round << 32) + w->acts * 64;
    size_t len = (size_t)fb_draw_below(world->seed, FB_SIM_STREAM_BYZANTINE, w->a, key, 200) + 1;
    for (size_t i = 0; i < len; i += 8) {
        fb_store_be(bytes + i, fb_draw(world->seed, FB_SIM_STREAM_BYZANTINE, w->a, key + 1 + i / 8),
                    8);
    }
    uint64_t pick = fb_draw(world->seed, FB_SIM_STREAM_BYZANTINE, w->a, key + 40);
    fb_sim_network_inject(world, w->a, pick, fb_span_of(bytes, len));
    world->fired[w->fault]++;
}

/* A frame or a record longer than any may be: its head alone on a stream, all of it on a carrier.
 */
static void oversize(fb_sim_world *world, const fb_sim_window *w)
{
    uint64_t key = (world->weather->round << 32) + w->acts * 64 + 63;
    uint64_t pick = fb_draw(world->seed, FB_SIM_STREAM_BYZANTINE, w->a, key);
    memset(world->scratch, (int)(pick & 0xff), 70000);
    world->scratch[0] = 0xff;
    world->scratch[1] = 0xff;
    fb_sim_network_inject(world, w->a, pick, fb_span_of(world->scratch, 70000 >> (pick >> 32 & 7)));
    world->fired[w->fault]++;
}

/* More signals than anybody may send, made by its own honest core. */
static void flood(fb_sim_world *world, const fb_sim_window *w)
{
    fb_sim_node *node = &world->nodes[w->a];
    if (node->core == NULL || !node->running || node->paused_until_ns > world->now_ns) return;
    uint64_t key = (world->weather->round << 32) + w->acts * 64 + 62;
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_BYZANTINE, w->a, key);
    uint32_t bursts = 10 + (uint32_t)(bits & 0x1ff) % 290;
    for (uint32_t i = 0; i < bursts && node->core != NULL && !world->stop; i++) {
        uint8_t bytes[34];
        fb_writer out = fb_writer_of(bytes, sizeof bytes);
        fb_write_id(&out, world->spaces[0]);
        fb_write_u16(&out, 1);
        fb_id area;
        fb_store_be(area.b, UINT64_C(1790000000000) + i, 6);
        fb_store_be(area.b + 6, 0x7000 | (i & 0xfff), 2);
        fb_store_be(area.b + 8, UINT64_C(0x8000000000000000) | (bits >> 2), 8);
        fb_write_id(&out, area);
        fb_sim_request(world, w->a, FB_VERB_PUBLISH, 0, fb_writer_span(&out));
    }
    world->fired[w->fault]++;
}

void fb_sim_byzantine_act(fb_sim_world *world, const fb_sim_window *w)
{
    if (!fb_sim_is_up(world, w->a) || world->traitor != w->a) return;
    switch ((fb_sim_fault)w->fault) {
    case FB_SIM_FAULT_GARBAGE:
        garbage(world, w);
        break;
    case FB_SIM_FAULT_OVERSIZE:
        oversize(world, w);
        break;
    case FB_SIM_FAULT_FLOOD:
        flood(world, w);
        break;
    default:
        break; /* its provider changes what it seals */
    }
}
