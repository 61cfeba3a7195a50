/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* What a receiver refuses because of the message itself, not because of what came before it, of a
 * clock, a rate or news of membership. */
static bool is_about_form(fb_error reason)
{
    return (reason >= FB_ERR_TOO_LARGE && reason <= FB_ERR_NOT_ORIGIN) ||
           reason == ORACLE(SIGNATURE_TRUSTED, FB_ERR_BAD_SIGNATURE, FB_ERR_TOO_LARGE) ||
           reason == FB_ERR_WRONG_TARGET || reason == FB_ERR_NOT_SUBSCRIBED;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    if (fx->a != FB_FACT_REFUSED || !is_about_form((fb_error)fx->c)) return;
    fb_sim_message m = fb_sim_message_of(fx);
    uint32_t sender = fb_sim_node_of(world, m.peer);
    if (sender == UINT32_MAX || world->liars[sender]) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_honest_well_formed.id,
                    "%s refuses a message of %s: %s", fb_sim_name(node), fb_sim_name(sender),
                    fb_error_name((fb_error)fx->c));
}

const fb_sim_check fb_sim_check_honest_well_formed = {
    .id = "honest-well-formed",
    .musts = "FM-5.1-1, FM-5.3-2, FM-5.4-1, FM-5.4-2, FM-7.1-1, FM-9-1, FM-11-1, "
             "MP-2-1, MP-6-20",
    .cost = "O(1) a message",
    .text = "no message of a member that keeps the rules is refused for its form or its signature",
    .facts = FB_SIM_FACT(FB_FACT_DELIVERED) | FB_SIM_FACT(FB_FACT_REFUSED),
    .fact = fact,
};
