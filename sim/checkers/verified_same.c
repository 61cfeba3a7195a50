/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/database.h"
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* Two nodes that hold the same changes of a collection and are not in doubt have the same
 * fingerprint of it, at any time: one of them asks the other, while all else goes on. Nothing is
 * damaged here, so that they differ is never a true answer. DESIGN 3.1, Anti-entropy. */

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || client->operation != FB_SIM_OP_VERIFY || fx->b != FB_OK) return;
    uint32_t other = client->items % world->config.nodes;
    if (node == world->traitor || other == world->traitor) return;
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    if (fb_read_u8(&r) != FB_VERIFY_DIFFERS) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_verified_same.id,
                    "%s and %s have the same changes and other records", fb_sim_name(node),
                    fb_sim_name(other));
}

const fb_sim_check fb_sim_check_verified_same = {
    .id = "verified-same",
    .musts = "DESIGN 3.1",
    .cost = "O(1) a reply",
    .text = "who holds the same changes holds the same records, whenever it is asked",
    .reply = reply,
};
