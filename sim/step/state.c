/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/state.h"

#include <stdarg.h>
#include <stdio.h>

#include "sim/documents/documents.h"
#include "sim/world/world.h"

bool fb_sim_group(fb_sim_fields *fields, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fields->group, sizeof fields->group, format, arguments);
    va_end(arguments);
    size_t group = strlen(fields->group), wanted = strlen(fields->wanted);
    return memcmp(fields->group, fields->wanted, group < wanted ? group : wanted) == 0;
}

void fb_sim_field(fb_sim_fields *fields, const char *name, const char *format, ...)
{
    char whole[2 * FB_SIM_FIELD_NAME_MAX];
    char value[FB_SIM_FIELD_VALUE_MAX];
    snprintf(whole, sizeof whole, "%s.%s", fields->group, name);
    if (strncmp(whole, fields->wanted, strlen(fields->wanted)) != 0) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    fields->at(fields->user, whole, value);
}

const char *fb_sim_id_name(const fb_sim_fields *fields, fb_id id)
{
    static char texts[4][16];
    static unsigned next;
    uint32_t node = fb_sim_node_of(fields->world, id);
    if (node != UINT32_MAX) return fb_sim_name(node);
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%02x%02x%02x%02x", id.b[0], id.b[1], id.b[14], id.b[15]);
    return text;
}

static void machine(fb_sim_fields *f)
{
    const fb_sim_world *world = f->world;
    const fb_sim_node *n = &world->nodes[f->node];
    if (fb_sim_group(f, "machine")) {
        fb_sim_field(f, "up", "%s", n->core != NULL ? "yes" : n->booting ? "boots soon" : "no");
        fb_sim_field(f, "running", "%s", n->running ? "yes" : "no");
        fb_sim_field(f, "incarnation", "%016llx", (unsigned long long)n->incarnation);
        fb_sim_field(f, "incarnations", "%llu", (unsigned long long)n->incarnations);
        fb_sim_field(f, "boots", "%u", (unsigned)n->boots);
        fb_sim_field(f, "steps", "%llu", (unsigned long long)n->steps);
        fb_sim_field(f, "paused_until_ns", "%llu",
                     n->paused_until_ns > world->now_ns ? (unsigned long long)n->paused_until_ns
                                                        : 0ULL);
        fb_sim_field(f, "held_apart", "%s", world->held_apart[f->node] ? "yes" : "no");
        fb_sim_field(f, "byzantine", "%s", world->traitor == f->node ? "yes" : "no");
    }
    if (fb_sim_group(f, "clock")) {
        int64_t true_us = FB_SIM_WALL_START_US + (int64_t)(world->now_ns / 1000);
        fb_sim_field(f, "mono_ns", "%llu",
                     (unsigned long long)fb_sim_clock_mono(&n->clock, world->now_ns));
        fb_sim_field(f, "wall_us", "%lld", (long long)fb_sim_clock_wall(&n->clock, world->now_ns));
        fb_sim_field(f, "off_by_us", "%lld",
                     (long long)(fb_sim_clock_wall(&n->clock, world->now_ns) - true_us));
        fb_sim_field(f, "ppm", "%d", (int)n->clock.ppm);
        fb_sim_field(f, "frozen", "%s", n->clock.wall_frozen ? "yes" : "no");
        fb_sim_field(f, "next_tick_ns", "%lld",
                     n->tick_at_ns == FB_NEVER ? -1LL : (long long)n->tick_at_ns);
    }
    if (fb_sim_group(f, "disk")) {
        fb_sim_field(f, "items", "%u", (unsigned)n->store.items);
        fb_sim_field(f, "applied_w", "%llu", (unsigned long long)n->applied_w);
        fb_sim_field(f, "waiting_sets", "%u", (unsigned)n->write_count);
        fb_sim_field(f, "flushing_sets", "%u", (unsigned)n->writes_flushing);
        fb_sim_field(f, "backup", "%s", n->has_backup ? "yes" : "no");
        for (uint32_t i = 0; i < n->write_count; i++) {
            const fb_sim_write *w = &n->writes[(n->write_first + i) % FB_SIM_WRITES_PENDING];
            char name[32];
            snprintf(name, sizeof name, "set[%llu]", (unsigned long long)w->w);
            fb_sim_field(f, name, "%zu bytes%s%s", fb_sim_blob_bytes(&world->blobs, w->bytes).len,
                         w->applied ? ", in the cache" : "", w->fails ? ", will fail" : "");
        }
    }
}

static uint32_t jobs_in(const fb_job *job)
{
    uint32_t count = 0;
    for (; job != NULL; job = job->next) count++;
    return count;
}

static void documents(fb_sim_fields *f)
{
    const fb_sim_documents *d = f->world->nodes[f->node].documents;
    if (d == NULL) return;
    if (d->up && fb_sim_group(f, "documents")) {
        const fb_handing *h = &d->handing;
        fb_sim_field(f, "start", "%llu", (unsigned long long)h->start);
        fb_sim_field(f, "fenced", "%s", h->fenced ? "yes" : "no");
        fb_sim_field(f, "locked", "%s", h->locked ? "yes" : "no");
        fb_sim_field(f, "asks", "%s", d->calling ? "yes" : "no");
        fb_sim_field(f, "waiting_jobs", "%u", (unsigned)(jobs_in(h->jobs) + (h->job != NULL)));
        fb_sim_field(f, "served_jobs", "%u", (unsigned)d->keeping.served_count);
        fb_sim_field(f, "doubtful_jobs", "%u", (unsigned)jobs_in(d->keeping.doubtful));
        fb_sim_field(f, "disk_items", "%u", (unsigned)d->local.items);
    }
    if (!fb_sim_group(f, "server")) return;
    uint32_t there = 0, marks = 0;
    for (uint32_t i = 0; i < d->server.count; i++) {
        there += d->server.documents[i].there && !d->server.documents[i].mark;
        marks += d->server.documents[i].mark;
    }
    fb_sim_field(f, "documents", "%u", (unsigned)there);
    fb_sim_field(f, "marks", "%u", (unsigned)marks);
    fb_sim_field(f, "fence", "%llu", (unsigned long long)d->server.fence);
    fb_sim_field(f, "writer", "%llu", (unsigned long long)d->server.writer);
    fb_sim_field(f, "full", "%s", d->server.full ? "yes" : "no");
    fb_sim_field(f, "deposed", "%s", d->server.deposed ? "yes" : "no");
}

/* The network's side of its links. */
static void connections(fb_sim_fields *f)
{
    const fb_sim_network *net = &f->world->network;
    for (uint32_t i = 0; i < net->connection_count; i++) {
        const fb_sim_connection *c = &net->connections[i];
        if (c->state == FB_SIM_CONNECTION_FREE) continue;
        for (uint32_t side = 0; side < 2; side++) {
            const fb_sim_end *e = &c->ends[side];
            if (e->node != f->node || (c->attacker && side == 0)) continue;
            if (!fb_sim_group(f, "connection[%u]", (unsigned)(2 * i + side))) continue;
            const fb_sim_flow *in = &c->flows[1 - side], *out = &c->flows[side];
            fb_sim_field(f, "peer", "%s",
                         c->attacker ? "nobody" : fb_sim_name(c->ends[1 - side].node));
            fb_sim_field(f, "kind", "%s", c->carrier ? "carrier" : "stream");
            fb_sim_field(f, "state", "%s",
                         c->state == FB_SIM_CONNECTION_DIALLING ? "dialling"
                         : e->closing                           ? "closing"
                         : e->open                              ? "open"
                                                                : "over");
            fb_sim_field(f, "link", "%llu", (unsigned long long)e->link);
            fb_sim_field(f, "sent_bytes", "%llu", (unsigned long long)out->written);
            fb_sim_field(f, "taken_bytes", "%llu", (unsigned long long)in->taken);
            fb_sim_field(f, "to_come_bytes", "%llu", (unsigned long long)(in->written - in->taken));
            fb_sim_field(f, "stalled", "%s", in->stalled ? "by a partition" : "no");
        }
    }
}

void fb_sim_state(fb_sim_fields *fields)
{
    const fb_sim_node *n = &fields->world->nodes[fields->node];
    machine(fields);
    documents(fields);
    connections(fields);
    if (n->core == NULL) return;
    fb_sim_state_core(fields, n->core);
}
