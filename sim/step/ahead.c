/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/ahead.h"

#include <stdio.h>

#include "sim/documents/calls.h"
#include "sim/step/decision.h"
#include "sim/view/record.h"
#include "sim/world/world.h"

static const fb_sim_connection *connection_at(const fb_sim_world *world, uint32_t end)
{
    return &world->network.connections[end / 2];
}

static const char *peer_of(const fb_sim_world *world, uint32_t end)
{
    const fb_sim_connection *c = connection_at(world, end);
    return c->attacker ? "nobody" : fb_sim_name(c->ends[1 - (end & 1)].node);
}

static bool text_of_world(const fb_sim_world *world, const fb_sim_entry *e, char *out, size_t cap)
{
    const fb_sim_weather *weather = world->weather;
    uint32_t kind = fb_sim_entry_kind(e);
    if (kind == FB_SIM_AT_SCRIPT) {
        snprintf(out, cap, "the director has its turn");
        return true;
    }
    if (kind == FB_SIM_AT_SERVER) {
        const fb_sim_documents_call *call =
            &world->nodes[e->ref >> 8].documents->calls[e->ref & 0xff];
        snprintf(out, cap, "the document server of %s does what it was asked",
                 fb_sim_name(e->ref >> 8));
        return call->used && call->serial == e->stamp;
    }
    if (e->ref >> 8 != (weather->generation & 0xffffff)) return false;
    fb_sim_window window = weather->windows[e->ref & 0xff];
    if (kind == FB_SIM_AT_ACT) {
        snprintf(out, cap, "%s acts at %s", fb_sim_fault_rows[window.fault].name,
                 fb_sim_name(window.a));
        return window.active;
    }
    if (window.active == (e->stamp != 0)) return false;
    window.active = e->stamp != 0;
    fb_sim_window_text(world, &window, out, cap);
    return true;
}

static bool text_of_end(const fb_sim_world *world, const fb_sim_entry *e, char *out, size_t cap)
{
    const fb_sim_connection *c = connection_at(world, e->ref);
    const fb_sim_flow *in = &c->flows[1 - (e->ref & 1)];
    const char *peer = peer_of(world, e->ref);
    if (c->stamp != e->stamp) return false;
    switch ((fb_sim_kind)fb_sim_entry_kind(e)) {
    case FB_SIM_AT_ACCEPT:
        snprintf(out, cap, "is dialled by %s", peer);
        return true;
    case FB_SIM_AT_DIAL_RESULT:
        snprintf(out, cap, "learns what came of dialling %s", peer);
        return true;
    case FB_SIM_AT_CARRIER:
        snprintf(out, cap, "a carrier to %s opens", peer);
        return true;
    case FB_SIM_AT_BYTES:
        snprintf(out, cap, "gets up to %llu bytes from %s",
                 (unsigned long long)(in->written - in->taken), peer);
        return fb_sim_entry_arrives(world, e);
    case FB_SIM_AT_CREDIT:
        snprintf(out, cap, "may send more to %s", peer);
        return c->ends[e->ref & 1].open;
    case FB_SIM_AT_CLOSED:
        snprintf(out, cap, "the link to %s is closed", peer);
        return c->ends[e->ref & 1].open;
    default:
        return false;
    }
}

/* False: it is void. */
static bool text_of(const fb_sim_world *world, const fb_sim_entry *e, char *out, size_t cap)
{
    uint32_t place = fb_sim_entry_node(e);
    if (place == 0) return text_of_world(world, e, out, cap);
    const fb_sim_node *node = &world->nodes[place - 1];
    switch ((fb_sim_kind)fb_sim_entry_kind(e)) {
    case FB_SIM_AT_BOOT:
        snprintf(out, cap, "boots");
        return node->core == NULL;
    case FB_SIM_AT_START:
        snprintf(out, cap, "starts again");
        return e->stamp == node->boots;
    case FB_SIM_AT_FRAME:
        snprintf(out, cap, "gets a frame of %zu bytes from %s",
                 fb_sim_blob_bytes(&world->blobs, world->network.frames[e->ref].bytes).len,
                 peer_of(world, world->network.frames[e->ref].end));
        return fb_sim_entry_arrives(world, e);
    case FB_SIM_AT_READ:
        snprintf(out, cap, "read %llu is done", (unsigned long long)world->reads[e->ref].op);
        return e->stamp == node->boots;
    case FB_SIM_AT_FLUSH:
        snprintf(out, cap, "%u write sets become durable", (unsigned)node->writes_flushing);
        return e->stamp == node->boots && e->ref == (uint32_t)node->incarnations;
    case FB_SIM_AT_WORK:
        snprintf(out, cap, "client %u has its turn", (unsigned)e->ref);
        return true;
    case FB_SIM_AT_DOCUMENTS:
        snprintf(out, cap, "%s",
                 (e->ref & FB_SIM_DOCUMENTS_READ) != 0 ? "reads documents"
                 : e->ref == FB_SIM_DOCUMENTS_WAKE     ? "turns to its documents again"
                 : e->ref == FB_SIM_DOCUMENTS_TAKEN_OVER
                     ? "is started again, as another process is gone"
                     : "hears from its document server");
        return e->stamp == node->boots;
    case FB_SIM_AT_FEED:
        snprintf(out, cap, "client %u takes more of its feed", (unsigned)e->ref);
        return true;
    default:
        return text_of_end(world, e, out, cap);
    }
}

static bool earlier(const fb_sim_ahead *a, const fb_sim_ahead *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

/* The list stays in order and no longer than its room. */
static uint32_t insert(fb_sim_ahead *out, uint32_t count, uint32_t room, const fb_sim_ahead *made)
{
    uint32_t at = count;
    while (at > 0 && earlier(made, &out[at - 1])) at--;
    if (at == room) return count;
    uint32_t moved = count < room ? count - at : room - 1 - at;
    memmove(&out[at + 1], &out[at], moved * sizeof *out);
    out[at] = *made;
    return count < room ? count + 1 : count;
}

/* Of bytes that is who sent them, whatever brought their delivery into the queue. */
static uint64_t cause_of(const fb_sim_world *world, const fb_sim_entry *entry)
{
    const fb_sim_record *record = world->record;
    if (record == NULL) return 0;
    const fb_sim_message_note *message = NULL;
    if (fb_sim_entry_kind(entry) == FB_SIM_AT_BYTES) {
        message = fb_sim_record_message(record, record->live->flow_first[entry->ref]);
    }
    return message != NULL ? message->sent_step : fb_sim_record_cause(record, entry->order);
}

uint32_t fb_sim_look_ahead(const fb_sim_world *world, fb_sim_ahead *out, uint32_t room)
{
    uint32_t count = 0;
    fb_sim_ahead made;
    if (room == 0) return 0;
    for (uint32_t i = 0; i < world->queue.count; i++) {
        const fb_sim_entry *entry = &world->queue.entries[i];
        made = (fb_sim_ahead){.time_ns = entry->time_ns, .order = entry->order};
        uint32_t place = fb_sim_entry_node(entry);
        made.node = place == 0 ? UINT32_MAX : place - 1;
        if (place != 0 && world->nodes[place - 1].paused_until_ns > made.time_ns) {
            made.time_ns = world->nodes[place - 1].paused_until_ns;
        }
        if (count == room && !earlier(&made, &out[count - 1])) continue;
        if (!text_of(world, entry, made.text, sizeof made.text)) continue;
        made.cause = cause_of(world, entry);
        count = insert(out, count, room, &made);
    }
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        const fb_sim_node *node = &world->nodes[i];
        if (node->tick_at_ns == FB_NEVER || node->core == NULL) continue;
        uint64_t shift = FB_SIM_QUEUE_KIND_BITS + FB_SIM_QUEUE_SEQUENCE_BITS;
        made = (fb_sim_ahead){
            .time_ns = fb_max_u64(node->tick_at_ns, node->paused_until_ns),
            .order = (uint64_t)(i + 1) << shift | (uint64_t)FB_SIM_AT_TICK
                                                      << FB_SIM_QUEUE_SEQUENCE_BITS,
            .node = i,
            .cause = world->record == NULL ? 0 : world->record->live->tick_cause[i],
        };
        snprintf(made.text, sizeof made.text, "ticks");
        count = insert(out, count, room, &made);
    }
    return count;
}
