/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/let_in.h"

#include "protocol/base/cursor.h"
#include "protocol/space/standing.h"
#include "sim/workload/director.h"

#define SECOND UINT64_C(1000000000)

uint8_t fb_sim_role_of(uint32_t node)
{
    return node % 4 == 3 ? 2 : 1;
}

/* The first space at a node that is an admin there; NULL: it is none. Read from its tables, as the
 * toys, which have none, are driven by the same objects. */
static const fb_space *as_admin(const fb_sim_world *world, uint32_t node)
{
    const fb_node *core = world->nodes[node].core;
    if (!world->config.reference || core == NULL || !world->nodes[node].running) return NULL;
    for (uint32_t i = 0; i < core->options.sizes.spaces; i++) {
        const fb_space *s = fb_space_at(core, i);
        if (!s->used || s->left || !fb_id_equal(s->id, world->spaces[0])) continue;
        bool admin = s->own != FB_NONE && fb_member_at(core, s->own)->role == FB_ROLE_ADMIN;
        return admin ? s : NULL;
    }
    return NULL;
}

/* Who is out in the eyes of an admin; UINT32_MAX: nobody. */
static uint32_t out_of(const fb_sim_world *world, uint32_t admin)
{
    const fb_space *space = as_admin(world, admin);
    for (uint32_t at = space == NULL ? 0 : space->first; at != 0;) {
        const fb_member *m = fb_member_at(world->nodes[admin].core, at - 1);
        at = m->next;
        uint32_t node = m->status == FB_MEMBER_REVOKED ? fb_sim_node_of(world, m->id) : UINT32_MAX;
        if (node != UINT32_MAX) return node;
    }
    return UINT32_MAX;
}

bool fb_sim_may_let_in(const fb_sim_world *world, uint32_t node)
{
    const fb_space *space = as_admin(world, node);
    if (space == NULL) return false;
    const fb_node *core = world->nodes[node].core;
    const struct fb_spaces *spaces = core->spaces;
    uint32_t own = 0, admins = 0;
    for (uint32_t at = space->first; at != 0; at = fb_member_at(core, at - 1)->next) {
        admins += fb_member_at(core, at - 1)->role == FB_ROLE_ADMIN;
    }
    for (uint32_t i = 0; i < spaces->standing_taken; i++) {
        const fb_standing *s = &spaces->standing[i];
        own += s->used && s->number != 1 && fb_id_equal(s->author, core->self);
    }
    return own < spaces->standing_cap / (8 * admins) &&
           spaces->cut_cap - spaces->cuts_left < spaces->cut_cap / 8;
}

/* Whoever was put out, or left, is let in again, one after the other: a core agrees when all of it
 * are members. */
void fb_sim_let_in(fb_sim_world *world)
{
    fb_sim_director *d = world->director;
    if (!d->outs || !world->config.reference) return;
    if (d->admitted_ns != 0 && world->now_ns < d->admitted_ns + SECOND) return;
    uint32_t nodes = world->config.nodes;
    for (uint32_t k = 0; k < nodes; k++) {
        uint32_t i = (d->admits + k) % nodes;
        const fb_sim_node *node = &world->nodes[i];
        if (!fb_sim_stays_admin(world, 0, i) || world->held_apart[i] || !node->running) continue;
        uint32_t out = out_of(world, i);
        if (out == UINT32_MAX) continue;
        uint8_t bytes[40];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_id(&w, world->spaces[0]);
        fb_write_id(&w, world->nodes[out].id);
        fb_write_u8(&w, fb_sim_role_of(out));
        fb_sim_request(world, i, FB_VERB_SPACE_APPROVE, 0, fb_writer_span(&w));
        d->admitted_ns = d->stirred_ns = world->now_ns;
        d->admits = i + 1; /* one that has used up its part is not asked for ever */
        return;
    }
}
