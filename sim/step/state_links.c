/* SPDX-License-Identifier: Apache-2.0 */
/* Links and spaces. */
#include "protocol/core/internal.h"
#include "protocol/link/state.h"
#include "protocol/rpc/state.h"
#include "protocol/space/table.h"
#include "sim/step/state.h"

static void link_fields(fb_sim_fields *f, const fb_link *l)
{
    static const char *const states[] = {"free", "opening", "pending", "open", "closing"};
    static const char *const steps[] = {"hello", "preamble", "handshake", "binding", "records"};
    bool known = l->info.member != FB_NONE;
    fb_sim_field(f, "peer", "%s", known ? fb_sim_id_name(f, l->info.peer) : "not proven");
    fb_sim_field(f, "number", "%llu", (unsigned long long)l->info.number);
    fb_sim_field(f, "state", "%s", states[l->info.state]);
    fb_sim_field(f, "awaits", "%s", steps[l->step]);
    fb_sim_field(f, "kind", "%s", l->info.external ? "carrier" : "stream");
    fb_sim_field(f, "dialled", "%s", l->info.dialled ? "yes" : "no");
    fb_sim_field(f, "up", "%s", l->up ? "yes" : "no");
    fb_sim_field(f, "credit", "%llu", (unsigned long long)l->credit);
    fb_sim_field(f, "paused", "%s", l->paused ? "yes" : "no");
    fb_sim_field(f, "heard_mono_ns", "%llu", (unsigned long long)l->info.heard_ns);
    fb_sim_field(f, "peer_incarnation", "%016llx", (unsigned long long)l->info.peer_incarnation);
    if (l->why != FB_OK) fb_sim_field(f, "closes_because", "%s", fb_error_name(l->why));
}

static void calls(fb_sim_fields *f, const struct fb_rpc *rpc)
{
    static const char *const roles[] = {"free", "caller", "server", "leaving"};
    for (uint32_t i = 0; rpc != NULL && i < rpc->calls; i++) {
        const fb_call *c = &rpc->call[i];
        if (c->role == FB_SIDE_FREE || !fb_sim_group(f, "call[%u]", (unsigned)i)) continue;
        fb_sim_field(f, "role", "%s", roles[c->role]);
        fb_sim_field(f, "link", "%u", (unsigned)c->link);
        fb_sim_field(f, "method", "%u", (unsigned)c->method);
        fb_sim_field(f, "number", "%llu", (unsigned long long)c->number);
        fb_sim_field(f, "pieces", "%u", (unsigned)c->pieces);
        fb_sim_field(f, "credit_left", "%llu", (unsigned long long)(c->credit - c->spent));
        fb_sim_field(f, "deadline_mono_ns", "%llu", (unsigned long long)c->deadline_ns);
    }
}

static void spaces(fb_sim_fields *f, const fb_node *core)
{
    const struct fb_spaces *all = core->spaces;
    for (uint32_t i = 0; i < core->options.sizes.spaces; i++) {
        const fb_space *s = &all->space[i];
        if (!s->used) continue;
        if (fb_sim_group(f, "space[%u]", (unsigned)i)) {
            fb_sim_field(f, "name", "%.*s", (int)s->name_len, (const char *)s->name);
            fb_sim_field(f, "id", "%s", fb_sim_id_name(f, s->id));
            fb_sim_field(f, "approved_members", "%u", (unsigned)s->approved);
            fb_sim_field(f, "rooted", "%s", s->rooted ? "yes" : "no");
            fb_sim_field(f, "own", "%s", s->own == FB_NONE ? "not approved" : "approved");
        }
        for (uint32_t at = s->first; at != 0; at = all->member[at - 1].next) {
            const fb_member *m = &all->member[at - 1];
            if (!fb_sim_group(f, "space[%u].member[%s]", (unsigned)i, fb_sim_id_name(f, m->id))) {
                continue;
            }
            fb_sim_field(f, "status", "%s",
                         m->status == 1   ? "approved"
                         : m->status == 2 ? "pending"
                         : m->status == 3 ? "revoked"
                                          : "nobody");
            fb_sim_field(f, "role", "%u", (unsigned)m->role);
        }
    }
}

void fb_sim_state_links(fb_sim_fields *f, const fb_node *core)
{
    const struct fb_links *links = core->links;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *l = &links->table[i];
        if (l->info.state == FB_LINK_FREE || !fb_sim_group(f, "link[%u]", (unsigned)i)) continue;
        link_fields(f, l);
    }
    for (uint32_t i = 0; i < links->book_capacity; i++) {
        const fb_address *a = &links->book[i];
        if (!a->used || !fb_sim_group(f, "address[%u]", (unsigned)i)) continue;
        fb_sim_field(f, "text", "%.*s", (int)a->len, (const char *)a->text);
        fb_sim_field(f, "dial", "%llu", (unsigned long long)a->dial);
        fb_sim_field(f, "link", "%d", a->link == FB_NONE ? -1 : (int)a->link);
        fb_sim_field(f, "expected", "%s", fb_sim_id_name(f, a->expected));
        fb_sim_field(f, "known", "%s", fb_sim_id_name(f, a->known));
        fb_sim_field(f, "tries", "%llu", (unsigned long long)a->tries);
        fb_sim_field(f, "last", "%s", fb_error_name(a->last));
    }
    calls(f, core->rpc);
    spaces(f, core);
}
