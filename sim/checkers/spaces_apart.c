/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

typedef struct link_state {
    uint64_t link;
    fb_id space;
    fb_id peer;
} link_state;

static void change(fb_sim_world *world, uint32_t node, const fb_effect *fx);

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    if (fx->a == FB_FACT_WRITTEN || fx->a == FB_FACT_APPLIED) {
        change(world, node, fx);
        return;
    }
    link_state *links = own;
    const fb_sim_message *m = &world->checks->told->message;
    link_state *l = &links[world->checks->told->end];
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

/* What is applied to a record, or answered of one, is of a space that the node is a member of. */
static void change(fb_sim_world *world, uint32_t node, const fb_effect *fx)
{
    uint32_t record = fb_sim_record_of(world, fb_sim_change_of(fx).record);
    if (record == UINT32_MAX) return;
    uint32_t space = fb_sim_space_of_record(world, record);
    if (fb_sim_is_member(world, space, fb_sim_identity(world, node))) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_spaces_apart.id,
                    "%s has a change of r%02u, whose space it is no member of", fb_sim_name(node),
                    (unsigned)record);
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || fx->b != FB_OK) return;
    uint32_t space = fb_sim_op_space(world, client->operation, client->record);
    if (fb_sim_is_member(world, space, fb_sim_identity(world, node))) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_spaces_apart.id,
                    "%s answers of r%02u, whose space it is no member of", fb_sim_name(node),
                    (unsigned)client->record);
}

const fb_sim_check fb_sim_check_spaces_apart = {
    .id = "spaces-apart",
    .musts = "FM-3.1-3, FM-6.2-2, FM-9-2, FM-9-3, FM-11-4, FM-11-10, MP-5-2, MP-5-3, "
             "MP-7-1",
    .cost = "O(1) a message",
    .text = "messages travel on a bound link of their space alone, changes reach its members alone",
    .of_end_bytes = sizeof(link_state),
    .facts = FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_SENT) |
             FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_DELIVERED) |
             FB_SIM_FACT(FB_FACT_WRITTEN) | FB_SIM_FACT(FB_FACT_APPLIED),
    .fact = fact,
    .reply = reply,
};
