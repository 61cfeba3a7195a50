/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

static bool is_stranger(fb_sim_world *world, uint32_t node, uint64_t request)
{
    const fb_sim_client *client = fb_sim_client_of(world, node, request);
    return client != NULL &&
           client->operation == ORACLE(STRANGER_UNKNOWN, FB_SIM_OP_STRANGER, FB_SIM_OPS);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    if (fx->b == 0 || !is_stranger(world, node, fx->b)) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_strangers_refused.id,
                    "%s writes for an application that may not use the space", fb_sim_name(node));
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    if (fx->b == FB_ERR_NOT_AUTHORISED || !is_stranger(world, node, fx->a)) return;
    if (fx->b == FB_ERR_AGAIN || fx->b == FB_ERR_BUSY) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_strangers_refused.id,
                    "%s answers a stranger's write with %s", fb_sim_name(node),
                    fb_error_name((fb_error)fx->b));
}

const fb_sim_check fb_sim_check_strangers_refused = {
    .id = "strangers-refused",
    .musts = "FM-10-1, FM-10-2, FM-11-5, MP-6-13",
    .cost = "O(1) a request",
    .text = "an application without authorisation for a space writes nothing and causes no message",
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN),
    .fact = fact,
    .reply = reply,
};
