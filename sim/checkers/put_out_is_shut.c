/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* Whom a node holds to be put out it says nothing to any more, and takes nothing of it, from the
 * step on in which it learns that this is durable: its links with it end in that step. */

#define REVOKED 3u

typedef enum phase { MEMBER, TOLD, SEALED, SHUT } phase;

typedef struct standing {
    uint8_t phase;
    uint64_t w;    /* SEALED: the set that says so */
    uint64_t step; /* SHUT: in which its completion came */
} standing;

typedef struct state {
    standing *of;    /* node * nodes + peer, in the first space */
    uint32_t *peers; /* by end of a connection: who is there, from 1; 0: nobody, or another space */
    uint64_t *links; /* by end: its number */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    uint32_t nodes = world->config.nodes, ends = world->network.connection_count * 2;
    s->of = fb_arena_take(arena, (size_t)nodes * nodes, sizeof *s->of);
    s->peers = fb_arena_take(arena, ends, sizeof *s->peers);
    s->links = fb_arena_take(arena, ends, sizeof *s->links);
}

static void sealed(const fb_sim_world *world, state *s, uint32_t node, uint64_t w)
{
    uint32_t nodes = world->config.nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        standing *of = &s->of[node * nodes + i];
        if (of->phase != TOLD) continue;
        of->phase = SEALED;
        of->w = w;
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    uint32_t nodes = world->config.nodes;
    if (fx->a == FB_FACT_SEALED) {
        sealed(world, s, node, fx->b);
        return;
    }
    fb_sim_message m = fb_sim_message_of(fx);
    if (fx->a == FB_FACT_MEMBER) {
        uint32_t peer = fb_sim_node_of(world, m.peer);
        if (peer == UINT32_MAX || !fb_id_equal(m.space, world->spaces[0])) return;
        s->of[node * nodes + peer].phase = fx->b == REVOKED ? TOLD : MEMBER;
        return;
    }
    uint32_t end = fb_sim_link_end(world, fx->b);
    if (fx->a == FB_FACT_LINK_BOUND) {
        uint32_t peer = fb_sim_node_of(world, m.peer);
        bool first = peer != UINT32_MAX && fb_id_equal(m.space, world->spaces[0]);
        s->peers[end] = first ? peer + 1 : 0;
        s->links[end] = fx->b;
        return;
    }
    if (s->links[end] != fx->b || s->peers[end] == 0) return;
    const standing *of = &s->of[node * nodes + s->peers[end] - 1];
    if (of->phase != SHUT || of->step == world->steps) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_put_out_is_shut.id,
                    "%s goes on with %s, which it holds to be put out", fb_sim_name(node),
                    fb_sim_name(s->peers[end] - 1));
}

static void event(fb_sim_world *world, void *own, uint32_t node, const fb_event *ev)
{
    const state *s = own;
    uint32_t nodes = world->config.nodes;
    if (ev->c != FB_OK || ev->a != world->nodes[node].incarnation) return;
    for (uint32_t i = 0; i < nodes; i++) {
        standing *of = &s->of[node * nodes + i];
        if (of->phase != SEALED || of->w > ev->b) continue;
        of->phase = SHUT;
        of->step = world->steps;
    }
}

/* What it learned last may not have been durable; it says anew whom it holds for what. */
static void over(fb_sim_world *world, void *own, uint32_t node)
{
    const state *s = own;
    uint32_t nodes = world->config.nodes;
    memset(&s->of[node * nodes], 0, nodes * sizeof *s->of);
}

const fb_sim_check fb_sim_check_put_out_is_shut = {
    .id = "put-out-is-shut",
    .musts = "DESIGN 3.1",
    .cost = "O(nodes) a write set",
    .text = "links with a member that was put out end when that is durable, and carry nothing more",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_MEMBER) | FB_SIM_FACT(FB_FACT_SEALED) |
             FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_ANNOUNCED) |
             FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) |
             FB_SIM_FACT(FB_FACT_DELIVERED) | FB_SIM_FACT(FB_FACT_ACKED),
    .fact = fact,
    .events = UINT64_C(1) << FB_EV_WRITE_DONE,
    .event = event,
    .over = over,
};
