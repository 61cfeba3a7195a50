/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/decision.h"

#include "sim/view/record.h"
#include "sim/view/timeline.h"
#include "sim/world/world.h"

#define NONE UINT32_MAX

const char *fb_sim_decision_name(uint8_t kind)
{
    static const char *const names[FB_SIM_DECISIONS] = {"drop", "delay", "duplicate", "crash",
                                                        "pause"};
    return kind < FB_SIM_DECISIONS ? names[kind] : "?";
}

bool fb_sim_entry_arrives(const fb_sim_world *world, const fb_sim_entry *entry)
{
    uint32_t kind = fb_sim_entry_kind(entry);
    if (kind != FB_SIM_AT_BYTES && kind != FB_SIM_AT_FRAME) return false;
    bool frame = kind == FB_SIM_AT_FRAME;
    uint32_t end = frame ? world->network.frames[entry->ref].end : entry->ref;
    uint32_t stamp = frame ? world->network.frames[entry->ref].stamp : entry->stamp;
    const fb_sim_connection *c = &world->network.connections[end / 2];
    const fb_sim_end *e = &c->ends[end & 1];
    return c->stamp == stamp && e->open && !e->closing;
}

/* Place in the queue of what arrives next. */
static uint32_t next_arrival(const fb_sim_world *world, uint32_t node)
{
    uint32_t best = NONE;
    for (uint32_t i = 0; i < world->queue.count; i++) {
        const fb_sim_entry *entry = &world->queue.entries[i];
        if (node != NONE && fb_sim_entry_node(entry) != node + 1) continue;
        if (!fb_sim_entry_arrives(world, entry)) continue;
        const fb_sim_entry *first = best == NONE ? NULL : &world->queue.entries[best];
        if (first == NULL || entry->time_ns < first->time_ns ||
            (entry->time_ns == first->time_ns && entry->order < first->order)) {
            best = i;
        }
    }
    return best;
}

static const char *about_process(fb_sim_world *world, const fb_sim_decision *d)
{
    if (d->node >= world->config.nodes) return "no node of this name";
    if (!fb_sim_is_up(world, d->node)) return "it is down";
    if (d->kind == FB_SIM_DECISION_PAUSE) {
        fb_sim_pause(world, d->node, fb_add_sat_u64(world->now_ns, d->ns));
        return NULL;
    }
    if (world->timeline != NULL) fb_sim_timeline_crash(world, d->node);
    fb_sim_crash(world, d->node, d->ns);
    return NULL;
}

/* A frame on its way goes. */
static void frame_lose(fb_sim_world *world, uint32_t place)
{
    fb_sim_network *net = &world->network;
    if (world->record != NULL) fb_sim_record_frame_arrives(world, place, true);
    fb_sim_frame_over(world, &net->frames[place]);
    fb_sim_blob_drop(&world->blobs, net->frames[place].bytes);
    net->frames[place].bytes = 0;
    net->frames[place].next_free = net->frame_free;
    net->frame_free = place;
}

const char *fb_sim_decide(fb_sim_world *world, const fb_sim_decision *d)
{
    if (d->kind == FB_SIM_DECISION_CRASH || d->kind == FB_SIM_DECISION_PAUSE) {
        return about_process(world, d);
    }
    uint32_t place = next_arrival(world, d->node);
    if (place == NONE) return "nothing is on its way";
    fb_sim_entry entry = world->queue.entries[place];
    bool frame = fb_sim_entry_kind(&entry) == FB_SIM_AT_FRAME;
    if (d->kind == FB_SIM_DECISION_DUPLICATE) {
        if (!frame) return "what arrives next is of a stream, which repeats nothing";
        uint64_t at = fb_add_sat_u64(entry.time_ns, d->ns);
        return fb_sim_network_frame_repeat(world, entry.ref, at) ? NULL : "no room for a frame";
    }
    if (d->kind == FB_SIM_DECISION_DELAY) {
        fb_sim_queue_take(&world->queue, place);
        entry.time_ns = fb_add_sat_u64(entry.time_ns, d->ns);
        fb_sim_queue_put(&world->queue, entry);
        return NULL;
    }
    if (!frame) {
        /* A stream loses nothing but its end: its delivery finds nothing more. */
        fb_sim_network_cut(world, entry.ref);
        return NULL;
    }
    fb_sim_queue_take(&world->queue, place);
    frame_lose(world, entry.ref);
    return NULL;
}
