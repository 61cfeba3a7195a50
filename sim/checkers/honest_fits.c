/* SPDX-License-Identifier: Apache-2.0 */
/* Tables are bounded and a full one refuses. What members that keep the rules wrote, each within
 * its own limits, has to find its place all the same, on every member and in any order: who refuses
 * a batch of theirs for want of room is behind for as long as the room is wanting. (No member of
 * this simulator signs batches that are not its program's.) */
#include "protocol/base/cursor.h"
#include "sim/checkers/list.h"

static void fact(fb_sim_world *world, void *state, uint32_t node, const fb_effect *f)
{
    (void)state;
    if (f->c != FB_ERR_LIMIT && f->c != FB_ERR_BATCH_LIVES) return;
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(f), f->len));
    fb_read_id(&r); /* the area */
    uint32_t signer = fb_sim_node_of(world, fb_read_id(&r));
    uint64_t incarnation = fb_read_u64(&r), number = fb_read_u64(&r);
    if (r.failed || signer == UINT32_MAX) return;
    fb_sim_violated(world, FB_SIM_LIVENESS, "honest-fits",
                    "%s refuses batch %llu of %s/%08x for want of room: %s", fb_sim_name(node),
                    (unsigned long long)number, fb_sim_name(signer), (unsigned)(incarnation >> 32),
                    fb_error_name((fb_error)f->c));
}

const fb_sim_check fb_sim_check_honest_fits = {
    .id = "honest-fits",
    .musts = "DESIGN 6",
    .cost = "O(1) a fact",
    .text = "no batch of a member that keeps the rules is refused for want of room",
    .facts = FB_SIM_FACT(FB_FACT_BATCH_REFUSED),
    .fact = fact,
};
