/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

#define APPROVED 1u

/* Whom each node holds for an approved member: (node, space, member) -> status now, and whether it
 * ever was approved. After a crash, on an old disk or on a copy of another's, a node may hold for a
 * member again whom it did before: what it had learned last may not have been durable. */
enum { NOW, EVER, VALUES };

typedef struct state {
    fb_sim_memo members;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->members, arena, fb_sim_pair_places(world), VALUES);
}

static uint64_t key_of(const fb_sim_world *world, fb_id space, fb_id peer, uint32_t node)
{
    bool copy = fb_sim_identity(world, node) != node;
    return fb_sim_pair_key(space, peer, node + 1 + (copy ? world->config.nodes : 0));
}

/* What machine `node` holds is what `of` may have held. */
static void doubt(fb_sim_world *world, state *s, uint32_t node, uint32_t of)
{
    for (uint32_t k = 0; k < fb_sim_space_count(world) * world->config.nodes; k++) {
        fb_id space = world->spaces[k / world->config.nodes];
        fb_id peer = world->nodes[k % world->config.nodes].home;
        const uint64_t *held = fb_sim_memo_find(&s->members, key_of(world, space, peer, of));
        if (held == NULL || held[EVER] == 0) continue;
        uint64_t *values = fb_sim_memo_at(&s->members, key_of(world, space, peer, node));
        values[NOW] = APPROVED;
        values[EVER] = 1;
    }
}

static void cloned(fb_sim_world *world, void *own, uint32_t node, uint32_t of)
{
    doubt(world, own, node, of);
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    if (!empty) doubt(world, own, node, node);
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    doubt(world, own, node, node);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    fb_sim_message m = fb_sim_message_of(fx);
    uint64_t key = key_of(world, m.space, m.peer, node);
    if (fx->a == FB_FACT_MEMBER) {
        uint64_t *values = fb_sim_memo_at(&s->members, key);
        values[NOW] = fx->b;
        if (fx->b == APPROVED) values[EVER] = 1;
        return;
    }
    const uint64_t *status = fb_sim_memo_find(&s->members, key);
    if (status != NULL && status[NOW] == APPROVED) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_senders_are_members.id,
                    "%s %s a node that it does not hold for an approved member", fb_sim_name(node),
                    fx->a == FB_FACT_DELIVERED ? "accepts a message of" : "sends a message to");
}

const fb_sim_check fb_sim_check_senders_are_members = {
    .id = "senders-are-members",
    .musts = "MP-1-4, MP-5-5, MP-6-16",
    .cost = "O(1) a message",
    .text = "messages are sent to and accepted from approved members only",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_MEMBER) | FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_DELIVERED),
    .fact = fact,
    .over = over,
    .restored = restored,
    .cloned = cloned,
};
