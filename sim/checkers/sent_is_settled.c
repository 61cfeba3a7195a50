/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* At least once: what was given to a link is delivered, refused, or dropped with a reason, unless
 * its sender's incarnation ends. Looked at when all is quiet, on links that stand. */

#define WAITING 512u
#define SECOND  UINT64_C(1000000000)
#define SETTLE_NS                                                                                  \
    (20 * SECOND) /* of a link, and of a message: several repetitions on a carrier                 \
                   */

typedef struct message {
    uint64_t key;
    uint64_t sent_ns;
    uint32_t target;
    uint32_t space;
} message;

typedef struct node_state {
    message *waiting; /* unordered */
    uint32_t count;
} node_state;

typedef struct link_state {
    uint64_t link;
    uint32_t peer; /* UINT32_MAX: nobody, or in no space that is known */
    uint32_t space;
} link_state;

typedef struct state {
    node_state *nodes;
    link_state *links;  /* by end */
    uint64_t *bound_ns; /* (space * nodes + from) * nodes + to; 0: no link */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    uint32_t nodes = world->config.nodes;
    s->nodes = fb_arena_take(arena, nodes, sizeof *s->nodes);
    s->links = fb_arena_take(arena, (size_t)world->network.connection_count * 2, sizeof *s->links);
    s->bound_ns = fb_arena_take(arena, (size_t)FB_SIM_SPACES * nodes * nodes, sizeof *s->bound_ns);
    for (uint32_t i = 0; i < nodes; i++) {
        message *waiting = fb_arena_take(arena, WAITING, sizeof *waiting);
        if (s->nodes != NULL) s->nodes[i].waiting = waiting;
    }
}

static uint64_t *bound_of(const fb_sim_world *world, const state *s, uint32_t space, uint32_t from,
                          uint32_t to)
{
    size_t nodes = world->config.nodes;
    return &s->bound_ns[(space * nodes + from) * nodes + to];
}

static void links_change(fb_sim_world *world, state *s, uint32_t node, const fb_effect *fx)
{
    link_state *l = &s->links[fb_sim_link_end(world, fx->b)];
    if (fx->a == FB_FACT_LINK_BOUND) {
        const fb_sim_told *told = world->checks->told;
        *l = (link_state){fx->b, told->peer, fb_sim_space_of(world, told->message.space)};
        if (l->space == FB_SIM_SPACES) l->peer = UINT32_MAX;
        if (l->peer != UINT32_MAX) *bound_of(world, s, l->space, node, l->peer) = world->now_ns;
    } else if (l->link == fx->b && l->peer != UINT32_MAX) {
        *bound_of(world, s, l->space, node, l->peer) = 0;
    }
}

static void settled(node_state *n, uint64_t key)
{
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->waiting[i].key == key) n->waiting[i--] = n->waiting[--n->count];
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    if (fx->a == FB_FACT_LINK_BOUND || fx->a == FB_FACT_LINK_ENDED) {
        links_change(world, s, node, fx);
        return;
    }
    uint32_t peer = world->checks->told->peer;
    uint32_t space = fb_sim_space_of(world, world->checks->told->message.space);
    if (peer == UINT32_MAX || space == FB_SIM_SPACES) return;
    bool comes = fx->a == FB_FACT_DELIVERED || fx->a == FB_FACT_REFUSED;
    uint64_t key = world->checks->told->key;
    if (fx->a != FB_FACT_SENT) {
        settled(&s->nodes[comes ? peer : node], key);
        return;
    }
    node_state *n = &s->nodes[node];
    if (n->count < ORACLE(NOTHING_WAITS, WAITING, 0u))
        n->waiting[n->count++] = (message){key, world->now_ns, peer, space};
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    state *s = own;
    s->nodes[node].count = 0;
    for (uint32_t space = 0; space < FB_SIM_SPACES; space++) {
        memset(bound_of(world, s, space, node, 0), 0, world->config.nodes * sizeof(uint64_t));
    }
}

static void round_end(fb_sim_world *world, void *own)
{
    state *s = own;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        node_state *n = &s->nodes[i];
        if (world->liars[i]) n->count = 0; /* its messages are what it makes of them */
        for (uint32_t k = 0; k < n->count && !world->held_apart[i]; k++) {
            const message *m = &n->waiting[k];
            uint64_t bound = *bound_of(world, s, m->space, i, m->target);
            if (world->held_apart[m->target] || bound == 0) continue;
            if (world->now_ns < bound + SETTLE_NS || world->now_ns < m->sent_ns + SETTLE_NS) {
                continue;
            }
            fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_sent_is_settled.id,
                            "%s sent a message to %s %llu s ago, and nothing became of it",
                            fb_sim_name(i), fb_sim_name(m->target),
                            (unsigned long long)((world->now_ns - m->sent_ns) / SECOND));
            return;
        }
    }
}

const fb_sim_check fb_sim_check_sent_is_settled = {
    .id = "sent-is-settled",
    .musts = "FM-8.1-1, MP-5-19, MP-7-27",
    .cost = "O(waiting) a message",
    .text = "what was given to a link is delivered, refused or dropped for a reason",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_DELIVERED) |
             FB_SIM_FACT(FB_FACT_REFUSED) | FB_SIM_FACT(FB_FACT_DROPPED) |
             FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_LINK_ENDED),
    .fact = fact,
    .over = over,
    .round = round_end,
};
