/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

typedef struct link_state {
    uint64_t link;
    fb_id space;
    fb_id peer;
} link_state;

typedef struct state {
    link_state *links;
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
    const fb_sim_message *m = &world->checks->told->message;
    link_state *l = &s->links[world->checks->told->end];
    if (fx->a == FB_FACT_LINK_BOUND) {
        *l = (link_state){fx->b, m->space, m->peer};
        return;
    }
    const char *what = fx->a == FB_FACT_DELIVERED ? "accepts" : "sends";
    if (l->link != fx->b) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_spaces_apart.id,
                        "%s %s a message on a link that is not bound", fb_sim_name(node), what);
    } else if (!fb_id_equal(l->space, ORACLE(SPACE_UNREAD, m->space, l->space))) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_spaces_apart.id,
                        "%s %s a message of another space", fb_sim_name(node), what);
    } else if (!fb_id_equal(l->peer, m->peer)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_spaces_apart.id,
                        "%s %s a message of somebody else on a link", fb_sim_name(node), what);
    }
}

const fb_sim_check fb_sim_check_spaces_apart = {
    .id = "spaces-apart",
    .musts = "FM-3.1-3, FM-6.2-2, FM-9-2, FM-9-3, FM-11-4, FM-11-10, MP-5-2, MP-5-3, "
             "MP-7-1",
    .cost = "O(1) a message",
    .text = "messages travel only on a bound link of their space, and never through a third node",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_SENT) |
             FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_DELIVERED),
    .fact = fact,
};
