/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* What was unacknowledged when a link broke goes first on the next one, and after a second break it
 * is dropped. A carrier repeats within one link as often as it must. */

#define AGAIN (UINT64_C(1) << 63) /* it was given to a second link */
/* Two links stood at once and both had it as new: each copy may go to another link, once. */
#define TWICE (UINT64_C(1) << 62)

typedef struct link_state {
    uint64_t link;
    uint64_t bound_at; /* steps of the world */
    uint64_t ended_at; /* 0: not yet */
    bool new_ones;     /* something was sent on it for the first time */
} link_state;

/* Of a message, FB_SIM_KNOWN_GIVEN: the link it was given to last. */
/* Of two links at once the loser's messages move to a link that has been in use. */
static bool ended_before(const fb_sim_world *world, const link_state *links, uint64_t link,
                         uint64_t at)
{
    const link_state *l = &links[fb_sim_link_end(world, link)];
    return l->link == link && l->ended_at != 0 && l->ended_at < at;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    link_state *links = own;
    const fb_sim_told *told = world->checks->told;
    uint32_t end = told->end;
    link_state *l = &links[end];
    if (l->link != fx->b || fx->a == FB_FACT_LINK_BOUND) *l = (link_state){.link = fx->b};
    if (fx->a == FB_FACT_LINK_BOUND) l->bound_at = world->steps;
    if (fx->a == FB_FACT_LINK_ENDED) l->ended_at = world->steps;
    if (fx->a == FB_FACT_LINK_BOUND || fx->a == FB_FACT_LINK_ENDED) return;
    uint64_t *last = &told->known[FB_SIM_KNOWN_GIVEN];
    if (fx->a == FB_FACT_SENT) {
        *last = *last != 0 && (*last & ~AGAIN) != fx->b ? fx->b | TWICE : fx->b;
        l->new_ones = true;
        return;
    }
    /* A link of an external carrier stays the same link through its sessions. */
    if ((*last & TWICE) != 0) return;
    if (*last == 0 || (*last & ~AGAIN) == fx->b || world->network.connections[end / 2].carrier) {
        return;
    }
    if ((*last & AGAIN) != 0 && ORACLE(THIRD_LINK_ALLOWED, true, false)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_redelivered_once.id,
                        "%s gives a message to a third link", fb_sim_name(node));
    } else if (l->new_ones && ended_before(world, links, *last & ~AGAIN, l->bound_at)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_redelivered_once.id,
                        "%s repeats an old message after new ones", fb_sim_name(node));
    }
    *last = fx->b | AGAIN;
}

const fb_sim_check fb_sim_check_redelivered_once = {
    .id = "redelivered-once",
    .musts = "FM-8.1-1, FM-8.3-5, MP-6-7, MP-6-8, MP-7-23",
    .cost = "O(1) a message",
    .text = "unacknowledged messages go first on the next link, and to no third one",
    .of_end_bytes = sizeof(link_state),
    .facts = FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) |
             FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_LINK_ENDED),
    .fact = fact,
};
