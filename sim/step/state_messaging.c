/* SPDX-License-Identifier: Apache-2.0 */
/* Windows, floors, and what is to be said. */
#include "protocol/core/internal.h"
#include "protocol/messaging/state.h"
#include "sim/step/state.h"

static void channels(fb_sim_fields *f, const struct fb_messaging *m)
{
    for (uint32_t i = 0; i < m->links; i++) {
        const fb_message_channel *c = &m->channel[i];
        if (!c->up || !fb_sim_group(f, "channel[%u]", (unsigned)i)) continue;
        fb_sim_field(f, "peer", "%s", fb_sim_id_name(f, c->peer));
        uint64_t next = c->base + c->count;
        fb_sim_field(f, "next_number", "%llu", (unsigned long long)next);
        fb_sim_field(f, "unacknowledged", "%u", (unsigned)c->count);
        fb_sim_field(f, "acknowledged_below", "%llu", (unsigned long long)c->base);
        fb_sim_field(f, "to_send_again", "%u", (unsigned)c->redo_count);
        fb_sim_field(f, "announcements_pending", "%u", (unsigned)c->pending);
        fb_sim_field(f, "received", "%llu", (unsigned long long)c->received);
        fb_sim_field(f, "ack_sent", "%llu", (unsigned long long)c->ack_sent);
        fb_sim_field(f, "held_for_the_disk", "%u", (unsigned)c->hold_count);
        fb_sim_field(f, "interest", "%u", (unsigned)c->interest);
    }
}

static void announcements(fb_sim_fields *f, const struct fb_messaging *m)
{
    for (uint32_t i = 0; i < m->announcements; i++) {
        const fb_announcement *a = &m->announcement[i];
        if (!a->used || !fb_sim_group(f, "announcement[%u]", (unsigned)i)) continue;
        fb_sim_field(f, "area", "%s", fb_sim_id_name(f, a->area));
        fb_sim_field(f, "links_to_tell", "%u", (unsigned)a->pending);
        fb_sim_field(f, "batch", "%llu", (unsigned long long)a->batch);
        fb_sim_field(f, "waits_for_disk", "%s", a->waiting ? "yes" : "no");
    }
}

void fb_sim_state_messaging(fb_sim_fields *f, const fb_node *core)
{
    static const char *const states[] = {"free", "wanted", "loading", "ready"};
    const struct fb_messaging *m = core->messaging;
    channels(f, m);
    announcements(f, m);
    for (uint32_t i = 0; i < m->links; i++) {
        const fb_record *r = &m->record[i];
        if (r->state == FB_RECORD_FREE || r->member == FB_NONE) continue;
        fb_id sender = fb_member_id(core, r->member);
        if (!fb_sim_group(f, "floor[%s %u]", fb_sim_id_name(f, sender), (unsigned)r->space)) {
            continue;
        }
        fb_sim_field(f, "state", "%s", states[r->state]);
        fb_sim_field(f, "floor_ms", "%lld", (long long)r->floor_ms);
        fb_sim_field(f, "highest_ms", "%lld", (long long)r->highest_ms);
        fb_sim_field(f, "remembered", "%u", (unsigned)r->count);
    }
    for (uint32_t i = 0; i < m->links; i++) {
        const fb_orphans *o = &m->orphans[i];
        if (o->member == FB_NONE || o->count == 0) continue;
        fb_id peer = fb_member_id(core, o->member);
        if (!fb_sim_group(f, "orphans[%s]", fb_sim_id_name(f, peer))) continue;
        fb_sim_field(f, "messages", "%u", (unsigned)o->count);
    }
}
