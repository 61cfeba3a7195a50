/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* A write on condition of an etag that its node answered with success has replaced the state that
 * the etag names; so of all clients of a node that read it, one at most may succeed. A store that
 * was set back may be in that state again. */

typedef struct state {
    fb_sim_memo used; /* (node, record, etag) -> 1 */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    (void)world;
    fb_sim_memo_init(&s->used, arena, 1u << 12, 1);
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || !client->conditional || fx->b != FB_OK || fx->c != 0) return;
    fb_span etag = fb_span_of(client->etag, sizeof client->etag);
    uint64_t *used = fb_sim_memo_at(&((state *)own)->used,
                                    fb_sim_key(etag, (uint64_t)node << 8 | client->record));
    if (*used != 0 && ORACLE(ETAG_UNCOUNTED, true, false)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_etag_once.id,
                        "%s writes r%02u twice on condition of one etag", fb_sim_name(node),
                        (unsigned)client->record);
        return;
    }
    *used = 1;
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)world;
    (void)node;
    (void)empty;
    fb_sim_memo_clear(&((state *)own)->used);
}

const fb_sim_check fb_sim_check_etag_once = {
    .id = "etag-once",
    .musts = "DESIGN 8 consistency",
    .cost = "O(1) a reply",
    .text = "of the writes on condition of one etag, one at most succeeds on a node",
    .state_bytes = sizeof(state),
    .layout = layout,
    .reply = reply,
    .restored = restored,
};
