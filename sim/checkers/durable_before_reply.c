/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

#define WRITTEN 64u

typedef struct node_state {
    uint64_t request[WRITTEN]; /* executed writes, by request modulo the table */
    uint64_t w[WRITTEN];
    uint64_t durable;
} node_state;

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)world;
    node_state *n = &((node_state *)own)[node];
    n->request[fx->b % WRITTEN] = fx->b;
    n->w[fx->b % WRITTEN] = fx->c;
}

static void event(fb_sim_world *world, void *own, uint32_t node, const fb_event *ev)
{
    node_state *n = &((node_state *)own)[node];
    if (ev->c != FB_OK || ev->a != world->nodes[node].incarnation) return;
    if (ev->b > n->durable) n->durable = ev->b;
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    node_state *n = &((node_state *)own)[node];
    if (fx->b != FB_OK || fx->c != 0 || n->request[fx->a % WRITTEN] != fx->a || fx->a == 0) return;
    if (n->w[fx->a % WRITTEN] <= n->durable + ORACLE(REPLY_ONE_SET_EARLY, 0u, 1u)) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_durable_before_reply.id,
                    "%s answers a write of set %llu; durable is %llu", fb_sim_name(node),
                    (unsigned long long)n->w[fx->a % WRITTEN], (unsigned long long)n->durable);
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    ((node_state *)own)[node] = (node_state){.durable = 0};
}

const fb_sim_check fb_sim_check_durable_before_reply = {
    .id = "durable-before-reply",
    .musts = "DESIGN 2 hold-back",
    .cost = "O(1) a write",
    .text = "a write is answered with success only when its write set is durable",
    .of_node_bytes = sizeof(node_state),
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN),
    .fact = fact,
    .events = UINT64_C(1) << FB_EV_WRITE_DONE,
    .event = event,
    .reply = reply,
    .over = over,
};
