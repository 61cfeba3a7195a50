/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/let_in.h"

#include "protocol/base/cursor.h"
#include "protocol/space/recovery.h"
#include "protocol/space/standing.h"
#include "sim/workload/director.h"

#define SECOND UINT64_C(1000000000)

uint8_t fb_sim_role_of(uint32_t node)
{
    return node % 4 == 3 ? 2 : 1;
}

/* The first space at a node; NULL: it has none, or does not run. Read from its tables, as the toys,
 * which have none, are driven by the same objects. */
static const fb_space *first_space(const fb_sim_world *world, uint32_t node)
{
    const fb_node *core = world->nodes[node].core;
    if (!world->config.reference || core == NULL || !world->nodes[node].running) return NULL;
    for (uint32_t i = 0; i < core->options.sizes.spaces; i++) {
        const fb_space *s = fb_space_at(core, i);
        if (s->used && !s->left && fb_id_equal(s->id, world->spaces[0])) return s;
    }
    return NULL;
}

/* NULL also where it is no admin. */
static const fb_space *as_admin(const fb_sim_world *world, uint32_t node)
{
    const fb_space *s = first_space(world, node);
    if (s == NULL || s->own == FB_NONE) return NULL;
    return fb_member_at(world->nodes[node].core, s->own)->role == FB_ROLE_ADMIN ? s : NULL;
}

bool fb_sim_may_write(const fb_sim_world *world, uint32_t node, fb_id member)
{
    const fb_space *s = first_space(world, node);
    for (uint32_t at = s == NULL ? 0 : s->first; at != 0;) {
        const fb_member *m = fb_member_at(world->nodes[node].core, at - 1);
        at = m->next;
        if (!fb_id_equal(m->id, member)) continue;
        return m->status == FB_MEMBER_APPROVED && m->role != FB_ROLE_READER;
    }
    return false;
}

bool fb_sim_is_reader(const fb_sim_world *world, uint32_t node)
{
    const fb_space *s = first_space(world, node);
    if (s == NULL || s->own == FB_NONE) return false;
    const fb_member *m = fb_member_at(world->nodes[node].core, s->own);
    return m->status == FB_MEMBER_APPROVED && m->role == FB_ROLE_READER;
}

bool fb_sim_has_reader(const fb_sim_world *world)
{
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        const fb_space *s = first_space(world, i);
        for (uint32_t at = s == NULL ? 0 : s->first; at != 0;) {
            const fb_member *m = fb_member_at(world->nodes[i].core, at - 1);
            at = m->next;
            if (m->status == FB_MEMBER_APPROVED && m->role == FB_ROLE_READER) return true;
        }
    }
    return false;
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

fb_b32 fb_sim_recovery_key(const fb_sim_world *world, uint32_t space)
{
    const fb_sim_node *creator = &world->nodes[fb_sim_creator(world, space)];
    return fb_sim_provider_public(&creator->provider, FB_SIM_KEY_RECOVERY);
}

/* The text that the key signs, written here once more (docs/WIRE-FORMATS.md): the toys link no
 * core. */
static void sign_recovery(const fb_sim_world *world, fb_statement *statement)
{
    static const char label[] = "faberio-recovery-v1"; /* with its zero */
    uint8_t text[FB_RECOVERY_TEXT_BYTES];
    fb_writer w = fb_writer_of(text, sizeof text);
    fb_write_bytes(&w, (const uint8_t *)label, sizeof label);
    fb_write_id(&w, world->spaces[0]);
    fb_write_b32(&w, statement->key);
    fb_write_u8(&w, statement->number);
    fb_write_u32(&w, statement->turn);
    const fb_sim_node *creator = &world->nodes[fb_sim_creator(world, 0)];
    fb_sim_provider_recover(&creator->provider, fb_writer_span(&w), &statement->proof);
}

/* The next turn, and the next odd number but the one that counts, as a node has them. */
static bool next_recovery(const fb_node *core, const fb_space *space, fb_id of, fb_statement *out)
{
    const struct fb_spaces *spaces = core->spaces;
    uint32_t used = 0, top = 1;
    for (uint32_t i = 0; i < spaces->standing_taken; i++) {
        const fb_standing *s = &spaces->standing[i];
        if (!s->used) continue;
        used++;
        const fb_member *m = fb_member_at(core, s->member);
        if (fb_space_at(core, m->space) != space) continue;
        if (fb_standing_is_recovery(s) && s->claim >= out->turn) out->turn = (uint32_t)s->claim;
        if (fb_id_equal(m->id, of) && s->stands && s->number > top) top = s->number;
    }
    out->turn++;
    out->number = (uint8_t)(top % 2 == 0 ? top + 1 : top + 2);
    return used < spaces->standing_cap / 2 && top < FB_STANDINGS_MAX / 4;
}

bool fb_sim_recover(fb_sim_world *world, uint32_t at, uint32_t node, bool forged)
{
    const fb_node *core = world->nodes[at].core;
    if (!world->config.reference || core == NULL || !world->nodes[at].running) return false;
    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    statement.key = fb_sim_provider_public(&world->nodes[node].provider, FB_SIM_KEY_IDENTITY);
    const fb_space *space = NULL;
    for (uint32_t i = 0; i < core->options.sizes.spaces && space == NULL; i++) {
        const fb_space *s = fb_space_at(core, i);
        if (s->used && !s->left && fb_id_equal(s->id, world->spaces[0])) space = s;
    }
    if (space == NULL || !next_recovery(core, space, world->nodes[node].id, &statement)) {
        return false;
    }
    if (forged) statement.turn = FB_SIM_TURN_FORGED;
    sign_recovery(world, &statement);
    if (forged) statement.proof.b[0] ^= 1;
    uint8_t bytes[16 + 16 + 1 + 4 + 64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, world->spaces[0]);
    fb_write_id(&w, world->nodes[node].id);
    fb_write_u8(&w, statement.number);
    fb_write_u32(&w, statement.turn);
    fb_write_bytes(&w, statement.proof.b, sizeof statement.proof.b);
    fb_sim_request(world, at, FB_VERB_SPACE_RECOVER, 0, fb_writer_span(&w));
    return true;
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
