/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* A node remembers so many ids of a sender and no more. Of one more message than that, accepted
 * in one incarnation, it has forgotten one: its floor must cover the oldest of them, or a copy of
 * that would be accepted again. */

#define IDS_MAX 80u
#define NODES   16u /* in larger worlds the rings would take too much memory */
#define LOOK_AT 8u  /* one message in so many */

typedef struct sender {
    int64_t times[IDS_MAX]; /* of the last accepted ones, a ring */
    uint64_t count;
    int64_t floor_ms;
} sender;

typedef struct state {
    sender *senders; /* (space * NODES + receiver) * NODES + sender */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    if (world->config.nodes > NODES) return;
    s->senders = fb_arena_take(arena, (size_t)FB_SIM_SPACES * NODES * NODES, sizeof *s->senders);
}

static sender *sender_of(const state *s, uint32_t space, uint32_t node, uint32_t peer)
{
    return &s->senders[(size_t)(space * NODES + node) * NODES + peer];
}

static void look(fb_sim_world *world, const sender *from, uint32_t node, uint32_t peer,
                 uint32_t kept)
{
    int64_t oldest = INT64_MAX;
    for (uint32_t i = 0; i < kept; i++) {
        int64_t time_ms = from->times[(from->count - 1 - i) % IDS_MAX];
        if (time_ms < oldest) oldest = time_ms;
    }
    if (oldest <= from->floor_ms || ORACLE(NEWEST_FOR_OLDEST, false, true)) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_floor_covers.id,
                    "%s forgot a message of %s that its floor does not cover", fb_sim_name(node),
                    fb_sim_name(peer));
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    const fb_sim_told *told = world->checks->told;
    uint32_t peer = told->peer;
    uint32_t space = fb_sim_space_of(world, told->message.space);
    if (s->senders == NULL || peer == UINT32_MAX || space == FB_SIM_SPACES) return;
    sender *from = sender_of(s, space, node, peer);
    if (fx->a == FB_FACT_FLOOR) {
        /* Set back (P-5): what was forgotten before counts as new. */
        if ((int64_t)fx->b < from->floor_ms) from->count = 0;
        from->floor_ms = (int64_t)fx->b;
        return;
    }
    uint64_t sent = told->sent_ms;
    uint32_t kept = world->config.sizes.seen_ids + 2;
    if (sent == 0 || world->liars[peer] || kept > IDS_MAX) return;
    from->times[from->count++ % IDS_MAX] = (int64_t)sent;
    if (from->count >= kept && from->count % LOOK_AT == 0) look(world, from, node, peer, kept);
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    state *s = own;
    (void)world;
    for (uint32_t i = 0; i < FB_SIM_SPACES * NODES && s->senders != NULL; i++) {
        *sender_of(s, i / NODES, node, i % NODES) = (sender){.floor_ms = INT64_MIN};
    }
}

const fb_sim_check fb_sim_check_floor_covers = {
    .id = "floor-covers-forgotten",
    .musts = "MP-5-15",
    .cost = "O(ids kept) in 8 messages",
    .text = "a sender's floor covers every message whose id was forgotten",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_FLOOR) | FB_SIM_FACT(FB_FACT_DELIVERED),
    .fact = fact,
    .over = over,
};
