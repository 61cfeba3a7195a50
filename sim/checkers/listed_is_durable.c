/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/checkers/standing.h"
#include "sim/workload/workload.h"

/* What a node tells of members follows from statements that are in its store: who is told to be a
 * member, and what it may do, does not lose that with a crash. */

typedef struct state {
    fb_sim_standing *standing;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    state local;
    state *s = own != NULL ? own : &local;
    s->standing = fb_arena_take(arena, 1, fb_sim_standing_bytes());
}

enum { APPROVED = 1, REVOKED = 3 };

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || client->operation != FB_SIM_OP_MEMBERS || fx->b != FB_OK) return;
    uint32_t at = fb_sim_op_space(world, client->operation, client->record);
    fb_id space = world->spaces[at], creator = world->nodes[fb_sim_creator(world, at)].home;
    const fb_sim_store *store = &world->nodes[node].store;
    uint32_t local = fb_sim_standing_local(store, space);
    if (!fb_sim_standing_read(s->standing, store, local, space, creator)) return;
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    for (uint32_t left = fb_read_u16(&r); left > 0 && !r.failed; left--) {
        fb_id member = fb_read_id(&r);
        fb_read_b32(&r);
        uint8_t status = fb_read_u8(&r), role = fb_read_u8(&r);
        bool known;
        uint8_t stored = fb_sim_standing_role(s->standing, member, &known);
        uint32_t of = fb_sim_node_of(world, member);
        /* Of others it may know by what they showed: a link is all that they get by it. */
        bool self = of == fb_sim_identity(world, node);
        if ((status != APPROVED && status != REVOKED) || fb_id_equal(member, creator)) continue;
        if (known ? role == ORACLE(LISTED_ROLE_FIXED, stored, 1) : !self) continue;
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_listed_is_durable.id,
                        "%s tells that %s has role %u, its store comes to %u", fb_sim_name(node),
                        of == UINT32_MAX ? "somebody" : fb_sim_name(of), (unsigned)role,
                        (unsigned)stored);
        return;
    }
}

const fb_sim_check fb_sim_check_listed_is_durable = {
    .id = "listed-is-durable",
    .musts = "DESIGN 2 hold-back",
    .cost = "O(statements) a list of members",
    .text = "who is told to be a member, and as what, is so after a crash as well",
    .state_bytes = sizeof(state),
    .layout = layout,
    .reply = reply,
};
