/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* A delivered message is recorded in the write set that is built next. Its number may be
 * acknowledged when that set is durable (P-6). */

#define WAITING 256u

typedef struct delivery {
    uint64_t link;
    uint64_t number;
    uint64_t w; /* 0: not sealed yet */
} delivery;

typedef struct node_state {
    delivery waiting[WAITING]; /* a ring, oldest first */
    uint32_t first;
    uint32_t count;
    uint64_t durable;
} node_state;

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    node_state *n = &((node_state *)own)[node];
    if (fx->a == FB_FACT_DELIVERED && ORACLE(DELIVERY_UNSEEN, false, true)) return;
    if (fx->a == FB_FACT_DELIVERED) {
        if (n->count == WAITING) {
            n->first = (n->first + 1) % WAITING;
            n->count--;
        }
        n->waiting[(n->first + n->count++) % WAITING] = (delivery){fx->b, fx->c, 0};
        return;
    }
    if (fx->a == FB_FACT_LINK_BOUND) {
        for (uint32_t i = 0; i < n->count; i++) {
            delivery *d = &n->waiting[(n->first + i) % WAITING];
            if (d->link == fx->b) d->link = 0; /* of a session that is over */
        }
        return;
    }
    if (fx->a == FB_FACT_SEALED) {
        for (uint32_t i = n->count; i-- > 0;) {
            delivery *d = &n->waiting[(n->first + i) % WAITING];
            if (d->w != 0) break;
            d->w = fx->b;
        }
        return;
    }
    for (uint32_t i = 0; i < n->count; i++) {
        const delivery *d = &n->waiting[(n->first + i) % WAITING];
        if (d->link != fx->b || d->number > fx->c - ORACLE(ACK_EXCLUSIVE, 0u, 1u)) continue;
        if (d->w != 0 && d->w <= n->durable) continue;
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_durable_before_acked.id,
                        "%s acknowledges number %llu, whose record is in write set %llu; durable "
                        "is %llu",
                        fb_sim_name(node), (unsigned long long)d->number, (unsigned long long)d->w,
                        (unsigned long long)n->durable);
        return;
    }
}

static void event(fb_sim_world *world, void *own, uint32_t node, const fb_event *ev)
{
    node_state *n = &((node_state *)own)[node];
    if (ev->c != FB_OK || ev->a != world->nodes[node].incarnation) return;
    if (ev->b > n->durable) n->durable = ev->b;
    while (n->count != 0) {
        const delivery *d = &n->waiting[n->first];
        if (d->w == 0 || d->w > n->durable) break;
        n->first = (n->first + 1) % WAITING;
        n->count--;
    }
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    node_state *n = &((node_state *)own)[node];
    n->count = 0;
    n->durable = 0;
}

const fb_sim_check fb_sim_check_durable_before_acked = {
    .id = "durable-before-acked",
    .musts = "MP-5-11, MP-6-6",
    .cost = "O(waiting) an acknowledgement",
    .text = "a message is acknowledged only when the record of its id is durable",
    .of_node_bytes = sizeof(node_state),
    .facts = FB_SIM_FACT(FB_FACT_DELIVERED) | FB_SIM_FACT(FB_FACT_SEALED) |
             FB_SIM_FACT(FB_FACT_ACKED) | FB_SIM_FACT(FB_FACT_LINK_BOUND),
    .fact = fact,
    .events = UINT64_C(1) << FB_EV_WRITE_DONE,
    .event = event,
    .over = over,
};
