/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/feeds.h"

/* Requests that are out, by node. */

#define OUT 64u /* more than any node takes at once */

typedef struct node_state {
    uint64_t out[OUT];
    uint32_t count;
} node_state;

static void event(fb_sim_world *world, void *own, uint32_t node, const fb_event *ev)
{
    node_state *n = &((node_state *)own)[node];
    if (ev->kind == FB_EV_REQUEST_CANCEL) {
        /* No reply follows. */
        for (uint32_t i = 0; i < n->count; i++) {
            if (n->out[i] == ev->a) n->out[i] = n->out[--n->count];
        }
        return;
    }
    if (n->count == OUT) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_replies_once.id,
                        "%s has %u requests open", fb_sim_name(node), (unsigned)n->count);
        return;
    }
    n->out[n->count++] = ev->a;
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    node_state *n = &((node_state *)own)[node];
    uint32_t i = 0;
    while (i < n->count && n->out[i] != fx->a) i++;
    if (i == n->count) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_replies_once.id,
                        "%s answers request %llu, which is not open", fb_sim_name(node),
                        (unsigned long long)fx->a);
        return;
    }
    if (fx->c == 0) n->out[i] = n->out[--n->count];
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    ((node_state *)own)[node] = (node_state){.count = 0};
}

/* Healed and quiet: nobody waits any more. */
static void round_end(fb_sim_world *world, void *own)
{
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        const node_state *n = &((node_state *)own)[i];
        uint32_t waiting = n->count;
        for (uint32_t k = 0; k < n->count; k++) {
            waiting -= fb_sim_feed_of(world, i, n->out[k]) != NULL; /* it has no end of its own */
        }
        if (waiting == 0 || world->held_apart[i]) continue;
        if (ORACLE(WAITING_FORGIVEN, false, true)) continue;
        fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_replies_once.id,
                        "%s has not answered %u requests", fb_sim_name(i), (unsigned)waiting);
        return;
    }
}

const fb_sim_check fb_sim_check_replies_once = {
    .id = "replies-once",
    .musts = "DESIGN 2",
    .cost = "O(1) a request",
    .text = "every request gets exactly one last reply, unless its incarnation ends or its caller "
            "leaves",
    .of_node_bytes = sizeof(node_state),
    .events = UINT64_C(1) << FB_EV_REQUEST | UINT64_C(1) << FB_EV_REQUEST_CANCEL,
    .event = event,
    .reply = reply,
    .over = over,
    .round = round_end,
};
