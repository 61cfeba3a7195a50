/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* What a link redelivers of an earlier one goes out in the order in which that one sent it. */

typedef struct link_state {
    uint64_t link;
    uint64_t number; /* the highest yet: a carrier repeats lower ones */
    uint32_t place;  /* of the last redelivered one, in the order of sending */
    uint32_t from;   /* the link it was sent on, as far as 32 bits tell */
} link_state;

/* Of a message, FB_SIM_KNOWN_PLACE: its place, the link in the low half; 0: not sent yet. */
#define SEVERAL UINT64_C(1)

typedef struct state {
    link_state *links;
    uint32_t sent;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    s->links = fb_arena_take(arena, (size_t)world->network.connection_count * 2, sizeof *s->links);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    const fb_sim_told *told = world->checks->told;
    link_state *l = &s->links[told->end];
    if (l->link != fx->b || fx->a == FB_FACT_LINK_BOUND) *l = (link_state){.link = fx->b};
    if (fx->a == FB_FACT_LINK_BOUND) return;
    uint64_t *known = &told->known[FB_SIM_KNOWN_PLACE];
    bool repeated = fx->c <= l->number;
    if (!repeated) l->number = fx->c;
    if (fx->a == FB_FACT_SENT) {
        /* Two links at once may carry one message: then it has no one place. */
        uint64_t place = (uint64_t)++s->sent << 32 | (uint32_t)fx->b;
        *known = *known == 0 ? place : SEVERAL;
        return;
    }
    if (repeated || *known <= SEVERAL) return;
    uint32_t place = (uint32_t)(*known >> 32), from = (uint32_t)*known;
    if (from == l->from && ORACLE(ORDER_REVERSED, place<l->place, place> l->place)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_resent_in_order.id,
                        "%s redelivers a message after one that it sent later", fb_sim_name(node));
        return;
    }
    l->place = place;
    l->from = from;
}

const fb_sim_check fb_sim_check_resent_in_order = {
    .id = "resent-in-order",
    .musts = "FM-8.2-2, MP-6-7",
    .cost = "O(1) a message",
    .text = "unacknowledged messages are redelivered in the order in which they were sent",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_LINK_BOUND),
    .fact = fact,
};
